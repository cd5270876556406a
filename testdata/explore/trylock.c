// A thread that does not get the second lock at once gives up without giving back the first.
#include "classic.h"

static Mutex a = MUTEX, b = MUTEX;
static int data;

static void *careful(void *unused) {
    lock(&a);
    if (pthread_mutex_trylock(&b) == 0) {
        data++;
        unlock(&b);
        unlock(&a);
    } else {
        IF_REPAIRED(unlock(&a), (void)0);
    }
    return unused;
}

static void *plain(void *unused) {
    lock(&b);
    data++;
    unlock(&b);
    lock(&a);
    unlock(&a);
    return unused;
}

int main(void) {
    TOGETHER(careful, plain);
}
