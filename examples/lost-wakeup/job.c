/* Main waits until the worker says that it is done, but does not ask whether it has said so already. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;

static void *work(void *unused) {
    usleep(500000);
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&done);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(worker, NULL);
    printf("done\n");
    return 0;
}
