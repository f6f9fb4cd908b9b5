"""Functions of `xp` other than ops, as formulas see them while a program is recorded: new arrays, NumPy's constants
and functions."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..interpret.symbol import Symbol
from ..interpret.symbol_storage import SymbolStorage
from ..ops.base import OPS
from ..ops.indexing import ARRAY
from ..storage.base import MAKERS, NoValues
from .lines import ReadsValues, user_line
from .nesting import mapped
from .recorded import NAMES, Recorded, applied
from .recorder import running
from .recording import argument, written
from .steps import Foreign, Make
from .symbolic_sizes import plain, plainly, symbolic


class Add:
    """NumPy's `add`, including the in-place `add.at`."""

    def __call__(self, a: Any, b: Any) -> Any:
        return applied("add", a, b)

    def at(self, x: Any, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        arrays = [p for p in parts if isinstance(p, (np.ndarray, Recorded))]
        template = tuple(ARRAY if isinstance(p, (np.ndarray, Recorded)) else p for p in parts)
        written(x, applied("index_put", x, running().backend.asarray(value, x.dtype), *arrays, template=template,
                           accumulate=True))


class Functions:
    """NumPy for recorded arrays.

    `call` maps a function of NumPy to an op, `foreign` records a function that is no op.
    """

    def call(self, name: str, function: Any, args: Any, params: Any) -> Any:
        return call(name, function, args, params)

    def foreign(self, name: str, function: Any, args: Any, params: Any) -> Any:
        return foreign(name, function, args, params)

    def __getattr__(self, name: str) -> Any:
        if name == "add":
            return Add()
        if name in OPS or name in NAMES:
            if NAMES.get(name, name) in OPS and name in NAMES:
                return lambda *args, **params: call(name, getattr(np, name), args, params)
            raise AttributeError(name)
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return (partial(made, name) if name in MAKERS or name in ("empty", "empty_like")
                else lambda *args, **params: call(name, found, args, params))


def made(name: str, *args: Any, dtype: Any = None, **params: Any) -> Any:
    """Make a new array, a constant; without folding it is a step, since its shape may depend on sizes."""
    if name.endswith("_like"):
        like, *rest = args
        name, args, dtype = name.removesuffix("_like"), (like.shape, *rest), like.dtype if dtype is None else dtype
    args = tuple(a.item() if isinstance(a, (np.generic, np.ndarray, Recorded)) and not a.ndim else a for a in args)
    name = "zeros" if name == "empty" else name
    array = getattr(np, name)(*plainly(args), dtype=dtype, **plainly(params))
    if running().sizes is not None and symbolic((args, params)):
        inner, params = Symbol(array.shape, array.dtype), {"dtype": array.dtype, **params}
        node, = running().step(Make(name), args, params, [inner], False, infer=partial(_made, name))
        return running().sizes.named(Recorded(inner, node, False))
    if running().fold:
        return Recorded(array)
    return Recorded(array, running().step(Make(name), args, {"dtype": array.dtype, **params}, [array], True)[0])


def _made(name: str, args: Any, params: Any) -> Any:
    array = getattr(np, name)(*args, **params)
    return Symbol(array.shape, array.dtype)


def call(name: str, function: Any, args: Any, params: Any) -> Any:
    """Call a function of NumPy as the corresponding op of the table."""
    name = NAMES.get(name, name)
    params = {k: v for k, v in params.items() if v is not None and not (k == "keepdims" and v is np._NoValue)}  # type: ignore[attr-defined]
    if name in ("asarray", "array", "ascontiguousarray"):
        found = running().backend.asarray(args[0], params.get("dtype"))
        return found if name == "asarray" else found.copy()
    if (dtype := params.get("dtype")) is not None and name in ("sum", "prod", "cumsum", "cumprod"):
        args, params = (args[0].astype(dtype), *args[1:]), {k: v for k, v in params.items() if k != "dtype"}
    if name == "searchsorted":
        return applied("search_sorted", *args[:2], right=(*args, params.get("side"))[2] == "right")
    if name == "repeat" and isinstance(args[1], int) and args[0].ndim == 1:
        column = applied("expand_dims", args[0], axis=1)
        return applied("broadcast_to", column, shape=(len(args[0]), args[1])).reshape(-1)
    op = OPS.get(name)
    if op is None or set(params) - set(op.parameters):
        return foreign(f"numpy.{name}", function, args, params)
    return getattr(running().backend.xp, name)(*args, **params)


def foreign(name: str, function: Any, args: Any, params: Any) -> Any:
    """Call a function that is no op of the table: constants give a constant, other arrays a step."""
    arrays: list[Any] = []

    def bare(a: Any, symbols: bool = False) -> Any:
        if isinstance(a, (tuple, list)):
            return type(a)(bare(part, symbols) for part in a)
        if type(a) is not Recorded:
            return plain(a)
        arrays.append(a)
        return SymbolStorage.asarray(a.inner) if symbols else a.inner
    given, named = bare(tuple(args)), {k: bare(v) for k, v in params.items()}
    varies = running().sizes is not None and (symbolic([a.shape for a in arrays]) or symbolic((args, params)))
    known = not varies and all(a.known for a in arrays)
    if known or running().reading is not None:
        running().rely(arrays)
        result = function(*given, **named)
    else:
        try:
            result = _of_symbols(name, function)(*bare(tuple(args), True),
                                                 **{k: bare(v, True) for k, v in params.items()})
        except NoValues as error:
            raise ReadsValues(f"{name}: {str(error).partition(' needs values')[0]}", user_line()) from None
    parts = result if isinstance(result, (tuple, list)) else (result,)
    if not any(isinstance(p, (np.ndarray, np.generic, Symbol)) for p in parts):
        return result
    parts = [p if type(p) is Symbol else np.array(p) for p in parts]
    several = parts[0] is not result and isinstance(result, (tuple, list))
    if known:
        outs = [Recorded(p) for p in parts]
    else:
        step = _nested(argument, args), {k: _nested(argument, v) for k, v in params.items()}
        infer = partial(_inferred, _of_symbols(name, function)) if varies else None
        outs = [Recorded(p, node, False) for p, node in zip(parts, running().step(
            Foreign(name, function), *step, parts, False, several, infer), strict=True)]
        outs = list(map(running().sizes.named, outs)) if varies else outs
        if varies and several:
            outs[0].node.args[0].meta["shape"] = [out.shape for out in outs]
    return type(result)(outs) if several else outs[0]


def _inferred(function: Any, args: Any, params: Any) -> Any:
    args, params = mapped(_as_symbol, args), mapped(_as_symbol, params)
    return function(*args, **params)


def _as_symbol(a: Any) -> Any:
    return SymbolStorage.asarray(a) if isinstance(a, np.ndarray) else a


def _nested(function: Any, a: Any) -> Any:
    return type(a)(_nested(function, part) for part in a) if isinstance(a, (tuple, list)) else function(a)


def _of_symbols(name: str, function: Any) -> Any:
    """Return the function that infers the shapes of a function's results."""
    found: Any = Symbol.module
    module = (getattr(function, "__module__", None) or "").removeprefix("numpy").strip(".")
    for part in (*module.split("."), getattr(function, "__name__", "")) if name.startswith("numpy.") else ():
        found = getattr(found, part, None) if part else found
        if found is None:
            break
    return function if found is None or found is Symbol.module else found
