//! The shares of a [`Config`], converted for fast drawing.

use fastrand::Rng;

use crate::generate::Config;

/// A chance in units of 2^-32, so that drawing one costs a comparison of integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chance(u64);

impl Chance {
    fn new(share: f64) -> Chance {
        Chance((share.clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64)
    }

    #[inline]
    pub(super) fn draw(self, rng: &mut Rng) -> bool {
        // Most mixtures have no chance for most things; those should not cost a random number.
        self.0 > 0 && u64::from(rng.u32(..)) < self.0
    }
}

/// The chances of a [`Config`], ready to be drawn.
#[derive(Debug)]
pub(super) struct Chances {
    pub(super) switch: Chance,
    pub(super) enter_section: Chance,
    pub(super) leave_section: Chance,
    pub(super) nest: Chance,
    pub(super) wait: Chance,
    pub(super) bare_wait: Chance,
    pub(super) reentrant: Chance,
    pub(super) shared: Chance,
    pub(super) tries: Chance,
    pub(super) crossed: Chance,
    pub(super) read: Chance,
    pub(super) volatile: Chance,
    pub(super) rmw: Chance,
    pub(super) joined: Chance,
    pub(super) named: Chance,
    pub(super) call: Chance,
    pub(super) region: Chance,
    pub(super) unrelated: Chance,
    pub(super) again: Chance,
    /// The chance of a fork at any event; chosen so that all forks happen in about the first
    /// quarter.
    pub(super) fork: Chance,
    /// The chance that a thread ends, at any event near the end of the trace.
    pub(super) end: Chance,
}

impl Chances {
    pub(super) fn new(config: &Config) -> Chances {
        let (inside, length) = (config.in_sections, config.section_events);
        // A thread alternates between `length` events inside and 1/enter outside.
        let enter = if inside < 1.0 { inside / (length * (1.0 - inside)) } else { 1.0 };
        let has_locks = if config.locks > 0 { 1.0 } else { 0.0 };
        let has_conditions = if config.conditions > 0 { 1.0 } else { 0.0 };
        let turnover = 4.0 * f64::from(config.threads) / config.events as f64;
        Chances {
            switch: Chance::new(config.switching),
            enter_section: Chance::new(enter * has_locks),
            leave_section: Chance::new(1.0 / length),
            nest: Chance::new(0.5 / length),
            wait: Chance::new(config.waits * has_conditions),
            bare_wait: Chance::new(config.bare_waits * has_conditions),
            reentrant: Chance::new(config.reentrant),
            shared: Chance::new(config.shared),
            tries: Chance::new(config.tries),
            crossed: Chance::new(config.crossed),
            read: Chance::new(config.reads),
            volatile: Chance::new(config.volatiles),
            rmw: Chance::new(config.rmws),
            joined: Chance::new(config.joined),
            named: Chance::new(config.named),
            call: Chance::new(config.calls),
            region: Chance::new(config.regions),
            unrelated: Chance::new(config.unrelated),
            again: Chance::new(config.loops),
            fork: Chance::new(turnover.min(0.5)),
            end: Chance::new(turnover.min(0.2)),
        }
    }
}
