/* NumPy's state while the package computes: see guest.c. */
#ifndef TENSORGRAD_GUEST_H
#define TENSORGRAD_GUEST_H
#include "arrays.h"

#define LARGE_SIDE 128                          /* elements: what is smaller has no large square either */

/* The state of a thread before a region. */
typedef struct Region { PyObject *token, *handler; int single; } Region;

int region_enter(Region *region, int large);    /* large: whether arrays may be made that are; −1 for an error */
int region_leave(Region *region);               /* an error that is set stays; −1 for one that came up here */
int is_large(PyObject *const *values, Py_ssize_t count);        /* whether an array among these, or one made of them, may be large */
PyObject *swap_handler(PyObject *handler);      /* memory.c: NumPy's memory handler from now on; the one before; NULL without an error where ours is not in use */
extern PyObject *memory_handler;                /* ours; NULL where it is not in use */

#endif
