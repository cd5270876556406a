// A reader of two words under a sequence number does not look at the number again.
#include "classic.h"

static atomic_int sequence, a, b;

static void *write_both(void *unused) {
    atomic_fetch_add(&sequence, 1);
    atomic_store(&a, 1);
    atomic_store(&b, 1);
    atomic_fetch_add(&sequence, 1);
    return unused;
}

static void *read_both(void *unused) {
    int before = atomic_load(&sequence);
    int x = atomic_load(&a), y = atomic_load(&b);
    if (before % 2 == 0 && IF_REPAIRED(atomic_load(&sequence) == before, 1))
        assert(x == y);
    return unused;
}

int main(void) {
    TOGETHER(write_both, read_both);
}
