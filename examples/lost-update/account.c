/* Every access to the balance is under its lock, but a deposit reads it in one section and writes it in another. What
 * the bank sets in between is lost. No data race, so tools that look for these have nothing to say. */
#include <foresee.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static int get(void) {
    pthread_mutex_lock(&lock);
    int now = balance;
    pthread_mutex_unlock(&lock);
    return now;
}

static void set(int now) {
    pthread_mutex_lock(&lock);
    balance = now;
    pthread_mutex_unlock(&lock);
}

static void *deposit(void *unused) {
    FORESEE_ATOMIC_BEGIN("deposit");
    set(get() + 30);
    FORESEE_ATOMIC_END("deposit");
    return unused;
}

static void *correct(void *unused) {
    usleep(200000);
    set(500);
    return unused;
}

int main(void) {
    pthread_t customer, bank;
    pthread_create(&customer, NULL, deposit, NULL);
    pthread_create(&bank, NULL, correct, NULL);
    pthread_join(customer, NULL);
    pthread_join(bank, NULL);
    printf("balance %d\n", balance);
    return 0;
}
