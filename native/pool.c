/* The thread pool. It starts when it is first needed, and again in a child after fork.

A loop is split into parts, and any free thread takes the next one: if other processes use the other cores, the caller does all parts itself, and never
waits for a thread that has not begun one. The split depends on the loop's sizes and the requested number of threads alone, not on which threads are
free: sums are added up by parts, so results are reproducible to the bit. A caller that finds the pool busy, or has none, does all parts itself.

An idle thread busy-waits for about SPIN iterations (some 50 µs), since the next loop of a network follows at once; then, for about a millisecond, it
yields its core to others; then it sleeps. Waking up takes longer than most loops of a small network.

A program of many loops (program.c) enters the pool once: from its first large loop on it keeps the pool, without a lock per loop. When it leaves, no loop
follows, unless the program is called again at once: idle threads busy-wait for the 50 µs, and sleep. Measured with a GPT of 64 letters, called again and
again by two threads on two cores: 0.83 ms a call, and 0.86 to 0.97 if threads slept as soon as a program left. */
#define _GNU_SOURCE                             /* for sched_getcpu and pthread_setaffinity_np */
#include "pool.h"
#include "debug.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
#define SPIN 4000
#define YIELD 2000
#define PARTS 1024

typedef struct Memory { void *start; long size; } Memory;

#ifdef TENSORGRAD_DEBUG
atomic_long allocations_left;
#endif

static atomic_int wanted = 1;                   /* threads, the caller's own included */
static int started;                             /* threads started, the caller excluded */
static pthread_t helpers[MOST];                 /* these threads */
static Memory of_helpers[MOST];                 /* their memory for loops, kept per thread because of its cache; changed while they are idle */
static int avoided = -1, told;                  /* the core that helpers avoid, and the wanted number of threads, when affinity was last set */
static pthread_once_t first = PTHREAD_ONCE_INIT;
static pthread_mutex_t one_loop = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static atomic_ulong ticket;                     /* the number of loops so far, times PARTS, plus the parts of the last that no thread has taken */
static atomic_int left, sleeping;               /* parts that are not done; threads that sleep */
static atomic_int over;                         /* 1 after a program has left, until the next loop */
static _Atomic(Share) job_share;
static _Atomic(void *) job_task;
static atomic_int job_parts, job_threads;
static atomic_int arrived;                      /* threads that wait for each other */
static atomic_long meeting;
static _Thread_local int inside;                /* 1 while this thread does a part */
static _Thread_local enum { OUTSIDE, ENTERED, HOLDS } program;                 /* in a program; with the pool from its first large loop on */
static _Thread_local Memory *mine;              /* this thread's memory for loops; NULL until it needs some */
static pthread_key_t at_exit;                   /* frees `mine` at a thread's end */

static inline void pause_(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Take a part of the loop that is under way and do it; 0 where none is left. Its description is valid only once a part of it is taken: until then
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
    mine = &of_helpers[me];
    for (;;) {
        if (take_part(me)) continue;
        for (int i = 0; i < (atomic_load_explicit(&over, memory_order_relaxed) ? SPIN : SPIN + YIELD) && idle(me); i++)
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

/* Let the helpers run on any core but the caller's. A system may wake a thread on the core of a thread that waits for it, and leave it there for seconds,
even if other cores are free: then two threads take longer than one. The affinity of the caller is not changed; when it moves, so do they. If there are
fewer other cores than helpers, all of them may run anywhere. */
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

/* A child of fork has none of its parent's threads. Their memory is leaked: one of them may have been changing it. */
static void forked(void)
{
    pthread_mutex_init(&one_loop, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    atomic_store(&ticket, 0);
    atomic_store(&sleeping, 0);
    atomic_store(&arrived, 0);
    memset(of_helpers, 0, sizeof of_helpers);
    started = 0;
    avoided = -1;
}

static void drop(void *memory) { free(((Memory *)memory)->start), free(memory); }

static void prepare(void)
{
    pthread_atfork(NULL, NULL, forked);
    pthread_key_create(&at_exit, drop);
}

/* Start helpers up to this number of threads, the caller included; return 1 on success. They block all signals. */
static int start(int threads)
{
    pthread_once(&first, prepare);
    while (started < threads - 1) {
        pthread_attr_t detached;
        sigset_t all, before;
        if (pthread_attr_init(&detached)) return 0;
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int failed = pthread_create(&helpers[started], &detached, work, (void *)(long)(started + 1));
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&detached);
        if (failed) return 0;
        started++;
        avoided = -1;
    }
    return 1;
}

int pool_size(void) { return inside ? 1 : atomic_load_explicit(&wanted, memory_order_relaxed); }

void pool_resize(int threads) { atomic_store(&wanted, threads < 1 ? 1 : threads > MOST ? MOST : threads); }

/* Grow memory to this size, aligned to a cache line; return 0 if there is not enough. Its contents are lost. */
static int hold(Memory *memory, long bytes)
{
    if (allocation_fails()) return 0;
#ifdef TENSORGRAD_DEBUG
    long size = bytes;                          /* exactly this size, and new for each loop, so that sanitizers find writes beyond it */
#else
    long size = (bytes + bytes / 4 + 4095) / 4096 * 4096;
    if (memory->size >= bytes) return 1;
#endif
    free(memory->start);
    if (posix_memalign(&memory->start, 64, size)) memory->start = NULL;
    memory->size = memory->start ? size : 0;
    return memory->start != NULL;
}

static int hold_mine(long bytes)
{
    if (!mine) {
        pthread_once(&first, prepare);
        if (!(mine = calloc(1, sizeof *mine))) return 0;
        pthread_setspecific(at_exit, mine);
    }
    return hold(mine, bytes);
}

/* Return 1 if the helpers have memory for a loop. They are idle: no other loop runs. */
static int provided(int threads, long bytes)
{
    for (int me = 1; bytes && me < threads; me++) if (!hold(&of_helpers[me], bytes)) return 0;
    return 1;
}

void *pool_memory(void) { return mine->start; }

/* Do all parts of a loop with this many threads, if the pool is free and has them; return 1 if done. */
static int by_pool(Share share, void *task, int parts, int threads, long bytes)
{
    if (inside || parts >= PARTS || (program != HOLDS && pthread_mutex_trylock(&one_loop))) return 0;
    if (program) program = HOLDS;
    int can = start(threads) && provided(threads, bytes);
    if (can) {
        keep_off();
        atomic_store_explicit(&job_share, share, memory_order_relaxed);
        atomic_store_explicit(&job_task, task, memory_order_relaxed);
        atomic_store_explicit(&job_parts, parts, memory_order_relaxed);
        atomic_store_explicit(&job_threads, threads, memory_order_relaxed);
        atomic_store_explicit(&over, 0, memory_order_relaxed);
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
    if (!program) pthread_mutex_unlock(&one_loop);
    return can;
}

void pool_enter(void) { program = ENTERED; }

void pool_leave(void)
{
    if (program == HOLDS) {
        atomic_store_explicit(&over, 1, memory_order_relaxed);
        pthread_mutex_unlock(&one_loop);
    }
    program = OUTSIDE;
}

static void run(Share share, void *task, int parts, long bytes)
{
    int most = pool_size(), before = inside;
    if (parts > 1 && by_pool(share, task, parts, parts < most ? parts : most, bytes)) return;
    inside |= parts > 1;                        /* parts see the state of a pool thread: `inside` */
    for (int part = 0; part < parts; part++) share(task, part, parts);
    inside = before;
}

static void run_together(Share share, void *task, int parts, long bytes)
{
    if (parts <= 1 || parts > pool_size() || !by_pool(share, task, parts, parts, bytes)) share(task, 0, 1);
}

/* Run a loop with memory for each thread. A loop inside a loop gets separate memory: that of the outer one is in use. */
static int with_memory(void (*way)(Share, void *, int, long), Share share, void *task, int parts, long bytes)
{
    Memory *outer = mine, inner = {NULL, 0};
    if (bytes < 0 || bytes > 1L << 46) return -1;
    if (inside) mine = &inner;
    int failed = inside ? !hold(&inner, bytes) : !hold_mine(bytes);
    if (!failed) way(share, task, parts, bytes);
    if (inside) {
        free(inner.start);
        mine = outer;
    }
    return failed ? -1 : 0;
}

void pool_run(Share share, void *task, int parts) { run(share, task, parts, 0); }
int pool_work(Share share, void *task, int parts, long bytes) { return with_memory(run, share, task, parts, bytes); }
int pool_work_together(Share share, void *task, int parts, long bytes) { return with_memory(run_together, share, task, parts, bytes); }

void pool_meet(int parts)
{
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
