"""The compiled fast path, native/fast_path.c: it calls ops on plain CPU tensors and records their steps.

Its functions replace those of dispatch.py and `record` in core/tape.py, on the same objects, and call these for
operands that are not plain. `compiled` is None where they are not in use: Python's own functions are complete.
"""
from __future__ import annotations

import os
from types import FunctionType
from typing import Any

from ..dtype import bfloat16, float16
from ..ops.base import Pair
from ..runtime.native import native
from ..storage.base import clock
from ..storage.cpu import NumpyStorage
from .mode import mode, refuse_inference, writers
from .node import Node
from .plan import Plan
from .tape import FREED, Leaf, Origin, TensorBase, node_of
from .unbroadcast import added, fitted

PLAIN: set[type] = {TensorBase}  # classes whose operations give plain Tensors: Tensor, Parameter, Buffer
NUMBERS = (int, float)
NO_PARAMS: dict[str, Any] = {}

compiled: Any = None
if native is not None and not os.environ.get("TENSORGRAD_KERNELS") and \
        native.learn(TensorBase, Node, Plan, Pair, NumpyStorage, mode, clock, PLAIN, node_of, NO_PARAMS,
                     refuse_inference, Origin):
    compiled = native
    compiled.learn_steps(Leaf, FREED, fitted, added)
    compiled.use_halves(float16.numpy, bfloat16.numpy)
    writers.register(plain=compiled.record, careful=compiled.record_careful)
# the classes of methods
FUNCTIONS: tuple[Any, ...] = (FunctionType, *([compiled.FastPath] if compiled is not None else []))
