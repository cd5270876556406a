// expect: complete. Whoever has the last reference deletes the object.
#include <memory>
#include <thread>
struct Node {
    int value;
    std::shared_ptr<Node> next;
};
int main() {
    auto head = std::make_shared<Node>(Node{1, std::make_shared<Node>(Node{2, nullptr})});
    std::weak_ptr<Node> weak = head;
    int x = 0, y = 0;
    std::thread a([&x, head] { x = head->value; });
    std::thread b([&y, head] { y = head->next->value; });
    head.reset();
    a.join();
    b.join();
    return x + y != 3 || !weak.expired();
}
