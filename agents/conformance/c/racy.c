/* Four threads race for a few words, without any order but what the machine gives. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#ifndef ROUNDS
#define ROUNDS 50000
#endif
volatile uint32_t small[4];
volatile uint64_t large[2];

static void *run(void *me) {
    uint64_t id = (uint64_t)(uintptr_t)me, sum = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        small[i & 3] = (uint32_t)(i << 8 | id);
        sum += small[(i + 1) & 3];
        large[i & 1] += id;
        sum += large[(i + 1) & 1];
        sum += small[i & 3];
    }
    return (void *)(uintptr_t)sum;
}

int main(void) {
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&t[i], 0, run, (void *)(i + 1));
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    puts("done");
    return 0;
}
