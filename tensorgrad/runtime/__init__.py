"""The process around the computation: the compiled part, BLAS, threads, NumPy's state, and the program's settings."""
