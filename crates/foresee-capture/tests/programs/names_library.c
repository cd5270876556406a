int library_counter = 7;
static struct { int depth; } library_state;
void show(const char *name, const void *at, unsigned long size);
int library_next(void) {
    static int last;
    show("library_state.depth", &library_state.depth, sizeof library_state.depth);
    show("library_next::last", &last, sizeof last);
    return ++library_counter + ++last;
}
