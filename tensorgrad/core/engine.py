"""`backward` and `grad`, which programs call for gradients, and the places on the tape where these begin and end."""
from __future__ import annotations

import warnings
from math import prod
from typing import Any, NamedTuple

from ..advice import advised, misfit
from ..dtype import FROM_NUMPY, holds_complex, preserve_format
from ..messages.warn_once import warn
from ..runtime.numpy_state import compute
from . import composed  # noqa: F401  steps of kernel pairs, which register themselves
from .accumulating import owning
from .class_hooks import CLASSES, among, is_own
from .class_hooks import hooks as class_hooks
from .dispatch import wrap, xp
from .mode import mode
from .step import fitted_tensor
from .sweep import sweep
from .tape import Leaf, Output, TensorBase, node_of
from .unbroadcast import added
from .vmap_hooks import batches


class ExecutionEngine:
    """The object that programs ask to schedule work around a backward: `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        """Call a function at the end of the running backward; RuntimeError if there is none."""
        if mode.sweep is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        mode.sweep.callbacks.append(callback)


class GradientEdge(NamedTuple):
    """A place on the tape: a step, and the number of its result. `grad` and `backward` accept it as a tensor."""

    node: Any
    output_nr: int
    ownership_token: Any = None     # the `Output` node, if the step has several results


def edge_of(tensor: Any) -> GradientEdge:
    """Return the place of a tensor on the tape. https://pytorch.org/docs → torch.autograd.graph.get_gradient_edge"""
    node = node_of(tensor)
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    step, number = node.as_function()
    return GradientEdge(step, number, node if type(node) is Output else None)


def place_of(target: Any) -> Any:
    """The tape node of a tensor or edge."""
    if isinstance(target, GradientEdge):
        return target.node if target.ownership_token is None else target.ownership_token
    if not isinstance(target, TensorBase):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(target).__name__}")
    return node_of(target)


def starts(outputs: tuple[Any, ...], gradients: Any, create_graph: bool) -> dict[Any, Any]:
    """{node: gradient} to start from."""
    given = (None,) * len(outputs) if gradients is None else _tuple(gradients)
    tensors = create_graph or mode.tangents.levels or \
        mode.batches and any(type(g._storage).rank for g in given if isinstance(g, TensorBase))
    roots: dict[Any, Any] = {}
    for i, (out, g) in enumerate(zip(outputs, given, strict=False)):
        node = place_of(out)
        if CLASSES and (is_own(out) or is_own(g)):
            tensors = True
            if g is None and node is not None and prod(node.shape) == 1:
                g = class_hooks.like("ones_like", out, pin_memory=False, memory_format=preserve_format)
        if g is not None and not isinstance(g, TensorBase):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        if node is None or not node.requires_grad:
            raise advised(RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn"),
                          "of_unrecorded", out)
        g = _start(i, node, g)
        g = (fitted_tensor(g, node) if tensors else g.array if g.array.dtype == node.dtype
             else compute(node._storage.cast, g.array, node.dtype))
        roots[node] = compute(added, node._storage.xp, roots[node], g) if node in roots else g
    if len(given) < len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return roots


def leading(outputs: tuple[Any, ...], gradients: Any) -> bool:
    """Return True if a gradient is on a backend that leads, such as one that records, and its step is not: formulas
    must see the gradient as a tensor."""
    return gradients is not None and any(
        isinstance(g, TensorBase) and g._storage.leads and (node := place_of(out)) is not None
        and not node._storage.leads for out, g in zip(outputs, _tuple(gradients), strict=False))


def _start(i: int, node: Any, g: Any) -> Any:
    """Return the gradient of output i: 1, or the given one, which must have its shape and dtype."""
    shape, dtype, names = node.shape, node.dtype, FROM_NUMPY
    if g is None:
        if prod(shape) != 1:
            raise advised(RuntimeError("grad can be implicitly created only for scalar outputs"), "of_several", node)
        if holds_complex(dtype):
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {names[dtype]}")
        backend = type(node._storage)
        return wrap(backend.xp.ones(shape, dtype=dtype), backend())
    if g.array.shape != shape:
        raise misfit(f"Mismatch in shape: grad_output[{i}] has a shape of {_size(g.array.shape)} and output[{i}] has a "
                           f"shape of {_size(shape)}.")
    if holds_complex(g.array.dtype) != holds_complex(dtype):
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. "
                           f"Mismatch in dtype: grad_output[{i}] has a dtype of {names[g.array.dtype]} and output[{i}] "
                           f"has a dtype of {names[dtype]}.")
    if g._storage.device != node._storage.device:
        raise RuntimeError(f"invalid gradient at index {i} - expected device {node._storage.device} but got "
                           f"{g._storage.device}")
    if type(g._storage).rank < node._storage.rank:
        return batches.lifted(g, type(node._storage))
    return g


def _calculate_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple[Any, Any]:
    """Return the shape of an output, or of the gradient that an edge takes, and the shape of one gradient for it."""
    if isinstance(output, GradientEdge):
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        return place_of(output).shape, grad.shape
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def _size(shape: tuple[int, ...]) -> str:
    return f"torch.Size({list(shape)})"


def _tuple(tensors: Any) -> tuple[Any, ...]:
    return (tensors,) if isinstance(tensors, (TensorBase, GradientEdge)) else tuple(tensors)


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Add the gradients of `tensors` to the .grad of the leaves. https://pytorch.org/docs → torch.autograd.backward

    dL/dx = Σ over the ways from L to x of the product of the steps' derivatives.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                               "`backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    if mode.transforms or mode.batches:
        raise RuntimeError(_inside_transform())
    roots = starts(_tuple(tensors), grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph:
        _warn_of_cycle()
    if inputs is None:
        sweep(roots, create_graph=create_graph, retain_graph=keep)
        return
    targets = _tuple(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for target in targets:
        if isinstance(target, TensorBase):
            target.retain_grad()  # type: ignore[attr-defined]
    # inner tensors retain theirs
    sweep(roots, create_graph=create_graph, retain_graph=keep, wanted=frozenset(map(place_of, targets)), adding=True)


def _inside_transform() -> str:
    if mode.batches and mode.batches[-1].first:
        return ("backward() called inside torch.vmap. This is not supported, please call backward() outside torch.vmap "
                "or instead use torch.autograd.grad inside torch.vmap")
    return ("backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead or call backward() outside of functorch transforms.")


def _warn_of_cycle() -> None:
    """Once in the life of a program, or after set_warn_always each time."""
    warn("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
         "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If "
         "you have to use this function, make sure to reset the .grad fields of your parameters to None after use to "
         "break the cycle and avoid the leak.")


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`; no .grad is touched.

    https://pytorch.org/docs → torch.autograd.grad

    >>> import tensorgrad as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate "
                      "gradient for other parts of the graph, please use torch.autograd.backward.", FutureWarning,
                      stacklevel=2)
    results, targets = _tuple(outputs), _tuple(inputs)
    if is_grads_batched:
        for i, (out, g) in enumerate(zip(results, (None,) * len(results) if grad_outputs is None
                                         else _tuple(grad_outputs), strict=False)):
            if isinstance(out, TensorBase) and isinstance(g, TensorBase) and g.array.shape[1:] != out.array.shape:
                raise RuntimeError(
                    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                    f"dimension. The sizes of the remaining dimensions are expected to match the shape of "
                    f"corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                    f"{_size(g.array.shape[2:])} and output[{i}] has a shape of {_size(out.array.shape)}. If you only "
                    f"want some tensors in `grad_output` to be considered batched, consider using vmap.")
        return _batched_grad(results, targets, _tuple(grad_outputs), retain_graph, create_graph, bool(allow_unused),
                             materialize_grads)
    if not create_graph and leading(results, grad_outputs):
        create_graph, retain_graph = True, bool(retain_graph)
    roots = starts(results, grad_outputs, create_graph)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    nodes = [place_of(target) for target in targets]
    for target, node in zip(targets, nodes):
        if node is None or not node.requires_grad:
            raise advised(RuntimeError("One of the differentiated Tensors does not require grad"), "of_unrecorded",
                          target)
    owned: set[Any] = set()
    found = sweep(roots, create_graph=create_graph, retain_graph=create_graph if retain_graph is None else retain_graph,
                  wanted=frozenset(nodes), owned=owned)
    gradients = []
    for i, node in enumerate(nodes):
        g, backend = found.get(node), type(node._storage)
        if g is None and materialize_grads:
            if isinstance(targets[i], GradientEdge):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            g = wrap(backend.xp.zeros(node.shape, dtype=node.dtype), backend())
            g._node = Leaf(g) if create_graph else None
        elif g is None and not allow_unused:
            raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                               "Set allow_unused=True if this is the desired behavior.")
        if g is not None and not isinstance(g, TensorBase):
            g = owning(g, backend, node in owned, in_order=True)
            owned.discard(node)         # an input given twice gets its gradient in two arrays
        if g is not None and (shaped := getattr(targets[i], "_of_gradient", None)) is not None:
            g = shaped(g)
        gradients.append(g)
    return tuple(gradients)


def _batched_grad(outputs: Any, inputs: Any, given: Any, retain_graph: Any, create_graph: bool, allow_unused: bool,
                  materialize: bool) -> tuple[Any, ...]:
    """Sweep once for a batch of gradients, along the first axis of each; for classes that run ops themselves, once for
    each gradient.
    """
    from ..interpret.batching import hidden, level, shown
    count = next(g for g in given if g is not None).array.shape[0]
    if CLASSES and among((*outputs, *inputs, *given)):
        rows = [grad(outputs, inputs, [None if g is None else g[i] for g in given], retain_graph or i + 1 < count,
                     create_graph, allow_unused=allow_unused, materialize_grads=materialize) for i in range(count)]
        return tuple(None if any(g is None for g in column) else xp.stack(list(column), axis=0)
                     for column in zip(*rows, strict=True))
    with level(count, first=True) as depth:
        found = grad(outputs, inputs, [None if g is None else hidden(g, 0, depth) for g in given], retain_graph,
                     create_graph,
                     allow_unused=None if materialize else allow_unused, materialize_grads=materialize)
        return tuple(None if g is None else shown(g, 0, depth, count) if type(g._storage).rank == depth else
                     xp.stack([g] * count, axis=0) for g in found)
