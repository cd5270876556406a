/* Four threads compress blocks of one input with zlib, as pigz does. zlib is built with hooks, too. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { BLOCK = 128 * 1024, BLOCKS = 48, THREADS = 4 };
static unsigned char *input;
static unsigned long sizes[BLOCKS];
static unsigned next_block;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *_) {
    unsigned long room = compressBound(BLOCK);
    unsigned char *out = malloc(room);
    for (;;) {
        pthread_mutex_lock(&lock);
        unsigned i = next_block++;
        pthread_mutex_unlock(&lock);
        if (i >= BLOCKS) break;
        unsigned long size = room;
        if (compress2(out, &size, input + (size_t)i * BLOCK, BLOCK, 6) != Z_OK) abort();
        sizes[i] = size;
    }
    free(out);
    return _;
}

int main(void) {
    pthread_t t[THREADS];
    unsigned long total = 0;
    uint32_t seed = 1;
    input = malloc((size_t)BLOCK * BLOCKS);
    for (size_t i = 0; i < (size_t)BLOCK * BLOCKS; i++) {
        seed = seed * 1664525 + 1013904223;
        input[i] = "etaoin shrdlucmfwyp"[(seed >> 24) % (3 + (seed >> 16) % 17)];
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    for (int i = 0; i < BLOCKS; i++) total += sizes[i];
    printf("%lu\n", total);
    return 0;
}
