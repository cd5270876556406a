/* Threads race for two variables, and compute in between, for longer than others wait for the token. */
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 25, ACCESSES = 40 };
volatile int x, y;

static void *run(void *me) {
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < ACCESSES; k++) {
            x = x + 1;
            y = x;
        }
        /* A store whose value is not recorded before the next hook, then no hook for long. */
        y = (int)(long)me * 1000 + i;
        for (int k = 0; k < 12000000; k++) __asm__ volatile("");
    }
    return me;
}

int main(void) {
    pthread_t t[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(t + i, 0, run, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    return 0;
}
