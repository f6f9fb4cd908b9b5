/* The tables that native/rows.py makes of kernels.rows, and the check of a call against it (check.c). */
#ifndef TENSORGRAD_CHECK_H
#define TENSORGRAD_CHECK_H
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels.h"
#include "declared.h"

#define KERNEL_NAME "tensorgrad.kernel"         /* of the capsules that hold an Entry */
#define MOST (1L << 40)                 /* no size, stride or step of a loop is as large: products of two fit into 128 bits, sums into 64 */

enum Kind { OF_TYPE, INT64, INT32, BYTES, FLOATS, SIZE, COUNT, STEP, FLAG, RANGE, INTEGER, REAL };
enum { NO_STEP = -1, STEP_OF_1 = -2 };

/* factor · Π sizes; the step is an argument of the call. */
typedef struct Axis { short factor; signed char count, sizes[4], step; } Axis;

typedef struct Argument {
    const char *name, *says;
    unsigned char kind, written, optional, strided, counts, copied;
    unsigned over;                      /* a bit mask of the arrays whose memory it may share */
    long least, most;                   /* of a RANGE */
    size_t at;                          /* its place in the struct */
    int axes;
    Axis axis[5];
} Argument;

typedef struct Size { const char *name; size_t at; } Size;

typedef struct Declaration {
    const char *name;
    const Argument *argument;
    int arguments, arrays;
    const Size *size;
    int sizes, of_rows;
    size_t bytes;
    void (*let)(void *call);
    const char *(*where)(const void *call);     /* NULL, or the text of the condition that fails */
} Declaration;

extern const Declaration declarations[];

/* Views of the arrays of a call, held until the call ends. */
typedef struct Views {
    Py_buffer view[MOST_ARRAYS];
    const char *start[MOST_ARRAYS], *stop[MOST_ARRAYS];
    int held;
    void *copy;                         /* of the one array that is copied */
} Views;

/* Fill the struct of a call. 0: the call is valid; `is_double` selects the kernel. 1: arrays or numbers are unsupported. −1: an error is set. */
int check_call(const Declaration *row, const char *name, PyObject *const *values, Py_ssize_t count, void *call, Views *views, int *is_double);
int check_numbers(const Declaration *row, const char *name, PyObject *const *values, Py_ssize_t count, void *call);
void release_views(Views *views);

/* ── for the conditions of the rows ── */

static inline long times(long a, long b) { long product; return a && b && __builtin_mul_overflow(a, b, &product) ? INT64_MAX : a * b; }

/* Return 1 if windows of `kernel` elements, `apart` from each other, all end within n elements and a border on both sides. */
static inline int reaches(long windows, long step, long kernel, long apart, long n, long border)
{
    long first = times(windows - 1, step), within = times(kernel - 1, apart), all = n + 2 * border;
    return first < all && within < all && first + within < all;
}

/* Return 1 if all windows begin before the end, and the first ends after the border. */
static inline int starts_within(long windows, long step, long kernel, long apart, long n, long border)
{
    return times(windows - 1, step) < n + border && times(kernel - 1, apart) >= border;
}

/* Return 1 if planes with their borders are no larger than a machine's memory. */
static inline int is_modest(long planes, long h, long border_h, long w, long border_w)
{
    return times(planes, times(h + 2 * border_h, w + 2 * border_w)) < MOST;
}

/* Return 1 if windows, steps between them and the border are short: a row with its border is not much longer than the row. */
static inline int is_short(long kernel, long apart, long step, long border)
{
    return times(kernel, apart) <= 256 && step <= 256 && border <= kernel * apart;
}

static inline int is_aligned(const void *memory, size_t bytes) { return (uintptr_t)memory % bytes == 0; }

static inline int all_within(const int64_t *places, long count, long n)
{
    int outside = 0;
    for (long i = 0; i < count; i++) outside |= (places[i] < 0) | (places[i] >= n);
    return !outside;
}

/* Return 1 if the rows of each step, (first, count), are rows of the sequences, and at most as many as the batch has. */
static inline int all_steps_within(const int64_t *order, long steps, long rows, long batch)
{
    for (long s = 0; s < steps; s++) {
        int64_t first = order[2 * s], count = order[2 * s + 1];
        if (first < 0 || count < 0 || count > batch || first > rows - count) return 0;
    }
    return 1;
}

int is_loop(const loop_call *a);        /* loop.c: 1 if a program stays within its arrays and registers */

#endif
