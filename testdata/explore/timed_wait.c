// A wait that times out is taken for one that was signalled.
#include "classic.h"
#include <time.h>

static int is_ready;
static Mutex m = MUTEX;
static Condition c = CONDITION;

static void *waiter(void *unused) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    lock(&m);
    int late = 0;
    while (!is_ready && !late)
        late = pthread_cond_timedwait(&c, &m, &until);
    assert(IF_REPAIRED(is_ready || late, is_ready));
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
