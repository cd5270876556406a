// expect: doubt. Whoever comes first lets main go on, which takes it to be the first thread.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
static sem_t done;
static volatile int x;
static void *first(void *p) {
    x = 1;
    sem_post(&done);
    return p;
}
static void *second(void *p) {
    usleep(50000);
    sem_post(&done);
    return p;
}
int main(void) {
    pthread_t a, b;
    sem_init(&done, 0, 0);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    sem_wait(&done);
    int seen = x;
    sem_wait(&done);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return seen > 1;
}
