//! How much memory a pass over a trace may take.

/// What one pass may take, and what it may take of what it shares with others.
///
/// Analyses say what they hold where that can grow with threads, locks or bindings. Where nothing
/// else runs in the process, what that really takes is looked at besides, with everything that it
/// held before the pass: the names of a program, for example.
#[derive(Clone)]
pub struct MemoryLimit<'s> {
    limit: usize,
    shared: &'s dyn Fn(usize) -> bool,
    /// Whether nothing else runs in the process.
    is_alone: bool,
}

/// What the process may take beyond the limit for buffers, and memory that it has freed already.
const ALLOWANCE: usize = 32 << 20;

impl std::fmt::Debug for MemoryLimit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLimit").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<'s> MemoryLimit<'s> {
    /// A limit for a pass that begins now; `shared` says whether others leave this many bytes.
    pub(crate) fn new(limit: usize, shared: &'s dyn Fn(usize) -> bool) -> MemoryLimit<'s> {
        MemoryLimit { limit, shared, is_alone: false }
    }

    /// A limit for a process that does nothing else.
    pub fn of_process(limit: usize) -> MemoryLimit<'static> {
        MemoryLimit { limit, shared: &|_| true, is_alone: true }
    }

    /// How many bytes more may be taken if this many are held. At least an eighth of the limit, because
    /// the system counts memory that was freed and is used again.
    pub fn left(&self, bytes: usize) -> usize {
        let held = resident().filter(|_| self.is_alone).unwrap_or(bytes);
        self.limit.saturating_sub(held).max(self.limit / 8)
    }

    /// Whether this many bytes may be held.
    pub fn allows(&self, bytes: usize) -> bool {
        let beyond = |taken: usize| taken.saturating_sub(ALLOWANCE) > self.limit;
        let is_beyond = self.is_alone && resident().is_some_and(beyond);
        bytes <= self.limit && !is_beyond && (self.shared)(bytes)
    }
}

/// The memory that the process takes, without pages of files, where the system reports it.
fn resident() -> Option<usize> {
    const PAGE: usize = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split(' ').skip(1).map(|pages| pages.parse::<usize>().ok());
    let (resident, of_files) = (pages.next()??, pages.next()??);
    resident.saturating_sub(of_files).checked_mul(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_counts_and_so_does_what_the_process_takes() {
        let limit = MemoryLimit::new(1 << 20, &|_| true);
        assert!(limit.allows(1 << 20) && !limit.allows((1 << 20) + 1));
        assert_eq!((limit.left(0), limit.left(1 << 19)), (1 << 20, 1 << 19));
        let shared = MemoryLimit::new(usize::MAX, &|bytes| bytes <= 1000);
        assert!(shared.allows(1000) && !shared.allows(1001));
        if resident().is_some() {
            let alone = MemoryLimit::of_process(1 << 20);
            let roomy = MemoryLimit::of_process(1 << 40);
            assert!(roomy.left(0) < 1 << 40 && roomy.left(0) > 1 << 39);
            assert_eq!(alone.left(0), 1 << 17);
            let much = vec![1_u8; 4 * ALLOWANCE];
            let sum: usize = much.iter().map(|&byte| usize::from(byte)).sum();
            assert!(sum == much.len() && !alone.allows(0));
        }
    }
}
