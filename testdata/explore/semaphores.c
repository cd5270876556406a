// A buffer guarded by semaphores: the lock is taken before the wait for an item.
#include "classic.h"

static sem_t mutex, items;
static int count;

static void *consume(void *unused) {
    sem_wait(IF_REPAIRED(&items, &mutex));
    sem_wait(IF_REPAIRED(&mutex, &items));
    count--;
    sem_post(&mutex);
    return unused;
}

static void *produce(void *unused) {
    sem_wait(&mutex);
    count++;
    sem_post(&mutex);
    sem_post(&items);
    return unused;
}

int main(void) {
    sem_init(&mutex, 0, 1);
    sem_init(&items, 0, 0);
    TOGETHER(consume, produce);
}
