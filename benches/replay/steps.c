// How fast a schedule is forced: `one N` takes N steps in one thread while another waits, `turns N` takes N steps and changes
// threads at every second one. Prints the nanoseconds of each step.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long n;
static volatile long shared;
static sem_t mine, yours;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * time.tv_sec + time.tv_nsec;
}

static void *counts(void *p) {
    double since = now();
    for (long i = 0, count = n; i < count; i++) shared = i;
    printf("%.1f\n", (now() - since) / n);
    return p;
}

static void *serves(void *p) {
    double since = now();
    for (long i = 0, count = n / 4; i < count; i++) {
        sem_post(&yours);
        sem_wait(&mine);
    }
    printf("%.1f\n", (now() - since) / n);
    return p;
}

static void *returns(void *p) {
    for (long i = 0, count = n / 4; i < count; i++) {
        sem_wait(&yours);
        sem_post(&mine);
    }
    return p;
}

int main(int argc, char **argv) {
    pthread_t s, t;
    n = argc > 2 ? atol(argv[2]) : 1000;
    sem_init(&mine, 0, 0);
    sem_init(&yours, 0, 0);
    if (argc > 1 && strcmp(argv[1], "turns") == 0) {
        pthread_create(&s, 0, serves, 0);
        pthread_create(&t, 0, returns, 0);
        pthread_join(t, 0);
    } else {
        pthread_create(&s, 0, counts, 0);
    }
    pthread_join(s, 0);
    // So that the steps are events of two threads, which schedules list.
    return shared < 0;
}
