/* Main waits until the worker has set a flag, under the lock: however early that happens, no thread waits in vain. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static int is_done;

static void *work(void *unused) {
    usleep(500000);
    pthread_mutex_lock(&lock);
    is_done = 1;
    pthread_cond_signal(&done);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    pthread_mutex_lock(&lock);
    while (!is_done) pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(worker, NULL);
    printf("done\n");
    return 0;
}
