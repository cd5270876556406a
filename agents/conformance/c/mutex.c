/* Mutexes of every kind, and every way to acquire them.
expect
main: fork(T1) fork(T2) join(T1) join(T2) r(x)=2
T1: acq(plain) r(x)=0 w(x)=1 rel(plain) acq(recursive) acq(recursive) rel(recursive) rel(recursive) acq(checking) rel(checking)
T2: acq(plain) r(x)=1 w(x)=2 rel(plain) try(plain) acq(plain) rel(plain) try_for(plain) acq(plain) rel(plain) try_for(plain) acq(plain) rel(plain)
*/
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive, checking;
int x;
static sem_t first_is_done;

static void *first(void *_) {
    pthread_mutex_lock(&plain);
    x++;
    pthread_mutex_unlock(&plain);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_lock(&checking);
    assert(pthread_mutex_lock(&checking) == EDEADLK);
    pthread_mutex_unlock(&checking);
    assert(pthread_mutex_unlock(&checking) == EPERM);
    sem_post(&first_is_done);
    return _;
}

static void *second(void *_) {
    struct timespec later;
    sem_wait(&first_is_done);
    pthread_mutex_lock(&plain);
    x++;
    pthread_mutex_unlock(&plain);
    assert(pthread_mutex_trylock(&plain) == 0);
    pthread_mutex_unlock(&plain);
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 5;
    pthread_mutex_timedlock(&plain, &later);
    pthread_mutex_unlock(&plain);
    pthread_mutex_clocklock(&plain, CLOCK_REALTIME, &later);
    pthread_mutex_unlock(&plain);
    return _;
}

int main(void) {
    pthread_t a, b;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &kind);
    sem_init(&first_is_done, 0, 0);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return x != 2;
}
