/* A controller opens a valve as the water in a tank rises; nothing makes the water wait for it. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

int w = 20; /* water level */
int v = 40; /* opening of the valve */

static void *tank(void *unused) {
    w = 24;
    usleep(100000);
    w = 27;
    usleep(50000);
    w = 31;
    return unused;
}

static void *valve(void *unused) {
    v = 60; /* in time, but only because the water was slow */
    usleep(200000);
    v = 70;
    return unused;
}

int main(void) {
    pthread_t rising, opening;
    pthread_create(&opening, NULL, valve, NULL);
    pthread_create(&rising, NULL, tank, NULL);
    pthread_join(rising, NULL);
    pthread_join(opening, NULL);
    printf("water %d, valve %d\n", w, v);
    return 0;
}
