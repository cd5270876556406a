#include <iostream>
#include <thread>

int planted;

static void add() {
    planted++;
}

int main() {
    std::thread(add).join();
    std::thread one(add), two(add);
    one.join();
    two.join();
    std::cout << planted << '\n';
}
