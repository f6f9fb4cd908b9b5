"""Better implementations of some ops on some devices.

Each file registers its own, from outside the ops; every one could be left out.

`TENSORGRAD_KERNELS` chooses: `reference`, the ops' own formulas and nothing else; `numpy`, without compiled code;
    otherwise all there are.
"""
import os as _os
from importlib import import_module as _import_module

# Definitions in terms of arrays: parts of the table itself.
ARRAYS = ("arrays", "shape_arrays", "indexing_arrays", "reduction_arrays", "sorting_arrays", "elementwise_arrays",
          "embedding_arrays", "windows_arrays",
          "resampling_arrays")
FAMILIES = ("optimizer_numpy", "elementwise_numpy", "reduction_numpy", "sorting_numpy", "matrix_numpy",
            "recurrent_numpy", "activation_numpy", "normalization_numpy", "loss_numpy", "indexing_numpy",
            "pooling_numpy", "convolution_numpy",
            "attention_numpy", "sparse_numpy",
            "fourier_numpy")
COMPILED = ("optimizer_compiled", "matrix_compiled", "depthwise_compiled", "convolution_compiled", "recurrent_compiled",
            "attention_compiled", "elementwise_compiled", "activation_compiled", "softmax_compiled", "loss_compiled",
            "normalization_compiled", "reduction_compiled", "pooling_compiled", "indexing_compiled", "copying_compiled",
            "sparse_compiled")

wanted = _os.environ.get("TENSORGRAD_KERNELS", "")
if wanted not in ("", "numpy", "reference"):
    raise ImportError(f"TENSORGRAD_KERNELS is {wanted!r}: it may be 'reference', 'numpy' or nothing")
for _family in ARRAYS:
    _import_module(f"{__name__}.{_family}")
if wanted != "reference":
    for _family in FAMILIES:
        _import_module(f"{__name__}.{_family}")
if not wanted:
    for _family in COMPILED if _import_module(f"{__name__}.compiled").WANTED else ():
        _import_module(f"{__name__}.{_family}")
