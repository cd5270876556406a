/* A bounded buffer: two producers, two consumers, condition variables; what is passed on is worked on by its holder alone. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 64, ITEMS = 20000, WORK = 256 };
static uint32_t *buffer[ROOM];
static unsigned head, tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;

static void *produce(void *me) {
    uint32_t seed = (uint32_t)(uintptr_t)me;
    for (int i = 0; i < ITEMS; i++) {
        uint32_t *item = malloc(WORK * sizeof *item);
        for (int j = 0; j < WORK; j++) item[j] = seed = seed * 1664525 + 1013904223;
        pthread_mutex_lock(&lock);
        while (head - tail == ROOM) pthread_cond_wait(&not_full, &lock);
        buffer[head++ % ROOM] = item;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

static void *consume(void *_) {
    uint64_t sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (head == tail) pthread_cond_wait(&not_empty, &lock);
        uint32_t *item = buffer[tail++ % ROOM];
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
        for (int round = 0; round < 3; round++)
            for (int j = 1; j < WORK; j++) item[j] += item[j - 1];
        sum += item[WORK - 1];
        free(item);
    }
    return (void *)(uintptr_t)sum;
}

int main(void) {
    pthread_t t[4];
    uint64_t sum = 0;
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&t[i], 0, i < 2 ? produce : consume, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *n;
        pthread_join(t[i], &n);
        sum += (uint64_t)(uintptr_t)n;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
