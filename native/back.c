/* One step back, as `_step` and `pull` of autograd/engine.py take it: a step of one result on the CPU, without hooks, pulled once and for all leaves.
   All others are left to Python. */
#include "lane.h"

#include <string.h>

#define MOST_WANTED 14
#define MOST_PULLED 8

static PyTypeObject *leaf, *node_base;
static PyObject *freed, *fitted, *xp, *sum, *written_name;

/* learn_steps(Leaf, FREED, fitted, Node): the rest of what the way back needs to know. */
PyObject *learn_steps(PyObject *self, PyObject *args)
{
    PyObject *given[4];
    if (!PyArg_ParseTuple(args, "O!OOO!:learn_steps", &PyType_Type, given, given + 1, given + 2, &PyType_Type, given + 3)) return NULL;
    if (!cpu) return PyErr_SetString(PyExc_RuntimeError, "nothing is known of tensors"), NULL;
    xp = PyObject_GetAttrString((PyObject *)cpu, "xp"), written_name = PyUnicode_InternFromString("written");
    sum = PyObject_CallMethod(self, "map", "sOi", "two_add", Py_None, 1);
    if (!xp || !sum || !written_name) return NULL;
    leaf = (PyTypeObject *)Py_NewRef(given[0]), node_base = (PyTypeObject *)Py_NewRef(given[3]), freed = Py_NewRef(given[1]), fitted = Py_NewRef(given[2]);
    Py_RETURN_NONE;
}

/* Whether a storage was written to after a time; −1 for an error. */
static int written_after(PyObject *storage, PyObject *time)
{
    PyObject *written = PyObject_GetAttr(storage, written_name);
    if (!written) return -1;
    long long date = PyLong_AsLongLong(written), since = PyLong_AsLongLong(time);
    Py_DECREF(written);
    return PyErr_Occurred() ? -1 : date > since;
}

/* What the formulas ask for: what was saved, as arrays, and the extras. NULL without an error for what Python has to look at. */
static PyObject *values_of(PyObject *node, PyObject *plan, PyObject *saved)
{
    PyObject *time = SLOT(node, step_at[TIME]), *extras = SLOT(plan, plan_at[EXTRAS]), *storage = SLOT(node, step_at[MEMORY]);
    Py_ssize_t count = PyTuple_Size(saved);
    int stale = SLOT(plan, plan_at[SAVES_OUT]) == Py_True ? written_after(storage, time) : 0;
    PyObject *values = stale ? NULL : PyList_New(count);
    for (Py_ssize_t i = 0; values && i < count; i++) {
        PyObject *value = PyTuple_GetItem(saved, i);
        if (PyType_IsSubtype(Py_TYPE(value), tensor_base)) {
            PyObject *memory = SLOT(value, tensor_at[STORAGE]), *array = SLOT(value, tensor_at[ARRAY]);
            if (memory && array && !written_after(memory, time)) value = array; else Py_CLEAR(values);
        } else if (Py_TYPE(value) != array_type && Py_TYPE(value) != &PyFloat_Type && Py_TYPE(value) != &PyLong_Type && Py_TYPE(value) != &PyTuple_Type
                   && value != Py_None) Py_CLEAR(values);
        if (values) PyList_SetItem(values, i, Py_NewRef(value));
    }
    for (Py_ssize_t i = 0; values && i < PyTuple_Size(extras); i++) {
        PyObject *extra = PyObject_CallFunctionObjArgs(PyTuple_GetItem(extras, i), node, values, NULL);
        if (!extra || PyList_Append(values, extra)) Py_CLEAR(values);
        Py_XDECREF(extra);
    }
    return values;
}

/* Whether an array has the shape and dtype of what it is the gradient of. */
static int fits(PyObject *ge, PyObject *edge)
{
    Array *array = (Array *)ge;
    if (Py_TYPE(ge) != array_type || !PyType_IsSubtype(Py_TYPE(edge), node_base)) return 0;
    PyObject *shape = SLOT(edge, step_at[SHAPE]);
    if ((PyObject *)array->dtype != SLOT(edge, step_at[DTYPE]) || !shape || !PyTuple_Check(shape) || PyTuple_Size(shape) != array->ndim) return 0;
    for (int i = 0; i < array->ndim; i++) if (PyLong_AsSsize_t(PyTuple_GetItem(shape, i)) != array->shape[i]) return PyErr_Clear(), 0;
    return 1;
}

/* One formula: the gradient that goes to an edge. */
static PyObject *pulled_by(PyObject *formula, PyObject *wants, PyObject *values, PyObject *g, PyObject *edge)
{
    PyObject *args[2 + MOST_WANTED] = {xp, g};
    Py_ssize_t count = PyTuple_Size(wants);
    for (Py_ssize_t i = 0; i < count; i++) args[2 + i] = PyList_GetItem(values, PyLong_AsSsize_t(PyTuple_GetItem(wants, i)));
    PyObject *ge = PyObject_Vectorcall(formula, args, 2 + count, NULL);
    if (!ge || fits(ge, edge)) return ge;
    PyObject *found = PyObject_CallFunctionObjArgs(fitted, xp, ge, edge, NULL);
    Py_DECREF(ge);
    return found;
}

/* Whether a gradient is memory that nobody else holds: neither g itself nor a saved value. */
static int is_fresh(PyObject *ge, PyObject *g, PyObject *saved)
{
    if (ge == g || Py_TYPE(ge) != array_type || ((Array *)ge)->base) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(saved); i++) {
        PyObject *value = PyTuple_GetItem(saved, i);
        if (ge == value || (PyType_IsSubtype(Py_TYPE(value), tensor_base) && ge == SLOT(value, tensor_at[ARRAY]))) return 0;
    }
    return 1;
}

/* Add a gradient to what waits at an edge; −1 for an error. */
static int add(PyObject *grads, PyObject *owned, PyObject *edge, PyObject *ge, int fresh)
{
    PyObject *before = PyDict_GetItemWithError(grads, edge);
    if (!before) return PyErr_Occurred() || PyDict_SetItem(grads, edge, ge) || (fresh && Py_TYPE(edge) == leaf && PySet_Add(owned, edge)) ? -1 : 0;
    int ours = PySet_Contains(owned, edge);
    if (ours < 0) return -1;
    PyObject *operands[] = {before, ge, before}, *total = call_map(sum, operands, 2 + ours, NULL);
    if (total == Py_NotImplemented) {
        Py_DECREF(total);
        total = ours ? PyNumber_InPlaceAdd(before, ge) : PyNumber_Add(before, ge);
    }
    int failed = !total || PyDict_SetItem(grads, edge, total) || PySet_Add(owned, edge);
    Py_XDECREF(total);
    return failed ? -1 : 0;
}

/* step_back(node, grads, owned, retain_graph): whether this was a step to be taken here; then it is taken, if a gradient waits at it. */
PyObject *step_back(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 4 || !PyDict_Check(args[1]) || !PySet_Check(args[2]))
        return PyErr_SetString(PyExc_TypeError, "step_back(node, grads, owned, retain_graph)"), NULL;
    PyObject *node = args[0], *grads = args[1], *g = NULL, *values, *found[MOST_PULLED];
    if (!PyType_IsSubtype(Py_TYPE(node), step_base)) Py_RETURN_FALSE;
    PyObject *plan = SLOT(node, step_at[PLAN]), *saved = SLOT(node, step_at[SAVED]), *edges = SLOT(node, step_at[EDGES]), *storage = SLOT(node, step_at[MEMORY]);
    if (!plan || Py_TYPE(plan) != plan_type || !saved || !PyTuple_Check(saved) || saved == freed || !edges || !(PyTuple_Check(edges) || PyList_Check(edges))
        || !storage || Py_TYPE(storage) != cpu || SLOT(node, step_at[HOOKS]) != Py_None) Py_RETURN_FALSE;
    g = PyDict_GetItemWithError(grads, node);
    if (!g) return PyErr_Occurred() ? NULL : Py_NewRef(Py_True);
    PyObject *steps = SLOT(plan, plan_at[STEPS]);
    Py_ssize_t formulas = PyTuple_Size(steps), taken = 0;
    if (Py_TYPE(g) != array_type || strchr("cV", ((Array *)g)->dtype->kind) || formulas > MOST_PULLED) Py_RETURN_FALSE;
    for (Py_ssize_t k = 0; k < formulas; k++) if (PyTuple_Size(PyTuple_GetItem(PyTuple_GetItem(steps, k), 2)) > MOST_WANTED) Py_RETURN_FALSE;
    if (!(values = values_of(node, plan, saved))) return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    Py_INCREF(g);
    Py_INCREF(saved);
    Py_INCREF(edges);
    int failed = PyDict_DelItem(grads, node);
    for (; !failed && taken < formulas; taken++) {
        PyObject *step = PyTuple_GetItem(steps, taken), *edge = PySequence_GetItem(edges, PyLong_AsSsize_t(PyTuple_GetItem(step, 0)));
        found[taken] = edge ? pulled_by(PyTuple_GetItem(step, 1), PyTuple_GetItem(step, 2), values, g, edge) : NULL;
        Py_XDECREF(edge);
        if ((failed = !found[taken])) break;
    }
    if (!failed && !PyObject_IsTrue(args[3]) && PyTuple_Size(saved)) {
        SLOT(node, step_at[SAVED]) = Py_NewRef(freed);
        Py_DECREF(saved);                       /* the node's; one is held */
    }
    for (Py_ssize_t k = 0; k < taken; k++) {
        PyObject *edge = failed ? NULL : PySequence_GetItem(edges, PyLong_AsSsize_t(PyTuple_GetItem(PyTuple_GetItem(steps, k), 0)));
        if (!failed) failed = !edge || add(grads, args[2], edge, found[k], is_fresh(found[k], g, saved));
        Py_XDECREF(edge);
        Py_DECREF(found[k]);
    }
    Py_DECREF(values);
    Py_DECREF(g);
    Py_DECREF(saved);
    Py_DECREF(edges);
    return failed ? NULL : Py_NewRef(Py_True);
}
