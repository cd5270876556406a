//! Programs in C.

use fastrand::Rng;

use super::{fill, pick};

pub(super) const HEAD: &str = r"#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct point { int x, y; long sum; };
static inline struct point moved(struct point p, int by) {
    p.x += by;
    p.y -= by;
    p.sum += p.x + p.y;
    return p;
}
struct node { int value; struct node *next; };
static void start_all(pthread_t *threads, int n, void *(*work)(void *)) {
    for (long i = 0; i < n; i++) pthread_create(&threads[i], 0, work, (void *)i);
}
static void join_all(pthread_t *threads, int n) {
    for (int i = 0; i < n; i++) pthread_join(threads[i], 0);
}
";

/// What threads share: name, declarations, what each thread does, and what holds at the end.
const SHARED: [(&str, &str, &str, &str); 7] = [
    ("counter", "static int thing_@;", "thing_@++;", "thing_@ == $N * $K"),
    (
        "list",
        "static struct node *thing_@; static int size_@;",
        "struct node *n = malloc(sizeof *n); n->value = me; n->next = thing_@; thing_@ = n; size_@++;",
        "size_@ == $N * $K && thing_@->next",
    ),
    (
        "struct",
        "static struct point thing_@;",
        "thing_@ = moved(thing_@, me + 1);",
        "thing_@.x == $K * $N * ($N + 1) / 2",
    ),
    (
        "text",
        "static char thing_@[512];",
        "size_t n = strlen(thing_@); snprintf(thing_@ + n, sizeof thing_@ - n, \"%d,\", me);",
        "strlen(thing_@) == 2 * $N * $K",
    ),
    ("table", "static int thing_@[16];", "thing_@[(me + i) % 16] += i;", "thing_@[0] >= 0"),
    (
        "grown",
        "static int *thing_@; static int size_@;",
        "thing_@ = realloc(thing_@, (size_@ + 1) * sizeof *thing_@); thing_@[size_@++] = me;",
        "size_@ == $N * $K && thing_@[0] < $N",
    ),
    (
        "bytes",
        "static unsigned char thing_@[64];",
        "unsigned char copy[64]; memcpy(copy, thing_@, sizeof copy); copy[i % 64]++; memcpy(thing_@, copy, sizeof copy);",
        "thing_@[0] == $N",
    ),
];

/// How it is guarded: name, declaration, initialisation, acquire, release.
const GUARDS: [(&str, &str, &str, &str, &str); 7] = [
    (
        "mutex",
        "static pthread_mutex_t guard_@ = PTHREAD_MUTEX_INITIALIZER;",
        "",
        "pthread_mutex_lock(&guard_@);",
        "pthread_mutex_unlock(&guard_@);",
    ),
    (
        "trylock",
        "static pthread_mutex_t guard_@ = PTHREAD_MUTEX_INITIALIZER;",
        "",
        "while (pthread_mutex_trylock(&guard_@)) sched_yield();",
        "pthread_mutex_unlock(&guard_@);",
    ),
    (
        "rwlock",
        "static pthread_rwlock_t guard_@ = PTHREAD_RWLOCK_INITIALIZER;",
        "",
        "pthread_rwlock_wrlock(&guard_@);",
        "pthread_rwlock_unlock(&guard_@);",
    ),
    (
        "spinlock",
        "static pthread_spinlock_t guard_@;",
        "pthread_spin_init(&guard_@, 0);",
        "pthread_spin_lock(&guard_@);",
        "pthread_spin_unlock(&guard_@);",
    ),
    (
        "semaphore",
        "static sem_t guard_@;",
        "sem_init(&guard_@, 0, 1);",
        "sem_wait(&guard_@);",
        "sem_post(&guard_@);",
    ),
    (
        "flag",
        "static atomic_flag guard_@ = ATOMIC_FLAG_INIT;",
        "",
        "while (atomic_flag_test_and_set(&guard_@)) sched_yield();",
        "atomic_flag_clear(&guard_@);",
    ),
    ("file_lock", "", "", "flockfile(stderr);", "funlockfile(stderr);"),
];

const GUARDED: &str = r"$SHARED
$GUARD
static void *work_@(void *argument) {
    int me = (int)(long)argument;
    (void)me;
    for (int i = 0; i < $K; i++) {
        $TAKE
        { $STEP }
        $GIVE
    }
    return 0;
}
static int run_@(void) {
    pthread_t threads[$N];
    $INIT
    start_all(threads, $N, work_@);
    join_all(threads, $N);
    CHECK($END);
    return 0;
}
";

const PATTERNS: [(&str, &str); 10] = [
    (
        "ring_buffer",
        r"static pthread_mutex_t guard_@ = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed_@ = PTHREAD_COND_INITIALIZER;
static struct point ring_@[4];
static int head_@, tail_@;
static void *maker_@(void *_) {
    for (int i = 0; i < $K; i++) {
        pthread_mutex_lock(&guard_@);
        while (head_@ - tail_@ == 4) pthread_cond_wait(&changed_@, &guard_@);
        struct point p = {i, 2 * i, 3 * i};
        ring_@[head_@++ % 4] = p;
        pthread_cond_broadcast(&changed_@);
        pthread_mutex_unlock(&guard_@);
    }
    return _;
}
static int run_@(void) {
    pthread_t t;
    pthread_create(&t, 0, maker_@, 0);
    for (int i = 0; i < $K; i++) {
        pthread_mutex_lock(&guard_@);
        while (head_@ == tail_@) pthread_cond_wait(&changed_@, &guard_@);
        struct point p = ring_@[tail_@++ % 4];
        pthread_cond_broadcast(&changed_@);
        pthread_mutex_unlock(&guard_@);
        CHECK(p.x == i && p.y == 2 * i);
    }
    pthread_join(t, 0);
    return 0;
}
",
    ),
    (
        "bounded_by_semaphores",
        r"static sem_t full_@, room_@;
static int slot_@;
static void *maker_@(void *_) {
    for (int i = 0; i < $K; i++) {
        sem_wait(&room_@);
        slot_@ = i;
        sem_post(&full_@);
    }
    return _;
}
static int run_@(void) {
    pthread_t t;
    sem_init(&full_@, 0, 0);
    sem_init(&room_@, 0, 1);
    pthread_create(&t, 0, maker_@, 0);
    for (int i = 0; i < $K; i++) {
        sem_wait(&full_@);
        CHECK(slot_@ == i);
        sem_post(&room_@);
    }
    pthread_join(t, 0);
    return 0;
}
",
    ),
    (
        "barrier",
        r"static pthread_barrier_t barrier_@;
static int cells_@[2][$N];
static void *work_@(void *argument) {
    int me = (int)(long)argument;
    for (int round = 0; round < $K; round++) {
        cells_@[round % 2][me] = round;
        pthread_barrier_wait(&barrier_@);
        for (int other = 0; other < $N; other++) CHECK(cells_@[round % 2][other] == round);
        pthread_barrier_wait(&barrier_@);
    }
    return 0;
}
static int run_@(void) {
    pthread_t threads[$N];
    pthread_barrier_init(&barrier_@, 0, $N);
    start_all(threads, $N, work_@);
    join_all(threads, $N);
    return 0;
}
",
    ),
    (
        "pipe",
        r"static int pipe_@[2];
static struct point sent_@;
static void *maker_@(void *_) {
    for (int i = 0; i < $K; i++) {
        if (i == 0) sent_@ = moved(sent_@, 5);
        if (write(pipe_@[1], &i, sizeof i) != sizeof i) exit(7);
    }
    close(pipe_@[1]);
    return _;
}
static int run_@(void) {
    pthread_t t;
    int got, count = 0;
    if (pipe(pipe_@)) return 7;
    pthread_create(&t, 0, maker_@, 0);
    while (read(pipe_@[0], &got, sizeof got) == sizeof got) {
        CHECK(got == count && sent_@.x == 5);
        count++;
    }
    CHECK(count == $K);
    pthread_join(t, 0);
    return 0;
}
",
    ),
    (
        "once",
        r"static pthread_once_t once_@ = PTHREAD_ONCE_INIT;
static char *text_@;
static void init_@(void) { text_@ = strdup(`made once`); }
static void *work_@(void *_) {
    pthread_once(&once_@, init_@);
    CHECK(!strcmp(text_@, `made once`));
    return _;
}
static int run_@(void) {
    pthread_t threads[$N];
    start_all(threads, $N, work_@);
    join_all(threads, $N);
    free(text_@);
    return 0;
}
",
    ),
    (
        "results",
        r"struct result_@ { int sum; char name[16]; };
static void *work_@(void *argument) {
    struct result_@ *result = calloc(1, sizeof *result);
    for (int i = 0; i < $K; i++) result->sum += i;
    snprintf(result->name, sizeof result->name, `worker %d`, (int)(long)argument);
    return result;
}
static int run_@(void) {
    pthread_t threads[$N];
    start_all(threads, $N, work_@);
    for (int i = 0; i < $N; i++) {
        void *out;
        char name[16];
        pthread_join(threads[i], &out);
        struct result_@ result = *(struct result_@ *)out;
        snprintf(name, sizeof name, `worker %d`, i);
        CHECK(result.sum == $K * ($K - 1) / 2 && !strcmp(result.name, name));
        free(out);
    }
    return 0;
}
",
    ),
    (
        "sorted_slices",
        r"static int numbers_@[$N][$K];
static int compare_@(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *work_@(void *argument) {
    int *mine = numbers_@[(long)argument];
    for (int i = 0; i < $K; i++) mine[i] = (7 * i + 3) % $K;
    qsort(mine, $K, sizeof *mine, compare_@);
    return 0;
}
static int run_@(void) {
    pthread_t threads[$N];
    start_all(threads, $N, work_@);
    join_all(threads, $N);
    for (int me = 0; me < $N; me++)
        for (int i = 1; i < $K; i++) CHECK(numbers_@[me][i - 1] <= numbers_@[me][i]);
    return 0;
}
",
    ),
    (
        "atomic_publish",
        r"static struct point made_@;
static atomic_int ready_@;
static void *maker_@(void *_) {
    made_@ = moved(made_@, $K);
    atomic_store_explicit(&ready_@, 1, memory_order_release);
    return _;
}
static int run_@(void) {
    pthread_t t;
    pthread_create(&t, 0, maker_@, 0);
    while (!atomic_load_explicit(&ready_@, memory_order_acquire)) sched_yield();
    struct point p = made_@;
    CHECK(p.x == $K && p.y == -$K);
    pthread_join(t, 0);
    return 0;
}
",
    ),
    (
        "readers",
        r"static pthread_rwlock_t guard_@ = PTHREAD_RWLOCK_INITIALIZER;
static int table_@[8], writes_@;
static void *work_@(void *argument) {
    for (int i = 0; i < $K; i++) {
        if (argument) {
            pthread_rwlock_rdlock(&guard_@);
            CHECK(table_@[0] == table_@[7]);
        } else {
            pthread_rwlock_wrlock(&guard_@);
            for (int j = 0; j < 8; j++) table_@[j] = i;
            writes_@++;
        }
        pthread_rwlock_unlock(&guard_@);
    }
    return 0;
}
static int run_@(void) {
    pthread_t threads[$N];
    start_all(threads, $N, work_@);
    join_all(threads, $N);
    CHECK(writes_@ == $K);
    return 0;
}
",
    ),
    (
        "detached",
        r"static pthread_mutex_t guard_@ = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over_@ = PTHREAD_COND_INITIALIZER;
static int left_@ = $N, sum_@;
static void *work_@(void *argument) {
    int mine = 0;
    for (int i = 0; i < $K; i++) mine += i;
    pthread_mutex_lock(&guard_@);
    sum_@ += mine;
    if (--left_@ == 0) pthread_cond_signal(&over_@);
    pthread_mutex_unlock(&guard_@);
    return argument;
}
static int run_@(void) {
    pthread_t threads[$N];
    start_all(threads, $N, work_@);
    pthread_mutex_lock(&guard_@);
    while (left_@) pthread_cond_wait(&over_@, &guard_@);
    CHECK(sum_@ == $N * $K * ($K - 1) / 2);
    pthread_mutex_unlock(&guard_@);
    join_all(threads, $N);
    return 0;
}
",
    ),
];

pub(super) fn program(rng: &mut Rng) -> (String, String) {
    let (n, k) = (rng.u32(2..5).to_string(), rng.u32(3..13).to_string());
    let sizes = [("N", n.as_str()), ("K", k.as_str())];
    if rng.bool() {
        let (name, text) = pick(rng, &PATTERNS);
        return (format!("c {name}"), fill(&text.replace('`', "\""), &sizes));
    }
    let (shared, declared, step, end) = *pick(rng, &SHARED);
    let (guard, guards, init, take, give) = *pick(rng, &GUARDS);
    let text = fill(
        GUARDED,
        &[
            ("SHARED", declared),
            ("GUARD", guards),
            ("INIT", init),
            ("TAKE", take),
            ("GIVE", give),
            ("STEP", step),
            ("END", end),
        ],
    );
    (format!("c {shared} under {guard}"), fill(&text, &sizes))
}
