/* Prints where things are; the test compares names and places with what was printed. */
#define _GNU_SOURCE
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct valve { bool open; double level; };
struct pos { short x, y; };
struct ship { char name[12]; struct pos pos; struct ship *next; };
union either { int number; float real; unsigned char raw[8]; };
struct flags { unsigned ready : 1; unsigned error : 3; int code; };
enum mode { IDLE, BUSY, DOWN = -1 };

struct { struct valve valve; int pad; struct { long inner; }; } ctl = {{true, 2.5}, 0, {77}};
struct ship fleet[3];
union either either;
struct flags flags;
enum mode mode = DOWN;
static int landing = 1;
int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
uint64_t big = UINT64_MAX;
const char *text = "text";
__thread int own;
extern int library_counter;
int library_next(void);

static int count(void) {
    static int last = 41;
    return ++last;
}

/* The other file has one of the same name. */
void other_show(void);

static void *here;
static inline __attribute__((always_inline)) void leaf(void) {
    __asm__ volatile("lea 0(%%rip), %0" : "=r"(here)); /* LEAF */
}
__attribute__((noinline)) static void outer(void) {
    leaf(); /* OUTER */
}

void show(const char *name, const void *at, unsigned long size) {
    printf("object %s %lx %lu\n", name, (unsigned long)at, size);
}

static int module(struct dl_phdr_info *info, size_t size, void *data) {
    unsigned long end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            unsigned long last = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
            if (last > end) end = last;
        }
    (void)size, (void)data;
    printf("module %s %lx %lx\n", info->dlpi_name[0] ? info->dlpi_name : "-", (unsigned long)info->dlpi_addr,
           (unsigned long)info->dlpi_addr + end);
    return 0;
}

int main(void) {
    dl_iterate_phdr(module, NULL);
    show("ctl.valve.open", &ctl.valve.open, sizeof ctl.valve.open);
    show("ctl.valve.level", &ctl.valve.level, sizeof ctl.valve.level);
    show("ctl.inner", &ctl.inner, sizeof ctl.inner);
    show("fleet[1].pos.y", &fleet[1].pos.y, sizeof fleet[1].pos.y);
    show("fleet[2].name[3]", &fleet[2].name[3], 1);
    show("fleet[0].next", &fleet[0].next, sizeof fleet[0].next);
    show("either.number", &either, 4);
    show("mode", &mode, sizeof mode);
    show("flags.code", &flags.code, sizeof flags.code);
    show("matrix[1][2]", &matrix[1][2], sizeof(int));
    show("big", &big, sizeof big);
    show("text", &text, sizeof text);
    show("library_counter", &library_counter, sizeof library_counter);
    show("names.c:landing", &landing, sizeof landing);
    show("fleet[1].name[4..8]", &fleet[1].name[4], 4);
    show("big+4:4", (char *)&big + 4, 4);
    show("matrix[0]", &matrix[0], sizeof matrix[0]);
    other_show();
    outer();
    printf("code %lx\n", (unsigned long)here);
    return count() + library_next() + own == 0;
}
