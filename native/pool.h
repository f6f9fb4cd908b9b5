/* One pool of threads for all loops of the package: see pool.c. */
#ifndef TENSORGRAD_POOL_H
#define TENSORGRAD_POOL_H

typedef void (*Share)(void *task, int part, int parts);

int pool_size(void);            /* how many threads a loop may count on: as many as were asked for; inside a part, one */
void pool_resize(int threads);
/* share(task, part, parts) for each part, side by side where threads are free: none waits for another. */
void pool_run(Share share, void *task, int parts);
/* The same, where each thread has so many bytes for itself: pool_memory(), on a line of the cache. −1, and no part begun, where memory ran out. */
int pool_work(Share share, void *task, int parts, long bytes);
/* Of shares that meet: all parts side by side, or share(task, 0, 1) where that cannot be. In any number of parts, no more than threads, they compute the same
   bits; `bytes` are those of one part that is all. */
int pool_work_together(Share share, void *task, int parts, long bytes);
void pool_meet(int parts);                              /* inside such a share: wait until all parts are here */
void *pool_memory(void);                                /* inside a share of pool_work: this thread's memory */
void *memory_borrow(unsigned long bytes);               /* memory for a loop: what grows with its arrays (memory.c); NULL if there is none */
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
