/* Kernels as functions of Python: arrays come through the buffer protocol, so neither NumPy's headers nor its version matter, and one build serves
   every Python from 3.11 on. A function gives NotImplemented for arrays it does not serve: of other types, or not in one piece. */
#include "arrays.h"
#include "pool.h"

#include <stdlib.h>
#include <string.h>

static PyObject *on_start;              /* called once, after the first loop that the pool shared */
static const Entry *entries;

static const char ITEM[] = {['i'] = 'l', ['I'] = 'l', ['u'] = 'B', ['U'] = 'B'};

int after_loop(void)
{
    if (!pool_used || !on_start) return 0;
    PyObject *callback = on_start, *done;
    on_start = NULL;
    done = PyObject_CallNoArgs(callback);
    Py_DECREF(callback);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

const Entry *entry_of(const char *name)
{
    for (const Entry *entry = entries; entry->name; entry++) if (!strcmp(entry->name, name)) return entry;
    return PyErr_Format(PyExc_ValueError, "there is no kernel %s", name), NULL;
}

static PyObject *call(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    const Entry *entry = PyCapsule_GetPointer(self, NULL);
    Arguments a = {0};
    Py_buffer views[MOST_ARRAYS];
    int arrays = 0, integers = 0, reals = 0, held = 0, refused = 0;
    char type = 0;
    if (count != (Py_ssize_t)strlen(entry->signature)) {
        PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", entry->name, (Py_ssize_t)strlen(entry->signature), count);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count && !refused; i++) {
        char kind = entry->signature[i];
        if (kind == 'n') {
            a.integer[integers++] = PyLong_AsLong(values[i]);
            if (PyErr_Occurred()) goto failed;
        } else if (kind == 'x') {
            a.real[reals++] = PyFloat_AsDouble(values[i]);
            if (PyErr_Occurred()) goto failed;
        } else if (values[i] == Py_None) {
            a.array[arrays++] = NULL;
        } else {
            int written = kind == 'w' || kind == 'S' || kind == 'I' || kind == 'U';
            int layout = kind == 's' || kind == 'S' ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS;
            if (PyObject_GetBuffer(values[i], &views[held], PyBUF_FORMAT | layout | (written ? PyBUF_WRITABLE : 0))) {
                PyErr_Clear();
                refused = 1;
                break;
            }
            Py_buffer *view = &views[held++];
            const char *format = view->format ? view->format : "B";
            char found = format[0] == 'q' && sizeof(long) == 8 ? 'l' : format[0] == '?' || format[0] == 'b' ? 'B' : format[0];
            if (kind == 'r' || kind == 'w' || kind == 's' || kind == 'S') {
                if (!type) type = found;
                refused = format[1] || found != type || (type != 'f' && type != 'd');
            } else {
                refused = format[1] || found != ITEM[(int)kind];
            }
            a.size[arrays] = view->len;
            a.array[arrays++] = view->buf;
        }
    }
    if (!refused) {
        Kernel kernel = type == 'd' ? entry->f64 : entry->f32;
        Py_BEGIN_ALLOW_THREADS
        kernel(&a);
        Py_END_ALLOW_THREADS
    }
    while (held) PyBuffer_Release(&views[--held]);
    if (after_loop()) return NULL;
    return Py_NewRef(refused ? Py_NotImplemented : Py_None);
failed:
    while (held) PyBuffer_Release(&views[--held]);
    return NULL;
}

static PyObject *set_threads(PyObject *self, PyObject *number)
{
    (void)self;
    long threads = PyLong_AsLong(number);
    if (PyErr_Occurred()) return NULL;
    pool_resize((int)threads);
    Py_RETURN_NONE;
}

static PyObject *when_started(PyObject *self, PyObject *callback)
{
    (void)self;
    Py_XDECREF(on_start);
    on_start = Py_NewRef(callback);
    Py_RETURN_NONE;
}

/* The kernels for the best instructions that this processor has, or, where TENSORGRAD_INSTRUCTIONS names a set, for the best of those up to it. */
static const Entry *chosen(const char **instructions)
{
    const struct { const char *name; const Entry *entries; int found; } sets[] = {
#ifdef HAS_avx512
        {"AVX-512", kernels_avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")},
#endif
#ifdef HAS_avx2
        {"AVX2", kernels_avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
#endif
#ifdef HAS_baseline
        {"baseline", kernels_baseline, 1},
#endif
    };
    const char *wanted = getenv("TENSORGRAD_INSTRUCTIONS");
    int i = 0, last = sizeof sets / sizeof *sets - 1;
    if (wanted) while (wanted[0] && i < last && strcmp(sets[i].name, wanted)) i++;
    while (i < last && !sets[i].found) i++;
    *instructions = sets[i].name;
    return sets[i].found ? sets[i].entries : NULL;
}

extern PyObject *step(PyObject *, PyObject *const *, Py_ssize_t);                                                                    /* updates.c */

static int fill(PyObject *module)
{
    static PyMethodDef methods[256];
    const char *instructions;
    const Entry *entry = entries = chosen(&instructions);
    if (!entry) {
        PyErr_Format(PyExc_ImportError, "the kernels were compiled for %s alone, which this processor has not", instructions);
        return -1;
    }
    for (int i = 0; entry->name; entry++, i++) {
        PyObject *capsule = PyCapsule_New((void *)entry, NULL, NULL);
        methods[i] = (PyMethodDef){entry->name, (PyCFunction)(void (*)(void))(*entry->signature == '*' ? step : call), METH_FASTCALL, NULL};
        PyObject *function = capsule ? PyCFunction_NewEx(&methods[i], capsule, NULL) : NULL;
        Py_XDECREF(capsule);
        if (!function || PyModule_AddObjectRef(module, entry->name, function)) return -1;
        Py_DECREF(function);
    }
    return PyModule_AddStringConstant(module, "instructions", instructions);
}

static PyObject *has_started(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    return PyBool_FromLong(pool_used);
}

/* The state of NumPy's Mersenne Twister, 624 words and the place of the next, given its capsule: bytes that live as long as the generator. */
static PyObject *twister(PyObject *self, PyObject *capsule)
{
    (void)self;
    void **generator = PyCapsule_GetPointer(capsule, "BitGenerator");
    return generator ? PyMemoryView_FromMemory(generator[0], 625 * 4, PyBUF_WRITE) : NULL;
}

extern PyObject *use_memory(PyObject *, PyObject *), *empty_memory(PyObject *, PyObject *), *memory_use(PyObject *, PyObject *);    /* memory.c */
extern PyObject *use_state(PyObject *, PyObject *), *enter_region(PyObject *, PyObject *), *leave_region(PyObject *, PyObject *);        /* guest.c */
extern PyObject *regions_forked(PyObject *, PyObject *), *compute(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
extern PyObject *outside(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
extern PyObject *use_arrays(PyObject *, PyObject *), *new_map(PyObject *, PyObject *);                                              /* maps.c */
extern PyObject *learn(PyObject *, PyObject *), *results_are(PyObject *, PyObject *), *new_lane(PyObject *, PyObject *);             /* lane.c */
extern PyObject *wrap(PyObject *, PyObject *const *, Py_ssize_t), *fresh(PyObject *, PyObject *const *, Py_ssize_t);
extern PyObject *record_step(PyObject *, PyObject *const *, Py_ssize_t), *record_careful(PyObject *, PyObject *const *, Py_ssize_t), *step_back(PyObject *, PyObject *const *, Py_ssize_t);
extern PyObject *learn_steps(PyObject *, PyObject *);                                                                                /* back.c */
#define FAST(name, function) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}
static PyMethodDef functions[] = {{"set_threads", set_threads, METH_O, NULL}, {"when_started", when_started, METH_O, NULL},
                                    {"started", has_started, METH_NOARGS, NULL}, {"twister", twister, METH_O, NULL}, {"use_memory", use_memory, METH_O, NULL},
                                    {"empty_memory", empty_memory, METH_NOARGS, NULL}, {"memory_use", memory_use, METH_NOARGS, NULL},
                                    {"use_arrays", use_arrays, METH_O, NULL}, {"map", new_map, METH_VARARGS, NULL},
                                    {"learn", learn, METH_VARARGS, NULL}, {"results", results_are, METH_O, NULL}, {"lane", new_lane, METH_VARARGS, NULL},
                                    FAST("wrap", wrap), FAST("fresh", fresh), FAST("record", record_step), FAST("record_careful", record_careful),
                                    {"learn_steps", learn_steps, METH_VARARGS, NULL}, FAST("step_back", step_back),
                                    {"use_state", use_state, METH_VARARGS, NULL}, {"regions_forked", regions_forked, METH_NOARGS, NULL},
                                    {"enter_region", enter_region, METH_NOARGS, NULL}, {"leave_region", leave_region, METH_O, NULL},
                                    {"outside", (PyCFunction)(void (*)(void))outside, METH_FASTCALL | METH_KEYWORDS, NULL},
                                    {"compute", (PyCFunction)(void (*)(void))compute, METH_FASTCALL | METH_KEYWORDS, NULL}, {0}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_compiled", NULL, 0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&definition); }
