/* A product of matrices: inputs read by all, each row of the output written by one thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 256, THREADS = 4 };
static double *a, *b, *c;

static void *run(void *me) {
    for (size_t i = (size_t)me; i < N; i += THREADS)
        for (size_t j = 0; j < N; j++) {
            double sum = 0;
            for (size_t k = 0; k < N; k++) sum += a[i * N + k] * b[k * N + j];
            c[i * N + j] = sum;
        }
    return 0;
}

int main(void) {
    pthread_t t[THREADS];
    double trace = 0;
    a = malloc(N * N * sizeof *a);
    b = malloc(N * N * sizeof *b);
    c = malloc(N * N * sizeof *c);
    for (size_t i = 0; i < N * N; i++) a[i] = (double)(i % 7), b[i] = (double)(i % 5);
    for (size_t i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    for (size_t i = 0; i < N; i++) trace += c[i * N + i];
    printf("%.0f\n", trace);
    return 0;
}
