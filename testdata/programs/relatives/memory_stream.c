// expect: quiet. stdio writes what says that something else is ready, and nobody sees it do that.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char text[64];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int x;
static void *a(void *p) {
    x = 1;
    pthread_mutex_lock(&m);
    FILE *f = fmemopen(text, sizeof text, "w");
    fprintf(f, "ready");
    fclose(f);
    pthread_mutex_unlock(&m);
    return p;
}
static void *b(void *p) {
    for (int ready = 0; !ready; usleep(200)) {
        pthread_mutex_lock(&m);
        ready = !strcmp(text, "ready");
        pthread_mutex_unlock(&m);
    }
    x = 2;
    return p;
}
int main(void) {
    pthread_t s, t;
    pthread_create(&s, 0, a, 0);
    pthread_create(&t, 0, b, 0);
    pthread_join(s, 0);
    pthread_join(t, 0);
    return x != 2;
}
