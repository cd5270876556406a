//! `qsort`, whose comparisons are the program's own code and whose moves are libc's.
//!
//! libc would compare elements at addresses to which no recorded step has moved them. So the
//! sorting is done here: elements are compared where the program left them, and then all moved at
//! once. Equal ones keep their order, as with libc.

use core::cell::Cell;

use super::calls::{Way, carry_out, stand_in_front};
use super::next::real;
use super::sys;

const MUNMAP: usize = 11;

/// Calls the program's comparison of two elements.
#[derive(Clone, Copy)]
struct Comparison {
    call: usize,
    /// `qsort_r` passes it on.
    extra: usize,
}

impl Comparison {
    fn is_greater(self, a: usize, b: usize) -> bool {
        // SAFETY: the program's own function; one with two parameters ignores the third argument.
        let call: extern "C" fn(usize, usize, usize) -> i32 =
            unsafe { core::mem::transmute(self.call) };
        call(a, b, self.extra) > 0
    }
}

/// Sorts addresses of elements by merging ever longer runs; returns which of the two buffers has the result.
fn sort<'a>(
    mut order: &'a mut [usize],
    mut room: &'a mut [usize],
    comparison: Comparison,
) -> &'a [usize] {
    let mut width = 1;
    while width < order.len() {
        for start in (0..order.len()).step_by(2 * width) {
            let middle = (start + width).min(order.len());
            let end = (start + 2 * width).min(order.len());
            let (mut a, mut b) = (start, middle);
            for place in &mut room[start..end] {
                let from_left =
                    a < middle && (b == end || !comparison.is_greater(order[a], order[b]));
                let from = if from_left { &mut a } else { &mut b };
                *place = order[*from];
                *from += 1;
            }
        }
        core::mem::swap(&mut order, &mut room);
        width *= 2;
    }
    order
}

/// Calls libc's own function: the compiler would call ours.
fn copy(to: usize, from: usize, size: usize) {
    real!(memcpy(to => usize, from => usize, size => usize) -> usize);
}

/// Sorts for the program; `false` if there is not enough memory.
fn sort_elements(base: usize, count: usize, size: usize, comparison: Comparison) -> bool {
    let all = size.checked_add(16).and_then(|n| n.checked_mul(count));
    let Some(all) = all.filter(|&n| n < 1 << 46) else { return false };
    let memory = sys::reserve(all);
    if memory.is_null() {
        return false;
    }
    // SAFETY: the memory is ours and large enough; the elements are the program's.
    unsafe {
        let words = core::slice::from_raw_parts_mut(memory.cast::<usize>(), 2 * count);
        let (order, room) = words.split_at_mut(count);
        for (i, at) in order.iter_mut().enumerate() {
            *at = base + i * size;
        }
        let sorted = memory as usize + 16 * count;
        for (i, &at) in sort(order, room, comparison).iter().enumerate() {
            copy(sorted + i * size, at, size);
        }
        copy(base, sorted, count * size);
        sys::syscall!(MUNMAP, memory, all);
    }
    true
}

fn sorts(
    pc: f64,
    base: usize,
    count: usize,
    size: usize,
    comparison: Comparison,
    libc: impl FnOnce(),
) {
    let is_recorded = Cell::new(false);
    carry_out(
        Way::Outside,
        pc,
        |c| {
            if count > 1 && size > 0 {
                is_recorded.set(true);
                c.reads(base, count.saturating_mul(size));
                c.writes(base, count.saturating_mul(size));
            }
        },
        || {
            if !is_recorded.get() || !sort_elements(base, count, size, comparison) {
                libc();
            }
            0
        },
        |_, _| {},
    );
}

extern "C" fn sort_plainly(base: usize, count: usize, size: usize, compare: usize, pc: f64) {
    sorts(pc, base, count, size, Comparison { call: compare, extra: 0 }, || {
        real!(qsort(base => usize, count => usize, size => usize, compare => usize));
    });
}

extern "C" fn sort_with(
    base: usize,
    count: usize,
    size: usize,
    compare: usize,
    extra: usize,
    pc: f64,
) {
    sorts(pc, base, count, size, Comparison { call: compare, extra }, || {
        real!(qsort_r(base => usize, count => usize, size => usize, compare => usize, extra => usize));
    });
}

stand_in_front! { qsort => sort_plainly }
stand_in_front! { qsort_r => sort_with }
