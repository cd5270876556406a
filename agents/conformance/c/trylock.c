/* A failed attempt, at once or after some time, finds the lock taken.
expect
main: acq(m) fork(T1) join(T1) rel(m)
T1: busy(m) busy(m)
*/
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *other(void *_) {
    struct timespec soon;
    assert(pthread_mutex_trylock(&m) == EBUSY);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = 0;
    assert(pthread_mutex_timedlock(&m, &soon) == ETIMEDOUT);
    return _;
}

int main(void) {
    pthread_t t;
    pthread_mutex_lock(&m);
    pthread_create(&t, 0, other, 0);
    pthread_join(t, 0);
    pthread_mutex_unlock(&m);
    return 0;
}
