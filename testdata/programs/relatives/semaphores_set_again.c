// expect: quiet. The value of a semaphore of System V is set to release a thread that waits for it.
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/sem.h>
static int id, x, seen;
static void *waits(void *_) {
    struct sembuf down = {0, -1, 0};
    semop(id, &down, 1);
    seen = x;
    return _;
}
int main(void) {
    pthread_t t;
    id = semget(IPC_PRIVATE, 1, 0600);
    semctl(id, 0, SETVAL, 0);
    pthread_create(&t, 0, waits, 0);
    x = 1;
    semctl(id, 0, SETVAL, 1);
    pthread_join(t, 0);
    semctl(id, 0, IPC_RMID);
    return seen != 1;
}
