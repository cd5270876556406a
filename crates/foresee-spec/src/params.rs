//! Parametric properties: one monitor for each binding of the parameters, fed with the events that
//! concern it (parametric trace slicing; Chen and Rosu 2009).
//!
//! An event binds the parameters that stand in the atoms it matches. A *binding* is any join of
//! such partial bindings that agree; it is checked on the events whose own bindings it extends. A
//! violation is reported for bindings of all parameters.
//!
//! Bindings are kept closed under joins, so every binding, kept or not, has a greatest kept part,
//! and its state is that part's state. Where every way to a violation binds all parameters by
//! steps that change the state, a binding is only made when its state would differ. Bindings are
//! found through hash tables by the parameters an event binds, so an event touches only those it
//! concerns; an event that binds no parameter concerns all.

mod plan;
mod slicer;

use std::hash::{Hash, Hasher};

use foresee_trace::{LockId, ThreadId, Value, VarId};

pub use plan::ParamPlan;
pub use slicer::{Slicer, SlicerError, TooManyBindings};

/// How many parameters a property may have.
pub const MAX_PARAMS: usize = 4;

/// What a parameter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// A thread.
    Thread(ThreadId),
    /// A variable.
    Var(VarId),
    /// A lock.
    Lock(LockId),
    /// A value, or a method or event by its name.
    Value(Value),
}

// Bindings are kept by the hundred thousand.
const _: () = assert!(size_of::<Option<Object>>() == 16);

/// Which object each parameter stands for, as far as it is bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    objects: [Option<Object>; MAX_PARAMS],
}

impl Hash for Binding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Only what is bound: most bindings of most tables bind one or two.
        self.domain().hash(state);
        self.objects.iter().flatten().for_each(|object| object.hash(state));
    }
}

impl Binding {
    /// The object of a parameter.
    pub fn get(&self, param: usize) -> Option<Object> {
        self.objects[param]
    }

    /// Binds a parameter; `false` if it already stands for something else.
    pub(crate) fn bind(&mut self, param: usize, object: Object) -> bool {
        *self.objects[param].get_or_insert(object) == object
    }

    /// The bound parameters, as bits.
    pub fn domain(&self) -> u8 {
        self.objects.iter().enumerate().fold(0, |d, (i, o)| d | u8::from(o.is_some()) << i)
    }

    /// The part that binds only these parameters.
    pub fn restrict(&self, domain: u8) -> Binding {
        let mut part = *self;
        for (i, object) in part.objects.iter_mut().enumerate() {
            if domain >> i & 1 == 0 {
                *object = None;
            }
        }
        part
    }

    /// Whether this binds all that `part` binds, to the same.
    pub fn extends(&self, part: &Binding) -> bool {
        self.objects.iter().zip(&part.objects).all(|(mine, part)| part.is_none() || mine == part)
    }

    /// Both together, if they agree.
    pub fn join(&self, other: &Binding) -> Option<Binding> {
        let mut both = *self;
        for (i, object) in other.objects.iter().enumerate() {
            if let Some(object) = object
                && !both.bind(i, *object)
            {
                return None;
            }
        }
        Some(both)
    }
}

#[cfg(test)]
mod tests;
