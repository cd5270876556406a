//! Critical sections: who holds which lock between which nodes.
//!
//! A section goes from the node that takes a lock to the one that gives it back, both included; the
//! beginning of a wait ends one and the end of the wait begins another. Inner operations of
//! re-entrant locks are not nodes. A section that is never given back has no release.
//!
//! Sliced searches keep their sections in another form, one sorted list of acquires a lock, because
//! they ask which section of a lock comes next. Here the question is which sections a thread is in
//! after each of its nodes, and which of them exclude each other.

use foresee_trace::entry;

use super::graph::NONE;

/// From taking a lock to giving it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) lock: u32,
    pub(super) thread: u32,
    pub(super) shared: bool,
    pub(super) acquire: u32,
    /// Or [`NONE`], if it is never given back.
    pub(super) release: u32,
}

impl Section {
    /// Whether the two must not overlap.
    #[inline]
    pub(super) fn excludes(&self, other: &Section) -> bool {
        self.lock == other.lock && self.thread != other.thread && !(self.shared && other.shared)
    }
}

/// All sections of a trace, and which of them a thread is in.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub(super) all: Vec<Section>,
    /// For each lock the threads that use it, each with its sections in its order.
    pub(super) by_lock: Vec<Vec<(u32, Vec<u32>)>>,
    /// Lists of sections, as pairs of a section and the rest of the list, so that the lists of
    /// neighbouring nodes share what they have in common.
    lists: Vec<(u32, u32)>,
    /// For each thread the list after each of its nodes.
    holds: Vec<Vec<u32>>,
    now: Vec<u32>,
}

impl Sections {
    pub(super) fn new(threads: usize) -> Sections {
        Sections {
            holds: vec![Vec::new(); threads],
            now: vec![NONE; threads],
            ..Sections::default()
        }
    }

    pub(super) fn open(&mut self, lock: usize, thread: u32, shared: bool, node: u32) -> u32 {
        let section = self.all.len() as u32;
        self.all.push(Section { lock: lock as u32, thread, shared, acquire: node, release: NONE });
        let users = entry(&mut self.by_lock, lock);
        match users.iter_mut().find(|(user, _)| *user == thread) {
            Some((_, sections)) => sections.push(section),
            None => users.push((thread, vec![section])),
        }
        let rest = self.now[thread as usize];
        self.now[thread as usize] = self.push(section, rest);
        section
    }

    /// Ends a section.
    pub(super) fn close(&mut self, section: u32, node: u32) {
        let ended = &mut self.all[section as usize];
        ended.release = node;
        let thread = ended.thread as usize;
        let mut inner = Vec::new();
        let mut list = self.now[thread];
        while let Some(&(one, rest)) = self.lists.get(list as usize) {
            list = rest;
            if one == section {
                break;
            }
            inner.push(one);
        }
        for section in inner.into_iter().rev() {
            list = self.push(section, list);
        }
        self.now[thread] = list;
    }

    fn push(&mut self, section: u32, rest: u32) -> u32 {
        self.lists.push((section, rest));
        self.lists.len() as u32 - 1
    }

    /// The next node of the thread has been dealt with.
    pub(super) fn note_holds(&mut self, thread: usize) {
        self.holds[thread].push(self.now[thread]);
    }

    /// The sections that a thread is in after this many of its nodes.
    pub(super) fn held(&self, thread: usize, count: u32) -> impl Iterator<Item = u32> + '_ {
        let mut list = match count {
            0 => NONE,
            count => self.holds[thread][count as usize - 1],
        };
        std::iter::from_fn(move || {
            let &(section, rest) = self.lists.get(list as usize)?;
            list = rest;
            Some(section)
        })
    }

    #[inline]
    pub(super) fn get(&self, section: u32) -> &Section {
        &self.all[section as usize]
    }
}
