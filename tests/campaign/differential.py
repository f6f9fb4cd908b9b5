"""A differential fuzzer: calls of every public function, with arguments that fit and that do not, beside PyTorch.

    python tests/campaign/differential.py --calls 20000 --seed 1 --jobs 2      differences, by class
    python tests/campaign/differential.py --seed 1 --only 1234                 one of these calls

Two libraries agree about a call if both refuse it, with an exception of the same type, or both return: tensors of the
same shapes, dtypes, strides and values, with the same gradients; and if a refusal leaves the arguments as they were.
Counted apart are messages, and what is wider here: calls that PyTorch refuses for want of a kernel for a dtype, of a
    way through a layout, or of what the library of transforms that it is built with can do; gradients
for which it has no derivative, or raises; finer values, which are those that PyTorch itself computes in double
precision, rounded; and gradients that
are not the derivative of what it computes, where ours are: central differences decide. Where PyTorch's gradient is
    infinite or NaN there is none to
compare with. Results that a function does not promise number by number are compared by what it does promise: see
`differential_meaning`.

Arguments come from the tables of valid calls (`differential_calls`), from the samples of the ops, and from the
signatures of functions; then some are
changed: to other shapes, dtypes, layouts and values, to absurd numbers, to values of other types. A call is a function
    of the seed and its number.
Calls run in processes with little memory, of which one may crash or hang: the next call then has a new process.
"""
from __future__ import annotations

import argparse
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

for _pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_pool}_NUM_THREADS", "1")
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1]),
                str(Path(__file__).parents[1] / "common")]

import numpy as np  # noqa: E402
import numpy.fft  # noqa: E402, F401  (before there is little memory)
import torch  # noqa: E402
from campaign.differential_allowed import ALLOWED  # noqa: E402
from campaign.differential_arguments import Call, call_of, looked_up, made, targets  # noqa: E402
from campaign.differential_meaning import alike, derivative, wide  # noqa: E402

import tensorgrad  # noqa: E402

BATCH, SECONDS, ROOM = 250, 20.0, 3 << 30       # calls of a process, the time of a call, the memory of a process
KINDS = ("crash", "hang", "inputs", "values", "gradients", "strides", "missing error", "extra error", "type", "wider",
         "finer", "derivative", "message")
COUNTED = KINDS[:-4]


# ── one call in both libraries ────────────────────────────────────────────────────────────────────────────────────────


def neutral(value: Any, lib: Any) -> Any:
    """A result with NumPy's arrays in place of tensors."""
    if isinstance(value, lib.Tensor):
        # of which NumPy borrows the memory, which cannot be resized then
        x = value.detach().clone().resolve_conj().resolve_neg()
        wide = x.float() if x.dtype in (lib.bfloat16, lib.float16) else x
        strides = [s for s, n in zip(value.stride(), value.shape) if n > 1] if value.numel() else []
        # that an integer requires one is an oversight of PyTorch's
        grad = value.requires_grad and (x.dtype.is_floating_point or x.dtype.is_complex)
        return Array(str(x.dtype).replace("tensorgrad", "torch"), wide.numpy(force=True), strides, grad)
    if isinstance(value, dict):
        return {k: neutral(v, lib) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [neutral(v, lib) for v in value]
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return value
    return (str(value).replace("tensorgrad", "torch") if isinstance(value, (lib.dtype, lib.device))
            else type(value).__name__)


@dataclass
class Array:
    """The parts of a tensor that are compared."""

    dtype: str
    values: np.ndarray
    strides: list[int]
    grad: bool


def outcome(call: Call, lib: Any) -> dict[str, Any]:
    """The outcome of a call: a result and gradients, or an error; and the tensors it was given, afterwards."""
    leaves: list[Any] = []
    tensors: list[Any] = []
    args, kwargs = (made(call.args, lib, leaves, tensors),
                    {k: made(v, lib, leaves, tensors) for k, v in call.kwargs.items()})
    before = [neutral(t, lib) for t in tensors]
    lib.manual_seed(5)
    seen: dict[str, Any] = {}
    try:
        result = looked_up(call.path, lib)(*args, **kwargs)
        seen["result"] = neutral(result, lib)
    except Exception as error:
        seen["error"] = _named(error)
        seen["kept"] = all(difference(a, neutral(t, lib), strict=True) is None for a, t in zip(before, tensors))
        return seen
    seen["inputs"] = [neutral(t, lib) for t in tensors]
    try:
        outs = [o for o in _flat(result, lib) if o.requires_grad and (o.dtype.is_floating_point or o.dtype.is_complex)]
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


def difference(ours: Any, theirs: Any, strict: bool = False, least: float = 0, rounding: float = 0,
               defined: bool = False) -> str | None:
    """How two results differ, by more than a relative tolerance of at least `least`, and `rounding`; `defined`: where
    theirs are finite numbers.
    """
    if isinstance(theirs, (list, dict)) and type(ours) is type(theirs) and len(ours) == len(theirs):
        pairs = zip(ours.values(), theirs.values()) if isinstance(theirs, dict) else zip(ours, theirs)
        return next((d for a, b in pairs if (d := difference(a, b, strict, least, rounding, defined)) is not None),
                    None)
    if not isinstance(theirs, Array) or not isinstance(ours, Array):
        close = (isinstance(theirs, (float, complex)) and isinstance(ours, type(theirs))
                 and np.isclose(ours, theirs, 1e-3, 1e-5, equal_nan=True))
        return None if type(ours) is type(theirs) and ours == theirs or close else f"{ours!r:.60} for {theirs!r:.60}"
    for what, a, b in (("dtype", ours.dtype, theirs.dtype), ("shape", ours.values.shape, theirs.values.shape),
                       ("requires_grad", ours.grad, theirs.grad)):
        if a != b:
            return f"{what} {a} for {b}"
    a, b = ours.values, theirs.values
    if strict or b.dtype.kind not in "fc":
        same = np.array_equal(a, b, equal_nan=b.dtype.kind in "fc")
    else:
        tolerance = max(TOLERANCE.get(theirs.dtype, 1e-6), least)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1) if b.size else 1
        absolute = max(tolerance * .1 * min(scale, 1e4), rounding * tolerance)
        same = bool((np.isclose(a, b, tolerance, absolute, equal_nan=True) | (defined & ~np.isfinite(b))).all())
    return (None if same else f"values {np.array2string(a.reshape(-1)[:6], precision=5)} for "
                              f"{np.array2string(b.reshape(-1)[:6], precision=5)}")


UNSTABLE = re.compile(r"INTERNAL ASSERT|enforce fail|0x[0-9a-f]{4}|\.cpp|Please report a bug|aten::|^$")
NO_ROOM = re.compile(r"enforce fail|can't allocate|Storage size calculation overflowed|bad_alloc|allocate|too "
                     r"large|overflow")


WIDER = re.compile(r"not implemented for|not differentiable with respect to|derivative for .* is not implemented|not "
                   r"support automatic differentiation|"
                   r"Autograd not support dtype|Got unsupported ScalarType ComplexHalf|Could not run 'aten::|"
                   r"view size is not compatible with input|Intel oneMKL")


def verdict(ours: dict[str, Any], theirs: dict[str, Any], call: Call) -> tuple[str, str] | None:
    """The class of a difference, and what differs."""
    if "error" in theirs and "error" in ours:
        if not ours["kept"]:
            return "inputs", "changed by a call that raised"
        (a, said), (b, says) = ours["error"], theirs["error"]
        if a != b:
            return None if NO_ROOM.search(says) else ("type", f"{a}({said[:90]}) for {b}({says[:90]})")
        return (None if said == says or UNSTABLE.search(says) or b == "NotImplementedError"
                else ("message", f"{said[:150]} ≠ {says[:150]}"))
    if "error" in theirs:
        return ("wider" if WIDER.search(theirs["error"][1]) else "missing error",
                f"{theirs['error'][0]}: {theirs['error'][1][:150]}")
    if "error" in ours:
        return "extra error", f"{ours['error'][0]}: {ours['error'][1][:150]}"
    return differing(ours, theirs, call) or strided(ours, theirs)


def differing(ours: dict[str, Any], theirs: dict[str, Any], call: Call) -> tuple[str, str] | None:
    """How two results that are there differ in their values or gradients."""
    given = _arrays(theirs["inputs"])
    results = _arrays(theirs["result"])
    huge = max((float(np.abs(x.values[np.isfinite(x.values)]).max(initial=0))
                for x in given if x.values.dtype.kind in "fc"), default=0)
    narrowest = max((TOLERANCE.get(x.dtype, 0) for x in results), default=0)
    for part, kind in (("result", "values"), ("inputs", "values"), ("gradients", "gradients")):
        a, b = ours.get(part), theirs.get(part)
        if part == "gradients" and (isinstance(a, tuple) or isinstance(b, tuple)) and a is not None and b is not None:
            if isinstance(a, tuple) and isinstance(b, tuple):
                return None
            return "wider" if isinstance(b, tuple) else kind, f"gradients: {a!r:.80} for {b!r:.150}"
        last = part == "gradients"
        if (found := difference(a, b, False, narrowest if last else 0, 0 if last else 1e-3 * huge, last)) is not None:
            if not last and alike(call, given, *([x for x in _arrays(side[part])] for side in (ours, theirs))):
                return None
            if last and is_derivative(call):
                return "derivative", found
            if kind == "values" and is_finer(call, ours, part):
                return "finer", found
            unkept = ("requires_grad" in found and isinstance(grads := theirs.get("gradients"), tuple)
                      and WIDER.search(grads[1]))
            return ("wider" if part == "gradients" and b is None or unkept or "requires_grad True for" in found
                    else kind, f"{part}: {found}")
    return None


def strided(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[str, str] | None:
    """How the layouts of two results differ. Strides along axes of length 1, and of what is empty, lead nowhere."""
    a, b = ([x.strides for x in _arrays(side["result"])] for side in (ours, theirs))
    return None if a == b else ("strides", f"{a} for {b}")


def is_finer(call: Call, ours: dict[str, Any], part: str) -> bool:
    """Tell whether our result is, within the tolerance of its dtypes, that of PyTorch in double precision, where
    PyTorch's own is not.
    """
    if (exact := wide(call)) == call:
        return False
    theirs = outcome(exact, torch).get(part)
    return theirs is not None and difference(ours[part], narrowed(theirs, ours[part])) is None


def narrowed(exact: Any, like: Any) -> Any:
    """Results in double precision, rounded to the dtypes of others."""
    if isinstance(exact, list) and isinstance(like, list) and len(exact) == len(like):
        return [narrowed(x, y) for x, y in zip(exact, like)]
    if not isinstance(exact, Array) or not isinstance(like, Array):
        return exact
    with np.errstate(all="ignore"):
        values = torch.from_numpy(exact.values).to(getattr(torch, like.dtype.removeprefix("torch.")))
    return replace(neutral(values, torch), strides=exact.strides, grad=exact.grad)


def is_derivative(call: Call) -> bool:
    """Tell whether our gradients are, in double precision, the derivatives of what PyTorch computes."""
    try:
        found = outcome(call := wide(call), tensorgrad).get("gradients")
        return isinstance(found, list) and derivative(call, found)
    except Exception:
        return False


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
        os.write(pipe, pickle.dumps((number, "done", verdict(ours, theirs, call))))
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
    parser.add_argument("--most", type=int, default=0,
                        help="how many differences without a reason are no failure, if they are no crash, hang or "
                             "change")
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
    for each in sorted(found, key=lambda d: (allowed(d) is not None, KINDS.index(d[1]))):
        if each[1] in COUNTED or given.messages:
            print(f"#{each[0]} {each[1]}: {each[3]}\n      → {each[2]}"
                  + (f"\n      allowed: {why}" if (why := allowed(each)) else ""))
    differing = [d for d in found if d[1] in COUNTED]
    open_ = [d for d in differing if allowed(d) is None]
    print(f"{given.calls} calls, {len(differing)} differ ({len(differing) / given.calls:.3%}), {len(open_)} without a "
          f"reason: "
          + ", ".join(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind]))
    return int(len(open_) > given.most or any(d[1] in ("crash", "hang", "inputs") for d in open_))


if __name__ == "__main__":
    sys.exit(main())
