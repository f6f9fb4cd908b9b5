/* What a kernel gets: the addresses of its arrays, then numbers, in the order of its signature (see kernels.c). */
#ifndef TENSORGRAD_KERNELS_H
#define TENSORGRAD_KERNELS_H

#define MOST_ARRAYS 16
#define MOST_NUMBERS 24

typedef struct Arguments {
    void *array[MOST_ARRAYS];           /* NULL where None was given */
    long size[MOST_ARRAYS];             /* in bytes; of rows, how many */
    long integer[MOST_NUMBERS];
    double real[MOST_NUMBERS];
} Arguments;

typedef void (*Kernel)(const Arguments *);

/* One of the parameters that a step of an optimizer changes, the first array of these kernels: its arrays in the order of the signature, all alike. */
#define MOST_IN_ROW 5
#define LINE 16                         /* elements: rows begin at multiples of it, so that parts of all of them are whole vectors */
typedef struct Row { void *array[MOST_IN_ROW]; long size, before; double count; } Row;     /* before: elements of the rows so far; count: of its steps */

/* Signature, a letter an argument: r reads an array of the kernel's type, w writes one, s and S do so where it need not lie in one piece; i reads an array
   of int64, I writes one; u reads one of bytes, U writes one; n is an integer, x a real number. Arrays may be None. The first array of the kernel's
   type says which of the two functions runs. After * the letters before the numbers are those of a row, and + counts steps (updates.c). */
typedef struct Entry { const char *name, *signature; Kernel f32, f64; } Entry;

extern const Entry kernels_baseline[], kernels_avx2[], kernels_avx512[];

#endif
