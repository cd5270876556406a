// Looks like a hang for longer than one is waited for, and is none: each way to be woken from outside the threads.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static void handler(int n) { (void)n; sem_post(&s); }
int main(int n, char **v)
{
    const char *how = v[n - 1];
    if (!strcmp(how, "timed")) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_sec += 1;
        pthread_mutex_lock(&m);
        return pthread_cond_timedwait(&c, &m, &t) != ETIMEDOUT;
    }
    if (!strcmp(how, "signal")) {
        sem_init(&s, 0, 0);
        signal(SIGALRM, handler);
        alarm(1);
        while (sem_wait(&s) && errno == EINTR) ;
        return 0;
    }
    if (!strcmp(how, "process")) {
        sem_t *p = mmap(0, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        sem_init(p, 1, 0);
        if (!fork()) { sleep(1); sem_post(p); _exit(0); }
        sem_wait(p);
        wait(0);
        return 0;
    }
    return 9;
}
