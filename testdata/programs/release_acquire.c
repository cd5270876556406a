// The same as relaxed_mp.c with a flag that releases and acquires: nothing is wrong.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
int x;
atomic_int f;
static void *t2(void *p) { x = 1; atomic_store_explicit(&f, 1, memory_order_release); return p; }
static void *t1(void *p) { while (!atomic_load_explicit(&f, memory_order_acquire)) usleep(500); x = 2; return p; }
int main(void) { pthread_t a, b; pthread_create(&b, 0, t2, 0); pthread_create(&a, 0, t1, 0); pthread_join(a, 0); pthread_join(b, 0); return x != 2; }
