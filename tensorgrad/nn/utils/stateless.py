"""Call a module with other tensors in place of its parameters and buffers."""
from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import api as tg

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ..modules.module import Module

__all__ = ["functional_call"]


def functional_call(module: Module, parameters_and_buffers: dict[str, Tensor], args: Any | tuple | None = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """Deprecated: use `torch.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning, stacklevel=2)
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call `module(*args, **kwargs)` with these tensors, by name, in place of its own.

    With `tie_weights`, a tensor replaces another under all its names. With `strict`, RuntimeError unless exactly the
    module's names are given. Tensors that the call assigns to replaced names (a new running mean, say) are written back
    into the dictionary.
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    tensors = dict(parameters_and_buffers)
    if tie_weights:
        _spread_over_ties(module, tensors)
    if strict:
        _check_names(module, tensors)
    replaced = {}
    try:
        for name, tensor in tensors.items():
            replaced[name] = _swap(module, name, tensor)
        yield
    finally:
        after = {name: _swap(module, name, tensor) for name, tensor in reversed(replaced.items())}
        parameters_and_buffers.update((name, after[name]) for name in parameters_and_buffers if name in after)


def _names(module):
    """Yield every parameter and buffer under each of its names."""
    return {**dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False))}


def _check_names(module, tensors):
    expected = _names(module)
    problems = [f"{kind} key(s): {', '.join(map(repr, names))}." for kind, names in (
        ("Unexpected", sorted(tensors.keys() - expected.keys())),
        ("Missing", sorted(expected.keys() - tensors.keys()))) if names]
    if problems:
        raise RuntimeError("Error(s) in reparametrizing for {}:\n\t{}".format(
            module._get_name(), "\n\t".join(problems)))


def _spread_over_ties(module, tensors):
    """Add every tensor under the other names of the tensor that it replaces."""
    names_of = {}
    for name, tensor in _names(module).items():
        names_of.setdefault(tensor, []).append(name)
    for ties in names_of.values():
        given = [tensors[name] for name in ties if name in tensors]
        if any(tensor is not given[0] for tensor in given):
            raise ValueError(f"functional_call got multiple values for keys {sorted(ties)}, which are tied. "
                             "Consider using tie_weights=False")
        if given:
            tensors.update(dict.fromkeys(ties, given[0]))


_MISSING = object()


def _swap(module, path, tensor):
    """Put a tensor at a dotted path, or nothing if it is `_MISSING`, and return the previous value."""
    owner_path, _, name = path.rpartition(".")
    owner = module.get_submodule(owner_path)
    _check_tensor(tensor, "")
    if tensor is _MISSING:                  # a parameter that was added is in the module's table, too
        before = getattr(owner, name)
        delattr(owner, name)
        return before
    for table in (owner._parameters, owner._buffers):
        if name in table:
            before, table[name] = table[name], tensor
            return before
    before = getattr(owner, name, _MISSING)
    _check_tensor(before, f"attribute `{name}`: ")
    setattr(owner, name, tensor)
    return before


def _check_tensor(tensor, where):
    if not (tensor is None or tensor is _MISSING or isinstance(tensor, tg.Tensor)):
        raise TypeError(f"{where}{tensor} is not an instance of torch.Tensor")
