/* Structures and other values of several words: every part that is read or written is seen, with either compiler, optimised
   or not. Each line names a variable, what happens to it, and how many words of it.
parts
by_value3 r 3
by_value2 r 2
by_value1 r 1
by_doubles r 2
by_mixed r 2
by_value_big r 25
behind_pointer r 3
behind_pointer_big r 25
in_varargs3 r 3
in_varargs2 r 2
returned3 w 3
returned2 w 2
returned_doubles w 2
returned_big w 25
into_pointer w 3
copied_from r 3
copied_to w 3
copied_from_big r 25
copied_to_big w 25
initialised w 3
zeroed w 3
zeroed_big w 25
elements r 6
outer r 5
given_back r 3
chosen r 3
builtin_from r 3
builtin_to w 3
builtin_set w 5
complex_from r 2
complex_to w 2
vector_from r 2
vector_to w 2
vector4_from r 4
vector4_to w 4
long_from r 2
long_to w 2
swapped1 rw 3
swapped2 rw 3
assembled_from r 1
assembled_to w 1
expected rw 1
*/
#include <assert.h>
#include <stdarg.h>

struct S1 { long a; };
struct S2 { long a, b; };
struct S3 { long a, b, c; };
struct Doubles { double a, b; };
struct Mixed { long a; double b; };
struct Big { long v[25]; };
typedef long Vector __attribute__((vector_size(16)));
typedef long Vector4 __attribute__((vector_size(32)));

struct S3 by_value3 = {1, 2, 3}, behind_pointer = {1, 2, 3}, in_varargs3 = {1, 2, 3}, returned3, into_pointer, copied_from = {1, 2, 3}, copied_to,
    initialised, zeroed = {1, 1, 1}, elements[2] = {{1, 2, 3}, {4, 5, 6}}, given_back = {1, 2, 3}, chosen = {1, 2, 3}, not_chosen = {4, 5, 6},
    builtin_from = {1, 2, 3}, builtin_to, swapped1 = {1, 2, 3}, swapped2 = {4, 5, 6};
struct S2 by_value2 = {1, 2}, in_varargs2 = {1, 2}, returned2;
struct S1 by_value1 = {1};
struct Doubles by_doubles = {1, 2}, returned_doubles;
struct Mixed by_mixed = {1, 2};
struct Big by_value_big = {{1}}, behind_pointer_big = {{1}}, returned_big, copied_from_big = {{1}}, copied_to_big, zeroed_big = {{1}};
struct { struct S2 first; struct S3 second; } outer = {{1, 2}, {3, 4, 5}};
long builtin_set[5] = {1, 1, 1, 1, 1}, assembled_from = 5, assembled_to, expected = 7, atom = 8;
_Complex double complex_from = 1, complex_to;
Vector vector_from = {1, 2}, vector_to;
Vector4 vector4_from = {1, 2, 3, 4}, vector4_to;
long double long_from = 1, long_to;

static long take1(struct S1 v) { return v.a; }
static long take2(struct S2 v) { return v.a + v.b; }
static long take3(struct S3 v) { return v.a + v.b + v.c; }
static long take_doubles(struct Doubles v) { return (long)(v.a + v.b); }
static long take_mixed(struct Mixed v) { return v.a + (long)v.b; }
static long take_big(struct Big v) { return v.v[0] + v.v[24]; }
static long take_any(int n, ...) {
    va_list list;
    va_start(list, n);
    struct S3 three = va_arg(list, struct S3);
    struct S2 two = va_arg(list, struct S2);
    va_end(list);
    return three.a + three.c + two.b;
}
static struct S2 make2(long n) { return (struct S2){n, n + 1}; }
static struct S3 make3(long n) { return (struct S3){n, n + 1, n + 2}; }
static struct Doubles make_doubles(long n) { return (struct Doubles){(double)n, (double)n + 1}; }
static struct Big make_big(long n) { struct Big b = {{n}}; b.v[24] = n; return b; }
static struct S3 give(void) { return given_back; }
static void copy_big(struct Big *to, const struct Big *from) { *to = *from; }

/* No compiler knows what is behind these. */
long (*volatile one)(struct S1) = take1, (*volatile two)(struct S2) = take2, (*volatile three)(struct S3) = take3,
    (*volatile doubles)(struct Doubles) = take_doubles, (*volatile mixed)(struct Mixed) = take_mixed, (*volatile big)(struct Big) = take_big,
    (*volatile any)(int, ...) = take_any;
struct S2 (*volatile new2)(long) = make2;
struct S3 (*volatile new3)(long) = make3, (*volatile get)(void) = give;
struct Doubles (*volatile new_doubles)(long) = make_doubles;
struct Big (*volatile new_big)(long) = make_big;
void (*volatile copy)(struct Big *, const struct Big *) = copy_big;
struct S3 *volatile at = &behind_pointer, *volatile to = &into_pointer;
struct Big *volatile at_big = &behind_pointer_big;
volatile int yes = 1;
volatile long sum;

int main(void) {
    sum += three(by_value3) + two(by_value2) + one(by_value1) + doubles(by_doubles) + mixed(by_mixed) + big(by_value_big);
    sum += three(*at) + big(*at_big) + any(2, in_varargs3, in_varargs2);
    returned3 = new3(4);
    returned2 = new2(5);
    returned_doubles = new_doubles(6);
    returned_big = new_big(7);
    *to = new3(8);
    copied_to = copied_from;
    copy(&copied_to_big, &copied_from_big);
    initialised = (struct S3){sum, 2, sum};
    zeroed = (struct S3){0};
    zeroed_big = (struct Big){{0}};
    sum += three(elements[yes]) + three(elements[1 - yes]);
    sum += two(outer.first) + three(outer.second);
    sum += three(get());
    sum += three(yes ? chosen : not_chosen);
    __builtin_memcpy(&builtin_to, &builtin_from, sizeof builtin_to);
    __builtin_memset(builtin_set, 0, sizeof builtin_set);
    complex_to = complex_from;
    vector_to = vector_from;
    vector4_to = vector4_from;
    long_to = long_from;
    struct S3 between = swapped1;
    swapped1 = swapped2;
    swapped2 = between;
    long word;
    __asm__ volatile("movq %1, %0" : "=r"(word) : "m"(assembled_from));
    __asm__ volatile("movq %1, %0" : "=m"(assembled_to) : "r"(word));
    assert(!__atomic_compare_exchange_n(&atom, &expected, 9, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) && expected == 8);
    return returned3.c + returned_big.v[24] + copied_to_big.v[0] + (long)returned_doubles.a == 20 ? 0 : 1;
}
