// The last owner of an object frees it; the count is not atomic, so both do.
#include "classic.h"

struct Object {
    atomic_int owners;
    int value;
};

static struct Object *shared;

static void *release(void *unused) {
    struct Object *it = shared;
#ifdef REPAIRED
    if (atomic_fetch_sub(&it->owners, 1) == 1)
        free(it);
#else
    atomic_fetch_sub(&it->owners, 1);
    if (atomic_load(&it->owners) == 0)
        free(it);
#endif
    return unused;
}

int main(void) {
    shared = malloc(sizeof *shared);
    atomic_init(&shared->owners, 2);
    TOGETHER(release, release);
}
