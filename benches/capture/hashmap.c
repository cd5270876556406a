/* A hash map with striped locks: four threads insert and look up. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { STRIPES = 64, BUCKETS = 1 << 14, THREADS = 4, ROUNDS = 400000 };
struct node { uint64_t key, value; struct node *next; };
static struct node *buckets[BUCKETS];
static pthread_mutex_t stripes[STRIPES];

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void *run(void *me) {
    uint64_t seed = (uint64_t)(uintptr_t)me * 0x9e3779b97f4a7c15, found = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t key = next(&seed) % 50000, at = key * 2654435761 % BUCKETS;
        pthread_mutex_lock(&stripes[at % STRIPES]);
        struct node *n = buckets[at];
        while (n && n->key != key) n = n->next;
        if (n) {
            n->value += i;
            found++;
        } else {
            n = malloc(sizeof *n);
            n->key = key;
            n->value = i;
            n->next = buckets[at];
            buckets[at] = n;
        }
        pthread_mutex_unlock(&stripes[at % STRIPES]);
    }
    return (void *)(uintptr_t)found;
}

int main(void) {
    pthread_t t[THREADS];
    uint64_t found = 0;
    for (int i = 0; i < STRIPES; i++) pthread_mutex_init(&stripes[i], 0);
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) {
        void *n;
        pthread_join(t[i], &n);
        found += (uint64_t)(uintptr_t)n;
    }
    printf("%llu\n", (unsigned long long)found);
    return 0;
}
