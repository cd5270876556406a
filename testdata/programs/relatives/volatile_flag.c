// expect: PREDICTED race. A volatile variable orders nothing.
#include <pthread.h>
#include <unistd.h>
int x;
volatile int flag;
static void *a(void *p) {
    x = 5;
    flag = 1;
    return p;
}
static void *b(void *p) {
    while (!flag) usleep(200);
    x++;
    return p;
}
int main(void) {
    pthread_t s, t;
    pthread_create(&s, 0, a, 0);
    pthread_create(&t, 0, b, 0);
    pthread_join(s, 0);
    pthread_join(t, 0);
    return x != 6;
}
