//! Interned names: each name is stored once and referred to by number.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::ids::{CondId, Id, LocId, LockId, SymId, ThreadId, VarId};
use crate::stacks::CallStacks;

/// A set of texts, numbered in the order of their first appearance.
///
/// All texts share one buffer, so a name costs its own bytes and about a dozen more, and readers
/// may intern millions of them. Copies share everything until one of them gets a new name: a trace,
/// its reader and its report have the same names, and large programs have hundreds of megabytes.
#[derive(Clone, Debug)]
pub struct Interner<I> {
    table: Arc<Table>,
    kind: PhantomData<I>,
}

#[derive(Clone, Debug, Default)]
struct Table {
    text: String,
    /// `ends[i]` is where name `i` ends in `text`; it starts where its predecessor ends.
    ends: Vec<u32>,
    /// Names by hash. The upper half of the hash is stored beside the number, so texts are rarely
    /// compared unless they are equal.
    by_hash: HashTable<(u32, u32)>,
    // Seeded randomly in each process, because names come from untrusted files.
    hasher: RandomState,
}

/// There are more names than numbers, or more text than one table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many different names in one trace (limit: 4 GiB of text, 16 million threads)")]
pub struct TooManyNames;

impl<I> Default for Interner<I> {
    fn default() -> Self {
        Interner { table: Arc::default(), kind: PhantomData }
    }
}

impl<I: Id> Interner<I> {
    /// The number of `name`; a new name gets the next one.
    #[inline]
    pub fn intern(&mut self, name: &str) -> Result<I, TooManyNames> {
        let hash = self.table.hash(name);
        match self.table.find(hash, name) {
            Some(index) => Ok(I::new(index)),
            None => Arc::make_mut(&mut self.table).insert(hash, name).map(I::new),
        }
    }

    /// The number of `name` if it has one.
    #[inline]
    pub fn lookup(&self, name: &str) -> Option<I> {
        self.table.find(self.table.hash(name), name).map(I::new)
    }

    /// The text of `id`.
    ///
    /// # Panics
    /// If `id` was not given out by this interner.
    #[inline]
    pub fn get(&self, id: I) -> &str {
        &self.table.text[self.table.range(id.index())]
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.table.ends.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.table.ends.is_empty()
    }

    /// All names with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &str)> + '_ {
        (0..self.len()).map(|i| (I::new(i), &self.table.text[self.table.range(i)]))
    }

    /// How many bytes the names take.
    pub fn bytes(&self) -> usize {
        let Table { text, ends, by_hash, .. } = &*self.table;
        text.capacity() + ends.capacity() * size_of::<u32>() + by_hash.allocation_size()
    }
}

impl Table {
    fn range(&self, index: usize) -> std::ops::Range<usize> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        start..self.ends[index] as usize
    }

    #[inline]
    fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name.as_bytes())
    }

    #[inline]
    fn find(&self, hash: u64, name: &str) -> Option<usize> {
        let tag = (hash >> 32) as u32;
        self.by_hash
            .find(hash, |&(t, i)| {
                t == tag && self.text.as_bytes()[self.range(i as usize)] == *name.as_bytes()
            })
            .map(|&(_, i)| i as usize)
    }

    #[cold]
    fn insert(&mut self, hash: u64, name: &str) -> Result<usize, TooManyNames> {
        let end = u32::try_from(self.text.len() + name.len()).map_err(|_| TooManyNames)?;
        let index = self.ends.len();
        let number = u32::try_from(index).map_err(|_| TooManyNames)?;
        self.text.push_str(name);
        self.ends.push(end);
        let (hasher, text, ends) = (&self.hasher, &self.text, &self.ends);
        self.by_hash.insert_unique(hash, ((hash >> 32) as u32, number), |&(_, i)| {
            let i = i as usize;
            let start = if i == 0 { 0 } else { ends[i - 1] as usize };
            hasher.hash_one(&text.as_bytes()[start..ends[i] as usize])
        });
        Ok(index)
    }
}

/// Every name of a trace, by kind.
#[derive(Clone, Debug)]
pub struct Names {
    /// Threads.
    pub threads: Interner<ThreadId>,
    /// Variables.
    pub vars: Interner<VarId>,
    /// Locks.
    pub locks: Interner<LockId>,
    /// Conditions.
    pub conds: Interner<CondId>,
    /// Source locations; number 0 is the empty text, "no location".
    pub locs: Interner<LocId>,
    /// Methods, named events, regions and string values.
    pub syms: Interner<SymId>,
    /// Call stacks.
    pub stacks: CallStacks,
}

impl Default for Names {
    fn default() -> Self {
        let mut locs = Interner::default();
        let none = locs.intern("");
        debug_assert_eq!(none, Ok(LocId::NONE));
        Names {
            threads: Interner::default(),
            vars: Interner::default(),
            locks: Interner::default(),
            conds: Interner::default(),
            locs,
            syms: Interner::default(),
            stacks: CallStacks::default(),
        }
    }
}

impl Names {
    /// The number of a thread, which has fewer bits than those of the other kinds.
    #[inline]
    pub fn thread(&mut self, name: &str) -> Result<ThreadId, TooManyNames> {
        let id = self.threads.intern(name)?;
        if id.0 > ThreadId::MAX { Err(TooManyNames) } else { Ok(id) }
    }

    /// How many bytes all names take.
    pub fn bytes(&self) -> usize {
        let Names { threads, vars, locks, conds, locs, syms, stacks } = self;
        let threads = threads.bytes() + locks.bytes() + conds.bytes();
        threads + vars.bytes() + locs.bytes() + syms.bytes() + stacks.bytes()
    }
}

/// The name of the object that a variable belongs to: the part of its name before the first `+`,
/// `.`, `[` or `->` outside brackets. `heap(list.c:7)#2+8` is a part of `heap(list.c:7)#2`.
pub fn object_of(variable: &str) -> &str {
    let mut depth = 0u32;
    for (i, c) in variable.bytes().enumerate() {
        match c {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'+' | b'.' | b'[' if depth == 0 => return &variable[..i],
            b'{' if depth == 0 && begins_type(variable, i) => return &variable[..i],
            b'-' if depth == 0 && variable[i..].starts_with("->") => return &variable[..i],
            _ => {}
        }
    }
    variable
}

/// Whether a brace in a variable's name begins the type of an object. Compilers name functions without names in braces, too,
/// behind two colons.
fn begins_type(variable: &str, brace: usize) -> bool {
    let before = brace.checked_sub(1).map(|i| variable.as_bytes()[i]);
    before.is_some_and(|c| !matches!(c, b':' | b'{')) && !variable[brace..].starts_with("{{")
}

/// The event with which the capture records that a block of memory is freed; its argument is the
/// name of the block.
pub const HEAP_FREE: &str = "heap_free";

/// The thread that performs the writes of code that was not captured.
pub const EXTERNAL: &str = "external";

/// The name of a variable without the types of the objects that it is a field of: `fleet[1].pos.y` for
/// `fleet[1]{ship}.pos.y`.
pub fn plain_name(variable: &str) -> Cow<'_, str> {
    plain_from(variable, 0)
}

/// The same for the rest of a name from a place outside brackets on.
fn plain_from(variable: &str, from: usize) -> Cow<'_, str> {
    let rest = &variable[from..];
    if !rest.contains('{') {
        return Cow::Borrowed(rest);
    }
    let mut plain = String::with_capacity(rest.len());
    let (mut depth, mut is_type) = (0u32, false);
    for (i, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match c {
            '{' if depth == 0 && begins_type(variable, from + i) => is_type = true,
            '}' if depth == 0 && is_type => is_type = false,
            c if !is_type => plain.push(c),
            _ => {}
        }
    }
    Cow::Owned(plain)
}

/// A field of an object whose type is known: `account(bank.c:9(open))#2.balance`, `bank.Account#2.balance`, or
/// `fleet[1]{ship}.pos.y`, where the type of an object stands in braces behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName<'n> {
    /// The object, with its number or its type; of an array of objects, one element.
    pub object: &'n str,
    /// Its type; `heap` if it is not known.
    pub of: &'n str,
    /// The way from the object to the variable: `balance`.
    pub path: Cow<'n, str>,
}

impl<'n> FieldName<'n> {
    /// All objects that a variable is a field of, by its name: an object may be a part of another. The outermost comes
    /// first.
    pub fn all(variable: &'n str) -> Vec<FieldName<'n>> {
        let mut found = Vec::new();
        let mut add = |end: usize, of: &'n str| {
            let rest = plain_from(variable, end);
            let path = match rest {
                Cow::Borrowed(rest) => rest.strip_prefix('.').map(Cow::Borrowed),
                Cow::Owned(rest) => rest.strip_prefix('.').map(|path| Cow::Owned(path.to_owned())),
            };
            if let Some(path) = path.filter(|path| !path.is_empty()) {
                found.push(FieldName { object: &variable[..end], of, path });
            }
        };
        let (mut depth, mut of, mut is_numbered) = (0u32, None, false);
        let mut tag = None;
        for (i, c) in variable.bytes().enumerate() {
            match c {
                b'(' => {
                    of = of.or((depth == 0).then_some(i));
                    depth += 1;
                }
                b')' => depth = depth.saturating_sub(1),
                b'{' if depth == 0 && begins_type(variable, i) => tag = Some(i + 1),
                b'}' if depth == 0 => {
                    if let Some(from) = tag.take() {
                        add(i + 1, &variable[from..i]);
                    }
                }
                b'#' if depth == 0 && !is_numbered => {
                    is_numbered = true;
                    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
                    let number = digits(&variable[i + 1..]);
                    let mut end = i + 1 + number;
                    // The element of an array of objects.
                    if let Some(index) = variable[end..].strip_prefix('[')
                        && let count = digits(index)
                        && count > 0
                        && index[count..].starts_with(']')
                    {
                        end += count + 2;
                    }
                    if number > 0 {
                        add(end, &variable[..of.unwrap_or(i)]);
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Whether a type is the one that is meant: by its name, or by the end of it after `.` or `:`.
    pub fn is_named(of: &str, meant: &str) -> bool {
        let before = of.strip_suffix(meant);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['.', ':', '/', '$']))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_by_first_appearance() {
        let mut names = Interner::<VarId>::default();
        let many: Vec<String> = (0..5000).map(|i| format!("v{i}[0]")).collect();
        for (i, name) in many.iter().enumerate() {
            assert_eq!(names.intern(name), Ok(VarId(i as u32)));
        }
        for (i, name) in many.iter().enumerate() {
            assert_eq!(names.intern(name), Ok(VarId(i as u32)));
            assert_eq!(names.get(VarId(i as u32)), name);
        }
        assert_eq!(names.lookup("absent"), None);
        assert_eq!(names.len(), 5000);
    }

    #[test]
    fn copies_share_their_texts_until_one_of_them_gets_a_new_name() {
        let mut names = Interner::<VarId>::default();
        assert_eq!(names.intern("a"), Ok(VarId(0)));
        let copy = names.clone();
        assert_eq!(names.intern("a"), Ok(VarId(0)));
        assert!(std::ptr::eq(names.get(VarId(0)), copy.get(VarId(0))));
        assert_eq!(names.intern("b"), Ok(VarId(1)));
        assert_eq!((names.len(), copy.len(), copy.lookup("b")), (2, 1, None));
        assert!(names.bytes() >= "ab".len() + 2 * size_of::<u32>());
    }

    #[test]
    fn kinds_do_not_share_numbers() {
        let mut names = Names::default();
        assert_eq!(names.vars.intern("o"), Ok(VarId(0)));
        assert_eq!(names.locks.intern("o"), Ok(LockId(0)));
        assert_eq!(names.locs.get(LocId::NONE), "");
    }

    #[test]
    fn variables_belong_to_the_object_that_their_names_begin_with() {
        assert_eq!(object_of("heap(list.c:7(make))#2+8"), "heap(list.c:7(make))#2");
        assert_eq!(object_of("account(list.c:7(make))#2.n"), "account(list.c:7(make))#2");
        assert_eq!(object_of("heap(list.c:7)#2.next"), "heap(list.c:7)#2");
        assert_eq!(object_of("a[3].x"), "a");
        assert_eq!(object_of("Car(a.cc:7)#2{Part}.x"), "Car(a.cc:7)#2");
        assert_eq!(object_of("main::{{closure}}::x"), "main::{{closure}}::x");
        assert_eq!(object_of("p->next"), "p");
        assert_eq!(object_of("count-down"), "count-down");
    }

    #[test]
    fn fields_belong_to_numbered_objects() {
        let fields = |name| -> Vec<(&str, &str, String)> {
            let all = FieldName::all(name).into_iter();
            all.map(|f| (f.object, f.of, f.path.into_owned())).collect()
        };
        let field = |name| fields(name).pop();
        let native = "account(bank.c:9(open))#2.pos.y";
        assert_eq!(
            field(native),
            Some(("account(bank.c:9(open))#2", "account", "pos.y".to_owned()))
        );
        let element = "account(bank.c:9)#1[30].balance";
        assert_eq!(
            field(element),
            Some(("account(bank.c:9)#1[30]", "account", "balance".to_owned()))
        );
        let java = "bank.Account#12.balance";
        assert_eq!(field(java), Some(("bank.Account#12", "bank.Account", "balance".to_owned())));
        let global = "main.c:fleet[1]{ship}.pos.y";
        assert_eq!(field(global), Some(("main.c:fleet[1]{ship}", "ship", "pos.y".to_owned())));
        let nested = "bank(bank.c:9{x})#2.list[3]{vip}{account}.balance";
        assert_eq!(
            fields(nested),
            [
                ("bank(bank.c:9{x})#2", "bank", "list[3].balance".to_owned()),
                ("bank(bank.c:9{x})#2.list[3]{vip}", "vip", "balance".to_owned()),
                ("bank(bank.c:9{x})#2.list[3]{vip}{account}", "account", "balance".to_owned()),
            ]
        );
        assert_eq!(plain_name(nested), "bank(bank.c:9{x})#2.list[3].balance");
        for other in ["a.b", "main::{{closure}}::x", "main::{lambda()#1}::x", "{a}"] {
            assert_eq!(plain_name(other), other);
        }
        for other in [
            "a{b}",
            "a{b.c",
            "a}.b",
            "bank.Account.balance",
            "heap(a.c:1)#1+8",
            "x#.y",
            "x#1",
            "x#1.",
            "int[]#2[3]",
            "x#1[2",
        ] {
            assert_eq!(field(other), None, "{other}");
        }
        assert!(FieldName::is_named("bank::Account", "Account"));
        assert!(FieldName::is_named("Account", "Account"));
        assert!(!FieldName::is_named("SubAccount", "Account"));
    }
}
