/* Communication between threads through the kernel and libc, other than by bytes in pipes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "scenarios.h"

static pthread_t start(void *(*f)(void *)) {
    pthread_t t;
    assert(pthread_create(&t, 0, f, 0) == 0);
    return t;
}

static char folder[64];

/* A folder of the run's own, removed at its end. */
static const char *in_folder(const char *name) {
    static _Thread_local char path[2][128];
    static _Thread_local int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}
static void make_folder(void) {
    strcpy(folder, "/tmp/foresee-order-XXXXXX");
    assert(mkdtemp(folder));
}

/* flockfile */
static void *adds_with_file(void *_) {
    flockfile(stderr);
    x++;
    funlockfile(stderr);
    return _;
}
RIGHT(flockfile) {
    pthread_t t = start(adds_with_file);
    adds_with_file(0);
    if (ftrylockfile(stderr) == 0) {
        y = x;
        funlockfile(stderr);
    }
    pthread_join(t, 0);
    assert(x == 2);
}
static void *adds_with_stdout(void *_) {
    flockfile(stdout);
    x++;
    funlockfile(stdout);
    return _;
}
WRONG(flockfile_of_two_files) {
    pthread_t t = start(adds_with_stdout);
    adds_with_file(0);
    pthread_join(t, 0);
}

/* Signals */
static pthread_t first;
static void *writes_and_kills(void *_) {
    x = 1;
    pthread_kill(first, SIGUSR1);
    return _;
}
static sigset_t block(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    first = pthread_self();
    return set;
}
RIGHT(sigwait) {
    sigset_t set = block(SIGUSR1);
    int signal;
    pthread_t t = start(writes_and_kills);
    assert(sigwait(&set, &signal) == 0 && signal == SIGUSR1);
    assert(x == 1);
    pthread_join(t, 0);
}
RIGHT(sigwaitinfo) {
    sigset_t set = block(SIGUSR1);
    siginfo_t info;
    pthread_t t = start(writes_and_kills);
    assert(sigwaitinfo(&set, &info) == SIGUSR1);
    assert(x == 1);
    pthread_join(t, 0);
}
RIGHT(signalfd) {
    sigset_t set = block(SIGUSR1);
    int fd = signalfd(-1, &set, 0);
    struct signalfd_siginfo info;
    pthread_t t = start(writes_and_kills);
    assert(read(fd, &info, sizeof info) == sizeof info);
    assert(x == 1);
    pthread_join(t, 0);
}
static volatile sig_atomic_t handled;
static void on_signal(int _) { y = x; handled = 1; }
RIGHT(signal_handler) {
    signal(SIGUSR1, on_signal);
    first = pthread_self();
    pthread_t t = start(writes_and_kills);
    pthread_join(t, 0);
    while (!handled) {}
    assert(y == 1);
}
static void *kills_and_writes(void *_) {
    pthread_kill(first, SIGUSR1);
    x = 1;
    return _;
}
WRONG(sigwait_too_early) {
    sigset_t set = block(SIGUSR1);
    int signal;
    pthread_t t = start(kills_and_writes);
    sigwait(&set, &signal);
    y = x;
    pthread_join(t, 0);
}

/* Queues */
static mqd_t queue;
static void *sends_through_queue(void *_) {
    x = 1;
    assert(mq_send(queue, "hi", 2, 1) == 0);
    return _;
}
static void open_queue(void) {
    struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 16};
    char name[64];
    sprintf(name, "/foresee-order-%d", getpid());
    queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attr);
    assert(queue != (mqd_t)-1);
    mq_unlink(name);
}
RIGHT(mq) {
    char text[16];
    unsigned priority;
    open_queue();
    pthread_t t = start(sends_through_queue);
    assert(mq_receive(queue, text, sizeof text, &priority) == 2 && text[0] == 'h' && priority == 1);
    assert(x == 1);
    pthread_join(t, 0);
}
static void *sends_too_early(void *_) {
    mq_send(queue, "hi", 2, 1);
    x = 1;
    return _;
}
WRONG(mq_too_early) {
    char text[16];
    open_queue();
    pthread_t t = start(sends_too_early);
    mq_receive(queue, text, sizeof text, 0);
    y = x;
    pthread_join(t, 0);
}

/* System V */
static int id;
static void *raises(void *_) {
    x = 1;
    struct sembuf up = {0, 1, 0};
    assert(semop(id, &up, 1) == 0);
    return _;
}
RIGHT(semop) {
    id = semget(IPC_PRIVATE, 1, 0600);
    semctl(id, 0, SETVAL, 0);
    pthread_t t = start(raises);
    struct sembuf down = {0, -1, 0};
    assert(semop(id, &down, 1) == 0);
    assert(x == 1);
    pthread_join(t, 0);
    semctl(id, 0, IPC_RMID);
}
static void *adds_with_semaphore(void *_) {
    struct sembuf down = {0, -1, 0}, up = {0, 1, 0};
    semop(id, &down, 1);
    x++;
    semop(id, &up, 1);
    return _;
}
RIGHT(semop_as_lock) {
    id = semget(IPC_PRIVATE, 1, 0600);
    semctl(id, 0, SETVAL, 1);
    pthread_t t = start(adds_with_semaphore);
    adds_with_semaphore(0);
    pthread_join(t, 0);
    assert(x == 2);
    semctl(id, 0, IPC_RMID);
}
struct message { long kind; char text[8]; };
static void *sends_message(void *_) {
    struct message m = {1, "hello"};
    x = 1;
    assert(msgsnd(id, &m, sizeof m.text, 0) == 0);
    return _;
}
RIGHT(messages) {
    struct message m;
    id = msgget(IPC_PRIVATE, 0600);
    pthread_t t = start(sends_message);
    assert(msgrcv(id, &m, sizeof m.text, 0, 0) == sizeof m.text && m.text[0] == 'h');
    assert(x == 1);
    pthread_join(t, 0);
    msgctl(id, IPC_RMID, 0);
}
static void *sends_message_too_early(void *_) {
    struct message m = {1, "hello"};
    msgsnd(id, &m, sizeof m.text, 0);
    x = 1;
    return _;
}
WRONG(messages_too_early) {
    struct message m;
    id = msgget(IPC_PRIVATE, 0600);
    pthread_t t = start(sends_message_too_early);
    msgrcv(id, &m, sizeof m.text, 0, 0);
    y = x;
    pthread_join(t, 0);
    msgctl(id, IPC_RMID, 0);
}

/* From pipe to pipe */
static int one[2], two[2];
static void *writes_one(void *_) {
    x = 1;
    assert(write(one[1], "x", 1) == 1);
    return _;
}
static void *splices(void *_) {
    assert(splice(one[0], 0, two[1], 0, 1, 0) == 1);
    return _;
}
RIGHT(splice) {
    char c;
    assert(pipe(one) == 0 && pipe(two) == 0);
    pthread_t t = start(splices), u = start(writes_one);
    assert(read(two[0], &c, 1) == 1 && c == 'x');
    assert(x == 1);
    pthread_join(t, 0);
    pthread_join(u, 0);
}
static void *tees(void *_) {
    assert(tee(one[0], two[1], 1, 0) == 1);
    return _;
}
RIGHT(tee) {
    char c;
    assert(pipe(one) == 0 && pipe(two) == 0);
    pthread_t t = start(tees), u = start(writes_one);
    assert(read(two[0], &c, 1) == 1 && c == 'x');
    assert(x == 1);
    pthread_join(t, 0);
    pthread_join(u, 0);
}
static void *splices_too_early(void *_) {
    splice(one[0], 0, two[1], 0, 1, 0);
    x = 2;
    return _;
}
WRONG(splice_too_early) {
    char c;
    assert(pipe(one) == 0 && pipe(two) == 0);
    pthread_t t = start(splices_too_early);
    assert(write(one[1], "x", 1) == 1);
    read(two[0], &c, 1);
    y = x;
    pthread_join(t, 0);
}
static void *closes(void *_) {
    x = 1;
    close(one[1]);
    return _;
}
RIGHT(end_of_pipe) {
    char c;
    assert(pipe(one) == 0);
    pthread_t t = start(closes);
    assert(read(one[0], &c, 1) == 0);
    assert(x == 1);
    pthread_join(t, 0);
}

/* Readiness and event counters */
static int counter;
static void *counts(void *_) {
    uint64_t n = 1;
    x = 1;
    assert(write(counter, &n, sizeof n) == sizeof n);
    return _;
}
RIGHT(epoll) {
    counter = eventfd(0, 0);
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77}, ready[4];
    epoll_ctl(set, EPOLL_CTL_ADD, counter, &event);
    pthread_t t = start(counts);
    assert(epoll_wait(set, ready, 4, -1) == 1 && ready[0].data.u64 == 77);
    assert(x == 1);
    pthread_join(t, 0);
}
static void *counts_too_early(void *_) {
    uint64_t n = 1;
    (void)!write(counter, &n, sizeof n);
    x = 1;
    return _;
}
WRONG(epoll_too_early) {
    counter = eventfd(0, 0);
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, ready[4];
    epoll_ctl(set, EPOLL_CTL_ADD, counter, &event);
    pthread_t t = start(counts_too_early);
    epoll_wait(set, ready, 4, -1);
    y = x;
    pthread_join(t, 0);
}
RIGHT(eventfd_dup) {
    uint64_t n;
    int own = eventfd(0, 0);
    counter = dup(own);
    pthread_t t = start(counts);
    assert(read(own, &n, sizeof n) == sizeof n && n == 1);
    assert(x == 1);
    pthread_join(t, 0);
}
static void *sets_timer(void *_) {
    struct itimerspec soon = {.it_value.tv_nsec = 1000};
    x = 1;
    timerfd_settime(counter, 0, &soon, 0);
    return _;
}
RIGHT(timerfd) {
    uint64_t n;
    counter = timerfd_create(CLOCK_MONOTONIC, 0);
    pthread_t t = start(sets_timer);
    assert(read(counter, &n, sizeof n) == sizeof n);
    assert(x == 1);
    pthread_join(t, 0);
}

/* Files that come and go */
static void *makes_file(void *_) {
    x = 1;
    int fd = open(in_folder("flag"), O_CREAT | O_WRONLY, 0600);
    assert(fd >= 0);
    close(fd);
    return _;
}
RIGHT(file_comes) {
    make_folder();
    pthread_t t = start(makes_file);
    struct stat about;
    while (stat(in_folder("flag"), &about) != 0) usleep(100);
    assert(x == 1);
    pthread_join(t, 0);
    unlink(in_folder("flag"));
    rmdir(folder);
}
static void *removes_file(void *_) {
    x = 1;
    unlink(in_folder("flag"));
    return _;
}
RIGHT(file_goes) {
    make_folder();
    close(open(in_folder("flag"), O_CREAT | O_WRONLY, 0600));
    pthread_t t = start(removes_file);
    while (access(in_folder("flag"), F_OK) == 0) usleep(100);
    assert(x == 1);
    pthread_join(t, 0);
    rmdir(folder);
}
static void *renames_file(void *_) {
    x = 1;
    assert(rename(in_folder("before"), in_folder("after")) == 0);
    return _;
}
RIGHT(file_is_renamed) {
    make_folder();
    close(open(in_folder("before"), O_CREAT | O_WRONLY, 0600));
    pthread_t t = start(renames_file);
    FILE *f;
    while (!(f = fopen(in_folder("after"), "r"))) usleep(100);
    assert(x == 1);
    fclose(f);
    pthread_join(t, 0);
    unlink(in_folder("after"));
    rmdir(folder);
}
RIGHT(inotify) {
    make_folder();
    char events[512];
    int fd = inotify_init1(0);
    assert(inotify_add_watch(fd, folder, IN_CREATE) >= 0);
    pthread_t t = start(makes_file);
    assert(read(fd, events, sizeof events) > 0);
    assert(x == 1);
    pthread_join(t, 0);
    unlink(in_folder("flag"));
    rmdir(folder);
}
static void *makes_other_file(void *_) {
    close(open(in_folder("other"), O_CREAT | O_WRONLY, 0600));
    x = 1;
    return _;
}
WRONG(file_comes_too_early) {
    make_folder();
    pthread_t t = start(makes_other_file);
    while (access(in_folder("other"), F_OK) != 0) usleep(100);
    y = x;
    pthread_join(t, 0);
    unlink(in_folder("other"));
    rmdir(folder);
}

/* Locks on files */
static void *adds_with_flock(void *_) {
    int fd = open(in_folder("lock"), O_CREAT | O_RDWR, 0600);
    assert(fd >= 0 && flock(fd, LOCK_EX) == 0);
    x++;
    flock(fd, LOCK_UN);
    close(fd);
    return _;
}
RIGHT(flock) {
    make_folder();
    pthread_t t = start(adds_with_flock);
    adds_with_flock(0);
    pthread_join(t, 0);
    assert(x == 2);
    unlink(in_folder("lock"));
    rmdir(folder);
}
static void *adds_with_ofd(void *_) {
    struct flock lock = {.l_type = F_WRLCK}, unlock = {.l_type = F_UNLCK};
    int fd = open(in_folder("lock"), O_CREAT | O_RDWR, 0600);
    assert(fd >= 0 && fcntl(fd, F_OFD_SETLKW, &lock) == 0);
    x++;
    fcntl(fd, F_OFD_SETLKW, &unlock);
    close(fd);
    return _;
}
RIGHT(ofd_lock) {
    make_folder();
    pthread_t t = start(adds_with_ofd);
    adds_with_ofd(0);
    pthread_join(t, 0);
    assert(x == 2);
    unlink(in_folder("lock"));
    rmdir(folder);
}

/* Words that are waited at */
static atomic_int word;
static void *wakes(void *_) {
    x = 1;
    atomic_store(&word, 1);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    return _;
}
RIGHT(futex) {
    pthread_t t = start(wakes);
    while (!atomic_load(&word)) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    assert(x == 1);
    pthread_join(t, 0);
}

/* Named semaphores */
static sem_t *named;
static void *posts(void *_) {
    x = 1;
    sem_post(named);
    return _;
}
RIGHT(sem_open) {
    char name[64];
    sprintf(name, "/foresee-order-%d", getpid());
    named = sem_open(name, O_CREAT, 0600, 0);
    assert(named != SEM_FAILED);
    sem_unlink(name);
    pthread_t t = start(posts);
    sem_wait(named);
    assert(x == 1);
    pthread_join(t, 0);
}

/* The count of a semaphore, looked at until another thread has raised it */
static sem_t counted;
static void await_count(void) {
    int count = 0;
    while (sem_getvalue(&counted, &count) == 0 && count == 0) sched_yield();
}
static void *writes_then_raises(void *_) {
    x = 1;
    sem_post(&counted);
    return _;
}
RIGHT(sem_getvalue) {
    assert(sem_init(&counted, 0, 0) == 0);
    pthread_t t = start(writes_then_raises);
    await_count();
    assert(x == 1);
    pthread_join(t, 0);
}
static void *raises_then_writes(void *_) {
    sem_post(&counted);
    x = 1;
    return _;
}
WRONG(sem_getvalue_too_early) {
    assert(sem_init(&counted, 0, 0) == 0);
    pthread_t t = start(raises_then_writes);
    await_count();
    y = x;
    pthread_join(t, 0);
}

/* Timers whose function runs in a thread of libc's, which never ends: the answer is not complete */
static sem_t fired;
static void on_timer(union sigval _) {
    y = x;
    sem_post(&fired);
}
QUIET(timer_thread) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer};
    struct itimerspec soon = {.it_value.tv_nsec = 1000};
    timer_t timer;
    sem_init(&fired, 0, 0);
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    x = 1;
    timer_settime(timer, 0, &soon, 0);
    sem_wait(&fired);
    assert(y == 1);
    timer_delete(timer);
}

/* What runs at the end of threads; libc clears the value of the key itself, which no hook sees */
static pthread_key_t key;
static void at_end(void *_) { x++; }
static void *sets_key(void *_) {
    pthread_setspecific(key, &key);
    return _;
}
QUIET(key_destructor) {
    pthread_key_create(&key, at_end);
    pthread_t t = start(sets_key);
    pthread_join(t, 0);
    assert(x == 1);
}

/* Data that is kept by descriptor: the kernel gives a number out again only after it was closed */
static int by_number[1024];
static void *uses_a_file(void *_) {
    for (int i = 0; i < 20; i++) {
        int own = open("/dev/null", O_RDONLY);
        assert(own >= 0 && own < 1024);
        by_number[own]++;
        close(own);
        sched_yield();
    }
    return _;
}
RIGHT(descriptor_again) {
    pthread_t t = start(uses_a_file);
    uses_a_file(0);
    pthread_join(t, 0);
}
static void *uses_a_stream(void *_) {
    for (int i = 0; i < 20; i++) {
        FILE *own = fopen("/dev/null", "r");
        assert(own && fileno(own) < 1024);
        by_number[fileno(own)]++;
        fclose(own);
        sched_yield();
    }
    return _;
}
RIGHT(stream_again) {
    pthread_t t = start(uses_a_stream);
    uses_a_stream(0);
    pthread_join(t, 0);
}
static void *uses_a_socket(void *_) {
    for (int i = 0; i < 20; i++) {
        int pair[2];
        assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pair[1] < 1024);
        by_number[pair[0]]++;
        by_number[pair[1]]++;
        close(pair[0]);
        close(pair[1]);
        sched_yield();
    }
    return _;
}
RIGHT(sockets_again) {
    pthread_t t = start(uses_a_socket);
    uses_a_socket(0);
    pthread_join(t, 0);
}
static void *ignores_its_file(void *_) {
    int own = open("/dev/null", O_RDONLY);
    x++;
    close(own);
    return _;
}
WRONG(other_descriptors) {
    int kept = open("/dev/null", O_RDONLY);
    pthread_t t = start(ignores_its_file);
    x++;
    pthread_join(t, 0);
    close(kept);
}

/* Connections */
static int server;
static struct sockaddr_in internet = {.sin_family = AF_INET};
static struct sockaddr_un local = {.sun_family = AF_UNIX};
static void listen_on_loopback(void) {
    socklen_t size = sizeof internet;
    internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = socket(AF_INET, SOCK_STREAM, 0);
    assert(bind(server, (struct sockaddr *)&internet, size) == 0 && listen(server, 4) == 0);
    assert(getsockname(server, (struct sockaddr *)&internet, &size) == 0);
}
static void listen_on_a_path(void) {
    make_folder();
    strcpy(local.sun_path, in_folder("socket"));
    server = socket(AF_UNIX, SOCK_STREAM, 0);
    assert(bind(server, (struct sockaddr *)&local, sizeof local) == 0 && listen(server, 4) == 0);
}
static void remove_path(void) {
    close(server);
    unlink(local.sun_path);
    rmdir(folder);
}
static void *writes_and_connects(void *_) {
    int end = socket(AF_INET, SOCK_STREAM, 0);
    x = 1;
    assert(connect(end, (struct sockaddr *)&internet, sizeof internet) == 0);
    return _;
}
RIGHT(accept_after_connect) {
    listen_on_loopback();
    pthread_t t = start(writes_and_connects);
    assert(accept(server, 0, 0) >= 0);
    assert(x == 1);
    pthread_join(t, 0);
}
static void *connects_without_waiting(void *_) {
    int end = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    x = 1;
    connect(end, (struct sockaddr *)&internet, sizeof internet);
    return _;
}
RIGHT(accept_after_connect_that_does_not_wait) {
    listen_on_loopback();
    pthread_t t = start(connects_without_waiting);
    assert(accept4(server, 0, 0, SOCK_CLOEXEC) >= 0);
    assert(x == 1);
    pthread_join(t, 0);
}
static void *writes_and_connects_by_path(void *_) {
    int end = socket(AF_UNIX, SOCK_STREAM, 0);
    x = 1;
    assert(connect(end, (struct sockaddr *)&local, sizeof local) == 0);
    return _;
}
RIGHT(accept_after_connect_by_path) {
    listen_on_a_path();
    pthread_t t = start(writes_and_connects_by_path);
    assert(accept(server, 0, 0) >= 0);
    assert(x == 1);
    pthread_join(t, 0);
    remove_path();
}
static void *writes_and_listens(void *_) {
    x = 1;
    assert(listen(server, 4) == 0);
    return _;
}
RIGHT(connect_after_listen) {
    socklen_t size = sizeof internet;
    internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = socket(AF_INET, SOCK_STREAM, 0);
    assert(bind(server, (struct sockaddr *)&internet, size) == 0);
    assert(getsockname(server, (struct sockaddr *)&internet, &size) == 0);
    pthread_t t = start(writes_and_listens);
    for (;;) {
        int end = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(end, (struct sockaddr *)&internet, sizeof internet) == 0) break;
        close(end);
    }
    assert(x == 1);
    pthread_join(t, 0);
}
static void *connects_and_writes(void *_) {
    int end = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(end, (struct sockaddr *)&internet, sizeof internet) == 0);
    x = 1;
    return _;
}
WRONG(write_after_connect) {
    listen_on_loopback();
    pthread_t t = start(connects_and_writes);
    assert(accept(server, 0, 0) >= 0);
    x = 2;
    pthread_join(t, 0);
}
static void *writes_and_opens(void *_) {
    x = 1;
    int end = open(in_folder("pipe"), O_WRONLY);
    assert(y == 1);
    close(end);
    return _;
}
RIGHT(named_pipe_opened) {
    make_folder();
    assert(mkfifo(in_folder("pipe"), 0600) == 0);
    pthread_t t = start(writes_and_opens);
    y = 1;
    int end = open(in_folder("pipe"), O_RDONLY);
    assert(x == 1);
    pthread_join(t, 0);
    close(end);
    unlink(in_folder("pipe"));
    rmdir(folder);
}
static void *opens_and_writes(void *_) {
    int end = open(in_folder("pipe"), O_WRONLY);
    x = 1;
    close(end);
    return _;
}
WRONG(write_after_named_pipe) {
    make_folder();
    assert(mkfifo(in_folder("pipe"), 0600) == 0);
    pthread_t t = start(opens_and_writes);
    FILE *end = fopen(in_folder("pipe"), "r");
    x = 2;
    pthread_join(t, 0);
    fclose(end);
    unlink(in_folder("pipe"));
    rmdir(folder);
}
