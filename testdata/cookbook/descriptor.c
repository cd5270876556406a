#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "foresee.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int log_open(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    FORESEE_EVENT("open", fd);
    return fd;
}

static void log_write(int fd, const char *text, size_t size) {
    pthread_mutex_lock(&lock);
    FORESEE_EVENT("write", fd);
    if (write(fd, text, size) < 0)
        _exit(1);
    pthread_mutex_unlock(&lock);
}

static void log_close(int fd) {
    pthread_mutex_lock(&lock);
    FORESEE_EVENT("close", fd);
    close(fd);
    pthread_mutex_unlock(&lock);
}

static void *work(void *p) {
    log_write((int)(intptr_t)p, "done\n", 5);
    return p;
}

int main(void) {
    int fd = log_open("/dev/null");
    pthread_t worker;
    pthread_create(&worker, 0, work, (void *)(intptr_t)fd);
#ifdef RIGHT
    pthread_join(worker, 0);
    log_close(fd);
#else
    usleep(100000);
    log_close(fd);
    pthread_join(worker, 0);
#endif
    return 0;
}
