// expect: complete. Two threads write to a pipe under one lock, and main uses what they tell it.
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], slots[2], next;
static void *fills(void *_) {
    pthread_mutex_lock(&m);
    char which = (char)next;
    slots[next++] = 5;
    if (write(ends[1], &which, 1) != 1) next = 9;
    pthread_mutex_unlock(&m);
    return _;
}
int main(void) {
    pthread_t t, u;
    char which[2];
    if (pipe(ends)) return 1;
    pthread_create(&t, 0, fills, 0);
    pthread_create(&u, 0, fills, 0);
    for (int i = 0; i < 2; i++)
        if (read(ends[0], &which[i], 1) != 1) return 1;
    int sum = slots[(int)which[0]] + slots[(int)which[1]];
    pthread_join(t, 0);
    pthread_join(u, 0);
    return sum != 10;
}
