// expect: doubt. A thread that waits at the barrier holds a lock that the other one needs to get there.
#include <pthread.h>
#include <unistd.h>
static pthread_barrier_t meeting;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *p) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    pthread_barrier_wait(&meeting);
    return p;
}
static void *second(void *p) {
    usleep(50000);
    pthread_mutex_lock(&m);
    pthread_barrier_wait(&meeting);
    pthread_mutex_unlock(&m);
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_barrier_init(&meeting, 0, 2);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
