// expect: complete. Threads start others while others are joined: libc then frees the stacks of many, under a lock that a start needs.
#include <pthread.h>

struct part {
    int from, to;
    long sum;
};
static void *add_up(void *given) {
    struct part *part = given;
    if (part->to - part->from < 2) {
        for (int i = part->from; i < part->to; i++) part->sum += i;
        return 0;
    }
    int middle = (part->from + part->to) / 2;
    struct part low = {part->from, middle, 0}, high = {middle, part->to, 0};
    pthread_t t;
    pthread_create(&t, 0, add_up, &low);
    add_up(&high);
    pthread_join(t, 0);
    part->sum = low.sum + high.sum;
    return 0;
}
int main(void) {
    struct part all = {0, 40, 0};
    add_up(&all);
    return all.sum != 780;
}
