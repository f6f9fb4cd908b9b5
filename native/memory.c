/* A cache of freed memory for NumPy's large arrays: a fresh megabyte costs 256 page faults, more than a loop over it takes.

NumPy gets memory from the handler of the current context (NEP 49), and each array keeps the handler that it came from. Our handler is set while the
package computes (numpy_state.c), so that the program's own arrays do not use it. Requests below LEAST bytes go to the previous handler. Blocks come from
mmap, in size classes of a sixteenth of a power of two, with a header of 64 bytes at the start of a page: the address and the header tell if memory
is ours, whatever size NumPy passes.

A freed block is kept for requests of its class or the NEAR next smaller classes, or FAR if memory is tight: then its surplus is unmapped. Whole blocks
are unmapped, the longest unused first, before the process would hold more than its peak, beyond `most` kept bytes, and after SECONDS. If unmapped
sizes are requested again, the process may hold up to an eighth of the peak (and SLACK) more, but not while the peak rises. The handler and all
arrays live as long as the process, so nothing is undone at exit. */
#define _GNU_SOURCE
#include "numpy_state.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "debug.h"

#define LEAST (1 << 16)
#define SECONDS 10
#define PAGE 4096
#define HUGE_PAGES (4 << 20)                    /* from here on NumPy asks for them as well */
#define CLASSES 1024
#define NEAR 5                                  /* classes that serve a request */
#define FAR 64                                  /* classes if others would have to be unmapped: blocks up to sixteen times as large */
#define SLACK (8 << 20)
#define MARK 0x7e4d0a96c1f3b528u

/* NumPy's, by its documentation of the C API. */
typedef struct Allocator {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
} Allocator;
typedef struct Handler { char name[127]; uint8_t version; Allocator allocator; } Handler;
enum { SET_HANDLER = 304, GET_HANDLER = 305 };  /* in NumPy's table of functions */

typedef struct Block {
    uint64_t mark;
    size_t size;                                /* of the whole mapping */
    long class, when;
    struct Block *up, *down;                    /* in the class: the latest on top */
    struct Block *newer, *older;
} Block;
_Static_assert(sizeof(Block) == 64, "what follows a header is as aligned as it is");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block *tops[CLASSES], *newest, *oldest;
static size_t live, kept, peak, most, missed;
static Allocator usual;                         /* for small arrays, and those made before */

static uint64_t marked(const Block *block) { return MARK ^ (uint64_t)(uintptr_t)block; }

/* Return the header of memory from this file, NULL for other memory. The bytes before other memory in its page may be read, even if another thread
   writes them: they never hold our mark for this address. */
__attribute__((no_sanitize("thread", "address"))) static Block *header(void *memory)
{
    if (((uintptr_t)memory & (PAGE - 1)) != sizeof(Block)) return NULL;
    Block *block = (Block *)((char *)memory - sizeof(Block));
    return block->mark == marked(block) ? block : NULL;
}

/* The class of a size, and how large its blocks are. */
static long class_of(size_t size, size_t *whole)
{
    int top = 63 - __builtin_clzl(size - 1);                    /* 2^top < size <= 2^(top + 1) */
    size_t step = (size_t)1 << (top - 4), steps = (size + step - 1) >> (top - 4);       /* 17 to 32 */
    *whole = steps << (top - 4);
    return (top - 16) * 16 + (long)steps - 17;
}

static void unlink_block(Block *block)
{
    if (block->up) block->up->down = block->down; else tops[block->class] = block->down;
    if (block->down) block->down->up = block->up;
    if (block->newer) block->newer->older = block->older; else newest = block->older;
    if (block->older) block->older->newer = block->newer; else oldest = block->newer;
    kept -= block->size;
}

static void give_back(Block *block)
{
    unlink_block(block);
    munmap(block, block->size);
}

/* Unmap the part of a block beyond a class's size; if the system refuses, the block keeps its size. */
static void cut(Block *block, long class, size_t whole)
{
    if (munmap((char *)block + whole, block->size - whole)) return;
    block->size = whole;
    block->class = class;
}

static long seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

static void *take(size_t size, int zeros)
{
    size_t whole;
    if (size > (size_t)1 << 60 || allocation_fails()) return NULL;
    long class = class_of(size + sizeof(Block), &whole);
    pthread_mutex_lock(&lock);
    Block *block = NULL;
    int grows = live + whole > peak;
    size_t most_live = grows ? live + whole : peak;
    size_t bound = most_live + (missed / 4 < most_live / 8 + SLACK ? missed / 4 : most_live / 8 + SLACK);
    for (int i = 0; i < NEAR && !block; i++) block = tops[class + i];
    int tight = !block && oldest && live + whole + kept > bound;
    for (int i = NEAR; tight && i < FAR && !block; i++) block = tops[class + i];
    if (block) unlink_block(block);
    if (block && tight) cut(block, class, whole);
    live += block ? block->size : whole;
    if (live > peak) peak = live;
    if (!block && tight) {
        missed += grows ? 0 : whole;
        while (oldest && live + kept > bound) give_back(oldest);
    }
    pthread_mutex_unlock(&lock);
    if (block) {
        if (zeros) memset(block + 1, 0, size);
        return block + 1;
    }
    block = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        pthread_mutex_lock(&lock);
        while (oldest) give_back(oldest);
        pthread_mutex_unlock(&lock);
        block = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (block == MAP_FAILED) {
        pthread_mutex_lock(&lock);
        live -= whole;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (whole >= HUGE_PAGES) madvise(block, whole, MADV_HUGEPAGE);
#endif
    block->mark = marked(block);
    block->size = whole;
    block->class = class;
    return block + 1;
}

static void put_back(Block *block)
{
    pthread_mutex_lock(&lock);
    live -= block->size;
    kept += block->size;
    block->when = seconds();
    block->up = NULL, block->down = tops[block->class];
    if (block->down) block->down->up = block;
    tops[block->class] = block;
    block->newer = NULL, block->older = newest;
    if (newest) newest->newer = block; else oldest = block;
    newest = block;
    while (oldest && (kept > most || block->when - oldest->when > SECONDS)) {
        int last = oldest == block;
        give_back(oldest);
        if (last) break;
    }
    pthread_mutex_unlock(&lock);
}

static void *handle_malloc(void *context, size_t size)
{
    (void)context;
    return size < LEAST ? usual.malloc(usual.context, size) : take(size, 0);
}

static void *handle_calloc(void *context, size_t count, size_t size)
{
    size_t bytes;
    (void)context;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return bytes < LEAST ? usual.calloc(usual.context, count, size) : take(bytes, 1);
}

static void handle_free(void *context, void *memory, size_t size)
{
    Block *block = header(memory);
    (void)context;
    if (block) put_back(block);
    else usual.free(usual.context, memory, size);
}

static void *handle_realloc(void *context, void *memory, size_t size)
{
    Block *block = memory ? header(memory) : NULL;
    if (!block) return memory ? usual.realloc(usual.context, memory, size) : handle_malloc(context, size);
    size_t holds = block->size - sizeof(Block);
    if (size <= holds && size > holds / 2) return memory;
    void *moved = handle_malloc(context, size ? size : 1);
    if (!moved) return NULL;
    memcpy(moved, memory, size < holds ? size : holds);
    put_back(block);
    return moved;
}

/* Memory for a kernel while it runs, aligned to a cache line: large requests reuse blocks of freed arrays, if these are kept. */
static int is_kept(size_t size) { return size >= LEAST && most; }

void *memory_borrow(size_t size)
{
    return is_kept(size) ? take(size, 0) : allocation_fails() ? NULL : aligned_alloc(64, (size + 63) / 64 * 64);
}

void memory_return(void *memory, size_t size)
{
    if (!is_kept(size)) free(memory);
    else if (memory) put_back((Block *)memory - 1);
}

static Handler handler = {"tensorgrad", 1, {NULL, handle_malloc, handle_calloc, handle_realloc, handle_free}};

static void hold(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }

PyObject *memory_handler;
static PyObject *(*set_handler)(PyObject *);

PyObject *swap_handler(PyObject *new) { return set_handler(new); }

extern void **numpy_functions(void);

/* use_memory(): prepare the handler for regions; return True if this NumPy supports it. */
PyObject *use_memory(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    void **table = numpy_functions();
    if (!table) return NULL;
    if (memory_handler) Py_RETURN_TRUE;
    PyObject *before = ((PyObject *(*)(void))table[GET_HANDLER])();             /* never freed: arrays call its functions until the end */
    Handler *found = before ? PyCapsule_GetPointer(before, "mem_handler") : NULL;
    if (!found) return Py_XDECREF(before), NULL;
    if (found->version != 1 || sysconf(_SC_PAGESIZE) < PAGE) {
        Py_DECREF(before);
        Py_RETURN_FALSE;
    }
    usual = found->allocator;
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    most = memory / 8 > (size_t)256 << 20 ? memory / 8 : (size_t)256 << 20;
    pthread_atfork(hold, release, release);
    set_handler = (PyObject *(*)(PyObject *))table[SET_HANDLER];
    if (!(memory_handler = PyCapsule_New(&handler, "mem_handler", NULL))) return NULL;
    Py_RETURN_TRUE;
}

/* empty_memory(): unmap all kept blocks; return how many bytes they had. */
PyObject *empty_memory(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    pthread_mutex_lock(&lock);
    size_t bytes = kept;
    while (oldest) give_back(oldest);
    peak = live;
    pthread_mutex_unlock(&lock);
    return PyLong_FromSize_t(bytes);
}

/* memory_use(): bytes of large arrays, bytes kept, and the most of the former at once. */
PyObject *memory_use(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    return Py_BuildValue("nnn", (Py_ssize_t)live, (Py_ssize_t)kept, (Py_ssize_t)peak);
}

#ifdef TENSORGRAD_DEBUG
/* fail_allocation(n): of the requests for scratch memory and for large arrays from now on, the n-th fails, once; n = 0: none does. */
PyObject *fail_allocation(PyObject *self, PyObject *number)
{
    (void)self;
    long n = PyLong_AsLong(number);
    if (n < 0) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "the allocation to fail is %ld, not 0 or more", n);
    atomic_store(&allocations_left, n);
    Py_RETURN_NONE;
}
#endif
