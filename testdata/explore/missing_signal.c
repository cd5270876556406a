// The last of two workers forgets to say that all is done if it is not the second one started.
#include "classic.h"

static int left = 2;
static Mutex m = MUTEX;
static Condition done = CONDITION;

static void *work(void *which) {
    lock(&m);
    left--;
    if (left == 0 && IF_REPAIRED(1, (long)which == 1))
        pthread_cond_signal(&done);
    unlock(&m);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    lock(&m);
    while (left)
        pthread_cond_wait(&done, &m);
    unlock(&m);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
}
