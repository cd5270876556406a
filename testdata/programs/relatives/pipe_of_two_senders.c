// expect: doubt. Two threads write to a pipe, which does not order them.
#include <pthread.h>
#include <unistd.h>
int ends[2], x;
static void *first(void *p) {
    x = 1;
    write(ends[1], "a", 1);
    return p;
}
static void *second(void *p) {
    usleep(50000);
    write(ends[1], "b", 1);
    x = 2;
    return p;
}
int main(void) {
    pthread_t a, b;
    if (pipe(ends))
        return 1;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    char both[2];
    return read(ends[0], both, 2) != 2;
}
