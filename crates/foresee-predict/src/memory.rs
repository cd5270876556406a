//! How much memory a pass over a trace may take.

/// What one pass may take, and what it may take of what it shares with others.
///
/// Analyses say what they hold where that can grow with threads, locks or bindings. Where nothing
/// else runs in the process, what that really takes is looked at besides.
#[derive(Clone)]
pub struct MemoryLimit<'s> {
    limit: usize,
    shared: &'s dyn Fn(usize) -> bool,
    /// What the process took before the pass.
    before: Option<usize>,
}

/// What the process takes beyond the limit for buffers, and memory that it has freed already.
const ALLOWANCE: usize = 64 << 20;

impl std::fmt::Debug for MemoryLimit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLimit").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<'s> MemoryLimit<'s> {
    /// A limit for a pass that begins now; `shared` says whether others leave this many bytes.
    pub(crate) fn new(limit: usize, shared: &'s dyn Fn(usize) -> bool) -> MemoryLimit<'s> {
        MemoryLimit { limit, shared, before: None }
    }

    /// A limit for a process that does nothing else.
    pub fn of_process(limit: usize) -> MemoryLimit<'static> {
        MemoryLimit { limit, shared: &|_| true, before: resident() }
    }

    /// Whether this many bytes may be held.
    pub fn allows(&self, bytes: usize) -> bool {
        let taken = || Some(resident()?.saturating_sub(self.before?));
        let beyond = |taken: usize| taken.saturating_sub(ALLOWANCE) > self.limit;
        let is_beyond = self.before.is_some() && taken().is_some_and(beyond);
        bytes <= self.limit && !is_beyond && (self.shared)(bytes)
    }
}

/// The memory that the process takes, where the system reports it.
fn resident() -> Option<usize> {
    const PAGE: usize = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split(' ').nth(1)?.parse::<usize>().ok()?.checked_mul(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_counts_and_so_does_what_the_process_takes() {
        let limit = MemoryLimit::new(1 << 20, &|_| true);
        assert!(limit.allows(1 << 20) && !limit.allows((1 << 20) + 1));
        let shared = MemoryLimit::new(usize::MAX, &|bytes| bytes <= 1000);
        assert!(shared.allows(1000) && !shared.allows(1001));
        if resident().is_some() {
            let alone = MemoryLimit::of_process(1 << 20);
            let much = vec![1_u8; 4 * ALLOWANCE];
            let sum: usize = much.iter().map(|&byte| usize::from(byte)).sum();
            assert!(sum == much.len() && !alone.allows(0));
        }
    }
}
