// A counter that nothing hangs on but its own value, read when all threads are joined: nothing is wrong.
#include <pthread.h>
#include <stdatomic.h>
atomic_int n;
static void *count(void *p) { for (int i = 0; i < 5; i++) atomic_fetch_add_explicit(&n, 1, memory_order_relaxed); return p; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, count, 0);
    pthread_create(&b, 0, count, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return atomic_load_explicit(&n, memory_order_relaxed) != 10;
}
