// Correct: containers, strings and smart pointers that two threads share, under one mutex.
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

std::mutex m;
std::list<int> jobs, done;
std::map<int, std::string> names;
std::set<int> seen;
std::unordered_map<int, int> counts;
std::deque<int> recent;
std::vector<std::string> lines;
std::shared_ptr<int> latest;
std::string text;

void work(int n) {
    for (int i = 0; i < 12; i++) {
        std::lock_guard<std::mutex> hold(m);
        jobs.push_back(i);
        jobs.push_front(n);
        done.splice(done.end(), jobs, jobs.begin());
        if (done.size() > 3) done.pop_front();
        jobs.reverse();
        names[i * 7 % 11] = "a name that does not fit into the string itself";
        if (i % 3 == 0) names.erase(names.begin());
        for (auto &name : names) seen.insert(name.first);
        counts[i % 5] += n;
        recent.push_back(i);
        if (recent.size() > 4) recent.pop_front();
        lines.push_back(text);
        lines.back() += "more of it, so that it has to grow";
        latest = std::make_shared<int>(i);
        text.append("x");
        if (text.size() > 20) text.clear();
    }
}

int main() {
    std::thread one(work, 1), two(work, 2);
    one.join();
    two.join();
    auto answer = std::async(std::launch::async, [] { return 42; });
    return answer.get() == 42 && lines.size() == 24 && *latest == 11 ? 0 : 1;
}
