/* Kernels as functions of Python: arrays come through the buffer protocol, so neither NumPy's headers nor its version matter, and one build serves
   every Python from 3.11 on. A function returns NotImplemented for unsupported arrays: of other types, not contiguous, or empty. */
#include "arrays.h"
#include "check.h"
#include "following.h"
#include "loop.h"
#include "pool.h"

#include <stdlib.h>
#include <string.h>

static const Entry *entries;

const Entry *entry_of(const char *name)
{
    for (const Entry *entry = entries; entry->name; entry++) if (!strcmp(entry->name, name)) return entry;
    return PyErr_Format(PyExc_ValueError, "there is no kernel %s", name), NULL;
}

static PyObject *call(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    const Entry *entry = PyCapsule_GetPointer(self, KERNEL_NAME);
    AnyCall arguments;
    Views views;
    int is_double, failed = 0, found = check_call(&declarations[entry->row], entry->name, values, count, &arguments, &views, &is_double);
    if (!found) {
        Kernel kernel = is_double ? entry->f64 : entry->f32;
        Py_BEGIN_ALLOW_THREADS
        failed = kernel(&arguments);
        Py_END_ALLOW_THREADS
    }
    release_views(&views);
    if (found < 0) return NULL;
    return failed ? PyErr_NoMemory() : Py_NewRef(found ? Py_NotImplemented : Py_None);
}

static PyObject *set_threads(PyObject *self, PyObject *number)
{
    (void)self;
    long threads = PyLong_AsLong(number);
    if (PyErr_Occurred()) return NULL;
    pool_resize((int)threads);
    Py_RETURN_NONE;
}

/* Choose the kernels for the best instruction set of this processor, limited by TENSORGRAD_INSTRUCTIONS if it is set. */
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

extern PyObject *step(PyObject *, PyObject *const *, Py_ssize_t);                                                                    /* optimizers.c */

extern int prepare_programs(void);                                                                                                    /* program.c */

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
        PyObject *capsule = PyCapsule_New((void *)entry, KERNEL_NAME, NULL);
        methods[i] = (PyMethodDef){entry->name, (PyCFunction)(void (*)(void))(declarations[entry->row].of_rows ? step : call), METH_FASTCALL, NULL};
        PyObject *function = capsule ? PyCFunction_NewEx(&methods[i], capsule, NULL) : NULL;
        Py_XDECREF(capsule);
        if (!function || PyModule_AddObjectRef(module, entry->name, function)) return -1;
        Py_DECREF(function);
    }
    if (prepare_programs() || PyModule_AddStringConstant(module, "loop_steps", LOOP_STEPS(LOOP_NAME))
        || PyModule_AddStringConstant(module, "following", FOLLOWING(FOLLOWING_NAME))) return -1;
    return PyModule_AddStringConstant(module, "instructions", instructions);
}

/* The state of NumPy's Mersenne Twister, 624 words and the place of the next: bytes that keep their generator alive. */
typedef struct State { PyObject_HEAD PyObject *engine; void *words; } State;

static int view_state(PyObject *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, self, ((State *)self)->words, 625 * 4, 0, flags);
}

static void free_state(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((State *)self)->engine);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot state_slots[] = {{Py_bf_getbuffer, view_state}, {Py_tp_dealloc, free_state}, {0, NULL}};
static PyType_Spec state_spec = {"tensorgrad._compiled.state", sizeof(State), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, state_slots};

/* twister(engine): that memory of an MT19937. Other engines of NumPy are laid out otherwise. */
static PyObject *twister(PyObject *self, PyObject *engine)
{
    static PyObject *type, *wanted;
    (void)self;
    PyObject *module = wanted ? NULL : PyImport_ImportModule("numpy.random");
    if (module) wanted = PyObject_GetAttrString(module, "MT19937");
    Py_XDECREF(module);
    if (!wanted || (!type && !(type = PyType_FromSpec(&state_spec)))) return NULL;
    if ((PyObject *)Py_TYPE(engine) != wanted) return PyErr_SetString(PyExc_TypeError, "twister(engine): the engine is no MT19937"), NULL;
    PyObject *capsule = PyObject_GetAttrString(engine, "capsule");
    void **generator = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : NULL;
    State *state = generator ? PyObject_New(State, (PyTypeObject *)type) : NULL;
    if (state) state->engine = Py_NewRef(engine), state->words = generator[0];
    Py_XDECREF(capsule);
    return (PyObject *)state;
}

/* NumPy's functions, a table of pointers: `_ARRAY_API`, by its documentation of the C API. */
void **numpy_functions(void)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath"), *capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(capsule);
    return table;
}

extern PyObject *use_memory(PyObject *, PyObject *), *empty_memory(PyObject *, PyObject *), *memory_use(PyObject *, PyObject *);    /* memory.c */
extern PyObject *use_state(PyObject *, PyObject *), *enter_region(PyObject *, PyObject *), *leave_region(PyObject *, PyObject *);        /* numpy_state.c */
extern PyObject *regions_forked(PyObject *, PyObject *), *compute(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
extern PyObject *outside(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
extern PyObject *use_arrays(PyObject *, PyObject *), *new_map(PyObject *, PyObject *), *use_halves(PyObject *, PyObject *);          /* ufuncs.c */
extern PyObject *learn(PyObject *, PyObject *), *results_are(PyObject *, PyObject *), *new_path(PyObject *, PyObject *);             /* fast_path.c */
extern PyObject *wrap(PyObject *, PyObject *const *, Py_ssize_t), *fresh(PyObject *, PyObject *const *, Py_ssize_t);
extern PyObject *record_step(PyObject *, PyObject *const *, Py_ssize_t), *record_careful(PyObject *, PyObject *const *, Py_ssize_t), *step_back(PyObject *, PyObject *const *, Py_ssize_t);
extern PyObject *learn_steps(PyObject *, PyObject *);                                                                                /* backward.c */
extern PyObject *new_program(PyObject *, PyObject *), *fits(PyObject *, PyObject *const *, Py_ssize_t);                              /* program.c */
extern PyObject *same_tensors(PyObject *, PyObject *), *prepare(PyObject *, PyObject *);                                              /* guards.c */
extern PyObject *same_places(PyObject *, PyObject *const *, Py_ssize_t);
#ifdef TENSORGRAD_DEBUG
extern PyObject *fail_allocation(PyObject *, PyObject *);                                                                              /* memory.c */
#endif
#define FAST(name, function) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}
static PyMethodDef functions[] = {
#ifdef TENSORGRAD_DEBUG
                                    {"fail_allocation", fail_allocation, METH_O, NULL},
#endif
                                    {"set_threads", set_threads, METH_O, NULL},
                                    {"twister", twister, METH_O, NULL}, {"use_memory", use_memory, METH_NOARGS, NULL},
                                    {"empty_memory", empty_memory, METH_NOARGS, NULL}, {"memory_use", memory_use, METH_NOARGS, NULL},
                                    {"use_arrays", use_arrays, METH_NOARGS, NULL}, {"map", new_map, METH_VARARGS, NULL},
                                    {"use_halves", use_halves, METH_VARARGS, NULL},
                                    {"learn", learn, METH_VARARGS, NULL}, {"results", results_are, METH_O, NULL}, {"fast_path", new_path, METH_VARARGS, NULL},
                                     FAST("same_places", same_places), FAST("wrap", wrap), FAST("fresh", fresh), FAST("record", record_step), FAST("record_careful", record_careful),
                                     {"program", new_program, METH_VARARGS, NULL}, FAST("fits", fits),
                                    {"learn_steps", learn_steps, METH_VARARGS, NULL}, FAST("step_back", step_back),
                                    {"same_tensors", same_tensors, METH_O, NULL}, {"prepare", prepare, METH_O, NULL},
                                    {"use_state", use_state, METH_VARARGS, NULL}, {"regions_forked", regions_forked, METH_NOARGS, NULL},
                                    {"enter_region", enter_region, METH_NOARGS, NULL}, {"leave_region", leave_region, METH_O, NULL},
                                    {"outside", (PyCFunction)(void (*)(void))outside, METH_FASTCALL | METH_KEYWORDS, NULL},
                                    {"compute", (PyCFunction)(void (*)(void))compute, METH_FASTCALL | METH_KEYWORDS, NULL}, {0}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_compiled", NULL, 0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&definition); }
