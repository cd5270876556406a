// Two threads count under a lock as often as the first argument says. A second argument closes all descriptors, opens as many
// files in their place, and checks that nobody else writes to them.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile long c;
static long n;
static void *count(void *a) { for (long i = 0; i < n; i++) { pthread_mutex_lock(&m); c++; pthread_mutex_unlock(&m); } return a; }
int main(int k, char **v) {
    n = atol(v[1]);
    if (k > 2) for (int i = 3; i < 900; i++) close(i);
    if (k > 2) for (int i = 3; i < 900; i++) if (open("mine", O_CREAT | O_RDWR, 0600) != i) return 7;
    pthread_t t[2];
    for (int i = 0; i < 2; i++) if (pthread_create(t + i, 0, count, 0)) return 9;
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    struct stat s;
    if (k > 2 && (stat("mine", &s) || s.st_size)) return 6;
    printf("%ld\n", c);
    return 0;
}
