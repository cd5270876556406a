// An object is made on first use; the pointer is published before the object is complete.
#include "classic.h"

struct Object {
    int is_complete;
};

static struct Object *_Atomic instance;
static Mutex m = MUTEX;

static struct Object *get(void) {
    struct Object *it = atomic_load(&instance);
    if (it)
        return it;
    lock(&m);
    it = atomic_load(&instance);
    if (!it) {
        it = malloc(sizeof *it);
        IF_REPAIRED(it->is_complete = 1, atomic_store(&instance, it));
        IF_REPAIRED(atomic_store(&instance, it), it->is_complete = 1);
    }
    unlock(&m);
    return it;
}

static void *use(void *unused) {
    assert(get()->is_complete);
    return unused;
}

int main(void) {
    TOGETHER(use, use);
}
