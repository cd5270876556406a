/* C11's threads.
expect
main: fork(T1) join(T1) try_for(m) acq(m) try_for(m) wait_begin(c,m) wait_end(c,m) rel(m) notify(c) notify_all(c) vr(o)=1
T1: acq(m) try(m) acq(m) w(x)=1 rel(m) rel(m) w(ran)=1 vw(o)=1
*/
#include <assert.h>
#include <threads.h>
#include <time.h>

mtx_t m;
cnd_t c;
once_flag o = ONCE_FLAG_INIT;
int x, ran;

static void init(void) { ran = 1; }

static int other(void *_) {
    mtx_lock(&m);
    mtx_trylock(&m);
    x = 1;
    mtx_unlock(&m);
    mtx_unlock(&m);
    call_once(&o, init);
    return 42;
}

int main(void) {
    thrd_t t;
    int result;
    struct timespec soon;
    mtx_init(&m, mtx_recursive | mtx_timed);
    cnd_init(&c);
    thrd_create(&t, other, 0);
    thrd_join(t, &result);
    assert(result == 42);
    timespec_get(&soon, TIME_UTC);
    mtx_timedlock(&m, &soon);
    assert(cnd_timedwait(&c, &m, &soon) == thrd_timedout);
    mtx_unlock(&m);
    cnd_signal(&c);
    cnd_broadcast(&c);
    call_once(&o, init);
    return 0;
}
