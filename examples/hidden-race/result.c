/* A result is handed on without any synchronisation. Both threads also note that they were here, each for itself but
 * under one lock, and by chance the writer does so first. Tools that take the order of these sections for an order of
 * everything around them see no race in such a run. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int writer_was_here, reader_was_here;
static int result, shown;

static void *write_result(void *unused) {
    result = 42;
    pthread_mutex_lock(&lock);
    writer_was_here = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *read_result(void *unused) {
    usleep(20000);
    pthread_mutex_lock(&lock);
    reader_was_here = 1;
    pthread_mutex_unlock(&lock);
    shown = result;
    return unused;
}

int main(void) {
    pthread_t writer, reader;
    pthread_create(&writer, NULL, write_result, NULL);
    pthread_create(&reader, NULL, read_result, NULL);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    printf("result %d\n", shown + writer_was_here + reader_was_here - 2);
    return 0;
}
