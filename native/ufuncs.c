/* Functions of one or two arrays, like NumPy's ufuncs, called without Python code around. map(name, before, least) is the kernel of that name for
   arrays of `least` elements or more; `before`, such as a ufunc, computes the rest. Without it, the result is then NotImplemented.

   f(a) and f(a, b, out=None, p=0.0): each operand is a contiguous array of float32 or float64, or a number; one of two may be broadcast along rows of the
   other, along columns, or both. */
#include "check.h"
#include "loop.h"
#include "numpy_state.h"

#include <string.h>

PyTypeObject *array_type, *map_type;
Dtype *float32, *float64;
PyObject *mode;
static void **table;                            /* NumPy's functions */
enum { ARRAY_TYPE = 2, DTYPE_OF_NUMBER = 45, NEW_FROM_DTYPE = 94, FLOAT32 = 11, FLOAT64 = 12 };
#define LANDS (1 << 12)                         /* elements from which on a result may be written over its operand */
#define LONG (1 << 14)                          /* from here on others may run meanwhile */
#define LARGE_ARRAY (1 << 13)                   /* and its memory may come from the kept blocks */

typedef struct Map {
    PyObject_HEAD
    Vectorcall call;
    PyObject *before, *dict;
    const Entry *entry;
    Py_ssize_t least;
    int operands;
} Map;

Array *new_array(Dtype *dtype, int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides)
{
    typedef PyObject *(*New)(PyTypeObject *, Dtype *, int, const Py_ssize_t *, const Py_ssize_t *, void *, int, PyObject *);
    PyObject *before = NULL;
    Py_ssize_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    if (n >= LARGE_ARRAY && memory_handler && !(before = swap_handler(memory_handler))) return NULL;
    Py_INCREF((PyObject *)dtype);               /* the call takes the reference */
    Array *made = (Array *)((New)table[NEW_FROM_DTYPE])(array_type, dtype, ndim, shape, strides, NULL, 0, NULL);
    if (!before) return made;
    PyObject *ours = swap_handler(before);
    if (!ours) Py_CLEAR(made);
    Py_XDECREF(ours);
    Py_DECREF(before);
    return made;
}

/* Return 1 if an array has neither gaps nor overlaps, whatever the order of its axes. */
static int dense(const Array *a)
{
    if (a->flags & (C_CONTIGUOUS | F_CONTIGUOUS)) return 1;
    Py_ssize_t step = a->dtype == float32 ? 4 : 8, covered = 1, n = size_of(a);
    while (covered < n) {
        int i = 0;
        while (i < a->ndim && (a->shape[i] == 1 || a->strides[i] != step)) i++;
        if (i == a->ndim || !a->shape[i]) return 0;
        covered *= a->shape[i], step *= a->shape[i];
    }
    return 1;
}

static int alike(const Array *a, const Array *b)
{
    return same_shape(a, b) && (!a->ndim || a->flags & b->flags & C_CONTIGUOUS || !memcmp(a->strides, b->strides, a->ndim * sizeof *a->strides));
}

/* Where a result laid out as x may go: over x itself, if its values are given up. */
static Array *place(Array *x, Py_ssize_t n)
{
    if (n >= LANDS && mode) {
        PyObject *landing = PyObject_GetAttrString(mode, "landing");
        if (!landing) return NULL;
        if (landing == (PyObject *)x && x->flags & WRITEABLE) return PyObject_SetAttrString(mode, "landing", Py_None) ? NULL : (Array *)landing;
        Py_DECREF(landing);
    }
    return new_array(x->dtype, x->ndim, x->shape, x->flags & C_CONTIGUOUS ? NULL : x->strides);
}

static PyObject *computed(Map *map, const void *arguments, Array *out, Py_ssize_t n)
{
    Kernel kernel = out->dtype == float64 ? map->entry->f64 : map->entry->f32;
    if (n < LONG) kernel(arguments);            /* these kernels allocate no memory, so they cannot fail */
    else {
        Py_BEGIN_ALLOW_THREADS
        kernel(arguments);
        Py_END_ALLOW_THREADS
    }
    return (PyObject *)out;
}

/* Return the result for one array; NULL without an error if it is not supported. */
static PyObject *of_one(Map *map, PyObject *value)
{
    Array *x = (Array *)value, *out;
    if (!readable(value)) return NULL;
    Py_ssize_t n = size_of(x);
    if (!n || n < map->least || !dense(x) || !(out = place(x, n))) return NULL;
    map_call arguments = {.x = x->data, .y = out->data, .n = n};
    return computed(map, &arguments, out, n);
}

/* How to broadcast the smaller of two arrays along the rows of the larger: their length, and the strides from row to row and within. */
static int along(const Array *large, const Array *small, Py_ssize_t most, Py_ssize_t least, long *n, long *row, long *column)
{
    if (alike(large, small) && dense(large)) return *n = most, *row = most, *column = 1, 1;
    if (small->ndim > large->ndim || !(large->flags & small->flags & C_CONTIGUOUS)) return 0;
    if (least == 1) return *n = most, *row = *column = 0, 1;
    int first = 0, apart = large->ndim - small->ndim;
    while (small->shape[first] == 1) first++;
    if (!memcmp(small->shape + first, large->shape + apart + first, (small->ndim - first) * sizeof(Py_ssize_t))) return *n = least, *row = 0, *column = 1, 1;
    if (apart || small->shape[small->ndim - 1] != 1 || memcmp(small->shape, large->shape, (small->ndim - 1) * sizeof(Py_ssize_t))) return 0;
    return *n = large->shape[large->ndim - 1], *row = 1, *column = 0, 1;
}

/* Return 1 if an operand overlaps the memory that is written to, without being exactly that memory. */
static int disturbed(const char *data, Py_ssize_t bytes, const Array *out, Py_ssize_t written)
{
    return data < out->data + written && out->data < data + bytes && !(data == out->data && bytes == written);
}

static PyObject *of_two(Map *map, PyObject *a, PyObject *b, PyObject *given, double p)
{
    PyObject *operands[2] = {a, b};
    Py_ssize_t sizes[2] = {1, 1};
    union { float f; double d; } number;
    const char *data[2];
    two_call arguments = {.p = p};
    int first = Py_TYPE(a) == array_type ? 0 : 1;                   /* an operand that is an array */
    PyObject *partner = operands[1 - first];
    Array *x = (Array *)operands[first], *other = (Array *)partner, *large = x, *out;
    if (!readable((PyObject *)x)) return NULL;
    Py_ssize_t item = x->dtype == float32 ? 4 : 8;
    sizes[first] = size_of(x);
    long shape[2], steps[4];                                        /* rows and columns; the row and column strides of a, then those of b */
    if (Py_TYPE(partner) == array_type) {
        if (!readable(partner) || other->dtype != x->dtype) return NULL;
        sizes[1 - first] = size_of(other);
        int which = sizes[1] > sizes[0] || (sizes[1] == sizes[0] && ((Array *)b)->ndim > x->ndim);
        large = (Array *)operands[which];
        if (!sizes[0] || !sizes[1]
            || !along(large, (Array *)operands[1 - which], sizes[which], sizes[1 - which], &shape[1], &steps[2 - 2 * which], &steps[3 - 2 * which])) return NULL;
        steps[2 * which] = shape[1], steps[2 * which + 1] = 1;
        data[0] = x->data, data[1] = other->data;
    } else {
        double value = Py_TYPE(partner) == &PyFloat_Type ? PyFloat_AsDouble(partner)
                     : Py_TYPE(partner) == &PyLong_Type ? PyLong_AsDouble(partner) : -1;
        if (Py_TYPE(partner) != &PyFloat_Type && (Py_TYPE(partner) != &PyLong_Type || (value == -1 && PyErr_Occurred()))) return PyErr_Clear(), NULL;
        if (item == 4) number.f = (float)value; else number.d = value;
        if (!sizes[first] || !dense(x)) return NULL;
        shape[1] = sizes[first], steps[2 * first] = shape[1], steps[2 * first + 1] = 1, steps[2 - 2 * first] = steps[3 - 2 * first] = 0;
        data[first] = x->data, data[1 - first] = (const char *)&number;
    }
    Py_ssize_t n = sizes[large == (Array *)b];
    if (n < map->least) return NULL;
    if (given) {
        out = (Array *)given;
        if (!readable(given) || out->dtype != x->dtype || !(out->flags & WRITEABLE) || !alike(out, large)) return NULL;
        for (int i = 0; i < 2; i++) if (disturbed(data[i], sizes[i] * item, out, n * item)) return NULL;
        Py_INCREF(given);
    } else {
        out = large == (Array *)a ? place(large, n) : new_array(large->dtype, large->ndim, large->shape, large->flags & C_CONTIGUOUS ? NULL : large->strides);
        if (!out) return NULL;
    }
    arguments.a = data[0], arguments.b = data[1], arguments.out = out->data, arguments.rows = n / shape[1], arguments.n = shape[1];
    arguments.a_row = steps[0], arguments.a_column = steps[1], arguments.b_row = steps[2], arguments.b_column = steps[3];
    return computed(map, &arguments, out, n);
}

PyObject *call_map(PyObject *self, PyObject *const *args, size_t nargs, PyObject *keywords)
{
    Map *map = (Map *)self;
    Py_ssize_t count = COUNT(nargs), named = keywords ? PyTuple_Size(keywords) : 0;
    PyObject *out = count > 2 ? args[2] : NULL, *found = NULL;
    double p = count > 3 ? PyFloat_AsDouble(args[3]) : 0;
    int understood = count >= map->operands && count <= (map->operands == 1 ? 1 : 4) && !(named && map->operands == 1) && named <= (count == 2);
    if (PyErr_Occurred()) return NULL;
    if (named && understood) {
        understood = !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "out");
        out = args[count];
    }
    if (understood) found = map->operands == 1 ? of_one(map, args[0]) : of_two(map, args[0], args[1], out == Py_None ? NULL : out, p);
    if (found || PyErr_Occurred()) return found;
    Region region;
    if (!map->before) return Py_NewRef(Py_NotImplemented);
    if (region_enter(&region, is_large(args, count + named))) return NULL;
    found = PyObject_Vectorcall(map->before, args, nargs, keywords);
    if (region_leave(&region)) Py_CLEAR(found);
    return found;
}

static int visit_map(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Map *)self)->before);
    Py_VISIT(((Map *)self)->dict);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int clear_map(PyObject *self)
{
    Py_CLEAR(((Map *)self)->before);
    Py_CLEAR(((Map *)self)->dict);
    return 0;
}

static void free_map(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear_map(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Map, call), READONLY, NULL},
                                {"__dictoffset__", T_PYSSIZET, offsetof(Map, dict), READONLY, NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_call, PyVectorcall_Call}, {Py_tp_members, members}, {Py_tp_traverse, visit_map}, {Py_tp_clear, clear_map},
                              {Py_tp_dealloc, free_map}, {0, NULL}};
static PyType_Spec spec = {"tensorgrad._compiled.map", sizeof(Map), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | VECTORCALL, slots};

PyObject *new_map(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *before;
    Py_ssize_t least;
    (void)self;
    if (!PyArg_ParseTuple(args, "sOn:map", &name, &before, &least)) return NULL;
    const Entry *entry = entry_of(name);
    if (entry && entry->row != ROW_map && entry->row != ROW_two) return PyErr_Format(PyExc_ValueError, "%s is no function of each element", name), NULL;
    Map *map = entry ? (Map *)PyType_GenericAlloc(map_type, 0) : NULL;
    if (!map) return NULL;
    map->call = call_map, map->before = before == Py_None ? NULL : Py_NewRef(before), map->entry = entry, map->least = least;
    map->operands = entry->row == ROW_two ? 2 : 1;
    return (PyObject *)map;
}

/* ── numbers of 16 bits ───────────────────────────────────────────────────────────────────────────────────────────────────────────────── */

static Dtype *half_dtypes[2];                   /* float16 and bfloat16 */

int is_half(const Dtype *dtype) { return dtype && (dtype == half_dtypes[0] || dtype == half_dtypes[1]); }

static void convert(const char *name, const void *arguments, Py_ssize_t n)
{
    Kernel kernel = entry_of(name)->f32;
    if (n < LONG) {
        if (n) kernel(arguments);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    kernel(arguments);
    Py_END_ALLOW_THREADS
}

/* Return an operand in float32, if it is a contiguous array of 16 bits, and itself if it is none; NULL without an error for other layouts. */
PyObject *widened(PyObject *value)
{
    Array *x = (Array *)value;
    if (Py_TYPE(value) != array_type || !is_half(x->dtype)) return Py_NewRef(value);
    if (!(x->flags & C_CONTIGUOUS) || (uintptr_t)x->data % 2) return NULL;
    Array *out = new_array(float32, x->ndim, x->shape, NULL);
    if (!out) return NULL;
    widen_call arguments = {.halves = x->data, .x = out->data, .n = size_of(x), .upper = x->dtype == half_dtypes[1]};
    convert("widen", &arguments, arguments.n);
    return (PyObject *)out;
}

/* Return a contiguous array of float32 in a dtype of 16 bits. */
PyObject *narrowed(PyObject *value, Dtype *half)
{
    Array *x = (Array *)value, *out = new_array(half, x->ndim, x->shape, NULL);
    if (!out) return NULL;
    narrow_call arguments = {.x = x->data, .halves = out->data, .n = size_of(x), .upper = half == half_dtypes[1]};
    convert("narrow", &arguments, arguments.n);
    return (PyObject *)out;
}

/* use_halves(float16, bfloat16): set the dtypes of 16 bits. */
PyObject *use_halves(PyObject *self, PyObject *args)
{
    PyObject *float16, *bfloat16;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO:use_halves", &float16, &bfloat16)) return NULL;
    half_dtypes[0] = (Dtype *)Py_NewRef(float16), half_dtypes[1] = (Dtype *)Py_NewRef(bfloat16);
    Py_RETURN_NONE;
}

/* The beginning of NumPy's PyUFuncObject. `types` has the numbers of dtypes, operands and results, of each loop. */
typedef struct Ufunc {
    PyObject_HEAD
    int nin, nout, nargs, identity;
    void (**loops)(char **, const intptr_t *, const intptr_t *, void *);
    void **data;
    int ntypes, unused;
    const char *name, *types;
} Ufunc;

NumpyLoop numpy_loops[2][LOOP_KINDS];

/* Learn NumPy's loops over float and double for steps of the kernel `loop`. Steps without one are refused (loop.c). */
static int find_loops(void)
{
#define FIND(name, operands) {#name, LOOP_##name, operands},
    static const struct { const char *name; int kind, operands; } wanted[] = {LOOP_OF_NUMPY(FIND)};
    PyObject *numpy = PyImport_ImportModule("numpy"), *type = numpy ? PyObject_GetAttrString(numpy, "ufunc") : NULL;
    for (unsigned i = 0; type && i < sizeof wanted / sizeof *wanted; i++) {
        PyObject *found = PyObject_GetAttrString(numpy, wanted[i].name);
        Ufunc *ufunc = (Ufunc *)found;
        int arrays = wanted[i].operands + 1;
        if (!found) PyErr_Clear();
        else if ((PyObject *)Py_TYPE(found) == type && ufunc->nin == arrays - 1 && ufunc->nargs == arrays) for (int k = 0; k < ufunc->ntypes; k++) {
            const char *types = ufunc->types + k * arrays, of = types[0];
            int alike = 1;
            for (int at = 1; at < arrays; at++) alike &= types[at] == of;
            if (alike && (of == FLOAT32 || of == FLOAT64) && !numpy_loops[of == FLOAT64][wanted[i].kind].run)
                numpy_loops[of == FLOAT64][wanted[i].kind] = (NumpyLoop){ufunc->loops[k], ufunc->data ? ufunc->data[k] : NULL};
        }
        Py_XDECREF(found);
    }
    Py_XDECREF(numpy);
    Py_XDECREF(type);
    return type ? 0 : -1;
}

/* use_arrays(): learn how NumPy's arrays are made. */
PyObject *use_arrays(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    if (!(table = numpy_functions())) return NULL;
    typedef Dtype *(*Find)(int);
    float32 = ((Find)table[DTYPE_OF_NUMBER])(FLOAT32), float64 = ((Find)table[DTYPE_OF_NUMBER])(FLOAT64);
    array_type = table[ARRAY_TYPE];
    if (!float32 || !float64 || (!map_type && !(map_type = (PyTypeObject *)PyType_FromSpec(&spec))) || find_loops()) return NULL;
    Py_RETURN_NONE;
}
