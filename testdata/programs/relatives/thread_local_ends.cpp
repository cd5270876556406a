// expect: race. The destructors of threads' objects add to a total without a lock.
#include <thread>
int total;
struct Count { int n = 0; ~Count() { total += n; } };
thread_local Count count;
void work() { for (int i = 0; i < 4; i++) count.n++; }
int main() {
    std::thread a(work), b(work);
    a.join(); b.join();
    return total > 8;
}
