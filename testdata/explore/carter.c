// Readers count themselves under one lock and take another: two orders, a deadlock.
#include "classic.h"

static int a, b;
static Mutex m = MUTEX, resource = MUTEX;

static void *reader(void *unused) {
    lock(&m);
    if (++a == 1)
        lock(&resource);
    unlock(&m);
    lock(&m);
    if (--a == 0)
        unlock(&resource);
    unlock(&m);
    return unused;
}

static void *writer(void *unused) {
    IF_REPAIRED(lock(&m), lock(&resource));
    IF_REPAIRED(lock(&resource), lock(&m));
    b++;
    unlock(&resource);
    unlock(&m);
    return unused;
}

int main(void) {
    IF_REPAIRED(TOGETHER(writer, writer), TOGETHER(reader, writer));
    (void)reader;
}
