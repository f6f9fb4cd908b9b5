/* NumPy's state while the package computes: see numpy_state.c. */
#ifndef TENSORGRAD_NUMPY_STATE_H
#define TENSORGRAD_NUMPY_STATE_H
#include "arrays.h"

#define LARGE_SIDE 128                          /* elements: the outer product of smaller arrays is not large either */

/* The state of a thread before a region. */
typedef struct Region { PyObject *token, *handler; int single; } Region;

int region_enter(Region *region, int large);    /* large: 1 if large arrays may be made; −1 for an error */
int region_leave(Region *region);               /* keeps an error that is set; −1 if an error is set */
int is_large(PyObject *const *values, Py_ssize_t count);        /* 1 if one of these arrays, or a result of them, may be large */
PyObject *swap_handler(PyObject *handler);      /* memory.c: set NumPy's memory handler, return the one before; NULL without an error if ours is unused */
extern PyObject *memory_handler;                /* ours; NULL if it is unused */

#endif
