// Correct: the smallest C++ program with two threads. The two blocks that threads are started with are two blocks.
#include <thread>
int main(){ std::thread a([]{}), b([]{}); a.join(); b.join(); }
