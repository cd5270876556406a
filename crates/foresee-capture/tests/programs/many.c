/* As many threads at once as the first argument says; all wait for each other, then count under a lock. */
#include <pthread.h>
#include <stdlib.h>

int counter;
static pthread_barrier_t all;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *a) {
    pthread_barrier_wait(&all);
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&m);
        counter++;
        pthread_mutex_unlock(&m);
    }
    return a;
}

int main(void) {
    int n = atoi(getenv("THREADS"));
    pthread_t *t = calloc(n, sizeof *t);
    pthread_barrier_init(&all, 0, n);
    for (int i = 0; i < n; i++)
        if (pthread_create(t + i, 0, run, 0)) return 9;
    for (int i = 0; i < n; i++) pthread_join(t[i], 0);
    return counter == 3 * n ? 0 : 1;
}
