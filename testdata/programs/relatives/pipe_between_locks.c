// expect: doubt. Two threads write to a pipe and take a lock, and what they do besides is in no order by either.
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
int x, y, z[2];
static void *first(void *_) {
    x = 1;
    if (write(ends[1], "a", 1) != 1) y = 9;
    pthread_mutex_lock(&m);
    z[0]++;
    pthread_mutex_unlock(&m);
    return _;
}
static void *second(void *_) {
    usleep(200000);
    pthread_mutex_lock(&m);
    z[1]++;
    pthread_mutex_unlock(&m);
    if (write(ends[1], "b", 1) != 1) y = 9;
    y = x;
    return _;
}
int main(void) {
    pthread_t t, u;
    char c;
    if (pipe(ends)) return 1;
    pthread_create(&t, 0, first, 0);
    pthread_create(&u, 0, second, 0);
    for (int i = 0; i < 2; i++)
        if (read(ends[0], &c, 1) != 1) return 1;
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
