#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct account {
    pthread_mutex_t lock;
    int open, balance;
};

static struct account *new_account(void) {
    struct account *a = malloc(sizeof *a);
    pthread_mutex_init(&a->lock, 0);
    a->open = 1;
    a->balance = 100;
    return a;
}

static void pay(struct account *a, int sum) {
    pthread_mutex_lock(&a->lock);
#ifdef RIGHT
    if (a->open)
#endif
    a->balance += sum;
    pthread_mutex_unlock(&a->lock);
}

static void close_account(struct account *a) {
    pthread_mutex_lock(&a->lock);
    a->open = 0;
    pthread_mutex_unlock(&a->lock);
}

static void *payer(void *p) {
    pay(p, 10);
    return p;
}

static void *closer(void *p) {
    usleep(100000);
    close_account(p);
    return p;
}

int main(void) {
    struct account *shared = new_account(), *other = new_account();
    pthread_t a, b;
    pthread_create(&a, 0, payer, shared);
    pthread_create(&b, 0, closer, shared);
    pay(other, 20);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
