/* Small programs in one: `program NAME` runs the scenario of that name, `program --list` lists them.
   RIGHT ones are ordered by what they are called after, so that nothing is found and the answer is complete; of QUIET ones
   it may be incomplete. Of WRONG ones, which lack that order, `x` is raced for. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scenario { const char *kind, *name; void (*run)(void); };
static struct scenario scenarios[200];
static int scenario_count;

static int x, y;
static int a[64];

#define SCENARIO(KIND, NAME) \
    static void run_##NAME(void); \
    __attribute__((constructor)) static void add_##NAME(void) { \
        scenarios[scenario_count].kind = #KIND; \
        scenarios[scenario_count].name = #NAME; \
        scenarios[scenario_count++].run = run_##NAME; \
    } \
    static void run_##NAME(void)
#define RIGHT(NAME) SCENARIO(right, NAME)
#define QUIET(NAME) SCENARIO(quiet, NAME)
#define WRONG(NAME) SCENARIO(wrong, NAME)

int main(int argc, char **argv) {
    assert(argc == 2);
    for (int i = 0; i < scenario_count; i++) {
        if (!strcmp(argv[1], "--list"))
            printf("%s %s\n", scenarios[i].kind, scenarios[i].name);
        else if (!strcmp(argv[1], scenarios[i].name)) {
            scenarios[i].run();
            return 0;
        }
    }
    return strcmp(argv[1], "--list") != 0;
}
