// Two locks in opposite orders, kept apart only by what was read: in this run T2 finds the balance that T1 has left, so it
// comes after it. Had it come first, it would have found another one, and done the same.
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int balance, moved;
static void *t1(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    moved++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    pthread_mutex_lock(&m);
    balance = 50;
    pthread_mutex_unlock(&m);
    return unused;
}
static void *t2(void *unused) {
    usleep(20000);
    pthread_mutex_lock(&m);
    int seen = balance;
    pthread_mutex_unlock(&m);
    if (seen < 1000) {
        pthread_mutex_lock(&b);
        pthread_mutex_lock(&a);
        moved++;
        pthread_mutex_unlock(&a);
        pthread_mutex_unlock(&b);
    }
    return unused;
}
int main(void) {
    pthread_t x, y;
    pthread_mutex_lock(&m);
    balance = 100;
    pthread_mutex_unlock(&m);
    pthread_create(&x, 0, t1, 0);
    pthread_create(&y, 0, t2, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return 0;
}
