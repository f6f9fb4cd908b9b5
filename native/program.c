/* Programs: kernels called one after the other, without Python between them.

program(buffers, calls) checks each call against its row once, on arrays in templates: memory of the size and alignment that buffers have in a run. It
keeps the structs of the calls, and for each pointer in them a buffer and an offset. A buffer is the arena, an input, a constant or an output; in a run,
each has memory at least as large and as well aligned as its template. Kernels write only to outputs, which are new arrays, and to the arena, which
belongs to the run. So the sizes and overlaps that were checked once are those of every run.

A program never changes. bind(constants) gives it constants; the result keeps arenas, with structs that point to them, for runs to come, and may run in
several threads at a time. */
#include "arrays.h"
#include "check.h"
#include "debug.h"
#include "pool.h"

#include <stdlib.h>

enum { ARENA, INPUT, CONSTANT, OUTPUT, KINDS };

#define MOST_ALIGNED 64
#define MOST_ARGUMENTS 64
#define MOST_IDLE 4                     /* arenas that are kept for runs to come */
#define UNIT 16                         /* bytes: structs begin at multiples of it */

typedef struct Buffer { int kind, which; size_t bytes, align; Array *like; } Buffer;       /* which: of its kind */
typedef struct Link { size_t at; int buffer; size_t offset; } Link;                         /* a pointer in the structs, and where it points */
typedef struct Links { Link *link; int count; } Links;
typedef struct Step { Kernel kernel; size_t at; long bad; void *copy; } Step;               /* bad: place of a pointer to a number that says if an index is bad */

typedef struct Program {
    PyObject_HEAD
    Buffer *buffer;
    int buffers, count[KINDS];
    Step *step;
    int steps;
    Links links[KINDS];
    char *structs;
    size_t bytes, arena;
} Program;

typedef struct Place { char *arena, *structs; } Place;

typedef struct Bound {
    PyObject_HEAD
    Program *program;
    PyObject *constants;
    Place idle[MOST_IDLE];
    int kept;
} Bound;

typedef struct Run {
    PyObject_HEAD
    Bound *bound;
    Place place;
    PyObject *inputs, *outputs;
} Run;

static PyObject *program_type, *bound_type, *run_type;

static PyObject *made(PyObject *type, size_t bytes)
{
    PyObject *self = PyObject_New(PyObject, (PyTypeObject *)type);
    if (self) memset((char *)self + sizeof(PyObject), 0, bytes - sizeof(PyObject));
    return self;
}

static void freed(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ── the program: buffers ────────────────────────────────────────────────────────────────────────────────────────── */

enum { OBJECT = 17, STRING = 18, VOID = 20, HALF = 23 };                 /* numbers of NumPy's dtypes */

static int same_dtype(const Dtype *a, const Dtype *b)
{
    return a == b || (a->number == b->number && a->number <= HALF && !(a->number >= STRING && a->number <= VOID) && a->order == b->order);
}

static int add_buffer(Program *self, PyObject *pair)
{
    Buffer *b = &self->buffer[self->buffers];
    PyObject *array;
    if (!PyTuple_Check(pair)) return PyErr_SetString(PyExc_TypeError, "program: a buffer is a tuple (kind, array)"), -1;
    if (!PyArg_ParseTuple(pair, "iO:program", &b->kind, &array)) return -1;
    Array *like = (Array *)array;
    if (b->kind < 0 || b->kind >= KINDS) return PyErr_Format(PyExc_ValueError, "program: there is no kind %d of buffers", b->kind), -1;
    if (!array_type || Py_TYPE(array) != array_type) return PyErr_SetString(PyExc_TypeError, "program: a buffer's template is no array"), -1;
    if (!(like->flags & C_CONTIGUOUS) || like->dtype->number == OBJECT || (b->kind == ARENA && self->count[ARENA]))
        return PyErr_SetString(PyExc_ValueError, "program: a template is contiguous, holds no objects, and there is one arena at most"), -1;
    PyObject *bytes = PyObject_GetAttrString(array, "nbytes");
    b->bytes = bytes ? PyLong_AsSize_t(bytes) : 0;
    Py_XDECREF(bytes);
    if (PyErr_Occurred()) return -1;
    for (b->align = b->bytes ? MOST_ALIGNED : 1; (uintptr_t)like->data % b->align;) b->align /= 2;
    b->which = self->count[b->kind]++;
    b->like = (Array *)Py_NewRef(array);
    if (b->kind == ARENA) self->arena = b->bytes;
    self->buffers++;
    return 0;
}

static int overlap(const Buffer *a, const Buffer *b)
{
    return a->like->data < b->like->data + b->bytes && b->like->data < a->like->data + a->bytes;
}

static int add_buffers(Program *self, PyObject *pairs)
{
    Py_ssize_t count = PyTuple_Size(pairs);
    if (!(self->buffer = calloc(count + 1, sizeof *self->buffer))) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (add_buffer(self, PyTuple_GetItem(pairs, i))) return -1;
        for (Py_ssize_t k = 0; k < i; k++)
            if (overlap(&self->buffer[i], &self->buffer[k])) return PyErr_SetString(PyExc_ValueError, "program: two templates overlap"), -1;
    }
    return 0;
}

/* ── the program: calls ──────────────────────────────────────────────────────────────────────────────────────────── */

static int add_link(Links *links, Link link)
{
    if (!(links->count & (links->count - 1))) {                 /* room for the next power of two */
        Link *more = realloc(links->link, (links->count ? 2 * links->count : 1) * sizeof *more);
        if (!more) return PyErr_NoMemory(), -1;
        links->link = more;
    }
    links->link[links->count++] = link;
    return 0;
}

/* Note the buffers and offsets of the arrays of a call. */
static int link_call(Program *self, Step *step, const Declaration *row, const char *call, const Views *views)
{
    for (int i = 0; i < row->arrays; i++) {
        const Argument *a = row->argument + i;
        const char *to = *(char *const *)(call + a->at), *start = views->start[i], *stop = views->stop[i];
        int found = 0;
        if (!to || a->copied) continue;
        if (!strcmp(a->name, "bad")) step->bad = (long)(step->at + a->at);
        for (int k = 0; k < self->buffers && !found; k++) {
            Buffer *b = &self->buffer[k];
            if (start < b->like->data || stop > b->like->data + b->bytes) continue;
            if (a->written && b->kind != ARENA && b->kind != OUTPUT)
                return PyErr_Format(PyExc_ValueError, "%s writes to %s, which is an input or a constant", row->name, a->name), -1;
            if (add_link(&self->links[b->kind], (Link){step->at + a->at, k, to - b->like->data})) return -1;
            found = 1;
        }
        if (!found) return PyErr_Format(PyExc_ValueError, "%s: %s is in no buffer of the program", row->name, a->name), -1;
    }
    return 0;
}

static int add_call(Program *self, PyObject *call, char *structs)
{
    PyObject *values[MOST_ARGUMENTS];
    AnyCall arguments;
    Views views;
    int is_double;
    Py_ssize_t count = PyTuple_Check(call) ? PyTuple_Size(call) - 1 : -1;
    if (count < 0 || count > MOST_ARGUMENTS) return PyErr_SetString(PyExc_TypeError, "program: a call is a tuple (name, arguments …)"), -1;
    const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(call, 0), NULL);
    const Entry *entry = name ? entry_of(name) : NULL;
    if (!entry) return -1;
    const Declaration *row = &declarations[entry->row];
    if (row->of_rows) return PyErr_Format(PyExc_ValueError, "program: %s takes lists of arrays", name), -1;
    for (Py_ssize_t i = 0; i < count; i++) values[i] = PyTuple_GetItem(call, i + 1);
    int found = check_call(row, name, values, count, &arguments, &views, &is_double);
    Step *step = &self->step[self->steps];
    if (!found) {
        *step = (Step){is_double ? entry->f64 : entry->f32, self->bytes, -1, views.copy};
        views.copy = NULL;                                      /* the program keeps it */
        self->steps++;
        memcpy(structs + self->bytes, &arguments, row->bytes);
        found = link_call(self, step, row, (const char *)&arguments, &views);
        self->bytes += (row->bytes + UNIT - 1) / UNIT * UNIT;
    } else if (found > 0) PyErr_Format(PyExc_ValueError, "program: %s refuses the arguments of call %d", name, self->steps);
    release_views(&views);
    return found ? -1 : 0;
}

static int add_calls(Program *self, PyObject *calls)
{
    Py_ssize_t count = PyTuple_Size(calls);
    self->step = calloc(count + 1, sizeof *self->step);
    self->structs = calloc(count + 1, (sizeof(AnyCall) + UNIT - 1) / UNIT * UNIT);
    if (!self->step || !self->structs) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) if (add_call(self, PyTuple_GetItem(calls, i), self->structs)) return -1;
    char *fit = realloc(self->structs, self->bytes + UNIT);
    if (fit) self->structs = fit;
    return 0;
}

/* program(buffers, calls): a program of calls (kernel, arguments …) with arrays in the templates of buffers (kind, template). */
PyObject *new_program(PyObject *module, PyObject *args)
{
    PyObject *buffers, *calls;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:program", &buffers, &calls)) return NULL;
    if (!(buffers = PySequence_Tuple(buffers))) return NULL;
    calls = PySequence_Tuple(calls);
    Program *self = calls ? (Program *)made(program_type, sizeof *self) : NULL;
    if (self && (add_buffers(self, buffers) || add_calls(self, calls))) Py_CLEAR(self);
    Py_DECREF(buffers);
    Py_XDECREF(calls);
    return (PyObject *)self;
}

static void free_program(PyObject *object)
{
    Program *self = (Program *)object;
    for (int i = 0; i < self->buffers; i++) Py_DECREF((PyObject *)self->buffer[i].like);
    for (int i = 0; i < self->steps; i++) free(self->step[i].copy);
    for (int i = 0; i < KINDS; i++) free(self->links[i].link);
    free(self->buffer), free(self->step), free(self->structs);
    freed(object);
}

/* ── arrays of a run ─────────────────────────────────────────────────────────────────────────────────────────────── */

/* Return 0 if an array fits a buffer, 1 if it takes a copy, as a plain array that is contiguous and aligned, −1 with an error. */
static int misfits(const Buffer *b, PyObject *value, const char *what)
{
    Array *a = (Array *)value;
    if (Py_TYPE(value) != array_type) return 1;
    if (!same_shape(a, b->like) || !same_dtype(a->dtype, b->like->dtype))
        return PyErr_Format(PyExc_ValueError, "%s %d has another shape or dtype than the program was made for", what, b->which), -1;
    return !(a->flags & C_CONTIGUOUS) || (uintptr_t)a->data % b->align;
}

/* Compare arrays with the buffers of a kind. */
static int check_arrays(const Program *program, int kind, PyObject *arrays, const char *what)
{
    if (PyTuple_Size(arrays) != program->count[kind])
        return PyErr_Format(PyExc_ValueError, "a program with %d %ss is given %zd", program->count[kind], what, PyTuple_Size(arrays)), -1;
    for (int i = 0; i < program->buffers; i++) {
        const Buffer *b = &program->buffer[i];
        int found = b->kind == kind ? misfits(b, PyTuple_GetItem(arrays, b->which), what) : 0;
        if (found) return found;
    }
    return 0;
}

static PyObject *new_outputs(const Program *program)
{
    PyObject *list = PyList_New(program->count[OUTPUT]);
    for (int i = 0; list && i < program->buffers; i++) {
        const Buffer *b = &program->buffer[i];
        if (b->kind != OUTPUT) continue;
        Array *array = new_array(b->like->dtype, b->like->ndim, b->like->shape, NULL);
        if (array && (uintptr_t)array->data % b->align) PyErr_SetString(PyExc_RuntimeError, "memory for an output is not aligned");
        if (array) PyList_SetItem(list, b->which, (PyObject *)array);
        if (PyErr_Occurred()) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static char *data_of(PyObject *arrays, int which)
{
    return ((Array *)(PyList_Check(arrays) ? PyList_GetItem(arrays, which) : PyTuple_GetItem(arrays, which)))->data;
}

static void point(const Program *program, char *structs, int kind, PyObject *arrays)
{
    const Links *links = &program->links[kind];
    for (int i = 0; i < links->count; i++) {
        const Link *link = &links->link[i];
        *(char **)(structs + link->at) = data_of(arrays, program->buffer[link->buffer].which) + link->offset;
    }
}

/* Run a part of the steps. 0: done; 1: an index is out of range; −1: memory runs out. */
static int run_steps(const Program *program, const char *structs, int first, int last)
{
    int found = 0;
    pool_enter();
    for (const Step *step = program->step + first; step < program->step + last && !found; step++) {
        if (step->kernel(structs + step->at)) found = -1;
        else if (step->bad >= 0 && **(const int64_t *const *)(structs + step->bad)) found = 1;
    }
    pool_leave();
    return found;
}

/* ── constants and arenas ────────────────────────────────────────────────────────────────────────────────────────── */

static void drop_place(const Program *program, Place place)
{
    if (place.arena) memory_return(place.arena, program->arena);
    free(place.structs);
}

/* Take an arena that no run uses, or a new one; its `structs` is NULL, with an error set, if memory runs out. */
static Place take_place(Bound *bound)
{
    const Program *program = bound->program;
    if (bound->kept) return bound->idle[--bound->kept];
    Place place = {program->arena ? memory_borrow(program->arena) : NULL, NULL};
    if (place.arena || !program->arena) place.structs = allocation_fails() ? NULL : malloc(program->bytes + UNIT);
    if (!place.structs) {
        drop_place(program, place);
        PyErr_NoMemory();
        return (Place){0};
    }
    memcpy(place.structs, program->structs, program->bytes);
    const Links *links = &program->links[ARENA];
    for (int i = 0; i < links->count; i++) *(char **)(place.structs + links->link[i].at) = place.arena + links->link[i].offset;
    point(program, place.structs, CONSTANT, bound->constants);
    return place;
}

static void leave_place(Bound *bound, Place place)
{
    if (bound->kept < MOST_IDLE) bound->idle[bound->kept++] = place;
    else drop_place(bound->program, place);
}

/* bind(constants): the program with these constants; NotImplemented if one takes a copy. */
static PyObject *bind(PyObject *object, PyObject *constants)
{
    Program *program = (Program *)object;
    if (!(constants = PySequence_Tuple(constants))) return NULL;
    int found = check_arrays(program, CONSTANT, constants, "constant");
    Bound *self = found ? NULL : (Bound *)made(bound_type, sizeof *self);
    if (self) {
        self->program = (Program *)Py_NewRef(object);
        self->constants = constants;
        return (PyObject *)self;
    }
    Py_DECREF(constants);
    return found > 0 ? Py_NewRef(Py_NotImplemented) : NULL;
}

static PyObject *constants_of(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    return Py_NewRef(((Bound *)object)->constants);
}

static void free_bound(PyObject *object)
{
    Bound *self = (Bound *)object;
    while (self->kept) drop_place(self->program, self->idle[--self->kept]);
    Py_XDECREF(self->constants);
    Py_XDECREF((PyObject *)self->program);
    freed(object);
}

/* ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Prepare a run. 0: prepared; 1: an input takes a copy; −1: an error is set. */
static int begin(Bound *bound, PyObject *inputs, Place *place, PyObject **outputs)
{
    const Program *program = bound->program;
    int found = check_arrays(program, INPUT, inputs, "input");
    if (found) return found;
    if (!(*outputs = new_outputs(program))) return -1;
    *place = take_place(bound);
    if (!place->structs) {
        Py_DECREF(*outputs);
        return -1;
    }
    point(program, place->structs, INPUT, inputs);
    point(program, place->structs, OUTPUT, *outputs);
    return 0;
}

/* run(inputs): run all steps; return the list of outputs. None: an index is out of range; NotImplemented: an input takes a copy. */
static PyObject *run_all(PyObject *object, PyObject *inputs)
{
    Bound *self = (Bound *)object;
    PyObject *outputs;
    Place place;
    if (!(inputs = PySequence_Tuple(inputs))) return NULL;
    int found = begin(self, inputs, &place, &outputs);
    if (found) {
        Py_DECREF(inputs);
        return found > 0 ? Py_NewRef(Py_NotImplemented) : NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    found = run_steps(self->program, place.structs, 0, self->program->steps);
    Py_END_ALLOW_THREADS
    leave_place(self, place);
    Py_DECREF(inputs);
    if (!found) return outputs;
    Py_DECREF(outputs);
    return found < 0 ? PyErr_NoMemory() : Py_NewRef(Py_None);
}

/* start(inputs): a run whose parts are run one by one; NotImplemented: an input takes a copy. */
static PyObject *start_run(PyObject *object, PyObject *inputs)
{
    PyObject *outputs;
    Place place;
    if (!(inputs = PySequence_Tuple(inputs))) return NULL;
    int found = begin((Bound *)object, inputs, &place, &outputs);
    Run *self = found ? NULL : (Run *)made(run_type, sizeof *self);
    if (self) {
        self->bound = (Bound *)Py_NewRef(object);
        self->place = place, self->inputs = inputs, self->outputs = outputs;
        return (PyObject *)self;
    }
    if (!found) {
        leave_place((Bound *)object, place);
        Py_DECREF(outputs);
    }
    Py_DECREF(inputs);
    return found > 0 ? Py_NewRef(Py_NotImplemented) : NULL;
}

/* go(first, last): run these steps; False if an index is out of range. */
static PyObject *run_part(PyObject *object, PyObject *args)
{
    Run *self = (Run *)object;
    const Program *program = self->bound->program;
    int first, last, found;
    if (!PyArg_ParseTuple(args, "ii:go", &first, &last)) return NULL;
    if (first < 0 || last > program->steps) return PyErr_Format(PyExc_ValueError, "steps %d to %d of %d", first, last, program->steps);
    Py_BEGIN_ALLOW_THREADS
    found = run_steps(program, self->place.structs, first, last);
    Py_END_ALLOW_THREADS
    return found < 0 ? PyErr_NoMemory() : PyBool_FromLong(!found);
}

static PyObject *outputs_of(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    return PyList_GetSlice(((Run *)object)->outputs, 0, PY_SSIZE_T_MAX);
}

/* The arena of a run, as a buffer: arrays in it keep the run. */
static int view_arena(PyObject *object, Py_buffer *view, int flags)
{
    Run *self = (Run *)object;
    return PyBuffer_FillInfo(view, object, self->place.arena ? self->place.arena : self->place.structs, self->bound->program->arena, 0, flags);
}

static void free_run(PyObject *object)
{
    Run *self = (Run *)object;
    if (self->bound) leave_place(self->bound, self->place);
    Py_XDECREF((PyObject *)self->bound);
    Py_XDECREF(self->inputs);
    Py_XDECREF(self->outputs);
    freed(object);
}

/* ── the types ───────────────────────────────────────────────────────────────────────────────────────────────────── */

static PyMethodDef of_program[] = {{"bind", bind, METH_O, NULL}, {0}};
static PyMethodDef of_bound[] = {{"run", run_all, METH_O, NULL}, {"constants", constants_of, METH_NOARGS, NULL}, {"start", start_run, METH_O, NULL}, {0}};
static PyMethodDef of_run[] = {{"go", run_part, METH_VARARGS, NULL}, {"outputs", outputs_of, METH_NOARGS, NULL}, {0}};
static PyType_Slot program_slots[] = {{Py_tp_methods, of_program}, {Py_tp_dealloc, free_program}, {0, NULL}};
static PyType_Slot bound_slots[] = {{Py_tp_methods, of_bound}, {Py_tp_dealloc, free_bound}, {0, NULL}};
static PyType_Slot run_slots[] = {{Py_tp_methods, of_run}, {Py_bf_getbuffer, view_arena}, {Py_tp_dealloc, free_run}, {0, NULL}};
#define SPEC(name, type, slots) {"tensorgrad._compiled." name, sizeof(type), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots}
static PyType_Spec program_spec = SPEC("Program", Program, program_slots), bound_spec = SPEC("Bound", Bound, bound_slots), run_spec = SPEC("Run", Run, run_slots);

/* Make the types of this file, once for the process. */
int prepare_programs(void)
{
    if (!program_type) program_type = PyType_FromSpec(&program_spec);
    if (!bound_type) bound_type = PyType_FromSpec(&bound_spec);
    if (!run_type) run_type = PyType_FromSpec(&run_spec);
    return program_type && bound_type && run_type ? 0 : -1;
}

/* fits(kernel, arguments …): True if the kernel takes these arguments, False if it refuses them. */
PyObject *fits(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    AnyCall arguments;
    Views views;
    int is_double;
    (void)module;
    const char *name = count ? PyUnicode_AsUTF8AndSize(values[0], NULL) : NULL;
    if (!count) PyErr_SetString(PyExc_TypeError, "fits(kernel, arguments …)");
    const Entry *entry = name ? entry_of(name) : NULL;
    if (!entry) return NULL;
    if (declarations[entry->row].of_rows) Py_RETURN_FALSE;
    int found = check_call(&declarations[entry->row], name, values + 1, count - 1, &arguments, &views, &is_double);
    release_views(&views);
    return found < 0 ? NULL : PyBool_FromLong(!found);
}
