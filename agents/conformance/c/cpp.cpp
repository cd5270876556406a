/* C++: threads, mutexes, condition variables, statics that are initialised once, call_once, atomics.
expect
main: fork(T1) acq(m) w(ready)=1 rel(m) notify(c) join(T1) vr("guard variable for instance()::it")=1 vr(flag)=1 r(value)=9
T1: acq(m) r(ready)=1 rel(m) vr("guard variable for instance()::it")=0 w(instance()::it)=9 vw("guard variable for instance()::it")=1 w(value)=9 vw(flag)=1
*/
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

std::mutex m;
std::condition_variable c;
int ready, value;
std::atomic<int> flag;

struct Thing { int n; Thing() : n(9) {} };
inline Thing &instance() { static Thing it; return it; }

int main() {
    std::thread t([] {
        {
            std::unique_lock<std::mutex> hold(m);
            if (!ready) c.wait(hold, [] { return ready != 0; });
        }
        Thing &thing = instance();
        value = 9;
        (void)thing;
        flag.store(1);
    });
    {
        std::lock_guard<std::mutex> hold(m);
        ready = 1;
    }
    c.notify_one();
    t.join();
    instance();
    return flag.load() == 1 && value == 9 ? 0 : 1;
}
