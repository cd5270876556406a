//! The objects of a run: which memory holds a structure of which type, and how long.
//!
//! A pass over the log collects what accesses show (see [`Symbols::accessed`]): at this address, in this life of its
//! memory, the program accessed a field of that type, so such an object begins so many bytes before. What
//! one access shows may be a part of what another one shows, or lie in memory that an object only keeps for
//! others, as the nodes of containers do. What contradicts another is dropped, and counted: memory that a program
//! uses now for this and now for that has no objects that can be told apart.
//!
//! Variables of functions count as objects if another thread accesses them. The log does not show how long they live, so
//! such an object is known only if the function whose variable it is accesses it, and only one call of that function.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::log::Block;
use crate::symbols::{Access, Content, Frame, Place, Relation, Symbols};

/// A life of memory: that of a block, by the number of the location that allocates it and its own; or
/// none for memory that is not allocated.
pub(crate) type Life = Option<(u64, u64)>;

/// An access, with what is known of its memory.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'b> {
    /// Its thread.
    pub thread: u32,
    /// The return address of the hook.
    pub pc: u64,
    /// The first byte.
    pub address: u64,
    /// The allocated memory that it lies in.
    pub block: Option<&'b Block>,
    /// The thread whose stack it is on, if it is on one.
    pub stack_of: Option<u32>,
}

/// An object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) start: u64,
    pub(crate) content: Content,
    /// The first access that showed it.
    pub(crate) pc: u64,
}

/// What accesses show, before it is put together.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// The first access that showed each object.
    lives: HashMap<Life, HashMap<(u64, Content), u64>>,
    blocks: HashMap<Life, Block>,
    stacks: Stacks,
    /// Accesses of which nothing is known.
    unknown: HashMap<(Life, u64), u64>,
}

/// The most accesses of unknown types that are remembered.
const MOST_UNKNOWN: usize = 1 << 20;

impl Collected {
    /// A thread has returned from some functions, and has possibly called another.
    pub(crate) fn called(&mut self, thread: u32, returned: u64, is_call: bool) {
        self.stacks.called(thread, returned, is_call);
    }

    /// The functions that a thread is in are not known.
    pub(crate) fn is_lost(&mut self, thread: u32) {
        self.stacks.called(thread, u64::MAX, false);
    }

    /// An access. `is_declared` says whether what its block consists of is known otherwise.
    pub(crate) fn see(
        &mut self,
        symbols: &Symbols,
        life: Life,
        is_declared: bool,
        seen: &Seen<'_>,
    ) {
        let Seen { thread, pc, address, block, stack_of } = *seen;
        let (content, offset, in_frame) = match symbols.accessed(pc) {
            Access::Record { content, offset, in_frame } => (content, offset, in_frame),
            Access::Plain => return,
            Access::Frame => {
                self.stacks.own(thread, address..address + 1);
                return;
            }
            Access::Unknown => {
                let is_static = block.is_none() && symbols.is_static(address);
                let is_own = stack_of == Some(thread);
                let is_open = !is_static && !is_own && !is_declared;
                if is_open && self.unknown.len() < MOST_UNKNOWN {
                    self.unknown.entry((life, address)).or_insert(pc);
                }
                return;
            }
        };
        let start = address.wrapping_sub(offset);
        let end = start.saturating_add(symbols.size_of(content));
        match block {
            // An object does not go beyond its block.
            Some(block) => {
                if start < block.start || end > block.start.saturating_add(block.size) {
                    return;
                }
                self.blocks.entry(life).or_insert(*block);
            }
            // What variables of static lifetime consist of is known, unless it is bytes for something else.
            None if symbols.is_described(start, content) => return,
            None => {}
        }
        if let Some(owner) = stack_of {
            self.stacks.see(thread, start..end, address, in_frame);
            if owner != thread {
                self.stacks.foreign.insert(start);
            }
        }
        self.lives.entry(life).or_default().entry((start, content)).or_insert(pc);
    }
}

/// Variables of functions.
#[derive(Debug, Default)]
struct Stacks {
    /// The calls that threads are in.
    calls: HashMap<u32, Vec<u64>>,
    active: HashSet<u64>,
    /// How many calls there have been.
    count: u64,
    /// How many there had been when each object was first seen.
    firsts: BTreeMap<u64, u64>,
    /// Memory of frames: where it ends, and the call that it belongs to.
    owned: BTreeMap<u64, (u64, u64)>,
    /// What other threads access.
    foreign: BTreeSet<u64>,
    /// What belongs to several calls.
    shared: BTreeSet<u64>,
}

impl Stacks {
    fn called(&mut self, thread: u32, returned: u64, is_call: bool) {
        let calls = self.calls.entry(thread).or_default();
        let left = calls.len().saturating_sub(usize::try_from(returned).unwrap_or(usize::MAX));
        for over in calls.drain(left..) {
            self.active.remove(&over);
        }
        if is_call {
            self.count += 1;
            calls.push(self.count);
            self.active.insert(self.count);
        }
    }

    /// An object is accessed.
    fn see(&mut self, thread: u32, range: Range<u64>, address: u64, in_frame: bool) {
        if !self.firsts.contains_key(&range.start) {
            self.firsts.insert(range.start, self.count);
            // What was there before is over.
            let over = self.owned.range(range.clone());
            let over = over.filter(|(_, (_, owner))| !self.active.contains(owner));
            let over: Vec<u64> = over.map(|(&at, _)| at).collect();
            over.iter().for_each(|at| {
                self.owned.remove(at);
            });
        } else if let Some((&of, &(end, owner))) = self.owned.range(..=address).next_back()
            && address < end
            && !self.active.contains(&owner)
        {
            self.shared.insert(of);
        }
        if in_frame {
            self.own(thread, range);
        }
    }

    /// The function that a thread is in accesses memory of its own frame.
    fn own(&mut self, thread: u32, range: Range<u64>) {
        let Range { start, end } = range;
        let call = self.calls.get(&thread).and_then(|calls| calls.last()).copied();
        let Some(call) = call else {
            self.shared.insert(start);
            return;
        };
        let (_, owner) = *self.owned.entry(start).or_insert((end, call));
        if owner == call {
            return;
        }
        let is_new = self.firsts.range(start..end).next().is_none();
        if is_new && !self.active.contains(&owner) {
            self.owned.insert(start, (end, call));
        } else {
            self.shared.insert(start);
        }
    }

    fn has(&self, start: u64) -> bool {
        self.firsts.contains_key(&start)
    }

    /// Whether another thread accesses an object.
    fn is_foreign(&self, start: u64, end: u64) -> bool {
        self.foreign.range(start..end).next().is_some()
    }

    /// Whether an object belongs to one call, in whose frame it is.
    fn is_one(&self, start: u64, end: u64) -> bool {
        let Some(&first) = self.firsts.get(&start) else { return true };
        let mut owners = self.owned.range(start..end).map(|(_, &(_, owner))| owner);
        let is_shared = self.shared.range(start..end).next().is_some();
        // It was not seen before its function was called.
        owners.next().is_some_and(|owner| owner <= first && owners.all(|other| other == owner))
            && !is_shared
    }
}

/// The objects in one life of some memory. What lies in the storage of another is one level deeper.
#[derive(Debug, Default)]
struct Levels(Vec<BTreeMap<u64, Object>>);

impl Levels {
    /// Adds an object, not larger than those that are there. Returns the one that it contradicts.
    fn add(&mut self, symbols: &Symbols, object: Object) -> Result<(), Object> {
        let end_of = |it: &Object| it.start.saturating_add(symbols.size_of(it.content));
        let mut level = 0;
        loop {
            if level == self.0.len() {
                self.0.push(BTreeMap::new());
            }
            let before = self.0[level].range(..end_of(&object)).next_back().map(|(_, it)| *it);
            let Some(other) = before.filter(|it| end_of(it) > object.start) else {
                self.0[level].insert(object.start, object);
                return Ok(());
            };
            let offset = object.start.checked_sub(other.start).ok_or(other)?;
            match symbols.relation(other.content, offset, object.content) {
                Relation::Part => return Ok(()),
                Relation::Storage => level += 1,
                Relation::Other => return Err(other),
            }
        }
    }

    fn remove(&mut self, object: &Object) {
        for level in &mut self.0 {
            if level.get(&object.start).is_some_and(|it| it.content == object.content) {
                level.remove(&object.start);
            }
        }
    }

    /// The innermost object at an address, not on the outermost levels.
    fn at(&self, symbols: &Symbols, address: u64, outermost: usize) -> Option<Object> {
        self.0.iter().skip(outermost).rev().find_map(|level| {
            let (_, object) = level.range(..=address).next_back()?;
            (address - object.start < symbols.size_of(object.content)).then_some(*object)
        })
    }

    /// What a block consists of, if all that is known of it are elements of one type.
    fn content(&self, symbols: &Symbols, block: &Block) -> Option<Content> {
        let mut all = self.0.first()?.values();
        let first = all.next()?.content;
        let size = symbols.size_of(first);
        let is_element = |start: u64| (start - block.start).is_multiple_of(size);
        let fits = size > 0
            && block.size.is_multiple_of(size)
            && self.0[0].keys().all(|&start| is_element(start))
            && all.all(|it| symbols.relation(first, 0, it.content) == Relation::Part);
        fits.then_some(first)
    }
}

/// How many places are named in a doubt.
const SHOWN: usize = 3;

/// The innermost place of an access that is not in a header of the system.
fn place(symbols: &Symbols, pc: u64) -> String {
    let Place(mut frames) = symbols.place(pc.wrapping_sub(1));
    let is_own = |frame: &Frame| frame.file.as_ref().is_some_and(|f| !f.starts_with("/usr/"));
    let own = frames.iter().position(is_own).unwrap_or(0);
    frames.drain(..own.min(frames.len()));
    Place(frames).line().unwrap_or_else(|| format!("{pc:#x}"))
}

/// The objects of a run.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    lives: HashMap<Life, Levels>,
    /// What blocks consist of.
    contents: HashMap<Life, Content>,
    /// Fields of objects that the run does not touch.
    pub(crate) idle: HashSet<String>,
}

impl Objects {
    /// Puts together what accesses show. `is_asked` says of a type whether it matters, or a part of it; `doubt` gets
    /// the reasons why not all objects are known.
    pub(crate) fn new(
        symbols: &Symbols,
        collected: Collected,
        is_asked: impl Fn(Content) -> bool,
        doubt: &mut dyn FnMut(String),
    ) -> Objects {
        let Collected { lives, blocks, stacks, unknown } = collected;
        let mut objects = Objects::default();
        let (mut reused, mut local) = (Vec::new(), Vec::new());
        for (life, shown) in lives {
            let mut shown: Vec<Object> = shown
                .into_iter()
                .map(|((start, content), pc)| Object { start, content, pc })
                .collect();
            // Larger ones first; the rest makes the order definite.
            shown.sort_by_key(|it| (Reverse(symbols.size_of(it.content)), it.start, it.pc));
            let mut levels = Levels::default();
            let mut wrong = Vec::new();
            for object in shown {
                if let Err(other) = levels.add(symbols, object) {
                    wrong.extend([object, other]);
                }
            }
            for object in &wrong {
                levels.remove(object);
            }
            let end = |it: &Object| it.start.saturating_add(symbols.size_of(it.content));
            // What one thread has in its own functions, compilers put where they like.
            let is_private = |it: &Object| {
                life.is_none() && stacks.has(it.start) && !stacks.is_foreign(it.start, end(it))
            };
            let counts = |it: &&Object| is_asked(it.content) && !is_private(it);
            reused.extend(wrong.iter().filter(counts).map(|it| it.pc));
            if life.is_none() {
                let all: Vec<Object> =
                    levels.0.iter().flat_map(|level| level.values().copied()).collect();
                for object in all.iter().filter(|it| stacks.has(it.start)) {
                    let is_one = stacks.is_one(object.start, end(object));
                    if is_private(object) || !is_one {
                        levels.remove(object);
                    }
                    local.extend((counts(&object) && !is_one).then_some(object.pc));
                }
            }
            let content = blocks.get(&life).and_then(|block| levels.content(symbols, block));
            objects.contents.extend(content.map(|content| (life, content)));
            objects.lives.insert(life, levels);
        }
        let is_known = |life: Life, address: u64| {
            objects.contents.contains_key(&life) || objects.at(symbols, life, address).is_some()
        };
        let open = unknown.iter().filter(|((life, address), _)| !is_known(*life, *address));
        let open: Vec<u64> = open.map(|(_, &pc)| pc).collect();
        let mut say = |pcs: Vec<u64>, why: &str| {
            let mut places: Vec<String> = pcs.iter().map(|&pc| place(symbols, pc)).collect();
            places.sort_unstable();
            places.dedup();
            let more = if places.len() > SHOWN { ", …" } else { "" };
            places.truncate(SHOWN);
            if !places.is_empty() {
                doubt(format!("{why} ({}{more})", places.join(", ")));
            }
        };
        say(reused, "memory is used now for one type of objects and now for another");
        say(local, "variables of functions that are called several times are objects");
        say(open, "the type of some memory is not known, and it may hold more objects");
        objects
    }

    /// The object at an address that is no element of its block.
    pub(crate) fn at(&self, symbols: &Symbols, life: Life, address: u64) -> Option<Object> {
        // What a block consists of has a name by that.
        let outermost = usize::from(self.contents.contains_key(&life));
        self.lives.get(&life)?.at(symbols, address, outermost)
    }

    /// Whether a block may consist of something, by what is known of it.
    pub(crate) fn allows(
        &self,
        symbols: &Symbols,
        life: Life,
        block: &Block,
        content: Content,
    ) -> bool {
        let size = symbols.size_of(content);
        let levels = self.lives.get(&life).map_or(&[][..], |levels| &levels.0);
        levels.iter().flat_map(BTreeMap::values).all(|it| {
            let offset = (it.start - block.start).checked_rem(size);
            offset.is_some_and(|at| symbols.relation(content, at, it.content) != Relation::Other)
        })
    }

    /// What a block consists of: one or more of a type.
    pub(crate) fn content(&self, life: Life) -> Option<Content> {
        self.contents.get(&life).copied()
    }
}
