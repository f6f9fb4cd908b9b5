"""Better implementations of some ops on some devices. Each file registers its own, from outside the ops; every one could be left out."""
from importlib import import_module as _import_module

FAMILIES = ("elementwise_numpy", "reduction_numpy", "sorting_numpy", "matrix_numpy", "recurrent_numpy", "activation_numpy",
            "normalization_numpy", "loss_numpy", "indexing_numpy", "pooling_numpy", "convolution_numpy", "attention_numpy")
for _family in FAMILIES:
    _import_module(f"{__name__}.{_family}")
