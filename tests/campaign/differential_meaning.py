"""Results that are not the same numbers and mean the same: what a function promises of its result, for those that
promise less than each number.

Factors are compared by what they multiply to, places by what stands there, and gradients by the differences of
PyTorch's own results.
"""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from campaign.differential_arguments import Call, T, looked_up, made

NARROW = {"float32": "float64", "float16": "float64", "bfloat16": "float64", "complex64": "complex128"}
EXACT = {"torch.float64": 1e-9, "torch.complex128": 1e-9}


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


# ── factors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def orthonormal(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return adjoint(x) @ x, np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-2], x.shape[-1], x.shape[-1]))


def of_svd(a: np.ndarray, u: np.ndarray, s: np.ndarray, v: np.ndarray) -> list[Any]:
    k = s.shape[-1]
    return [((u[..., :k] * s[..., None, :]) @ adjoint(v[..., :k]), a), orthonormal(u), orthonormal(v),
            (np.sort(s)[..., ::-1], s)]


def of_qr(a: np.ndarray, q: np.ndarray, r: np.ndarray) -> list[Any]:
    return ([(q @ r, a), orthonormal(q), (np.triu(r), r)] if q.ndim == a.ndim
            else [(adjoint(r) @ r, adjoint(a) @ a), (np.triu(r), r)])


def of_geqrf(a: np.ndarray, packed: np.ndarray, tau: np.ndarray) -> list[Any]:
    """R, and the reflections 1 − τ·v·vᴴ whose product with it is A."""
    whole = np.triu(packed)
    for i in range(tau.shape[-1] - 1, -1, -1):
        v = np.tril(packed, -1)[..., i:i + 1] + np.eye(packed.shape[-2])[:, i:i + 1]
        whole = whole - tau[..., i, None, None] * v @ (adjoint(v) @ whole)
    return [(whole, a)]


def of_eigh(a: np.ndarray, values: np.ndarray, vectors: np.ndarray, lower: bool = True) -> list[Any]:
    half = np.tril(a, -1) if lower else adjoint(np.triu(a, 1))
    whole = half + adjoint(half) + np.eye(a.shape[-1]) * a.real
    return [((vectors * values[..., None, :]) @ adjoint(vectors), whole), orthonormal(vectors),
            (np.sort(values), values)]


def of_eig(a: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> list[Any]:
    return [(a @ vectors, vectors * values[..., None, :]), (np.linalg.norm(vectors, axis=-2), np.ones(values.shape))]


def of_pinv(a: np.ndarray, x: np.ndarray) -> list[Any]:
    return [(a @ x @ a, a), (x @ a @ x, x), (adjoint(a @ x), a @ x), (adjoint(x @ a), x @ a)]


def of_lu(a: np.ndarray, packed: np.ndarray, pivots: np.ndarray, *info: np.ndarray) -> list[Any]:
    """P·L·U, each exchange of rows undone from the last on."""
    m, n = packed.shape[-2:]
    k = min(m, n)
    whole = (np.tril(packed, -1)[..., :k] + np.eye(m, k)) @ np.triu(packed)[..., :k, :]
    flat, rows = whole.reshape(-1, m, n), pivots.real.astype(int).reshape(-1, k) - 1
    for matrix, exchanges in zip(flat, rows, strict=True):
        for i in range(k - 1, -1, -1):
            matrix[[i, exchanges[i]]] = matrix[[exchanges[i], i]]
    return [(flat.reshape(a.shape), a)]


FACTORS = {"linalg.svd": lambda a, u, s, vh: of_svd(a, u, s, adjoint(vh)), "svd": of_svd, "linalg.qr": of_qr,
           "qr": of_qr, "geqrf": of_geqrf,
           "linalg.eigh": of_eigh, "linalg.eig": of_eig, "linalg.lu_factor": of_lu, "linalg.lu_factor_ex": of_lu,
           "lu": of_lu,
           "pinverse": of_pinv, "linalg.pinv": of_pinv}


def factors(name: str, a: Any, found: list[Any]) -> bool:
    """Tell whether these are factors of A, as the function promises them. Of infinities and NaN there are none."""
    if name not in FACTORS or a.values.ndim < 2:
        return False
    if not np.isfinite(a.values).all():
        return True
    tolerance = EXACT.get(a.dtype, 1e-4)
    x = a.values.astype(np.complex128 if np.iscomplexobj(a.values) else np.float64)
    with np.errstate(all="ignore"):
        pairs = FACTORS[name](x, *[part.values.astype(np.complex128 if np.iscomplexobj(part.values) else np.float64)
                                   for part in found])
    return all(bool((np.abs(b - c) <= tolerance * max(np.abs(c).max(initial=0), np.finfo(np.float32).tiny)).all())
               for b, c in pairs)


# ── places ────────────────────────────────────────────────────────────────────────────────────────────────────────────

CHOOSING = frozenset("kthvalue median nanmedian mode min max topk sort argsort".split())


def places(name: str, x: Any, found: list[Any], theirs: list[Any]) -> bool:
    """Tell whether the places found hold the same elements as theirs: which of equal ones is named is left open."""
    if name not in CHOOSING or not found or found[-1].dtype != "torch.int64":
        return False
    where, other = found[-1].values, theirs[-1].values
    if any(not np.array_equal(a.values, b.values, equal_nan=True)
           for a, b in zip(found[:-1], theirs[:-1], strict=True)):
        return False
    for axis in range(x.values.ndim):
        i, j = (p if p.ndim == x.values.ndim else np.expand_dims(p, axis) for p in (where, other))
        if (i.shape[:axis] + i.shape[axis + 1:] == x.values.shape[:axis] + x.values.shape[axis + 1:]
                and i.max(initial=0) < x.values.shape[axis]):
            held = ([np.take_along_axis(x.values, p, axis) for p in (i, j)] if j.max(initial=0) < x.values.shape[axis]
                    else [0, 1])
            if np.array_equal(*held, equal_nan=x.values.dtype.kind in "fc"):
                return True
    return False


def kept(call: Call, found: Any, theirs: Any) -> bool:
    """Tell whether a tensor that was resized holds what it held, in the order of its memory: what was never written is
    not defined.
    """
    if not call.path.endswith((".resize_", ".resize_as_")):
        return False
    n = int(np.prod(call.args[0].shape))
    return np.array_equal(found.values.reshape(-1)[:n], theirs.values.reshape(-1)[:n],
                          equal_nan=found.values.dtype.kind in "fc")


def alike(call: Call, inputs: list[Any], found: list[Any], theirs: list[Any]) -> bool:
    """Tell whether results that differ both are what the function promises."""
    if (not inputs or not found or [(x.dtype, x.values.shape, x.grad) for x in found]
            != [(x.dtype, x.values.shape, x.grad) for x in theirs]):
        return False
    name = re.sub(r"^(torch|Tensor)\.", "", call.path)
    return factors(name, inputs[0], found) or places(name, inputs[0], found, theirs) or kept(call, found[0], theirs[0])


# ── derivatives ───────────────────────────────────────────────────────────────────────────────────────────────────────


def widened(value: Any) -> Any:
    if isinstance(value, T):
        return replace(value, dtype=NARROW.get(value.dtype, value.dtype))
    return type(value)(map(widened, value)) if isinstance(value, (list, tuple)) else value


def wide(call: Call) -> Call:
    """The call in double precision."""
    return Call(call.path, [widened(v) for v in call.args], {k: widened(v) for k, v in call.kwargs.items()})


def tensors_of(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for part in result for t in tensors_of(part)] if isinstance(result, (list, tuple)) else []


def summed(call: Call, way: list[np.ndarray] | None, step: float) -> tuple[float, list[Any]]:
    """The sum of PyTorch's results with the fuzzer's weights, some steps along a way from the leaves; and the
    leaves.
    """
    leaves: list[Any] = []
    args, kwargs = made(call.args, torch, leaves, []), {k: made(v, torch, leaves, []) for k, v in call.kwargs.items()}
    for leaf, direction in zip(leaves, way or [], strict=False):
        leaf.data.add_(torch.tensor(direction).to(leaf.dtype), alpha=step)
    torch.manual_seed(5)
    outs = [o for o in tensors_of(looked_up(call.path, torch)(*args, **kwargs)) if o.requires_grad]
    weights = [torch.cos(torch.arange(o.numel(), dtype=torch.float64)).to(o.dtype).reshape(o.shape) for o in outs]
    return float(sum((w.conj() * o.detach()).sum().real for w, o in zip(weights, outs, strict=True))), leaves


def derivative(call: Call, gradients: list[Any]) -> bool:
    """Tell whether the gradients of a call in double precision are the derivatives of what PyTorch computes, by central
    differences.
    """
    rng = np.random.default_rng(0)
    leaves = summed(call, None, 0)[1]
    for _ in range(3):
        way = [rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.is_complex() else 0) for x in leaves]
        slope = (summed(call, way, 1e-6)[0] - summed(call, way, -1e-6)[0]) / 2e-6
        ours = sum(float((g.values.conj() * d).sum().real) for g, d in zip(gradients, way, strict=True)
                   if g is not None)
        if not abs(slope - ours) <= 1e-4 * max(abs(slope), abs(ours), 1):
            return False
    return True
