// A lock-free stack without a version: a node that was popped and pushed again deceives a slow pop.
#include "classic.h"

struct Node {
    int next;
};

// Nodes are numbered from 1; zero is none. The upper half of the top is a version in the repaired one.
static struct Node nodes[4];
static atomic_uint top;

static int pop(void) {
    for (int tries = 0; tries < 2; tries++) {
        unsigned seen = atomic_load(&top);
        int node = seen & 0xffff;
        if (node == 0)
            return 0;
        unsigned next = (unsigned)nodes[node].next | IF_REPAIRED(((seen & 0xffff0000u) + 0x10000u), 0);
        if (atomic_compare_exchange_strong(&top, &seen, next))
            return node;
    }
    return 0;
}

static void push(int node) {
    for (int tries = 0; tries < 2; tries++) {
        unsigned seen = atomic_load(&top);
        nodes[node].next = seen & 0xffff;
        unsigned next = (unsigned)node | IF_REPAIRED(((seen & 0xffff0000u) + 0x10000u), 0);
        if (atomic_compare_exchange_strong(&top, &seen, next))
            return;
    }
}

static int popped[4];

static void *slow(void *unused) {
    popped[pop()]++;
    return unused;
}

static void *quick(void *unused) {
    int a = pop(), b = pop();
    if (b) {
        popped[b]++;
        push(a);
    } else if (a) {
        popped[a]++;
    }
    return unused;
}

int main(void) {
    push(2);
    push(1);
    TOGETHER(slow, quick);
    int left = pop();
    if (left)
        popped[left]++;
    assert(popped[1] <= 1 && popped[2] <= 1);
}
