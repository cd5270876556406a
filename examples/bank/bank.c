/* Money is moved between two accounts, each with a lock of its own; an audit adds them up. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account alice = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account bob = {PTHREAD_MUTEX_INITIALIZER, 100};

static void add(struct account *account, int amount) {
    pthread_mutex_lock(&account->lock);
    account->balance += amount;
    pthread_mutex_unlock(&account->lock);
}

static int balance(struct account *account) {
    pthread_mutex_lock(&account->lock);
    int balance = account->balance;
    pthread_mutex_unlock(&account->lock);
    return balance;
}

/* Each balance is changed under its lock, but for a moment the money is in neither. */
static void *transfer(void *unused) {
    add(&alice, -30);
    add(&bob, 30);
    return unused;
}

static int sum(void) {
    return balance(&alice) + balance(&bob);
}

static void *audit(void *total) {
    usleep(100000);
    *(int *)total = sum();
    return NULL;
}

int main(void) {
    pthread_t clerk, auditor;
    int total;
    pthread_create(&clerk, NULL, transfer, NULL);
    pthread_create(&auditor, NULL, audit, &total);
    pthread_join(clerk, NULL);
    pthread_join(auditor, NULL);
    printf("the books %s\n", total == 200 ? "balance" : "do not balance");
    return 0;
}
