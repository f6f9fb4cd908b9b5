/* Kernels that update many parameters in one call, for optimizers: step(rows, *numbers). A row is a tuple of one parameter's arrays, with None for
   those that it lacks. The result is the positions of rows that were not updated: their arrays are neither all float32 nor all float64, differ in size,
   or are not contiguous; or all rows, if memory that changes is also read or changed by another row. */
#include "arrays.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#define LONG (1 << 14)                          /* elements from which on others may run meanwhile */

typedef struct Span { const char *start, *stop; int changes; } Span;
typedef struct Given { Row *rows; Array **counters; Span *spans; long count, spanned, elements; } Given;

/* Add a row to those of a dtype; return 0 if it has another dtype, or is not supported. */
static int take(Given *given, PyObject *values, const Argument *arguments, Dtype *dtype)
{
    Array *first = (Array *)PyTuple_GetItem(values, 0), *counter = NULL;
    Row row = {.before = given->elements};
    long spanned = given->spanned, arrays = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(values); i++) {
        PyObject *value = PyTuple_GetItem(values, i);
        Array *a = (Array *)value;
        if (value == Py_None && arguments[i].optional) {
            row.array[arrays++] = NULL;
            continue;
        }
        if (!readable(value) || (arguments[i].written && !(a->flags & WRITEABLE))) return 0;
        if (arguments[i].counts) {
            if (a->ndim) return 0;
            counter = a;
        } else {
            if (a->dtype != dtype || !(a->flags & C_CONTIGUOUS) || !same_shape(a, first)) return 0;
            row.array[arrays++] = a->data;
        }
        given->spans[spanned++] = (Span){a->data, a->data + size_of(a) * (a->dtype == float32 ? 4 : 8), arguments[i].written};
    }
    row.size = size_of(first);
    given->elements += (row.size + LINE - 1) / LINE * LINE;
    given->spanned = spanned;
    given->counters[given->count] = counter;
    given->rows[given->count++] = row;
    return 1;
}

static int by_start(const void *a, const void *b)
{
    const char *x = ((const Span *)a)->start, *y = ((const Span *)b)->start;
    return (x > y) - (x < y);
}

/* Return 1 if memory that changes is in two spans; sorts the spans. */
static int shared(Span *spans, long count)
{
    const char *stop = NULL, *changed = NULL;   /* the end of all spans so far, and of those that change */
    qsort(spans, count, sizeof *spans, by_start);
    for (Span *span = spans; span < spans + count; span++) {
        if (span->start == span->stop) continue;
        if (span->start < changed || (span->changes && span->start < stop)) return 1;
        if (span->stop > stop) stop = span->stop;
        if (span->changes && span->stop > changed) changed = span->stop;
    }
    return 0;
}

/* Count one more step of the rows [start, stop). */
static void run(Kernel kernel, AnyCall *arguments, const Given *given, long start, long stop)
{
    if (start == stop) return;
    Row *rows = given->rows + start, *last = given->rows + stop - 1;
    long before = rows->before;
    for (long i = start; i < stop; i++) {
        Array *counter = given->counters[i];
        given->rows[i].before -= before;
        if (counter) given->rows[i].count = counter->dtype == float32 ? ++*(float *)counter->data : ++*(double *)counter->data;
    }
    arguments->sgd.rows = rows, arguments->sgd.count = stop - start;            /* the first members of every such struct */
    if (last->before + last->size < LONG) kernel(arguments);
    else {
        Py_BEGIN_ALLOW_THREADS
        kernel(arguments);
        Py_END_ALLOW_THREADS
    }
}

PyObject *step(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    const Entry *entry = PyCapsule_GetPointer(self, KERNEL_NAME);
    const Declaration *row_of = &declarations[entry->row];
    Py_ssize_t width = row_of->arrays;
    AnyCall arguments = {0};
    if (!count || !PyList_Check(values[0])) return PyErr_Format(PyExc_TypeError, "%s takes a list of rows, then numbers", entry->name), NULL;
    int refused = check_numbers(row_of, entry->name, values + 1, count - 1, &arguments);
    if (refused < 0) return NULL;
    if (refused) return PyErr_Format(PyExc_ValueError, "%s: a number is out of range", entry->name), NULL;
    PyObject *rows = PyList_AsTuple(values[0]);             /* the arrays stay, whatever becomes of the list meanwhile */
    Py_ssize_t many = rows ? PyTuple_Size(rows) : -1;
    for (Py_ssize_t i = 0; i < many; i++) {
        PyObject *row = PyTuple_GetItem(rows, i);
        if (PyTuple_Check(row) && PyTuple_Size(row) == width) continue;
        PyErr_Format(PyExc_TypeError, "a row of %s is a tuple of %zd", entry->name, width);
        many = -1;
    }
    if (many < 0) return Py_XDECREF(rows), NULL;
    Given given = {.rows = malloc((many + 1) * sizeof *given.rows), .counters = malloc((many + 1) * sizeof *given.counters),
                   .spans = malloc((many * width + 1) * sizeof *given.spans)};
    char *taken = calloc(many + 1, 1);
    PyObject *left = given.rows && given.counters && given.spans && taken ? PyList_New(0) : PyErr_NoMemory();
    long singles = 0;
    for (int i = 0; left && array_type && i < 2; i++) {
        for (Py_ssize_t k = 0; k < many; k++) taken[k] |= !taken[k] && take(&given, PyTuple_GetItem(rows, k), row_of->argument, i ? float64 : float32);
        if (!i) singles = given.count;
    }
    if (left && shared(given.spans, given.spanned)) given.count = singles = 0, memset(taken, 0, many);
    run(entry->f32, &arguments, &given, 0, singles);
    run(entry->f64, &arguments, &given, singles, given.count);
    for (Py_ssize_t k = 0; left && k < many; k++) if (!taken[k]) {
        PyObject *place = PyLong_FromSsize_t(k);
        if (!place || PyList_Append(left, place)) Py_CLEAR(left);
        Py_XDECREF(place);
    }
    free(given.rows), free(given.counters), free(given.spans), free(taken);
    Py_DECREF(rows);
    return left;
}
