// expect: complete. A semaphore as a lock, and one that hands over.
#include <semaphore>
#include <thread>
static int x, y;
int main() {
    std::binary_semaphore lock(1), ready(0);
    auto work = [&] {
        for (int i = 0; i < 3; i++) {
            lock.acquire();
            x++;
            lock.release();
        }
    };
    std::thread a(work), b(work), c([&] {
        y = 4;
        ready.release();
    });
    ready.acquire();
    int seen = y;
    a.join();
    b.join();
    c.join();
    return x != 6 || seen != 4;
}
