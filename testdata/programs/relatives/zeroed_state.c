// expect: PREDICTED race on z. That the state is zero again does not say that it has been anything else.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
struct state { int busy, other; } *state;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int z;
static void *first(void *p) {
    usleep(50000);
    pthread_mutex_lock(&m);
    int is_busy = state->busy;
    pthread_mutex_unlock(&m);
    if (!is_busy)
        z = 1;
    return p;
}
static void *second(void *p) {
    z = 2;
    pthread_mutex_lock(&m);
    state->busy = 1;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    state->busy = 0;
    pthread_mutex_unlock(&m);
    return p;
}
int main(void) {
    pthread_t a, b;
    state = calloc(1, sizeof *state);
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
