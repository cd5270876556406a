//! Symbolic values of registers, as sums of unknowns: enough to recognise equal addresses.

use std::collections::HashMap;

/// A sum: terms that have a number in [`Values`], and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value {
    terms: u32,
    pub(super) constant: i64,
}

/// An unknown with its factor.
type Terms = Vec<(u32, i64)>;

/// The origin of an unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Atom {
    /// Different from everything else.
    New,
    /// The address of a symbol.
    Symbol(String),
    /// The frame of the function.
    Frame,
    /// The stack pointer at an unknown distance from the frame.
    Stack,
    /// The contents of a register where control flow merges.
    Entry(usize),
    /// The result of an instruction on operands.
    Made(String, Vec<Value>),
    /// The contents of a frame slot after this many changes.
    Held(Value, u32),
}

/// All values of a function.
pub(super) struct Values {
    atoms: Vec<Atom>,
    known: HashMap<Atom, u32>,
    sums: Vec<Terms>,
    numbers: HashMap<Terms, u32>,
}

impl Values {
    pub(super) fn new() -> Values {
        let mut values = Values {
            atoms: Vec::new(),
            known: HashMap::new(),
            sums: Vec::new(),
            numbers: HashMap::new(),
        };
        values.sum(Vec::new(), 0);
        values
    }

    fn sum(&mut self, mut terms: Terms, constant: i64) -> Value {
        terms.sort_unstable();
        let mut merged: Terms = Vec::with_capacity(terms.len());
        for (atom, factor) in terms {
            match merged.last_mut() {
                Some((last, sum)) if *last == atom => *sum = sum.wrapping_add(factor),
                _ => merged.push((atom, factor)),
            }
        }
        merged.retain(|(_, factor)| *factor != 0);
        let next = self.sums.len() as u32;
        let terms = *self.numbers.entry(merged).or_insert_with_key(|merged| {
            self.sums.push(merged.clone());
            next
        });
        Value { terms, constant }
    }

    fn atom(&mut self, atom: Atom) -> Value {
        let next = self.atoms.len() as u32;
        let number = match &atom {
            Atom::New => next,
            known => *self.known.entry(known.clone()).or_insert(next),
        };
        if number == next {
            self.atoms.push(atom);
        }
        self.sum(vec![(number, 1)], 0)
    }

    pub(super) fn constant(&mut self, constant: i64) -> Value {
        self.sum(Vec::new(), constant)
    }

    pub(super) fn new_value(&mut self) -> Value {
        self.atom(Atom::New)
    }

    pub(super) fn symbol(&mut self, name: &str) -> Value {
        self.atom(Atom::Symbol(name.to_owned()))
    }

    pub(super) fn frame(&mut self) -> Value {
        self.atom(Atom::Frame)
    }

    pub(super) fn stack(&mut self) -> Value {
        self.atom(Atom::Stack)
    }

    pub(super) fn entry(&mut self, register: usize) -> Value {
        self.atom(Atom::Entry(register))
    }

    pub(super) fn made(&mut self, instruction: &str, from: Vec<Value>) -> Value {
        self.atom(Atom::Made(instruction.to_owned(), from))
    }

    pub(super) fn held(&mut self, at: Value, changes: u32) -> Value {
        self.atom(Atom::Held(at, changes))
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        self.add_times(a, b, 1)
    }

    /// `a + factor × b`.
    pub(super) fn add_times(&mut self, a: Value, b: Value, factor: i64) -> Value {
        let mut terms = self.sums[a.terms as usize].clone();
        let more = self.sums[b.terms as usize].iter();
        terms.extend(more.map(|(atom, f)| (*atom, f.wrapping_mul(factor))));
        self.sum(terms, a.constant.wrapping_add(b.constant.wrapping_mul(factor)))
    }

    pub(super) fn plus(self_value: Value, constant: i64) -> Value {
        Value { constant: self_value.constant.wrapping_add(constant), ..self_value }
    }

    /// The distance from `a` to `b`, if they differ by a constant.
    pub(super) fn distance(a: Value, b: Value) -> Option<i64> {
        (a.terms == b.terms).then(|| b.constant.wrapping_sub(a.constant))
    }

    pub(super) fn as_constant(&self, value: Value) -> Option<i64> {
        self.sums[value.terms as usize].is_empty().then_some(value.constant)
    }

    fn any(&self, value: Value, test: &impl Fn(&Atom) -> bool) -> bool {
        self.sums[value.terms as usize].iter().any(|(atom, _)| test(&self.atoms[*atom as usize]))
    }

    /// Whether an address is in the function's own frame: the frame or the stack plus something.
    pub(super) fn is_in_frame(&self, value: Value) -> bool {
        self.any(value, &|atom| matches!(atom, Atom::Frame | Atom::Stack))
    }

    /// The offset of an address from the frame, if it is known.
    pub(super) fn frame_offset(&self, value: Value) -> Option<i64> {
        match self.sums[value.terms as usize].as_slice() {
            [(atom, 1)] if self.atoms[*atom as usize] == Atom::Frame => Some(value.constant),
            _ => None,
        }
    }

    /// Whether one of the symbols in an address passes a test.
    pub(super) fn has_symbol(&self, value: Value, test: impl Fn(&str) -> bool) -> bool {
        self.any(value, &|atom| matches!(atom, Atom::Symbol(name) if test(name)))
    }

    /// Whether a value may be an address in the frame: it is computed from one, or comes from a
    /// register or frame slot that holds one somewhere.
    pub(super) fn may_point_into_frame(
        &self,
        value: Value,
        registers: &[bool; 16],
        slots: &[i64],
    ) -> bool {
        self.any(value, &|atom| match atom {
            Atom::Frame | Atom::Stack => true,
            Atom::Entry(register) => registers[*register],
            Atom::Held(at, _) => self.frame_offset(*at).is_none_or(|o| slots.contains(&o)),
            Atom::Made(_, from) => {
                from.iter().any(|v| self.may_point_into_frame(*v, registers, slots))
            }
            Atom::New | Atom::Symbol(_) => false,
        })
    }
}
