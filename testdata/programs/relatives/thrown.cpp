// expect: OBSERVED program-failure. Nobody catches what a thread throws.
#include <thread>
int main() {
    std::thread a([] { throw 5; });
    a.join();
}
