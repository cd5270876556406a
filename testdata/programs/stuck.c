// Programs that hang forever in the observed run, one for each argument.
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static pthread_barrier_t b;
static pthread_t a[2];
static const char *how;
static void *first(void *p)
{
    if (!strcmp(how, "self")) { pthread_mutex_lock(&m); pthread_mutex_lock(&m); }
    if (!strcmp(how, "kept")) pthread_mutex_lock(&m);
    if (!strcmp(how, "cond")) { pthread_mutex_lock(&m); pthread_cond_wait(&c, &m); }
    if (!strcmp(how, "sem")) sem_wait(&s);
    if (!strcmp(how, "barrier")) pthread_barrier_wait(&b);
    if (!strcmp(how, "join")) { usleep(20000); pthread_join(a[1], 0); }
    return p;
}
static void *second(void *p)
{
    usleep(20000);
    if (!strcmp(how, "kept")) pthread_mutex_lock(&m);
    if (!strcmp(how, "join")) pthread_join(a[0], 0);
    return p;
}
int main(int n, char **v)
{
    how = v[n - 1];
    sem_init(&s, 0, 0);
    pthread_barrier_init(&b, 0, 3);
    pthread_create(&a[0], 0, first, 0);
    pthread_create(&a[1], 0, second, 0);
    if (!strcmp(how, "join")) pthread_exit(0);
    pthread_join(a[0], 0);
    pthread_join(a[1], 0);
    return 0;
}
