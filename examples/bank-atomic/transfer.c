/* A transfer takes from one account and gives to another, each under the account's own lock, and is meant to be atomic. A
 * closing of the books that sets both accounts can come between its halves. No data race, and no single account is wrong. */
#include <foresee.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account alice = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account bob = {PTHREAD_MUTEX_INITIALIZER, 100};

static void set(struct account *account, int balance) {
    pthread_mutex_lock(&account->lock);
    account->balance = balance;
    pthread_mutex_unlock(&account->lock);
}

static void *transfer(void *unused) {
    FORESEE_ATOMIC("transfer");
    set(&alice, 70);
    set(&bob, 130);
    return unused;
}

static void *close_books(void *unused) {
    usleep(20000);
    set(&alice, 0);
    set(&bob, 0);
    return unused;
}

int main(void) {
    pthread_t clerk, closer;
    pthread_create(&clerk, NULL, transfer, NULL);
    pthread_create(&closer, NULL, close_books, NULL);
    pthread_join(clerk, NULL);
    pthread_join(closer, NULL);
    printf("%d and %d\n", alice.balance, bob.balance);
    return 0;
}
