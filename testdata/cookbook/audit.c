#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER, books = PTHREAD_MUTEX_INITIALIZER;
static int checking = 100, savings;

static void add(pthread_mutex_t *lock, int *account, int sum) {
    pthread_mutex_lock(lock);
    *account += sum;
    pthread_mutex_unlock(lock);
}

static void transfer(int sum) {
    add(&one, &checking, -sum);
    add(&other, &savings, sum);
}

static int audit(void) {
    pthread_mutex_lock(&one);
    pthread_mutex_lock(&other);
    int sum = checking + savings;
    pthread_mutex_unlock(&other);
    pthread_mutex_unlock(&one);
    return sum;
}

static void *mover(void *p) {
#ifdef RIGHT
    pthread_mutex_lock(&books);
#endif
    transfer(30);
#ifdef RIGHT
    pthread_mutex_unlock(&books);
#endif
    return p;
}

static void *auditor(void *p) {
    usleep(100000);
#ifdef RIGHT
    pthread_mutex_lock(&books);
#endif
    audit();
#ifdef RIGHT
    pthread_mutex_unlock(&books);
#endif
    return p;
}

int main(void) {
    (void)books;
    pthread_t a, b;
    pthread_create(&a, 0, mover, 0);
    pthread_create(&b, 0, auditor, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
