// Correct: the smallest C++ program with std::thread and std::mutex.
#include <thread>
#include <mutex>
std::mutex m; int x;
int main(){ std::thread a([]{ std::lock_guard<std::mutex> g(m); ++x; }), b([]{ std::lock_guard<std::mutex> g(m); ++x; }); a.join(); b.join(); return x!=2; }
