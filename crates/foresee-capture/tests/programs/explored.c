// Everything that an exploration controls, in one program.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct Pair {
    int a, b;
};
struct Large {
    long v[5];
};

static struct Pair pair1 = {1, 2}, pair2;
static struct Large large1 = {{1, 2, 3, 4, 5}}, large2;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int ready, made;
static atomic_int number;
static char text[32];
static int *heap;

static void make(void) {
    made++;
}

static void *grandchild(void *unused) {
    atomic_fetch_or(&number, 64);
    return unused;
}

static void *worker(void *unused) {
    pthread_once(&once, make);
    pthread_mutex_lock(&m);
    ready++;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    pthread_barrier_wait(&barrier);
    atomic_fetch_add(&number, 2);
    int expected = 3;
    atomic_compare_exchange_strong(&number, &expected, 5);
    pair2 = pair1;
    large2 = large1;
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_unlock(&rw);
    int *block = malloc(20);
    block[1] = rand() % 7;
    heap = block;
    memcpy(text, "hello world, again", 19);
    pthread_t child;
    pthread_create(&child, 0, grandchild, 0);
    pthread_join(child, 0);
    sem_post(&semaphore);
    return unused;
}

int main(void) {
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, 0, 2);
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    pthread_mutex_lock(&m);
    while (!ready)
        pthread_cond_wait(&c, &m);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3600;
    int late = pthread_cond_timedwait(&c, &m, &until);
    pthread_mutex_unlock(&m);
    pthread_once(&once, make);
    pthread_barrier_wait(&barrier);
    sleep(3600);
    sem_wait(&semaphore);
    if (pthread_mutex_trylock(&m) == 0)
        pthread_mutex_unlock(&m);
    char line[64];
    snprintf(line, sizeof line, "%d %s %d %p", late == ETIMEDOUT, text, heap[1], (void *)heap);
    pthread_join(thread, 0);
    free(heap);
    return line[0] == '1' && large2.v[4] == 5 && pair2.b == 2 && (number & 66) == 66 && made == 1 ? 0 : 9;
}
