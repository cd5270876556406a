// expect: complete. A queue of functions with copies in them, and a thread that calls them.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
std::mutex m;
std::condition_variable changed;
std::deque<std::function<void()>> jobs;
bool done;
std::string log;
int main() {
    std::thread worker([] {
        for (;;) {
            std::function<void()> job;
            {
                std::unique_lock<std::mutex> lock(m);
                changed.wait(lock, [] { return done || !jobs.empty(); });
                if (jobs.empty()) return;
                job = std::move(jobs.front());
                jobs.pop_front();
            }
            job();
        }
    });
    for (int i = 0; i < 5; i++) {
        std::string name(30, char('a' + i));
        std::lock_guard<std::mutex> lock(m);
        jobs.push_back([name] { log += name; });
        changed.notify_one();
    }
    {
        std::lock_guard<std::mutex> lock(m);
        done = true;
    }
    changed.notify_one();
    worker.join();
    return log.size() != 150;
}
