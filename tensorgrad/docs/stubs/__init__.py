"""Type stubs for the modules whose names Python's source does not list: `stubs()` returns {path: text}.

Most modules need no stub: type checkers read the annotations in their source. A stub is for a module that gathers names
from others when it is imported, or at the first access (`modules`), for functions that decorators make (`definitions`),
for layers, whose constructors are made (`layers`), and for the methods that `tensorgrad.api` attaches to Tensor
(`tensor`).
"""
from __future__ import annotations

from .layers import layer_stubs
from .modules import gathering_modules, module_stub
from .results import results_stub
from .tensor import tensor_stub


def stubs() -> dict[str, str]:
    """Return the text of each stub by its path in the repository."""
    return {"tensorgrad/_tensor/tensor.pyi": tensor_stub(), "tensorgrad/api/return_types.pyi": results_stub(),
            **layer_stubs(), **{path: module_stub(module) for path, module in gathering_modules().items()}}
