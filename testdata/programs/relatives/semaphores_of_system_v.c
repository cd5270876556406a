// expect: race. A semaphore of System V with two permits does not exclude its holders.
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/sem.h>
static int id, x;
static void *adds(void *_) {
    struct sembuf down = {0, -1, 0}, up = {0, 1, 0};
    semop(id, &down, 1);
    x++;
    semop(id, &up, 1);
    return _;
}
int main(void) {
    pthread_t t;
    id = semget(IPC_PRIVATE, 1, 0600);
    semctl(id, 0, SETVAL, 2);
    pthread_create(&t, 0, adds, 0);
    adds(0);
    pthread_join(t, 0);
    semctl(id, 0, IPC_RMID);
    return x > 2;
}
