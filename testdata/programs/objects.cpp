// Structures in containers and behind smart pointers.
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
namespace bank {
struct account { int id = 0; int balance = 0; std::mutex lock; };
struct plain { int id; int balance; };
struct vip : plain { int level; };
}
using bank::plain;
static std::vector<plain> v(3);
static std::map<int, plain> m;
static std::list<plain> l;
static std::deque<plain> q;
int main() {
  auto s = std::make_shared<plain>();
  auto u = std::make_unique<plain>();
  std::unique_ptr<plain> n(new plain());
  bank::vip *w = new bank::vip(); w->balance = 77; w->level = 3;
  m[3].balance = 4; m[4].balance = 5;
  l.push_back({1, 2}); q.push_back({3, 4}); q.push_back({5, 6});
  v[0].balance = 50; v.push_back({7, 8});
  s->balance = 60; u->balance = 61; n->balance = 62;
  std::thread t([&] { for (auto &x : v) x.balance += 1; for (auto &x : m) x.second.balance += 1; s->balance++; });
  std::thread k([&] { for (auto &x : l) x.balance += 1; for (auto &x : q) x.balance += 1; u->balance++; n->balance++; w->balance++; });
  t.join(); k.join();
}
