// Peterson's mutual exclusion; in the wrong one a thread gives way before it says that it is interested.
#include "classic.h"

static atomic_int interested[2], turn;
static volatile int inside;

static void *enter(void *which) {
    int me = (int)(long)which, other = 1 - me;
    IF_REPAIRED(atomic_store(&interested[me], 1), atomic_store(&turn, other));
    IF_REPAIRED(atomic_store(&turn, other), atomic_store(&interested[me], 1));
    while (atomic_load(&interested[other]) && atomic_load(&turn) == other)
        ;
    inside++;
    assert(inside == 1);
    inside--;
    atomic_store(&interested[me], 0);
    return 0;
}

int main(void) {
    TOGETHER(enter, enter);
}
