/* One step of a backward, like `_step` in core/sweep.py and `pull` in core/step.py: a step with one result on the CPU, without hooks, for all leaves.
   All others are left to Python. */
#include "fast_path.h"

#include <string.h>

#define MOST_WANTED 14
#define MOST_PULLED 8

static PyTypeObject *leaf;
static PyObject *freed, *fitted, *added, *xp, *sum, *written_name;

/* learn_steps(Leaf, FREED, fitted, added): the Python objects that a backward needs beside those of `learn`. */
PyObject *learn_steps(PyObject *self, PyObject *args)
{
    PyObject *given[4];
    if (!PyArg_ParseTuple(args, "O!OOO:learn_steps", &PyType_Type, given, given + 1, given + 2, given + 3)) return NULL;
    if (!cpu) return PyErr_SetString(PyExc_RuntimeError, "nothing is known of tensors"), NULL;
    xp = PyObject_GetAttrString((PyObject *)cpu, "xp"), written_name = PyUnicode_InternFromString("written");
    sum = PyObject_CallMethod(self, "map", "sOi", "two_add", Py_None, 1);
    if (!xp || !sum || !written_name) return NULL;
    leaf = (PyTypeObject *)Py_NewRef(given[0]), freed = Py_NewRef(given[1]), fitted = Py_NewRef(given[2]), added = Py_NewRef(given[3]);
    Py_RETURN_NONE;
}

/* Return 1 if a storage was written to after a time; −1 for an error. */
static int written_after(PyObject *storage, PyObject *time)
{
    PyObject *written = PyObject_GetAttr(storage, written_name);
    if (!written) return -1;
    long long date = PyLong_AsLongLong(written), since = PyLong_AsLongLong(time);
    Py_DECREF(written);
    return PyErr_Occurred() ? -1 : date > since;
}

/* Return a saved value as formulas take it; NULL without an error if Python must handle it. */
static PyObject *value_of(PyObject *saved, PyObject *time)
{
    PyTypeObject *type = Py_TYPE(saved);
    if (PyType_IsSubtype(type, tensor_base)) {
        PyObject *memory = Py_XNewRef(SLOT(saved, tensor_at[STORAGE])), *array = Py_XNewRef(SLOT(saved, tensor_at[ARRAY]));
        if (!memory || !array || written_after(memory, time)) Py_CLEAR(array);
        Py_XDECREF(memory);
        return array;
    }
    int plain = type == array_type || type == &PyFloat_Type || type == &PyLong_Type || type == &PyTuple_Type || saved == Py_None;
    return plain ? Py_NewRef(saved) : NULL;
}

/* Return the arguments of the formulas: saved values as arrays, then the extras. NULL without an error if Python must handle them. */
static PyObject *values_of(PyObject *node, PyObject *plan, PyObject *saved)
{
    PyObject *time = Py_XNewRef(SLOT(node, step_at[TIME])), *extras = Py_XNewRef(SLOT(plan, plan_at[EXTRAS])), *storage = Py_XNewRef(SLOT(node, step_at[MEMORY]));
    int whole = time && extras && storage, stale = whole && SLOT(plan, plan_at[SAVES_OUT]) == Py_True ? written_after(storage, time) : !whole;
    Py_ssize_t count = PyTuple_Size(saved);
    PyObject *values = stale ? NULL : PyList_New(count);
    for (Py_ssize_t i = 0; values && i < count; i++) {
        PyObject *value = value_of(PyTuple_GetItem(saved, i), time);
        if (!value) Py_CLEAR(values); else PyList_SetItem(values, i, value);
    }
    for (Py_ssize_t i = 0; values && i < PyTuple_Size(extras); i++) {
        PyObject *extra = PyObject_CallFunctionObjArgs(PyTuple_GetItem(extras, i), node, values, NULL);
        if (!extra || PyList_Append(values, extra)) Py_CLEAR(values);
        Py_XDECREF(extra);
    }
    Py_XDECREF(time);
    Py_XDECREF(extras);
    Py_XDECREF(storage);
    return values;
}

/* Return 1 if a gradient has the shape and dtype of its edge. */
static int fits(PyObject *ge, PyObject *edge)
{
    Array *array = (Array *)ge;
    if (Py_TYPE(ge) != array_type || !PyType_IsSubtype(Py_TYPE(edge), step_base)) return 0;
    PyObject *shape = SLOT(edge, step_at[SHAPE]);
    if ((PyObject *)array->dtype != SLOT(edge, step_at[DTYPE]) || !shape || !PyTuple_Check(shape) || PyTuple_Size(shape) != array->ndim) return 0;
    for (int i = 0; i < array->ndim; i++) if (PyLong_AsSsize_t(PyTuple_GetItem(shape, i)) != array->shape[i]) return PyErr_Clear(), 0;
    return 1;
}

/* Call one formula, and return the gradient for an edge. */
static PyObject *pulled_by(PyObject *formula, PyObject *wants, PyObject *values, PyObject *g, PyObject *edge)
{
    PyObject *args[2 + MOST_WANTED] = {xp, g}, *ge = NULL;
    Py_ssize_t count = PyTuple_Size(wants), held = 0;
    for (; held < count; held++) {
        PyObject *value = PyList_GetItem(values, PyLong_AsSsize_t(PyTuple_GetItem(wants, held)));
        if (!value) break;
        args[2 + held] = Py_NewRef(value);
    }
    if (held == count) ge = PyObject_Vectorcall(formula, args, 2 + count, NULL);
    while (held) Py_DECREF(args[1 + held--]);
    if (!ge || fits(ge, edge)) return ge;
    PyObject *found = PyObject_CallFunctionObjArgs(fitted, xp, ge, edge, NULL);
    Py_DECREF(ge);
    return found;
}

/* Return 1 if nobody else holds a gradient's memory: it is neither g itself nor a saved value. */
static int is_fresh(PyObject *ge, PyObject *g, PyObject *saved)
{
    if (ge == g || Py_TYPE(ge) != array_type || ((Array *)ge)->base) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(saved); i++) {
        PyObject *value = PyTuple_GetItem(saved, i);
        if (ge == value || (PyType_IsSubtype(Py_TYPE(value), tensor_base) && ge == SLOT(value, tensor_at[ARRAY]))) return 0;
    }
    return 1;
}

/* Add a gradient to the sum so far of an edge; −1 for an error. */
static int add(PyObject *grads, PyObject *owned, PyObject *edge, PyObject *ge, int fresh)
{
    PyObject *before = Py_XNewRef(PyDict_GetItemWithError(grads, edge));
    if (!before) return PyErr_Occurred() || PyDict_SetItem(grads, edge, ge) || (fresh && Py_TYPE(edge) == leaf && PySet_Add(owned, edge)) ? -1 : 0;
    int ours = PySet_Contains(owned, edge);
    PyObject *operands[] = {before, ge, before}, *total = ours < 0 ? NULL : call_map(sum, operands, 2 + ours, NULL);
    if (total == Py_NotImplemented) {
        Py_DECREF(total);
        total = Py_TYPE(ge) == array_type && ((Array *)ge)->dtype->letter == 'V' ? PyObject_CallFunctionObjArgs(added, xp, before, ge, NULL)
              : ours ? PyNumber_InPlaceAdd(before, ge) : PyNumber_Add(before, ge);
    }
    int failed = !total || PyDict_SetItem(grads, edge, total) || PySet_Add(owned, edge);
    Py_XDECREF(total);
    Py_DECREF(before);
    return failed ? -1 : 0;
}

/* The objects that pulling a step needs. References are held: formulas run Python code, so that other threads may free or redefine the step meanwhile.
   A fused step has a residual (pair, kept, watched), see core/fused.py, and in OF_VALUES the argument of the pair's backward. */
enum { OF_PLAN, OF_SAVED, OF_EDGES, OF_STEPS, OF_G, OF_VALUES, OF_RESIDUAL, HELD };

/* Return the values that a pair's forward kept; NULL without an error if Python must handle them: one was modified or replaced. */
static PyObject *kept_of(PyObject *node, PyObject *residual)
{
    if (!PyTuple_Check(residual) || PyTuple_Size(residual) != 3 || Py_TYPE(PyTuple_GetItem(residual, 0)) != pair_type) return NULL;
    PyObject *kept = PyTuple_GetItem(residual, 1), *watched = PyTuple_GetItem(residual, 2), *time = Py_XNewRef(SLOT(node, step_at[TIME]));
    int fine = time && PyList_Check(watched);
    for (Py_ssize_t i = 0; fine && i < PyList_Size(watched); i++) {
        PyObject *entry = Py_NewRef(PyList_GetItem(watched, i)), *tensor = PyTuple_Check(entry) && PyTuple_Size(entry) == 2 ? PyTuple_GetItem(entry, 1) : NULL;
        if (!tensor || !PyType_IsSubtype(Py_TYPE(tensor), tensor_base) || !PyLong_Check(PyTuple_GetItem(entry, 0))) {
            Py_DECREF(entry);
            fine = 0;
            break;
        }
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GetItem(entry, 0));
        PyObject *memory = Py_XNewRef(SLOT(tensor, tensor_at[STORAGE]));
        PyObject *part = place < 0 ? NULL : PyTuple_Check(kept) ? PyTuple_GetItem(kept, place) : PyList_Check(kept) ? PyList_GetItem(kept, place) : kept;
        fine = memory && (!part || part == SLOT(tensor, tensor_at[ARRAY])) && !written_after(memory, time);
        Py_XDECREF(memory);
        Py_DECREF(entry);
    }
    Py_XDECREF(time);
    PyErr_Clear();          /* of invalid places: Python's step raises the error */
    return fine ? Py_NewRef(kept) : NULL;
}

/* Return the gradients of all inputs from a pair's backward. */
static PyObject *by_pair(PyObject **held)
{
    Py_ssize_t count = PySequence_Size(held[OF_EDGES]);
    PyObject *needs = count < 0 ? NULL : PyTuple_New(count), *pair = PyTuple_GetItem(held[OF_RESIDUAL], 0), *found = NULL;
    for (Py_ssize_t i = 0; needs && i < count; i++) {
        PyObject *edge = PySequence_GetItem(held[OF_EDGES], i);
        if (edge) PyTuple_SetItem(needs, i, PyBool_FromLong(edge != Py_None)); else Py_CLEAR(needs);
        Py_XDECREF(edge);
    }
    PyObject *backward = Py_XNewRef(SLOT(pair, pair_at[BACKWARD])), *args[] = {held[OF_G], held[OF_VALUES], needs};
    if (needs && backward) found = PyObject_Vectorcall(backward, args, 3, NULL);
    Py_XDECREF(backward);
    Py_XDECREF(needs);
    PyObject *listed = found ? PySequence_List(found) : NULL;
    Py_XDECREF(found);
    return listed;
}

/* Take references to the objects of a step; 0 without an error if Python must pull it. */
static int hold(PyObject *node, PyObject *grads, PyObject **held)
{
    PyObject *storage = SLOT(node, step_at[MEMORY]), *plan = held[OF_PLAN] = Py_XNewRef(SLOT(node, step_at[PLAN])), *g;
    PyObject *saved = held[OF_SAVED] = Py_XNewRef(SLOT(node, step_at[SAVED])), *edges = held[OF_EDGES] = Py_XNewRef(SLOT(node, step_at[EDGES]));
    if (!plan || Py_TYPE(plan) != plan_type || !saved || !PyTuple_Check(saved) || saved == freed || !edges || !(PyTuple_Check(edges) || PyList_Check(edges))
        || !storage || Py_TYPE(storage) != cpu || SLOT(node, step_at[HOOKS]) != Py_None) return 0;
    g = held[OF_G] = Py_XNewRef(PyDict_GetItemWithError(grads, node));
    if (!g) return !PyErr_Occurred();
    PyObject *steps = held[OF_STEPS] = Py_XNewRef(SLOT(plan, plan_at[STEPS]));
    PyObject *residual = Py_XNewRef(SLOT(node, step_at[RESIDUAL]));
    if (residual == Py_None) Py_CLEAR(residual);
    held[OF_RESIDUAL] = residual;
    if (residual) return Py_TYPE(g) == array_type && !strchr("Ve", ((Array *)g)->dtype->letter) && (held[OF_VALUES] = kept_of(node, residual)) != NULL;
    if (!steps || Py_TYPE(g) != array_type || strchr("FDGVe", ((Array *)g)->dtype->letter) || PyTuple_Size(steps) > MOST_PULLED) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_Size(steps); k++) if (PyTuple_Size(PyTuple_GetItem(PyTuple_GetItem(steps, k), 2)) > MOST_WANTED) return 0;
    return (held[OF_VALUES] = values_of(node, plan, saved)) != NULL;
}

/* Return the edge of the k-th formula's gradient. */
static PyObject *goal(PyObject **held, Py_ssize_t k)
{
    return PySequence_GetItem(held[OF_EDGES], PyLong_AsSsize_t(PyTuple_GetItem(PyTuple_GetItem(held[OF_STEPS], k), 0)));
}

/* Clear an error about shapes, dtypes or memory, and put the gradient back, so that Python repeats the step, or explains it; return 1 if it was one. */
static int leave_to_python(PyObject *grads, PyObject *node, PyObject *g)
{
    if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_IndexError) && !PyErr_ExceptionMatches(PyExc_MemoryError)
        && !PyErr_ExceptionMatches(PyExc_TypeError)) return 0;
    PyErr_Clear();
    return !PyDict_SetItem(grads, node, g);
}

/* Return 1 if a step saved more than numbers and shapes, which are not freed. */
static int holds_memory(PyObject *saved)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(saved); i++) {
        PyObject *value = PyTuple_GetItem(saved, i);
        if (value != Py_None && Py_TYPE(value) != &PyLong_Type && Py_TYPE(value) != &PyFloat_Type && Py_TYPE(value) != &PyTuple_Type) return 1;
    }
    return 0;
}

/* Free the saved values of a step. Another thread may have done so. */
static void forget(PyObject *node)
{
    PyObject *const before[] = {SLOT(node, step_at[SAVED]), SLOT(node, step_at[RESIDUAL])};
    SLOT(node, step_at[SAVED]) = Py_NewRef(freed);
    SLOT(node, step_at[RESIDUAL]) = before[1] ? Py_NewRef(Py_None) : NULL;
    Py_XDECREF(before[0]);
    Py_XDECREF(before[1]);
}

/* `pull_held` for a fused step. */
static int pull_pair(PyObject *node, PyObject *grads, PyObject *owned, int keep, PyObject **held)
{
    PyObject *g = held[OF_G], *saved = held[OF_SAVED];
    if (PyDict_DelItem(grads, node)) return -1;
    PyObject *found = by_pair(held);
    Py_ssize_t count = PySequence_Size(held[OF_EDGES]);
    int failed = !found;
    for (Py_ssize_t i = 0; !failed && i < count && i < PyList_Size(found); i++) {
        PyObject *edge = PySequence_GetItem(held[OF_EDGES], i), *ge = PyList_GetItem(found, i);
        failed = !edge;
        if (edge && edge != Py_None && ge != Py_None && !fits(ge, edge)) {
            PyObject *made = PyObject_CallFunctionObjArgs(fitted, xp, ge, edge, NULL);
            failed = !made || PyList_SetItem(found, i, made);
        }
        Py_XDECREF(edge);
    }
    if (failed) {
        Py_XDECREF(found);
        return leave_to_python(grads, node, g) ? 0 : -1;
    }
    if (!keep) forget(node);
    for (Py_ssize_t i = 0; !failed && i < count && i < PyList_Size(found); i++) {
        PyObject *edge = PySequence_GetItem(held[OF_EDGES], i), *ge = PyList_GetItem(found, i);
        failed = !edge || (edge != Py_None && ge != Py_None && add(grads, owned, edge, ge, is_fresh(ge, g, saved)));
        Py_XDECREF(edge);
    }
    Py_DECREF(found);
    return failed ? -1 : 1;
}

/* Pull a step, and add its gradients to those of its edges: 1 if done, 0 if left to Python, −1 for an error. */
static int pull_held(PyObject *node, PyObject *grads, PyObject *owned, int keep, PyObject **held)
{
    PyObject *found[MOST_PULLED], *g = held[OF_G], *saved = held[OF_SAVED];
    Py_ssize_t formulas = PyTuple_Size(held[OF_STEPS]), taken = 0;
    int failed = PyDict_DelItem(grads, node), left = 0;
    for (; !failed && taken < formulas; taken++) {
        PyObject *step = PyTuple_GetItem(held[OF_STEPS], taken), *edge = goal(held, taken);
        found[taken] = edge ? pulled_by(PyTuple_GetItem(step, 1), PyTuple_GetItem(step, 2), held[OF_VALUES], g, edge) : NULL;
        Py_XDECREF(edge);
        if ((failed = !found[taken])) {
            left = leave_to_python(grads, node, g);
            break;
        }
    }
    if (!failed && !keep && holds_memory(saved)) forget(node);
    for (Py_ssize_t k = 0; k < taken; k++) {
        PyObject *edge = failed ? NULL : goal(held, k);
        if (!failed) failed = !edge || add(grads, owned, edge, found[k], is_fresh(found[k], g, saved));
        Py_XDECREF(edge);
        Py_DECREF(found[k]);
    }
    return left ? 0 : failed ? -1 : 1;
}

/* step_back(node, grads, owned, retain_graph): pull a step if it has a gradient; False if Python must do it. */
PyObject *step_back(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 4 || !PyDict_Check(args[1]) || !PySet_Check(args[2]))
        return PyErr_SetString(PyExc_TypeError, "step_back(node, grads, owned, retain_graph)"), NULL;
    PyObject *node = args[0], *held[HELD] = {0};
    if (!PyType_IsSubtype(Py_TYPE(node), step_base)) Py_RETURN_FALSE;
    int done = hold(node, args[1], held);
    if (done && held[OF_G]) done = (held[OF_RESIDUAL] ? pull_pair : pull_held)(node, args[1], args[2], PyObject_IsTrue(args[3]), held);
    for (int i = 0; i < HELD; i++) Py_XDECREF(held[i]);
    return done < 0 || PyErr_Occurred() ? NULL : PyBool_FromLong(done);
}
