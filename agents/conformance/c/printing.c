/* The printf and scanf families: texts behind %s, what comes out, and what is scanned.
expect
main: r(f)=29477 r(a)=6647407 w(to1)=6647407 r(b)=7305076 w(to2)=3355185 r(c)=26740 w(count)=2 w(to3)=26740 r(count)=2 r(a)=6647407 r(b)=7305076 w(to4)=31375063276416623 r(a)=6647407 r(b)=7305076 r(c)=26740 r(c+2)=6645106 r(in)=3611997343810265143 r(in+8)=13614 w(number)=7 w(word)=1685221239 w(real)=4612811918334230528 r(real)=4612811918334230528
*/
#define _GNU_SOURCE
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Alignas(8) char to1[8], to2[8], to3[8], to4[8], a[8] = "one", b[8] = "two", c[8] = "three", f[8] = "%s", in[16] = "7 word 2.5";
int count, number;
double real;
_Alignas(8) char word[8];

static int through(char *to, size_t room, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(to, room, format, list);
    va_end(list);
    return n;
}

int main(void) {
    char *heap;
    assert(snprintf(to1, 8, f, a) == 3);
    /* more numbers than there are registers, of both kinds, before the text */
    assert(snprintf(to2, 4, "%d%ld%f%*d%c%x%g%.2e%e%a%f%f%Lf%f%s", 1, 2l, 3., 2, 4, 'c', 5, 6., 7., 8., 9., 1., 2., 3.l, 4., b) > 50);
    assert(sprintf(to3, "%.2s%n", c, &count) == 2 && count == 2);
    assert(through(to4, sizeof to4, "%s-%s", a, b) == 7);
    assert(asprintf(&heap, "%s", a) == 3);
    free(heap);
    FILE *file = tmpfile();
    assert(fprintf(file, "%s\n", b) == 4);
    printf("%s\n", c);
    assert(sscanf(in, "%d %4s %lf", &number, word, &real) == 3 && real == 2.5);
    return 0;
}
