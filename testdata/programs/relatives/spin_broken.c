// expect: PREDICTED race. Whoever waits too long gives the lock back for the other, so that it is none.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
int x, y;
atomic_int taken;
static void *work(void *p) {
    while (atomic_exchange(&taken, 1)) usleep(50);
    x++;
    atomic_store(&taken, 0);
    return p;
}
static void *hasty(void *p) {
    usleep(20000);
    atomic_store(&taken, 0);
    return work(p);
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, hasty, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return x != 2;
}
