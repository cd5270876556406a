/* A controller opens a valve as the water in a tank rises; nothing makes the water wait for it. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

int w = 20; /* water level */
int v = 40; /* opening of the valve */

static void *tank(void *unused) {
    w = 24;
    usleep(10000);
    w = 27;
    usleep(20000);
    w = 31;
    return unused;
}

static void *valve(void *unused) {
    usleep(5000);
    v = 60; /* in time, but only because the water was slow */
    usleep(35000);
    v = 70;
    return unused;
}

int main(void) {
    pthread_t rising, opening;
    pthread_create(&rising, NULL, tank, NULL);
    pthread_create(&opening, NULL, valve, NULL);
    pthread_join(rising, NULL);
    pthread_join(opening, NULL);
    printf("water %d, valve %d\n", w, v);
    return 0;
}
