// Correct, in many variants: one thread hands `x` over by setting `ready` under a lock, the other looks whether it is set. How it
// is set (SET) and how it is looked at (LOOK) is what compilers have no hook for.
#include <pthread.h>
#include <string.h>
#include <unistd.h>
struct Small { long ready, a; };
struct Large { long ready, a, b, c, d; };
#if LARGE
typedef struct Large S;
#else
typedef struct Small S;
#endif
static S *shared;
static int x;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static __attribute__((noinline)) int is_ready(S v) { return v.ready == 1; }
static __attribute__((noinline)) S make(long ready) { S v; memset(&v, 0, sizeof v); v.ready = ready; return v; }
static void *sets(void *p) {
    x = 1;
    pthread_mutex_lock(&m);
#if SET == 0
    shared->ready = 1;
#elif SET == 1
    *shared = make(1);
#elif SET == 2
    S v = {1, 2};
    __builtin_memcpy(shared, &v, sizeof v);
#else
    __asm__ volatile("movq $1, %0" : "=m"(shared->ready));
#endif
    pthread_mutex_unlock(&m);
    return p;
}
static S global;
int main(void) {
    S local = {0};
    pthread_t t;
    shared = WHERE ? &local : &global;
    pthread_create(&t, 0, sets, 0);
    for (;;) {
        pthread_mutex_lock(&m);
#if LOOK == 0
        int r = WHERE ? is_ready(local) : is_ready(global);
#elif LOOK == 1
        int r = is_ready(*shared);
#elif LOOK == 2
        S v;
        __builtin_memcpy(&v, shared, sizeof v);
        int r = v.ready == 1;
#else
        long v;
        __asm__ volatile("movq %1, %0" : "=r"(v) : "m"(shared->ready));
        int r = v == 1;
#endif
        pthread_mutex_unlock(&m);
        if (r) break;
        usleep(1000);
    }
    x = 2;
    pthread_join(t, 0);
    return x != 2;
}
