// As reorder_3, with three setters.
#include "classic.h"

static int a, b;
static Mutex m = MUTEX;

static void *set(void *unused) {
    IF_REPAIRED(lock(&m), (void)0);
    a = 1;
    b = -1;
    IF_REPAIRED(unlock(&m), (void)0);
    return unused;
}

static void *check(void *unused) {
    IF_REPAIRED(lock(&m), (void)0);
    int x = a, y = b;
    IF_REPAIRED(unlock(&m), (void)0);
    assert((x == 0 && y == 0) || (x == 1 && y == -1));
    return unused;
}

int main(void) {
    TOGETHER(set, set, set, check);
}
