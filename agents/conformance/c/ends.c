/* Ends as its argument says, after a write that must be in the log. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int shared, before_the_end, child_only, in_handler, in_cleanup, in_destructor;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;

__attribute__((constructor)) static void early(void) { shared = 1; }

static void *toucher(void *_) {
    shared++;
    return _;
}

static void handler(int n) { in_handler = n; }

static void cleanup(void *_) {
    in_cleanup = 1;
    pthread_mutex_unlock(&m);
}

static void *waiter(void *_) {
    pthread_mutex_lock(&m);
    pthread_cleanup_push(cleanup, 0);
    for (;;) pthread_cond_wait(&c, &m);
    pthread_cleanup_pop(1);
    return _;
}

static void destructor(void *_) { in_destructor = 1; }

static void *with_key(void *_) {
    pthread_setspecific(key, &key);
    return _;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : getenv("HOW");
    pthread_t t;
    if (!how) how = "exit";
    pthread_create(&t, 0, toucher, 0);
    pthread_join(t, 0);
    before_the_end = 7;
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(how, "_exit")) _exit(0);
    if (!strcmp(how, "exec")) {
        setenv("HOW", "exit", 1);
        execv(argv[0], (char *[]){argv[0], 0});
    }
    if (!strcmp(how, "fork")) {
        pid_t pid = fork();
        if (pid == 0) {
            child_only = 5;
            pthread_create(&t, 0, toucher, 0);
            pthread_join(t, 0);
            exit(shared == 3 ? 0 : 1);
        }
        int status;
        waitpid(pid, &status, 0);
        if (status) return 1;
    }
    if (!strcmp(how, "signal")) {
        signal(SIGUSR1, handler);
        raise(SIGUSR1);
        if (in_handler != SIGUSR1) return 1;
    }
    if (!strcmp(how, "cancel")) {
        pthread_create(&t, 0, waiter, 0);
        usleep(20000);
        pthread_cancel(t);
        pthread_join(t, 0);
        if (in_cleanup != 1) return 1;
    }
    if (!strcmp(how, "key")) {
        pthread_key_create(&key, destructor);
        pthread_create(&t, 0, with_key, 0);
        pthread_join(t, 0);
        if (in_destructor != 1) return 1;
    }
    if (!strcmp(how, "detach")) {
        pthread_create(&t, 0, toucher, 0);
        pthread_detach(t);
        for (int i = 0; i < 5000 && *(volatile int *)&shared != 3; i++) usleep(1000);
    }
    errno = 77;
    pthread_mutex_lock(&m);
    shared++;
    pthread_mutex_unlock(&m);
    if (errno != 77) return 2;
    return 0;
}
