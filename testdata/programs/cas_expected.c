// Correct. A compare-and-exchange that fails writes what it expected.
#include <pthread.h>
#include <stdatomic.h>
static atomic_int a = 5;
static int sum;
static int value(atomic_int *v) { int expected = 0; atomic_compare_exchange_strong(v, &expected, 0); return expected; }
static void *looks(void *p) { (void)p; return (void *)(long)value(&a); }
int main(void) {
    pthread_t p, q;
    void *r;
    pthread_create(&p, 0, looks, 0);
    pthread_create(&q, 0, looks, 0);
    pthread_join(p, &r);
    sum += (long)r;
    pthread_join(q, &r);
    sum += (long)r;
    return sum != 10;
}
