// expect: complete. More threads than there are pairs to look at use a variable under one lock.
#include <pthread.h>

enum { THREADS = 80 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x;

static void *add(void *_) {
    pthread_mutex_lock(&lock);
    x++;
    pthread_mutex_unlock(&lock);
    return _;
}
int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    return x != THREADS;
}
