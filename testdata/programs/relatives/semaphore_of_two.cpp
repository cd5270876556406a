// expect: PREDICTED race on x. There is a permit for each thread, so the semaphore excludes nobody.
#include <semaphore>
#include <thread>
static int x;
int main() {
    std::counting_semaphore<4> two(2);
    auto work = [&] {
        two.acquire();
        x++;
        two.release();
    };
    std::thread a(work), b(work);
    a.join();
    b.join();
}
