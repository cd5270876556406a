// expect: complete. The semaphore is lowered as often as it is raised before the results are read.
#include <pthread.h>
#include <semaphore.h>
static sem_t done;
static int x, y;
static void *first(void *p) {
    x = 1;
    sem_post(&done);
    return p;
}
static void *second(void *p) {
    y = 1;
    sem_post(&done);
    return p;
}
int main(void) {
    pthread_t a, b;
    sem_init(&done, 0, 0);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    sem_wait(&done);
    sem_wait(&done);
    int sum = x + y;
    pthread_join(a, 0);
    pthread_join(b, 0);
    return sum != 2;
}
