"""Check gradients against central differences.

Moving an input x along u changes the outputs by J u ≈ (f(x + εu) - f(x - εu)) / 2ε; backward gives vᵀJ for any v, and
forward mode J u. The slow check takes all unit vectors and compares the Jacobians J element by element. The fast one
compares vᵀJu for one random u and v. Each function below sees J as a matrix (elements of the input, of the output).

Complex numbers: an output is checked as two functions, its real and its imaginary part. An input moves along both axes,
which makes ∂f/∂(Re x) + i ∂f/∂(Im x), the gradient that backward gives. Forward mode sees the two parts of an input as
two real inputs instead.
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from operator import attrgetter
from types import ModuleType
from typing import Any

from .. import api as tg
from .. import autograd
from ..core.class_hooks import among
from .sparse_gradcheck import takes_sparse

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A gradient that `gradcheck` or `gradgradcheck` found wrong. PyTorch: torch.autograd.gradcheck.GradcheckError."""


@takes_sparse
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func(*inputs)` with central differences; True, or a GradcheckError.

    Every input that requires a gradient is moved by `eps`, element by element (`fast_mode`: all at once, in one random
    direction), and |analytical - numerical| <= atol + rtol |numerical| must hold. Give double precision inputs.
    Then: gradients of a zero gradient are zero; backward is deterministic (up to `nondet_tol`); gradients may be
    undefined (`check_undefined_grad`); vmap of backward agrees with backward (`check_batched_grad`).
    With `raise_exception=False` the result is False instead of an error.
    PyTorch: torch.autograd.gradcheck.gradcheck.

    >>> import tensorgrad as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, (x,))
    True
    """
    _expect_one(check_forward_ad=check_forward_ad, check_backward_ad=check_backward_ad)
    _expect_with("check_batched_grad", check_batched_grad, check_backward_ad=check_backward_ad)
    _expect_with("check_batched_forward_grad", check_batched_forward_grad, check_forward_ad=check_forward_ad)
    inputs = _as_tuple(inputs)
    _require_good_inputs(inputs)
    try:
        check = _Check(func, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
        if check_backward_ad:
            for part in _real_outputs(check):
                _compare(part, forward=False)
        if check_forward_ad:
            for part in _real_inputs(check):
                _compare(part, forward=True)
                if check_undefined_grad:
                    _check_undefined_tangents(part)
        if check_batched_forward_grad:
            _check_batched_forward(check)
        if check_backward_ad and check.outputs:
            if check_batched_grad:
                _check_batched_backward(check)
            _check_zero_gradients(check, bool(masked))
            if check_undefined_grad:
                _check_undefined_gradients(check)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@takes_sparse
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare second derivatives with central differences of the first; True, or a GradcheckError.

    This is `gradcheck` of (inputs, grad_outputs) -> gradients of `inputs`, by backward through backward
    (`check_rev_over_rev`) or forward mode through it (`check_fwd_over_rev`). Without `grad_outputs`, random ones in
    [-1, 1] are made, and non-contiguous ones if asked for. The other arguments are those of `gradcheck`.
    PyTorch: torch.autograd.gradcheck.gradgradcheck.

    >>> import tensorgrad as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.exp, (x,))
    True
    """
    _expect_one(check_fwd_over_rev=check_fwd_over_rev, check_rev_over_rev=check_rev_over_rev)
    _expect_with("check_undefined_grad", check_undefined_grad, check_rev_over_rev=check_rev_over_rev)
    _expect_with("check_batched_grad", check_batched_grad, check_rev_over_rev=check_rev_over_rev)
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = [y for y in _as_tuple(func(*inputs)) if _requires_grad(y)]
        grad_outputs = tuple(_random_gradient(y, gen_non_contig_grad_outputs) for y in outputs)
    arguments = inputs + _as_tuple(grad_outputs)
    return gradcheck(
        _gradients_of(func, len(inputs), [_requires_grad(x) for x in arguments]),
        arguments,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _gradients_of(func: Callable[..., Any], count: int, differentiable: Sequence[bool]) -> Callable[..., Any]:
    """Return the function (inputs, gradients of outputs) -> gradients of inputs, where `func` has `count` inputs."""

    def gradients(*arguments: Any) -> tuple[Any, ...]:
        given = [x.requires_grad_() if needs else x for x, needs in zip(arguments, differentiable)]
        points, weights = given[:count], given[count:]
        outputs = [y for y in _as_tuple(func(*points)) if _requires_grad(y)]
        wanted = [x for x, needs in zip(points, differentiable) if needs]
        grads = autograd.grad(outputs, wanted, weights, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradients


def _expect_one(**options: bool) -> None:
    if not any(options.values()):
        raise AssertionError(f"Expected at least one of {' or '.join(options)} to be True")


def _expect_with(option: str, given: bool, **required: bool) -> None:
    ((name, value),) = required.items()
    if given and not value:
        raise AssertionError(f"Setting {option}=True requires {name} to be True")


# ── the checks ─────────────────────────────────────────────────────────────────────────────────
@dataclass
class _Check:
    """A function at a point, and how closely to look. `part` says which part of complex tensors is looked at."""

    func: Callable[..., Any]
    inputs: tuple[Any, ...]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    fast_mode: bool
    part: str = ""
    complex_indices: frozenset[int] = frozenset()
    values: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.values = self.evaluate()
        self.positions = [i for i, y in enumerate(self.values) if y.requires_grad]

    def evaluate(self) -> list[Any]:
        """The outputs that could have a gradient: of floating or complex numbers."""
        return self.continuous(self.func(*self.inputs))

    @staticmethod
    def continuous(outputs: Any) -> list[Any]:
        return [y for y in _as_tuple(outputs) if y.is_floating_point() or y.is_complex()]

    @property
    def outputs(self) -> list[Any]:
        return [self.values[i] for i in self.positions]

    @property
    def wanted(self) -> list[Any]:
        return [x for x in self.inputs if _requires_grad(x)]


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _requires_grad(x: Any) -> bool:
    return isinstance(x, tg.Tensor) and bool(x.requires_grad)


def _require_good_inputs(inputs: tuple[Any, ...]) -> None:
    for i, x in enumerate(inputs):
        if not _requires_grad(x):
            continue
        if x.dtype not in (tg.float64, tg.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(stride == 0 and n > 1 for stride, n in zip(x.stride(), x.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    if not any(map(_requires_grad, inputs)):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _real_outputs(check: _Check) -> Iterator[_Check]:
    """Yield the check itself, or, if outputs are complex, checks of their imaginary and their real parts."""
    if not any(y.is_complex() for y in check.values):
        yield check
        return
    indices = frozenset(i for i, y in enumerate(check.outputs) if y.is_complex())
    for part, take in (("imaginary", tg.imag), ("real", tg.real)):

        def func(*inputs: Any, take: Any = take) -> tuple[Any, ...]:
            return tuple(take(y) if y.is_complex() else y for y in check.continuous(check.func(*inputs)))

        yield replace(check, func=func, part=part, complex_indices=indices)


def _real_inputs(check: _Check) -> Iterator[_Check]:
    """Yield the check itself, or, if inputs are complex, checks of their imaginary and their real parts."""
    indices = frozenset(i for i, x in enumerate(check.inputs) if isinstance(x, tg.Tensor) and x.is_complex())
    if not indices:
        yield check
        return
    parts = {
        "imaginary": (tg.imag, lambda moved, x: tg.real(x) + moved * 1j),
        "real": (tg.real, lambda moved, x: moved + tg.imag(x) * 1j),
    }
    for part, (take, put) in parts.items():

        def func(*moved: Any, put: Any = put) -> Any:
            pairs = enumerate(zip(moved, check.inputs))
            return check.func(*(put(m, x) if i in indices else m for i, (m, x) in pairs))

        inputs = tuple(take(x) if i in indices else x for i, x in enumerate(check.inputs))
        yield replace(check, func=func, inputs=inputs, part=part, complex_indices=indices)


# ── numerical: move an input, look at the outputs ──────────────────────────────────────────────
def _slopes(check: _Check, entry: Any, step: Any, where: str) -> list[Any]:
    """(f(x + step) - f(x - step)) / 2ε of every output, flat. `entry` is a view of the input's own memory."""
    start = entry.clone()

    def outputs_at(point: Any) -> list[Any]:
        entry.copy_(point)
        return [y.clone() for y in check.evaluate()]  # a copy, since an output may be a view of the input

    try:
        before, after = outputs_at(start - step), outputs_at(start + step)
    finally:
        entry.copy_(start)
    for what in ("shape", "dtype"):
        for a, b in zip(before, after):
            if getattr(a, what) != getattr(b, what):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed {where}by "
                    f"{check.eps}, but got: {what}s {getattr(a, what)} and {getattr(b, what)}."
                )
    return [((b - a) / (2 * check.eps)).detach().reshape(-1) for a, b in zip(before, after)]


def _numerical_product(check: _Check, entry: Any, steps: Sequence[Any], where: str = "") -> list[Any]:
    """J u of every output, the entry moving along εu: by the first step and, if it is complex, the last times i."""
    slopes = _slopes(check, entry, steps[0], where)
    if not entry.is_complex():
        return slopes
    return [re + 1j * im for re, im in zip(slopes, _slopes(check, entry, steps[-1] * 1j, where))]


def _numerical_jacobians(check: _Check, x: Any) -> list[Any]:
    """J of every output, (elements of x, elements of the output)."""
    data = x.data
    places = product(*map(range, x.shape))
    return _stacked([_numerical_product(check, data[i], [check.eps], f"on index {i} ") for i in places], check.values)


def _stacked(rows: Sequence[Sequence[Any]], outputs: Sequence[Any]) -> list[Any]:
    """Stack rows of Jacobians, each with a part per output, to a matrix per output."""
    if not rows:
        return [y.new_zeros((0, y.numel())) for y in outputs]
    return [tg.stack(list(column)) for column in zip(*rows)]


# ── analytical: backward and forward mode ──────────────────────────────────────────────────────
def _unit_vectors(x: Any) -> Iterator[Any]:
    for k in range(x.numel()):
        unit = x.new_zeros(x.numel())
        unit[k] = 1
        yield unit.reshape(x.shape)


def _backward_products(check: _Check, output: Any, vectors: Iterable[Any]) -> list[Any]:
    """Return vᵀJ of one output per input, as (elements of x, vectors). Backward runs twice per vector."""
    pairs = [(_backward(check, output, v), _backward(check, output, v)) for v in vectors]
    for first, again in pairs:
        for a, b in zip(first, again):
            if a.numel() and (a - b).abs().max() > check.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {check.nondet_tol}."
                    "\n\nA function that is meant to be nondeterministic passes with a larger nondet_tol."
                )
    return [
        tg.stack([first[j] for first, _ in pairs], 1) if pairs else x.new_zeros((x.numel(), 0))
        for j, x in enumerate(check.wanted)
    ]


def _backward(check: _Check, output: Any, v: Any) -> list[Any]:
    wanted = check.wanted
    grads = autograd.grad(output, wanted, v, retain_graph=True, allow_unused=True)
    for x, g in zip(wanted, grads):
        if g is not None and check.check_grad_dtypes and g.dtype != x.dtype:
            raise GradcheckError("Gradient has dtype mismatch")
        if g is not None and g.shape != x.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
    return [x.new_zeros(x.numel()) if g is None else g.reshape(-1) for x, g in zip(wanted, grads)]


def _forward_product(check: _Check, x: Any, tangent: Any) -> list[Any]:
    """J u of every output that requires a gradient, flat, with u the tangent of input x."""
    ad = _feature("autograd.forward_ad", "check_forward_ad")
    with ad.dual_level():
        tangents = [_tangent_of(each, tangent if each is x else None) for each in check.inputs]
        pairs = [ad.unpack_dual(y) for y in _call_dual(check, tangents)]
        for value, t in pairs:
            if check.check_grad_dtypes and t is not None and value.is_complex() != t.is_complex():
                raise GradcheckError("Forward AD gradient has dtype mismatch.")
        products = [y.new_zeros(y.numel()) if t is None else t.reshape(-1) for y, t in pairs]
    return [products[i] for i in check.positions]


def _tangent_of(x: Any, tangent: Any) -> Any:
    if not _requires_grad(x):
        return None
    return tg.zeros_like(x.detach()) if tangent is None else tangent.reshape(x.shape).clone()


def _call_dual(check: _Check, tangents: Sequence[Any]) -> list[Any]:
    """The outputs at inputs that move along tangents; None: an input that stays."""
    ad = _feature("autograd.forward_ad", "check_forward_ad")
    plain = [x.detach() if _requires_grad(x) else x for x in check.inputs]
    duals = [x if t is None else ad.make_dual(x, t) for x, t in zip(plain, tangents)]
    return check.continuous(check.func(*duals))


def _feature(path: str, option: str) -> Any:
    """Return `torch.<path>`, or raise RuntimeError that names the option that needs it."""
    try:
        return attrgetter(path)(sys.modules[__name__.partition(".")[0]])
    except (AttributeError, ImportError) as error:
        raise RuntimeError(f"{option}=True needs torch.{path}, which is not available") from error


# ── numerical against analytical ───────────────────────────────────────────────────────────────
def _compare(check: _Check, *, forward: bool) -> None:
    if check.fast_mode:
        _compare_fast(check, forward)
    else:
        _compare_slow(check, forward)


def _compare_slow(check: _Check, forward: bool) -> None:
    numerical = [_numerical_jacobians(check, x) for x in check.wanted]
    if not check.positions:
        return _expect_zero(numerical, 0.0)
    analytical = _analytical_jacobians(check, forward)
    for i, position in enumerate(check.positions):
        for j, row in enumerate(numerical):
            if not _allclose(analytical[j][i], row[position], check.rtol, check.atol):
                raise GradcheckError(_mismatch(check, forward, i, j, row[position], analytical[j][i]))


def _analytical_jacobians(check: _Check, forward: bool) -> list[list[Any]]:
    """J for each input, and in it for each output that requires a gradient."""
    if not forward:
        by_output = [_backward_products(check, y, _unit_vectors(y)) for y in check.outputs]
        return [list(row) for row in zip(*by_output)]
    by_input = [[_forward_product(check, x, unit) for unit in _unit_vectors(x)] for x in check.wanted]
    return [_stacked(rows, check.outputs) for rows in by_input]


def _compare_fast(check: _Check, forward: bool) -> None:
    """vᵀJu for random u and v. A tolerance of atol for each element of J is one of atol Σv Σu for that number."""
    generator = tg.Generator()  # a separate generator: the program's random numbers stay unchanged
    directions = [[_random_unit(x, generator) for _ in range(1 + x.is_complex())] for x in check.wanted]
    weights = [] if forward else [_random_unit(y, generator) for y in check.outputs]
    numerical = [
        _numerical_product(check, x.data, [part.reshape(x.shape) * check.eps for part in u])
        for x, u in zip(check.wanted, directions)
    ]
    if not check.positions and not forward:
        return _expect_zero(numerical, check.nondet_tol)
    analytical = _analytical_products(check, directions, weights)
    for j, u in enumerate(directions):
        for i, position in enumerate(check.positions):
            a, n, atol = analytical[j][i], numerical[j][position], check.atol * float(sum(part.sum() for part in u))
            if weights:
                n, atol = (weights[i] * n).sum(), atol * float(weights[i].sum())
            if not _allclose(a, n, check.rtol, atol):
                raise GradcheckError(_mismatch(check, forward, i, j, n, a) + _slow_report(check, forward, i, j))


def _analytical_products(check: _Check, directions: list[Any], weights: list[Any]) -> list[list[Any]]:
    """vᵀJu for each input, and in it for each output that requires a gradient; Ju by forward mode if there is no v."""
    if not weights:
        return [_forward_product(check, x, u[0]) for x, u in zip(check.wanted, directions)]
    pairs = zip(check.outputs, weights)
    by_output = [_backward_products(check, y, [v.reshape(y.shape)]) for y, v in pairs]
    return [[_dot(products[j], u) for products in by_output] for j, u in enumerate(directions)]


def _random_unit(x: Any, generator: Any) -> Any:
    """A flat vector of length 1 with random elements, none negative, as many as x has."""
    u = tg.rand(x.numel(), generator=generator, device="cpu").to(dtype=x.dtype.to_real(), device=x.device)
    return u / u.norm()


def _dot(product: Any, u: list[Any]) -> Any:
    """vᵀJ (a column) times u; the two parts of a complex input moved on their own."""
    product = product.reshape(-1)
    if product.is_complex():
        return (tg.real(product) * u[0]).sum() + 1j * (tg.imag(product) * u[-1]).sum()
    return (product * u[0]).sum()


def _allclose(a: Any, b: Any, rtol: float, atol: float) -> bool:
    dtype = tg.promote_types(a.dtype, b.dtype)
    return bool(tg.allclose(a.to(dtype=dtype), b.to(dtype=dtype, device=a.device), rtol, atol))


def _expect_zero(numerical: list[list[Any]], tolerance: float) -> None:
    if any(n.numel() and n.abs().max() > tolerance for row in numerical for n in row):
        raise GradcheckError("Numerical gradient for function expected to be zero")


def _mismatch(check: _Check, forward: bool, i: int, j: int, numerical: Any, analytical: Any) -> str:
    text = ""
    if (j if forward else i) in check.complex_indices:
        text = f"While considering the {check.part} part of complex {'inputs' if forward else 'outputs'} only, "
    text += "Jacobian computed with forward mode mismatch" if forward else "Jacobian mismatch"
    return f"{text} for output {i} with respect to input {j},\nnumerical:{numerical}\nanalytical:{analytical}\n"


def _slow_report(check: _Check, forward: bool, i: int, j: int) -> str:
    """The whole Jacobians behind two numbers that differ."""
    numerical = _numerical_jacobians(check, check.wanted[j])[check.positions[i]]
    analytical = _analytical_jacobians(check, forward)[j][i]
    report = (
        "\nThese are vᵀJu (with forward mode, Ju) for random u and v, as the fast mode compares them. The Jacobians:\n"
        f"numerical:\n{numerical}\nanalytical:\n{analytical}\n"
        f"The largest difference of two elements is {float((numerical - analytical).abs().max()):.4g}.\n"
    )
    if _allclose(analytical, numerical, check.rtol, check.atol):
        report += "Every element is within its tolerance: gradcheck passes with fast_mode=False.\n"
    return report


# ── zero, undefined and batched gradients ──────────────────────────────────────────────────────
def _check_zero_gradients(check: _Check, masked: bool) -> None:
    """Check that zero gradients of the outputs give zeros of the inputs' dtypes and shapes."""
    zeros = [tg.zeros_like(y) for y in check.outputs]
    grads = autograd.grad(check.outputs, check.wanted, zeros, retain_graph=True, allow_unused=True)
    for x, g in zip(check.wanted, grads):
        if g is None:
            continue
        if not (tg.allclose(g, tg.zeros_like(g)) if masked else g.eq(0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        for what, attribute in (("type", "dtype"), ("device", "device"), ("size", "shape")):
            if getattr(g, attribute) != getattr(x, attribute):
                raise GradcheckError(f"grad is incorrect {what}")


def _check_undefined_gradients(check: _Check) -> None:
    """A gradient that is not there counts as zero: of all outputs at once, and of each in turn."""

    class Undefined(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> None:
            return None

    count = len(check.outputs)
    for undefined in [set(range(count)), *({i} for i in range(count) if count > 1)]:
        outputs = [y for y in check.evaluate() if y.requires_grad]
        outputs = [Undefined.apply(y) if i in undefined else y for i, y in enumerate(outputs)]
        zeros = [tg.zeros_like(y) for y in outputs]
        try:
            grads = autograd.grad(outputs, check.wanted, zeros, allow_unused=True)
        except RuntimeError as error:
            _warn_undefined()
            raise GradcheckError("Expected backward function to handle undefined output grads.") from error
        if any(g is not None and not g.eq(0).all() for g in grads):
            _warn_undefined()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _warn_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
        "break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=4,
    )


def _check_undefined_tangents(check: _Check) -> None:
    """Check that an input without a tangent acts like one with a zero tangent."""
    ad = _feature("autograd.forward_ad", "check_forward_ad")
    generator = tg.Generator()
    moving = [_random_unit(x, generator).reshape(x.shape) if _requires_grad(x) else None for x in check.inputs]
    for k, x in enumerate(check.inputs):
        if moving[k] is None:
            continue
        with ad.dual_level():
            zero, missing = (
                [ad.unpack_dual(y)[1] for y in _call_dual(check, [*moving[:k], tangent, *moving[k + 1 :]])]
                for tangent in (tg.zeros_like(x.detach()), None)
            )
            for i, (a, b) in enumerate(zip(zero, missing)):
                if a is not None and b is not None and not tg.allclose(a, b):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {i} when input: {x} has an undefined "
                        f"tangent value. Got: {a} but expected: {b}"
                    )


def _check_batched_backward(check: _Check) -> None:
    """Check that vmap of backward gives the same results as backward for each vector."""
    wanted = check.wanted
    for i, output in enumerate(check.outputs):

        def vjp(v: Any, output: Any = output) -> tuple[Any, ...]:
            grads = autograd.grad(output, wanted, v, retain_graph=True, allow_unused=True)
            return tuple(tg.zeros_like(x) if g is None else g for x, g in zip(wanted, grads))

        _compare_batched(vjp, [tg.randn_like(output) for _ in range(2)], "check_batched_grad", i)


def _check_batched_forward(check: _Check) -> None:
    """Check that vmap of forward mode gives the same results as forward mode for each tangent."""
    for j, x in enumerate(check.inputs):
        if not _requires_grad(x):
            continue

        def jvp(tangent: Any, x: Any = x) -> tuple[Any, ...]:
            return tuple(_forward_product(check, x, tangent))

        _compare_batched(jvp, [tg.randn_like(x.detach()) for _ in range(2)], "check_batched_forward_grad", j)


def _compare_batched(product: Callable[..., Any], vectors: list[Any], option: str, index: int) -> None:
    if among(vectors):          # vmap does not map over classes with __torch_dispatch__: backward runs for each vector
        return
    vmap = _feature("_vmap_internals._vmap", option)
    expected = [tg.stack(shards) for shards in zip(*map(product, vectors))]
    help_line = ("gradcheck or gradgradcheck failed while testing batched gradient computation. "
                 f"If this function cannot be batched, call gradcheck or gradgradcheck with {option}=False.")
    try:
        result = vmap(product)(tg.stack(vectors))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{help_line}") from error
    for k, (got, exp) in enumerate(zip(result, expected)):
        if not tg.allclose(got, exp):
            i, j = (index, k) if option == "check_batched_grad" else (k, index)
            raise GradcheckError(
                f"For output {i} and input {j}:\n\n{help_line}\n\nGot:\n{got}\n\nExpected:\n{exp}"
            )


def _random_gradient(y: Any, noncontiguous: bool) -> Any:
    def uniform() -> Any:
        return tg.rand(y.shape, dtype=y.dtype.to_real(), device=y.device) * 2 - 1

    g = tg.complex(uniform(), uniform()) if y.is_complex() else uniform()
    if noncontiguous:
        g = tg.stack([g, g], -1)[..., 0]
    return g.detach().requires_grad_()


class _Callable(ModuleType):
    """`autograd.gradcheck` names a function and this module. Whichever is loaded first, it can be called."""

    __call__ = staticmethod(gradcheck)


sys.modules[__name__].__class__ = _Callable
