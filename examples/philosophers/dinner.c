/* Three philosophers, three forks, everyone takes the left one first. They come one after the other, so this dinner
 * ends. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define SEATS 3

static pthread_mutex_t forks[SEATS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int meals[SEATS];

static void *dine(void *at) {
    int seat = *(int *)at;
    usleep(20000u * (unsigned)seat);
    pthread_mutex_lock(&forks[seat]);
    pthread_mutex_lock(&forks[(seat + 1) % SEATS]);
    meals[seat]++;
    pthread_mutex_unlock(&forks[(seat + 1) % SEATS]);
    pthread_mutex_unlock(&forks[seat]);
    return NULL;
}

int main(void) {
    pthread_t philosophers[SEATS];
    int seats[SEATS], sum = 0;
    for (int i = 0; i < SEATS; i++) {
        seats[i] = i;
        pthread_create(&philosophers[i], NULL, dine, &seats[i]);
    }
    for (int i = 0; i < SEATS; i++) {
        pthread_join(philosophers[i], NULL);
        sum += meals[i];
    }
    printf("%d meals\n", sum);
    return 0;
}
