"""PyTorch's import path of the names of reductions that MaskedTensors take."""
from .operations import REDUCTIONS

REDUCE_NAMES = sorted(REDUCTIONS)
