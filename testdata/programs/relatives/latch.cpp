// expect: complete. A latch lets the main thread read what the others wrote.
#include <latch>
#include <thread>
#include <vector>
int parts[3];
int main() {
    std::latch done(3);
    std::vector<std::thread> ts;
    for (int i = 0; i < 3; i++) ts.emplace_back([&, i] { parts[i] = i + 1; done.count_down(); });
    done.wait();
    int sum = parts[0] + parts[1] + parts[2];
    for (auto &t : ts) t.join();
    return sum != 6;
}
