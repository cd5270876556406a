// The C++ side of names.c.
#include <atomic>
#include <cstdio>
#include <link.h>

namespace bank {
struct Base { int id = 3; };
struct Account : Base {
    long balance = 100;
    static int opened;
};
int Account::opened = 5;
Account accounts[2];
namespace {
int hidden = 9;
}
std::atomic<int> ready{0};
template <class T> struct Slot { T value; };
Slot<double> slot{1.5};
int &next() {
    static int last = 1;
    return last;
}
} // namespace bank

static void show(const char *name, const void *at, unsigned long size) {
    std::printf("object %s %lx %lu\n", name, (unsigned long)at, size);
}

static int module(dl_phdr_info *info, size_t, void *) {
    unsigned long end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            unsigned long last = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
            if (last > end) end = last;
        }
    std::printf("module %s %lx %lx\n", info->dlpi_name[0] ? info->dlpi_name : "-",
                (unsigned long)info->dlpi_addr, (unsigned long)info->dlpi_addr + end);
    return 0;
}

int main() {
    dl_iterate_phdr(module, nullptr);
    show("bank::accounts[1].balance", &bank::accounts[1].balance, sizeof(long));
    show("bank::accounts[0].id", &bank::accounts[0].id, sizeof(int));
    show("bank::Account::opened", &bank::Account::opened, sizeof(int));
    show("bank::hidden", &bank::hidden, sizeof(int));
    show("bank::slot.value", &bank::slot.value, sizeof(double));
    show("bank::next::last", &bank::next(), sizeof(int));
    show("bank::ready", &bank::ready, sizeof(int));
    return 0;
}
