// Two variables are set under two locks, one after the other.
#include "classic.h"

static int first, second;
static Mutex a = MUTEX, b = MUTEX;

static void *set(void *unused) {
    lock(&a);
    first = 1;
    IF_REPAIRED((void)0, unlock(&a));
    lock(&b);
    second = first + 1;
    unlock(&b);
    IF_REPAIRED(unlock(&a), (void)0);
    return unused;
}

static void *read_both(void *unused) {
    lock(&a);
    int x = first;
    IF_REPAIRED((void)0, unlock(&a));
    lock(&b);
    int y = second;
    unlock(&b);
    IF_REPAIRED(unlock(&a), (void)0);
    assert(x == 0 || y == x + 1);
    return unused;
}

int main(void) {
    TOGETHER(set, read_both);
}
