"""The arguments that a layer of `nn` was constructed with, read back from the layer."""
from __future__ import annotations

import inspect
import warnings
from functools import cache
from typing import Any

from .. import api as tg
from .. import nn, random
from ..nn import Module
from ..nn.parameter import is_lazy

# the attribute that tells an argument
OTHERWISE = {(nn.MultiheadAttention, "bias"): "in_proj_bias", (nn.MultiheadAttention, "add_bias_kv"): "bias_k"}


def arguments_of(module: Module) -> dict[str, Any] | None:
    """Return the keyword arguments, without defaults, that construct a layer like this one; None if they cannot be read
    back.

    The arguments are verified: a twin constructed from them, without memory for its weights, must equal the layer in
    all but its weights.

    >>> import tensorgrad as torch
    >>> arguments_of(torch.nn.Conv2d(3, 8, 3, padding=1, bias=False))
    {'in_channels': 3, 'out_channels': 8, 'kernel_size': (3, 3), 'padding': (1, 1), 'bias': False}
    """
    cls = type(module)
    if getattr(nn, cls.__name__, None) is not cls or isinstance(module, (nn.Sequential, nn.ModuleList, nn.ModuleDict)):
        return None
    found: dict[str, Any] = {}
    for name, default in parameters_of(cls).items():
        if name in ("device", "dtype") or name.startswith("_"):
            continue
        value = getattr(module, OTHERWISE.get((cls, name), name), inspect.Parameter.empty)
        # a flag such as `bias`: is the parameter there?
        if isinstance(default, bool) and (value is None or isinstance(value, tg.Tensor)):
            value = value is not None
        if value is inspect.Parameter.empty or isinstance(value, (tg.Tensor, Module)):
            if default is inspect.Parameter.empty:
                return None
            continue
        same = (value == default or isinstance(value, tuple) and isinstance(default, int)
                and all(v == default for v in value))
        if not same:
            found[name] = value
    dtypes = {p.dtype for p in module.parameters() if p.dtype.is_floating_point} - {tg.float32}
    if dtypes and "dtype" in parameters_of(cls):
        found["dtype"] = dtypes.pop()
    try:
        with tg.device("meta"), random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")             # about parameters without elements
            twin = cls(**found)
    except Exception:
        return None
    return found if alike(module, twin) else None


@cache
def parameters_of(cls: type) -> dict[str, Any]:
    """The parameters of a class's constructor, with their defaults."""
    # their constructors pass **kwargs on to RNNBase
    recurrent = issubclass(cls, nn.RNNBase) and cls is not nn.RNNBase
    found = inspect.signature(cls.__mro__[1] if recurrent else cls).parameters.values()
    named = {p.name: p.default for p in found if p.kind is not p.VAR_KEYWORD and p.kind is not p.VAR_POSITIONAL
             and not (recurrent and p.name == "mode")}
    return named | {"nonlinearity": "tanh"} if cls is nn.RNN else named


def alike(a: Module, b: Module) -> bool:
    """Return True if two modules differ in nothing but their weights, hooks and mode."""
    if type(a) is not type(b) or _traits(a) != _traits(b) or a._modules.keys() != b._modules.keys():
        return False
    return all(x is y is None or x is not None and y is not None and alike(x, y)
               for x, y in zip(a._modules.values(), b._modules.values(), strict=True))


def _traits(module: Module) -> Any:
    plain = {k: v for k, v in module.__dict__.items() if not k.startswith("_") and k != "training"
             and not isinstance(v, tg.Tensor)}
    state = [(name, None if t is None else (None if is_lazy(t) else tuple(t.shape), t.dtype))
             for table in (module._parameters, module._buffers)
             for name, t in table.items()]
    return plain, state


__all__ = ["alike", "arguments_of", "parameters_of"]
