/* Correct: what no hook sees tells the other thread that the configuration is ready, with a mutex as it must be. Whoever
   leaves the write out finds a false race on `config`, and a wait that seems endless. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static long ready;
static int config, idle;

/* libc writes to the memory behind such a file by itself, when it is closed. */
static void set_unseen(long *what, char to) {
    FILE *file = fmemopen(what, sizeof *what, "r+");
    fputc(to, file);
    fclose(file);
}

static void *consumer(void *unused) {
    pthread_mutex_lock(&m);
    while (!ready) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    return config == 7 ? unused : &idle;
}

static void *producer(void *unused) {
    config = 7;
    pthread_mutex_lock(&m);
    set_unseen(&ready, 1);
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    return unused;
}

/* Waits for nothing in particular, and has a step between what was known and what is seen. */
static void *bystander(void *unused) {
    pthread_mutex_lock(&m);
    while (!ready) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    return unused;
}

int main(void) {
    pthread_t one, two, three;
    void *out;
    pthread_create(&one, 0, consumer, 0);
    pthread_create(&two, 0, bystander, 0);
    pthread_create(&three, 0, producer, 0);
    pthread_join(three, 0);
    pthread_join(two, 0);
    pthread_join(one, &out);
    return out != 0;
}
