// `data` is written twice without a lock, and only a counter that both threads raise keeps the writes in order in this run. Had T2
// come first, it would have found another number, and gone on all the same.
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int n, data;
static void count(void) {
    pthread_mutex_lock(&m);
    n = n + 1;
    pthread_mutex_unlock(&m);
}
static void *t1(void *unused) {
    data = 1;
    count();
    return unused;
}
static void *t2(void *unused) {
    usleep(20000);
    count();
    data = 2;
    return unused;
}
int main(void) {
    pthread_t x, y;
    pthread_create(&x, 0, t1, 0);
    pthread_create(&y, 0, t2, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return 0;
}
