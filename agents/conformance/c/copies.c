/* Copies and comparisons of sizes that the compiler knows.
optimised
main: r(from1)=1 r(from1+8)=2 w(to1)=1 w(to1+8)=2 w(to2)=0 w(to2+32)=0 r(from3)=3 r(from3+8)=4 r(to3)=3 r(word)=25185 w(text)=6513249 w(printed)=6647407
*/
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

uint64_t from1[2] = {1, 2}, to1[2], to2[5] = {1, 1, 1, 1, 1}, from3[2] = {3, 4}, to3[2] = {3, 4};
_Alignas(8) char word[8] = "ab", text[8], printed[8];
volatile int known = 1;

__attribute__((noinline)) static void copy(void *to, const void *from) { memcpy(to, from, 12); }
__attribute__((noinline)) static void fill(void *to) { memset(to, 0, 40); }
__attribute__((noinline)) static int same(const void *a, const void *b) { return !memcmp(a, b, 16); }
__attribute__((noinline)) static int is_ab(const char *s) { return !strcmp(s, "ab"); }
__attribute__((noinline)) static void set(char *s) { strcpy(s, "abc"); }
__attribute__((noinline)) static void print(char *s) { sprintf(s, "one"); }

int main(void) {
    copy(to1, from1);
    fill(to2);
    assert(same(from3, to3));
    assert(is_ab(word));
    set(text);
    print(printed);
    return known - 1;
}
