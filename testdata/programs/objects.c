// Accounts wherever a C program has them: allocated in several ways, in other structures, in variables.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct account { int id; int balance; pthread_mutex_t lock; };
struct bank { int n; struct account in[2]; struct account *own; struct account *list[4]; };
struct other { long a, b, c; };
static struct account fleet[2] = {{1, 10}, {2, 20}};
static char arena[1024];
static size_t used;
static void *pool(size_t n) { void *p = arena + used; used += n; return p; }
static void *xmalloc(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
static void put(struct account *a, int v) { pthread_mutex_lock(&a->lock); a->balance = v; pthread_mutex_unlock(&a->lock); }
struct bank *b;
static void *work(void *p) { struct account *a = p; put(a, 1); return 0; }
static void *sum(void *p) { struct bank *k = p; int s = 0;
  for (int i = 0; i < 2; i++) { k->in[i].balance += 2; s += k->own[i].balance; }
  return (void *)(long)s; }
int main(void) {
  pthread_t t, u;
  struct account *a, *c, *d, *e;
  struct account local;
  a = malloc(sizeof *a); // later than it is declared
  a->balance = 5; pthread_mutex_init(&a->lock, 0);
  b = xmalloc(sizeof(struct bank));
  memset(b, 0, sizeof *b);
  b->own = calloc(2, sizeof(struct account));
  c = (struct account *)xmalloc(sizeof(struct account)); c->balance = 7;
  if (posix_memalign((void **)&d, 64, sizeof *d)) return 1;
  d->balance = 8;
  e = pool(sizeof *e); e->balance = 9;
  b->list[0] = a; b->list[1] = c; b->list[2] = d; b->list[3] = e;
  local.balance = 11; pthread_mutex_init(&local.lock, 0);
  struct other *o = malloc(sizeof *o); o->a = -1; o->b = -2;
  for (int i = 0; i < 4; i++) { pthread_mutex_init(&b->list[i]->lock, 0); }
  for (int i = 0; i < 2; i++) { b->own[i].balance = 30 + i; b->in[i].balance = 40 + i; fleet[i].balance += 1; }
  pthread_create(&t, 0, work, &local); pthread_create(&u, 0, sum, b);
  pthread_join(t, 0); pthread_join(u, 0);
  for (int i = 0; i < 4; i++) put(b->list[i], i + 100);
  return 0;
}
