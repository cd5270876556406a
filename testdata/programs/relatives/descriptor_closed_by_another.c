// expect: doubt. Another thread closes the descriptor, and does not wait until what is kept by it was used.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
static int by_number[1024];
static atomic_int opened = -1;
static void *uses(void *_) {
    int own = open("/dev/null", O_RDONLY);
    atomic_store(&opened, own);
    by_number[own]++;
    return _;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, uses, 0);
    while (atomic_load(&opened) < 0) {}
    close(atomic_load(&opened));
    int mine = open("/dev/null", O_RDONLY);
    by_number[mine]++;
    close(mine);
    pthread_join(t, 0);
    return 0;
}
