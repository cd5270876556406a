// expect: complete. A tree under a mutex says that something else is ready.
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
std::mutex m;
std::condition_variable changed;
std::map<int, std::string> table;
int ready;
int main() {
    std::thread a([] {
        ready = 3;
        std::lock_guard<std::mutex> lock(m);
        table[1] = "one";
        table[7] = std::string(40, 'x');
        changed.notify_all();
    });
    std::thread b([] {
        std::unique_lock<std::mutex> lock(m);
        changed.wait(lock, [] { return table.count(7) == 1; });
        lock.unlock();
        ready++;
    });
    a.join();
    b.join();
    return ready != 4;
}
