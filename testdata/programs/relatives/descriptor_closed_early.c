// expect: doubt. What is kept by a descriptor is used after it was closed, when another thread may have its number.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
static int by_number[1024];
static void *uses(void *_) {
    for (int i = 0; i < 10; i++) {
        int own = open("/dev/null", O_RDONLY);
        close(own);
        by_number[own]++;
        sched_yield();
    }
    return _;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, uses, 0);
    uses(0);
    pthread_join(t, 0);
    return 0;
}
