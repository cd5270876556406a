/* A thread sleeps in a call that the runtime does not see; main continues nevertheless. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

volatile int x, y;

static void *sleeper(void *_) {
    struct timespec long_time = {0, 200000000};
    x = 1;
    long out;
    __asm__ volatile("syscall" : "=a"(out) : "a"(SYS_nanosleep), "D"(&long_time), "S"(0) : "rcx", "r11", "memory");
    x = 2;
    return _;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, sleeper, 0);
    while (x == 0) usleep(1000);
    y = 5;
    pthread_join(t, 0);
    return 0;
}
