// expect: PREDICTED deadlock. Two semaphores that are used as mutexes, taken in opposite orders.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
static sem_t s, u;
static void *first(void *p) {
    sem_wait(&s);
    sem_wait(&u);
    sem_post(&u);
    sem_post(&s);
    return p;
}
static void *second(void *p) {
    usleep(20000);
    sem_wait(&u);
    sem_wait(&s);
    sem_post(&s);
    sem_post(&u);
    return p;
}
int main(void) {
    pthread_t a, b;
    sem_init(&s, 0, 1);
    sem_init(&u, 0, 1);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
