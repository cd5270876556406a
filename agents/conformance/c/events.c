/* Events that the program reports itself.
expect
main: event(started) event(sum,3,4) begin(transfer) w(x)=1 end(transfer) event(negative,-5)
*/
#include "foresee.h"

int x;

int main(void) {
    FORESEE_EVENT("started");
    FORESEE_EVENT("sum", 3, 4);
    FORESEE_ATOMIC_BEGIN("transfer");
    x = 1;
    FORESEE_ATOMIC_END("transfer");
    FORESEE_EVENT("negative", -5);
    return 0;
}
