// expect: quiet. A condition with a lock of another kind: whether a wait could be endless is not always decided.
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
std::shared_mutex m;
std::condition_variable_any cv;
int data; bool ready;
int main() {
    std::thread t([] { std::shared_lock l(m);
        cv.wait(l, [] { return ready; }); if (data != 7) __builtin_trap(); });
    { std::unique_lock l(m); data = 7; ready = true; }
    cv.notify_all();
    t.join();
    return 0;
}
