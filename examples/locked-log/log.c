/* As write-after-close, but with a lock around everything: there is no data race for a sanitizer to
 * see, and the order of the critical sections is all that keeps the log open. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file, lines;

static void log_open(void) {
    pthread_mutex_lock(&lock);
    file = open("/dev/null", O_WRONLY);
    pthread_mutex_unlock(&lock);
}

static void log_write(const char *line) {
    lines++;
    if (write(file, line, strlen(line)) < 0)
        perror("log_write");
}

static void log_close(void) {
    close(file);
}

static void *worker(void *unused) {
    pthread_mutex_lock(&lock);
    log_write("starting\n");
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    log_write("done\n");
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    log_open();
    pthread_create(&thread, NULL, worker, NULL);
    usleep(200000); /* "long enough" */
    pthread_mutex_lock(&lock);
    log_close();
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL); /* one line too late */
    puts("closed");
    return 0;
}
