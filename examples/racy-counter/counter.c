/* Two threads count without a lock. One is done before the other begins, so this run counts right. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int counter;

static void *count(void *pause) {
    usleep(*(unsigned *)pause);
    counter++;
    return NULL;
}

int main(void) {
    pthread_t first, second;
    unsigned at_once = 0, later = 20000;
    pthread_create(&first, NULL, count, &at_once);
    pthread_create(&second, NULL, count, &later);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    printf("counted to %d\n", counter);
    return 0;
}
