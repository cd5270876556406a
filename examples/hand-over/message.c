/* A message is written without a lock, then handed over by a flag under a lock. That is correct, although no lock is
 * held at both accesses to the message. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int message, is_ready;

static void *send(void *unused) {
    message = 41;
    pthread_mutex_lock(&lock);
    is_ready = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *receive(void *unused) {
    for (int received = 0; !received;) {
        usleep(20000);
        pthread_mutex_lock(&lock);
        received = is_ready;
        pthread_mutex_unlock(&lock);
    }
    message++;
    return unused;
}

int main(void) {
    pthread_t sender, receiver;
    pthread_create(&receiver, NULL, receive, NULL);
    pthread_create(&sender, NULL, send, NULL);
    pthread_join(sender, NULL);
    pthread_join(receiver, NULL);
    printf("received %d\n", message);
    return 0;
}
