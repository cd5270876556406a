// expect: complete. One thread waits for an atomic to change.
#include <atomic>
#include <thread>
std::atomic<int> ready{0};
int data;
int main() {
    std::thread t([] { data = 7; ready.store(1, std::memory_order_release); ready.notify_one(); });
    ready.wait(0, std::memory_order_acquire);
    int v = data;
    t.join();
    return v != 7;
}
