// Two consumers look whether the queue is empty and take from it in two critical sections.
#include "classic.h"

static int items[4], count = 1;
static Mutex m = MUTEX;

static void *take(void *unused) {
    lock(&m);
    int is_there = count > 0;
    IF_REPAIRED((void)0, unlock(&m));
    IF_REPAIRED((void)0, lock(&m));
    if (is_there) {
        count--;
        assert(count >= 0);
        items[count] = 0;
    }
    unlock(&m);
    return unused;
}

int main(void) {
    TOGETHER(take, take);
}
