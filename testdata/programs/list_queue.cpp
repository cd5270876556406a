// Correct: the canonical work queue, std::list with a mutex and a condition variable.
#include <thread>
#include <mutex>
#include <condition_variable>
#include <list>
std::mutex m; std::condition_variable cv; std::list<int> q; bool started; int config; long sum;
int main(){
  std::thread consumer([]{ { std::unique_lock<std::mutex> g(m); cv.wait(g,[]{ return !q.empty(); }); }   // first job there: config is ready
    sum+=config;                                                                                          // read without the lock: fine
    for(int n=0;n<5;n++){ std::unique_lock<std::mutex> g(m); cv.wait(g,[]{ return !q.empty(); }); sum+=q.front(); q.pop_front(); } });
  std::thread producer([]{ config=7; for(int i=0;i<5;i++){ std::lock_guard<std::mutex> g(m); q.push_back(i); cv.notify_one(); } });
  producer.join(); consumer.join(); return sum!=17; }
