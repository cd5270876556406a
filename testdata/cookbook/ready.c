#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static int table[4];
static sem_t loaded;

static void load_table(void) {
    for (int i = 0; i < 4; i++)
        table[i] = i * i;
}

static int serve(int key) {
    return table[key];
}

static void *loader(void *p) {
    load_table();
    sem_post(&loaded);
    return p;
}

static void *server(void *p) {
#ifdef RIGHT
    sem_wait(&loaded);
#else
    usleep(100000);
#endif
    serve(3);
    return p;
}

int main(void) {
    pthread_t a, b;
    sem_init(&loaded, 0, 0);
    pthread_create(&a, 0, loader, 0);
    pthread_create(&b, 0, server, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
