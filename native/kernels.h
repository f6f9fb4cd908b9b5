/* The form of a kernel. Each takes a struct that native/rows.py makes of its row in kernels.rows and that check.c fills: `a->x`, an array of the type T or NULL
   where None was given, `a->n`, a size, `a->eps`, a number. A kernel returns 0, or −1 if memory runs out; then its results are dropped. */
#ifndef TENSORGRAD_KERNELS_H
#define TENSORGRAD_KERNELS_H

#define MOST_ARRAYS 16

typedef int (*Kernel)(const void *call);

/* A parameter that a step of an optimizer changes: its arrays in the order of the row in kernels.rows, all alike. */
#define MOST_IN_ROW 5
#define LINE 16                         /* elements: rows begin at multiples of it, so that parts of all of them are whole vectors */
typedef struct Row { void *array[MOST_IN_ROW]; long size, before; double count; } Row;     /* before: elements of the rows so far; count: of its steps */

typedef struct Entry { const char *name; int row; Kernel f32, f64; } Entry;             /* row: its place among the declarations */

extern const Entry kernels_baseline[], kernels_avx2[], kernels_avx512[];

#endif
