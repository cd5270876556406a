/* A producer hands jobs to a queue that the main thread shuts down. Every access is under the lock, but
 * nothing makes the producer look whether the queue still takes jobs. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define JOBS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int jobs[JOBS], count, closed;

static void submit(int job) {
    jobs[count++] = job;
}

static void shut_down(void) {
    closed = 1;
}

static void *producer(void *unused) {
    for (int job = 1; job <= 3; job++) {
        pthread_mutex_lock(&lock);
        submit(job);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, producer, NULL);
    usleep(200000); /* everything has been handed over by now */
    pthread_mutex_lock(&lock);
    shut_down();
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    printf("%d jobs to do\n", count);
    return 0;
}
