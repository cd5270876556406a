// One thread protects the data with another lock than the others.
#include "classic.h"

static volatile int data;
static Mutex right = MUTEX, wrong = MUTEX;

static void *update(void *unused) {
    lock(&right);
    int x = data;
    data++;
    assert(data == x + 1);
    unlock(&right);
    return unused;
}

static void *update_wrongly(void *unused) {
    Mutex *m = IF_REPAIRED(&right, &wrong);
    lock(m);
    data++;
    unlock(m);
    return unused;
}

int main(void) {
    TOGETHER(update, update_wrongly);
    (void)wrong;
}
