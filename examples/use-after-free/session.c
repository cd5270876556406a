/* A worker looks up whether the session is open in one section and counts a request in the next; whoever ends the session in
 * between frees it first. Every access is under the lock, so nothing races, and in most runs the worker is done in time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct session {
    int requests;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_open = 1;
static struct session *session;

static int look_up(void) {
    pthread_mutex_lock(&lock);
    int is = is_open;
    pthread_mutex_unlock(&lock);
    return is;
}

static void *serve(void *own) {
    struct session *mine = own;
    if (look_up()) {
        pthread_mutex_lock(&lock);
        mine->requests++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *end(void *own) {
    usleep(20000);
    pthread_mutex_lock(&lock);
    is_open = 0;
    free(own);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t worker, owner;
    session = calloc(1, sizeof *session);
    pthread_create(&worker, NULL, serve, session);
    pthread_create(&owner, NULL, end, session);
    pthread_join(worker, NULL);
    pthread_join(owner, NULL);
    puts("served");
    return 0;
}
