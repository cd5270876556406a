// The owner of a deque takes from one end without the lock, a thief from the other: both get the last item.
#include "classic.h"

static atomic_int head, tail = 2;
static int taken[2];
static Mutex m = MUTEX;

static void *owner(void *unused) {
    for (int i = 0; i < 2; i++) {
        IF_REPAIRED(lock(&m), (void)0);
        int t = atomic_load(&tail) - 1;
        if (atomic_load(&head) <= t) {
            atomic_store(&tail, t);
            taken[t]++;
        }
        IF_REPAIRED(unlock(&m), (void)0);
    }
    return unused;
}

static void *thief(void *unused) {
    lock(&m);
    int h = atomic_load(&head);
    if (h < atomic_load(&tail)) {
        atomic_store(&head, h + 1);
        taken[h]++;
    }
    unlock(&m);
    return unused;
}

int main(void) {
    TOGETHER(owner, thief);
    assert(taken[0] <= 1 && taken[1] <= 1);
}
