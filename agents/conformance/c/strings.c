/* Texts: what libc reads and writes of them, up to where it looks and no further.
expect
main: r(s1)=25185 r(s1+2)=0 r(s1)=25185 r(s2)=97 r(s1)=25185 r(s1+2)=0 r(s3)=6513217 r(s2)=97 w(s4)=97 w(s4+1)=0 r(s4+1)=0 r(s4)=97 r(s4+1)=0 r(s5)=31096 w(s4+1)=120 w(s4+2)=121 r(s4)=97 r(s4+1)=120 r(s4+2)=121 r(s5)=31096 r(s2)=97 r(s5)=31096 r(s5+2)=122 r(m1)=25185 r(m1+2)=99 r(m2)=5792353 r(m1)=25185 r(m1)=25185 r(m1+2)=99 r(m1+3)=100 w(m3)=1684234849 r(s6)=97 r(s6+1)=44 r(s6+2)=98 w(s6+1)=0 r(s7)=2110001 r(s7)=2110001 r(s2)=97 w(s8)=97 w(s8+3)=0 r(s8+3)=0 r(s9)=15723 r(s10)=7370084 r(s11)=11633 r(w1)=119 r(w1)=119 w(w2)=119
*/
#define _GNU_SOURCE
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

_Alignas(8) char s1[8] = "ab", s2[8] = "a", s3[8] = "Abc", s4[8], s5[8] = "xyz", s6[8] = "a,b", s7[8] = "12 3", s8[8], s9[8] = "k=v", s10[8] = "dup", s11[8] = "q-";
_Alignas(8) char m1[8] = "abcdefg", m2[8] = "abX", m3[8];
_Alignas(8) wchar_t w1[2] = L"w", w2[2];

int main(void) {
    char *heap, *rest;
    assert(strlen(s1) == 2);
    assert(strcmp(s1, s2) > 0);
    assert(strcasecmp(s1, s3) < 0);
    assert(!strcpy(s4, s2)[1]);
    assert(!strcmp(strncat(s4, s5, 2), "axy"));
    assert(strchr(s5, 'y') == s5 + 1);
    assert(!strstr(s5, s2));
    assert(memcmp(m1, m2, 8) > 0);
    assert(memchr(m1, 'b', 8) == m1 + 1);
    assert(mempcpy(m3, m1, 4) == m3 + 4);
    assert(strtok_r(s6, ",", &rest) == s6);
    assert(strtol(s7, 0, 10) == 12);
    assert(strtod(s7, 0) == 12);
    assert(!strncpy(s8, s2, 4)[3]);
    assert(strcspn(s9, "=") == 1);
    heap = strdup(s10);
    assert(heap[2] == 'p');
    free(heap);
    assert(strrchr(s11, '-') == s11 + 1);
    assert(wcslen(w1) == 1);
    assert(wcscpy(w2, w1) == w2);
    return 0;
}
