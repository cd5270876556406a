// Three philosophers who all take the left fork first.
#include "classic.h"

enum { SEATS = 3 };
static Mutex forks[SEATS] = {MUTEX, MUTEX, MUTEX};
static int meals;

static void *dine(void *seat) {
    int left = (int)(long)seat, right = (left + 1) % SEATS;
#ifdef REPAIRED
    if (left > right) {
        int swap = left;
        left = right;
        right = swap;
    }
#endif
    lock(&forks[left]);
    lock(&forks[right]);
    meals = 1;
    unlock(&forks[right]);
    unlock(&forks[left]);
    return 0;
}

int main(void) {
    TOGETHER(dine, dine, dine);
    assert(meals == 1);
}
