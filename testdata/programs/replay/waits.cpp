// C++20: threads that wait for atomics, latches, semaphores and shared mutexes, and then race for `shared`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>

static int shared_value, turns;
static std::atomic<int> flag;
static std::latch latch{2};
static std::counting_semaphore<4> semaphore{1};
static std::shared_timed_mutex mutex;
static std::mutex plain;
static std::condition_variable condition;
static bool ready;

static void atomic_1() {
    flag.wait(0);
    shared_value = 1;
}
static void atomic_2() {
    flag = 1;
    flag.notify_all();
    shared_value = 2;
}
static void latch_1() {
    latch.arrive_and_wait();
    shared_value++;
}
static void semaphore_1() {
    semaphore.acquire();
    turns++;
    semaphore.release();
    shared_value = 1;
}
static void shared_1() {
    std::shared_lock<std::shared_timed_mutex> lock(mutex, std::chrono::seconds(20));
    int seen = turns;
    // Not in the section: if it came first, as what it read says, it would be over before the other one begins.
    lock.unlock();
    shared_value = seen;
}
static void shared_2() {
    {
        std::unique_lock<std::shared_timed_mutex> lock(mutex);
        turns++;
    }
    shared_value = 2;
}
static void condition_1() {
    std::unique_lock<std::mutex> lock(plain);
    condition.wait_for(lock, std::chrono::seconds(20), [] { return ready; });
    lock.unlock();
    shared_value = 1;
}
static void condition_2() {
    {
        std::lock_guard<std::mutex> lock(plain);
        ready = true;
    }
    condition.notify_one();
    shared_value = 2;
}

int main(int argc, char **argv) {
    struct {
        const char *name;
        void (*threads[2])();
    } programs[] = {{"atomic", {atomic_1, atomic_2}}, {"latch", {latch_1, latch_1}}, {"semaphore", {semaphore_1, semaphore_1}},
                    {"shared", {shared_1, shared_2}}, {"condition", {condition_1, condition_2}}};
    for (auto &program : programs)
        if (argc > 1 && std::strcmp(argv[1], program.name) == 0) {
            std::thread s(program.threads[0]), t(program.threads[1]);
            s.join();
            t.join();
            return 0;
        }
    return 8;
}
