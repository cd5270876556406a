// expect: race. A counter is written with the lock held for reading only.
#include <map>
#include <shared_mutex>
#include <thread>
static std::shared_mutex m;
static std::map<int, int> cache{{1, 2}};
static int hits;
static int get(int key) {
    std::shared_lock<std::shared_mutex> lock(m);
    hits++;
    auto found = cache.find(key);
    return found == cache.end() ? -1 : found->second;
}
int main() {
    std::thread a([] { get(1); }), b([] { get(1); });
    a.join();
    b.join();
    return 0;
}
