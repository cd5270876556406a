// Two kinds of waiters share a condition, and a signal wakes the wrong one.
#include "classic.h"

static int turn;
static Mutex m = MUTEX;
static Condition c = CONDITION;

static void *wait_for(void *which) {
    lock(&m);
    while (turn != (int)(long)which + 1)
        pthread_cond_wait(&c, &m);
    turn++;
    IF_REPAIRED(pthread_cond_broadcast, pthread_cond_signal)(&c);
    unlock(&m);
    return 0;
}

static void *begin(void *unused) {
    lock(&m);
    turn = 1;
    IF_REPAIRED(pthread_cond_broadcast, pthread_cond_signal)(&c);
    unlock(&m);
    return unused;
}

int main(void) {
    TOGETHER(wait_for, wait_for, begin);
}
