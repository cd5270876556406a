// expect: doubt. Both sections write the same variable.
int a;
int main(void) {
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        a = 1;
#pragma omp section
        a = 2;
    }
    return a == 0;
}
