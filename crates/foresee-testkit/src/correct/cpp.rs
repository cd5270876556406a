//! Programs in C++.

use fastrand::Rng;

use super::{fill, pick};

pub(super) const HEAD: &str = r#"#include <pthread.h>
#include <semaphore.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>
using std::string;

struct Point {
    int x = 0, y = 0;
    long sum = 0;
};
inline Point moved(Point p, int by) {
    p.x += by;
    p.y -= by;
    p.sum += p.x + p.y;
    return p;
}
template <class F> void pthreads(int n, F work) {
    struct Job { F *work; int me; };
    std::vector<Job> jobs;
    std::vector<pthread_t> threads(n);
    for (int i = 0; i < n; i++) jobs.push_back(Job{&work, i});
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], nullptr, [](void *p) -> void * {
            Job *job = static_cast<Job *>(p);
            (*job->work)(job->me);
            return nullptr;
        }, &jobs[i]);
    for (int i = 0; i < n; i++) pthread_join(threads[i], nullptr);
}
class Pool {
    std::mutex mutex;
    std::condition_variable ready;
    std::deque<std::function<void()>> jobs;
    bool closed = false;
    std::vector<std::thread> threads;
    void run() {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex);
            ready.wait(lock, [this] { return closed || !jobs.empty(); });
            if (jobs.empty()) return;
            std::function<void()> job = std::move(jobs.front());
            jobs.pop_front();
            lock.unlock();
            job();
        }
    }
public:
    explicit Pool(int n) {
        for (int i = 0; i < n; i++) threads.emplace_back([this] { run(); });
    }
    void add(std::function<void()> job) {
        {
            std::lock_guard<std::mutex> lock(mutex);
            jobs.push_back(std::move(job));
        }
        ready.notify_one();
    }
    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex);
            closed = true;
        }
        ready.notify_all();
        for (auto &t : threads) t.join();
    }
};
class Spin {
    std::atomic_flag flag = ATOMIC_FLAG_INIT;
public:
    void lock() { while (flag.test_and_set(std::memory_order_acquire)) std::this_thread::yield(); }
    void unlock() { flag.clear(std::memory_order_release); }
};
class Semaphore {
    sem_t semaphore;
public:
    Semaphore() { sem_init(&semaphore, 0, 1); }
    void lock() { sem_wait(&semaphore); }
    void unlock() { sem_post(&semaphore); }
};
"#;

/// What threads share: name, declaration, what each thread does (`me`, `i`), and what holds at the
/// end (`all` is the total number of steps).
const SHARED: [(&str, &str, &str, &str); 14] = [
    (
        "list",
        "std::list<int> thing;",
        "thing.push_back(me * 100 + i); if (i % 3 == 2) thing.pop_front();",
        "(int)thing.size() == $N * ($K - $K / 3)",
    ),
    ("vector", "std::vector<int> thing;", "thing.push_back(me + i);", "(int)thing.size() == all"),
    (
        "map",
        "std::map<int, int> thing;",
        "thing[i % 5] += me + 1;",
        "thing.size() == ($K < 5 ? $K : 5)",
    ),
    (
        "unordered_map",
        "std::unordered_map<int, string> thing;",
        "thing[i] += char('a' + me);",
        "(int)thing.size() == $K && (int)thing[0].size() == $N",
    ),
    ("set", "std::set<int> thing;", "thing.insert(me * 1000 + i);", "(int)thing.size() == all"),
    (
        "multiset",
        "std::multiset<string> thing;",
        "thing.insert(std::to_string(i));",
        "(int)thing.count(\"0\") == $N",
    ),
    (
        "deque",
        "std::deque<long> thing;",
        "if (i % 2) thing.push_front(i); else thing.push_back(i);",
        "(int)thing.size() == all",
    ),
    (
        "string",
        "string thing;",
        "thing += \"ab\"; thing.push_back('c');",
        "(int)thing.size() == 3 * all",
    ),
    (
        "struct",
        "Point thing;",
        "thing = moved(thing, me + 1);",
        "thing.x == $K * $N * ($N + 1) / 2",
    ),
    (
        "shared_ptr",
        "std::shared_ptr<int> thing = std::make_shared<int>(0);",
        "auto mine = thing; thing = std::make_shared<int>(*mine + 1);",
        "*thing == all",
    ),
    (
        "unique_ptr",
        "std::unique_ptr<Point> thing(new Point);",
        "auto mine = std::move(thing); mine->x++; thing = std::move(mine);",
        "thing->x == all",
    ),
    ("optional", "std::optional<int> thing;", "thing = thing ? *thing + 1 : 1;", "*thing == all"),
    (
        "pair",
        "std::pair<int, string> thing;",
        "thing = std::make_pair(thing.first + 1, string(\"step\"));",
        "thing.first == all && thing.second == \"step\"",
    ),
    (
        "function",
        "std::function<int()> thing = [] { return 0; };",
        "int now = thing() + 1; thing = [now] { return now; };",
        "thing() == all",
    ),
];

/// How it is guarded: name, declaration, and how it is acquired for the rest of a block.
const GUARDS: [(&str, &str, &str); 9] = [
    ("lock_guard", "std::mutex guard;", "std::lock_guard<std::mutex> lock(guard);"),
    ("unique_lock", "std::mutex guard;", "std::unique_lock<std::mutex> lock(guard);"),
    (
        "recursive",
        "std::recursive_mutex guard;",
        "std::lock_guard<std::recursive_mutex> lock(guard), again(guard);",
    ),
    ("timed", "std::timed_mutex guard;", "std::lock_guard<std::timed_mutex> lock(guard);"),
    (
        "shared_mutex",
        "std::shared_mutex guard;",
        "std::unique_lock<std::shared_mutex> lock(guard);",
    ),
    ("scoped_lock", "std::mutex guard, other;", "std::scoped_lock lock(guard, other);"),
    ("spin", "Spin guard;", "std::lock_guard<Spin> lock(guard);"),
    ("semaphore", "Semaphore guard;", "std::lock_guard<Semaphore> lock(guard);"),
    (
        "deferred",
        "std::mutex guard;",
        "std::unique_lock<std::mutex> lock(guard, std::defer_lock); lock.lock();",
    ),
];

/// How threads are run.
const RUNNERS: [(&str, &str); 5] = [
    (
        "threads",
        "std::vector<std::thread> threads;\n    for (int me = 0; me < $N; me++) threads.emplace_back(work, me);\n    for (auto &t : threads) t.join();",
    ),
    ("pthreads", "pthreads($N, work);"),
    (
        "async",
        "std::vector<std::future<void>> done;\n    for (int me = 0; me < $N; me++) done.push_back(std::async(std::launch::async, work, me));\n    for (auto &d : done) d.get();",
    ),
    (
        "pool",
        "{\n        Pool pool(2);\n        for (int me = 0; me < $N; me++) pool.add([&work, me] { work(me); });\n    }",
    ),
    (
        "packaged_task",
        "std::vector<std::future<void>> done;\n    std::vector<std::thread> threads;\n    for (int me = 0; me < $N; me++) {\n        std::packaged_task<void(int)> task(work);\n        done.push_back(task.get_future());\n        threads.emplace_back(std::move(task), me);\n    }\n    for (auto &d : done) d.wait();\n    for (auto &t : threads) t.join();",
    ),
];

const GUARDED: &str = r"static int run_@() {
    $SHARED
    $GUARD
    const int all = $N * $K;
    (void)all;
    auto work = [&](int me) {
        for (int i = 0; i < $K; i++) {
            $TAKE
            $STEP
        }
    };
    $RUN
    CHECK($END);
    return 0;
}
";

/// Patterns that people write, with a name each.
const PATTERNS: [(&str, &str); 16] = [
    (
        "promise",
        r#"static int run_@() {
    std::promise<std::vector<string>> promise;
    std::future<std::vector<string>> future = promise.get_future();
    std::thread maker([&promise] {
        std::vector<string> made;
        for (int i = 0; i < $K; i++) made.push_back("item " + std::to_string(i));
        promise.set_value(std::move(made));
    });
    std::vector<string> got = future.get();
    CHECK((int)got.size() == $K && got[0] == "item 0");
    maker.join();
    return 0;
}
"#,
    ),
    (
        "map_reduce",
        r"static int run_@() {
    std::vector<int> data($N * $K);
    for (size_t i = 0; i < data.size(); i++) data[i] = (int)i;
    std::vector<std::future<long>> parts;
    for (int me = 0; me < $N; me++)
        parts.push_back(std::async(std::launch::async, [&data, me] {
            long sum = 0;
            for (int i = me * $K; i < (me + 1) * $K; i++) sum += data[i];
            return sum;
        }));
    long sum = 0;
    for (auto &part : parts) sum += part.get();
    CHECK(sum == (long)data.size() * (long)(data.size() - 1) / 2);
    return 0;
}
",
    ),
    (
        "condition_queue",
        r#"static int run_@() {
    std::mutex guard;
    std::condition_variable ready;
    std::deque<string> queue;
    bool over = false;
    std::thread maker([&] {
        for (int i = 0; i < $K; i++) {
            std::lock_guard<std::mutex> lock(guard);
            queue.push_back("text number " + std::to_string(i));
            ready.notify_one();
        }
        std::lock_guard<std::mutex> lock(guard);
        over = true;
        ready.notify_all();
    });
    int got = 0;
    for (;;) {
        std::unique_lock<std::mutex> lock(guard);
        ready.wait(lock, [&] { return over || !queue.empty(); });
        if (queue.empty()) break;
        string text = queue.front();
        queue.pop_front();
        lock.unlock();
        CHECK(text == "text number " + std::to_string(got));
        got++;
    }
    maker.join();
    CHECK(got == $K);
    return 0;
}
"#,
    ),
    (
        "timed_condition",
        r"static int run_@() {
    std::mutex guard;
    std::condition_variable ready;
    int stage = 0;
    std::thread other([&] {
        std::lock_guard<std::mutex> lock(guard);
        stage = $K;
        ready.notify_all();
    });
    {
        std::unique_lock<std::mutex> lock(guard);
        while (stage != $K) ready.wait_for(lock, std::chrono::milliseconds(50));
    }
    other.join();
    CHECK(stage == $K);
    return 0;
}
",
    ),
    (
        "call_once",
        r"static std::once_flag once_@;
static std::unique_ptr<std::map<int, string>> table_@;
static int run_@() {
    std::vector<std::thread> threads;
    std::atomic<int> sum{0};
    for (int me = 0; me < $N; me++)
        threads.emplace_back([&sum] {
            std::call_once(once_@, [] {
                table_@.reset(new std::map<int, string>);
                for (int i = 0; i < $K; i++) (*table_@)[i] = std::to_string(i);
            });
            sum += (int)table_@->size();
        });
    for (auto &t : threads) t.join();
    CHECK(sum == $N * $K);
    return 0;
}
",
    ),
    (
        "static_local",
        r"static const std::vector<int> &table_@() {
    static const std::vector<int> table($K, 7);
    return table;
}
static int run_@() {
    std::vector<int> seen($N);
    std::vector<std::thread> threads;
    for (int me = 0; me < $N; me++) threads.emplace_back([&seen, me] { seen[me] = table_@()[me % $K]; });
    for (auto &t : threads) t.join();
    for (int s : seen) CHECK(s == 7);
    return 0;
}
",
    ),
    (
        "shared_mutex_readers",
        r"static int run_@() {
    std::shared_mutex guard;
    std::map<int, int> table;
    std::atomic<int> found{0};
    std::vector<std::thread> threads;
    for (int me = 0; me < $N; me++)
        threads.emplace_back([&, me] {
            for (int i = 0; i < $K; i++) {
                if (me == 0) {
                    std::unique_lock<std::shared_mutex> lock(guard);
                    table[i] = i;
                } else {
                    std::shared_lock<std::shared_mutex> lock(guard);
                    auto at = table.find(i);
                    if (at != table.end()) found += at->second == i;
                }
            }
        });
    for (auto &t : threads) t.join();
    CHECK((int)table.size() == $K && found <= ($N - 1) * $K);
    return 0;
}
",
    ),
    (
        "atomic_counter",
        r"static int run_@() {
    std::atomic<long> sum{0};
    std::atomic<bool> seen{false};
    std::vector<std::thread> threads;
    for (int me = 0; me < $N; me++)
        threads.emplace_back([&, me] {
            for (int i = 0; i < $K; i++) sum.fetch_add(me + 1);
            seen.store(true);
        });
    for (auto &t : threads) t.join();
    CHECK(seen && sum == $K * $N * ($N + 1) / 2);
    return 0;
}
",
    ),
    (
        "publish",
        r"struct Made_@ { int number; string text; };
static int run_@() {
    std::atomic<Made_@ *> made{nullptr};
    std::thread maker([&made] { made.store(new Made_@{$K, string(40, 'z')}, std::memory_order_release); });
    Made_@ *got;
    while (!(got = made.load(std::memory_order_acquire))) std::this_thread::yield();
    CHECK(got->number == $K && got->text.size() == 40);
    maker.join();
    delete got;
    return 0;
}
",
    ),
    (
        "compare_exchange",
        r"struct Node_@ { int value; Node_@ *next; };
static int run_@() {
    std::atomic<Node_@ *> top{nullptr};
    std::vector<std::thread> threads;
    for (int me = 0; me < $N; me++)
        threads.emplace_back([&top, me] {
            for (int i = 0; i < $K; i++) {
                Node_@ *node = new Node_@{me * 100 + i, nullptr};
                Node_@ *old = top.load();
                do node->next = old;
                while (!top.compare_exchange_weak(old, node));
            }
        });
    for (auto &t : threads) t.join();
    int count = 0;
    for (Node_@ *node = top; node; count++) {
        Node_@ *next = node->next;
        delete node;
        node = next;
    }
    CHECK(count == $N * $K);
    return 0;
}
",
    ),
    (
        "shared_config",
        r#"static int run_@() {
    auto config = std::make_shared<const std::map<string, string>>(
        std::map<string, string>{{"name", "foresee"}, {"mode", "quiet"}});
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int me = 0; me < $N; me++)
        threads.emplace_back([config, &right] {
            for (int i = 0; i < $K; i++) right += config->at("name") == "foresee";
        });
    config.reset();
    for (auto &t : threads) t.join();
    CHECK(right == $N * $K);
    return 0;
}
"#,
    ),
    (
        "weak_ptr",
        r"static int run_@() {
    auto value = std::make_shared<Point>();
    std::weak_ptr<Point> weak = value;
    std::atomic<int> seen{0};
    std::vector<std::thread> threads;
    for (int me = 0; me < $N; me++)
        threads.emplace_back([weak, &seen] {
            for (int i = 0; i < $K; i++)
                if (auto locked = weak.lock()) seen += locked->x == 0;
        });
    for (auto &t : threads) t.join();
    CHECK(seen == $N * $K && value.use_count() == 1);
    return 0;
}
",
    ),
    (
        "slices",
        r"static int run_@() {
    std::vector<Point> points($N * $K);
    std::vector<std::thread> threads;
    for (int me = 0; me < $N; me++)
        threads.emplace_back([&points, me] {
            for (int i = me * $K; i < (me + 1) * $K; i++) points[i] = moved(points[i], i);
        });
    for (auto &t : threads) t.join();
    for (int i = 0; i < $N * $K; i++) CHECK(points[i].x == i && points[i].y == -i);
    return 0;
}
",
    ),
    (
        "thread_local",
        r"static thread_local std::vector<int> mine_@;
static int run_@() {
    std::vector<size_t> sizes($N);
    std::vector<std::thread> threads;
    for (int me = 0; me < $N; me++)
        threads.emplace_back([&sizes, me] {
            for (int i = 0; i <= me; i++) mine_@.push_back(i);
            sizes[me] = mine_@.size();
        });
    for (auto &t : threads) t.join();
    for (int me = 0; me < $N; me++) CHECK((int)sizes[me] == me + 1);
    return 0;
}
",
    ),
    (
        "exception",
        r#"static int run_@() {
    std::vector<std::future<string>> results;
    for (int me = 0; me < $N; me++)
        results.push_back(std::async(std::launch::async, [me]() -> string {
            if (me == 1) throw std::string("one is odd");
            return string($K, 'e');
        }));
    int thrown = 0;
    for (auto &result : results) {
        try {
            CHECK((int)result.get().size() == $K);
        } catch (const std::string &why) {
            thrown += why == "one is odd";
        }
    }
    CHECK(thrown == 1);
    return 0;
}
"#,
    ),
    (
        "move_through_threads",
        r"static int run_@() {
    std::unique_ptr<std::vector<int>> data(new std::vector<int>);
    for (int me = 0; me < $N; me++) {
        std::thread worker([&data, mine = std::move(data), me]() mutable {
            for (int i = 0; i < $K; i++) mine->push_back(me);
            data = std::move(mine);
        });
        worker.join();
    }
    CHECK((int)data->size() == $N * $K && data->back() == $N - 1);
    return 0;
}
",
    ),
];

pub(super) fn program(rng: &mut Rng) -> (String, String) {
    let (n, k) = (rng.u32(2..5).to_string(), rng.u32(3..13).to_string());
    let sizes = [("N", n.as_str()), ("K", k.as_str())];
    if rng.u32(..5) < 2 {
        let (name, text) = pick(rng, &PATTERNS);
        return ((*name).to_owned(), fill(text, &sizes));
    }
    let (shared, declared, step, end) = *pick(rng, &SHARED);
    let (guard, guards, take) = *pick(rng, &GUARDS);
    let (runner, run) = *pick(rng, &RUNNERS);
    let text = fill(
        GUARDED,
        &[
            ("SHARED", declared),
            ("GUARD", guards),
            ("TAKE", take),
            ("STEP", step),
            ("RUN", run),
            ("END", end),
        ],
    );
    (format!("{shared} under {guard} by {runner}"), fill(&text, &sizes))
}
