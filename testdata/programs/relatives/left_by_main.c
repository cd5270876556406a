// expect: PREDICTED race. main ends by itself, and the threads go on.
#include <pthread.h>
int x;
static void *work(void *p) {
    x++;
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    pthread_exit(0);
}
