/* Programs of the kernel `loop` (loop.inc): steps that make each element of a result from elements of operands, in blocks that stay in the cache. loop.c checks
   a program before it runs; the names of the steps reach Python as `native.loop_steps`. */
#ifndef TENSORGRAD_LOOP_H
#define TENSORGRAD_LOOP_H
#include <stdint.h>

/* X(name, operands): steps by NumPy's own loops over one or two operands, which are vectorized for each processor (ufuncs.c finds them);
   also waves and quotients of numbers that are out of the range of our formulas. */
#define LOOP_OF_NUMPY(X) LOOP_WAVES(X) LOOP_FUNCTIONS(X) LOOP_IN_DOUBLE(X)
#define LOOP_WAVES(X) X(sin, 1) X(cos, 1)
#define LOOP_FUNCTIONS(X) \
    X(tan, 1) X(arcsin, 1) X(arccos, 1) X(arctan, 1) X(sinh, 1) X(cosh, 1) X(arcsinh, 1) X(arccosh, 1) X(arctanh, 1) \
    X(exp2, 1) X(log2, 1) X(log10, 1) X(arctan2, 2) X(power, 2)
#define LOOP_IN_DOUBLE(X) X(hypot, 2) X(floor_divide, 2) X(remainder, 2) X(fmod, 2)

/* X(name, operands). A truth value is 1 or 0. From `sin` to `fmod` they are NumPy's; from `sum` on, they make one number of the elements of a row. */
#define LOOP_STEPS(X) \
    X(add, 2) X(subtract, 2) X(multiply, 2) X(divide, 2) X(maximum, 2) X(minimum, 2) X(fmax, 2) X(fmin, 2) X(copysign, 2) \
    X(equal, 2) X(not_equal, 2) X(less, 2) X(less_equal, 2) \
    X(logical_and, 2) X(logical_or, 2) X(logical_xor, 2) X(logical_not, 1) X(where, 3) X(copy, 1) \
    X(negative, 1) X(absolute, 1) X(square, 1) X(reciprocal, 1) X(sqrt, 1) X(rsqrt, 1) X(exp, 1) X(expm1, 1) X(log, 1) X(log1p, 1) \
    X(tanh, 1) X(sigmoid, 1) X(erf, 1) X(floor, 1) X(ceil, 1) X(trunc, 1) X(round, 1) X(sign, 1) X(isnan, 1) X(isinf, 1) \
    X(isfinite, 1) X(relu, 1) X(leaky_relu, 2) X(hardtanh, 3) X(hardsigmoid, 1) X(hardswish, 1) X(elu, 4) X(softplus, 4) \
    X(log_sigmoid, 1) X(silu, 1) X(mish, 1) X(gelu, 1) X(gelu_tanh, 1) LOOP_OF_NUMPY(X) \
    X(sum, 1) X(mean, 1) X(sum_of_products, 2) X(mean_of_products, 2) X(amax, 1) X(amin, 1)

#define LOOP_ENUM(name, operands) LOOP_##name,
#define LOOP_NAME(name, operands) #name " "
enum { LOOP_STEPS(LOOP_ENUM) LOOP_KINDS, LOOP_FIRST_OF_NUMPY = LOOP_sin, LOOP_FIRST_OF_MANY = LOOP_sum };

#define LOOP_OPERANDS(name, operands) operands,
static const signed char loop_operands[] = {LOOP_STEPS(LOOP_OPERANDS)};

/* A loop of NumPy over float or double (PyUFuncGenericFunction in its documentation); NULL if there is none. It needs no interpreter's lock. */
typedef struct NumpyLoop { void (*run)(char **at, const intptr_t *count, const intptr_t *step, void *data); void *data; } NumpyLoop;
extern NumpyLoop numpy_loops[2][LOOP_KINDS];

#define LOOP_AXES 4             /* the last is the row */
#define LOOP_VALUES 8           /* operands of the kernel's type */
#define LOOP_BYTES 2            /* operands of bytes */
#define LOOP_INPUTS (LOOP_VALUES + LOOP_BYTES + 1)      /* and one of int64 */
#define LOOP_RESULTS 3          /* results of the kernel's type */
#define LOOP_OUTPUTS (LOOP_RESULTS + 1)                 /* and one of truth values in bytes */
#define LOOP_REGISTERS 16
#define LOOP_NUMBERS 64
#define LOOP_MOST_STEPS 128
#define LOOP_MOST_ROW 16384     /* elements, where steps from many elements of a row to one */

/* Where a step finds and puts things: a register, an input, an output that was written before, a number. */
enum { LOOP_INPUT = LOOP_REGISTERS, LOOP_OUTPUT = LOOP_INPUT + LOOP_INPUTS, LOOP_NUMBER = LOOP_OUTPUT + LOOP_OUTPUTS, LOOP_PLACES = LOOP_NUMBER + LOOP_NUMBERS };
enum { LOOP_UNUSED, LOOP_FULL, LOOP_BY_ROW };           /* an output has an element for each of the result, or one for each row */
enum { LOOP_DIRECT, LOOP_ONE, LOOP_COPIED, LOOP_KEPT };  /* an input is read where it is, is one number for a row, is copied to a block, or once for all blocks */

typedef struct LoopInput { int64_t step[LOOP_AXES], truth; } LoopInput;                     /* truth: bytes other than 0 are 1 */
typedef struct LoopStep { int64_t kind, by_row, to, of[4]; } LoopStep;                      /* by_row: one number for the row, not one for each element */
typedef struct LoopProgram {
    int64_t numbers, steps;
    LoopInput input[LOOP_INPUTS];
    int64_t output[LOOP_OUTPUTS];
    int64_t rest[];                                                                         /* the numbers, as bits of double; then the steps */
} LoopProgram;

static inline const double *loop_numbers(const LoopProgram *p) { return (const double *)p->rest; }
static inline const LoopStep *loop_steps(const LoopProgram *p) { return (const LoopStep *)(p->rest + p->numbers); }

static inline int loop_by_row(const LoopProgram *p)
{
    for (int i = 0; i < p->steps; i++) if (loop_steps(p)[i].by_row) return 1;
    return 0;
}

/* Return 1 if no step that makes an element of each waits for a number that is made of many: then a row may be taken in parts. `after` says which steps wait. */
static inline int loop_in_parts(const LoopProgram *p, int *after)
{
    int waits[LOOP_PLACES] = {0};
    for (int i = 0; i < p->steps; i++) {
        const LoopStep *s = loop_steps(p) + i;
        after[i] = 0;
        for (int k = 0; k < loop_operands[s->kind]; k++) after[i] |= waits[s->of[k]];
        if (after[i] && (!s->by_row || s->kind >= LOOP_FIRST_OF_MANY)) return 0;
        waits[s->to] = after[i] || s->kind >= LOOP_FIRST_OF_MANY;
    }
    return 1;
}

#endif
