/* Barriers, semaphores, spin locks and once.
expect
main: vw(s)=1 fork(T1) rmw(b.round1) vr(b.round1) rmw(b.round2) vr(b.round2) rmw(s)=0->1 vr(o)=1 join(T1) try(spin) acq(spin) rel(spin) rmw(s)=1->0 vr(s)=0
T1: rmw(s)=1->0 acq(spin) w(x)=5 rel(spin) w(once_ran)=1 vw(o)=1 rmw(b.round1) vr(b.round1) rmw(b.round2) vr(b.round2)
*/
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

pthread_barrier_t b;
sem_t s;
pthread_spinlock_t spin;
pthread_once_t o = PTHREAD_ONCE_INIT;
int x, once_ran;

static void init(void) { once_ran = 1; }

static void *other(void *_) {
    sem_wait(&s);
    pthread_spin_lock(&spin);
    x = 5;
    pthread_spin_unlock(&spin);
    pthread_once(&o, init);
    pthread_barrier_wait(&b);
    pthread_barrier_wait(&b);
    return _;
}

int main(void) {
    pthread_t t;
    pthread_barrier_init(&b, 0, 2);
    sem_init(&s, 0, 1);
    pthread_spin_init(&spin, 0);
    pthread_create(&t, 0, other, 0);
    pthread_barrier_wait(&b);
    pthread_barrier_wait(&b);
    sem_post(&s);
    pthread_once(&o, init);
    pthread_join(t, 0);
    assert(pthread_spin_trylock(&spin) == 0);
    pthread_spin_unlock(&spin);
    assert(sem_trywait(&s) == 0);
    assert(sem_trywait(&s) == -1 && errno == EAGAIN);
    return 0;
}
