// A correct hand-over in which the consumer comes late and never has to wait: `item` is written before `ready` is set under the
// lock, and read after it was found set. Nothing can race, and nothing hangs on a value that was not read.
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, item, sum;
static void *producer(void *unused) {
    item = 42;
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    return unused;
}
static void *consumer(void *unused) {
    usleep(20000);
    pthread_mutex_lock(&m);
    while (!ready) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    sum += item;
    return unused;
}
int main(void) {
    pthread_t x, y;
    pthread_create(&x, 0, producer, 0);
    pthread_create(&y, 0, consumer, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return sum == 42 ? 0 : 1;
}
