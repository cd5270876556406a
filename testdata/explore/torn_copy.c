// A structure is copied while another thread copies it: half of it is old.
#include "classic.h"

struct quote { long bid, ask, volume, stamp; };
static struct quote latest, next = {7, 7, 7, 7};
static Mutex m = MUTEX;

static void *publish(void *unused) {
    IF_REPAIRED(lock(&m), (void)0);
    latest = next;
    IF_REPAIRED(unlock(&m), (void)0);
    return unused;
}

static void *look(void *unused) {
    IF_REPAIRED(lock(&m), (void)0);
    struct quote seen = latest;
    IF_REPAIRED(unlock(&m), (void)0);
    assert(seen.bid == seen.stamp);
    return unused;
}

int main(void) {
    TOGETHER(publish, look);
}
