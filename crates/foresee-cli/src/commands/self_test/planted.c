#include <pthread.h>
#include <stdio.h>

int planted;

static void *add(void *unused) {
    (void)unused;
    planted++;
    return 0;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, add, 0);
    pthread_join(one, 0);
    pthread_create(&one, 0, add, 0);
    pthread_create(&two, 0, add, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    printf("%d\n", planted);
    return 0;
}
