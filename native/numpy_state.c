/* NumPy's state while the package computes: its handling of overflow, its buffer, its memory handler, and the number of BLAS's threads. The state
belongs to the program, so it is set where NumPy is called and restored right after. The first two are one value of a context variable: setting a
prepared value and restoring the old one takes some 70 ns, which kernels of ours never spend. */
#include "numpy_state.h"

extern PyObject *PyContextVar_Set(PyObject *, PyObject *);                      /* beyond the limited API, but unchanged since Python 3.7 */
extern int PyContextVar_Reset(PyObject *, PyObject *);

static PyObject *state, *ours;                  /* NumPy's variable, and its value in regions */
static void (*set_blas)(int);                   /* how many threads BLAS has */
static int (*get_blas)(void);
static int regions, before;                     /* open regions, in which BLAS has one thread, and its threads outside; with the interpreter's lock */
static _Thread_local int mine;                  /* open regions of this thread */

/* use_state(variable, value, set, get): NumPy's context variable, its value in regions, and the addresses of BLAS's functions, or 0. */
PyObject *use_state(PyObject *self, PyObject *args)
{
    PyObject *variable, *value;
    unsigned long long set, get;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOKK:use_state", &variable, &value, &set, &get)) return NULL;
    if (state) Py_RETURN_NONE;                  /* once for the process: the addresses are believed */
    state = Py_NewRef(variable), ours = Py_NewRef(value);
    if (set && get) set_blas = (void (*)(int))(uintptr_t)set, get_blas = (int (*)(void))(uintptr_t)get;
    Py_RETURN_NONE;
}

static int begin_single(void)
{
    if (!set_blas) return 0;
    if (!regions++ && (before = get_blas()) > 1) set_blas(1);
    return ++mine;
}

static void end_single(void)
{
    mine--;
    if (!--regions && before > 1 && get_blas() == 1) set_blas(before);          /* unless somebody chose another number meanwhile */
}

int is_large(PyObject *const *values, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTypeObject *type = Py_TYPE(values[i]);
        if (type == array_type ? size_of((Array *)values[i]) >= LARGE_SIDE : type == &PyTuple_Type || type == &PyList_Type) return 1;
    }
    return 0;
}

int region_enter(Region *region, int large)
{
    *region = (Region){0};
    if (state && !(region->token = PyContextVar_Set(state, ours))) return -1;
    if (large && memory_handler && !(region->handler = swap_handler(memory_handler))) return region_leave(region), -1;
    region->single = begin_single();
    return 0;
}

int region_leave(Region *region)
{
    PyObject *type, *value, *trace, *handler = NULL;
    PyErr_Fetch(&type, &value, &trace);
    if (region->single) end_single();
    int failed = region->handler && !(handler = swap_handler(region->handler));
    failed |= region->token && PyContextVar_Reset(state, region->token);
    Py_XDECREF(handler);
    Py_XDECREF(region->handler);
    Py_XDECREF(region->token);
    if (!type) return failed ? -1 : 0;
    PyErr_Restore(type, value, trace);
    return -1;
}

/* compute(function, *args, **params): call the function in a region. */
PyObject *compute(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    Region region;
    (void)self;
    if (count < 1) return PyErr_SetString(PyExc_TypeError, "compute(function, *args, **params)"), NULL;
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    if (region_enter(&region, count + named == 1 || is_large(args + 1, count - 1 + named))) return NULL;
    PyObject *found = PyObject_Vectorcall(args[0], args + 1, count - 1, keywords);
    if (region_leave(&region)) Py_CLEAR(found);
    return found;
}

/* The region that Python's code is in, in this thread. */
static _Thread_local struct { Region region; int open; } here;

/* enter_region(): begin a region, unless one is open; return True if it began, for leave_region(began). */
PyObject *enter_region(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    if (here.open) Py_RETURN_FALSE;
    if (region_enter(&here.region, 1)) return NULL;
    here.open = 1;
    Py_RETURN_TRUE;
}

PyObject *leave_region(PyObject *self, PyObject *began)
{
    (void)self;
    if (began != Py_True || !here.open) Py_RETURN_NONE;
    here.open = 0;
    if (region_leave(&here.region)) return NULL;
    Py_RETURN_NONE;
}

/* outside(function, *args, **params): call the program's own function in the program's state, and keep the state that it leaves. */
PyObject *outside(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    (void)self;
    if (count < 1) return PyErr_SetString(PyExc_TypeError, "outside(function, *args, **params)"), NULL;
    int open = here.open;
    here.open = 0;
    PyObject *type, *value, *trace, *found = open && region_leave(&here.region) ? NULL : PyObject_Vectorcall(args[0], args + 1, count - 1, keywords);
    if (!open) return found;
    PyErr_Fetch(&type, &value, &trace);
    here.open = 1;
    if (region_enter(&here.region, 1)) {
        Py_CLEAR(found);
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    } else PyErr_Restore(type, value, trace);
    return found;
}

/* Reset the state in a child of fork, which has this thread alone. */
PyObject *regions_forked(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    if (regions && !mine && before > 1) set_blas(before);
    regions = mine;
    Py_RETURN_NONE;
}
