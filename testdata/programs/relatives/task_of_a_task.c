// expect: doubt. A task is waited for, but not the one that it creates.
int x;
int main(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        {
#pragma omp task
            x = 1;
        }
#pragma omp taskwait
        x = 2;
    }
    return 0;
}
