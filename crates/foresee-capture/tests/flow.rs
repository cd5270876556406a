//! The types that data flow over machine code gives to accesses, against what generated programs know of themselves.
//!
//! A program reports every object that it makes, with its type, and where its types have structures inside. Whatever
//! structure an access is said to be a part of must begin exactly there, whichever way the pointer came.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use foresee_capture::log::{self, Log, What};
use foresee_capture::naming::symbols_of;
use foresee_capture::symbols::Access;
use foresee_testkit::seeds;
use foresee_testkit::tools::compilers;

use crate::native::Workshop;

/// How many types a program has, how many functions, and how many elements each of its arrays.
const TYPES: usize = 5;
const FUNCTIONS: usize = 8;
const ELEMENTS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    /// A number, or several.
    Number(&'static str, usize),
    /// A structure of a type with a smaller number, or several.
    Inner(usize, usize),
    Pointer(usize),
    /// A pointer to anything, and the type of that.
    Any,
    /// A number or a pointer to one of two types.
    Union(usize, usize),
}

/// What a function takes and returns: pointers to these.
#[derive(Clone)]
struct Function {
    takes: Vec<usize>,
    returns: usize,
    can_inline: bool,
}

/// Writes a program.
struct Writer {
    rng: fastrand::Rng,
    types: Vec<Vec<Field>>,
    functions: Vec<Function>,
    text: String,
    /// The pointers in scope, and what they point to.
    scope: Vec<(String, usize)>,
    names: usize,
}

impl Writer {
    fn new(seed: u64) -> Writer {
        let mut rng = fastrand::Rng::with_seed(seed);
        let numbers = ["char", "short", "int", "long", "double", "unsigned"];
        let mut types: Vec<Vec<Field>> = Vec::new();
        for ty in 0..TYPES {
            let mut fields: Vec<Field> = (0..rng.usize(1..6))
                .map(|_| match rng.u8(0..9) {
                    0 | 1 if ty > 0 => Field::Inner(rng.usize(0..ty), 1),
                    2 if ty > 0 => Field::Inner(rng.usize(0..ty), rng.usize(2..4)),
                    3 | 4 => Field::Pointer(rng.usize(0..TYPES)),
                    5 => Field::Any,
                    6 => Field::Union(rng.usize(0..TYPES), rng.usize(0..TYPES)),
                    7 => Field::Number(numbers[rng.usize(0..6)], rng.usize(2..5)),
                    _ => Field::Number(numbers[rng.usize(0..6)], 1),
                })
                .collect();
            // Each can be accessed, and leads on.
            fields.push(Field::Number(numbers[rng.usize(0..6)], 1));
            fields.push(Field::Pointer(rng.usize(0..TYPES)));
            rng.shuffle(&mut fields);
            types.push(fields);
        }
        let mut functions = Vec::new();
        for _ in 0..FUNCTIONS {
            let takes = (0..rng.usize(1..8)).map(|_| rng.usize(0..TYPES)).collect();
            let (returns, can_inline) = (rng.usize(0..TYPES), rng.bool());
            functions.push(Function { takes, returns, can_inline });
        }
        Writer { rng, types, functions, text: String::new(), scope: Vec::new(), names: 0 }
    }

    fn program(mut self) -> String {
        self.text += "#include <pthread.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
            #include <string.h>\n";
        for (ty, fields) in self.types.iter().enumerate() {
            let _ = writeln!(self.text, "struct t{ty} {{");
            for (n, field) in fields.iter().enumerate() {
                let _ = match field {
                    Field::Number(kind, 1) => writeln!(self.text, "  {kind} f{n};"),
                    Field::Number(kind, count) => writeln!(self.text, "  {kind} f{n}[{count}];"),
                    Field::Inner(of, 1) => writeln!(self.text, "  struct t{of} f{n};"),
                    Field::Inner(of, count) => writeln!(self.text, "  struct t{of} f{n}[{count}];"),
                    Field::Pointer(to) => writeln!(self.text, "  struct t{to} *f{n};"),
                    Field::Any => writeln!(self.text, "  void *f{n}; int what{n};"),
                    Field::Union(one, other) => writeln!(
                        self.text,
                        "  union {{ long number; struct t{one} *one; struct t{other} *other; }} f{n}; int is_one{n};"
                    ),
                };
            }
            self.text += "};\n";
        }
        for ty in 0..TYPES {
            let _ = writeln!(self.text, "static struct t{ty} *all{ty}[4], global{ty}[{ELEMENTS}];");
        }
        self.text += "static long sum;\n\
            #define OPAQUE __attribute__((noinline, no_sanitize(\"thread\")))\n\
            OPAQUE void keep(void *at, int type, int count) { printf(\"keep %lx %d %d\\n\", (long)at, type, count); }\n\
            OPAQUE void fill(void **at, void *with) { *(void *volatile *)at = with; }\n\
            OPAQUE void *same(void *at) { return *(void *volatile *)&at; }\n";
        for function in 0..FUNCTIONS {
            let head = self.head(function);
            let _ = writeln!(self.text, "{head};");
        }
        for function in (0..FUNCTIONS).rev() {
            self.function(function);
        }
        self.main();
        self.text
    }

    fn head(&self, function: usize) -> String {
        let Function { takes, returns, can_inline } = &self.functions[function];
        let takes: Vec<String> =
            takes.iter().enumerate().map(|(n, ty)| format!("struct t{ty} *p{n}")).collect();
        let attribute = if *can_inline { "static" } else { "__attribute__((noinline))" };
        format!("{attribute} struct t{returns} *call{function}({}, int n)", takes.join(", "))
    }

    fn function(&mut self, function: usize) {
        let head = self.head(function);
        let _ = writeln!(self.text, "{head} {{");
        let Function { takes, returns, .. } = self.functions[function].clone();
        self.scope = takes.iter().enumerate().map(|(n, &ty)| (format!("p{n}"), ty)).collect();
        let mut calls = 2;
        for _ in 0..self.rng.usize(4..14) {
            self.statement(function, 0, &mut calls);
        }
        let result = self.pointer(returns);
        let _ = writeln!(self.text, "  return {result};\n}}");
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// An index of an element that the compiler does not know.
    fn index(&mut self) -> String {
        match self.rng.u8(0..4) {
            0 => self.rng.usize(0..ELEMENTS).to_string(),
            1 => format!("(n & {})", ELEMENTS - 1),
            2 => format!("((unsigned)n % {ELEMENTS})"),
            _ => format!("((long)(n + {}) & {})", self.rng.u8(..), ELEMENTS - 1),
        }
    }

    /// A pointer to the first of several elements.
    fn array(&mut self, ty: usize) -> String {
        match self.rng.u8(0..3) {
            0 => format!("global{ty}"),
            _ => format!("all{ty}[{}]", self.index()),
        }
    }

    /// A pointer to an object of a type.
    fn pointer(&mut self, ty: usize) -> String {
        let known: Vec<String> =
            self.scope.iter().filter(|it| it.1 == ty).map(|it| it.0.clone()).collect();
        let fields: Vec<String> = self
            .scope
            .clone()
            .iter()
            .flat_map(|(name, of)| {
                let fields = self.types[*of].iter().enumerate();
                let found = fields.filter_map(|(n, field)| match *field {
                    Field::Pointer(to) if to == ty => Some(format!("{name}->f{n}")),
                    Field::Inner(inner, 1) if inner == ty => Some(format!("&{name}->f{n}")),
                    Field::Inner(inner, 2..) if inner == ty => {
                        Some(format!("&{name}->f{n}[n & 1]"))
                    }
                    _ => None,
                });
                found.collect::<Vec<_>>()
            })
            .collect();
        match self.rng.u8(0..8) {
            0 | 1 if !known.is_empty() => known[self.rng.usize(0..known.len())].clone(),
            2 | 3 if !fields.is_empty() => fields[self.rng.usize(0..fields.len())].clone(),
            4 => format!("&{}[{}]", self.array(ty), self.index()),
            5 => format!("({} + {})", self.array(ty), self.index()),
            6 => format!("(struct t{ty} *)same({})", self.array(ty)),
            _ => self.array(ty),
        }
    }

    /// Accesses a number of an object.
    fn access(&mut self, pointer: &str, ty: usize) -> String {
        let mut path = format!("({pointer})->");
        let mut ty = ty;
        loop {
            let fields: Vec<(usize, Field)> = self.types[ty].iter().copied().enumerate().collect();
            let (n, field) = fields[self.rng.usize(0..fields.len())];
            match field {
                Field::Number(_, count) => {
                    let _ = write!(path, "f{n}");
                    if count > 1 {
                        let _ = write!(
                            path,
                            "[{}]",
                            if count == 4 { self.index() } else { "n & 1".to_owned() }
                        );
                    }
                    break;
                }
                Field::Inner(inner, count) => {
                    let _ = write!(path, "f{n}{}", if count > 1 { "[n & 1]." } else { "." });
                    ty = inner;
                }
                Field::Pointer(to) if self.rng.bool() => {
                    let _ = write!(path, "f{n}->");
                    ty = to;
                }
                _ => {}
            }
        }
        match self.rng.u8(0..4) {
            0 => format!("{path} = n;"),
            1 => format!("sum += (long){path};"),
            2 => format!("{{ __typeof__(({path})) *at = &({path}); *at += 1; }}"),
            _ => format!("{path} += 1;"),
        }
    }

    fn any_access(&mut self) -> String {
        let ty = self.rng.usize(0..TYPES);
        let pointer = self.pointer(ty);
        self.access(&pointer, ty)
    }

    fn statement(&mut self, function: usize, depth: usize, calls: &mut usize) {
        let rng = &mut self.rng;
        let (one, other) = (rng.usize(0..TYPES), rng.usize(0..TYPES));
        match rng.u8(0..20) {
            0..3 => {
                let (name, from) = (self.name("v"), self.pointer(one));
                let _ = writeln!(self.text, "  struct t{one} *{name} = {from};");
                if depth == 0 {
                    self.scope.push((name, one));
                }
            }
            3 => {
                // A variable, possibly one of the parameters, gets another value.
                let (name, ty) = self.scope[self.rng.usize(0..self.scope.len())].clone();
                let from = self.pointer(ty);
                let _ = writeln!(self.text, "  {name} = {from};");
            }
            4 if depth < 2 => {
                let _ = writeln!(self.text, "  if (n & {}) {{", 1 << self.rng.u8(0..4));
                for _ in 0..self.rng.usize(1..4) {
                    self.statement(function, depth + 1, calls);
                }
                self.text += "  } else {\n";
                for _ in 0..self.rng.usize(0..3) {
                    self.statement(function, depth + 1, calls);
                }
                self.text += "  }\n";
            }
            5 => {
                // All elements, forwards or backwards, by index or by pointer.
                let array = self.array(one);
                let name = self.name("q");
                let access = self.access(&name, one);
                let _ = match self.rng.u8(0..4) {
                    0 => writeln!(
                        self.text,
                        "  {{ struct t{one} *a = {array}; for (int i = 0; i < {ELEMENTS}; i++) {{ struct t{one} *{name} = &a[i]; {access} }} }}"
                    ),
                    1 => writeln!(
                        self.text,
                        "  for (struct t{one} *a = {array}, *{name} = a; {name} < a + {ELEMENTS}; {name}++) {{ {access} }}"
                    ),
                    2 => writeln!(
                        self.text,
                        "  for (struct t{one} *a = {array}, *{name} = a + {ELEMENTS}; {name}-- > a;) {{ {access} }}"
                    ),
                    _ => writeln!(
                        self.text,
                        "  {{ char *a = (char *){array}; for (size_t i = 0; i < {ELEMENTS} * sizeof(struct t{one}); i += sizeof(struct t{one})) {{ struct t{one} *{name} = (void *)(a + i); {access} }} }}"
                    ),
                };
            }
            6 => {
                // One variable for pointers of two types.
                let (name, a, b) = (self.name("x"), self.pointer(one), self.pointer(other));
                let first = self.access(&format!("(struct t{one} *){name}"), one);
                let second = self.access(&format!("(struct t{other} *){name}"), other);
                let _ = match self.rng.u8(0..4) {
                    0 => writeln!(
                        self.text,
                        "  {{ int c = n & 2; void *{name} = c ? (void *)({a}) : (void *)({b}); sum++; if (c) {{ {first} }} else {{ {second} }} }}"
                    ),
                    1 => writeln!(
                        self.text,
                        "  {{ void *{name} = {a}; {first} {name} = {b}; {second} }}"
                    ),
                    2 => writeln!(
                        self.text,
                        "  {{ void *{name} = {a}; {first} fill(&{name}, {b}); {second} }}"
                    ),
                    _ => writeln!(
                        self.text,
                        "  {{ void *{name}; fill(&{name}, {a}); for (int i = 0; i < 3; i++) {{ if (i & 1) {{ {second} {name} = {a}; }} else {{ {first} {name} = {b}; }} }} }}"
                    ),
                };
            }
            7 => {
                let (name, a, b) = (self.name("u"), self.pointer(one), self.pointer(other));
                let first = self.access(&format!("{name}.one"), one);
                let second = self.access(&format!("{name}.other"), other);
                let _ = writeln!(
                    self.text,
                    "  {{ union {{ struct t{one} *one; struct t{other} *other; long number; }} {name}; {name}.one = {a}; {first} {name}.other = {b}; {second} }}"
                );
            }
            8 => {
                // A structure from one of its members.
                let found = self.types.iter().enumerate().flat_map(|(ty, fields)| {
                    let inner = fields.iter().enumerate();
                    inner.filter_map(move |(n, field)| match *field {
                        Field::Inner(inner, count) => Some((ty, n, inner, count)),
                        _ => None,
                    })
                });
                let found: Vec<_> = found.collect();
                if found.is_empty() {
                    return;
                }
                let (ty, n, inner, count) = found[self.rng.usize(0..found.len())];
                let (from, name) = (self.pointer(ty), self.name("m"));
                let element = if count > 1 { "[0]" } else { "" };
                let access = self.access(&name, inner);
                let outer = self.access(
                    &format!("(struct t{ty} *)((char *){name} - offsetof(struct t{ty}, f{n}))"),
                    ty,
                );
                let _ = writeln!(
                    self.text,
                    "  {{ struct t{inner} *{name} = &({from})->f{n}{element}; {access} {outer} }}"
                );
            }
            9 => {
                // What a pointer to anything points to.
                let found: Vec<usize> = self.types[one]
                    .iter()
                    .enumerate()
                    .filter(|(_, field)| **field == Field::Any)
                    .map(|(n, _)| n)
                    .collect();
                let Some(&n) = found.first() else { return };
                let (from, name) = (self.pointer(one), self.name("o"));
                let _ = writeln!(
                    self.text,
                    "  {{ struct t{one} *{name} = {from}; switch ({name}->what{n}) {{"
                );
                for ty in 0..TYPES {
                    let access = self.access(&format!("(struct t{ty} *){name}->f{n}"), ty);
                    let _ = writeln!(self.text, "    case {ty}: {access} break;");
                }
                self.text += "  } }\n";
            }
            10 => {
                let found =
                    self.types[one].iter().enumerate().find_map(|(n, field)| match *field {
                        Field::Union(a, b) => Some((n, a, b)),
                        _ => None,
                    });
                let Some((n, a, b)) = found else { return };
                let (from, name) = (self.pointer(one), self.name("o"));
                let first = self.access(&format!("{name}->f{n}.one"), a);
                let second = self.access(&format!("{name}->f{n}.other"), b);
                let _ = writeln!(
                    self.text,
                    "  {{ struct t{one} *{name} = {from}; if ({name}->is_one{n}) {{ {first} }} else {{ {second} }} }}"
                );
            }
            11 if depth == 0 => {
                // Variables of functions, one or several; copies of structures.
                let (name, from) = (self.name("l"), self.pointer(one));
                let count = if self.rng.bool() { 1 } else { ELEMENTS };
                let size =
                    if self.rng.bool() { count.to_string() } else { format!("(n & 1) + {count}") };
                let _ = writeln!(
                    self.text,
                    "  struct t{one} {name}[{size}]; keep({name}, {one}, {count}); for (int i = 0; i < {count}; i++) {name}[i] = *({from});"
                );
                let access = self.access(&name, one);
                let _ = writeln!(self.text, "  {access}");
            }
            12 => {
                let (to, from) = (self.pointer(one), self.pointer(one));
                let _ = writeln!(
                    self.text,
                    "  {{ struct t{one} *a = {to}, *b = {from}; if (a != b) *a = *b; }}"
                );
            }
            13 => {
                // A pointer with a mark in its lowest bit.
                let (name, from) = (self.name("g"), self.pointer(one));
                let access =
                    self.access(&format!("(struct t{one} *)({name} & ~(uintptr_t)1)"), one);
                let _ = writeln!(
                    self.text,
                    "  {{ uintptr_t {name} = (uintptr_t)({from}) | (n & 1); {access} }}"
                );
            }
            14 | 15 if depth == 0 && *calls > 0 && function + 1 < FUNCTIONS => {
                *calls -= 1;
                let callee = self.rng.usize(function + 1..FUNCTIONS);
                let Function { takes, returns, .. } = self.functions[callee].clone();
                let given: Vec<String> = takes.iter().map(|&ty| self.pointer(ty)).collect();
                let name = self.name("r");
                let call = match self.rng.bool() {
                    true => format!("call{callee}"),
                    false => format!("((__typeof__(&call{callee}))same((void *)call{callee}))"),
                };
                let _ = writeln!(
                    self.text,
                    "  struct t{returns} *{name} = {call}({}, n + {});",
                    given.join(", "),
                    self.rng.u8(..)
                );
                self.scope.push((name, returns));
            }
            _ => {
                let access = self.any_access();
                let _ = writeln!(self.text, "  {access}");
            }
        }
    }

    fn main(&mut self) {
        // Accesses count from the second thread on.
        self.text += "static void *work(void *unused) {\n";
        for n in 0..FUNCTIONS {
            let Function { takes, .. } = self.functions[n].clone();
            for _ in 0..2 {
                let given: Vec<String> =
                    takes.iter().map(|ty| format!("all{ty}[{}]", self.rng.usize(0..4))).collect();
                let number = self.rng.u8(..);
                let _ = writeln!(self.text, "  call{n}({}, {number});", given.join(", "));
            }
        }
        self.text += "  return unused;\n}\n";
        self.text += "__attribute__((no_sanitize(\"thread\"))) int main(void) {\n";
        for (ty, fields) in self.types.iter().enumerate() {
            let _ = writeln!(self.text, "  printf(\"type {ty} %zu 0\\n\", sizeof(struct t{ty}));");
            for (n, field) in fields.iter().enumerate() {
                if let Field::Inner(inner, count) = field {
                    let _ = writeln!(
                        self.text,
                        "  printf(\"part {ty} {inner} %zu {count}\\n\", offsetof(struct t{ty}, f{n}));"
                    );
                }
            }
            for n in 0..4 {
                // Some are in memory that has no type of its own.
                let _ = match n {
                    0 => writeln!(
                        self.text,
                        "  {{ char *a = malloc(64 + {ELEMENTS} * sizeof(struct t{ty})); all{ty}[0] = (void *)(a + 32); }}"
                    ),
                    _ => writeln!(
                        self.text,
                        "  all{ty}[{n}] = calloc({ELEMENTS}, sizeof(struct t{ty}));"
                    ),
                };
                let _ = writeln!(
                    self.text,
                    "  memset(all{ty}[{n}], 0, {ELEMENTS} * sizeof(struct t{ty})); keep(all{ty}[{n}], {ty}, {ELEMENTS});"
                );
            }
            let _ = writeln!(self.text, "  keep(global{ty}, {ty}, {ELEMENTS});");
        }
        for ty in 0..TYPES {
            for array in 0..5 {
                let base =
                    if array == 4 { format!("global{ty}") } else { format!("all{ty}[{array}]") };
                for element in 0..ELEMENTS {
                    self.init(&format!("{base}[{element}]"), ty);
                }
            }
        }
        self.text += "  pthread_t thread;\n  pthread_create(&thread, NULL, work, NULL);\n\
            pthread_join(thread, NULL);\n  return 0;\n}\n";
    }

    /// An object of a type, by its place.
    fn element(&mut self, ty: usize) -> String {
        format!("all{ty}[{}] + {}", self.rng.usize(0..4), self.rng.usize(0..ELEMENTS))
    }

    /// Gives the pointers of an object values.
    fn init(&mut self, path: &str, ty: usize) {
        for (n, field) in self.types[ty].clone().into_iter().enumerate() {
            match field {
                Field::Number(..) => {}
                Field::Pointer(to) => {
                    let to = self.element(to);
                    let _ = writeln!(self.text, "  {path}.f{n} = {to};");
                }
                Field::Any => {
                    let what = self.rng.usize(0..TYPES);
                    let _ = writeln!(
                        self.text,
                        "  {path}.f{n} = all{what}[1] + 1; {path}.what{n} = {what};"
                    );
                }
                Field::Union(one, other) => {
                    let is_one = self.rng.bool();
                    let (name, to) = if is_one {
                        ("one", self.element(one))
                    } else {
                        ("other", self.element(other))
                    };
                    let _ = writeln!(
                        self.text,
                        "  {path}.f{n}.{name} = {to}; {path}.is_one{n} = {};",
                        u8::from(is_one)
                    );
                }
                Field::Inner(inner, 1) => self.init(&format!("{path}.f{n}"), inner),
                Field::Inner(inner, count) => {
                    for i in 0..count {
                        self.init(&format!("{path}.f{n}[{i}]"), inner);
                    }
                }
            }
        }
    }
}

/// What a program said of itself.
#[derive(Default)]
struct Truth {
    sizes: HashMap<u64, u64>,
    /// By type: structures within, where they begin, and how many there are.
    parts: HashMap<u64, Vec<(u64, u64, u64)>>,
    /// By the first byte: where they end, and their types. Frames use memory again.
    objects: BTreeMap<u64, Vec<(u64, u64)>>,
}

impl Truth {
    fn read(text: &str) -> Truth {
        let mut truth = Truth::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |n: usize| words[n].parse::<u64>().unwrap();
            match words[0] {
                "type" => {
                    truth.sizes.insert(number(1), number(2));
                }
                "part" => {
                    let part = (number(2), number(3), number(4));
                    truth.parts.entry(number(1)).or_default().push(part);
                }
                "keep" => {
                    let start = u64::from_str_radix(words[1], 16).unwrap();
                    let end = start + number(3) * truth.sizes[&number(2)];
                    truth.objects.entry(start).or_default().push((end, number(2)));
                }
                other => panic!("{other}"),
            }
        }
        truth
    }

    /// The structures that an address lies in: their types, and the offsets in them.
    fn around(&self, address: u64) -> HashSet<(u64, u64)> {
        let mut found = HashSet::new();
        for (&start, all) in self.objects.range(..=address) {
            for &(_, ty) in all.iter().filter(|(end, _)| address < *end) {
                self.within(ty, (address - start) % self.sizes[&ty], &mut found);
            }
        }
        found
    }

    fn within(&self, ty: u64, offset: u64, found: &mut HashSet<(u64, u64)>) {
        found.insert((ty, offset));
        for &(inner, at, count) in self.parts.get(&ty).into_iter().flatten() {
            let size = self.sizes[&inner];
            if (at..at + count * size).contains(&offset) {
                self.within(inner, (offset - at) % size, found);
            }
        }
    }
}

/// How many accesses of structures were looked at, and how many of them have a type.
#[derive(Default)]
struct Seen {
    all: usize,
    known: usize,
}

fn compare(workshop: &Workshop, compiler: [&str; 2], flags: &[&str], seed: u64, seen: &mut Seen) {
    let source = workshop.path(&format!("flow{seed}.c"));
    let text = Writer::new(seed).program();
    std::fs::write(&source, &text).unwrap();
    let program = workshop.build(compiler, &source, flags);
    let (out, logs) = workshop.capture(&program, &[("FORESEE_FILTER", "none")]);
    let how = format!("seed {seed}, {} {}", compiler[0], flags.join(" "));
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{how}: {:?} {errors}", out.status);
    let truth = Truth::read(&String::from_utf8(out.stdout).unwrap());
    let log = Log::open(&log::find(&logs).unwrap()[0]).unwrap();
    let symbols = symbols_of(&log);
    let mut records = log.raw().unwrap();
    let mut done: HashSet<(u64, u64)> = HashSet::new();
    while let Some(record) = records.next_record().unwrap() {
        let (pc, address) = (record.pc, record.address);
        if !matches!(record.what, What::Access(..)) || !done.insert((pc, address)) {
            continue;
        }
        let around = truth.around(address);
        if around.is_empty() {
            continue;
        }
        seen.all += 1;
        let Access::Record { content, offset, .. } = symbols.accessed(pc) else { continue };
        let Some(name) = symbols.type_name(content, symbols.size_of(content)) else { continue };
        // Structures of the library, and unions without names, have other names.
        let Some(ty) = name.strip_prefix('t').and_then(|number| number.parse().ok()) else {
            continue;
        };
        seen.known += 1;
        assert!(
            around.contains(&(ty, offset)),
            "{how}: t{ty}+{offset} at {}, which is {around:?}",
            symbols.place(pc - 1)
        );
    }
    std::fs::remove_dir_all(logs).unwrap();
}

#[test]
fn no_access_gets_a_type_that_it_does_not_have() {
    let workshop = Workshop::new();
    let mut seen = [Seen::default(), Seen::default()];
    for seed in seeds(6) {
        for compiler in compilers() {
            for (flags, seen) in [["-g", "-w", "-O0"], ["-g", "-w", "-O2"]].iter().zip(&mut seen) {
                compare(&workshop, compiler, flags, seed, seen);
            }
        }
    }
    // If nothing had a type, nothing would be compared.
    for Seen { all, known } in seen {
        assert!(known * 4 > all, "{known} of {all} accesses have a type");
    }
}
