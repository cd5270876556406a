// expect: complete. A bounded queue of several producers and consumers, ordered by sequence numbers alone.
#include <atomic>
#include <thread>
struct Slot {
    std::atomic<unsigned> sequence;
    int value;
};
static Slot ring[4];
static std::atomic<unsigned> head{0}, tail{0};
static std::atomic<int> sum{0};
static void push(int value) {
    unsigned at = tail.fetch_add(1);
    Slot &slot = ring[at % 4];
    while (slot.sequence.load(std::memory_order_acquire) != at) std::this_thread::yield();
    slot.value = value;
    slot.sequence.store(at + 1, std::memory_order_release);
}
static int pop() {
    unsigned at = head.fetch_add(1);
    Slot &slot = ring[at % 4];
    while (slot.sequence.load(std::memory_order_acquire) != at + 1) std::this_thread::yield();
    int value = slot.value;
    slot.sequence.store(at + 4, std::memory_order_release);
    return value;
}
int main() {
    for (unsigned i = 0; i < 4; i++) ring[i].sequence = i;
    std::thread a([] { for (int i = 1; i <= 3; i++) push(i); });
    std::thread b([] { for (int i = 0; i < 3; i++) sum += pop(); });
    for (int i = 1; i <= 3; i++) push(i);
    for (int i = 0; i < 3; i++) sum += pop();
    a.join();
    b.join();
    return sum != 12;
}
