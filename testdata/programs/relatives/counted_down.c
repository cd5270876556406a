// expect: complete. The last user of an object frees it, and knows of all other uses.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct object {
    atomic_int users;
    int value;
};
static void *use(void *given) {
    struct object *object = given;
    if (object->value != 7) abort();
    if (atomic_fetch_sub_explicit(&object->users, 1, memory_order_release) == 1) {
        atomic_thread_fence(memory_order_acquire);
        free(object);
    }
    return 0;
}
int main(void) {
    struct object *object = malloc(sizeof *object);
    atomic_init(&object->users, 2);
    object->value = 7;
    pthread_t a, b;
    pthread_create(&a, 0, use, object);
    pthread_create(&b, 0, use, object);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
