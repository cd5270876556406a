// expect: complete. Structures with gaps between their members are passed by value to threads.
#include <string>
#include <thread>
#include <vector>
struct Job {
    std::string name;
    std::vector<int> numbers;
    char kind;
    double weights[3];
};
int main() {
    std::size_t n[2];
    auto run = [](Job job, std::size_t *out) { *out = job.name.size() + job.numbers.size(); };
    std::thread a(run, Job{"a name that is longer than sixteen", {1, 2, 3}, 'a', {1, 2, 3}}, &n[0]);
    std::thread b(run, Job{"b", {}, 'b', {}}, &n[1]);
    a.join();
    b.join();
    return n[0] != 37 || n[1] != 1;
}
