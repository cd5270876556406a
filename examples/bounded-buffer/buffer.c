/* A bounded buffer between one producer and one consumer, without locks. The producer moves the end
 * forward before it has stored the item. */
#include <foresee.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define CAPACITY 2
#define ITEMS 3

static struct {
    int items[CAPACITY];
    atomic_uint begin, end;
} ring;

static void put(int item) {
    unsigned end = atomic_load(&ring.end);
    while (end - atomic_load(&ring.begin) == CAPACITY)
        usleep(1000);
    atomic_store(&ring.end, end + 1);
    ring.items[end % CAPACITY] = item;
}

static int take(void) {
    unsigned begin = atomic_load(&ring.begin);
    while (begin == atomic_load(&ring.end))
        usleep(1000);
    FORESEE_EVENT("take", begin % CAPACITY);
    int item = ring.items[begin % CAPACITY];
    ring.items[begin % CAPACITY] = 0;
    atomic_store(&ring.begin, begin + 1);
    return item;
}

static void *produce(void *unused) {
    for (int i = 1; i <= ITEMS; i++)
        put(i * 10);
    return unused;
}

static void *consume(void *sum) {
    for (int i = 0; i < ITEMS; i++) {
        usleep(10000);
        *(int *)sum += take();
    }
    return NULL;
}

int main(void) {
    pthread_t producer, consumer;
    int sum = 0;
    pthread_create(&producer, NULL, produce, NULL);
    pthread_create(&consumer, NULL, consume, &sum);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    printf("sum %d\n", sum);
    return 0;
}
