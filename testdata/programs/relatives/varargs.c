// expect: complete. A structure goes by value through variable arguments, by way of the stack.
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>
struct S {
    long a, b, c;
    int ready;
};
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
struct S s;
int x;
static __attribute__((noinline)) int look(int n, ...) {
    va_list list;
    va_start(list, n);
    struct S v = va_arg(list, struct S);
    va_end(list);
    return v.ready;
}
static void *a(void *p) {
    x = 1;
    pthread_mutex_lock(&m);
    s.ready = 1;
    pthread_mutex_unlock(&m);
    return p;
}
static void *b(void *p) {
    for (int ready = 0; !ready; usleep(200)) {
        pthread_mutex_lock(&m);
        ready = look(1, s);
        pthread_mutex_unlock(&m);
    }
    x = 2;
    return p;
}
int main(void) {
    pthread_t s, t;
    pthread_create(&s, 0, a, 0);
    pthread_create(&t, 0, b, 0);
    pthread_join(s, 0);
    pthread_join(t, 0);
    return x != 2;
}
