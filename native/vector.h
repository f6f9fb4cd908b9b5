/* Vectors as GCC and Clang spell them, as wide as the instruction set that this file is compiled for. */
#ifndef TENSORGRAD_VECTOR_H
#define TENSORGRAD_VECTOR_H

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 64")

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#endif
