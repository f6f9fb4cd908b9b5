"""A differential fuzzer: calls of every public function, with arguments that fit and that do not, beside PyTorch.

    python tests/campaign/differential.py --calls 20000 --seed 1 --jobs 2      differences, by class
    python tests/campaign/differential.py --seed 1 --only 1234                 one of these calls

Two libraries agree about a call if both refuse it, with an exception of the same type, or both return: tensors of the same shapes, dtypes, strides
and values, with the same gradients; and if a refusal leaves the arguments as they were. Counted apart are messages, and what is wider here: calls that
PyTorch refuses for want of a kernel for a dtype, and gradients for which it has no derivative.

Arguments come from the tables of valid calls (`differential_calls`), from the samples of the ops, and from the signatures of functions; then some are
changed: to other shapes, dtypes, layouts and values, to absurd numbers, to values of other types. A call is a function of the seed and its number.
Calls run in processes with little memory, of which one may crash or hang: the next call then has a new process.
"""
from __future__ import annotations

import argparse
import inspect
import math
import os
import pickle
import random
import re
import resource
import select
import signal
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

for _pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_pool}_NUM_THREADS", "1")
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

import numpy as np
import torch
from campaign.differential_allowed import ALLOWED
from campaign.differential_calls import CALLS
from samples import SAMPLES
from sampling import Values

import tensorgrad
from tensorgrad.api._parsing import PREFIXES, Parameter, _rows, signatures

BATCH, SECONDS, ROOM = 250, 6.0, 3 << 30       # calls of a process, the time of a call, the memory of a process
NAMESPACES = "", "nn.functional", "linalg", "fft", "special"
KINDS = "crash", "hang", "inputs", "values", "gradients", "strides", "missing error", "extra error", "type", "wider", "message"
COUNTED = KINDS[:-2]
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
LEFT_OUT = re.compile(r"""^(set_|get_|use_|is_(anomaly|autocast|deterministic|grad|inference|warn|storage|vulkan|distributed|shared)|autocast_|init_|sym_|
    save|load|compile|manual_seed|seed|initial_seed|fork|wait|vmap|typename|are_|clear_|from_dlpack|from_numpy|to_dlpack|eig$|lstsq$|solve$|symeig$|
    matrix_rank$|.*_packed|data_ptr|storage|untyped_storage|share_memory|register_|record_stream|reinforce|resize$|resize_as$|map|apply_|module_load|
    as_subclass|backward|cuda|xpu|ipu|pin_memory|numpy$|new$|retain_grad|lobpcg|pca_lowrank|svd_lowrank|multi_head_attention_forward|__array|dim_order|
    empty|new_empty|unsafe_|__reduce|__setstate|__deepcopy|__class|__new|__init|__subclass|__dir|__get(attr|state|newargs)|__(set|del)attr|__str|__repr|
    __format|__hash|__sizeof|__dlpack|__torch|__iter|__len|__cuda|__contains|random_)""".replace("\n    ", ""))


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
            return np.resize(np.array(self.given), shape) if math.prod(shape) else np.zeros(shape)
        values = {"i": lambda: rng.integers(0, max(self.high, 1), shape), "b": lambda: rng.random(shape) < .5, "p": lambda: rng.uniform(.1, 3, shape),
                  "m": lambda: rng.integers(0, 2, shape), "q": lambda: rng.random(shape), "up": lambda: np.sort(rng.normal(size=shape)),
                  "f": lambda: rng.normal(size=shape)}[self.kind]()
        if self.dtype.startswith("complex"):
            return values + 1j * rng.normal(size=shape)
        return np.abs(values) * 2 if self.dtype == "uint8" else values * 2 if self.kind == "f" and self.dtype.startswith("int") else values

    def made(self, lib: Any, leaves: list[Any]) -> Any:
        """The tensor."""
        shape, layout = self.shape, self.layout if self.shape else "plain"
        base = {"plain": shape, "transposed": shape[::-1], "sliced": (*shape[:-1], shape[-1] * 2) if shape else (), "offset": (shape[0] + 1, *shape[1:])
                if shape else (), "expanded": (1, *shape[1:])}[layout]
        values = self.array(base)
        dtype = getattr(lib, self.dtype)
        wide = np.complex128 if self.dtype.startswith("complex") else np.float64 if self.dtype.startswith(("float", "bfloat")) else self.dtype
        with np.errstate(all="ignore"):
            x = lib.tensor(np.asarray(values).astype(wide)).to(dtype)
        if self.grad and x.dtype.is_floating_point | x.dtype.is_complex:
            x.requires_grad_()
            leaves.append(x)
        return {"plain": lambda: x, "transposed": lambda: x.permute(*range(len(shape))[::-1]), "sliced": lambda: x[..., ::2], "offset": lambda: x[1:],
                "expanded": lambda: x.expand(shape)}[layout]()

    def __repr__(self) -> str:
        words = [f"{self.kind}{list(self.shape)}", self.dtype, self.layout * (self.layout != "plain"), "grad" * self.grad, str(self.given or "")]
        return "<" + " ".join(filter(None, words)) + ">"


@dataclass(frozen=True)
class D:
    """A dtype, or another constant of the libraries, to be looked up."""

    name: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"


@dataclass
class Call:
    """What is called with what."""

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
    "b": lambda *s: T(s, "b", "bool"), "i": lambda high, *s: T(s, "i", "int64", high), "c": lambda *s: T(s, "f", "complex64"),
    "sq": lambda *s: T(s, given=(3., 1., .5, -1., 4., 1., .25, .75, 2.)), "spd": lambda *s: T(s, "f", given=(4., 1., .5, 1., 3., .25, .5, .25, 2.)),
    "at": lambda *v: T((len(v),), "i", "int64", given=v), "pivots": lambda n: T((n,), "i", "int32", given=(1,) * n), "dtype": D}


def _valid() -> dict[str, list[Call]]:
    """The table of valid calls, by path."""
    found: dict[str, list[Call]] = {}
    for names, text in _rows(CALLS):
        for arguments in text.split(" | "):
            args, kwargs = eval(f"(lambda *a, **k: (list(a), k))({arguments})", dict(LETTERS))
            for name in names:
                found.setdefault(f"Tensor{name}" if name.startswith(".") else f"torch.{name}", []).append(Call("", args, kwargs))
    return found


def _from_sample(row: Any) -> list[T]:
    """The tensors of an op's sample."""
    return [T(v.shape, {"f": "p" if v.low > 0 else "f", "c": "f"}.get(v.kind, v.kind),
              {"f": "float32", "c": "complex64", "i": "int64", "b": "bool"}[v.kind], int(v.high)) for v in row.inputs if isinstance(v, Values)]


ALIASES = dict(abs="absolute", acos="arccos", asin="arcsin", atan="arctan", cosh="cosh", pow="power", mul="multiply", sub="subtract", div="divide", add="add",
               softmax="softmax", std="variance", var="variance", eq="equal", atan2="arctan2", sort="sort_dim", norm="vector_norm", diff="cumsum")
RANDOM_ROWS = "add multiply sum softmax cumsum sin flip concat".split()
TENSORS = frozenset("""input weight bias target other x x1 x2 y a b A B tensor tensors mat mat2 vec tensor1 tensor2 input1 input2 grid indices running_mean running_var
    anchor positive negative var end source index mask values pos_weight source src theta query key value self v hx data""".split())
WORDS = {"reduction": "mean sum none", "mode": "constant reflect nearest bilinear mean sum reduced", "norm": "ortho forward backward", "reduce": "sum prod mean amax amin",
         "approximate": "none tanh", "side": "left right", "UPLO": "L U", "rounding_mode": "floor trunc", "padding": "same valid", "ord": "fro nuc",
         "interpolation": "linear lower nearest", "indexing": "ij xy", "driver": "gelsd gesvd", "pad_mode": "reflect", "padding_mode": "zeros border"}


def targets() -> list[str]:
    """All that is called: functions, methods, and methods that write in place."""
    found = []
    for space in NAMESPACES:
        ours, theirs = tensorgrad, torch
        for part in filter(None, space.split(".")):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        found += [".".join(filter(None, ("torch", space, n))) for n in dir(theirs) if not n.startswith("_") and not LEFT_OUT.match(n) and hasattr(ours, n)
                  and callable(getattr(theirs, n)) and not isinstance(getattr(theirs, n), type) and not inspect.ismodule(getattr(theirs, n))]
    methods = [n for n in dir(torch.Tensor) if not LEFT_OUT.match(n) and (not n.startswith("_") or n.startswith("__")) and hasattr(tensorgrad.Tensor, n)
               and callable(getattr(torch.Tensor, n)) and hasattr(getattr(torch.Tensor, n), "__name__")]
    return sorted(found) + [f"Tensor.{n}" for n in sorted(methods)]


def _looked_up(path: str, lib: Any) -> Any:
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
        return [Parameter("Tensor", "self", None, False, False, False), *chosen] if method else chosen
    for lib in (torch, tensorgrad):
        try:
            found = list(inspect.signature(_looked_up(path, lib)).parameters.values())
        except (ValueError, TypeError):
            continue
        if all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
            continue
        return [Parameter(_kind(p), p.name, None if p.default is p.empty else str(p.default), p.default is None, False, p.kind is p.KEYWORD_ONLY)
                for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [Parameter("Tensor", n, None, False, False, False) for n in ("self", "other")[:rng.choice((1, 1, 2))]]


def _kind(p: inspect.Parameter) -> str:
    """What kind a parameter of a Python function is, by its annotation, its default and its name."""
    said = str(p.annotation)
    if p.name == "output_size":
        return "ints"
    if "Tensor" in said or p.name in TENSORS and type(p.default) in (type, type(None)):
        return "Tensor"
    for word in ("bool", "float", "List[int]", "int", "str"):
        if word in said or type(p.default).__name__ == word:
            return "ints" if word == "List[int]" else word
    return "int" if p.name in ("dim", "n", "k") else "ints" if p.name in ("size", "dims", "kernel_size", "shape", "output_size") else "Tensor" if p.default is p.empty else "float"


def fitting(path: str, rng: random.Random) -> Call:
    """A call that may well be valid."""
    valid, name = VALID.get(path) or VALID.get("torch." + path.removeprefix("Tensor.").rstrip("_") if path.startswith("Tensor") else ""), path.rpartition(".")[2]
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
        if p.name in ("out", "names", "layout", "device", "pin_memory", "generator", "memory_format") or p.kind == "Generator":
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
    if p.kind == "Tensor":
        x = spare.pop(0) if len(spare) > 1 else spare[0]
        return replace(T(x.shape, "i", "int64", 2), seed=3) if p.name in ("index", "indices") and x.kind != "i" else x
    if p.kind in ("Tensors", "indices"):
        return [spare[0]] * rng.choice((1, 2, 3)) if p.kind == "Tensors" else (T((2,), "i", "int64", 2),)
    known = params.get({"dim": "axis", "keepdim": "keepdims"}.get(p.name, p.name))
    if known is not None and not isinstance(known, np.dtype) and rng.random() < .5:
        return list(known) if isinstance(known, tuple) and rng.random() < .2 else known
    if p.name in WORDS and p.kind in ("str", "object"):
        return rng.choice(WORDS[p.name].split())
    dims = p.name.startswith(("dim", "axis", "start_dim", "end_dim", "source", "dest"))
    one = (lambda: rng.randrange(-room, room)) if dims else lambda: rng.choice((0, 1, 1, 2, 2, 3))
    return {"int": one, "index": one, "ints": lambda: tuple(one() for _ in range(rng.choice((1, 2, 2, room)))), "bool": lambda: rng.random() < .5,
            "float": lambda: rng.choice((.5, 1., 2., .1)), "Number": lambda: rng.choice((1, 2, .5, -1.5, 3)), "dtype": lambda: D(rng.choice(DTYPES)),
            "floats": lambda: (0., 1.), "Numbers": lambda: (1., 2.), "str": lambda: "none", "object": lambda: rng.choice((1, [1., 2.], (1, 2)))}.get(
                p.kind, lambda: None)()


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

ODD = [None, "a", 1.5, True, 0, -1, (), [1], object, 1j, T((2, 3)), T(()), T((), "i", "int64"), np.float32(2), np.int64(1)]
NUMBERS = [-1, 0, 1, -3, 5, 100, -100, 2**31, -2**63, 2**63 - 1, 2**63, True, 1.5, 2., -.5, float("nan"), float("inf"), -float("inf"), 1e300, 1j, np.int64(2),
           np.float64(.5), T((), "i", "int64"), T(()), T((1,), "i", "int64")]
SPECIAL = [(float("nan"), 1.), (float("inf"), -1., 0.), (0.,), (-0., 1e-30), (1e30, -1e30, 2.), (-2., -1., -3.), (-1, 2), (100, 0)]


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
        other = [(), (0,), (1,), (2, 3), (*shape, 1), (1, *shape), shape[1:], shape[:-1], shape[::-1], (*shape[:axis], 0, *shape[axis + 1:]),
                 (*shape[:axis], 1, *shape[axis + 1:]), (*shape[:axis], *(n + 1 for n in shape[axis:axis + 1]), *shape[axis + 1:])]
        return replace(x, shape=rng.choice(other))
    if how < .7:
        return replace(x, layout=rng.choice(["transposed", "sliced", "offset", "expanded"]))
    if how < .9:
        return replace(x, given=tuple(map(int, (v for v in rng.choice(SPECIAL[5:])))) if x.kind in "ib" else rng.choice(SPECIAL))
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
            call.kwargs[rng.choice(("foo", "dim", "out", "dtype", "axis"))] = rng.choice([1, None, T((2, 3)), T((0,)), D("float64"), D("int32")])
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
        value = replace(value, dtype=rng.choice(["float64", "float64", "bfloat16", "float16", "complex64", "int64", "int32", "bool", "uint8"]))
    return replace(value, layout=rng.choice(["transposed", "sliced"])) if rng.random() < .1 else value


# ── one call in both libraries ────────────────────────────────────────────────────────────────────────────────────────


def neutral(value: Any, lib: Any) -> Any:
    """A result with NumPy's arrays in place of tensors."""
    if isinstance(value, lib.Tensor):
        x = value.detach().resolve_conj().resolve_neg()
        wide = x.float() if x.dtype in (lib.bfloat16, lib.float16) else x
        strides = [s for s, n in zip(value.stride(), value.shape) if n > 1] if value.numel() else []
        return Array(str(x.dtype).replace("tensorgrad", "torch"), wide.numpy().copy(), strides, value.requires_grad)
    if isinstance(value, dict):
        return {k: neutral(v, lib) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [neutral(v, lib) for v in value]
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return value
    return str(value).replace("tensorgrad", "torch") if isinstance(value, (lib.dtype, lib.device)) else type(value).__name__


@dataclass
class Array:
    """What is seen of a tensor."""

    dtype: str
    values: np.ndarray
    strides: list[int]
    grad: bool


def outcome(call: Call, lib: Any) -> dict[str, Any]:
    """What a call comes to: a result and gradients, or an error; and the tensors it was given, afterwards."""
    leaves: list[Any] = []
    tensors: list[Any] = []
    args, kwargs = made(call.args, lib, leaves, tensors), {k: made(v, lib, leaves, tensors) for k, v in call.kwargs.items()}
    before = [neutral(t, lib) for t in tensors]
    lib.manual_seed(5)
    seen: dict[str, Any] = {}
    try:
        result = _looked_up(call.path, lib)(*args, **kwargs)
        seen["result"] = neutral(result, lib)
    except Exception as error:
        seen["error"] = _named(error)
        seen["kept"] = all(difference(a, neutral(t, lib), strict=True) is None for a, t in zip(before, tensors))
        return seen
    seen["inputs"] = [neutral(t, lib) for t in tensors]
    try:
        outs = [o for o in _flat(result, lib) if o.requires_grad]
        if leaves and outs:
            weights = [lib.cos(lib.arange(o.numel(), dtype=lib.float64)).to(o.dtype).reshape(o.shape) for o in outs]
            seen["gradients"] = [neutral(g, lib) for g in lib.autograd.grad(outs, leaves, weights, allow_unused=True)]
    except Exception as error:
        seen["gradients"] = _named(error)
    return seen


def _named(error: Exception) -> tuple[str, str]:
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return type(error).__name__.lstrip("_"), text.replace("tensorgrad", "torch").split("\n")[0]


def _flat(result: Any, lib: Any) -> list[Any]:
    if isinstance(result, lib.Tensor):
        return [result]
    return [t for part in result for t in _flat(part, lib)] if isinstance(result, (list, tuple)) else []


TOLERANCE = {"torch.float16": 2e-2, "torch.bfloat16": 8e-2, "torch.float32": 1e-3, "torch.complex64": 1e-3}


def difference(ours: Any, theirs: Any, strict: bool = False) -> str | None:
    """How two results differ."""
    if isinstance(theirs, (list, dict)) and type(ours) is type(theirs) and len(ours) == len(theirs):
        pairs = zip(ours.values(), theirs.values()) if isinstance(theirs, dict) else zip(ours, theirs)
        return next((d for a, b in pairs if (d := difference(a, b, strict)) is not None), None)
    if not isinstance(theirs, Array) or not isinstance(ours, Array):
        close = isinstance(theirs, (float, complex)) and isinstance(ours, type(theirs)) and np.isclose(ours, theirs, 1e-3, 1e-5, equal_nan=True)
        return None if type(ours) is type(theirs) and ours == theirs or close else f"{ours!r:.60} for {theirs!r:.60}"
    for what, a, b in (("dtype", ours.dtype, theirs.dtype), ("shape", ours.values.shape, theirs.values.shape), ("requires_grad", ours.grad, theirs.grad)):
        if a != b:
            return f"{what} {a} for {b}"
    a, b = ours.values, theirs.values
    if strict or b.dtype.kind not in "fc":
        same = np.array_equal(a, b, equal_nan=b.dtype.kind in "fc")
    else:
        tolerance = TOLERANCE.get(theirs.dtype, 1e-6)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1) if b.size else 1
        same = bool(np.isclose(a, b, tolerance, tolerance * .1 * min(scale, 1e4), equal_nan=True).all())
    return None if same else f"values {np.array2string(a.reshape(-1)[:6], precision=5)} for {np.array2string(b.reshape(-1)[:6], precision=5)}"


UNSTABLE = re.compile(r"INTERNAL ASSERT|enforce fail|0x[0-9a-f]{4}|\.cpp|Please report a bug|aten::|^$")
NO_ROOM = re.compile(r"enforce fail|can't allocate|Storage size calculation overflowed|bad_alloc|allocate|too large|overflow")


WIDER = re.compile(r"not implemented for|not differentiable with respect to|derivative for .* is not implemented|not support automatic differentiation|"
                   r"Autograd not support dtype")


def verdict(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[str, str] | None:
    """The class of a difference, and what differs."""
    if "error" in theirs and "error" in ours:
        if not ours["kept"]:
            return "inputs", "changed by a call that raised"
        (a, said), (b, says) = ours["error"], theirs["error"]
        if a != b:
            return None if NO_ROOM.search(says) else ("type", f"{a}({said[:90]}) for {b}({says[:90]})")
        return None if said == says or UNSTABLE.search(says) or b == "NotImplementedError" else ("message", f"{said[:150]} ≠ {says[:150]}")
    if "error" in theirs:
        return "wider" if WIDER.search(theirs["error"][1]) else "missing error", f"{theirs['error'][0]}: {theirs['error'][1][:150]}"
    if "error" in ours:
        return "extra error", f"{ours['error'][0]}: {ours['error'][1][:150]}"
    for part, kind in (("result", "values"), ("inputs", "values"), ("gradients", "gradients")):
        a, b = ours.get(part), theirs.get(part)
        if part == "gradients" and (isinstance(a, tuple) or isinstance(b, tuple)) and a is not None and b is not None:
            if isinstance(a, tuple) and isinstance(b, tuple):
                return None
            return "wider" if isinstance(b, tuple) and WIDER.search(b[1]) else kind, f"gradients: {a!r:.80} for {b!r:.150}"
        if (found := difference(a, b)) is not None:
            unkept = "requires_grad" in found and isinstance(grads := theirs.get("gradients"), tuple) and WIDER.search(grads[1])
            return "wider" if part == "gradients" and b is None or unkept or "requires_grad True for" in found else kind, f"{part}: {found}"
    a, b = ([x.strides for x in _arrays(side["result"])] for side in (ours, theirs))
    return None if a == b else ("strides", f"{a} for {b}")


def _arrays(value: Any) -> list[Array]:
    if isinstance(value, list):
        return [x for part in value for x in _arrays(part)]
    return [value] if isinstance(value, Array) else []


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def child(seed: int, numbers: list[int], paths: list[str], pipe: int) -> None:
    """Run calls, and write what each came to; before each, in which library it is."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for number in numbers:
        call = call_of(seed, number, paths)
        os.write(pipe, pickle.dumps((number, "theirs", repr(call)[:1500])))
        theirs = outcome(call, torch)
        os.write(pipe, pickle.dumps((number, "ours", "")))
        ours = outcome(call, tensorgrad)
        os.write(pipe, pickle.dumps((number, "done", verdict(ours, theirs))))
    os._exit(0)


def run(seed: int, numbers: list[int], paths: list[str]) -> list[tuple[int, str, str, str]]:
    """The differences of these calls: number, class, what differs, the call."""
    found = []
    waiting = list(numbers)
    while waiting:
        batch = waiting[:BATCH]
        reader, writer = os.pipe()
        if (pid := os.fork()) == 0:
            try:
                child(seed, batch, paths, writer)
            finally:
                os._exit(1)
        os.close(writer)
        number, where, shown, ended = batch[0], "theirs", "?", ""
        with os.fdopen(reader, "rb", 0) as stream:
            while True:
                if not select.select([stream], [], [], SECONDS)[0]:
                    ended = "hang"
                    break
                try:
                    number, where, said = pickle.load(stream)
                except EOFError:
                    break
                if where == "theirs":
                    shown = said
                elif where == "done" and said is not None:
                    found.append((number, *said, shown))
        if ended:
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if where != "done" or number != batch[-1]:
            if where == "ours":
                found.append((number, ended or "crash", f"status {status}", shown))
            waiting = waiting[waiting.index(number) + 1:]
        else:
            waiting = waiting[len(batch):]
    return found


def campaign(seed: int, calls: int, jobs: int) -> list[tuple[int, str, str, str]]:
    """The differences of many calls, made in several processes."""
    paths = targets()
    random.Random(seed).shuffle(paths)
    readers = []
    for job in range(jobs):
        reader, writer = os.pipe()
        if os.fork() == 0:
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(run(seed, list(range(calls))[job::jobs], paths), stream)
            os._exit(0)
        os.close(writer)
        readers.append(os.fdopen(reader, "rb"))
    return sorted(difference for stream in readers for difference in pickle.load(stream))


def allowed(found: tuple[int, str, str, str]) -> str | None:
    """Why a difference is one that may be."""
    line = f"{found[1]}: {found[3]} → {found[2]}"
    return next((reason for pattern, reason in ALLOWED if re.search(pattern, line)), None)


def main() -> int:
    """Print the differences, those that are allowed last, and how many of each class there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="run one call and show both outcomes")
    parser.add_argument("--messages", action="store_true", help="show differences of messages too")
    given = parser.parse_args()
    if given.only is not None:
        paths = targets()
        random.Random(given.seed).shuffle(paths)
        call = call_of(given.seed, given.only, paths)
        print(call, "PyTorch", outcome(call, torch), "tensorgrad", outcome(call, tensorgrad), sep="\n")
        return 0
    found = campaign(given.seed, given.calls, given.jobs)
    counts = Counter(kind for _, kind, _, _ in found)
    for each in sorted(found, key=lambda d: KINDS.index(d[1])):
        if each[1] in COUNTED or given.messages:
            print(f"#{each[0]} {each[1]}: {each[3]}\n      → {each[2]}" + (f"\n      allowed: {why}" if (why := allowed(each)) else ""))
    differing = [d for d in found if d[1] in COUNTED]
    print(f"{given.calls} calls, {len(differing)} differ ({len(differing) / given.calls:.3%}), {sum(allowed(d) is None for d in differing)} without a reason: "
          + ", ".join(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind]))
    return int(any(allowed(d) is None for d in differing))


VALID = _valid()

if __name__ == "__main__":
    sys.exit(main())
