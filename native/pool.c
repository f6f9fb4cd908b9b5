/* The pool of threads. It starts when it is first needed, and again in a child after fork.

A loop comes in parts, and whoever is free takes the next one: where the system has other work for the other cores, the caller
does all of them itself, and never waits for a thread that has not begun. A thread that has nothing to do looks out for work for about SPIN turns (some
50 µs), since the next loop of a network follows at once; then, for about a millisecond, only when nobody else wants its core; then it sleeps. To wake
takes longer than most loops of a small network. BLAS keeps to one thread while the pool is in use (tensorgrad/threads.py), so the two never wait for
each other's cores. */
#define _GNU_SOURCE                             /* for sched_getcpu and pthread_setaffinity_np */
#include "pool.h"
#include "debug.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 64
#define SPIN 4000
#define YIELD 2000
#define PARTS 1024

#ifdef TENSORGRAD_DEBUG
atomic_long allocations_left;
#endif

int pool_used;
static int wanted = 1;                          /* threads, the caller's own included */
static int started;                             /* threads that run beside it */
static pthread_t helpers[MOST];                 /* these threads */
static int avoided = -1, told;                  /* the core that they keep off, and how many threads were wanted when they were told */
static pid_t owner;                             /* the process that started them */
static pthread_mutex_t one_loop = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static atomic_ulong ticket;                     /* how many loops there have been, times PARTS, and how many parts of the last nobody has taken yet */
static atomic_int left, sleeping;               /* parts that are not done; threads that sleep */
static _Atomic(Share) job_share;
static _Atomic(void *) job_task;
static atomic_int job_parts, job_threads;
static _Thread_local int inside;

static inline void pause_(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Take a part of the loop that is under way and do it; 0 where none is left. What a loop is may only be believed once a part of it is taken: until then
   it may have ended, and another begun. */
static int take_part(int me)
{
    unsigned long seen = atomic_load(&ticket);
    while (seen % PARTS && me < atomic_load_explicit(&job_threads, memory_order_relaxed)) {
        Share share = atomic_load_explicit(&job_share, memory_order_relaxed);
        void *task = atomic_load_explicit(&job_task, memory_order_relaxed);
        int parts = atomic_load_explicit(&job_parts, memory_order_relaxed);
        if (atomic_compare_exchange_weak(&ticket, &seen, seen - 1)) {
            share(task, parts - (int)(seen % PARTS), parts);
            atomic_fetch_sub_explicit(&left, 1, memory_order_release);
            return 1;
        }
    }
    return 0;
}

static int idle(int me) { return atomic_load(&ticket) % PARTS == 0 || me >= atomic_load_explicit(&job_threads, memory_order_relaxed); }

static void *work(void *number)
{
    int me = (int)(long)number;
    inside = 1;
    for (;;) {
        if (take_part(me)) continue;
        for (int i = 0; i < SPIN + YIELD && idle(me); i++)
            if (i < SPIN) pause_(); else sched_yield();
        if (!idle(me)) continue;
        pthread_mutex_lock(&lock);
        atomic_fetch_add(&sleeping, 1);
        while (idle(me)) pthread_cond_wait(&wake, &lock);
        atomic_fetch_sub(&sleeping, 1);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Let the helpers run on any core but the caller's. A system may wake a thread on the core of the one that waits for it, and leave it there for seconds,
whatever else is free: then two threads take longer than one. The caller itself goes where the system likes; when it has moved, so do they. Where there are
fewer other cores than helpers, all of them go where the system likes. */
static void keep_off(void)
{
#ifdef __linux__
    cpu_set_t others;
    int here = sched_getcpu();
    if (here == avoided && wanted == told) return;
    avoided = here;
    told = wanted;
    if (here < 0 || pthread_getaffinity_np(pthread_self(), sizeof others, &others)) return;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) < wanted - 1) CPU_SET(here, &others);
    for (int i = 0; i < started; i++) pthread_setaffinity_np(helpers[i], sizeof others, &others);
#endif
}

static void start(int threads)
{
    pool_used = 1;
    if (owner != getpid()) {                    /* a child of fork has none of its parent's threads */
        owner = getpid();
        started = 0;
        atomic_store(&ticket, 0);
        atomic_store(&sleeping, 0);
        pthread_mutex_init(&lock, NULL);
        pthread_cond_init(&wake, NULL);
    }
    while (started < threads - 1) {
        pthread_attr_t detached;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&helpers[started], &detached, work, (void *)(long)(started + 1));
        pthread_attr_destroy(&detached);
        if (failed) break;
        started++;
        avoided = -1;
    }
}

int pool_size(void) { return inside ? 1 : wanted; }

void pool_resize(int threads) { wanted = threads < 1 ? 1 : threads > MOST ? MOST : threads; }

void pool_run(Share share, void *task, int parts)
{
    if (parts <= 1 || inside || pthread_mutex_trylock(&one_loop)) {     /* a loop inside a loop, or beside another: this thread does it all */
        share(task, 0, 1);
        return;
    }
    int threads = parts < wanted ? parts : wanted;
    start(threads);
    if (started < threads - 1) {
        share(task, 0, 1);
    } else {
        keep_off();
        atomic_store_explicit(&job_share, share, memory_order_relaxed);
        atomic_store_explicit(&job_task, task, memory_order_relaxed);
        atomic_store_explicit(&job_parts, parts, memory_order_relaxed);
        atomic_store_explicit(&job_threads, threads, memory_order_relaxed);
        atomic_store(&left, parts);
        atomic_store(&ticket, (atomic_load(&ticket) / PARTS + 1) * PARTS + parts);
        if (atomic_load(&sleeping)) {
            pthread_mutex_lock(&lock);
            pthread_cond_broadcast(&wake);
            pthread_mutex_unlock(&lock);
        }
        inside = 1;
        while (take_part(0)) {}
        inside = 0;
        for (int i = 0; atomic_load_explicit(&left, memory_order_acquire); i++)
            if (i < SPIN) pause_(); else sched_yield();
    }
    pthread_mutex_unlock(&one_loop);
}

void pool_meet(int parts)
{
    static atomic_int arrived;
    static atomic_long meeting;
    if (parts == 1) return;
    long now = atomic_load(&meeting);
    if (atomic_fetch_add(&arrived, 1) == parts - 1) {
        atomic_store(&arrived, 0);
        atomic_store(&meeting, now + 1);
        return;
    }
    for (int i = 0; atomic_load_explicit(&meeting, memory_order_acquire) == now; i++)
        if (i < SPIN) pause_(); else sched_yield();
}

void *pool_scratch(int which, long bytes)
{
    static _Thread_local struct { void *memory; long size; } kept[4];
    if (allocation_fails()) return NULL;
    if (kept[which].size < bytes) {
        free(kept[which].memory);
        long size = (bytes + bytes / 4 + 4095) / 4096 * 4096;
        kept[which].memory = aligned_alloc(64, size);
        kept[which].size = kept[which].memory ? size : 0;
    }
    return kept[which].memory;
}
