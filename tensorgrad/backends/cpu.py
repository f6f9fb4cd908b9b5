"""torch.backends.cpu. https://pytorch.org/docs → torch.backends.cpu"""


def get_cpu_capability() -> str:
    """The widest vector instructions that NumPy uses: 'DEFAULT', 'VSX', 'Z VECTOR', 'NO AVX', 'AVX2' or 'AVX512'."""
    from numpy._core._multiarray_umath import __cpu_features__ as has
    return next((shown for shown, feature in (("AVX512", "AVX512F"), ("AVX2", "AVX2"), ("VSX", "VSX"),
                                              ("Z VECTOR", "VX")) if has.get(feature)), "DEFAULT")
