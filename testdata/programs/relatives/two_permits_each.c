// expect: doubt. Each thread takes both permits one after the other, so each may get one and wait for the other forever.
#include <pthread.h>
#include <semaphore.h>
static sem_t s;
static void *first(void *p) {
    sem_wait(&s);
    sem_wait(&s);
    sem_post(&s);
    sem_post(&s);
    return p;
}
static void *second(void *p) {
    sem_wait(&s);
    sem_wait(&s);
    sem_post(&s);
    sem_post(&s);
    return p;
}
int main(void) {
    pthread_t a, b;
    sem_init(&s, 0, 2);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
