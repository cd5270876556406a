/* The nearest reads and writes cannot race, the first ones can. As race_nearest_only.std, in a program. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int z; long sum; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *reader(void *p) { pthread_mutex_lock(&m); for (int i = 0; i < 3; i++) sum += z; pthread_mutex_unlock(&m); return p; }
static void *writer(void *p) { usleep(30000); pthread_mutex_lock(&m); z = 1; pthread_mutex_unlock(&m); z = 2; return p; }
int main(void) { pthread_t a, b; pthread_create(&a, 0, reader, 0); pthread_create(&b, 0, writer, 0); pthread_join(a, 0); pthread_join(b, 0); return 0; }
