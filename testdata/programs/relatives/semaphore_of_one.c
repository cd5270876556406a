// expect: complete. A semaphore that is used as a mutex.
#include <pthread.h>
#include <semaphore.h>
static sem_t s;
static int n[5];
static void *work(void *p) {
    for (int i = 0; i < 5; i++) {
        sem_wait(&s);
        n[i]++;
        sem_post(&s);
    }
    return p;
}
int main(void) {
    pthread_t a, b;
    sem_init(&s, 0, 1);
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return n[4] != 2;
}
