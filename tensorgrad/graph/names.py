"""Names of nodes, and the printed names of functions and types, as in torch.fx."""
from __future__ import annotations

import builtins
import inspect
import keyword
import math
import re
import sys
from functools import cache
from importlib import import_module
from types import FunctionType, GenericAlias
from typing import Any

from .. import api
from .._tensor import Tensor

FOREIGN = re.compile(r"[^0-9a-zA-Z_]+")
OWN = re.compile(r"\btensorgrad\.(_tensor\.)?")                # in printed types
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")                     # between a small letter and a capital
PACKAGE = __name__.partition(".")[0]


# names that generated code uses without asking: {name: (the line that imports it, the object)}
READY: dict[str, tuple[str, Any]] = {}
TAKEN = {*keyword.kwlist, *dir(builtins), "fx_pytree", "pytree"}


def register_name(name: str, line: str, thing: Any) -> None:
    """Let generated code use a name for an object: `line` is the statement that imports it."""
    READY[name] = line, thing
    TAKEN.add(name)


register_name("inf", "from math import inf", math.inf)
register_name("nan", "from math import nan", math.nan)
register_name("NoneType", "NoneType = type(None)", type(None))
register_name("torch", "import torch", sys.modules[PACKAGE])
register_name("device", "from torch import device", api.device)


def package() -> Any:
    """Return the module that generated code calls `torch`: the one of that name, if it is this package."""
    own, found = sys.modules[PACKAGE], sys.modules.get("torch")
    return found if getattr(found, "_package", None) is own else own


def means(name: str, thing: Any) -> bool:
    """Return True if a name that is taken means this object."""
    return thing is not None and (vars(builtins).get(name) is thing or name in READY and READY[name][1] is thing)


class Namespace:
    """Creates unique names: `relu`, then `relu_1`. Python's and the module's own names get a number from the start.

    An object that a name is created for keeps it: `create_name(wanted, object)` returns that name from then on.

    >>> names = Namespace()
    >>> [names.create_name(wanted) for wanted in ("relu", "relu", "relu_5", "relu", "int", "sub.0")]
    ['relu', 'relu_1', 'relu_5', 'relu_6', 'int_1', 'sub_0']
    """

    __slots__ = ("used", "counts", "names")

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}            # base → its last number
        self.names: dict[Any, str] = {}             # object → its name

    def copy(self) -> Namespace:
        """Return a copy of the namespace, without the objects."""
        new = Namespace()
        new.used, new.counts = self.used.copy(), self.counts.copy()
        return new

    def __getstate__(self) -> Any:
        return self.used, self.counts

    def __setstate__(self, state: Any) -> None:
        # namespaces were pickled by their slots before they knew objects
        slots = state[1] if isinstance(state[1], dict) and "used" in state[1] else dict(zip(("used", "counts"), state,
                                                                                             strict=True))
        self.used, self.counts, self.names = slots["used"], slots["counts"], {}

    def create_name(self, wanted: str, thing: Any = None) -> str:
        """Create a unique identifier from the wanted one, or return the one of the object."""
        if thing is not None and thing in self.names:
            return self.names[thing]
        name = wanted if wanted.isidentifier() and wanted.isascii() else FOREIGN.sub("_", wanted) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        base, _, digits = name.rpartition("_")
        if not base or not digits.isdigit():
            base, digits = name, ""
        number = int(digits) if digits and name not in self.used else self.counts.get(base, 0)
        if not digits and name in TAKEN and not means(name, thing):
            number += 1
            name = f"{base}_{number}"
        while name in self.used:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        self.counts[base] = number
        if thing is not None:
            self.names[thing] = name
        return name


def wanted_name(target: Any) -> str:
    """Return the default name of a node that calls a target.

    >>> import operator
    >>> wanted_name(operator.add), wanted_name("__getitem__"), wanted_name("sub.MyLayer")
    ('add', 'getitem', 'sub.my_layer')
    """
    if callable(target):
        name = getattr(target, "__name__", type(target).__name__)
    else:
        assert isinstance(target, str), f"Expected target to be str, got {type(target)}"
        name = target[2:-2] if target.startswith("__") and target.endswith("__") else target
    return name if name.islower() else HUMP.sub("_", name).lower()


def qualified_name(target: Any) -> str:
    """Return a function's name in printed graphs; the package's functions have their public names: torch.relu.

    >>> import operator, tensorgrad as torch
    >>> [qualified_name(f) for f in (operator.add, len, torch.relu, torch.nn.functional.relu, torch.Tensor.relu)]
    ['operator.add', 'builtins.len', 'torch.relu', 'torch.nn.functional.relu', 'torch.Tensor.relu']
    """
    name = getattr(target, "__name__", None)
    if name is None:                                # a callable object
        target = type(target)
        name = target.__name__
    if getattr(builtins, name, None) is target:
        return f"builtins.{name}"
    if getattr(Tensor, name, None) is target:
        return f"torch.Tensor.{name}"
    owner = getattr(target, "__objclass__", None)
    if owner is not None:
        return f"{home(owner)}.{owner.__name__}.{name}"
    where = home(target)
    return f"{where}.{pytorch_name(target)[1] if where.startswith('torch') else name}"


# PyTorch's modules of functions that the package has elsewhere: those written in Python, and those of its C library.
IN_PYTHON = frozenset("atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
                      "cdist chain_matmul einsum lu meshgrid norm split stft tensordot unique unique_consecutive "
                      "unravel_index".split())
ALSO_AT_THE_TOP = frozenset("adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d "
                            "conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink "
                            "native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ "
                            "rrelu_ selu_ threshold_".split())
IN_C = {name: name for name in "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot "
                               "scaled_dot_product_attention softplus softshrink".split()} | {
                                   "logsigmoid": "log_sigmoid"}
C_MODULES = {"torch.linalg": "linalg", "torch.fft": "fft", "torch.special": "special"}


@cache
def pytorch_name(target: Any) -> tuple[str, str]:
    """Return (module, name) that PyTorch has for a function or class of the package.

    >>> import tensorgrad as torch
    >>> pytorch_name(torch.nn.functional.gelu), pytorch_name(torch.linalg.det), pytorch_name(torch.split)
    (('torch._C._nn', 'gelu'), ('torch._C._linalg', 'linalg_det'), ('torch.functional', 'split'))
    """
    name, module = target.__name__, (target.__module__ or "builtins").replace("torch._ops.", "torch.ops.")
    if module == PACKAGE or module.startswith(f"{PACKAGE}."):
        public = getattr(sys.modules[PACKAGE], name, None) is target
        module = "torch" if public else f"torch{module.removeprefix(PACKAGE)}"
    if isinstance(target, type) or module.startswith("torch.ops."):
        return module, name
    if module in ("torch", "torch.functional") and name in IN_PYTHON:
        return "torch.functional", name
    if module == "torch.nn.functional":
        if name in ALSO_AT_THE_TOP:
            return "torch", name
        return ("torch._C._nn", IN_C[name]) if name in IN_C else (module, name)
    if module in C_MODULES:
        return f"torch._C._{C_MODULES[module]}", name
    return module, name


def in_c(target: Any) -> bool:
    """Return True for a function that PyTorch's C library has: such functions pass on arguments as they are given."""
    module, name = pytorch_name(target)
    return module == "torch" or module.startswith(("torch._C", "torch.ops", "torch.fx"))


def home(target: Any) -> str:
    """Return the module of a function or class, as a graph prints it."""
    module = getattr(target, "__module__", None) or "builtins"
    if module.partition(".")[0] in (PACKAGE, "torch") and hasattr(target, "__name__"):
        return pytorch_name(target)[0]
    return "operator" if module == "_operator" else str(module)


def source_name(target: Any) -> str:
    """Return the dotted name of a function or class in generated code.

    RuntimeError for a lambda that was not assigned to a name.

    >>> import operator, tensorgrad as torch
    >>> [source_name(f) for f in (operator.add, len, torch.nn.functional.gelu, torch.Tensor.relu)]
    ['_operator.add', 'len', 'torch._C._nn.gelu', 'torch.Tensor.relu']
    """
    name = target.__name__
    if getattr(builtins, name, None) is target:
        return str(name)
    if getattr(Tensor, name, None) is target:
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        try:
            name = inspect.getsource(target).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = target.__module__
    if module is None:
        raise RuntimeError(f"cannot find module for {target}")
    if module.partition(".")[0] in (PACKAGE, "torch"):
        module, name = pytorch_name(target) if name == target.__name__ else (module, name)
    return f"{module}.{name}"


def packaged(thing: Any) -> bool:
    """Return True if generated code can call an object of the package by its `source_name`."""
    if (getattr(thing, "__module__", None) or "").partition(".")[0] not in (PACKAGE, "torch"):
        return False
    try:
        module, *path = source_name(thing).split(".")
    except (AttributeError, RuntimeError):
        return False
    found = package()
    for part in path:
        try:
            found = getattr(found, part) if hasattr(found, part) else import_module(f"{found.__name__}.{part}")
        except (AttributeError, ImportError):
            return False
    return found is thing or getattr(found, "__wrapped__", found) is getattr(thing, "__wrapped__", thing)


def type_name(kind: Any) -> str:
    """Return a type as an annotation shows it.

    >>> type_name(int), type_name(list[int]), type_name(None)
    ('int', 'list[int]', 'None')
    """
    if isinstance(kind, type) and not isinstance(kind, GenericAlias):
        return kind.__qualname__ if kind.__module__ == "builtins" else f"{home(kind)}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    return kind.__name__ if isinstance(kind, FunctionType) else OWN.sub("torch.", repr(kind))
