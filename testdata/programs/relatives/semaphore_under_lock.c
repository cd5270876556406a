// expect: doubt. A thread that waits for the semaphore holds a lock that the other one needs before it raises it.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
static sem_t s;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *p) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    sem_post(&s);
    return p;
}
static void *second(void *p) {
    usleep(50000);
    pthread_mutex_lock(&m);
    sem_wait(&s);
    pthread_mutex_unlock(&m);
    return p;
}
int main(void) {
    pthread_t a, b;
    sem_init(&s, 0, 0);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
