/* A worker takes jobs from a queue until it is told to stop. Shutting down empties the queue and gives
 * up what jobs need, but does not wait for the one that was taken last. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define JOBS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int jobs[JOBS], count, stopping;
static int database = 1; /* what jobs need */
static atomic_int done;

static void submit(int job) {
    pthread_mutex_lock(&lock);
    jobs[count++] = job;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

/* The next job, or 0 when there will be no more. */
static int next_job(void) {
    pthread_mutex_lock(&lock);
    while (count == 0 && !stopping)
        pthread_cond_wait(&filled, &lock);
    int job = count > 0 ? jobs[--count] : 0;
    pthread_mutex_unlock(&lock);
    return job;
}

static void run_job(int job) {
    usleep(100000 * job);
    atomic_fetch_add(&done, 1);
}

static void *worker(void *unused) {
    for (int job = next_job(); job != 0; job = next_job())
        run_job(job);
    return unused;
}

static void release_jobs(void) {
    pthread_mutex_lock(&lock);
    count = 0;
    stopping = 1;
    database = 0;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&lock);
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    submit(3);
    usleep(100000); /* it has begun by now, so it found its database */
    release_jobs();
    pthread_join(thread, NULL);
    printf("%d job done\n", atomic_load(&done));
    return 0;
}
