// expect: complete. Two phases, separated by a barrier.
#include <barrier>
#include <thread>
int a[2], b[2];
int main() {
    std::barrier<> sync(2);
    auto work = [&](int i) {
        a[i] = i + 1;
        sync.arrive_and_wait();
        b[i] = a[1 - i];
        sync.arrive_and_wait();
        a[i] = b[1 - i];
    };
    std::thread t(work, 0), u(work, 1);
    t.join(); u.join();
    return a[0] != 1 || a[1] != 2;
}
