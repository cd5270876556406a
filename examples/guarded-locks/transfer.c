/* Two locks are taken in opposite orders, but only by whoever has a third one: there is no deadlock, although a graph of
 * locks has a cycle. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static int on_the_left = 1, on_the_right = 1;

static void *move_right(void *unused) {
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&left);
    pthread_mutex_lock(&right);
    on_the_left--;
    on_the_right++;
    pthread_mutex_unlock(&right);
    pthread_mutex_unlock(&left);
    pthread_mutex_unlock(&gate);
    return unused;
}

static void *move_left(void *unused) {
    usleep(20000);
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&right);
    pthread_mutex_lock(&left);
    on_the_right--;
    on_the_left++;
    pthread_mutex_unlock(&left);
    pthread_mutex_unlock(&right);
    pthread_mutex_unlock(&gate);
    return unused;
}

int main(void) {
    pthread_t first, second;
    pthread_create(&first, NULL, move_right, NULL);
    pthread_create(&second, NULL, move_left, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    printf("%d and %d\n", on_the_left, on_the_right);
    return 0;
}
