/* The parts of Python and NumPy beyond the limited API that the compiled fast paths use: both document them as stable. */
#ifndef TENSORGRAD_ARRAYS_H
#define TENSORGRAD_ARRAYS_H
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <structmember.h>
#include <string.h>

#include "kernels.h"

/* PEP 590, in the limited API from 3.12 on. */
typedef PyObject *(*Vectorcall)(PyObject *, PyObject *const *, size_t, PyObject *);
extern PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *), *PyVectorcall_Call(PyObject *, PyObject *, PyObject *);
#define VECTORCALL (1UL << 11)
#define COUNT(n) ((Py_ssize_t)((n) & ~((size_t)1 << (8 * sizeof(size_t) - 1))))

/* NumPy's arrays and dtypes, from 2.0 on. */
typedef struct Dtype { PyObject_HEAD PyTypeObject *scalar; char kind, letter, order, unused; int number; } Dtype;
typedef struct Array { PyObject_HEAD char *data; int ndim; Py_ssize_t *shape, *strides; PyObject *base; Dtype *dtype; int flags; } Array;
enum { C_CONTIGUOUS = 1, F_CONTIGUOUS = 2, ALIGNED = 0x100, WRITEABLE = 0x400 };

extern PyTypeObject *array_type;                /* NULL until NumPy's table of functions is known */
extern Dtype *float32, *float64;
Array *new_array(Dtype *dtype, int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides);      /* strides: NULL for C order */
int is_half(const Dtype *dtype);                /* float16, bfloat16 */
PyObject *widened(PyObject *value), *narrowed(PyObject *value, Dtype *half);

static inline Py_ssize_t size_of(const Array *a)
{
    Py_ssize_t n = 1;
    for (int i = 0; i < a->ndim; i++) n *= a->shape[i];
    return n;
}

static inline int same_shape(const Array *a, const Array *b)
{
    return a->ndim == b->ndim && (!a->ndim || !memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape));
}

/* Return 1 if this is an array that the kernels read. */
static inline int readable(PyObject *value)
{
    Array *a = (Array *)value;
    return Py_TYPE(value) == array_type && (a->dtype == float32 || a->dtype == float64) && a->flags & ALIGNED;
}

extern PyObject *mode;                          /* core/mode.py */
extern PyTypeObject *map_type;
PyObject *call_map(PyObject *map, PyObject *const *args, size_t count, PyObject *keywords);

const Entry *entry_of(const char *name);        /* a kernel, by its name; NULL and an error if there is none */
void **numpy_functions(void);                   /* NULL and an error if they are not available */

#endif
