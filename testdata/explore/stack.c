// A stack whose pop reads the top outside the lock.
#include "classic.h"

static int items[4], top;
static Mutex m = MUTEX;

static void *push(void *unused) {
    for (int i = 1; i <= 2; i++) {
        lock(&m);
        items[top] = i;
        top++;
        unlock(&m);
    }
    return unused;
}

static void *pop(void *unused) {
    for (int i = 0; i < 2; i++) {
        IF_REPAIRED(lock(&m), (void)0);
        int at = top;
        IF_REPAIRED((void)0, lock(&m));
        if (at > 0) {
            assert(at == top);
            top = at - 1;
            assert(items[top] != 0);
        }
        unlock(&m);
    }
    return unused;
}

int main(void) {
    TOGETHER(push, pop);
}
