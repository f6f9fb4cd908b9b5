/* Calls of ops on plain CPU tensors, and the recording of their steps, like those of core/dispatch.py and `record` of core/tape.py, on the same
   objects. The offsets of these objects' slots are found at run time, once (`learn`). A fast path calls Python's function for all that is not plain: other
   classes, dtypes and devices, watched steps, errors of shapes. */
#include "fast_path.h"
#include "numpy_state.h"

#include <string.h>

PyTypeObject *tensor_base, *step_base, *plan_type, *pair_type, *cpu;
static PyTypeObject *tensor_type, *origin_type;
static PyObject *clock_, *plain_types, *node_of, *own_record, *careful, *refuse, *nowhere, *method_type, *no_params;
static PyObject *record_name, *grad_name, *inference_name, *no_grad_name, *memory_name;

enum { PARENT, OP, ARGS, WORDS, KIND, ORIGIN_SLOTS };
static Py_ssize_t origin_at[ORIGIN_SLOTS];
Py_ssize_t tensor_at[TENSOR_SLOTS], step_at[STEP_SLOTS], plan_at[PLAN_SLOTS], pair_at[PAIR_SLOTS];

static PyObject *new_object(PyTypeObject *type) { return PyType_GenericAlloc(type, 0); }
static void fill(PyObject *object, Py_ssize_t offset, PyObject *value) { SLOT(object, offset) = value; }         /* takes the reference `value` */

/* ── tensors ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Make a tensor of an array and its storage; takes both references. */
static PyObject *new_tensor(PyObject *array, PyObject *storage, PyObject *node)
{
    PyObject *out = array && storage ? new_object(tensor_type) : NULL;
    if (!out) {
        Py_XDECREF(array);
        Py_XDECREF(storage);
        return NULL;
    }
    fill(out, tensor_at[ARRAY], array);
    fill(out, tensor_at[STORAGE], storage);
    fill(out, tensor_at[NODE], Py_NewRef(node));
    fill(out, tensor_at[GRAD], Py_NewRef(Py_None));
    fill(out, tensor_at[ORIGIN], Py_NewRef(Py_None));
    return out;
}

/* Return 1 if a mode is on; −1 for an error. */
static int is_on(PyObject *name)
{
    PyObject *on = PyObject_GetAttr(mode, name);
    int found = on ? PyObject_IsTrue(on) : -1;
    Py_XDECREF(on);
    return found;
}

static int mark_inference(PyObject *storage)
{
    int found = is_on(inference_name);
    return found > 0 ? PyObject_SetAttr(storage, inference_name, Py_True) : found;
}

PyObject *wrap(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 2 && count != 3) return PyErr_SetString(PyExc_TypeError, "wrap(array, storage, node=None)"), NULL;
    return new_tensor(Py_NewRef(args[0]), Py_NewRef(args[1]), count == 3 ? args[2] : Py_None);
}

PyObject *fresh(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 2) return PyErr_SetString(PyExc_TypeError, "fresh(array, backend)"), NULL;
    PyObject *backend = args[1], *type = PyObject_GetAttrString(backend, "array_type");
    if (!type) return NULL;
    PyObject *array = type == (PyObject *)Py_TYPE(args[0]) ? Py_NewRef(args[0]) : PyObject_CallMethod(backend, "asarray", "O", args[0]);
    Py_DECREF(type);
    PyObject *storage = !array ? NULL : backend == (PyObject *)cpu ? new_object(cpu) : PyObject_CallNoArgs(backend);
    if (storage && mark_inference(storage)) Py_CLEAR(storage);
    return new_tensor(array, storage, Py_None);
}

/* ── the tape ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────── */

static PyObject *shape_of(PyObject *value)
{
    if (Py_TYPE(value) != array_type) return PyObject_GetAttrString(value, "shape");
    Array *array = (Array *)value;
    PyObject *shape = PyTuple_New(array->ndim);
    for (int i = 0; shape && i < array->ndim; i++) {
        PyObject *n = PyLong_FromSsize_t(array->shape[i]);
        if (!n) Py_CLEAR(shape); else PyTuple_SetItem(shape, i, n);
    }
    return shape;
}

/* Return the operands and the result that a plan saves. */
static PyObject *saved_by(PyObject *plan, PyObject *args, PyObject *y)
{
    PyObject *origins = SLOT(plan, plan_at[ORIGINS]);
    if (SLOT(plan, plan_at[SHAPELESS]) != Py_True || !PyTuple_Check(args)) {
        PyObject *results = PyTuple_Pack(1, y);
        PyObject *saved = results ? PyObject_CallFunctionObjArgs(SLOT(plan, plan_at[SAVE]), args, results, NULL) : NULL;
        Py_XDECREF(results);
        return saved;
    }
    Py_ssize_t count = PyTuple_Size(origins), operands = PyTuple_Size(args), same = 0;
    PyObject *saved = PyTuple_New(count);
    for (Py_ssize_t k = 0; saved && k < count; k++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GetItem(origins, k));
        same += place == k;
        PyTuple_SetItem(saved, k, Py_NewRef(place < operands ? PyTuple_GetItem(args, place) : y));
    }
    if (saved && same == operands && count == operands) {
        Py_DECREF(saved);
        saved = Py_NewRef(args);
    }
    return saved;
}

/* Watch a tensor that must not be modified, with its place among the values that a kernel kept. */
static int watch(PyObject *watched, Py_ssize_t place, PyObject *tensor)
{
    PyObject *entry = Py_BuildValue("nO", place, tensor);
    int failed = !entry || PyList_Append(watched, entry);
    Py_XDECREF(entry);
    return failed;
}

/* Make a tensor of the same values without their history: a step that held its own result would be a cycle. */
static PyObject *alias_of(PyObject *tensor)
{
    PyObject *same = new_object(tensor_base);
    if (!same) return NULL;
    fill(same, tensor_at[ARRAY], Py_NewRef(SLOT(tensor, tensor_at[ARRAY])));
    fill(same, tensor_at[STORAGE], Py_NewRef(SLOT(tensor, tensor_at[STORAGE])));
    for (int i = NODE; i < TENSOR_SLOTS; i++) fill(same, tensor_at[i], Py_NewRef(Py_None));
    return same;
}

/* Make the residual of a kernel pair's step, as record_fused of tape.py does: (pair, kept, watched). */
static PyObject *residual_of(PyObject *pair, PyObject *kept, PyObject *args, PyObject *out)
{
    int tuple = PyTuple_Check(kept), several = tuple || PyList_Check(kept), failed = 0;
    Py_ssize_t count = several ? PySequence_Size(kept) : 1;
    PyObject *watched = PyList_New(0);
    for (Py_ssize_t i = 0; watched && !failed && i < count; i++) {
        PyObject *part = tuple ? PyTuple_GetItem(kept, i) : several ? PyList_GetItem(kept, i) : kept;
        if (Py_TYPE(part) != array_type) continue;
        for (Py_ssize_t k = 0; !failed && k < PyTuple_Size(args); k++) {
            PyObject *a = PyTuple_GetItem(args, k);
            if (PyType_IsSubtype(Py_TYPE(a), tensor_base) && SLOT(a, tensor_at[ARRAY]) == part) failed = watch(watched, i, a);
        }
        if (!failed && SLOT(out, tensor_at[ARRAY]) == part) {
            PyObject *same = alias_of(out);
            failed = !same || watch(watched, -1, same);
            Py_XDECREF(same);
        }
    }
    PyObject *residual = watched && !failed ? PyTuple_Pack(3, pair, kept, watched) : NULL;
    Py_XDECREF(watched);
    return residual;
}

/* Record a step with one result. A `residual`, whose reference it takes, makes it a fused step. */
static int write_one(PyObject *plan, PyObject *args, PyObject *edges, PyObject *params, PyObject *out, PyObject *residual)
{
    PyObject *node = new_object((PyTypeObject *)SLOT(plan, plan_at[residual ? FUSED_TYPE : NODE_TYPE]));
    if (!node) return Py_XDECREF(residual), -1;
    fill(node, step_at[RESIDUAL], residual);
    PyObject *y = Py_NewRef(SLOT(out, tensor_at[ARRAY])), *storage = Py_NewRef(SLOT(out, tensor_at[STORAGE]));      /* `save` runs Python code */
    int kept = SLOT(plan, plan_at[SAVES_OUT]) == Py_True;
    fill(node, step_at[EDGES], Py_NewRef(edges));
    fill(node, step_at[PARAMS], Py_NewRef(params));
    fill(node, step_at[PLAN], Py_NewRef(plan));
    fill(node, step_at[HOOKS], Py_NewRef(Py_None));
    fill(node, step_at[CALLS], Py_NewRef(Py_None));
    fill(node, step_at[MEMORY], kept ? Py_NewRef(storage) : Py_TYPE(storage) == cpu ? Py_NewRef(nowhere) : PyObject_GetAttrString(storage, "nowhere"));
    fill(node, step_at[SHAPE], shape_of(y));
    fill(node, step_at[DTYPE], Py_TYPE(y) == array_type ? Py_NewRef((PyObject *)((Array *)y)->dtype) : PyObject_GetAttrString(y, "dtype"));
    fill(node, step_at[TIME], PyIter_Next(clock_));
    fill(node, step_at[SAVED], saved_by(plan, args, y));
    Py_DECREF(y);
    Py_DECREF(storage);
    if (!SLOT(node, step_at[SAVED]) || !SLOT(node, step_at[SHAPE]) || !SLOT(node, step_at[TIME]) || PyErr_Occurred()) return Py_DECREF(node), -1;
    PyObject *before = SLOT(out, tensor_at[NODE]);          /* only now: a view may be given its node by two threads at once */
    fill(out, tensor_at[NODE], node);
    Py_XDECREF(before);
    return 0;
}

static int write_step(PyObject *plan, PyObject *args, PyObject *edges, PyObject *params, PyObject *out)
{
    return write_one(plan, args, edges, params, out, NULL);
}

/* Raise, as `refuse_inference` does, if a step saved a tensor that was made in inference mode. */
static int refused(PyObject *node)
{
    PyObject *saved = Py_NewRef(SLOT(node, step_at[SAVED]));
    int found = !PyTuple_Check(saved);
    for (Py_ssize_t k = 0; !found && k < PyTuple_Size(saved); k++) {
        PyObject *value = PyTuple_GetItem(saved, k);
        if (!PyType_IsSubtype(Py_TYPE(value), tensor_base)) continue;
        PyObject *storage = Py_NewRef(SLOT(value, tensor_at[STORAGE])), *marked = PyObject_GetAttr(storage, inference_name);
        found = marked != Py_False;
        Py_XDECREF(marked);
        Py_DECREF(storage);
    }
    Py_DECREF(saved);
    if (!found) return 0;
    PyErr_Clear();
    PyObject *done = PyObject_CallFunctionObjArgs(refuse, node, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int write_carefully(PyObject *plan, PyObject *args, PyObject *edges, PyObject *params, PyObject *out)
{
    if (write_step(plan, args, edges, params, out)) return -1;
    PyObject *node = Py_NewRef(SLOT(out, tensor_at[NODE]));
    int failed = refused(node);
    Py_DECREF(node);
    return failed;
}

static PyObject *written(PyObject *const *args, Py_ssize_t count, int (*write)(PyObject *, PyObject *, PyObject *, PyObject *, PyObject *))
{
    if (count != 5 || Py_TYPE(args[0]) != plan_type || !PyType_IsSubtype(Py_TYPE(args[4]), tensor_base))
        return PyErr_SetString(PyExc_TypeError, "record(plan, args, edges, params, out)"), NULL;
    if (write(args[0], args[1], args[2], args[3], args[4])) return NULL;
    Py_RETURN_NONE;
}

PyObject *record_step(PyObject *self, PyObject *const *args, Py_ssize_t count) { (void)self; return written(args, count, write_step); }
PyObject *record_careful(PyObject *self, PyObject *const *args, Py_ssize_t count) { (void)self; return written(args, count, write_carefully); }

/* ── fast paths ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────── */

#define MOST_OPERANDS 5
#define MOST_WORDS 8

typedef struct FastPath {
    PyObject_HEAD
    Vectorcall call;
    PyObject *otherwise, *op, *kernels, *plans, *plan[1 << MOST_OPERANDS], *dict, *weak;
    char letters[32];
    int operands, tracked, numbers, parameters, shows, elementwise, composite, mixed, images, rounds;
    /* shows: 1 if the result may be a view, 2 if it always is; composite: without gradient formulas; mixed: operands may be of several dtypes;
       images: of Op.images; rounds: operands of 16 bits compute in float32, and the result is rounded once */
} FastPath;

static int is_plain(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == tensor_type) return 1;
    if (type == &PyFloat_Type || type == &PyLong_Type) return 0;
    int found = PySet_Contains(plain_types, (PyObject *)type);
    if (found < 0) PyErr_Clear();
    return found > 0;
}

/* Return the tape node of a tensor. */
static PyObject *edge_of(PyObject *tensor)
{
    return SLOT(tensor, tensor_at[ORIGIN]) == Py_None ? Py_NewRef(SLOT(tensor, tensor_at[NODE])) : PyObject_CallFunctionObjArgs(node_of, tensor, NULL);
}

static PyObject *words(PyObject *const *values, PyObject *keywords)
{
    if (!keywords || !PyTuple_Size(keywords)) return Py_NewRef(no_params);
    PyObject *found = PyDict_New();
    for (Py_ssize_t i = 0; found && i < PyTuple_Size(keywords); i++) if (PyDict_SetItem(found, PyTuple_GetItem(keywords, i), values[i])) Py_CLEAR(found);
    return found;
}

static PyObject *pack(PyObject *const *values, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, Py_NewRef(values[i]));
    return tuple;
}

/* The state of one call of a fast path. */
typedef struct Call {
    FastPath *path;
    PyObject *record, *operands, *edges, *params, *pair, *residual;         /* record: the function that records the step, or NULL */
    Dtype *half;                                                            /* the operands' dtype of 16 bits, or NULL */
    int needs;
} Call;

/* Write the step that made `out`; −1 for an error. */
static int recorded(Call *call, PyObject *out)
{
    PyObject **plan = &call->path->plan[call->needs], *done;
    if (!*plan) {
        PyObject *key = PyLong_FromLong(call->needs);
        *plan = key ? PyObject_GetItem(call->path->plans, key) : NULL;
        Py_XDECREF(key);
        if (!*plan) return -1;
    }
    if (call->pair) {
        PyObject *residual = residual_of(call->pair, call->residual, call->operands, out);
        if (!residual || write_one(*plan, call->operands, call->edges, call->params, out, residual)) return -1;
        return call->record == careful ? refused(SLOT(out, tensor_at[NODE])) : 0;
    }
    if (call->record == own_record) return write_step(*plan, call->operands, call->edges, call->params, out);
    if (call->record == careful) return write_carefully(*plan, call->operands, call->edges, call->params, out);
    done = PyObject_CallFunctionObjArgs(call->record, *plan, call->operands, call->edges, call->params, out, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Clear an error about shapes or memory, which Python's function will raise with an explanation. */
static void leave_to_python(void)
{
    if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_MemoryError)) PyErr_Clear();
}

static PyObject *as_array(PyObject *y)
{
    if (!y && PyErr_Occurred()) leave_to_python();
    if (!y || Py_TYPE(y) == array_type) return y;
    PyObject *array = PyObject_CallMethod((PyObject *)cpu, "asarray", "O", y);
    Py_DECREF(y);
    return array;
}

/* Call a kernel that is no map, in a region if it computes: it may call NumPy. */
static PyObject *called(const FastPath *path, PyObject *kernel, PyObject **values, int count, PyObject *keywords)
{
    Region region;
    int large = path->shows < 2 && is_large(values, count + (keywords ? PyTuple_Size(keywords) : 0));
    if (path->shows && !large) return PyObject_Vectorcall(kernel, values, count, keywords);
    if (region_enter(&region, large)) return NULL;
    PyObject *found = PyObject_Vectorcall(kernel, values, count, keywords);
    if (region_leave(&region)) Py_CLEAR(found);
    return found;
}

/* Return the result of the first pair that supports the arguments; NULL without an error if none does. */
static PyObject *served(Call *call, PyObject *pair, PyObject **values, int count, PyObject *keywords)
{
    PyObject *found = NULL, *y = NULL;
    pair = Py_NewRef(pair);
    for (;;) {
        PyObject *forward = Py_XNewRef(SLOT(pair, pair_at[FORWARD])), *below;
        found = forward ? called(call->path, forward, values, count, keywords) : NULL;
        Py_XDECREF(forward);
        if (found != Py_NotImplemented) break;
        below = Py_XNewRef(SLOT(pair, pair_at[BELOW]));
        Py_CLEAR(found);
        Py_DECREF(pair);
        pair = below;
        if (!pair || Py_TYPE(pair) != pair_type) break;
    }
    if (found && PyTuple_Check(found) && PyTuple_Size(found) == 2) {
        PyObject *rows = SLOT(pair, pair_at[ROWS]);
        y = Py_NewRef(PyTuple_GetItem(found, 0));
        if (rows && rows != Py_None && Py_TYPE(y) == array_type && !(((Array *)y)->flags & C_CONTIGUOUS)) {
            PyObject *laid = PyObject_CallFunctionObjArgs(rows, y, NULL);
            Py_DECREF(y);
            y = laid;
        }
        if (y) call->pair = Py_NewRef(pair), call->residual = Py_NewRef(PyTuple_GetItem(found, 1));
    }
    Py_XDECREF(found);
    Py_XDECREF(pair);
    return as_array(y);
}

/* Return the result of a kernel, or of the first pair that supports the arguments. */
static PyObject *computed(Call *call, PyObject *kernel, PyObject **values, int count, PyObject *keywords)
{
    if (Py_TYPE(kernel) == map_type) return as_array(call_map(kernel, values, count, keywords));
    if (Py_TYPE(kernel) != pair_type) return as_array(called(call->path, kernel, values, count, keywords));
    return served(call, kernel, values, count, keywords);
}

/* Return the result of operands of 16 bits, which were widened, in their dtype; bools and integers as they are. Takes the reference y. */
static PyObject *rounded(PyObject *y, Dtype *half)
{
    if (!y || Py_TYPE(y) != array_type || ((Array *)y)->dtype->kind != 'f') return y;
    PyObject *found = ((Array *)y)->dtype == float32 && ((Array *)y)->flags & C_CONTIGUOUS ? narrowed(y, half)
                    : PyObject_CallMethod((PyObject *)cpu, "cast", "OO", y, half);
    Py_DECREF(y);
    return found;
}

static int is_view(FastPath *path, PyObject *y, PyObject *x)
{
    PyObject *base = ((Array *)y)->base;
    return path->shows == 2 || (path->shows && (y == x || (base && (base == x || base == ((Array *)x)->base))));
}

/* Make a view of the operand, with its origin. Takes the reference y. */
static PyObject *new_view(Call *call, PyObject *y)
{
    PyObject *parent = PyTuple_GetItem(call->operands, 0), *storage = SLOT(parent, tensor_at[STORAGE]), *kind = Py_None;
    PyObject *memory = PyObject_GetAttr(storage, memory_name), *out = new_tensor(y, Py_NewRef(storage), Py_None), *origin = new_object(origin_type);
    int failed = !memory || !out || !origin || (memory == Py_None && PyObject_SetAttr(storage, memory_name, SLOT(parent, tensor_at[ARRAY])));
    if (!failed && !call->record) {
        int on = is_on(grad_name), inference = on ? 0 : is_on(inference_name);
        failed = on < 0 || inference < 0;
        if (!on) kind = inference ? inference_name : no_grad_name;
    }
    Py_XDECREF(memory);
    if (failed) {
        Py_XDECREF(out);
        Py_XDECREF(origin);
        return NULL;
    }
    PyObject *const slots[] = {parent, call->path->op, call->operands, call->params, kind};
    for (int i = 0; i < ORIGIN_SLOTS; i++) fill(origin, origin_at[i], Py_NewRef(slots[i]));
    Py_DECREF(SLOT(out, tensor_at[ORIGIN]));
    fill(out, tensor_at[ORIGIN], origin);
    return out;
}

/* Return 1 if an elementwise result's memory order may differ from PyTorch's: operands differ, or are not in C order. */
static int may_stray(PyObject *const *values, int count)
{
    Array *first = NULL;
    for (int i = 0; i < count; i++) {
        Array *a = (Array *)values[i];
        if (Py_TYPE(values[i]) != array_type || a->ndim < 2) continue;
        if (!first) first = a;
        else if (!(a->flags & first->flags & C_CONTIGUOUS) && (a->ndim != first->ndim || memcmp(a->strides, first->strides, a->ndim * sizeof *a->strides)))
            return 1;
    }
    return first && !(first->flags & C_CONTIGUOUS);
}

/* Return 1 if the axes of y have the memory order of those of x, which is not broadcast. */
static int lie_alike(const Array *y, const Array *x)
{
    if (!same_shape(y, x)) return 0;
    for (int i = 0; i < x->ndim; i++)
        for (int j = x->shape[i] > 1 ? 0 : i; j < i; j++)
            if (!x->strides[i] || (x->shape[j] > 1 && (!x->strides[j] || (x->strides[i] < x->strides[j]) != (y->strides[i] < y->strides[j])))) return 0;
    return 1;
}

/* Return an elementwise result with its axes in PyTorch's memory order, by storage/layout.py. Takes the reference y. */
static PyObject *in_order(PyObject *y, PyObject *const *values, int count)
{
    if (Py_TYPE(y) != array_type || (Py_TYPE(values[0]) == array_type && lie_alike((Array *)y, (Array *)values[0]))) return y;
    PyObject *arrays = PyList_New(0), *found = NULL;
    int failed = !arrays;
    for (int i = 0; i < count && !failed; i++) failed = Py_TYPE(values[i]) == array_type && PyList_Append(arrays, values[i]);
    if (!failed) found = PyObject_CallMethod((PyObject *)cpu, "ordered", "OO", y, arrays);
    Py_XDECREF(arrays);
    Py_DECREF(y);
    return found;
}

/* Return the result of a call with plain operands; NULL without an error if Python's function must compute it. */
static PyObject *result_of(Call *call, PyObject *kernel, PyObject **values, PyObject *keywords)
{
    FastPath *path = call->path;
    int plain = !call->record || call->record == own_record || call->record == careful, pair = Py_TYPE(kernel) == pair_type;
    if ((pair ? !plain : path->composite) || (path->shows && call->needs && !(plain && call->record))) return NULL;
    PyObject *y = computed(call, kernel, values, path->operands, keywords);
    if (call->half) y = rounded(y, call->half);
    if (y && path->elementwise && !path->shows && may_stray(values, path->operands)) y = in_order(y, values, path->operands);
    int seen = y && is_view(path, y, values[0]);
    PyObject *out = !y ? NULL : seen ? new_view(call, y) : new_tensor(y, new_object(cpu), Py_None);
    if (out && (call->record ? recorded(call, out) : seen ? 0 : mark_inference(SLOT(out, tensor_at[STORAGE])))) Py_CLEAR(out);
    return out;
}

/* Return the array of an operand, or the operand itself; NULL if it is not plain. `dtype` is the earlier operands' dtype. */
static PyObject *value_of(FastPath *path, int i, PyObject *a, Dtype **dtype)
{
    if (!is_plain(a))
        return i && (a == Py_None ? path->operands > 2
                                  : path->numbers && ((*dtype)->kind == 'f' || (path->rounds && is_half(*dtype))) && (Py_TYPE(a) == &PyFloat_Type || Py_TYPE(a) == &PyLong_Type)) ? Py_NewRef(a) : NULL;
    PyObject *x = SLOT(a, tensor_at[ARRAY]), *storage = SLOT(a, tensor_at[STORAGE]);
    if (!x || !storage || Py_TYPE(x) != array_type || Py_TYPE(storage) != cpu) return NULL;
    if (!*dtype) {
        *dtype = ((Array *)x)->dtype;
        if (!strchr(path->letters, (*dtype)->letter) && !(path->rounds && is_half(*dtype))) return NULL;
    } else if (((Array *)x)->dtype != *dtype && (!path->mixed || strchr("Ve", ((Array *)x)->dtype->letter))) return NULL;
    return Py_NewRef(x);
}

/* Put float32 in place of the arrays of 16 bits; return 0 if one has another layout. */
static int widen(PyObject **values, int count)
{
    for (int i = 0; i < count; i++) {
        PyObject *wide = widened(values[i]);
        if (!wide) return 0;
        Py_DECREF(values[i]);
        values[i] = wide;
    }
    return 1;
}

/* Return the result of operands whose references are held; NULL without an error if Python's function must compute it. */
static PyObject *run_held(FastPath *path, PyObject *const *args, PyObject **values, PyObject *kernel, PyObject *keywords, Dtype *half)
{
    PyObject *edges[MOST_OPERANDS], *out = NULL;
    Call call = {.path = path, .half = half};
    int count = path->operands, held = 0;
    for (; held < count; held++) {
        edges[held] = values[held] == args[held] ? Py_NewRef(Py_None) : edge_of(args[held]);
        if (!edges[held]) goto done;
        call.needs |= (edges[held] != Py_None) << held;
    }
    if (call.needs && path->tracked) {
        if (!(call.record = PyObject_GetAttr(mode, record_name))) goto done;
        if (call.record == Py_None) Py_CLEAR(call.record);
    }
    if (call.record || path->shows) call.operands = pack(args, count), call.edges = pack(edges, count), call.params = words(args + count, keywords);
    if (!PyErr_Occurred()) out = result_of(&call, kernel, values, keywords);
    PyObject *const mine[] = {call.record, call.operands, call.edges, call.params, call.pair, call.residual};
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) Py_XDECREF(mine[i]);
done:
    while (held) Py_DECREF(edges[--held]);
    return out;
}

/* Return 1 if an operand may be images whose channels are innermost: `is_channels_last` of storage/layout.py decides. */
static int may_be_channels_last(PyObject *const *values, int count)
{
    for (int i = 0; i < count; i++) {
        Array *a = (Array *)values[i];
        if (Py_TYPE(values[i]) == array_type && (a->ndim == 4 || a->ndim == 5) && a->strides[1] * a->shape[1] <= a->strides[a->ndim - 1]) return 1;
    }
    return 0;
}

/* Return the result; NULL without an error if Python's function must compute it. References to arrays and kernel are held: finding a node may run Python
   code, and other threads may replace them meanwhile. */
static PyObject *run(FastPath *path, PyObject *const *args, PyObject *keywords)
{
    PyObject *values[MOST_OPERANDS + MOST_WORDS], *out = NULL;
    Dtype *dtype = NULL;
    int count = path->operands, held = 0;
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    if (named > MOST_WORDS) return NULL;
    while (held < count && (values[held] = value_of(path, held, args[held], &dtype))) held++;
    PyObject *kernel = held == count && !(path->images && may_be_channels_last(values, count)) ? Py_XNewRef(PyDict_GetItemWithError(path->kernels, (PyObject *)cpu)) : NULL;
    for (Py_ssize_t i = 0; i < named; i++) values[count + i] = args[count + i];
    Dtype *half = path->rounds && is_half(dtype) ? dtype : NULL;
    if (kernel && (!half || widen(values, count))) out = run_held(path, args, values, kernel, keywords, half);
    Py_XDECREF(kernel);
    while (held) Py_DECREF(values[--held]);
    return out;
}

static PyObject *call_path(PyObject *self, PyObject *const *args, size_t nargs, PyObject *keywords)
{
    FastPath *path = (FastPath *)self;
    PyObject *found = COUNT(nargs) == path->operands && (!keywords || path->parameters) ? run(path, args, keywords) : NULL;
    return found || PyErr_Occurred() ? found : PyObject_Vectorcall(path->otherwise, args, nargs, keywords);
}

static PyObject *bind(PyObject *self, PyObject *instance, PyObject *owner)
{
    (void)owner;
    return !instance || instance == Py_None ? Py_NewRef(self) : PyObject_CallFunctionObjArgs(method_type, self, instance, NULL);
}

static int visit_path(PyObject *self, visitproc visit, void *arg)
{
    FastPath *path = (FastPath *)self;
    Py_VISIT(path->otherwise);
    Py_VISIT(path->op);
    Py_VISIT(path->kernels);
    Py_VISIT(path->plans);
    Py_VISIT(path->dict);
    for (int i = 0; i < 1 << MOST_OPERANDS; i++) Py_VISIT(path->plan[i]);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int clear_path(PyObject *self)
{
    FastPath *path = (FastPath *)self;
    Py_CLEAR(path->otherwise);
    Py_CLEAR(path->op);
    Py_CLEAR(path->kernels);
    Py_CLEAR(path->plans);
    Py_CLEAR(path->dict);
    for (int i = 0; i < 1 << MOST_OPERANDS; i++) Py_CLEAR(path->plan[i]);
    return 0;
}

static void free_path(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((FastPath *)self)->weak) PyObject_ClearWeakRefs(self);
    clear_path(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* Copies are the object itself, and pickles its name, as for Python's functions. */
static PyObject *reduce_path(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyMethodDef methods[] = {{"__reduce__", reduce_path, METH_NOARGS, NULL}, {0}};
static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(FastPath, call), READONLY, NULL},
                                {"__dictoffset__", T_PYSSIZET, offsetof(FastPath, dict), READONLY, NULL},
                                {"__weaklistoffset__", T_PYSSIZET, offsetof(FastPath, weak), READONLY, NULL}, {0}};
static PyGetSetDef dictionary[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, bind}, {Py_tp_members, members}, {Py_tp_getset, dictionary},
                              {Py_tp_methods, methods}, {Py_tp_traverse, visit_path}, {Py_tp_clear, clear_path}, {Py_tp_dealloc, free_path}, {0, NULL}};
static PyType_Spec spec = {"tensorgrad._compiled.FastPath", sizeof(FastPath), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR | VECTORCALL, slots};
static PyTypeObject *path_type;

/* fast_path(otherwise, op, kernels, plans, letters, operands, tracked, numbers, parameters, shows, elementwise, composite, mixed, images, rounds): `otherwise` is
   Python's function. */
PyObject *new_path(PyObject *self, PyObject *args)
{
    PyObject *otherwise, *op, *kernels, *plans;
    const char *letters;
    int operands, tracked, numbers, parameters, shows, elementwise, composite, mixed, images, rounds;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO!Osipppippppp:fast_path", &otherwise, &op, &PyDict_Type, &kernels, &plans, &letters, &operands, &tracked, &numbers, &parameters,
                          &shows, &elementwise, &composite, &mixed, &images, &rounds)) return NULL;
    if (!path_type || operands < 1 || operands > MOST_OPERANDS || strlen(letters) >= sizeof ((FastPath *)0)->letters)
        return PyErr_SetString(PyExc_ValueError, "no fast path for such an op"), NULL;
    FastPath *path = (FastPath *)new_object(path_type);
    if (!path) return NULL;
    path->call = call_path, path->otherwise = Py_NewRef(otherwise), path->op = Py_NewRef(op), path->kernels = Py_NewRef(kernels), path->plans = Py_NewRef(plans);
    strcpy(path->letters, letters);
    path->operands = operands, path->tracked = tracked, path->numbers = numbers, path->parameters = parameters, path->shows = shows;
    path->elementwise = elementwise, path->composite = composite, path->mixed = mixed, path->images = images, path->rounds = rounds;
    return (PyObject *)path;
}

/* ── the layout of Python's objects ──────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Find the offsets of a class's slots, by searching an instance for an object stored in each; return 1 if all were found. */
static int find_slots(PyTypeObject *type, const char *const *names, int count, Py_ssize_t *offsets)
{
    PyObject *probe = new_object(type), *size = PyObject_GetAttrString((PyObject *)type, "__basicsize__");
    Py_ssize_t bytes = size ? PyLong_AsSsize_t(size) : 0, found = 0;
    for (int i = 0; probe && size && i < count; i++) {
        PyObject *mark = PyList_New(0);
        if (!mark || PyObject_SetAttrString(probe, names[i], mark)) {
            Py_XDECREF(mark);
            break;
        }
        for (Py_ssize_t offset = sizeof(PyObject); offset < bytes; offset += sizeof(PyObject *))
            if (SLOT(probe, offset) == mark) offsets[i] = offset, found++;
        Py_DECREF(mark);
    }
    Py_XDECREF(probe);
    Py_XDECREF(size);
    return found == count && !PyErr_Occurred();
}

/* learn(TensorBase, Node, Plan, Pair, backend, mode, clock, plain, node_of, no_params, refuse_inference, Origin): set the Python objects of the fast paths.
   Return True if the fast paths can be used. */
PyObject *learn(PyObject *self, PyObject *args)
{
    static const char *const of_tensor[] = {"array", "_storage", "_node", "_grad", "origin"};
    static const char *const of_step[] = {"edges", "hooks", "time", "shape", "dtype", "_storage", "saved", "params", "plan", "residual", "calls"};
    static const char *const of_plan[] = {"node_type", "fused_type", "save", "origins", "saves_out", "shapeless", "steps", "extras"};
    static const char *const of_pair[] = {"forward", "backward", "below", "rows"};
    static const char *const of_origin[] = {"parent", "op", "args", "params", "kind"};
    PyObject *given[12];
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!OOO!OO!OO!:learn", &PyType_Type, given, &PyType_Type, given + 1, &PyType_Type, given + 2, &PyType_Type, given + 3,
                          &PyType_Type, given + 4, given + 5, given + 6, &PySet_Type, given + 7, given + 8, &PyDict_Type, given + 9, given + 10,
                          &PyType_Type, given + 11)) return NULL;
    if (!array_type || tensor_base || !find_slots((PyTypeObject *)given[0], of_tensor, TENSOR_SLOTS, tensor_at)
        || !find_slots((PyTypeObject *)given[1], of_step, STEP_SLOTS, step_at) || !find_slots((PyTypeObject *)given[2], of_plan, PLAN_SLOTS, plan_at)
        || !find_slots((PyTypeObject *)given[11], of_origin, ORIGIN_SLOTS, origin_at)
        || !find_slots((PyTypeObject *)given[3], of_pair, PAIR_SLOTS, pair_at)) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    PyObject *types = PyImport_ImportModule("types");
    method_type = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
    Py_XDECREF(types);
    path_type = (PyTypeObject *)PyType_FromSpec(&spec);
    own_record = PyObject_GetAttrString(self, "record"), careful = PyObject_GetAttrString(self, "record_careful"), nowhere = PyObject_GetAttrString(given[4], "nowhere");
    if (!method_type || !path_type || !own_record || !careful || !nowhere) return NULL;
    const struct { PyObject **name; const char *text; } names[] = {{&record_name, "record"}, {&grad_name, "grad"}, {&inference_name, "inference"},
                                                                   {&no_grad_name, "no_grad"}, {&memory_name, "memory"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) if (!(*names[i].name = PyUnicode_InternFromString(names[i].text))) return NULL;
    for (int i = 0; i < 12; i++) Py_INCREF(given[i]);       /* for good, as these are the package's own */
    tensor_base = tensor_type = (PyTypeObject *)given[0], step_base = (PyTypeObject *)given[1], plan_type = (PyTypeObject *)given[2];
    pair_type = (PyTypeObject *)given[3], cpu = (PyTypeObject *)given[4], mode = given[5], clock_ = given[6], plain_types = given[7], node_of = given[8];
    no_params = given[9], refuse = given[10], origin_type = (PyTypeObject *)given[11];
    if (PyModule_AddObjectRef(self, "FastPath", (PyObject *)path_type)) return NULL;
    Py_RETURN_TRUE;
}

/* results(Tensor): the class of the tensors that are made from now on. */
PyObject *results_are(PyObject *self, PyObject *type)
{
    (void)self;
    if (!tensor_base || !PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, tensor_base)) return PyErr_SetString(PyExc_TypeError, "results(class)"), NULL;
    tensor_type = (PyTypeObject *)Py_NewRef(type);
    Py_RETURN_NONE;
}
