/* A write of `other` that no property asks about stands between two steps of the violating order. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
atomic_int x, y, z, other; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *a(void *p) { atomic_store(&x, 1); return p; }
static void *b(void *p) { usleep(20000); atomic_store(&y, 1); pthread_mutex_lock(&m); other++; pthread_mutex_unlock(&m); return p; }
static void *c(void *p) { usleep(60000); atomic_store(&z, 1); return p; }
int main(void) { pthread_t t[3]; pthread_create(t, 0, a, 0); pthread_create(t + 1, 0, b, 0); pthread_create(t + 2, 0, c, 0);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0); return 0; }
