// A thread waits without looking whether it was signalled before.
#include "classic.h"

static int is_ready;
static Mutex m = MUTEX;
static Condition c = CONDITION;

static void *waiter(void *unused) {
    lock(&m);
    IF_REPAIRED(while (!is_ready), (void)0;)
        pthread_cond_wait(&c, &m);
    unlock(&m);
    return unused;
}

static void *signaller(void *unused) {
    lock(&m);
    is_ready = 1;
    pthread_cond_signal(&c);
    unlock(&m);
    return unused;
}

int main(void) {
    TOGETHER(waiter, signaller);
}
