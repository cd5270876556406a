// A ticket lock whose tickets are drawn with a read and a write.
#include "classic.h"

static atomic_int next, serving;
static volatile int inside;

static void *work(void *unused) {
#ifdef REPAIRED
    int mine = atomic_fetch_add(&next, 1);
#else
    int mine = atomic_load(&next);
    atomic_store(&next, mine + 1);
#endif
    while (atomic_load(&serving) != mine)
        ;
    inside++;
    assert(inside == 1);
    inside--;
    atomic_store(&serving, mine + 1);
    return unused;
}

int main(void) {
    TOGETHER(work, work);
}
