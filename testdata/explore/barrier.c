// Two phases, of which the second reads what the other thread writes in the first: a barrier is missing.
#include "classic.h"

static pthread_barrier_t both;
static int left[2], right[2];

static void *work(void *which) {
    long me = (long)which;
    left[me] = 1;
    IF_REPAIRED(pthread_barrier_wait(&both), (void)0);
    right[me] = left[1 - me];
    pthread_barrier_wait(&both);
    assert(right[0] == 1 && right[1] == 1);
    return 0;
}

int main(void) {
    pthread_barrier_init(&both, 0, 2);
    TOGETHER(work, work);
}
