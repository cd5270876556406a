// expect: OBSERVED lifetime. The block has moved, and the other thread still uses it where it was.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
static int *kept;
static atomic_int moved;
static void *work(void *p) {
    while (!moved) usleep(100);
    ++*(int *)p;
    return 0;
}
int main(void) {
    int *block = malloc(16), *fence = malloc(16);
    *block = 0;
    pthread_t a;
    pthread_create(&a, 0, work, block);
    kept = realloc(block, 4000);
    moved = 1;
    pthread_join(a, 0);
    free(fence);
    return !kept;
}
