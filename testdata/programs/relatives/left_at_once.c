// expect: PREDICTED race. The process ends without a word to anybody, before its threads have begun.
#include <pthread.h>
#include <unistd.h>
int x;
static void *work(void *p) {
    x++;
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    _exit(0);
}
