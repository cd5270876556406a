//! Parametric properties: one monitor for each binding of the parameters, which takes the events
//! that concern it (parametric trace slicing; Chen and Rosu 2009).
//!
//! An event binds the parameters in the atoms that it matches. A *binding* is any join of
//! compatible
//! partial bindings of this kind; it is checked on the events whose own bindings it extends.
//! Violations are reported for bindings of all parameters.
//!
//! The set of stored bindings is closed under joins, so every binding, stored or not, has a
//! greatest
//! stored part, whose state is also its own. If every path to a violation binds all parameters by
//! steps that change the state, a binding is created only when its state would differ. Hash tables
//! find bindings by the parameters that an event binds, so an event touches only those that it
//! concerns; an event that binds no parameter concerns all of them.

mod plan;
mod slicer;

use std::hash::{Hash, Hasher};

use foresee_trace::{LockId, ThreadId, Value, VarId};

pub use plan::ParamPlan;
pub use slicer::{Slicer, SlicerError, TooManyBindings};

/// The maximum number of parameters of a property.
pub const MAX_PARAMS: usize = 4;

/// The object that a parameter denotes.
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

// There may be hundreds of thousands of bindings.
const _: () = assert!(size_of::<Option<Object>>() == 16);

impl Object {
    /// An order of objects, which means nothing.
    fn rank(self) -> (u8, u64) {
        match self {
            Object::Thread(id) => (0, u64::from(id.0)),
            Object::Var(id) => (1, u64::from(id.0)),
            Object::Lock(id) => (2, u64::from(id.0)),
            Object::Value(Value::Int(n)) => (3, n as u64),
            Object::Value(Value::Uint(n)) => (4, n),
            Object::Value(Value::Float(x)) => (5, x.to_bits()),
            Object::Value(Value::Bool(is)) => (6, u64::from(is)),
            Object::Value(Value::Str(id)) => (7, u64::from(id.0)),
        }
    }
}

/// The object of each parameter, as far as it is bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    objects: [Option<Object>; MAX_PARAMS],
}

impl Hash for Binding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Only bound parameters: most bindings bind one or two.
        self.domain().hash(state);
        self.objects.iter().flatten().for_each(|object| object.hash(state));
    }
}

impl Binding {
    /// The object of a parameter.
    pub fn get(&self, param: usize) -> Option<Object> {
        self.objects[param]
    }

    /// Binds a parameter; `false` if it is already bound to another object.
    pub(crate) fn bind(&mut self, param: usize, object: Object) -> bool {
        *self.objects[param].get_or_insert(object) == object
    }

    /// An order of bindings, which means nothing.
    fn rank(&self) -> [Option<(u8, u64)>; MAX_PARAMS] {
        self.objects.map(|object| object.map(Object::rank))
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

    /// Whether this binds everything that `part` binds, to the same objects.
    pub fn extends(&self, part: &Binding) -> bool {
        self.objects.iter().zip(&part.objects).all(|(mine, part)| part.is_none() || mine == part)
    }

    /// The union of both bindings, if they agree.
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
