//! Atomics: the compiler leaves them to the runtime, so their order and values are known exactly.
//!
//! All are performed with sequential consistency, whatever order was requested; a program that is
//! correct with a weaker order cannot tell the difference. The requested order is recorded
//! nevertheless.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst, fence};

use super::explore::{self, Ask};
use super::thread::Thread;
use super::{access, enter, hook, leave, log, sync, token};
use crate::exploring::{kind, modify, told};
use crate::format::{Access, Tag, order};

/// How a load with this requested order is recorded.
#[inline(always)]
fn load_of(asked: u32) -> (Access, u8) {
    match order::of_c(asked) {
        order::RELAXED => (Access::RelaxedRead, order::FULL),
        _ => (Access::AtomicRead, order::FULL),
    }
}

/// How a store with this requested order is recorded.
#[inline(always)]
fn store_of(asked: u32) -> (Access, u8) {
    match order::of_c(asked) {
        order::RELAXED => (Access::RelaxedWrite, order::FULL),
        _ => (Access::AtomicWrite, order::FULL),
    }
}

/// How a read-modify-write with this requested order is recorded.
#[inline(always)]
fn rmw_of(asked: u32) -> (Access, u8) {
    (Access::Rmw, order::of_c(asked))
}

/// Performs `act` on memory and records it; `act` returns the kind of access, the old and the new
/// value.
#[inline(always)]
fn carry_out(
    address: usize,
    size: usize,
    pc: usize,
    (what, sub, a, b): (u8, u8, u64, u64),
    act: impl FnOnce() -> ((Access, u8), u64, u64),
) -> u64 {
    let t: *mut Thread = enter();
    if t.is_null() {
        return act().1;
    }
    // SAFETY: the hook of an access to this memory.
    unsafe {
        token::charge_for_atomic(t);
        let is_explored = explore::is_on();
        if !is_explored {
            access::before_write(t, address, size);
        } else {
            let ask = Ask { kind: what, size: size as u8, sub, pc, address, a: [a, 0], b: [b, 0] };
            explore::gate(t, ask);
        }
        log::begin_step();
        let (kind, old, new) = act();
        if is_explored {
            let is_change = kind.0.writes() && (what == kind::STORE || old != new);
            explore::tell(t, told::VALUE, [old, 0], is_change);
        }
        let value = if kind.0.writes() { new } else { old };
        access::atomic(t, kind, address, size, pc, value, old);
        log::end_step();
        leave(t);
        old
    }
}

/// A compare-and-exchange reads its expected value from the program's memory, and writes it there if it fails.
#[inline(never)]
fn read_expected<T: Copy>(expected: &T, pc: usize) -> T {
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`, which reads this memory now.
        unsafe {
            access::settle(t);
            access::range(t, expected as *const T as usize, size_of::<T>(), pc, false);
            leave(t);
        }
    }
    *expected
}

#[inline(never)]
fn write_expected<T: Copy>(expected: &mut T, value: T, pc: usize) {
    let (at, t) = (expected as *mut T as usize, enter());
    if t.is_null() {
        *expected = value;
        return;
    }
    // SAFETY: in a hook of `t`, which writes this memory now.
    unsafe {
        if explore::is_on() {
            explore::memory::begin_call(t);
        }
        access::before_write(t, at, size_of::<T>());
        *expected = value;
        access::written(t, at, size_of::<T>(), pc);
        leave(t);
    }
}

macro_rules! atomics {
    ($($type:ty, $atomic:ty, $size:literal, $load:ident $inner_load:ident, $store:ident $inner_store:ident,
        $cas:ident $cas_weak:ident $inner_cas:ident, $cas_val:ident $inner_cas_val:ident,
        [$($rmw:ident $inner_rmw:ident $method:ident),*];)*) => { $(
        hook! {
            $load => $inner_load, "rdx";
            $store => $inner_store, "rcx";
            $cas => $inner_cas, "r9";
            $cas_weak => $inner_cas, "r9";
            $cas_val => $inner_cas_val, "r9";
        }

        extern "C" fn $inner_load(a: &$atomic, order: u32, pc: usize) -> $type {
            carry_out(a.as_ptr() as usize, $size, pc, (kind::LOAD, 0, 0, 0), || {
                let v = u64::from(a.load(SeqCst));
                (load_of(order), v, v)
            }) as $type
        }

        extern "C" fn $inner_store(a: &$atomic, v: $type, order: u32, pc: usize) {
            carry_out(a.as_ptr() as usize, $size, pc, (kind::STORE, 0, u64::from(v), 0), || {
                a.store(v, SeqCst);
                (store_of(order), u64::from(v), u64::from(v))
            });
        }

        extern "C" fn $inner_cas(a: &$atomic, expected: &mut $type, v: $type, yes: u32, no: u32, pc: usize) -> u32 {
            let wanted = read_expected(expected, pc);
            let old = $inner_cas_val(a, wanted, v, yes, no, pc);
            if old != wanted {
                write_expected(expected, old, pc);
            }
            u32::from(old == wanted)
        }

        extern "C" fn $inner_cas_val(a: &$atomic, expected: $type, v: $type, yes: u32, no: u32, pc: usize) -> $type {
            let what = (kind::MODIFY, modify::COMPARE, u64::from(expected), u64::from(v));
            carry_out(a.as_ptr() as usize, $size, pc, what, || match a.compare_exchange(expected, v, SeqCst, SeqCst) {
                Ok(old) => (rmw_of(yes), u64::from(old), u64::from(v)),
                Err(old) => (load_of(no), u64::from(old), u64::from(old)),
            }) as $type
        }

        $(
            hook! { $rmw => $inner_rmw, "rcx"; }

            extern "C" fn $inner_rmw(a: &$atomic, v: $type, order: u32, pc: usize) -> $type {
                let what = (kind::MODIFY, code::$method, u64::from(v), 0);
                carry_out(a.as_ptr() as usize, $size, pc, what, || {
                    let old = a.$method(v, SeqCst);
                    (rmw_of(order), u64::from(old), u64::from(Op::$method(old, v)))
                }) as $type
            }
        )*
    )* };
}

/// The functions of read-modify-writes on the old value.
struct Op;

macro_rules! operations {
    ($($name:ident |$old:ident, $v:ident| $new:expr;)*) => {
        impl Op { $( #[inline(always)] fn $name<T: Word>($old: T, $v: T) -> T { $new } )* }
    };
}

/// The numbers of read-modify-writes in an exploration.
#[allow(non_upper_case_globals)]
mod code {
    use crate::exploring::modify;

    pub(super) const fetch_add: u8 = modify::ADD;
    pub(super) const fetch_sub: u8 = modify::SUB;
    pub(super) const fetch_and: u8 = modify::AND;
    pub(super) const fetch_or: u8 = modify::OR;
    pub(super) const fetch_xor: u8 = modify::XOR;
    pub(super) const fetch_nand: u8 = modify::NAND;
    pub(super) const swap: u8 = modify::EXCHANGE;
}

/// A word of memory.
trait Word:
    Copy
    + core::ops::BitAnd<Output = Self>
    + core::ops::BitOr<Output = Self>
    + core::ops::BitXor<Output = Self>
    + core::ops::Not<Output = Self>
{
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
}

macro_rules! words {
    ($($type:ty)*) => { $( impl Word for $type {
        fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
        fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
    } )* };
}
words! { u8 u16 u32 u64 u128 }

operations! {
    fetch_add |old, v| old.plus(v);
    fetch_sub |old, v| old.minus(v);
    fetch_and |old, v| old & v;
    fetch_or |old, v| old | v;
    fetch_xor |old, v| old ^ v;
    fetch_nand |old, v| !(old & v);
    swap |_old, v| v;
}

atomics! {
    u8, AtomicU8, 1, __tsan_atomic8_load load8, __tsan_atomic8_store store8,
        __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak cas8,
        __tsan_atomic8_compare_exchange_val cas_val8,
        [__tsan_atomic8_exchange exchange8 swap, __tsan_atomic8_fetch_add add8 fetch_add, __tsan_atomic8_fetch_sub sub8 fetch_sub,
         __tsan_atomic8_fetch_and and8 fetch_and, __tsan_atomic8_fetch_or or8 fetch_or, __tsan_atomic8_fetch_xor xor8 fetch_xor,
         __tsan_atomic8_fetch_nand nand8 fetch_nand];
    u16, AtomicU16, 2, __tsan_atomic16_load load16, __tsan_atomic16_store store16,
        __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak cas16,
        __tsan_atomic16_compare_exchange_val cas_val16,
        [__tsan_atomic16_exchange exchange16 swap, __tsan_atomic16_fetch_add add16 fetch_add, __tsan_atomic16_fetch_sub sub16 fetch_sub,
         __tsan_atomic16_fetch_and and16 fetch_and, __tsan_atomic16_fetch_or or16 fetch_or, __tsan_atomic16_fetch_xor xor16 fetch_xor,
         __tsan_atomic16_fetch_nand nand16 fetch_nand];
    u32, AtomicU32, 4, __tsan_atomic32_load load32, __tsan_atomic32_store store32,
        __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak cas32,
        __tsan_atomic32_compare_exchange_val cas_val32,
        [__tsan_atomic32_exchange exchange32 swap, __tsan_atomic32_fetch_add add32 fetch_add, __tsan_atomic32_fetch_sub sub32 fetch_sub,
         __tsan_atomic32_fetch_and and32 fetch_and, __tsan_atomic32_fetch_or or32 fetch_or, __tsan_atomic32_fetch_xor xor32 fetch_xor,
         __tsan_atomic32_fetch_nand nand32 fetch_nand];
    u64, AtomicU64, 8, __tsan_atomic64_load load64, __tsan_atomic64_store store64,
        __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak cas64,
        __tsan_atomic64_compare_exchange_val cas_val64,
        [__tsan_atomic64_exchange exchange64 swap, __tsan_atomic64_fetch_add add64 fetch_add, __tsan_atomic64_fetch_sub sub64 fetch_sub,
         __tsan_atomic64_fetch_and and64 fetch_and, __tsan_atomic64_fetch_or or64 fetch_or, __tsan_atomic64_fetch_xor xor64 fetch_xor,
         __tsan_atomic64_fetch_nand nand64 fetch_nand];
}

// gcc expands OpenMP's atomic operations on numbers that the processor cannot add atomically too late for hooks; `foresee cc`
// makes it call these functions of libatomic instead.
hook! {
    __atomic_load_1 => load8, "rdx";
    __atomic_store_1 => store8, "rcx";
    __atomic_compare_exchange_1 => cas8, "r9";
    __atomic_exchange_1 => exchange8, "rcx";
    __atomic_fetch_add_1 => add8, "rcx";
    __atomic_fetch_sub_1 => sub8, "rcx";
    __atomic_fetch_and_1 => and8, "rcx";
    __atomic_fetch_or_1 => or8, "rcx";
    __atomic_fetch_xor_1 => xor8, "rcx";
    __atomic_fetch_nand_1 => nand8, "rcx";
    __atomic_load_2 => load16, "rdx";
    __atomic_store_2 => store16, "rcx";
    __atomic_compare_exchange_2 => cas16, "r9";
    __atomic_exchange_2 => exchange16, "rcx";
    __atomic_fetch_add_2 => add16, "rcx";
    __atomic_fetch_sub_2 => sub16, "rcx";
    __atomic_fetch_and_2 => and16, "rcx";
    __atomic_fetch_or_2 => or16, "rcx";
    __atomic_fetch_xor_2 => xor16, "rcx";
    __atomic_fetch_nand_2 => nand16, "rcx";
    __atomic_load_4 => load32, "rdx";
    __atomic_store_4 => store32, "rcx";
    __atomic_compare_exchange_4 => cas32, "r9";
    __atomic_exchange_4 => exchange32, "rcx";
    __atomic_fetch_add_4 => add32, "rcx";
    __atomic_fetch_sub_4 => sub32, "rcx";
    __atomic_fetch_and_4 => and32, "rcx";
    __atomic_fetch_or_4 => or32, "rcx";
    __atomic_fetch_xor_4 => xor32, "rcx";
    __atomic_fetch_nand_4 => nand32, "rcx";
    __atomic_load_8 => load64, "rdx";
    __atomic_store_8 => store64, "rcx";
    __atomic_compare_exchange_8 => cas64, "r9";
    __atomic_exchange_8 => exchange64, "rcx";
    __atomic_fetch_add_8 => add64, "rcx";
    __atomic_fetch_sub_8 => sub64, "rcx";
    __atomic_fetch_and_8 => and64, "rcx";
    __atomic_fetch_or_8 => or64, "rcx";
    __atomic_fetch_xor_8 => xor64, "rcx";
    __atomic_fetch_nand_8 => nand64, "rcx";
}

/// Compares and swaps sixteen bytes; returns the old value.
fn cas_wide(a: *mut u128, expected: u128, v: u128) -> u128 {
    let (low, high): (u64, u64);
    // SAFETY: the program passes sixteen aligned bytes; every processor that runs it has the instruction, or the
    // program could not use these atomics. rbx belongs to the compiler, and is restored.
    unsafe {
        core::arch::asm!(
            "xchg rbx, rsi", "lock cmpxchg16b xmmword ptr [rdi]", "mov rbx, rsi",
            inout("rsi") v as u64 => _, in("rdi") a, in("rcx") (v >> 64) as u64,
            inout("rax") expected as u64 => low, inout("rdx") (expected >> 64) as u64 => high,
        );
    }
    u128::from(high) << 64 | u128::from(low)
}

/// Updates sixteen bytes atomically; returns the old and the new value.
fn update_wide(a: *mut u128, new: impl Fn(u128) -> u128) -> (u128, u128) {
    let mut old = cas_wide(a, 0, 0);
    loop {
        let v = new(old);
        match cas_wide(a, old, v) {
            seen if seen == old => return (old, v),
            seen => old = seen,
        }
    }
}

/// Records an atomic access of sixteen bytes as two of eight. The order is not always available, so
/// they count as strong.
fn carry_out_wide(
    a: *mut u128,
    pc: usize,
    (what, sub, x, y): (u8, u8, u128, u128),
    act: impl FnOnce() -> (Access, u128, u128),
) -> u128 {
    let words = |n: u128| [n as u64, (n >> 64) as u64];
    let t = enter();
    if t.is_null() {
        return act().1;
    }
    // SAFETY: the hook of an access to this memory.
    unsafe {
        token::charge_for_atomic(t);
        let is_explored = explore::is_on();
        if !is_explored {
            access::before_write(t, a as usize, 16);
        } else {
            let (a, x, y) = (a as usize, words(x), words(y));
            explore::gate(t, Ask { kind: what, size: 16, sub, pc, address: a, a: x, b: y });
        }
        let (kind, old, new) = act();
        if is_explored {
            let seen = if what == kind::STORE { new } else { old };
            explore::tell(t, told::VALUE, words(seen), old != new);
        }
        let now = if kind.writes() { new } else { old };
        let kind = (kind, order::FULL);
        access::atomic(t, kind, a as usize, 8, pc, now as u64, old as u64);
        access::atomic(t, kind, a as usize + 8, 8, pc, (now >> 64) as u64, (old >> 64) as u64);
        leave(t);
        old
    }
}

extern "C" fn load128(a: *mut u128, _order: u32, pc: usize) -> u128 {
    carry_out_wide(a, pc, (kind::LOAD, 0, 0, 0), || {
        let v = cas_wide(a, 0, 0);
        (Access::AtomicRead, v, v)
    })
}

extern "C" fn store128(a: *mut u128, v: u128, _order: u32, pc: usize) {
    carry_out_wide(a, pc, (kind::STORE, 0, v, 0), || {
        let (old, new) = update_wide(a, |_| v);
        (Access::AtomicWrite, old, new)
    });
}

extern "C" fn cas_val128(a: *mut u128, expected: u128, v: u128, pc: usize) -> u128 {
    let what = (kind::MODIFY, modify::COMPARE, expected, v);
    carry_out_wide(a, pc, what, || match cas_wide(a, expected, v) {
        old if old == expected => (Access::Rmw, old, v),
        old => (Access::AtomicRead, old, old),
    })
}

extern "C" fn cas128(a: *mut u128, expected: &mut u128, v: u128, pc: usize) -> u32 {
    let wanted = read_expected(expected, pc);
    let old = cas_val128(a, wanted, v, pc);
    if old != wanted {
        write_expected(expected, old, pc);
    }
    u32::from(old == wanted)
}

hook! {
    __tsan_atomic128_load => load128, "rdx";
    __tsan_atomic128_store => store128, "r8";
    // The orders use the registers into which the return address is put, so they are ignored.
    __tsan_atomic128_compare_exchange_strong => cas128, "r8";
    __tsan_atomic128_compare_exchange_weak => cas128, "r8";
    __tsan_atomic128_compare_exchange_val => cas_val128, "r9";
}

macro_rules! wide {
    ($($name:ident $inner:ident $method:ident;)*) => { $(
        hook! { $name => $inner, "r8"; }

        extern "C" fn $inner(a: *mut u128, v: u128, _order: u32, pc: usize) -> u128 {
            carry_out_wide(a, pc, (kind::MODIFY, code::$method, v, 0), || {
                let (old, new) = update_wide(a, |old| Op::$method(old, v));
                (Access::Rmw, old, new)
            })
        }
    )* };
}

wide! {
    __tsan_atomic128_exchange exchange128 swap;
    __tsan_atomic128_fetch_add add128 fetch_add;
    __tsan_atomic128_fetch_sub sub128 fetch_sub;
    __tsan_atomic128_fetch_and and128 fetch_and;
    __tsan_atomic128_fetch_or or128 fetch_or;
    __tsan_atomic128_fetch_xor xor128 fetch_xor;
    __tsan_atomic128_fetch_nand nand128 fetch_nand;
}

hook! {
    __tsan_atomic_thread_fence => thread_fence, "rsi";
}

/// The log already has an order; the fence records what the language makes of it.
pub(super) extern "C" fn thread_fence(asked: u32, pc: usize) {
    fence(SeqCst);
    let asked = order::of_c(asked);
    if asked == order::RELAXED {
        return;
    }
    let t = enter();
    if t.is_null() {
        return;
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        sync(t, Tag::Fence, pc, 0, u64::from(asked));
        leave(t);
    }
}

/// A fence against signal handlers of the same thread.
#[cfg_attr(foresee_object, unsafe(no_mangle))]
extern "C" fn __tsan_atomic_signal_fence(_order: u32) {
    core::sync::atomic::compiler_fence(SeqCst);
}
