/* The checks of compiled programs (compiler/guards.py): flat tuples of what a trace read, compared with what is there now. They run before each call. */
#include "fast_path.h"

static PyObject *written_name, *contents_name, *dict_name;
static PyTypeObject *cell_type;

static int ready(void)
{
    if (cell_type) return 1;
    PyObject *types = PyImport_ImportModule("types"), *cell = types ? PyObject_GetAttrString(types, "CellType") : NULL;
    Py_XDECREF(types);
    written_name = PyUnicode_InternFromString("written"), contents_name = PyUnicode_InternFromString("cell_contents"), dict_name = PyUnicode_InternFromString("__dict__");
    if (!cell || !written_name || !contents_name || !dict_name) return 0;
    cell_type = (PyTypeObject *)cell;
    return 1;
}

/* Return the number of groups of a flat tuple; −1 for anything else. */
static Py_ssize_t groups_of(PyObject *flat, Py_ssize_t size)
{
    if (PyTuple_CheckExact(flat) && PyTuple_Size(flat) % size == 0) return PyTuple_Size(flat) / size;
    PyErr_Format(PyExc_TypeError, "a flat tuple of groups of %zd is expected", size);
    return -1;
}

/* same_tensors(flat): True if each tensor still has the array and the storage that follow it, and the block after these the date of its last write. */
PyObject *same_tensors(PyObject *self, PyObject *flat)
{
    (void)self;
    Py_ssize_t count = ready() ? groups_of(flat, 5) : -1;
    if (count < 0) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *tensor = PyTuple_GetItem(flat, 5 * i), *block = PyTuple_GetItem(flat, 5 * i + 3), *date = PyTuple_GetItem(flat, 5 * i + 4);
        if (!tensor_base || !PyType_IsSubtype(Py_TYPE(tensor), tensor_base)) return PyErr_SetString(PyExc_TypeError, "same_tensors: no tensor"), NULL;
        if (SLOT(tensor, tensor_at[ARRAY]) != PyTuple_GetItem(flat, 5 * i + 1) || SLOT(tensor, tensor_at[STORAGE]) != PyTuple_GetItem(flat, 5 * i + 2)) Py_RETURN_FALSE;
        PyObject *written = PyObject_GetAttr(block, written_name);
        int same = written ? written == date ? 1 : PyObject_RichCompareBool(written, date, Py_EQ) : -1;
        Py_XDECREF(written);
        if (same < 0) return NULL;
        if (!same) Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

/* Return 1 for the same object, or an equal number or text; −1 for an error. */
static int same_value(PyObject *now, PyObject *before)
{
    if (now == before) return 1;
    if (Py_TYPE(now) != Py_TYPE(before)) return 0;
    int plain = PyFloat_CheckExact(now) || PyLong_CheckExact(now) || PyUnicode_CheckExact(now) || PyComplex_CheckExact(now) || PyBytes_CheckExact(now);
    return plain ? PyObject_RichCompareBool(now, before, Py_EQ) : 0;
}

/* A container and what it held: (list or cell, None, 0, values), or (dictionary or class, names, length, values), of which only the names count, and the
   length unless it is negative. Pointers are borrowed from the flat tuple `of`, which every check is given again. */
enum { ROW, CELL, DICTIONARY, CLASS };
typedef struct Held { PyObject *name, *value; } Held;
typedef struct Group { PyObject *container; Held *entries; Py_ssize_t count, length; int kind; } Group;
typedef struct Prepared { PyObject *of; Py_ssize_t count; Group groups[]; } Prepared;
#define PREPARED "tensorgrad.guards"

static void free_prepared(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, PREPARED)); }

/* Fill a group from its four objects, and return the place after its entries; NULL if they are none. */
static Held *filled(Group *group, Held *entries, PyObject *container, PyObject *names, PyObject *length, PyObject *values)
{
    int named = PyTuple_CheckExact(names);
    if (!PyTuple_CheckExact(values) || !PyLong_CheckExact(length) || (named ? PyTuple_Size(names) != PyTuple_Size(values) : names != Py_None)) return NULL;
    *group = (Group){container, entries, PyTuple_Size(values), PyLong_AsSsize_t(length), ROW};
    if (named) group->kind = PyDict_Check(container) ? DICTIONARY : CLASS;
    else if (Py_TYPE(container) == cell_type) group->kind = CELL;
    if (PyErr_Occurred() || (group->kind == ROW && !PyList_CheckExact(container)) || (group->kind == CLASS && !PyType_Check(container))) return NULL;
    for (Py_ssize_t i = 0; i < group->count; i++) *entries++ = (Held){named ? PyTuple_GetItem(names, i) : NULL, PyTuple_GetItem(values, i)};
    return entries;
}

/* prepare(flat): what same_places needs to be quick, of a flat tuple of groups of four. */
PyObject *prepare(PyObject *self, PyObject *flat)
{
    (void)self;
    Py_ssize_t count = ready() ? groups_of(flat, 4) : -1, entries = 0;
    if (count < 0) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *values = PyTuple_GetItem(flat, 4 * i + 3);
        entries += PyTuple_CheckExact(values) ? PyTuple_Size(values) : 0;
    }
    Prepared *made = PyMem_Malloc(sizeof(Prepared) + (size_t)count * sizeof(Group) + (size_t)entries * sizeof(Held));
    if (!made) return PyErr_NoMemory();
    *made = (Prepared){.of = flat, .count = count};
    Held *next = (Held *)(made->groups + count);
    for (Py_ssize_t i = 0; next && i < count; i++)
        next = filled(made->groups + i, next, PyTuple_GetItem(flat, 4 * i), PyTuple_GetItem(flat, 4 * i + 1), PyTuple_GetItem(flat, 4 * i + 2),
                      PyTuple_GetItem(flat, 4 * i + 3));
    if (!next && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "prepare: no such container");
    PyObject *capsule = next ? PyCapsule_New(made, PREPARED, free_prepared) : NULL;
    if (!capsule) PyMem_Free(made);
    return capsule;
}

static int same_row(const Group *group)
{
    int same = PyList_Size(group->container) == group->count;
    for (Py_ssize_t i = 0; same == 1 && i < group->count; i++) {
        PyObject *now = Py_XNewRef(PyList_GetItem(group->container, i));
        same = now ? same_value(now, group->entries[i].value) : -1;
        Py_XDECREF(now);
    }
    return same;
}

static int same_cell(const Group *group)
{
    PyObject *now = PyObject_GetAttr(group->container, contents_name);
    if (!now && !PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
    if (!now) PyErr_Clear();
    int same = group->count == (now != NULL) && (!now || same_value(now, group->entries[0].value));
    Py_XDECREF(now);
    return same;
}

static int same_entries(const Group *group)
{
    for (Py_ssize_t i = 0; i < group->count; i++) {
        PyObject *now = PyDict_GetItemWithError(group->container, group->entries[i].name);
        if (now == group->entries[i].value) continue;
        if (!now) return PyErr_Occurred() ? -1 : 0;
        Py_INCREF(now);
        int same = same_value(now, group->entries[i].value);
        Py_DECREF(now);
        if (same != 1) return same;
    }
    return 1;
}

static int same_class(const Group *group)
{
    PyObject *mapping = PyObject_GetAttr(group->container, dict_name);
    int same = mapping ? 1 : -1;
    for (Py_ssize_t i = 0; same == 1 && i < group->count; i++) {
        PyObject *now = PyObject_GetItem(mapping, group->entries[i].name);
        if (now) same = same_value(now, group->entries[i].value);
        else if (PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear(), same = 0;
        else same = -1;
        Py_XDECREF(now);
    }
    Py_XDECREF(mapping);
    return same;
}

/* same_places(flat, prepare(flat)): True if each container holds what it held. */
PyObject *same_places(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    const Prepared *found = count == 2 && PyCapsule_IsValid(args[1], PREPARED) ? PyCapsule_GetPointer(args[1], PREPARED) : NULL;
    if (!found || found->of != args[0]) return PyErr_SetString(PyExc_TypeError, "same_places(flat, prepare(flat))"), NULL;
    for (const Group *group = found->groups; group < found->groups + found->count; group++) {
        int same = 1;
        if (group->kind == DICTIONARY) {
            if (group->length >= 0 && PyDict_Size(group->container) != group->length) Py_RETURN_FALSE;
            if (group->count) same = same_entries(group);
        }
        else same = group->kind == ROW ? same_row(group) : group->kind == CELL ? same_cell(group) : same_class(group);
        if (same < 0) return NULL;
        if (!same) Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}
