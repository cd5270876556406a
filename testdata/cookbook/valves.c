#include <pthread.h>
#include <unistd.h>

struct valve {
    pthread_mutex_t lock;
    int open;
};

static struct valve inlet = {PTHREAD_MUTEX_INITIALIZER, 0}, outlet = {PTHREAD_MUTEX_INITIALIZER, 0};
static pthread_mutex_t tank = PTHREAD_MUTEX_INITIALIZER;

static void turn(struct valve *v, int open) {
    pthread_mutex_lock(&v->lock);
    v->open = open;
    pthread_mutex_unlock(&v->lock);
}

static void flush(struct valve *v) {
#ifdef RIGHT
    pthread_mutex_lock(&tank);
#endif
    turn(v, 1);
    turn(v, 0);
#ifdef RIGHT
    pthread_mutex_unlock(&tank);
#endif
}

static void *fill(void *p) {
    flush(&inlet);
    return p;
}

static void *drain(void *p) {
    usleep(100000);
    flush(&outlet);
    return p;
}

int main(void) {
    (void)tank;
    pthread_t a, b;
    pthread_create(&a, 0, fill, 0);
    pthread_create(&b, 0, drain, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
