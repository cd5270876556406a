// A key is inserted if it is not there, in two steps: it is there twice.
#include "classic.h"

static int keys[4], count;
static Mutex m = MUTEX;

static int contains(int key) {
    for (int i = 0; i < count; i++)
        if (keys[i] == key)
            return 1;
    return 0;
}

static void *insert(void *unused) {
    lock(&m);
    int is_there = contains(7);
    IF_REPAIRED((void)0, unlock(&m));
    IF_REPAIRED((void)0, lock(&m));
    if (!is_there)
        keys[count++] = 7;
    unlock(&m);
    return unused;
}

int main(void) {
    TOGETHER(insert, insert);
    assert(count == 1);
}
