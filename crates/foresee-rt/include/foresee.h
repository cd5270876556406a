/* foresee.h: name events of your program for use in specifications.
 *
 *     FORESEE_EVENT("closed", buf);                 an event with up to four numbers or pointers
 *     FORESEE_ATOMIC("transfer");                   from here to the end of the block should be atomic
 *     FORESEE_ATOMIC_BEGIN("transfer"); ...         the same without a block
 *     FORESEE_ATOMIC_END("transfer");
 *
 * For `--check lifetime`, events named init or open, use, and free or close describe the lifetime of an object, their first number:
 *
 *     FORESEE_EVENT("open", fd); ... FORESEE_EVENT("use", fd); ... FORESEE_EVENT("close", fd);
 *
 * The functions behind these are weak: a program that is not built with `foresee cc` only tests a null pointer.
 */
#ifndef FORESEE_H
#define FORESEE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void foresee_event(const char *name, int count, const uint64_t *values) __attribute__((weak));
void foresee_begin(const char *name) __attribute__((weak));
void foresee_end(const char *name) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#define FORESEE_VALUE_(x) ((uint64_t)(uintptr_t)(x))
#define FORESEE_COUNT_(_0, _1, _2, _3, _4, n, ...) n
#define FORESEE_EVENT_0_(name) foresee_event(name, 0, (const uint64_t *)0)
#define FORESEE_EVENT_1_(name, a) do { \
    const uint64_t foresee_v_[1] = {FORESEE_VALUE_(a)}; foresee_event(name, 1, foresee_v_); } while (0)
#define FORESEE_EVENT_2_(name, a, b) do { \
    const uint64_t foresee_v_[2] = {FORESEE_VALUE_(a), FORESEE_VALUE_(b)}; foresee_event(name, 2, foresee_v_); } while (0)
#define FORESEE_EVENT_3_(name, a, b, c) do { \
    const uint64_t foresee_v_[3] = {FORESEE_VALUE_(a), FORESEE_VALUE_(b), FORESEE_VALUE_(c)}; \
    foresee_event(name, 3, foresee_v_); } while (0)
#define FORESEE_EVENT_4_(name, a, b, c, d) do { \
    const uint64_t foresee_v_[4] = {FORESEE_VALUE_(a), FORESEE_VALUE_(b), FORESEE_VALUE_(c), FORESEE_VALUE_(d)}; \
    foresee_event(name, 4, foresee_v_); } while (0)
#define FORESEE_EVENT(...) do { if (foresee_event) { \
    FORESEE_COUNT_(__VA_ARGS__, FORESEE_EVENT_4_, FORESEE_EVENT_3_, FORESEE_EVENT_2_, FORESEE_EVENT_1_, \
                   FORESEE_EVENT_0_, 0)(__VA_ARGS__); } } while (0)
#define FORESEE_JOIN_(a, b) a##b
#define FORESEE_JOIN(a, b) FORESEE_JOIN_(a, b)
#define FORESEE_ATOMIC_BEGIN(name) do { if (foresee_begin) foresee_begin(name); } while (0)
#define FORESEE_ATOMIC_END(name) do { if (foresee_end) foresee_end(name); } while (0)

/* A region that ends with its block, however the block is left: by `return`, `break`, `goto` or, in C++, an exception. Always
 * inlined, so that locations in reports are those of the program. */
#ifdef __cplusplus
namespace foresee {
class Atomic {
    const char *name_;

public:
    __attribute__((always_inline)) explicit Atomic(const char *name) : name_(name) { FORESEE_ATOMIC_BEGIN(name_); }
    __attribute__((always_inline)) ~Atomic() { FORESEE_ATOMIC_END(name_); }
    Atomic(const Atomic &) = delete;
    Atomic &operator=(const Atomic &) = delete;
};
}
#define FORESEE_ATOMIC(name) const foresee::Atomic FORESEE_JOIN(foresee_atomic_, __LINE__)(name)
#else
static inline __attribute__((always_inline)) void foresee_atomic_end_(const char *const *name) {
    FORESEE_ATOMIC_END(*name);
}
#define FORESEE_ATOMIC(name) \
    const char *const FORESEE_JOIN(foresee_atomic_, __LINE__) __attribute__((cleanup(foresee_atomic_end_), unused)) = \
        __extension__({ FORESEE_ATOMIC_BEGIN(name); (const char *)(name); })
#endif

#endif
