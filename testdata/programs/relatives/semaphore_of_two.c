// expect: PREDICTED race on x. There is a permit for each thread, so the semaphore excludes nobody.
#include <pthread.h>
#include <semaphore.h>
static sem_t s;
static int x;
static void *first(void *p) {
    sem_wait(&s);
    x++;
    sem_post(&s);
    return p;
}
static void *second(void *p) {
    sem_wait(&s);
    x++;
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
