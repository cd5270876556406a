/* What C++ programs copy about: every part that is read or written is seen. Each line names a variable, what happens to
   it, and how many words of it.
parts
pair r 2
triple r 3
maybe r 4
view r 2
five r 5
captured r 3
captured_by_function r 3
assigned_pair w 2
assigned_maybe w 4
made w 3
in_tree r 1
exchanged1 rw 3
exchanged2 rw 3
shared rw 1
*/
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

struct Three {
    long a, b, c;
};

std::pair<long, long> pair{1, 2}, assigned_pair;
std::tuple<long, long, long> triple{1, 2, 3};
std::optional<Three> maybe{Three{1, 2, 3}}, assigned_maybe;
std::string_view view = "text";
std::array<long, 5> five{1, 2, 3, 4, 5};
Three captured{1, 2, 3}, captured_by_function{1, 2, 3}, made, exchanged1{1, 2, 3}, exchanged2{4, 5, 6};
long in_tree = 1;
std::shared_ptr<long> shared = std::make_shared<long>(3);

static long take_pair(std::pair<long, long> p) { return p.first + p.second; }
static long take_triple(std::tuple<long, long, long> t) { return std::get<0>(t) + std::get<2>(t); }
static long take_maybe(std::optional<Three> m) { return m ? m->c : 0; }
static long take_view(std::string_view v) { return static_cast<long>(v.size()); }
static long take_five(std::array<long, 5> f) { return f[4]; }
static long take_shared(std::shared_ptr<long> s) { return *s; }
static Three make(long n) { return {n, n, n}; }
static std::optional<Three> make_maybe(long n) { return Three{n, n, n}; }
static std::pair<long, long> make_pair(long n) { return {n, n}; }

// No compiler knows what is behind these.
long (*volatile with_pair)(std::pair<long, long>) = take_pair;
long (*volatile with_triple)(std::tuple<long, long, long>) = take_triple;
long (*volatile with_maybe)(std::optional<Three>) = take_maybe;
long (*volatile with_view)(std::string_view) = take_view;
long (*volatile with_five)(std::array<long, 5>) = take_five;
long (*volatile with_shared)(std::shared_ptr<long>) = take_shared;
Three (*volatile new_three)(long) = make;
std::optional<Three> (*volatile new_maybe)(long) = make_maybe;
std::pair<long, long> (*volatile new_pair)(long) = make_pair;
volatile long sum;

static long call(const std::function<long()> &f) { return f(); }
long (*volatile caller)(const std::function<long()> &) = call;

int main() {
    sum = with_pair(pair) + with_triple(triple) + with_maybe(maybe) + with_view(view) + with_five(five) + with_shared(shared);
    auto copy = [captured = captured] { return captured.a + captured.c; };
    sum = sum + caller(copy);
    Three three = captured_by_function;
    sum = sum + caller([three] { return three.b; });
    assigned_pair = new_pair(4);
    assigned_maybe = new_maybe(5);
    made = new_three(6);
    std::swap(exchanged1, exchanged2);
    sum = sum + (in_tree ? 1 : 0);
    return made.c == 6 && assigned_maybe->b == 5 && exchanged1.a == 4 ? 0 : 1;
}
