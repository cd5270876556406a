// A transfer checks the balance and takes the money in two critical sections.
#include "classic.h"

static int balance = 10;
static Mutex m = MUTEX;

static void *withdraw(void *unused) {
    lock(&m);
    int is_enough = balance >= 7;
    IF_REPAIRED((void)0, unlock(&m));
    IF_REPAIRED((void)0, lock(&m));
    if (is_enough)
        balance -= 7;
    unlock(&m);
    return unused;
}

int main(void) {
    TOGETHER(withdraw, withdraw);
    assert(balance >= 0);
}
