// Two deposits that are not atomic: one is lost.
#include "classic.h"

static int balance = 10;
static Mutex m = MUTEX;

static void *deposit(void *unused) {
    IF_REPAIRED(lock(&m), (void)0);
    int now = balance;
    balance = now + 5;
    IF_REPAIRED(unlock(&m), (void)0);
    return unused;
}

int main(void) {
    TOGETHER(deposit, deposit);
    assert(balance == 20);
}
