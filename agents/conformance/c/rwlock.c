/* Read-write locks.
expect
main: acq(l) w(x)=7 rel(l) racq(l) fork(T1) join(T1) rrel(l) try(l) acq(l) rel(l) try_for(l) acq(l) rel(l) try_for(l) racq(l) rrel(l)
T1: racq(l) r(x)=7 rrel(l) try(l) racq(l) racq(l) rrel(l) rrel(l)
*/
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
int x;
static struct timespec later;

static void *other(void *_) {
    pthread_rwlock_rdlock(&l);
    if (x != 7) return 0;
    pthread_rwlock_unlock(&l);
    pthread_rwlock_tryrdlock(&l);
    pthread_rwlock_rdlock(&l);
    pthread_rwlock_unlock(&l);
    pthread_rwlock_unlock(&l);
    return _;
}

int main(void) {
    pthread_t t;
    pthread_rwlock_wrlock(&l);
    x = 7;
    pthread_rwlock_unlock(&l);
    pthread_rwlock_rdlock(&l);
    pthread_create(&t, 0, other, 0);
    pthread_join(t, 0);
    pthread_rwlock_unlock(&l);
    pthread_rwlock_trywrlock(&l);
    pthread_rwlock_unlock(&l);
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 5;
    pthread_rwlock_timedwrlock(&l, &later);
    pthread_rwlock_unlock(&l);
    pthread_rwlock_clockrdlock(&l, CLOCK_REALTIME, &later);
    pthread_rwlock_unlock(&l);
    return 0;
}
