"""The compiled lanes of native/lane.c, which call ops on plain CPU tensors and record their steps.

They replace the lanes in dispatch.py and `record` in core/tape.py, on the same objects, and call those for operands
that are not plain. `lanes` is None where they are not in use: Python's own are complete.
"""
from __future__ import annotations

import os
from types import FunctionType
from typing import Any

from ..ops.base import Pair
from ..runtime.native import native
from ..storage.base import clock
from ..storage.cpu import NumpyStorage
from .mode import mode, refuse_inference, writers
from .node import Node
from .plan import Plan
from .tape import FREED, Leaf, Origin, TensorBase, node_of
from .unbroadcast import fitted

PLAIN: set[type] = {TensorBase}  # classes whose operations give plain Tensors: Tensor, Parameter, Buffer
NUMBERS = (int, float)
NO_PARAMS: dict[str, Any] = {}

lanes: Any = None
if native is not None and not os.environ.get("TENSORGRAD_KERNELS") and \
        native.learn(TensorBase, Node, Plan, Pair, NumpyStorage, mode, clock, PLAIN, node_of, NO_PARAMS, refuse_inference, Origin):
    lanes = native
    lanes.learn_steps(Leaf, FREED, fitted)
    writers.register(plain=lanes.record, careful=lanes.record_careful)
FUNCTIONS: tuple[Any, ...] = (FunctionType, *([lanes.Lane] if lanes is not None else []))        # the classes of methods
