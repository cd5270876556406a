// expect: OBSERVED race. The lock excludes, but its atomics are relaxed and order nothing.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
int x;
atomic_flag taken = ATOMIC_FLAG_INIT;
static void *work(void *p) {
    while (atomic_flag_test_and_set_explicit(&taken, memory_order_relaxed)) usleep(50);
    x++;
    atomic_flag_clear_explicit(&taken, memory_order_relaxed);
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return x != 2;
}
