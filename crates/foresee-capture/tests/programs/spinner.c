/* One thread stores, then computes forever without a hook; another one has work to do. */
#include <pthread.h>

int stored, counter;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *spin(void *a) {
    stored = 7;
    for (;;) __asm__ volatile("");
    return a;
}

static void *work(void *a) {
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&m);
        counter++;
        pthread_mutex_unlock(&m);
    }
    return a;
}

int main(void) {
    pthread_t s, t;
    pthread_create(&s, 0, spin, 0);
    pthread_create(&t, 0, work, 0);
    pthread_join(t, 0);
    return counter == 1000 ? 0 : 1;
}
