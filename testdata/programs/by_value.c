// Correct. One thread hands `x` over by `s.ready` under a lock; the other looks at `s` by value, for which compilers have no
// hook: without one the two sections look independent, and a race for `x` would be predicted.
#include <pthread.h>
#include <unistd.h>
struct S { long ready, a, b; };
struct S s;
int x;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static __attribute__((noinline)) int is_ready(struct S v) { return v.ready == 1; }
static void *sets(void *p) { x = 1; pthread_mutex_lock(&m); s.ready = 1; pthread_mutex_unlock(&m); return p; }
static void *waits(void *p) {
    for (;;) {
        pthread_mutex_lock(&m);
        int r = is_ready(s);
        pthread_mutex_unlock(&m);
        if (r) break;
        usleep(1000);
    }
    x = 2;
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&b, 0, sets, 0);
    pthread_create(&a, 0, waits, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return x != 2;
}
