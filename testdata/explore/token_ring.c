// Each thread passes on what its predecessor left; only one order gives all the same token.
#include "classic.h"

static int x1 = 1, x2 = 2, x3 = 3;
static Mutex m = MUTEX;
static int done;

static void *first(void *unused) {
    lock(&m);
    x1 = (x3 + 1) % 4;
    done++;
    unlock(&m);
    return unused;
}

static void *second(void *unused) {
    lock(&m);
    x2 = x1;
    done++;
    unlock(&m);
    return unused;
}

static void *third(void *unused) {
    lock(&m);
    x3 = x2;
    done++;
    unlock(&m);
    return unused;
}

int main(void) {
#ifdef REPAIRED
    TOGETHER(first);
    TOGETHER(second);
    TOGETHER(third);
#else
    TOGETHER(first, second, third);
#endif
    assert(x1 == x2 && x2 == x3);
}
