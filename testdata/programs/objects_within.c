// Structures around the members that pointers point to, arrays within arrays, and loops in both directions.
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; int balance; };
struct item { int before; int balance; struct node link; int after; int balance2; };
struct grid { char name[8]; struct item cells[2][3]; int total; };
struct vec { int n; struct item items[]; };
#define ITEM(p) ((struct item *)((char *)(p) - offsetof(struct item, link)))
static struct node head;
static struct grid *g;
static struct vec *v;
static struct item *all;
static int n = 4;
static void *walk(void *p) {
  for (struct node *k = head.next; k; k = k->next) { ITEM(k)->after = 5; ITEM(k)->before = 6; ITEM(k)->balance = 7; k->balance = 8; }
  return p; }
static void *fill(void *p) {
  for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) { g->cells[i][j].balance = i + j + 1; g->cells[i][j].link.balance = 2; }
  for (int i = 0; i < v->n; i++) { struct item *k = v->items + i; k->balance = i + 1; }
  for (struct item *k = all + n - 1; k >= all; k--) k->after = 4;
  for (int i = n; i > 0; i--) all[i - 1].balance = 9;
  return p; }
int main(void) {
  pthread_t t, u;
  for (int i = 0; i < 3; i++) { struct item *one; one = calloc(1, sizeof *one); one->link.next = head.next; head.next = &one->link; one->link.balance = 1; }
  g = calloc(1, sizeof *g); g->total = 3;
  v = calloc(1, sizeof *v + 3 * sizeof(struct item)); v->n = 3;
  all = malloc(n * sizeof *all); memset(all, 0, n * sizeof *all);
  pthread_create(&t, 0, walk, 0); pthread_create(&u, 0, fill, 0);
  pthread_join(t, 0); pthread_join(u, 0);
  int sum = 0;
  for (int i = 0; i < 6; i++) sum += g->cells[i / 3][i % 3].balance + g->cells[i / 3][i % 3].link.balance;
  for (int i = 0; i < 3; i++) sum += v->items[i].balance;
  for (int i = 0; i < 4; i++) sum += all[i].balance + all[i].after;
  return sum == 0; }
