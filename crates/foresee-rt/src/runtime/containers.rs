//! Internals of libstdc++'s containers and threads: links of lists, trees and hash tables, which
//! templates in the program's own code follow.
//!
//! A call that changes links declares beforehand which nodes it may access, and afterwards which of
//! their words changed. That may be a few more reads than there were, all within one container:
//! changing it at the same time is an error anyway.

use core::mem::MaybeUninit;

use super::calls::{Call, Way, calls, carry_out};
use super::hook;
use super::next::real;

fn word(at: usize) -> usize {
    // SAFETY: callers read nodes that the program passes to libstdc++.
    unsafe { (at as *const usize).read_volatile() }
}

fn byte(at: usize) -> u8 {
    // SAFETY: as above.
    unsafe { (at as *const u8).read_volatile() }
}

// Lists: a node begins with the next one and the one before.
const PREVIOUS: usize = 8;
const LINKS: usize = 16;

impl Call {
    /// Reads a link and returns its target.
    fn follows(&mut self, link: usize) -> usize {
        self.reads(link, 8);
        word(link)
    }
}

calls! {
    // void _List_node_base::_M_hook(_List_node_base *position)
    Inside _ZNSt8__detail15_List_node_base7_M_hookEPS0_(node, position) |c| {
        let previous = c.follows(position + PREVIOUS);
        c.writes(node, LINKS);
        c.writes(previous, 8);
        c.writes(position + PREVIOUS, 8);
    };
    // void _List_node_base::_M_unhook()
    Inside _ZNSt8__detail15_List_node_base9_M_unhookEv(node) |c| {
        let next = c.follows(node);
        let previous = c.follows(node + PREVIOUS);
        c.writes(previous, 8);
        c.writes(next + PREVIOUS, 8);
    };
}

/// Intercepts functions that change links between nodes of one or two containers.
macro_rules! relinking {
    ($($name:ident($($arg:ident),*) |$nodes:ident| $collect:block)*) => { $(
        pub(super) mod $name {
            use super::*;

            pub(in $crate::runtime) extern "C" fn handle($($arg: usize,)* pc: f64) -> usize {
                relink(pc, |$nodes| $collect, || real!($name($($arg => usize),*) -> usize))
            }
        }

        $crate::runtime::calls::stand_in_front! { $name => $name::handle }
    )* };
}

/// The maximum number of words that are examined at once. A red-black tree of all memory has no
/// longer paths.
const MOST: usize = 768;

/// The words of nodes that a call may change, and their previous contents.
struct Words {
    /// Their addresses and contents; only the first ones are set.
    words: [MaybeUninit<(usize, usize)>; MOST],
    count: usize,
}

impl Words {
    fn all(&mut self) -> &mut [(usize, usize)] {
        // SAFETY: this many have been set.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.count) }
    }

    /// Adds a word; for an odd address, only the half word before it.
    fn add(&mut self, at: usize) {
        if self.count < MOST && self.all().iter().all(|word| word.0 != at) {
            self.words[self.count].write((at, 0));
            self.count += 1;
        }
    }

    /// The two links of a list's node.
    fn links(&mut self, node: usize) {
        self.add(node);
        self.add(node + PREVIOUS);
    }
}

#[inline(never)]
fn relink(pc: f64, collect: impl FnOnce(&mut Words), act: impl FnOnce() -> usize) -> usize {
    let mut words = Words { words: [const { MaybeUninit::uninit() }; MOST], count: 0 };
    let found = &raw mut words;
    carry_out(
        Way::Inside,
        pc,
        |call| {
            // SAFETY: no other thread uses it.
            let words = unsafe { &mut *found };
            collect(words);
            for (at, before) in words.all() {
                let (at, size) = stretch(*at);
                call.reads(at, size);
                call.may_write(at, size);
                *before = word(at);
            }
        },
        act,
        |call, _| {
            // SAFETY: as above.
            let words = unsafe { &mut *found };
            for (at, before) in words.all() {
                let (at, size) = stretch(*at);
                if word(at) != *before {
                    call.wrote(at, size);
                }
            }
        },
    )
}

/// The colour of a tree's node is half a word; the other half is padding.
fn stretch(at: usize) -> (usize, usize) {
    (at & !1, if at & 1 == 0 { 8 } else { 4 })
}

relinking! {
    // void _List_node_base::_M_transfer(_List_node_base *first, _List_node_base *last)
    _ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_(position, first, last) |words| {
        if position != last {
            for node in [position, first, last] {
                words.add(node + PREVIOUS);
                words.add(word(node + PREVIOUS));
            }
        }
    }
    // void _List_node_base::swap(_List_node_base &, _List_node_base &)
    _ZNSt8__detail15_List_node_base4swapERS0_S1_(one, other) |words| {
        for list in [one, other] {
            words.links(list);
            words.add(word(list) + PREVIOUS);
            words.add(word(list + PREVIOUS));
        }
    }
    // void _Rb_tree_insert_and_rebalance(bool left, _Rb_tree_node_base *x, _Rb_tree_node_base *parent, _Rb_tree_node_base &header)
    _ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(left, node, parent, header) |words| {
        words.tree_node(node);
        words.tree_node(header);
        words.around_insertion(parent, header);
    }
    // _Rb_tree_node_base *_Rb_tree_rebalance_for_erase(_Rb_tree_node_base *z, _Rb_tree_node_base &header)
    _ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(node, header) |words| {
        words.tree_node(node);
        words.tree_node(header);
        words.around_removal(node, header);
    }
}

calls! {
    // void _List_node_base::_M_reverse(): each node's links change places.
    Inside _ZNSt8__detail15_List_node_base10_M_reverseEv(list)
        |c| { each_node(list, |node| { c.reads(node, LINKS); c.may_write(node, LINKS); }); }
        => |c, out| { each_node(list, |node| c.wrote(node, LINKS)); };
}

fn each_node(list: usize, mut act: impl FnMut(usize)) {
    let mut node = list;
    loop {
        act(node);
        node = word(node);
        if node == list {
            return;
        }
    }
}

// Trees: a node begins with its colour (red is zero), its parent, and its children.
const PARENT: usize = 8;
const LEFT: usize = 16;
const RIGHT: usize = 24;

impl Words {
    fn tree_node(&mut self, node: usize) {
        if node != 0 {
            self.add(node | 1);
            self.add(node + PARENT);
            self.add(node + LEFT);
            self.add(node + RIGHT);
        }
    }

    /// A node and its descendants, down to `depth`.
    fn tree(&mut self, node: usize, depth: u32) {
        if node != 0 {
            self.tree_node(node);
            if depth > 0 {
                self.tree(word(node + LEFT), depth - 1);
                self.tree(word(node + RIGHT), depth - 1);
            }
        }
    }

    /// From a new node upwards, colours change while parent and uncle are red; then nearby links change.
    fn around_insertion(&mut self, parent: usize, header: usize) {
        let mut parent = parent;
        while parent != header {
            self.tree(parent, 1);
            let grandparent = word(parent + PARENT);
            if !is_red(parent) || grandparent == header {
                break;
            }
            self.tree(grandparent, 1);
            let uncle = sibling(parent, grandparent);
            parent = word(grandparent + PARENT);
            // The links to the two nodes that are swapped.
            self.tree_node(parent);
            if uncle == 0 || !is_red(uncle) {
                break;
            }
        }
    }

    /// The successor replaces a node with two children. From the gap upwards, colours change while no node nearby is red;
    /// then nearby links change.
    fn around_removal(&mut self, node: usize, header: usize) {
        let (left, right, parent) = (word(node + LEFT), word(node + RIGHT), word(node + PARENT));
        self.tree_node(parent);
        self.tree_node(left);
        self.tree_node(right);
        let (mut child, mut missing, mut above) = match (left, right) {
            (0, child) | (child, 0) => {
                // The header's first and last node may become the least or the greatest of the child.
                self.edge(child, LEFT);
                self.edge(child, RIGHT);
                (child, node, parent)
            }
            _ => {
                let mut next = right;
                while word(next + LEFT) != 0 {
                    self.tree_node(next);
                    next = word(next + LEFT);
                }
                self.tree(next, 1);
                self.tree_node(word(next + PARENT));
                (word(next + RIGHT), next, word(next + PARENT))
            }
        };
        while above != header && (child == 0 || !is_red(child)) {
            self.tree_node(above);
            let other = sibling(missing, above);
            let is_red_or_has = |node: usize| {
                let child = |link: usize| Some(word(node + link)).filter(|&c| c != 0);
                is_red(node) || child(LEFT).is_some_and(is_red) || child(RIGHT).is_some_and(is_red)
            };
            if other == 0 || is_red_or_has(other) {
                self.tree(above, 4);
                self.tree_node(word(above + PARENT));
                break;
            }
            self.tree(other, 1);
            (child, missing) = (above, above);
            above = word(above + PARENT);
        }
        self.tree_node(above);
    }

    fn edge(&mut self, node: usize, link: usize) {
        let mut node = node;
        while node != 0 {
            self.tree_node(node);
            node = word(node + link);
        }
    }
}

fn is_red(node: usize) -> bool {
    byte(node) == 0
}

fn sibling(node: usize, parent: usize) -> usize {
    if word(parent + LEFT) == node { word(parent + RIGHT) } else { word(parent + LEFT) }
}

impl Call {
    /// Moves to the next node in order or, with the sides exchanged, to the previous one.
    fn steps(&mut self, node: usize, near: usize, far: usize) {
        let mut next = self.follows(node + near);
        if next != 0 {
            while next != 0 {
                next = self.follows(next + far);
            }
            return;
        }
        let (mut from, mut up) = (node, self.follows(node + PARENT));
        // Ends at the header, whose own parent is the root.
        while self.follows(up + near) == from {
            from = up;
            up = self.follows(up + PARENT);
        }
    }

    /// The same backwards; from the header it is the last one.
    fn steps_back(&mut self, node: usize) {
        self.reads(node, 4);
        if is_red(node) && word(word(node + PARENT) + PARENT) == node {
            self.reads(node + RIGHT, 8);
        } else {
            self.steps(node, LEFT, RIGHT);
        }
    }
}

calls! {
    Inside _ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(node) |c| { c.steps(node, RIGHT, LEFT); };
    Inside _ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base(node) |c| { c.steps(node, RIGHT, LEFT); };
    Inside _ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base(node) |c| { c.steps_back(node); };
    Inside _ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base(node) |c| { c.steps_back(node); };
}

// Hash tables: the number of elements at which they grow follows the factor that it is computed from.
const NEXT_RESIZE: usize = 8;

calls! {
    // size_t _Hash_bytes(const void *, size_t, size_t)
    Inside _ZSt11_Hash_bytesPKvmm(at, size, seed) |c| { c.reads(at, size); };
    Inside _ZSt15_Fnv_hash_bytesPKvmm(at, size, seed) |c| { c.reads(at, size); };
    // size_t _Prime_rehash_policy::_M_next_bkt(size_t) const
    Inside _ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(policy, n)
        |c| { c.reads(policy, 4); c.writes(policy + NEXT_RESIZE, 8); };
}

/// `std::pair<bool, std::size_t>`, as it is returned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Rehash {
    is_needed: usize,
    buckets: usize,
}

hook! {
    // pair<bool, size_t> _Prime_rehash_policy::_M_need_rehash(size_t, size_t, size_t) const
    _ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm => need_rehash, "r8";
}

extern "C" fn need_rehash(
    policy: usize,
    buckets: usize,
    elements: usize,
    new: usize,
    pc: usize,
) -> Rehash {
    let mut out = Rehash { is_needed: 0, buckets: 0 };
    let result = &raw mut out;
    let at = policy + NEXT_RESIZE;
    let mut before = 0;
    let held = &raw mut before;
    carry_out(
        Way::Inside,
        f64::from_bits(pc as u64),
        |call| {
            call.reads(policy, 4);
            call.reads(at, 8);
            call.may_write(at, 8);
            // SAFETY: ours, as below.
            unsafe { *held = word(at) };
        },
        || {
            let answer = real!(_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm(policy => usize, buckets => usize, elements => usize, new => usize) -> Rehash);
            // SAFETY: as above.
            unsafe { *result = answer };
            0
        },
        |call, _| {
            // SAFETY: as above.
            if unsafe { *held } != word(at) {
                call.wrote(at, 8);
            }
        },
    );
    out
}

// Threads: the object is the handle, which is zero when there is no thread.
calls! {
    // void thread::_M_start_thread(unique_ptr<_State>, void (*)()): the state goes to the new thread.
    Outside _ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(thread, state, depend)
        |c| { c.reads(state, 8); c.writes(state, 8); };
    Outside _ZNSt6thread4joinEv(thread) |c| { c.reads(thread, 8); c.writes(thread, 8); };
    Outside _ZNSt6thread6detachEv(thread) |c| { c.reads(thread, 8); c.writes(thread, 8); };
}

// Futures sleep until a word of memory changes, which the program itself also reads.
calls! {
    Aside _ZNSt28__atomic_futex_unsigned_base19_M_futex_wait_untilEPjjbNSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE(it, at, value, timed, seconds, rest);
    Aside _ZNSt28__atomic_futex_unsigned_base26_M_futex_wait_until_steadyEPjjbNSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE(it, at, value, timed, seconds, rest);
}
