// Threads that wait for each other by descriptors, one program for each way, chosen by the first argument. At its end the two threads
// race for `shared`: that happens in a replay only if it knows which call lets which thread continue.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define NEED(what) do { if (!(what)) { perror(#what); abort(); } } while (0)

static int shared, server, counter, ends[2];
static char path[64];
static struct sockaddr_storage name;
static socklen_t size;

static void listen_at(int family, int kind) {
    if (family == AF_UNIX) {
        struct sockaddr_un *local = (struct sockaddr_un *)&name;
        snprintf(local->sun_path, sizeof local->sun_path, "/tmp/foresee-replay-%d", (int)getpid());
        strcpy(path, local->sun_path);
        size = sizeof *local;
    } else {
        struct sockaddr_in *internet = (struct sockaddr_in *)&name;
        internet->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        size = sizeof *internet;
    }
    name.ss_family = family;
    server = socket(family, kind, 0);
    NEED(bind(server, (struct sockaddr *)&name, size) == 0);
    NEED((kind & 15) == SOCK_DGRAM || listen(server, 4) == 0);
    NEED(family == AF_UNIX || getsockname(server, (struct sockaddr *)&name, &size) == 0);
}

// A connection, one message in each direction.
static void *accepts(void *p) {
    char text[4] = "";
    int end = accept(server, 0, 0);
    NEED(recv(end, text, 3, MSG_WAITALL) == 3);
    NEED(send(end, "ok", 2, 0) == 2);
    close(end);
    shared = text[0];
    return p;
}
static void *connects(void *p) {
    char text[3] = "";
    int end = socket(name.ss_family, SOCK_STREAM, 0);
    NEED(connect(end, (struct sockaddr *)&name, size) == 0);
    NEED(send(end, "abc", 3, 0) == 3);
    NEED(recv(end, text, 2, MSG_WAITALL) == 2);
    close(end);
    shared = 2;
    return p;
}

// The same without blocking calls but `poll` and `epoll_wait`.
static void *accepts_by_epoll(void *p) {
    struct epoll_event wish = {EPOLLIN, {.fd = server}}, got;
    int queue = epoll_create1(0), count = 0;
    char text[4] = "";
    NEED(epoll_ctl(queue, EPOLL_CTL_ADD, server, &wish) == 0);
    while (count < 3) {
        NEED(epoll_wait(queue, &got, 1, -1) == 1);
        if (got.data.fd == server) {
            int end = accept4(server, 0, 0, SOCK_NONBLOCK);
            if (end < 0) continue;
            wish.data.fd = end;
            NEED(epoll_ctl(queue, EPOLL_CTL_ADD, end, &wish) == 0);
        } else {
            ssize_t n = read(got.data.fd, text + count, 3 - count);
            if (n > 0) count += n;
        }
    }
    shared = text[2];
    return p;
}
static void *connects_by_poll(void *p) {
    int end = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct pollfd wish = {end, POLLOUT, 0};
    NEED(connect(end, (struct sockaddr *)&name, size) == 0 || errno == EINPROGRESS);
    NEED(poll(&wish, 1, -1) == 1);
    for (int i = 0; i < 3; i++) NEED(write(end, &"abc"[i], 1) == 1);
    shared = 2;
    return p;
}

// One server, and two clients after each other, over one listening socket.
static void *accepts_two(void *p) {
    char text[2] = "";
    for (int i = 0; i < 2; i++) {
        int end = accept(server, 0, 0);
        NEED(read(end, text + i, 1) == 1);
        NEED(write(end, "!", 1) == 1);
        close(end);
    }
    shared = text[1];
    return p;
}
static void *connects_twice(void *p) {
    for (int i = 0; i < 2; i++) {
        char answer;
        int end = socket(name.ss_family, SOCK_STREAM, 0);
        NEED(connect(end, (struct sockaddr *)&name, size) == 0);
        NEED(write(end, "x", 1) == 1);
        NEED(read(end, &answer, 1) == 1);
        close(end);
    }
    shared = 2;
    return p;
}

static void *receives_from(void *p) {
    char text[8];
    NEED(recvfrom(server, text, sizeof text, 0, 0, 0) == 2);
    NEED(recvfrom(server, text, sizeof text, 0, 0, 0) == 3);
    shared = 1;
    return p;
}
static void *sends_to(void *p) {
    int end = socket(AF_INET, SOCK_DGRAM, 0);
    NEED(sendto(end, "ab", 2, 0, (struct sockaddr *)&name, size) == 2);
    NEED(sendto(end, "abc", 3, 0, (struct sockaddr *)&name, size) == 3);
    shared = 2;
    return p;
}

static void *opens_to_read(void *p) {
    char text[4];
    FILE *end = fopen(path, "r");
    NEED(end && fgets(text, sizeof text, end));
    shared = 1;
    return p;
}
static void *opens_to_write(void *p) {
    int end = open(path, O_WRONLY);
    NEED(end >= 0 && write(end, "ab\n", 3) == 3);
    shared = 2;
    return p;
}

static void *selects(void *p) {
    char text[2];
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    NEED(select(ends[0] + 1, &set, 0, 0, 0) == 1 && read(ends[0], text, 2) == 2);
    shared = 1;
    return p;
}
static void *writes(void *p) {
    NEED(write(ends[1], "hi", 2) == 2);
    shared = 2;
    return p;
}

static void *counts_down(void *p) {
    eventfd_t n;
    for (int i = 0; i < 3; i++) NEED(eventfd_read(counter, &n) == 0);
    shared = 1;
    return p;
}
static void *counts_up(void *p) {
    NEED(eventfd_write(counter, 3) == 0);
    shared = 2;
    return p;
}

// More than the pipe holds, to its end. It holds one page, so that no read gets less, whoever is faster.
static void *reads_all(void *p) {
    static char some[4096];
    while (read(ends[0], some, sizeof some) > 0) {}
    shared = 1;
    return p;
}
static void *writes_all(void *p) {
    static char much[5 * 4096];
    NEED(write(ends[1], much, sizeof much) == sizeof much);
    close(ends[1]);
    shared = 2;
    return p;
}

static void *splices(void *p) {
    int into[2];
    char text[2];
    NEED(pipe(into) == 0);
    NEED(splice(ends[0], 0, into[1], 0, 2, 0) == 2 && read(into[0], text, 2) == 2);
    shared = 1;
    return p;
}

// A reader that tries again and again.
static void *tries(void *p) {
    char byte;
    while (read(ends[0], &byte, 1) != 1) NEED(errno == EAGAIN);
    shared = 1;
    return p;
}

static const struct { const char *name; void *(*threads[2])(void *); int family, kind; } programs[] = {
    {"internet", {accepts, connects}, AF_INET, SOCK_STREAM},
    {"local", {accepts, connects}, AF_UNIX, SOCK_STREAM},
    {"epoll", {accepts_by_epoll, connects_by_poll}, AF_INET, SOCK_STREAM | SOCK_NONBLOCK},
    {"twice", {accepts_two, connects_twice}, AF_INET, SOCK_STREAM},
    {"datagrams", {receives_from, sends_to}, AF_INET, SOCK_DGRAM},
    {"named", {opens_to_read, opens_to_write}, 0, 1},
    {"select", {selects, writes}, 0, 0},
    {"events", {counts_down, counts_up}, 0, 0},
    {"full", {reads_all, writes_all}, 0, 0},
    {"splice", {splices, writes}, 0, 0},
    {"tries", {tries, writes}, 0, O_NONBLOCK},
};

int main(int argc, char **argv) {
    for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(argc > 1 ? argv[1] : "", programs[i].name)) continue;
        int family = programs[i].family, kind = programs[i].kind;
        counter = eventfd(0, EFD_SEMAPHORE);
        NEED(pipe2(ends, kind == O_NONBLOCK ? O_NONBLOCK : 0) == 0);
        NEED(fcntl(ends[1], F_SETPIPE_SZ, 4096) == 4096);
        if (family) {
            listen_at(family, kind);
        } else if (kind == 1) {
            snprintf(path, sizeof path, "/tmp/foresee-replay-%d", (int)getpid());
            NEED(mkfifo(path, 0600) == 0);
        }
        pthread_t s, t;
        pthread_create(&s, 0, programs[i].threads[0], 0);
        pthread_create(&t, 0, programs[i].threads[1], 0);
        pthread_join(s, 0);
        pthread_join(t, 0);
        if (*path) unlink(path);
        return 0;
    }
    return 8;
}
