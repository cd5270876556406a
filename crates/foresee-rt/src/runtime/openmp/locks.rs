//! The locks and critical regions of OpenMP.

use core::sync::atomic::AtomicU64;

use crate::format::Tag;
use crate::runtime::in_library;
use crate::runtime::locks::{OTHER, give, make, take, try_take};
use crate::runtime::next::real;

const EBUSY: i32 = 16;

/// Acquires the lock with `act`, which waits for it.
pub(super) fn lock(lock: usize, pc: f64, attempt: impl FnOnce() -> bool, act: impl FnOnce()) {
    take::<OTHER>(
        lock as *mut _,
        Tag::Acquire,
        0,
        pc.to_bits() as usize,
        || if in_library(attempt) { 0 } else { EBUSY },
        || {
            in_library(act);
            0
        },
    );
}

/// Acquires a lock for which there is no attempt without waiting.
pub(super) fn lock_untried(at: usize, pc: f64, act: impl FnOnce()) {
    lock(at, pc, || false, act);
}

pub(super) fn unlock(lock: usize, pc: f64, act: impl FnOnce()) {
    give::<OTHER>(lock as *mut _, pc.to_bits() as usize, || {
        in_library(act);
        0
    });
}

fn attempt(lock: usize, pc: f64, act: impl FnOnce() -> usize) -> usize {
    let mut out = 0;
    try_take::<OTHER>(lock as *mut _, Tag::Acquire, 0, pc.to_bits() as usize, || {
        out = in_library(act);
        if out as i32 != 0 { 0 } else { EBUSY }
    });
    out
}

/// The locks of all critical regions without a name, and of all atomic operations that are too large for the processor.
/// The names appear in reports.
#[cfg_attr(foresee_object, unsafe(export_name = "foresee_omp_critical"))]
static OMP_CRITICAL: AtomicU64 = AtomicU64::new(0);
#[cfg_attr(foresee_object, unsafe(export_name = "foresee_omp_atomic"))]
static OMP_ATOMIC: AtomicU64 = AtomicU64::new(0);

entries! {
    omp_init_lock(at), pc => void!(make(at as *mut _, pc.to_bits() as usize, || void!(real!(omp_init_lock(at => usize)))));
    omp_init_nest_lock(at), pc => void!(make(at as *mut _, pc.to_bits() as usize, || void!(real!(omp_init_nest_lock(at => usize)))));
    omp_init_lock_with_hint(at, hint), pc
        => void!(make(at as *mut _, pc.to_bits() as usize, || void!(real!(omp_init_lock_with_hint(at => usize, hint => usize)))));
    omp_init_nest_lock_with_hint(at, hint), pc
        => void!(make(at as *mut _, pc.to_bits() as usize, || void!(real!(omp_init_nest_lock_with_hint(at => usize, hint => usize)))));
    omp_set_lock(at), pc => void!(lock(at, pc, || real!(omp_test_lock(at => usize) -> i32) != 0, || real!(omp_set_lock(at => usize))));
    omp_set_nest_lock(at), pc
        => void!(lock(at, pc, || real!(omp_test_nest_lock(at => usize) -> i32) != 0, || real!(omp_set_nest_lock(at => usize))));
    omp_test_lock(at), pc => attempt(at, pc, || real!(omp_test_lock(at => usize) -> usize));
    omp_test_nest_lock(at), pc => attempt(at, pc, || real!(omp_test_nest_lock(at => usize) -> usize));
    omp_unset_lock(at), pc => void!(unlock(at, pc, || real!(omp_unset_lock(at => usize))));
    omp_unset_nest_lock(at), pc => void!(unlock(at, pc, || real!(omp_unset_nest_lock(at => usize))));
    GOMP_critical_start(), pc => void!(lock_untried(&raw const OMP_CRITICAL as usize, pc, || real!(GOMP_critical_start())));
    GOMP_critical_end(), pc => void!(unlock(&raw const OMP_CRITICAL as usize, pc, || real!(GOMP_critical_end())));
    GOMP_critical_name_start(at), pc => void!(lock_untried(at, pc, || real!(GOMP_critical_name_start(at => usize))));
    GOMP_critical_name_end(at), pc => void!(unlock(at, pc, || real!(GOMP_critical_name_end(at => usize))));
    GOMP_atomic_start(), pc => void!(lock_untried(&raw const OMP_ATOMIC as usize, pc, || real!(GOMP_atomic_start())));
    GOMP_atomic_end(), pc => void!(unlock(&raw const OMP_ATOMIC as usize, pc, || real!(GOMP_atomic_end())));
    __kmpc_critical(place, who, at), pc => void!(lock_untried(at, pc, || real!(__kmpc_critical(place => usize, who => usize, at => usize))));
    __kmpc_critical_with_hint(place, who, at, hint), pc => void!(lock_untried(at, pc,
        || real!(__kmpc_critical_with_hint(place => usize, who => usize, at => usize, hint => usize))));
    __kmpc_end_critical(place, who, at), pc => void!(unlock(at, pc, || real!(__kmpc_end_critical(place => usize, who => usize, at => usize))));
}
