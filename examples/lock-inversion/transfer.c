/* Money goes from Alice to Bob and back, each time with the lock of who pays taken first. The second transfer begins
 * long after the first, so this run ends. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account alice = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account bob = {PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(struct account *from, struct account *to, int amount) {
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *pay(void *unused) {
    transfer(&alice, &bob, 30);
    return unused;
}

static void *pay_back(void *unused) {
    usleep(20000);
    transfer(&bob, &alice, 30);
    return unused;
}

int main(void) {
    pthread_t first, second;
    pthread_create(&first, NULL, pay, NULL);
    pthread_create(&second, NULL, pay_back, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    printf("%d and %d\n", alice.balance, bob.balance);
    return 0;
}
