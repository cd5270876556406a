/* Atomics of every memory order, and fences.
expect
main: relaxed(x) vw(x)=1 relaxed(x) vr(x)=1 vw(x)=2 vr(x)=2 vr(x)=2 relaxed(x) rmw(x)=2->3 acquire_only(x) rmw(x)=3->4 release_only(x) rmw(x)=4->5 rmw(x)=5->6 relaxed(x) vr(x)=6 release_only(x) rmw(x)=6->7 fence_acquire fence_release fence fence
*/
#include <stdatomic.h>

atomic_int x;

int main(void) {
    int wrong = 1, right = 6;
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    if (atomic_load_explicit(&x, memory_order_relaxed) != 1) return 1;
    atomic_store_explicit(&x, 2, memory_order_release);
    if (atomic_load_explicit(&x, memory_order_acquire) != 2) return 2;
    if (atomic_load_explicit(&x, memory_order_seq_cst) != 2) return 3;
    atomic_fetch_add_explicit(&x, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&x, 1, memory_order_acquire);
    atomic_fetch_add_explicit(&x, 1, memory_order_release);
    atomic_fetch_add_explicit(&x, 1, memory_order_acq_rel);
    atomic_compare_exchange_strong_explicit(&x, &wrong, 9, memory_order_acq_rel, memory_order_relaxed);
    atomic_compare_exchange_strong_explicit(&x, &right, 7, memory_order_release, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    atomic_thread_fence(memory_order_release);
    atomic_thread_fence(memory_order_acq_rel);
    atomic_thread_fence(memory_order_seq_cst);
    return 0;
}
