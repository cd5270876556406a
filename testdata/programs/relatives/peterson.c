// expect: complete. Peterson's lock for two threads, of sequentially consistent atomics.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
static atomic_int wants[2], turn;
static int n;
static void lock(int i) {
    atomic_store(&wants[i], 1);
    atomic_store(&turn, 1 - i);
    while (atomic_load(&wants[1 - i]) && atomic_load(&turn) == 1 - i) sched_yield();
}
static void unlock(int i) { atomic_store(&wants[i], 0); }
static void *adds(void *_) {
    for (int i = 0; i < 3; i++) {
        lock(1);
        n++;
        unlock(1);
    }
    return _;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, adds, 0);
    for (int i = 0; i < 3; i++) {
        lock(0);
        n++;
        unlock(0);
    }
    pthread_join(t, 0);
    return n != 6;
}
