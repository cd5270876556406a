// A configuration that is loaded when it is first needed. The check outside the lock is fine, the
// order of the two stores is not: the flag goes up before the limit is there.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

namespace config {

std::mutex lock;
std::atomic<bool> ready{false};
int limit = 0;

static void load() {
    if (ready)
        return;
    std::lock_guard<std::mutex> guard(lock);
    if (!ready) {
        ready = true;
        limit = 100;
    }
}

// Needs a limit.
static int admit(int request) {
    return request <= limit;
}

static int handle(int request) {
    load();
    return admit(request);
}

} // namespace config

int main() {
    int admitted[2] = {0, 0};
    std::thread first([&] { admitted[0] = config::handle(10); });
    std::thread second([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        admitted[1] = config::handle(20);
    });
    first.join();
    second.join();
    std::printf("admitted: %d\n", admitted[0] + admitted[1]);
}
