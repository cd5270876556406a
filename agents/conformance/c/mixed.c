/* Four threads touch memory in every way: under locks of their own kinds, without any, reading together, handing on.
 * What a lock protects is checked by the program itself. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ROUNDS
#define ROUNDS 30000
#endif
enum { THREADS = 4, LOCKS = 3 };
static pthread_mutex_t locks[LOCKS], nested;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
uint32_t words[LOCKS][16], loose[16], halves[16], table[64], spun, waited;
char texts[LOCKS][32];

static uint32_t next(uint32_t *seed) { return *seed = *seed * 1664525 + 1013904223, *seed >> 16; }

static void *run(void *me) {
    uint32_t seed = (uint32_t)(uintptr_t)me * 77;
    char local[32];
    uint64_t sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t n = next(&seed), k = next(&seed) % LOCKS, j = next(&seed) % 16;
        switch (n % 9) {
        case 0: case 1:
            if (n & 64 ? pthread_mutex_lock(&locks[k]) : pthread_mutex_trylock(&locks[k])) break;
            words[k][j]++;
            words[k][(j + 1) % 16] = words[k][j];
            snprintf(texts[k], sizeof texts[k], "%u", words[k][j]);
            strcpy(local, texts[k]);
            assert((uint32_t)strtoul(local, 0, 10) == words[k][j]);
            pthread_mutex_unlock(&locks[k]);
            break;
        case 2:
            pthread_mutex_lock(&nested);
            pthread_mutex_lock(&nested);
            halves[j]++;
            pthread_mutex_unlock(&nested);
            halves[(j + 7) % 16]++;
            pthread_mutex_unlock(&nested);
            break;
        case 3: case 4: case 5:
            pthread_rwlock_rdlock(&shared);
            for (int t = 0; t < 8; t++) sum += table[(j + t) % 64];
            pthread_rwlock_unlock(&shared);
            break;
        case 6:
            if (n & 0xe0) break;
            pthread_rwlock_wrlock(&shared);
            memset(&table[j], (int)n, 12);
            pthread_rwlock_unlock(&shared);
            break;
        case 7:
            *(volatile uint32_t *)&loose[j] += 1;
            pthread_spin_lock(&spin);
            spun++;
            pthread_spin_unlock(&spin);
            break;
        case 8: {
            struct timespec past = {1, 0};
            pthread_mutex_lock(&locks[k]);
            waited++;
            pthread_cond_signal(&turn);
            if (n & 1) pthread_cond_timedwait(&turn, &locks[k], &past);
            words[k][j] += 2;
            pthread_mutex_unlock(&locks[k]);
            uint32_t *mine = malloc(16);
            memcpy(mine, loose, 16);
            sum += mine[j % 4];
            free(mine);
            break;
        }
        }
    }
    return (void *)(uintptr_t)sum;
}

int main(void) {
    pthread_t t[THREADS];
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&nested, &recursive);
    pthread_spin_init(&spin, 0);
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], 0);
    for (int i = 0; i < 64; i++) table[i] = (uint32_t)i;
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    return 0;
}
