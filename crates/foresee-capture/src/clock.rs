//! Vector clocks of few contexts, for comparing what is certain.

/// The last known time of each context.
pub(crate) type Clock = Vec<u32>;

/// Takes over what another clock knows.
pub(crate) fn learn(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (mine, &theirs) in clock.iter_mut().zip(other) {
        *mine = theirs.max(*mine);
    }
}

/// The last known time of a context.
pub(crate) fn at(clock: &[u32], context: usize) -> u32 {
    clock.get(context).copied().unwrap_or(0)
}
