static int landing = 2;
void show(const char *name, const void *at, unsigned long size);
void other_show(void) {
    show("names_other.c:landing", &landing, sizeof landing);
}
