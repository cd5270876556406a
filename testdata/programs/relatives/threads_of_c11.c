// expect: complete. Threads, a mutex, a condition, storage of threads and a one-time initialisation of C11.
#include <threads.h>
static mtx_t m;
static cnd_t c;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static int ready, n;
static void start(void) { n = 1; }
static int waits(void *p) {
    call_once(&once, start);
    mtx_lock(&m);
    while (!ready) cnd_wait(&c, &m);
    n++;
    mtx_unlock(&m);
    tss_set(key, p);
    return tss_get(key) != p;
}
int main(void) {
    thrd_t t, u;
    int x, y;
    mtx_init(&m, mtx_plain);
    cnd_init(&c);
    tss_create(&key, 0);
    thrd_create(&t, waits, &t);
    thrd_create(&u, waits, &u);
    call_once(&once, start);
    mtx_lock(&m);
    ready = 1;
    cnd_broadcast(&c);
    mtx_unlock(&m);
    thrd_join(t, &x);
    thrd_join(u, &y);
    return x || y || n != 3;
}
