// expect: PREDICTED race on x. A lock of two flags that are tested before they are set: each thread finds the other's flag clear, which it is
// again when the second one comes, and was before the first one came.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int flags[2];
static int x;

static void add(int me) {
    while (atomic_load(&flags[1 - me])) {}
    atomic_store(&flags[me], 1);
    x++;
    atomic_store(&flags[me], 0);
}
static void *first(void *_) {
    add(0);
    return _;
}
static void *second(void *_) {
    usleep(300000);
    add(1);
    return _;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return x != 2;
}
