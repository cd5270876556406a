//! Programs with OpenMP.

use fastrand::Rng;

use super::{fill, pick};

pub(super) const HEAD: &str = r"#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
";

const PATTERNS: [(&str, &str); 10] = [
    (
        "for",
        r"static int data_@[$M];
static int run_@(void) {
#pragma omp parallel for num_threads($N) schedule($SCHEDULE)
    for (int i = 0; i < $M; i++) data_@[i] = i * i;
    for (int i = 0; i < $M; i++) CHECK(data_@[i] == i * i);
    return 0;
}
",
    ),
    (
        "reduction",
        r"static int run_@(void) {
    long sum = 0;
    int most = 0;
#pragma omp parallel for reduction(+ : sum) reduction(max : most) num_threads($N) schedule($SCHEDULE)
    for (int i = 0; i < $M; i++) {
        sum += i;
        if (i % 7 > most) most = i % 7;
    }
    CHECK(sum == (long)$M * ($M - 1) / 2 && most == 6);
    return 0;
}
",
    ),
    (
        "critical",
        r"static int run_@(void) {
    int count = 0, sum = 0;
#pragma omp parallel num_threads($N)
    {
        for (int i = 0; i < $M; i++) {
#pragma omp critical
            count++;
        }
#pragma omp critical(sums)
        sum += omp_get_thread_num();
    }
    CHECK(count == $N * $M && sum == $N * ($N - 1) / 2);
    return 0;
}
",
    ),
    (
        "two_loops",
        r"static int from_@[$M], to_@[$M];
static int run_@(void) {
#pragma omp parallel num_threads($N)
    {
#pragma omp for schedule($SCHEDULE)
        for (int i = 0; i < $M; i++) from_@[i] = i;
#pragma omp for schedule($SCHEDULE)
        for (int i = 0; i < $M; i++) to_@[i] = from_@[$M - 1 - i];
    }
    for (int i = 0; i < $M; i++) CHECK(to_@[i] == $M - 1 - i);
    return 0;
}
",
    ),
    (
        "single",
        r"static int run_@(void) {
    int shared = 0, seen = 0;
#pragma omp parallel num_threads($N)
    {
#pragma omp single
        shared = $M;
        if (shared == $M) {
#pragma omp atomic
            seen++;
        }
    }
    CHECK(seen == $N);
    return 0;
}
",
    ),
    (
        "tasks",
        r"static int tree_@(int depth) {
    int left = 0, right = 0;
    if (depth == 0) return 1;
#pragma omp task shared(left)
    left = tree_@(depth - 1);
#pragma omp task shared(right)
    right = tree_@(depth - 1);
#pragma omp taskwait
    return left + right;
}
static int run_@(void) {
    int leaves = 0;
#pragma omp parallel num_threads($N)
#pragma omp single
    leaves = tree_@(4);
    CHECK(leaves == 16);
    return 0;
}
",
    ),
    (
        "task_for_each",
        r"static int data_@[$M];
static int run_@(void) {
#pragma omp parallel num_threads($N)
#pragma omp single
    for (int i = 0; i < $M; i++) {
#pragma omp task firstprivate(i)
        data_@[i] = i + 1;
    }
    for (int i = 0; i < $M; i++) CHECK(data_@[i] == i + 1);
    return 0;
}
",
    ),
    (
        "sections",
        r"static int run_@(void) {
    int a = 0, b = 0, c = 0;
#pragma omp parallel sections num_threads($N)
    {
#pragma omp section
        a = 1;
#pragma omp section
        b = 2;
#pragma omp section
        c = 3;
    }
    CHECK(a + b + c == 6);
    return 0;
}
",
    ),
    (
        "barrier",
        r"static int cells_@[$N];
static int run_@(void) {
#pragma omp parallel num_threads($N)
    {
        int me = omp_get_thread_num();
        for (int round = 0; round < 4; round++) {
            cells_@[me] = round;
#pragma omp barrier
            CHECK(cells_@[(me + 1) % $N] == round);
#pragma omp barrier
        }
    }
    return 0;
}
",
    ),
    (
        "lock",
        r"static int run_@(void) {
    omp_lock_t lock;
    int count = 0;
    omp_init_lock(&lock);
#pragma omp parallel num_threads($N)
    for (int i = 0; i < 5; i++) {
        omp_set_lock(&lock);
        count++;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
    CHECK(count == 5 * $N);
    return 0;
}
",
    ),
];

pub(super) fn program(rng: &mut Rng) -> (String, String) {
    let (n, m) = (rng.u32(2..5).to_string(), rng.u32(8..33).to_string());
    let schedule = *pick(rng, &["static", "static, 1", "dynamic", "dynamic, 3", "guided"]);
    let (name, text) = pick(rng, &PATTERNS);
    let text = fill(text, &[("N", &n), ("M", &m), ("SCHEDULE", schedule)]);
    (format!("openmp {name}, {n} threads"), text)
}
