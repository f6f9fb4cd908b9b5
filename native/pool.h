/* One pool of threads for all loops of the package: see pool.c. */
#ifndef TENSORGRAD_POOL_H
#define TENSORGRAD_POOL_H

typedef void (*Share)(void *task, int part, int parts);

#define SCRATCHES 4

extern _Atomic int pool_used;           /* whether threads of the pool were ever started in this process */
int pool_size(void);            /* how many threads a loop may count on: as many as were asked for; inside a part, one */
void pool_resize(int threads);
void pool_run(Share share, void *task, int parts);      /* share(task, part, parts) for each part, side by side where threads are free: none waits for another */
/* Of shares that meet: all parts side by side, or share(task, 0, 1) where that cannot be. In any number of parts, no more than threads, they compute the same bits. */
void pool_run_together(Share share, void *task, int parts);
void pool_meet(int parts);                              /* inside such a share: wait until all parts are here */
/* Have scratch memory for the next loop of this thread, in all threads that take part (parts 1: in this one alone), before any part begins: `pool_scratch`
   with up to so many bytes cannot fail in it. Of shares that meet, bytes are those of one part that is all. 0 if there is no memory. */
int pool_reserve(int which, long bytes, int parts);
void *pool_scratch(int which, long bytes);              /* memory that this thread keeps; it may move when more is asked for; NULL if there is none */
void *memory_borrow(unsigned long bytes);               /* memory for a loop: what grows with its arrays (memory.c) */
void memory_return(void *memory, unsigned long bytes);

/* The part'th of `parts` nearly equal pieces of [0, n), in whole blocks. */
static inline void piece(long n, long block, int part, int parts, long *start, long *stop)
{
    long blocks = (n + block - 1) / block;
    *start = blocks * part / parts * block;
    *stop = blocks * (part + 1) / parts * block;
    if (*stop > n) *stop = n;
    if (*start > n) *start = n;
}

/* How many threads a loop is worth that takes about `work` steps of a nanosecond. */
static inline int threads_for(double work)
{
    int most = pool_size();
    double worth = work / 15e3;
    return worth < 2 ? 1 : worth < most ? (int)worth : most;
}

/* How many parts, where more of them cost nothing: several for each thread, so that there is something left for one that comes late. */
static inline int parts_for(double work)
{
    int threads = threads_for(work);
    double worth = work / 15e3;
    return threads < 2 ? 1 : worth < 4 * threads ? (int)worth : 4 * threads;
}

#endif
