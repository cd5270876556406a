// Correct. A lock that is taken and given back by inline assembly alone orders what is done under it.
#include <pthread.h>
#include <sched.h>
static volatile int word;
static int count;
static void take(void) {
    for (;;) {
        int old = 1;
        __asm__ volatile("xchgl %0, %1" : "+r"(old), "+m"(word) : : "memory");
        if (!old) return;
        sched_yield();
    }
}
static void give(void) { __asm__ volatile("lock; decl %0" : "+m"(word) : : "memory", "cc"); }
static void *counts(void *p) {
    for (int i = 0; i < 20; i++) { take(); count++; give(); }
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, counts, 0);
    pthread_create(&b, 0, counts, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return count != 40;
}
