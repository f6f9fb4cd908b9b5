/* Parts that only a build for tests has (TENSORGRAD_DEBUG=1, see build.py): assertions, and memory that runs out when a test says so. */
#ifndef TENSORGRAD_DEBUG_H
#define TENSORGRAD_DEBUG_H

#ifdef TENSORGRAD_DEBUG
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define ENSURE(condition) ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), abort()))

extern atomic_long allocations_left;            /* requests until the one that fails; 0: none fails (pool.c) */

/* Return 1 if this request for memory is the one that fail_allocation chose. */
static inline int allocation_fails(void)
{
    return atomic_load(&allocations_left) > 0 && atomic_fetch_sub(&allocations_left, 1) == 1;
}
#else
#define ENSURE(condition) ((void)0)
#define allocation_fails() 0
#endif

#endif
