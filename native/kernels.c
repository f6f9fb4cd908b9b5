/* All kernels, for float and double, compiled once for each instruction set (native/build.py says which): ISA names the table.

How to read native/. A kernel is what follows KERNEL(name) in one of the files that typed.inc lists; it is compiled for T = float and T = double, NAME(x)
being f32_x and f64_x, and reads its arguments from the struct `a` that native/rows.py makes of kernels.rows. A loop that threads share is a function
`share(task, part, parts)` given to pool_run (pool.h). Python calls a kernel by way of module.c, which has check.c compare the call with its row. fast_path.c,
backward.c and ufuncs.c are the path of a small recorded operation, memory.c caches the memory of large arrays. */
#include "kernels.h"
#include "pool.h"
#include "declared.h"
#include "following.h"
#include "loop.h"
#include "vector.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL(name) \
    static int NAME(name##_of)(const NAME(name##_call) *a); \
    static int NAME(name)(const void *call) { return NAME(name##_of)(call); } \
    static int NAME(name##_of)(const NAME(name##_call) *a)

#define T float
#define INDEX int32_t
#define IS_FLOAT 1
#define NAME(x) JOIN(f32, x)
#include "typed.inc"
#undef T
#undef INDEX
#undef IS_FLOAT
#undef NAME

#define T double
#define INDEX int64_t
#define IS_FLOAT 0
#define NAME(x) JOIN(f64, x)
#include "typed.inc"

#define ENTRY(name, row) {#name, ROW_##row, f32_##name, f64_##name},
#define ENTRY_OF_FLOATS(name, row) {#name, ROW_##row, f32_##name, 0},

const Entry JOIN(kernels, ISA)[] = {
#include "entries.inc"
    {0},
};
