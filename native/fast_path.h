/* The slots of Python's tensors, steps and plans, as `learn` in fast_path.c finds them. */
#ifndef TENSORGRAD_FAST_PATH_H
#define TENSORGRAD_FAST_PATH_H
#include "arrays.h"

enum { ARRAY, STORAGE, NODE, GRAD, ORIGIN, TENSOR_SLOTS };
enum { EDGES, HOOKS, TIME, SHAPE, DTYPE, MEMORY, SAVED, PARAMS, PLAN, RESIDUAL, CALLS, STEP_SLOTS };
enum { NODE_TYPE, FUSED_TYPE, SAVE, ORIGINS, SAVES_OUT, SHAPELESS, STEPS, EXTRAS, PLAN_SLOTS };
extern Py_ssize_t tensor_at[TENSOR_SLOTS], step_at[STEP_SLOTS], plan_at[PLAN_SLOTS];
extern PyTypeObject *tensor_base, *step_base, *plan_type, *cpu;     /* TensorBase, Node, Plan, NumpyStorage; NULL until they are known */
enum { FORWARD, BACKWARD, BELOW, ROWS, PAIR_SLOTS };
extern Py_ssize_t pair_at[PAIR_SLOTS];
extern PyTypeObject *pair_type;                                     /* Pair of ops/base.py */
#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

#endif
