/* OpenMP. */
#include <omp.h>
#include "scenarios.h"

/* Waits until two threads are here, so that the callers are different threads. */
static void meet(void) {
    static int there;
    int seen = 0;
#pragma omp atomic
    there++;
    while (seen < 2) {
#pragma omp atomic read
        seen = there;
    }
}

static int sum(void) {
    int s = 0;
    for (int i = 0; i < 64; i++) s += a[i];
    return s;
}

RIGHT(parallel) {
    x = 1;
#pragma omp parallel num_threads(3)
    a[omp_get_thread_num()] = x;
    x = sum();
    assert(x == omp_get_max_threads() * 0 + 3);
}

WRONG(parallel_shared) {
#pragma omp parallel num_threads(3)
    x = omp_get_thread_num();
}

RIGHT(for_static) {
#pragma omp parallel for num_threads(3) schedule(static)
    for (int i = 0; i < 64; i++) a[i] = i;
#pragma omp parallel for num_threads(3) schedule(static, 1)
    for (int i = 0; i < 64; i++) a[63 - i]++;
    assert(sum() == 64 * 63 / 2 + 64);
}

RIGHT(for_dynamic) {
#pragma omp parallel num_threads(3)
    {
#pragma omp for schedule(dynamic, 4)
        for (int i = 0; i < 64; i++) a[i] = i;
#pragma omp for schedule(dynamic, 3)
        for (int i = 0; i < 64; i++) a[63 - i]++;
    }
    assert(sum() == 64 * 63 / 2 + 64);
}

RIGHT(for_guided) {
#pragma omp parallel num_threads(3)
    {
#pragma omp for schedule(guided)
        for (long i = 0; i < 64; i++) a[i] = (int)i;
#pragma omp for schedule(guided, 2)
        for (unsigned long long i = 0; i < 64; i++) a[63 - i]++;
    }
    assert(sum() == 64 * 63 / 2 + 64);
}

RIGHT(for_runtime) {
    omp_set_schedule(omp_sched_dynamic, 2);
#pragma omp parallel for num_threads(2) schedule(runtime)
    for (int i = 0; i < 64; i++) a[i] = i;
    assert(sum() == 64 * 63 / 2);
}

RIGHT(for_nowait) {
#pragma omp parallel num_threads(3)
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 32; i++) a[i] = 1;
#pragma omp for schedule(static)
        for (int i = 32; i < 64; i++) a[i] = 1;
    }
    assert(sum() == 64);
}

WRONG(for_nowait_crossed) {
#pragma omp parallel num_threads(2)
    {
#pragma omp for schedule(static, 1) nowait
        for (int i = 0; i < 2; i++) if (i == 0) x = 1;
#pragma omp for schedule(static, 1)
        for (int i = 0; i < 2; i++) if (i == 1) a[1] = x;
    }
}

RIGHT(collapse) {
#pragma omp parallel for collapse(2) num_threads(3)
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) a[8 * i + j] = 1;
    assert(sum() == 64);
}

RIGHT(lastprivate) {
    int last = 0, first = 7;
#pragma omp parallel for lastprivate(last) firstprivate(first) num_threads(3)
    for (int i = 0; i < 64; i++) last = a[i] = i + first;
    assert(last == 70);
}

RIGHT(reduction) {
    long s = 0; double d = 0; int most = 0;
#pragma omp parallel for reduction(+ : s, d) reduction(max : most) num_threads(3)
    for (int i = 0; i < 64; i++) { s += i; d += i; if (i > most) most = i; }
    assert(s == 2016 && d == 2016 && most == 63);
}

RIGHT(reduction_many) {
    long s = 0;
#pragma omp parallel num_threads(6) reduction(+ : s)
    s += omp_get_thread_num();
    assert(s == 15);
}

RIGHT(reduction_nowait) {
    long s = 0;
    double d = 0;
#pragma omp parallel num_threads(3)
    {
#pragma omp for reduction(+ : s, d) nowait
        for (int i = 0; i < 64; i++) { s += i; d += i; }
#pragma omp barrier
#pragma omp single
        assert(s == 2016 && d == 2016);
    }
}

/* clang has hooks for some of what it does to the threads' own arrays. */
QUIET(reduction_array) {
    int sums[4] = {0};
#pragma omp parallel for reduction(+ : sums) num_threads(3)
    for (int i = 0; i < 64; i++) sums[i % 4] += i;
    assert(sums[0] + sums[1] + sums[2] + sums[3] == 2016);
}

RIGHT(critical) {
#pragma omp parallel num_threads(3)
    {
#pragma omp critical
        x++;
#pragma omp critical(named)
        y++;
    }
    assert(x == 3 && y == 3);
}

WRONG(critical_two_names) {
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num()) {
#pragma omp critical(one)
            x++;
        } else {
#pragma omp critical(other)
            x++;
        }
    }
}

RIGHT(atomic) {
    int seen = 0;
#ifdef __clang__
    long d = 0, l = 0; /* clang has no hooks for atomic operations on floating-point numbers */
#else
    double d = 0;
    long double l = 0;
#endif
#pragma omp parallel num_threads(3) private(seen)
    {
#pragma omp atomic
        x++;
#pragma omp atomic
        d += 1;
#pragma omp atomic
        l += 1;
#pragma omp atomic capture
        seen = y++;
#pragma omp atomic read
        seen = x;
        (void)seen;
    }
    assert(x == 3 && d == 3 && l == 3 && y == 3);
}

RIGHT(barrier) {
#pragma omp parallel num_threads(3)
    {
        int me = omp_get_thread_num();
        for (int round = 0; round < 4; round++) {
            a[me] = round;
#pragma omp barrier
            assert(a[(me + 1) % 3] == round);
#pragma omp barrier
        }
    }
}

WRONG(barrier_missing) {
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) x = 1;
#pragma omp barrier
        a[omp_get_thread_num()] = x;
        if (omp_get_thread_num() == 1) x = 2;
    }
}

RIGHT(single) {
#pragma omp parallel num_threads(3)
    {
#pragma omp single
        x = 5;
        assert(x == 5);
    }
}

WRONG(single_nowait) {
#pragma omp parallel num_threads(2)
    {
#pragma omp single nowait
        x = 5;
        a[omp_get_thread_num()] = x;
    }
}

/* clang has hooks for some of what it writes to the list of what is copied. */
QUIET(copyprivate) {
    int seen = 0, more = 0;
#pragma omp parallel num_threads(3) private(seen, more)
    {
        for (int i = 0; i < 3; i++) {
#pragma omp single copyprivate(seen, more)
            {
                x++;
                seen = x;
                more = 2 * x;
            }
            assert(seen == i + 1 && more == 2 * seen);
            a[omp_get_thread_num()] += seen;
        }
    }
    assert(sum() == 18);
}

RIGHT(master) {
#pragma omp parallel num_threads(3)
    {
#pragma omp master
        x = 3;
#pragma omp barrier
        a[omp_get_thread_num()] = x;
    }
    assert(sum() == 9);
}

WRONG(master_alone) {
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        x = 3;
        a[omp_get_thread_num()] = x;
    }
}

RIGHT(sections) {
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        x = 1;
#pragma omp section
        y = 1;
    }
#pragma omp parallel num_threads(2)
    {
#pragma omp sections
        {
#pragma omp section
            x++;
#pragma omp section
            y++;
        }
#pragma omp sections
        {
#pragma omp section
            y++;
#pragma omp section
            x++;
        }
    }
    assert(x == 3 && y == 3);
}

WRONG(sections_shared) {
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
            x++;
            meet();
        }
#pragma omp section
        {
            x++;
            meet();
        }
    }
}

RIGHT(ordered) {
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(3)
    for (int i = 0; i < 12; i++) {
        a[i] = i;
#pragma omp ordered
        {
            assert(x == i);
            x++;
        }
    }
#pragma omp parallel for ordered schedule(static, 2) num_threads(3)
    for (int i = 0; i < 12; i++) {
#pragma omp ordered
        x++;
    }
    assert(x == 24);
}

RIGHT(doacross) {
#pragma omp parallel for ordered(1) schedule(static, 1) num_threads(2)
    for (int i = 1; i < 12; i++) {
#pragma omp ordered depend(sink : i - 1)
        a[i] = a[i - 1] + 1;
#pragma omp ordered depend(source)
    }
    assert(a[11] == 11);
}

static int fib(int n) {
    int left, right;
    if (n < 2) return n;
#pragma omp task shared(left)
    left = fib(n - 1);
#pragma omp task shared(right)
    right = fib(n - 2);
#pragma omp taskwait
    return left + right;
}

QUIET(tasks) {
#pragma omp parallel num_threads(3)
#pragma omp single
    x = fib(8);
    assert(x == 21);
}

RIGHT(tasks_in_barrier) {
#pragma omp parallel num_threads(3)
    {
#pragma omp single
        for (int i = 0; i < 32; i++) {
#pragma omp task firstprivate(i)
            a[i] = i;
        }
        if (omp_get_thread_num() == 1) assert(sum() == 31 * 16);
    }
    assert(sum() == 31 * 16);
}

WRONG(tasks_shared) {
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 2; i++) {
#pragma omp task firstprivate(i)
        {
            x += i;
            meet();
        }
    }
}

WRONG(task_not_waited_for) {
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp task
            {
                x = 1;
                meet();
            }
        } else {
            a[1] = x;
            meet();
        }
    }
}

RIGHT(task_if_false) {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        int local = 1;
#pragma omp task if (0) shared(local)
        local++;
        x = local;
    }
    assert(x == 2);
}

RIGHT(taskgroup) {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp taskgroup
        {
#pragma omp task
            {
#pragma omp task
                x = 1;
            }
#pragma omp task
            y = 1;
        }
        x += y;
    }
    assert(x == 2);
}

RIGHT(depend) {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
        for (int i = 0; i < 6; i++) {
#pragma omp task depend(inout : x)
            x++;
#pragma omp task depend(in : x) firstprivate(i)
            a[i] = x;
#pragma omp task depend(in : x) depend(out : y) firstprivate(i)
            y = x + i;
        }
    }
    assert(x == 6 && sum() == 21 && y == 11);
}

WRONG(depend_in_twice) {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        int token = 0;
        for (int i = 0; i < 2; i++) {
#pragma omp task depend(in : token)
            {
                x++;
                meet();
            }
        }
#pragma omp taskwait
    }
}

RIGHT(taskloop) {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
        int base = 1;
#pragma omp taskloop grainsize(4) firstprivate(base)
        for (int i = 0; i < 64; i++) a[i] = i + base;
        x = sum();
    }
    assert(x == 2016 + 64);
}

RIGHT(locks) {
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(3)
    {
        omp_set_lock(&lock);
        x++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        y++;
        omp_unset_nest_lock(&nest);
        y++;
        omp_unset_nest_lock(&nest);
        while (!omp_test_lock(&lock)) {}
        x++;
        omp_unset_lock(&lock);
        if (omp_test_nest_lock(&nest)) {
            y += 0;
            omp_unset_nest_lock(&nest);
        }
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    assert(x == 6 && y == 6);
}

WRONG(locks_two) {
    omp_lock_t locks[2];
    omp_init_lock(&locks[0]);
    omp_init_lock(&locks[1]);
#pragma omp parallel num_threads(2)
    {
        int me = omp_get_thread_num();
        omp_set_lock(&locks[me]);
        x++;
        omp_unset_lock(&locks[me]);
    }
}

static int mine;
#pragma omp threadprivate(mine)

RIGHT(threadprivate) {
    mine = 4;
#pragma omp parallel num_threads(3) copyin(mine)
    {
        mine += omp_get_thread_num();
#pragma omp barrier
        a[omp_get_thread_num()] = mine;
    }
    assert(sum() == 15);
}

RIGHT(flush) {
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            y = 5;
#pragma omp flush
#pragma omp atomic write release
            x = 1;
        } else {
            int seen = 0;
            while (!seen) {
#pragma omp atomic read acquire
                seen = x;
            }
#pragma omp flush
            assert(y == 5);
        }
    }
}

RIGHT(nested) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int outer = omp_get_thread_num();
        a[outer] = 1;
#pragma omp parallel num_threads(2)
        {
            int inner = omp_get_thread_num();
            a[8 + 2 * outer + inner] = a[outer];
#pragma omp barrier
            a[16 + 2 * outer + inner] = a[8 + 2 * outer + 1 - inner];
        }
        a[32 + outer] = a[16 + 2 * outer] + a[17 + 2 * outer];
    }
    assert(a[32] == 2 && a[33] == 2);
}

WRONG(nested_shared) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(2)
        {
#pragma omp barrier
            if (omp_get_thread_num() == 1) {
                x++;
                meet();
            }
        }
    }
}

RIGHT(regions_in_turn) {
    for (int i = 0; i < 20; i++) {
#pragma omp parallel num_threads(3)
        a[(omp_get_thread_num() + i) % 3]++;
        x = a[0];
    }
    assert(sum() == 60);
}
