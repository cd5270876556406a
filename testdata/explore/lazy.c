// Three critical sections that must not come in every order.
#include "classic.h"

static int data;
static Mutex m = MUTEX;

static void *add_one(void *unused) {
    lock(&m);
    data++;
    unlock(&m);
    return unused;
}

static void *add_two(void *unused) {
    lock(&m);
    data += 2;
    unlock(&m);
    return unused;
}

static void *check(void *unused) {
    lock(&m);
    assert(data < IF_REPAIRED(4, 3));
    unlock(&m);
    return unused;
}

int main(void) {
    TOGETHER(add_one, add_two, check);
}
