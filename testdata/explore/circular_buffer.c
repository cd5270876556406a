// A ring of numbers whose writer publishes a slot before it fills it.
#include "classic.h"

enum { SIZE = 4, ITEMS = 2 };
static int ring[SIZE];
static atomic_int in, out;

static void *produce(void *unused) {
    for (int i = 0; i < ITEMS; i++) {
        int at = atomic_load(&in);
        IF_REPAIRED(ring[at % SIZE] = i + 1, atomic_store(&in, at + 1));
        IF_REPAIRED(atomic_store(&in, at + 1), ring[at % SIZE] = i + 1);
    }
    return unused;
}

static void *consume(void *unused) {
    for (int i = 0; i < ITEMS; i++) {
        int at = atomic_load(&out);
        if (atomic_load(&in) > at) {
            assert(ring[at % SIZE] == at + 1);
            atomic_store(&out, at + 1);
        }
    }
    return unused;
}

int main(void) {
    TOGETHER(produce, consume);
}
