"""Calls for the differential fuzzer: what is called, with arguments that may well fit, and what is changed about them.

Values are written down before there are libraries: `T` is a tensor to be made, `D` a constant to be looked up; `made`
    makes them for one library.
"""
from __future__ import annotations

import inspect
import math
import random
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from campaign.differential_calls import CALLS
from samples import SAMPLES
from sampling import Values

import tensorgrad
from tensorgrad.api._signatures import PREFIXES, Parameter, _rows, signatures

NAMESPACES = "", "nn.functional", "linalg", "fft", "special"
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
LEFT_OUT = re.compile(r"""^(set_|get_|use_|is_(anomaly|autocast|deterministic|grad|inference|warn|storage|vulkan|distributed|shared)|autocast_|init_|sym_|
    save|load|compile|manual_seed|seed|initial_seed|fork|wait|vmap|typename|are_|clear_|from_dlpack|from_numpy|to_dlpack|eig$|lstsq$|solve$|symeig$|
    matrix_rank$|.*_packed|data_ptr|storage|untyped_storage|share_memory|register_|record_stream|reinforce|resize$|resize_as$|map|apply_|module_load|
    as_subclass|backward|cuda|xpu|ipu|pin_memory|numpy$|new$|retain_grad|lobpcg|pca_lowrank|svd_lowrank|multi_head_attention_forward|__array|dim_order|
    empty|new_empty|unsafe_|__reduce|__setstate|__deepcopy|__class|__new|__init|__subclass|__dir|__get(attr|state|newargs)|__(set|del)attr|__str|__repr|
    __format|__hash|__sizeof|__dlpack|__torch|__iter|__len|__cuda|__contains|random_)""".replace("\n    ", ""))  # noqa: E501


# ── values, before there are libraries ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class T:
    """A tensor to be made: numbers of a kind, in a shape, dtype and layout."""

    shape: tuple[int, ...]
    kind: str = "f"
    dtype: str = "float32"
    high: int = 4
    layout: str = "plain"
    grad: bool = False
    seed: int = 0
    given: tuple[Any, ...] = ()

    def array(self, shape: tuple[int, ...]) -> np.ndarray:
        """The numbers, as many as a layout needs."""
        rng = np.random.default_rng(self.seed)
        if self.given:
            values = np.resize(np.array(self.given), shape) if math.prod(shape) else np.zeros(shape)
            # among NaN, and what is not sorted, nothing is found
            return np.sort(np.nan_to_num(values)) if self.kind == "up" else values
        values = {"i": lambda: rng.integers(0, max(self.high, 1), shape), "b": lambda: rng.random(shape) < .5,
                  "p": lambda: rng.uniform(.1, 3, shape),
                  "m": lambda: rng.integers(0, 2, shape), "q": lambda: rng.random(shape),
                  "up": lambda: np.sort(rng.normal(size=shape)),
                  "f": lambda: rng.normal(size=shape)}[self.kind]()
        if self.dtype.startswith("complex"):
            return values + 1j * rng.normal(size=shape)
        return (np.abs(values) * 2 if self.dtype == "uint8" else values * 2
                if self.kind == "f" and self.dtype.startswith("int") else values)

    def made(self, lib: Any, leaves: list[Any]) -> Any:
        """The tensor."""
        shape, layout = self.shape, self.layout if self.shape else "plain"
        base = {"plain": shape, "transposed": shape[::-1], "sliced": (*shape[:-1], shape[-1] * 2) if shape else (),
                "offset": (shape[0] + 1, *shape[1:])
                if shape else (), "expanded": (1, *shape[1:])}[layout]
        values = self.array(base)
        dtype = getattr(lib, self.dtype)
        wide = (np.complex128 if self.dtype.startswith("complex") else np.float64
                if self.dtype.startswith(("float", "bfloat")) else self.dtype)
        with np.errstate(all="ignore"):
            x = lib.tensor(np.asarray(values).astype(wide)).to(dtype)
        if self.grad and x.dtype.is_floating_point | x.dtype.is_complex:
            x.requires_grad_()
            leaves.append(x)
        return {"plain": lambda: x, "transposed": lambda: x.permute(*range(len(shape))[::-1]),
                "sliced": lambda: x[..., ::2], "offset": lambda: x[1:],
                "expanded": lambda: x.expand(shape)}[layout]()

    def __repr__(self) -> str:
        words = [f"{self.kind}{list(self.shape)}", self.dtype, self.layout * (self.layout != "plain"),
                 "grad" * self.grad, str(self.given or "")]
        return "<" + " ".join(filter(None, words)) + ">"


@dataclass(frozen=True)
class D:
    """A dtype, or another constant of the libraries, to be looked up."""

    name: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"


@dataclass
class Call:
    """A function and its arguments, as text."""

    path: str
    args: list[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.path}({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


def made(value: Any, lib: Any, leaves: list[Any], tensors: list[Any]) -> Any:
    """A value with the tensors of a library; these, and those that get a gradient, are listed."""
    if isinstance(value, T):
        tensors.append(value.made(lib, leaves))
        return tensors[-1]
    if isinstance(value, D):
        return getattr(lib, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(made(v, lib, leaves, tensors) for v in value)
    return bytearray(value) if isinstance(value, bytearray) else value


# ── calls that fit ────────────────────────────────────────────────────────────────────────────────────────────────────


def _letter(kind: str) -> Any:
    return lambda *shape: T(shape, kind)


LETTERS = {kind: _letter(kind) for kind in "f p m q up".split()} | {
    "b": lambda *s: T(s, "b", "bool"), "i": lambda high, *s: T(s, "i", "int64", high),
    "c": lambda *s: T(s, "f", "complex64"),
    "sq": lambda *s: T(s, given=(3., 1., .5, -1., 4., 1., .25, .75, 2.)),
    "spd": lambda *s: T(s, "f", given=(4., 1., .5, 1., 3., .25, .5, .25, 2.)),
    "labels": lambda *s: T(s, "i", "int64", given=(1, 3, 2, 2, 1)),
    "at": lambda *v: T((len(v),), "i", "int64", given=v),
    "pivots": lambda n: T((n,), "i", "int32", given=(1,) * n), "dtype": D}


def _valid() -> dict[str, list[Call]]:
    """The table of valid calls, by path."""
    found: dict[str, list[Call]] = {}
    for names, text in _rows(CALLS):
        for arguments in text.split(" | "):
            args, kwargs = eval(f"(lambda *a, **k: (list(a), k))({arguments})", dict(LETTERS))
            for name in names:
                found.setdefault(f"Tensor{name}" if name.startswith(".") else f"torch.{name}",
                                 []).append(Call("", args, kwargs))
    return found


def _from_sample(row: Any) -> list[T]:
    """The tensors of an op's sample."""
    return [T(v.shape, {"f": "p" if v.low > 0 else "f", "c": "f"}.get(v.kind, v.kind),
              {"f": "float32", "c": "complex64", "i": "int64", "b": "bool"}[v.kind], int(v.high))
            for v in row.inputs if isinstance(v, Values)]


ALIASES = dict(abs="absolute", acos="arccos", asin="arcsin", atan="arctan", cosh="cosh", pow="power", mul="multiply",
               sub="subtract", div="divide", add="add", softmax="softmax", std="variance", var="variance", eq="equal",
               atan2="arctan2", sort="sort_dim",
               norm="vector_norm", diff="cumsum")
RANDOM_ROWS = "add multiply sum softmax cumsum sin flip concat".split()
TENSORS = frozenset("""input weight bias target other x x1 x2 y a b A B tensor tensors mat mat2 vec tensor1 tensor2
    input1 input2 grid indices
    running_mean running_var anchor positive negative var end source index mask values pos_weight source src theta
    query key value self v hx data""".split())
WORDS = {"reduction": "mean sum none", "mode": "constant reflect nearest bilinear mean sum reduced",
         "norm": "ortho forward backward", "reduce": "sum prod mean amax amin", "approximate": "none tanh",
         "side": "left right", "UPLO": "L U", "rounding_mode": "floor trunc", "padding": "same valid", "ord": "fro nuc",
         "interpolation": "linear lower nearest", "indexing": "ij xy", "driver": "gelsd gesvd", "pad_mode": "reflect",
         "padding_mode": "zeros border"}


def targets() -> list[str]:
    """All that is called: functions, methods, and methods that write in place."""
    found = []
    for space in NAMESPACES:
        ours, theirs = tensorgrad, torch
        for part in filter(None, space.split(".")):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        found += [".".join(filter(None, ("torch", space, n))) for n in dir(theirs)
                  if not n.startswith("_") and not LEFT_OUT.match(n) and hasattr(ours, n)
                  and callable(getattr(theirs, n)) and not isinstance(getattr(theirs, n), type)
                  and not inspect.ismodule(getattr(theirs, n))]
    methods = [n for n in dir(torch.Tensor) if not LEFT_OUT.match(n) and (not n.startswith("_") or n.startswith("__"))
               and hasattr(tensorgrad.Tensor, n)
               and callable(getattr(torch.Tensor, n)) and hasattr(getattr(torch.Tensor, n), "__name__")]
    return sorted(found) + [f"Tensor.{n}" for n in sorted(methods)]


def looked_up(path: str, lib: Any) -> Any:
    target = lib
    for part in path.split(".")[path.startswith("torch"):]:
        target = getattr(target, part)
    return target


def _parameters(path: str, rng: random.Random) -> list[Parameter]:
    """The parameters of a signature that PyTorch's parser knows, or of the function in Python."""
    space, _, name = path.removeprefix("torch.").rpartition(".")
    method = space == "Tensor"
    known = signatures(name, method) if method else signatures(PREFIXES.get(space, "") + name)
    if known:
        chosen = list(rng.choice(known).parameters)
        return [Parameter("Tensor", "self", None, False), *chosen] if method else chosen
    for lib in (torch, tensorgrad):
        try:
            found = list(inspect.signature(looked_up(path, lib)).parameters.values())
        except (ValueError, TypeError):
            continue
        if all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
            continue
        return [Parameter(_kind(p), p.name, None if p.default is p.empty else str(p.default), p.default is None,
                          p.kind is p.KEYWORD_ONLY)
                for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [Parameter("Tensor", n, None, False) for n in ("self", "other")[:rng.choice((1, 1, 2))]]


def _kind(p: inspect.Parameter) -> str:
    """Return what kind a parameter of a Python function is, by its annotation, its default and its name."""
    said = str(p.annotation)
    if p.name == "output_size":
        return "Ints"
    if "Tensor" in said or p.name in TENSORS and type(p.default) in (type, type(None)):
        return "Tensor"
    for word in ("bool", "float", "List[int]", "int", "str"):
        if word in said or type(p.default).__name__ == word:
            return "Ints" if word == "List[int]" else word
    if p.name in ("dim", "n", "k"):
        return "int"
    return ("Ints" if p.name in ("size", "dims", "kernel_size", "shape") else "Tensor" if p.default is p.empty
            else "float")


def fitting(path: str, rng: random.Random) -> Call:
    """A call that may well be valid."""
    name = path.rpartition(".")[2]
    valid = VALID.get(path) or VALID.get("torch." + name.rstrip("_") if path.startswith("Tensor") else "")
    if valid and rng.random() < .8:
        chosen = rng.choice(valid)
        return Call(path, list(chosen.args), dict(chosen.kwargs))
    bare = name.strip("_")
    rows = SAMPLES.get(ALIASES.get(bare, bare)) or SAMPLES[rng.choice(RANDOM_ROWS)]
    row = rng.choice(rows)
    spare = _from_sample(row) or [T((2, 3))]
    room = max(len(spare[0].shape), 1)
    call, positional = Call(path, []), True
    for p in _parameters(path, rng):
        if (p.name in ("out", "names", "layout", "device", "pin_memory", "generator", "memory_format")
                or p.kind == "Generator"):
            positional = False
            continue
        if p.default is not None and (not positional or rng.random() < .6):
            positional = False
            if rng.random() < .75:
                continue
        value = _value(p, rng, spare, room, row.params)
        if p.keyword_only or not positional:
            positional = False
            call.kwargs[p.name] = value
        else:
            call.args.append(value)
    return call


def _value(p: Parameter, rng: random.Random, spare: list[T], room: int, params: dict[str, Any]) -> Any:
    """A value that a parameter may well take."""
    if p.kind in ("Tensor", "Operand"):
        x = spare.pop(0) if len(spare) > 1 else spare[0]
        return replace(T(x.shape, "i", "int64", 2), seed=3) if p.name in ("index", "indices") and x.kind != "i" else x
    if p.kind in ("Tensors", "Indices"):
        return [spare[0]] * rng.choice((1, 2, 3)) if p.kind == "Tensors" else (T((2,), "i", "int64", 2),)
    known = params.get({"dim": "axis", "keepdim": "keepdims"}.get(p.name, p.name))
    if known is not None and not isinstance(known, np.dtype) and rng.random() < .5:
        return list(known) if isinstance(known, tuple) and rng.random() < .2 else known
    if p.name in WORDS and p.kind in ("str", "object"):
        return rng.choice(WORDS[p.name].split())
    dims = p.name.startswith(("dim", "axis", "start_dim", "end_dim", "source", "dest"))
    one = (lambda: rng.randrange(-room, room)) if dims else lambda: rng.choice((0, 1, 1, 2, 2, 3))
    several = lambda: tuple(one() for _ in range(rng.choice((1, 2, 2, room))))  # noqa: E731
    return {"int": one, "Index": one, "Ints": several, "Ints1": several, "bool": lambda: rng.random() < .5,
            "float": lambda: rng.choice((.5, 1., 2., .1)), "Number": lambda: rng.choice((1, 2, .5, -1.5, 3)),
            "Dtype": lambda: D(rng.choice(DTYPES)), "Floats": lambda: (0., 1.), "Numbers": lambda: (1., 2.),
            "str": lambda: "none", "object": lambda: rng.choice((1, [1., 2.], (1, 2)))}.get(p.kind, lambda: None)()


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

ODD = [None, "a", 1.5, True, 0, -1, (), [1], object, 1j, T((2, 3)), T(()), T((), "i", "int64"), np.float32(2),
       np.int64(1)]
NUMBERS = [-1, 0, 1, -3, 5, 100, -100, 2**31, -2**63, 2**63 - 1, 2**63, True, 1.5, 2., -.5, float("nan"), float("inf"),
           -float("inf"), 1e300, 1j, np.int64(2), np.float64(.5), T((), "i", "int64"), T(()), T((1,), "i", "int64")]
SPECIAL = [(float("nan"), 1.), (float("inf"), -1., 0.), (0.,), (-0., 1e-30), (1e30, -1e30, 2.), (-2., -1., -3.),
           (-1, 2), (100, 0)]


def changed(value: Any, rng: random.Random) -> Any:
    """A value with something about it changed."""
    if isinstance(value, T):
        return _changed_tensor(value, rng)
    if rng.random() < .15:
        return rng.choice(ODD)
    if isinstance(value, (list, tuple)) and value:
        place, kept = rng.randrange(len(value)), list(value)
        how = rng.random()
        if how < .6:
            kept[place] = changed(kept[place], rng)
        elif how < .8:
            kept.append(kept[place])
        else:
            del kept[place]
        return type(value)(kept) if rng.random() < .9 else tuple(kept)
    if isinstance(value, bool):
        return not value if rng.random() < .5 else rng.choice([None, 0, 1, "a", 1.5])
    if isinstance(value, (int, float)):
        return rng.choice(NUMBERS)
    if isinstance(value, str):
        return rng.choice(["bogus", "", None, 1, "sum", "mean", "none", "ij,jk", b"sum"])
    return D(rng.choice(DTYPES)) if isinstance(value, D) else rng.choice(ODD)


def _changed_tensor(x: T, rng: random.Random) -> Any:
    shape, how = x.shape, rng.random()
    if how < .25:
        return replace(x, dtype=rng.choice(DTYPES))
    if how < .55:
        axis = rng.randrange(len(shape) or 1)
        other = [(), (0,), (1,), (2, 3), (*shape, 1), (1, *shape), shape[1:], shape[:-1], shape[::-1],
                 (*shape[:axis], 0, *shape[axis + 1:]),
                 (*shape[:axis], 1, *shape[axis + 1:]),
                 (*shape[:axis], *(n + 1 for n in shape[axis:axis + 1]), *shape[axis + 1:])]
        return replace(x, shape=rng.choice(other))
    if how < .7:
        return replace(x, layout=rng.choice(["transposed", "sliced", "offset", "expanded"]))
    if how < .9:
        return replace(x, given=tuple(map(int, (v for v in rng.choice(SPECIAL[5:])))) if x.kind in "ib"
                       else rng.choice(SPECIAL))
    return rng.choice(ODD)


def call_of(seed: int, number: int, paths: list[str]) -> Call:
    """The call of a number."""
    rng = random.Random(f"{seed}/{number}")
    path = paths[number % len(paths)]
    call = fitting(path, rng)
    call.args = [_flavoured(v, rng) for v in call.args]
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2))):
        keys = [*range(len(call.args)), *call.kwargs]
        how = rng.random()
        if how < .07 and "__" in path:
            continue
        if how < .04 and call.args:
            del call.args[-1]
        elif how < .07:
            call.kwargs[rng.choice(("foo", "dim", "out", "dtype", "axis"))] = rng.choice(
                [1, None, T((2, 3)), T((0,)), D("float64"), D("int32")])
        elif keys:
            place = rng.choice(keys)
            held = call.args if isinstance(place, int) else call.kwargs
            held[place] = changed(held[place], rng)  # type: ignore[index]
    if path.startswith("Tensor") and not (call.args and isinstance(call.args[0], T)):
        call.args[:1] = [T((2, 3))]
    return call


def _flavoured(value: Any, rng: random.Random) -> Any:
    """A tensor with another dtype or layout that is as good, and perhaps a gradient."""
    if isinstance(value, list):
        return [_flavoured(v, rng) for v in value]
    if not isinstance(value, T):
        return value
    value = replace(value, seed=rng.randrange(1000), grad=rng.random() < .4)
    if value.dtype == "float32" and rng.random() < .3:
        value = replace(value,
                        dtype=rng.choice(["float64", "float64", "bfloat16", "float16", "complex64", "int64", "int32",
                                          "bool", "uint8"]))
    return replace(value, layout=rng.choice(["transposed", "sliced"])) if rng.random() < .1 else value


VALID = _valid()
