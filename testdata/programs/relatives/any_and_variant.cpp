// expect: complete. What is ready is told by what an any, a variant, an optional and a tuple hold.
#include <any>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>
std::mutex m;
std::any box;
std::variant<int, std::string, std::vector<int>> choice;
std::optional<std::tuple<int, long, double>> three;
int ready;
static __attribute__((noinline)) std::tuple<int, long, double> make() { return {1, 2, 3.0}; }
int main() {
    std::thread a([] {
        ready = 1;
        std::lock_guard<std::mutex> lock(m);
        box = std::string(50, 'z');
        choice = std::vector<int>{1, 2, 3};
        three = make();
    });
    std::thread b([] {
        for (;;) {
            {
                std::lock_guard<std::mutex> lock(m);
                auto copy = three;
                if (box.has_value() && choice.index() == 2 && copy && std::get<2>(*copy) == 3.0) break;
            }
            std::this_thread::yield();
        }
        ready = 2;
    });
    a.join();
    b.join();
    return ready != 2;
}
