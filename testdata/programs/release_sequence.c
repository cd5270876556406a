// A relaxed read-modify-write of a third thread goes on with what the first one released: nothing is wrong.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
int x;
atomic_int f;
static void *first(void *p) { x = 1; atomic_store_explicit(&f, 1, memory_order_release); return p; }
static void *between(void *p) {
    int one = 1;
    while (!atomic_compare_exchange_strong_explicit(&f, &one, 2, memory_order_relaxed, memory_order_relaxed)) { one = 1; usleep(500); }
    return p;
}
static void *last(void *p) { while (atomic_load_explicit(&f, memory_order_acquire) != 2) usleep(500); x = 2; return p; }
int main(void) {
    pthread_t a, b, c;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, between, 0);
    pthread_create(&c, 0, last, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    pthread_join(c, 0);
    return x != 2;
}
