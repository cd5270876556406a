#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int jobs, is_closed;

static void submit(void) {
    pthread_mutex_lock(&lock);
    jobs++;
    pthread_mutex_unlock(&lock);
}

static void shutdown_pool(void) {
    pthread_mutex_lock(&lock);
    is_closed = 1;
    pthread_mutex_unlock(&lock);
}

static void *producer(void *p) {
    submit();
    submit();
    return p;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, producer, 0);
#ifdef RIGHT
    pthread_join(thread, 0);
    shutdown_pool();
#else
    usleep(100000);
    shutdown_pool();
    pthread_join(thread, 0);
#endif
    return 0;
}
