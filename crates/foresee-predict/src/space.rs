//! Which reorderings to look at.

/// The spaces of reorderings that a user can ask for. The causality-keeping ones are always looked
/// at first: they are cheapest, have the simplest witnesses, and can be covered completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reorder {
    /// And then the stronger one that fits the property.
    #[default]
    Auto,
    /// Nothing else.
    Maz,
    /// And then, for patterns, critical sections swap and events are left out.
    Sliced,
    /// And then, for everything but patterns, any correct reordering.
    Correct,
}

impl Reorder {
    /// Whether any but the causality-keeping ones are looked at.
    pub fn goes_beyond_causality(self) -> bool {
        self != Reorder::Maz
    }

    /// Whether patterns are looked for in sliced reorderings.
    pub fn is_sliced(self) -> bool {
        matches!(self, Reorder::Auto | Reorder::Sliced)
    }

    /// Whether other properties are checked in correct reorderings.
    pub fn is_correct(self) -> bool {
        matches!(self, Reorder::Auto | Reorder::Correct)
    }
}
