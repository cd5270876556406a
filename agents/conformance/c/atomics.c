/* Atomics of every size.
expect
main: vw(a)=1 rmw(a)=1->3 rmw(b)=0->5 rmw(b)=5->2 rmw(c)=0->7 vr(c)=7 rmw(c)=7->9 rmw(d)=0->255 rmw(d)=255->15 rmw(d)=15->10 fence relaxed(d) vr(d)=10 vw(q)=1 vw(q+8)=2 vr(q)=1 vr(q+8)=2 rmw(q)=1->3 rmw(q+8)=2->4
*/
#include <stdatomic.h>
#include <stdint.h>

_Atomic uint8_t a;
_Atomic uint16_t b;
_Atomic uint32_t c;
_Atomic uint64_t d;
__attribute__((aligned(16))) unsigned __int128 q;

extern unsigned __int128 __tsan_atomic128_load(const volatile void *, int);
extern void __tsan_atomic128_store(volatile void *, unsigned __int128, int);
extern _Bool __tsan_atomic128_compare_exchange_strong(volatile void *, void *, unsigned __int128, int, int);

int main(void) {
    static uint32_t expected; /* not on the stack, so that nothing is recorded of it by chance */
    uint32_t seven = 7, wrong = 6;
    atomic_store(&a, 1);
    atomic_fetch_add(&a, 2);
    atomic_exchange(&b, 5);
    atomic_fetch_sub(&b, 3);
    (void)expected;
    uint32_t zero = 0;
    atomic_compare_exchange_strong(&c, &zero, 7);
    atomic_compare_exchange_strong(&c, &wrong, 8);
    atomic_compare_exchange_weak(&c, &seven, 9);
    atomic_fetch_or(&d, 255);
    atomic_fetch_and(&d, 15);
    atomic_fetch_xor(&d, 5);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&d, memory_order_relaxed) != 10) return 1;
    unsigned __int128 two = (unsigned __int128)2 << 64 | 1, four = (unsigned __int128)4 << 64 | 3;
    __tsan_atomic128_store(&q, two, 5);
    if (__tsan_atomic128_load(&q, 5) != two) return 2;
    if (!__tsan_atomic128_compare_exchange_strong(&q, &two, four, 5, 5)) return 3;
    return 0;
}
