// expect: quiet. A set of signals is made by libc, and a signal orders.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static sigset_t set, before;
int x;
static void *a(void *p) {
    x = 1;
    kill(getpid(), SIGUSR1);
    return p;
}
static void *b(void *p) {
    int signal;
    sigwait(&set, &signal);
    x = 2;
    return p;
}
int main(void) {
    pthread_t s, t;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    pthread_create(&s, 0, a, 0);
    pthread_create(&t, 0, b, 0);
    pthread_join(s, 0);
    pthread_join(t, 0);
    return x != 2 || sigismember(&before, SIGUSR1);
}
