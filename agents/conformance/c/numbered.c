/* Formats that number their arguments, with numbers of other kinds in between.
expect
main: r(b)=7305076 r(a)=6647407 w(to1)=28550396430481268 r(c)=7891315 w(to2)=60688717867379 r(d)=25972 w(to3)=25972 r(a)=6647407 r(in)=517165228087 w(number)=7 w(word)=7891315
*/
#include <assert.h>
#include <stdio.h>

_Alignas(8) char to1[8], to2[8], to3[8], a[8] = "one", b[8] = "two", c[8] = "six", d[8] = "ten", in[8] = "7 six", word[8];
int number;

int main(void) {
    assert(snprintf(to1, 8, "%2$s-%1$s", a, b) == 7);
    assert(snprintf(to2, 8, "%4$s%1$d%2$.0f%3$.0Lf", 1, 2., 7.l, c) == 6);
    assert(snprintf(to3, 8, "%2$.*1$s", 2, d) == 2);
    /* wide ones, and more than there are registers */
    printf("%9$s %8$*7$d %1$d %2$d %3$d %4$d %5$d %6$d\n", 1, 2, 3, 4, 5, 6, 7, 8, a);
    assert(sscanf(in, "%2$d %1$3s", word, &number) == 2);
    return 0;
}
