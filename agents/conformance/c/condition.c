/* Condition variables: waits, timed waits that are not woken, one and all woken.
expect
main: fork(T1) acq(m) wait_begin(c,m) wait_end(c,m) rel(m) join(T1) acq(m) try_for(m) wait_begin(c,m) wait_end(c,m) try_for(m) wait_begin(c,m) wait_end(c,m) rel(m) notify_all(c)
T1: acq(m) notify(c) rel(m)
*/
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t waiting;

static void *other(void *_) {
    pthread_barrier_wait(&waiting);
    pthread_mutex_lock(&m);
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    return _;
}

int main(void) {
    pthread_t t;
    struct timespec soon;
    pthread_barrier_init(&waiting, 0, 2);
    pthread_create(&t, 0, other, 0);
    pthread_mutex_lock(&m);
    pthread_barrier_wait(&waiting);
    pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    pthread_mutex_lock(&m);
    clock_gettime(CLOCK_REALTIME, &soon);
    assert(pthread_cond_timedwait(&c, &m, &soon) == ETIMEDOUT);
    assert(pthread_cond_clockwait(&c, &m, CLOCK_REALTIME, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&m);
    pthread_cond_broadcast(&c);
    return 0;
}
