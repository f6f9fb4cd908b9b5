/* The check of a call of a kernel against its row in kernels.rows: the only way from Python's arrays to a kernel's pointers. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables.inc"

#define UNKNOWN (-1)

typedef struct Check {
    const Declaration *row;
    const char *name;                   /* of the kernel */
    char *call;                         /* the struct that is filled */
    Views *views;
    char type;                          /* 'f' or 'd', once an array of the kernel's type was met */
} Check;

static long *size_at(const Check *c, int which) { return (long *)(c->call + c->row->size[which].at); }

/* ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────── */

static int in_range(const Argument *a, long n)
{
    switch (a->kind) {
    case SIZE: return n >= 1 && n < MOST;
    case COUNT: return n >= 0 && n < MOST;
    case STEP: return n > -MOST && n < MOST;
    case FLAG: return n == 0 || n == 1;
    case RANGE: return n >= a->least && n <= a->most;
    default: return 1;
    }
}

/* Read the numbers of a call, which follow its arrays, and compute the sizes that depend on them. */
int check_numbers(const Declaration *row, const char *name, PyObject *const *values, Py_ssize_t count, void *call)
{
    int refused = 0, first = row->arrays, least = row->arguments;
    while (least > first && row->argument[least - 1].optional) least--;
    if (count < least - first || count > row->arguments - first)
        return PyErr_Format(PyExc_TypeError, "%s takes %d numbers, not %zd", name, least - first, count), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        const Argument *a = row->argument + first + i;
        void *to = (char *)call + a->at;
        int overflow = 0;
        if (a->kind == REAL) *(double *)to = PyFloat_AsDouble(values[i]);
        else {
            *(long *)to = PyLong_AsLongAndOverflow(values[i], &overflow);
            refused |= overflow || !in_range(a, *(long *)to);
        }
        if (PyErr_Occurred()) return -1;
    }
    if (refused) return 1;
    if (row->let) row->let(call);
    for (int i = 0; i < row->sizes; i++) refused |= *(long *)((char *)call + row->size[i].at) == 0;
    return refused;
}

/* ── arrays ──────────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Return the length of an axis; UNKNOWN if one of its sizes is, which `which` then names, with the product of the others in `others`. */
static long length_of(const Check *c, const Axis *axis, int *which, long *others)
{
    long known = axis->factor;
    *which = UNKNOWN;
    for (int i = 0; i < axis->count; i++) {
        long size = *size_at(c, axis->sizes[i]);
        if (size != UNKNOWN) known = times(known, size);
        else if (*which == UNKNOWN) *which = axis->sizes[i];
        else *which = -2;               /* two unknown sizes: one length cannot determine both */
    }
    *others = known;
    return *which == UNKNOWN ? known : UNKNOWN;
}

/* Compare an axis with a length, or set its unknown size from it; return 0 if they disagree. */
static int agree(const Check *c, const Axis *axis, long length)
{
    int which;
    long others, expected = length_of(c, axis, &which, &others);
    if (expected != UNKNOWN) return expected == length;
    if (which < 0 || length % others || !length) return 0;
    *size_at(c, which) = length / others;
    return 1;
}

/* Join all axes to one, whose length is the number of elements. */
static Axis joined(const Argument *a)
{
    Axis all = {.factor = 1};
    for (int k = 0; k < a->axes; k++) {
        all.factor *= a->axis[k].factor;
        for (int i = 0; i < a->axis[k].count && all.count < 4; i++) all.sizes[all.count++] = a->axis[k].sizes[i];
    }
    return all;
}

static int shape_fits(const Check *c, const Argument *a, const Py_buffer *view)
{
    if (view->ndim == a->axes && a->axes > 1) {
        for (int k = 0; k < a->axes; k++) if (!agree(c, &a->axis[k], view->shape[k])) return 0;
        return 1;
    }
    Axis all = joined(a);
    return agree(c, &all, view->len / view->itemsize);
}

/* Find how many elements an array's memory spans before and after its first; return 0 if strides are not whole elements. */
static int reach_of(const Py_buffer *view, long *before, long *behind)
{
    *before = *behind = 0;
    for (int k = 0; k < view->ndim; k++) {
        long step = view->strides[k] / view->itemsize, far;
        if (view->strides[k] % view->itemsize || __builtin_mul_overflow(view->shape[k] - 1, step, &far)) return 0;
        if (far < 0 ? __builtin_add_overflow(*before, far, before) : __builtin_add_overflow(*behind, far, behind)) return 0;
    }
    return 1;
}

/* Return 1 if the strides of a call stay within the memory that the array's own strides span. */
static int steps_fit(const Check *c, const Argument *a, long before, long behind)
{
    for (int k = 0; k < a->axes; k++) {
        int which;
        long others, length = length_of(c, &a->axis[k], &which, &others), far;
        long step = a->axis[k].step == STEP_OF_1 ? 1 : *(long *)(c->call + c->row->argument[(int)a->axis[k].step].at);
        if (length == UNKNOWN || __builtin_mul_overflow(length - 1, step, &far)) return 0;
        if (far < 0 ? __builtin_sub_overflow(before, far, &before) : __builtin_sub_overflow(behind, far, &behind)) return 0;
    }
    return before <= 0 && behind >= 0;
}

static char type_of(const Py_buffer *view)
{
    const char *format = view->format ? view->format : "B";
    if (format[1]) return 0;
    return format[0] == 'q' && sizeof(long) == 8 ? 'l' : format[0] == '?' || format[0] == 'b' ? 'B' : format[0];
}

static int misfit(const Check *c, const Argument *a, const Py_buffer *view)
{
    char shape[160] = "", sizes[320] = "";
    size_t used = 0;
    for (int k = 0; k < view->ndim && used < sizeof shape; k++)
        used += snprintf(shape + used, sizeof shape - used, k ? ", %zd" : "%zd", view->shape[k]);
    used = 0;
    for (int i = 0; i < c->row->sizes && used < sizeof sizes; i++)
        if (*size_at(c, i) != UNKNOWN) used += snprintf(sizes + used, sizeof sizes - used, "%s%s = %ld", used ? ", " : "", c->row->size[i].name, *size_at(c, i));
    PyErr_Format(PyExc_ValueError, "%s: %s has the shape (%s), which is not (%s) with %s", c->name, a->name, shape, a->says, sizes);
    return -1;
}

static int check_array(Check *c, int which, PyObject *value)
{
    const Argument *a = c->row->argument + which;
    void **to = (void **)(c->call + a->at);
    c->views->start[which] = c->views->stop[which] = NULL;
    if (value == Py_None && a->optional) return *to = NULL, 0;
    Py_buffer *view = &c->views->view[c->views->held];
    if (PyObject_GetBuffer(value, view, PyBUF_FORMAT | (a->strided ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS) | (a->written ? PyBUF_WRITABLE : 0)))
        return PyErr_Clear(), 1;
    c->views->held++;
    char type = type_of(view), wanted = a->kind == INT64 ? 'l' : a->kind == INT32 ? 'i' : a->kind == BYTES ? 'B' : a->kind == FLOATS ? 'f' : c->type ? c->type : type;
    if (type != wanted || (a->kind == OF_TYPE && type != 'f' && type != 'd') || !is_aligned(view->buf, view->itemsize) || !view->len) return 1;
    if (a->kind == OF_TYPE) c->type = type;
    long before = 0, behind = view->len / view->itemsize - 1;
    if (a->strided ? !reach_of(view, &before, &behind) : !shape_fits(c, a, view)) return misfit(c, a, view);
    if (a->strided && !steps_fit(c, a, before, behind)) return misfit(c, a, view);
    c->views->start[which] = (char *)view->buf + before * view->itemsize, c->views->stop[which] = (char *)view->buf + (behind + 1) * view->itemsize;
    *to = view->buf;
    if (!a->copied) return 0;
    if (!(*to = c->views->copy = malloc(view->len))) return PyErr_NoMemory(), -1;
    memcpy(*to, view->buf, view->len);
    return 0;
}

/* Return 1 if memory that is written to overlaps another array, except as the row allows. */
static int disturbs(const Check *c)
{
    const char *const *start = c->views->start, *const *stop = c->views->stop;
    for (int i = 0; i < c->row->arrays; i++)
        for (int k = 0; c->row->argument[i].written && k < c->row->arrays; k++) {
            int same = start[i] == start[k] && stop[i] == stop[k];
            if (i != k && start[i] < stop[k] && start[k] < stop[i] && !(same && c->row->argument[i].over >> k & 1)) return 1;
        }
    return 0;
}

int check_call(const Declaration *row, const char *name, PyObject *const *values, Py_ssize_t count, void *call, Views *views, int *is_double)
{
    Check c = {row, name, call, views, 0};
    views->held = 0, views->copy = NULL;
    if (count < row->arrays) return PyErr_Format(PyExc_TypeError, "%s takes %d arrays, not %zd", name, row->arrays, count), -1;
    memset(call, 0, row->bytes);
    for (int i = 0; i < row->sizes; i++) *size_at(&c, i) = UNKNOWN;
    int failed = check_numbers(row, name, values + row->arrays, count - row->arrays, call);
    for (int i = 0; i < row->arrays && !failed; i++) failed = check_array(&c, i, values[i]);
    if (failed) return failed;
    for (int i = 0; i < row->sizes; i++)
        if (*size_at(&c, i) < 1) return PyErr_Format(PyExc_ValueError, "%s: nothing tells %s", name, row->size[i].name), -1;
    const char *broken = row->where ? row->where(call) : NULL;
    if (broken) return PyErr_Format(PyExc_ValueError, "%s: this does not hold: %s", name, broken), -1;
    *is_double = c.type == 'd';
    return disturbs(&c);
}

void release_views(Views *views)
{
    while (views->held) PyBuffer_Release(&views->view[--views->held]);
    free(views->copy);
}
