/* Accesses of every size, aligned or not, and copies.
expect
main: w(a)=18 w(b)=13330 w(c)=305419896 w(d)=81985529216486895 r(a)=18 r(b)=13330 r(c)=305419896 r(d)=81985529216486895 r(from)=8589934593 w(to)=1 w(to+4)=2 r(to+4)=2 w(packed+1)=7 r(packed+1)=7 w(big)=0 w(big+8)=0 w(big+16)=0 r(big+8)=0
*/
#include <stdint.h>
#include <string.h>

volatile uint8_t a;
volatile uint16_t b;
volatile uint32_t c;
volatile uint64_t d;
struct two { uint32_t x, y; };
struct two from = {1, 2}, to;
struct __attribute__((packed)) { uint8_t head; volatile uint32_t tail; uint8_t rest[3]; } packed __attribute__((aligned(8)));
uint64_t big[3];

int main(void) {
    uint64_t sum;
    a = 0x12;
    b = 0x3412;
    c = 0x12345678;
    d = 0x0123456789abcdef;
    sum = a;
    sum += b;
    sum += c;
    sum += d;
    to = from;
    sum += *(volatile uint32_t *)&to.y;
    packed.tail = 7;
    sum += packed.tail;
    memset(big, 0, sizeof big);
    sum += *(volatile uint64_t *)&big[1];
    return sum == 0;
}
