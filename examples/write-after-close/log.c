/* A logger thread writes lines; the main thread closes the log when it believes that it is done. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int file;

static void log_open(void) {
    file = open("/dev/null", O_WRONLY);
}

static void log_write(const char *line) {
    if (write(file, line, strlen(line)) < 0)
        perror("log_write");
}

static void log_close(void) {
    close(file);
}

static void *worker(void *unused) {
    log_write("starting\n");
    log_write("working\n");
    log_write("done\n");
    return unused;
}

int main(void) {
    pthread_t thread;
    log_open();
    pthread_create(&thread, NULL, worker, NULL);
    usleep(100000); /* "long enough" */
    log_close();
    pthread_join(thread, NULL); /* one line too late */
    puts("closed");
    return 0;
}
