// Two readers want to write without giving their read locks back.
#include "classic.h"

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static int data;

static void *update(void *unused) {
    pthread_rwlock_rdlock(&rw);
    int seen = data;
    IF_REPAIRED(pthread_rwlock_unlock(&rw), (void)0);
    pthread_rwlock_wrlock(&rw);
    data = seen + 1;
    pthread_rwlock_unlock(&rw);
    return unused;
}

int main(void) {
    TOGETHER(update, update);
}
