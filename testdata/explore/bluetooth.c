// A driver is stopped while a request is on its way in.
#include "classic.h"

static int pending = 1, stopping, stopped;
static Mutex m = MUTEX;

static int enter(void) {
    IF_REPAIRED(lock(&m), (void)0);
    int refused = stopping;
    IF_REPAIRED((void)0, lock(&m));
    if (!refused)
        pending++;
    unlock(&m);
    return !refused;
}

static void leave(void) {
    lock(&m);
    if (--pending == 0)
        stopped = 1;
    unlock(&m);
}

static void *request(void *unused) {
    if (enter()) {
        lock(&m);
        assert(!stopped);
        unlock(&m);
        leave();
    }
    return unused;
}

static void *stop(void *unused) {
    IF_REPAIRED(lock(&m), (void)0);
    stopping = 1;
    IF_REPAIRED(unlock(&m), (void)0);
    leave();
    return unused;
}

int main(void) {
    TOGETHER(request, stop);
}
