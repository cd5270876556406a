/* Goods are sold if there are any: looked up in one section, taken in the next. A recall in between leaves less than
 * nothing on the shelf. Every access is under the lock. */
#include <foresee.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stock = 3;

static int is_in_stock(void) {
    pthread_mutex_lock(&lock);
    int is = stock > 0;
    pthread_mutex_unlock(&lock);
    return is;
}

static void take(void) {
    pthread_mutex_lock(&lock);
    stock--;
    pthread_mutex_unlock(&lock);
}

static void *sell(void *unused) {
    FORESEE_ATOMIC_BEGIN("sell");
    if (is_in_stock())
        take();
    FORESEE_ATOMIC_END("sell");
    return unused;
}

static void *recall(void *unused) {
    usleep(200000);
    pthread_mutex_lock(&lock);
    stock = 0;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t customer, maker;
    pthread_create(&customer, NULL, sell, NULL);
    pthread_create(&maker, NULL, recall, NULL);
    pthread_join(customer, NULL);
    pthread_join(maker, NULL);
    printf("%d left\n", stock);
    return 0;
}
