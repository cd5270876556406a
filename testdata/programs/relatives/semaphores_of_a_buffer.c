// expect: complete. A buffer with full and empty places, a thread that fills it and one that empties it.
#include <pthread.h>
#include <semaphore.h>
static sem_t full, empty;
static int places[3], sum;
static void *first(void *p) {
    for (int i = 0; i < 8; i++) {
        sem_wait(&empty);
        places[i % 3] = i;
        sem_post(&full);
    }
    return p;
}
static void *second(void *p) {
    for (int i = 0; i < 8; i++) {
        sem_wait(&full);
        sum += places[i % 3];
        sem_post(&empty);
    }
    return p;
}
int main(void) {
    pthread_t a, b;
    sem_init(&full, 0, 0);
    sem_init(&empty, 0, 3);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return sum != 28;
}
