// expect: complete. Two locks made by hand of atomics.
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
struct Spin {
    std::atomic_flag taken = ATOMIC_FLAG_INIT;
    void lock() {
        while (taken.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    void unlock() { taken.clear(std::memory_order_release); }
} spin;
std::atomic<int> word{0};
std::map<int, int> table;
std::string text;
int main() {
    auto work = [](int me) {
        for (int i = 0; i < 6; i++) {
            {
                std::lock_guard<Spin> lock(spin);
                table[me * 10 + i] = i;
            }
            int expected = 0;
            while (!word.compare_exchange_weak(expected, 1)) {
                expected = 0;
                std::this_thread::yield();
            }
            text += char('a' + me);
            word.store(0);
        }
    };
    std::thread a(work, 1), b(work, 2);
    a.join();
    b.join();
    return table.size() != 12 || text.size() != 12;
}
