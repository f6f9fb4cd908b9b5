"""The inputs of a program: the names of the tensors among its arguments."""
from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ..core.tape import TensorBase
from ..nn.modules.module import Module
from ..utils._pytree import tree_flatten, tree_flatten_with_path


def parameters_of(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return (name, value) of each argument of a function, or of a module's forward."""
    try:
        signature = inspect.signature(program.forward if isinstance(program, Module) else program)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return [*((f"input_{i}", a) for i, a in enumerate(args)), *kwargs.items()]
    found: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found += [(f"{name}_{i}", a) for i, a in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found += value.items()
        else:
            found.append((name, value))
    return found


def tensors_in(tree: Any) -> list[Any]:
    """Return the tensors of a nest, in order."""
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, TensorBase)]


def word_of(key: Any) -> str:
    """Return a key of the path to an input, as part of a name."""
    return "".join(c if c.isalnum() else "_" for c in str(key).strip("[].'"))


def input_names(program: Any, args: Any, kwargs: Any, given: Sequence[str] = ()) -> list[str]:
    """Return the names of the tensors among the arguments, in flattened order: the given names, then the program's
    parameters' names.

    >>> import tensorgrad as torch
    >>> from tensorgrad.graph.inputs import input_names
    >>> input_names(lambda x, pair: x, (torch.ones(1), (torch.ones(1), torch.ones(1))), {})
    ['x', 'pair_0', 'pair_1']
    """
    by_tensor: dict[int, list[str]] = {}
    for name, value in parameters_of(program, args, kwargs):
        for path, leaf in tree_flatten_with_path(value)[0]:
            if isinstance(leaf, TensorBase):
                by_tensor.setdefault(id(leaf), []).append("_".join([name, *map(word_of, path)]))
    names: list[str] = []
    for i, leaf in enumerate(tensors_in((args, kwargs))):
        known = by_tensor.get(id(leaf), [])
        own = known.pop(0) if known else f"input_{i}"
        names.append(given[i] if i < len(given) else own)
    return names
