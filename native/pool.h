/* One pool of threads for all loops of the package: see pool.c. */
#ifndef TENSORGRAD_POOL_H
#define TENSORGRAD_POOL_H

typedef void (*Share)(void *task, int part, int parts);

int pool_size(void);            /* the number of threads for a loop: the requested number; inside a part, one */
void pool_resize(int threads);
void pool_enter(void);          /* begin a program of loops in this thread: the pool is taken once for all of them */
void pool_leave(void);
/* share(task, part, parts) for each part, side by side where threads are free: none waits for another. */
void pool_run(Share share, void *task, int parts);
/* Like pool_run, with `bytes` of memory for each thread: pool_memory(), aligned to a cache line. Returns −1, with no part begun, if memory runs out. */
int pool_work(Share share, void *task, int parts, long bytes);
/* Like pool_work, for shares that call pool_meet: all parts run concurrently, or share(task, 0, 1) runs alone. Shares must compute the same bits for
   any number of parts up to the number of threads; `bytes` is the memory for one part that does everything. */
int pool_work_together(Share share, void *task, int parts, long bytes);
void pool_meet(int parts);                              /* inside such a share: wait until all parts are here */
void *pool_memory(void);                                /* inside a share of pool_work: this thread's memory */
void *memory_borrow(unsigned long bytes);               /* memory for a loop that grows with its arrays (memory.c); NULL if it runs out */
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

/* The most that `piece` gives to a part. */
static inline long largest_piece(long n, long block, int parts)
{
    long blocks = (n + block - 1) / block, most = (blocks + parts - 1) / parts * block;
    return most < n ? most : n;
}

/* The number of threads for a loop that takes about `work` nanoseconds. */
static inline int threads_for(double work)
{
    int most = pool_size();
    double worth = work / 15e3;
    return worth < 2 ? 1 : worth < most ? (int)worth : most;
}

/* The number of parts if more parts cost nothing: several per thread, so that late threads find some. */
static inline int parts_for(double work)
{
    int threads = threads_for(work);
    double worth = work / 15e3;
    return threads < 2 ? 1 : worth < 4 * threads ? (int)worth : 4 * threads;
}

#endif
