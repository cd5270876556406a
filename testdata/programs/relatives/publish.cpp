// expect: complete. A pointer in a local atomic: clang leaves a plain load behind each atomic one.
#include <atomic>
#include <string>
#include <thread>
struct Made {
    int number;
    std::string text;
};
int main() {
    std::atomic<Made *> made{nullptr};
    std::thread maker([&made] { made.store(new Made{8, std::string(40, 'z')}, std::memory_order_release); });
    Made *got;
    while (!(got = made.load(std::memory_order_acquire))) std::this_thread::yield();
    int bad = got->number != 8 || got->text.size() != 40;
    maker.join();
    delete got;
    return bad;
}
