/* A robust mutex whose owner ends without releasing it: the next owner learns this, and makes it consistent again.
expect
main: fork(T1) join(T1) acq(m#2) rel(m#2) acq(m#2) rel(m#2)
T1: acq(m) w(x)=1
*/
#include <assert.h>
#include <errno.h>
#include <pthread.h>

pthread_mutex_t m;
int x;

static void *other(void *_) {
    pthread_mutex_lock(&m);
    x = 1;
    return _;
}

int main(void) {
    pthread_t t;
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m, &robust);
    pthread_create(&t, 0, other, 0);
    pthread_join(t, 0);
    assert(pthread_mutex_lock(&m) == EOWNERDEAD);
    assert(pthread_mutex_consistent(&m) == 0);
    assert(pthread_mutex_unlock(&m) == 0);
    assert(pthread_mutex_lock(&m) == 0);
    assert(pthread_mutex_unlock(&m) == 0);
    return 0;
}
