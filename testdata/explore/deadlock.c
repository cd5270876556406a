// Two locks in two orders.
#include "classic.h"

static int data;
static Mutex a = MUTEX, b = MUTEX;

static void *one(void *unused) {
    lock(&a);
    lock(&b);
    data++;
    unlock(&b);
    unlock(&a);
    return unused;
}

static void *other(void *unused) {
    lock(IF_REPAIRED(&a, &b));
    lock(IF_REPAIRED(&b, &a));
    data++;
    unlock(IF_REPAIRED(&b, &a));
    unlock(IF_REPAIRED(&a, &b));
    return unused;
}

int main(void) {
    TOGETHER(one, other);
}
