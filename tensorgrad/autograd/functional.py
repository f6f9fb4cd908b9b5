"""Jacobians, Hessians, and their products with vectors, of functions of tensors.

https://pytorch.org/docs → torch.autograd.functional

Each takes `func` and its inputs, a tensor or a tuple of tensors, and gives tensors or tuples of them, as the inputs and
`func`'s outputs are. With create_graph the results can be differentiated again. With strict, an output or derivative
that does not depend on an input is an error; without, it counts as zeros.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import api
from ..core.class_hooks import among
from ..core.engine import grad
from ..core.mode import enable_grad, mode, set_grad_enabled
from ..core.tape import TensorBase
from . import forward_ad


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """func(*inputs), and vᵀ·J.

    `v` has the structure of the output; one number needs none. https://pytorch.org/docs → torch.autograd.functional.vjp

    >>> import tensorgrad as torch
    >>> torch.autograd.functional.vjp(lambda x: x ** 2, torch.tensor([1., 2.]), torch.tensor([1., 10.]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several_inputs, points = _points(inputs, "vjp", create_graph)
        several_outputs, outputs = _outputs(func, points, "vjp", strict)
        v = _vector(v, outputs, several_outputs, "vjp", create_graph,
                    "user-provided function returns a single Tensor with a single element.")
    with set_grad_enabled(create_graph or mode.grad):
        found = _zeros_for_none(_gradients(outputs, points, v, create_graph), points, strict, create_graph, "back")
    return _result(outputs, several_outputs, create_graph), _result(found, several_inputs, create_graph)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """func(*inputs), and J·v, by differentiating uᵀ·J, which is linear in u. `v` has the structure of the inputs; one
    number needs none. https://pytorch.org/docs → torch.autograd.functional.jvp

    >>> import tensorgrad as torch
    >>> torch.autograd.functional.jvp(lambda x: x ** 2, torch.tensor([1., 2.]), torch.tensor([1., 10.]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several_inputs, points = _points(inputs, "jvp", create_graph)
        v = _vector(v, points, several_inputs, "jvp", create_graph,
                    "input to the user-provided function is a single Tensor with a single element.")
        several_outputs, outputs = _outputs(func, points, "jvp", strict)
        u = tuple(api.zeros_like(out, requires_grad=True) for out in outputs)
        pulled = _gradients(outputs, points, u, True)
        _check_dependence(pulled, "grad_inputs", strict)
    with set_grad_enabled(create_graph or mode.grad):
        found = _zeros_for_none(_gradients(pulled, u, v, create_graph), outputs, strict, create_graph, "back_trick")
    return _result(outputs, several_outputs, create_graph), _result(found, several_outputs, create_graph)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """func(*inputs), one number, and vᵀ·H.

    `v` has the structure of the inputs. https://pytorch.org/docs → torch.autograd.functional.vhp

    >>> import tensorgrad as torch
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]), torch.tensor([1., 10.]))
    (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        several, points, v, outputs, slope = _slope(func, inputs, v, "vhp", create_graph, strict)
    with set_grad_enabled(create_graph or mode.grad):
        found = _zeros_for_none(_gradients(slope, points, v, create_graph), points, strict, create_graph, "double_back")
    return _result(outputs, False, create_graph), _result(found, several, create_graph)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """func(*inputs), one number, and H·v.

    As H is symmetric, `vhp` gives the same result faster. https://pytorch.org/docs → torch.autograd.functional.hvp

    >>> import tensorgrad as torch
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]), torch.tensor([1., 10.]))
    (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        several, points, v, outputs, slope = _slope(func, inputs, v, "hvp", create_graph, strict)
        u = tuple(api.zeros_like(x, requires_grad=True) for x in points)
        pulled = _gradients(slope, points, u, True)
        _check_dependence(slope, "hessian", strict)
    with set_grad_enabled(create_graph or mode.grad):
        found = _zeros_for_none(_gradients(pulled, u, v, create_graph), points, strict, create_graph,
                                "double_back_trick")
    return _result(outputs, False, create_graph), _result(found, several, create_graph)


# ── whole matrices ────────────────────────────────────────────────────────────────────────────────────────────────────


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:
    """J[i, j] = d func(x)[i] / dx[j], of shape (*out.shape, *x.shape); tuples of them by outputs, and in these by
    inputs, where there are tuples. https://pytorch.org/docs → torch.autograd.functional.jacobian

    vectorize: all rows at once. strategy: 'reverse-mode', a gradient for each element of the output, or 'forward-mode'
        (vectorized only), a push
    for each element of the input.

    >>> import tensorgrad as torch
    >>> torch.autograd.functional.jacobian(lambda x: x ** 2, torch.tensor([1., 3.]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function '
                             'has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
                             'prefer to use "reverse-mode".')
    if strategy == "forward-mode":
        return _by_columns(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        several_inputs, points = _points(inputs, "jacobian", create_graph)
        several_outputs, outputs = _outputs(func, points, "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                               "supported together. Please either set `strict=False` or `vectorize=False`.")
        rows = _all_rows if vectorize else _each_row
        found = [rows(i, out, points, create_graph, strict) for i, out in enumerate(outputs)]
        parts = tuple(_result([row.reshape((*out.shape, *x.shape)) for row, x in zip(of_out, points, strict=True)],
                              several_inputs, create_graph)
                      for of_out, out in zip(found, outputs, strict=True))
    return parts if several_outputs else parts[0]


def _each_row(i: int, out: Any, points: Any, create_graph: bool, strict: bool) -> list[Any]:
    """Compute one output's Jacobians row by row, a gradient each, and stack the rows per input."""
    columns: list[list[Any]] = [[] for _ in points]
    flat = out.reshape(-1)
    for k in range(out.numel()):
        for j, g in enumerate(_gradients((flat[k],), points, None, create_graph, True)):
            if g is None and strict:
                raise RuntimeError(f"Output {i} of the user-provided function is independent of input {j}. This is not "
                                   f"allowed in strict mode.")
            if strict and create_graph and not g.requires_grad:
                raise RuntimeError(f"The jacobian of the user-provided function is independent of input {i}. This is "
                                   "not allowed in strict mode when create_graph=True.")
            columns[j].append(api.zeros_like(points[j]) if g is None else g)
    return [api.stack(column) if column else x.new_zeros((0, *x.shape))
            for column, x in zip(columns, points, strict=True)]


def _all_rows(i: int, out: Any, points: Any, create_graph: bool, strict: bool) -> list[Any]:
    """Compute one output's Jacobians like `_each_row`, but with all rows in one batched gradient."""
    n = out.numel()
    basis = api.eye(n, dtype=out.dtype, device=out.device)
    found = (grad(out.reshape(-1), points, basis, retain_graph=True, create_graph=create_graph, allow_unused=True,
                  is_grads_batched=True) if out.requires_grad and n else (None,) * len(points))
    return [x.new_zeros((n, *x.shape)) if g is None else g for g, x in zip(found, points, strict=True)]


def _by_columns(func: Any, inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    """The Jacobian by forward mode."""
    if create_graph:
        raise NotImplementedError('torch.autograd.functional.jacobian: `create_graph=True` and '
                                  '`strategy="forward-mode"` are not supported together (yet). Please either set '
                                  '`create_graph=False` or `strategy="reverse-mode"`.')
    if strict:
        raise RuntimeError('torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not '
                           'supported together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.')
    several_inputs, points = _tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly "
                                  "implemented for `vectorize=True`.")
    from .._vmap_internals import _vmap
    from ..func.forward import unit_vectors
    several_outputs, sizes = False, [x.numel() for x in points]

    def push(*tangents: Any) -> Any:
        nonlocal several_outputs
        with forward_ad.dual_level():
            outputs = func(*map(forward_ad.make_dual, points, tangents))
            several_outputs = isinstance(outputs, tuple)
            pairs = [forward_ad.unpack_dual(out) for out in _tensors(outputs, "outputs", "None")[1]]
            return tuple(api.zeros_like(value) if t is None else t for value, t in pairs)
    vectors = unit_vectors(points, sizes)
    columns = _vmap(push)(*vectors) if not among(points) else tuple(     # vmap does not map over classes of a program
        map(api.stack, zip(*[push(*[v[i] for v in vectors]) for i in range(sum(sizes))], strict=True)))
    parts = []
    for column in columns:
        rows = column.movedim(0, -1).split(sizes, dim=-1)
        of_out = [row.reshape((*column.shape[1:], *x.shape)) for row, x in zip(rows, points, strict=True)]
        parts.append(of_out if several_inputs else of_out[0])
    # lists, as PyTorch's are in this mode
    return (parts if several_inputs else tuple(parts)) if several_outputs else parts[0]


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """H[i, j] = d² func(x) / dx[i] dx[j] of a function with one number as its result: the Jacobian of its Jacobian; of
    several inputs, a tuple of tuples. https://pytorch.org/docs → torch.autograd.functional.hessian

    >>> import tensorgrad as torch
    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, points = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def number(*points: Any) -> Any:
        _, (out,) = _single(func, points, "hessian", strict)
        return out.squeeze()

    def slope(*points: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            points = tuple(x.requires_grad_() for x in points)
        found = jacobian(number, points, create_graph=True)
        _check_dependence(found, "jacobian", strict)
        return found
    found = jacobian(slope, points, create_graph=create_graph, strict=strict, vectorize=vectorize,
                     strategy=outer_jacobian_strategy)
    return found if several else found[0][0]


# ── helpers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tensors(given: Any, what: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    """Check for a tensor or a tuple of tensors; return (True if it is a tuple, the tuple)."""
    values = given if isinstance(given, tuple) else (given,)
    for i, value in enumerate(values):
        if not isinstance(value, TensorBase):
            which = f"value at index {i}" if isinstance(given, tuple) else f"given {what}"
            raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the "
                            f"{which} has type {type(value)}.")
    return isinstance(given, tuple), values


def _points(inputs: Any, function: str, create_graph: bool) -> tuple[bool, tuple[Any, ...]]:
    """Return the inputs to differentiate by: detached, unless create_graph is set and they require gradients."""
    several, tensors = _tensors(inputs, "inputs", function)
    return several, tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_()
                          for x in tensors)


def _outputs(func: Any, points: Any, function: str, strict: bool) -> tuple[bool, tuple[Any, ...]]:
    several, outputs = _tensors(func(*points), "outputs of the user-provided function", function)
    _check_dependence(outputs, "outputs", strict)
    return several, outputs


def _single(func: Any, points: Any, function: str, strict: bool) -> tuple[bool, tuple[Any, ...]]:
    """Call the function, and raise RuntimeError unless its result is one number."""
    several, outputs = _outputs(func, points, function, strict)
    if several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return several, outputs


def _vector(v: Any, like: Any, several: bool, function: str, create_graph: bool, unless: str) -> Any:
    """Return the vector to multiply by as a tuple; None for the number 1."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if the {unless}")
        return None
    _, parts = _tensors(v, "v", function)
    parts = tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach() for x in parts)
    if len(parts) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(parts)}." if several
                           else
                           "The given v should contain a single Tensor.")
    for i, (part, x) in enumerate(zip(parts, like, strict=True)):
        if part.shape != x.shape:
            raise RuntimeError(f"{f'Entry {i} in ' if several else ''}v has invalid size: should be {x.shape} but got "
                               f"{part.shape}.")
    return parts


def _slope(func: Any, inputs: Any, v: Any, function: str, create_graph: bool, strict: bool) -> tuple[Any, ...]:
    """Return points, vector, value and first derivative for a product with the Hessian."""
    several, points = _points(inputs, function, create_graph)
    v = _vector(v, points, several, function, create_graph,
                "input to the user-provided function is a single Tensor with a single element.")
    _, outputs = _single(func, points, function, strict)
    slope = _gradients(outputs, points, None, True)
    _check_dependence(slope, "jacobian", strict)
    return several, points, v, outputs, slope


def _gradients(outputs: Any, inputs: Any, vectors: Any, create_graph: bool,
               retain_graph: bool | None = None) -> tuple[Any, ...]:
    """Return the gradients of the outputs that have any; None for inputs that no output depends on."""
    pairs = [(out, v) for out, v in zip(outputs, vectors or (None,) * len(outputs), strict=True)
             if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outs, given = zip(*pairs, strict=True)
    return grad(outs, inputs, given, retain_graph=retain_graph, create_graph=create_graph, allow_unused=True)


def _check_dependence(tensors: Any, what: str, strict: bool) -> None:
    """Raise RuntimeError, if strict, for tensors that do not depend on the inputs."""
    for i, x in enumerate(tensors if strict and isinstance(tensors, tuple) else (tensors,) if strict else ()):
        if x is None:
            raise RuntimeError(f"The output of the user-provided function is independent of input {i}. This is not "
                               f"allowed in strict mode.")
        if not x.requires_grad:
            raise RuntimeError(INDEPENDENT[what].format(i))


INDEPENDENT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
               "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function. "
                   "This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                "input {} is independent of the input. This is not allowed in strict mode. You should ensure that your "
                "function is twice differentiable and that the jacobian depends on the inputs (this would be violated "
                "by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {} is independent of the input. This "
               "is not allowed in strict mode. You should ensure that your function is thrice differentiable and that "
               "the hessian depends on the inputs.",
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using "
                  "the double backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is not allowed in "
                   "strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. "
                         "This is not allowed in strict mode as it prevents from using the double backward trick to "
                         "replace forward mode AD.",
}


def _zeros_for_none(gradients: Any, like: Any, strict: bool, create_graph: bool, stage: str) -> tuple[Any, ...]:
    """Replace missing gradients by zeros; with strict, raise RuntimeError instead."""
    for i, g in enumerate(gradients if strict else ()):
        if g is None:
            raise RuntimeError(INDEPENDENT[stage].format(i))
        if create_graph and not g.requires_grad:
            which = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(f"The {which} of the user-provided function is independent of input {i}. This is not "
                               "allowed in strict mode when create_graph=True.")
    return tuple(api.zeros_like(x) if g is None else g for g, x in zip(gradients, like, strict=True))


def _result(tensors: Any, several: bool, create_graph: bool) -> Any:
    """Return tensors as a result: a tuple if `several`, detached unless create_graph."""
    found = tuple(x if create_graph else x.detach() for x in tensors)
    return found if several else found[0]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
