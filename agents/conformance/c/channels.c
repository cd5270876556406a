/* Threads that communicate only through files: a receive comes after its send.
expect
main: fork(T1) w(x)=1 rmw(fd(101)) rmw(fd(103)) r(y)=2 w(z)=3 rmw(fd(104)) join(T1)
T1: vr(fd(101)) rmw(fd(101)) w(got)=25185 r(x)=1 w(y)=2 r(got)=25185 rmw(fd(103)) rmw(fd(104)) r(z)=3
*/
#define _GNU_SOURCE
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

int x, y, z;
static int ends[2], pair[2], events;
char got[4];

static void *other(void *_) {
    uint64_t n;
    struct pollfd wish = {ends[0], POLLIN, 0};
    assert(poll(&wish, 1, -1) == 1);
    assert(read(ends[0], got, 2) == 2);
    assert(x == 1);
    y = 2;
    assert(send(pair[1], got, 2, 0) == 2);
    assert(read(events, &n, 8) == 8);
    assert(z == 3);
    return _;
}

int main(void) {
    pthread_t t;
    uint64_t one = 1;
    char c[2];
    assert(!pipe(ends) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    events = eventfd(0, 0);
    /* numbers that do not depend on who starts the program */
    ends[0] = dup2(ends[0], 100), ends[1] = dup2(ends[1], 101);
    pair[0] = dup2(pair[0], 102), pair[1] = dup2(pair[1], 103);
    events = dup2(events, 104);
    pthread_create(&t, 0, other, 0);
    x = 1;
    assert(write(ends[1], "ab", 2) == 2);
    assert(recv(pair[0], c, 2, 0) == 2);
    assert(y == 2);
    z = 3;
    assert(write(events, &one, 8) == 8);
    pthread_join(t, 0);
    return 0;
}
