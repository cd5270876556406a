// What the classics share. Each program fails in some schedule; built with -DREPAIRED it fails in none.
#ifndef CLASSIC_H
#define CLASSIC_H

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef REPAIRED
#define IF_REPAIRED(yes, no) yes
#else
#define IF_REPAIRED(yes, no) no
#endif

typedef void *(*Routine)(void *);
typedef pthread_mutex_t Mutex;
typedef pthread_cond_t Condition;

#define MUTEX PTHREAD_MUTEX_INITIALIZER
#define CONDITION PTHREAD_COND_INITIALIZER

static inline void lock(Mutex *m) { pthread_mutex_lock(m); }
static inline void unlock(Mutex *m) { pthread_mutex_unlock(m); }

// Runs up to four threads to their ends.
static inline void together(int count, Routine *routines) {
    pthread_t threads[4];
    for (long i = 0; i < count; i++)
        pthread_create(&threads[i], 0, routines[i], (void *)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], 0);
}

#define TOGETHER(...) \
    do { \
        Routine all[] = {__VA_ARGS__}; \
        together(sizeof all / sizeof *all, all); \
    } while (0)

#endif
