// main frees, the thread uses afterwards: a use after free in the observed run itself.
#include <pthread.h>
#include <stdlib.h>
static void *t(void *a){ ++*(int*)a; return 0; }
int main(void){ int *p=malloc(4); *p=0; pthread_t b; pthread_create(&b,0,t,p); free(p); pthread_join(b,0); return 0; }
