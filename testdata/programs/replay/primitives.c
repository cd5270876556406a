// One program for each primitive, chosen by the first argument. In every one of them two threads use the primitive and then
// race for `shared`, or wait for each other: what is predicted happens only if replay controls the primitive.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static int shared, ready, turns;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t left = PTHREAD_RWLOCK_INITIALIZER, right = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore, none;
static mtx_t standard;
static cnd_t woken;
static int ends[2], counter;

static struct timespec in(long milliseconds) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += milliseconds * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

// Two read-write locks in opposite orders, once for sharing.
static void *rwlock_1(void *p) {
    pthread_rwlock_wrlock(&left);
    pthread_rwlock_rdlock(&right);
    pthread_rwlock_unlock(&right);
    pthread_rwlock_unlock(&left);
    return p;
}
static void *rwlock_2(void *p) {
    pthread_rwlock_wrlock(&right);
    pthread_rwlock_wrlock(&left);
    pthread_rwlock_unlock(&left);
    pthread_rwlock_unlock(&right);
    return p;
}

// Sections of readers and a writer, and a race beside them.
static void *readers_1(void *p) {
    pthread_rwlock_rdlock(&left);
    int seen = turns;
    pthread_rwlock_unlock(&left);
    shared = seen;
    return p;
}
static void *readers_2(void *p) {
    pthread_rwlock_wrlock(&left);
    turns++;
    pthread_rwlock_unlock(&left);
    shared = 2;
    return p;
}

static void *spin_1(void *p) {
    shared = 1;
    pthread_spin_lock(&spin);
    turns = 1;
    pthread_spin_unlock(&spin);
    return p;
}
static void *spin_2(void *p) {
    pthread_spin_lock(&spin);
    turns = 2;
    pthread_spin_unlock(&spin);
    shared = 2;
    return p;
}

static void *semaphore_1(void *p) {
    sem_wait(&semaphore);
    turns++;
    sem_post(&semaphore);
    shared = 1;
    return p;
}
static void *semaphore_2(void *p) {
    struct timespec never = in(20000), past = in(-1);
    sem_timedwait(&semaphore, &never);
    turns++;
    sem_post(&semaphore);
    while (sem_trywait(&semaphore) && sem_timedwait(&semaphore, &past) && errno != ETIMEDOUT) {}
    shared = 2;
    return p;
}

static void *barrier_1(void *p) {
    turns = 1;
    pthread_barrier_wait(&barrier);
    shared++;
    return p;
}
static void *barrier_2(void *p) {
    pthread_barrier_wait(&barrier);
    shared += turns;
    return p;
}

static void make(void) { turns = 7; }
static void *once_1(void *p) {
    pthread_once(&once, make);
    shared = turns;
    return p;
}

// A lock that is not to be had in time.
static void *timed_1(void *p) {
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_lock(&other);
    usleep(30000);
    pthread_mutex_unlock(&other);
    shared = 1;
    return p;
}
static void *timed_2(void *p) {
    struct timespec soon = in(5), late = in(20000);
    if (pthread_mutex_timedlock(&other, &soon) == 0)
        pthread_mutex_unlock(&other);
    pthread_mutex_timedlock(&mutex, &late);
    turns = ready;
    pthread_mutex_unlock(&mutex);
    shared = 2;
    return p;
}

// Waits whose time is over.
static void *late_1(void *p) {
    pthread_mutex_lock(&other);
    pthread_rwlock_wrlock(&left);
    usleep(15000);
    pthread_rwlock_unlock(&left);
    pthread_mutex_unlock(&other);
    sem_post(&none);
    shared = 1;
    return p;
}
static void *late_2(void *p) {
    struct timespec soon = in(5);
    if (pthread_mutex_timedlock(&other, &soon) == 0)
        pthread_mutex_unlock(&other);
    shared = 2;
    return p;
}
static void *late_3(void *p) {
    struct timespec soon = in(5);
    if (pthread_rwlock_timedrdlock(&left, &soon) == 0)
        pthread_rwlock_unlock(&left);
    shared = 3;
    return p;
}
static void *late_4(void *p) {
    struct timespec soon = in(5);
    if (sem_timedwait(&none, &soon) == 0)
        sem_post(&none);
    shared = 4;
    return p;
}

static void *child(void *p) {
    turns++;
    return p;
}
static void *joins_1(void *p) {
    pthread_t t;
    pthread_create(&t, 0, child, 0);
    pthread_join(t, 0);
    shared = turns;
    return p;
}
static void *joins_2(void *p) {
    pthread_t t;
    pthread_create(&t, 0, rwlock_1, 0);
    struct timespec late = in(20000);
    pthread_timedjoin_np(t, 0, &late);
    shared = 2;
    return p;
}

// One thread sleeps, the other waits until the clock says so.
static void *sleeps_1(void *p) {
    usleep(20000);
    shared = 1;
    return p;
}
static void *sleeps_2(void *p) {
    struct timespec now, until = in(15);
    do {
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, 0);
        clock_gettime(CLOCK_REALTIME, &now);
    } while (now.tv_sec < until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
    shared = 2;
    return p;
}

static void *pipe_1(void *p) {
    char byte = 0;
    while (read(ends[0], &byte, 1) == 1 && byte != 3) {}
    shared = byte;
    return p;
}
static void *pipe_2(void *p) {
    for (char byte = 1; byte <= 3; byte++)
        if (write(ends[1], &byte, 1) != 1) abort();
    shared = 2;
    return p;
}

static void *pairs_1(void *p) {
    struct pollfd wish = {ends[0], POLLIN, 0};
    char text[2];
    if (poll(&wish, 1, 20000) != 1 || read(ends[0], text, 2) != 2) abort();
    shared = 1;
    return p;
}
static void *pairs_2(void *p) {
    if (write(ends[1], "hi", 2) != 2) abort();
    eventfd_t n;
    eventfd_write(counter, 3);
    eventfd_read(counter, &n);
    shared = 2;
    return p;
}

// A condition with a signal, and one that times out.
static void *conditions_1(void *p) {
    struct timespec soon = in(5);
    pthread_mutex_lock(&mutex);
    while (!ready) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_lock(&other);
    pthread_cond_timedwait(&condition, &other, &soon);
    pthread_mutex_unlock(&other);
    shared = 1;
    return p;
}
static void *conditions_2(void *p) {
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    shared = 2;
    return p;
}

static int standard_1(void *p) {
    (void)p;
    mtx_lock(&standard);
    while (!ready) cnd_wait(&woken, &standard);
    mtx_unlock(&standard);
    shared = 1;
    return 0;
}
static int standard_2(void *p) {
    (void)p;
    mtx_lock(&standard);
    ready = 1;
    cnd_signal(&woken);
    mtx_unlock(&standard);
    shared = 2;
    return 0;
}

// Locks that are tried, and recursive ones.
static void *tries_1(void *p) {
    if (pthread_mutex_trylock(&mutex) == 0) {
        turns++;
        pthread_mutex_unlock(&mutex);
    } else {
        shared = 1;
    }
    shared++;
    return p;
}

typedef void *(*body)(void *);
static const struct {
    const char *name;
    body threads[2];
} programs[] = {
    {"rwlock", {rwlock_1, rwlock_2}},       {"readers", {readers_1, readers_2}},
    {"spin", {spin_1, spin_2}},             {"semaphore", {semaphore_1, semaphore_2}},
    {"barrier", {barrier_1, barrier_2}},    {"once", {once_1, once_1}},
    {"timed", {timed_1, timed_2}},          {"joins", {joins_1, joins_2}},
    {"sleeps", {sleeps_1, sleeps_2}},       {"pipe", {pipe_1, pipe_2}},
    {"pairs", {pairs_1, pairs_2}},          {"late-mutex", {late_1, late_2}},
    {"late-rwlock", {late_1, late_3}},      {"late-semaphore", {late_1, late_4}},
    {"conditions", {conditions_1, conditions_2}}, {"tries", {tries_1, tries_1}},
};

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, 0, 2);
    sem_init(&semaphore, 0, 1);
    sem_init(&none, 0, 0);
    mtx_init(&standard, mtx_timed);
    cnd_init(&woken);
    if (strcmp(name, "pipe") == 0 && pipe(ends)) return 9;
    if (strcmp(name, "pairs") == 0) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 9;
        counter = eventfd(0, 0);
    }
    if (strcmp(name, "standard") == 0) {
        thrd_t s, t;
        thrd_create(&s, standard_1, 0);
        thrd_create(&t, standard_2, 0);
        thrd_join(s, 0);
        thrd_join(t, 0);
        return 0;
    }
    for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(name, programs[i].name) == 0) {
            pthread_t s, t;
            pthread_create(&s, 0, programs[i].threads[0], 0);
            pthread_create(&t, 0, programs[i].threads[1], 0);
            pthread_join(s, 0);
            pthread_join(t, 0);
            return 0;
        }
    return 8;
}
