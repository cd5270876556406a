// expect: race. The latch counts one arrival too few.
#include <latch>
#include <thread>
#include <vector>
int parts[3];
int main() {
    std::latch done(2);
    std::vector<std::thread> ts;
    for (int i = 0; i < 2; i++) ts.emplace_back([&, i] { parts[i] = i + 1; done.count_down(); });
    ts.emplace_back([&] { parts[2] = 3; });
    done.wait();
    int sum = parts[0] + parts[1] + parts[2];
    for (auto &t : ts) t.join();
    return sum > 6;
}
