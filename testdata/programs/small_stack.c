// Threads with the smallest stack that libc allows; one of them forks.
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int c;
static char buffer[100];
static void *work(void *a) {
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&m);
        c++;
        char *p = malloc(100);
        memset(p, 1, 100);
        memcpy(buffer, p, 100);
        free(realloc(p, 200));
        pthread_mutex_unlock(&m);
    }
    if (a) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(3);
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 3) abort();
    }
    return 0;
}
int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    if (pthread_attr_setstacksize(&small, 16384)) return 8;
    pthread_t t[3];
    for (int i = 0; i < 3; i++) if (pthread_create(t + i, &small, work, i ? 0 : &c)) return 9;
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    printf("%d\n", c);
    return 0;
}
