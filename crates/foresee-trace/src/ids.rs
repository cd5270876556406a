//! Small integers that identify the things in a trace.
//!
//! Each kind of thing has its own number space, so a Java object that is at once a lock, a
//! condition and a thread has three different numbers.

/// A number that identifies one thing of one kind; [`crate::Names`] has the text behind it.
pub trait Id: Copy + Eq {
    /// The id with this number.
    fn new(index: usize) -> Self;
    /// The number, for use as an array index.
    fn index(self) -> usize;
}

/// The entry of a table that is indexed by ids and grows with them.
#[inline]
pub fn entry<T: Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if index >= table.len() {
        table.resize_with(index + 1, T::default);
    }
    &mut table[index]
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl Id for $name {
            #[inline]
            fn new(index: usize) -> Self {
                // Interners refuse to grow past `u32`, so the number always fits.
                $name(index as u32)
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A thread. At most [`ThreadId::MAX`], because an event keeps it in 24 bits.
    ThreadId;
    /// A variable: anything that is read and written.
    VarId;
    /// A lock.
    LockId;
    /// A condition: what is waited for and notified.
    CondId;
    /// A source location. [`LocId::NONE`] is "no location known".
    LocId;
    /// Any other text: methods, named events, atomic regions, string values.
    SymId;
}

impl ThreadId {
    /// The largest thread number an event can hold.
    pub const MAX: u32 = (1 << 24) - 1;
}

impl LocId {
    /// The location of an event that has none.
    pub const NONE: LocId = LocId(0);

    /// Whether there is a location.
    #[inline]
    pub fn is_some(self) -> bool {
        self != LocId::NONE
    }
}
