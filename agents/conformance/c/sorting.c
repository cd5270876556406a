/* qsort: elements are compared where they are and moved at the end; equal ones keep their order.
expect
main: r(pairs)=2 r(pairs+4)=1 r(pairs+8)=1 r(pairs+12)=2 r(pairs+16)=2 r(pairs+20)=3 r(pairs)=2 r(pairs+8)=1 r(pairs+8)=1 r(pairs+16)=2 r(pairs)=2 r(pairs+16)=2 w(pairs)=1 w(pairs+4)=2 w(pairs+8)=2 w(pairs+12)=1 w(pairs+16)=2 w(pairs+20)=3 r(pairs+4)=2 r(pairs+12)=1 r(pairs+20)=3
*/
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

_Alignas(8) struct pair { int32_t key, value; } pairs[3] = {{2, 1}, {1, 2}, {2, 3}};

static int compare(const void *a, const void *b) {
    return ((const struct pair *)a)->key - ((const struct pair *)b)->key;
}

int main(void) {
    qsort(pairs, 3, sizeof *pairs, compare);
    assert(pairs[0].value == 2 && pairs[1].value == 1 && pairs[2].value == 3);
    return 0;
}
