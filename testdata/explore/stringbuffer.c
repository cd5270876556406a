// A buffer is appended to another: its length is read, then its contents, in two critical sections.
#include "classic.h"

static char text[8] = "abcd";
static int length = 4;
static Mutex m = MUTEX;

static void *append(void *unused) {
    char copy[8];
    lock(&m);
    int n = length;
    IF_REPAIRED((void)0, unlock(&m));
    IF_REPAIRED((void)0, lock(&m));
    assert(n <= length);
    for (int i = 0; i < n; i++)
        copy[i] = text[i];
    unlock(&m);
    (void)copy;
    return unused;
}

static void *erase(void *unused) {
    lock(&m);
    length = 2;
    unlock(&m);
    return unused;
}

int main(void) {
    TOGETHER(append, erase);
}
