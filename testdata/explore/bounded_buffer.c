// A consumer that is woken does not look again whether there is something.
#include "classic.h"

static int count;
static Mutex m = MUTEX;
static Condition not_empty = CONDITION;

static void *consume(void *unused) {
    lock(&m);
    IF_REPAIRED(while, if) (count == 0)
        pthread_cond_wait(&not_empty, &m);
    count--;
    assert(count >= 0);
    unlock(&m);
    return unused;
}

static void *produce(void *unused) {
    for (int i = 0; i < 2; i++) {
        lock(&m);
        count++;
        pthread_cond_broadcast(&not_empty);
        unlock(&m);
    }
    return unused;
}

int main(void) {
    TOGETHER(consume, consume, produce);
}
