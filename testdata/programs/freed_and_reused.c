// Memory that is freed, handed out again and used by its new owner, in blocks of several sizes: nothing is wrong.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static char *shared;
static void *t(void *p) {
    for (int i = 1; i < 40; i++) {
        pthread_mutex_lock(&m);
        char *old = shared;
        size_t size = (size_t)(i * 37 % 400) + 1;
        free(old);
        shared = malloc(size);
        memset(shared, i, size);
        char *copy = strdup("some text");
        copy[0] = shared[0];
        free(copy);
        pthread_mutex_unlock(&m);
    }
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, t, 0);
    pthread_create(&b, 0, t, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    free(shared);
    return 0;
}
