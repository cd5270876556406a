// expect: complete. Tasks are in order by waits, groups, dependences, and because they are not deferred.
int x, y[4], z, w;
static int fib(int n) {
    int a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a)
    a = fib(n - 1);
#pragma omp task shared(b)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}
int main(void) {
    int f = 0, sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        x = 1;
#pragma omp taskwait
#pragma omp task
        x += 2;
#pragma omp taskwait
        x += 3;
#pragma omp taskgroup
        for (int i = 0; i < 2; i++) {
#pragma omp task firstprivate(i)
            {
                y[i] = 1;
#pragma omp task firstprivate(i)
                y[i + 2] = 1;
            }
        }
        for (int i = 0; i < 4; i++)
            sum += y[i];
#pragma omp task depend(out : z)
        z = 1;
#pragma omp task depend(inout : z)
        z += 2;
#pragma omp taskwait
#pragma omp task if (0)
        w = 1;
        w += 1;
        f = fib(5);
    }
    return x != 6 || sum != 4 || z != 3 || w != 2 || f != 5;
}
