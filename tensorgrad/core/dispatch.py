"""The dispatcher: choose the kernel for (op, storage class), run it, write it on the tape.

`xp` here is the op table for Tensors. Formulas run on it like on arrays, but recorded: so do gradients of gradients,
and the public functions in `api/`.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from typing import Any

from numpy import generic

from ..advice import advised, misfit
from ..dtype import (
    EIGHT_BITS,
    FLOATING,
    FROM_NUMPY,
    as_dtype,
    complex32,
    complex64,
    float32,
    get_default_dtype,
)
from ..dtype import SCALAR_TYPES as SCALAR_TYPES
from ..ops.base import HALVES, OPS, Op, Pair
from ..runtime.numpy_state import STATE, begin, compute, end
from ..runtime.small_floats import COMPLEX32, computed
from ..storage.base import MAKERS, Storage, backend_of
from ..storage.cuda import CudaStorage
from ..storage.out_of_memory import beyond, memory_error
from .casting import HALF_DTYPES, is_half, number_array, precise, result_type, rounded
from .class_hooks import CLASSES, among
from .class_hooks import hooks as class_hooks
from .fast_path import NO_PARAMS, NUMBERS, PLAIN, compiled
from .formats import keeping_images
from .mode import mode
from .plan import plans_of
from .tape import Leaf, Origin, TensorBase, new, node_of, record_fused, record_several
from .vmap_hooks import batches

Tensor: Any = TensorBase        # the class of the tensors that ops make
SCALARS = (int, float, complex, generic)
UNKNOWN: Any = None             # of any type: a value that is found later


def results_are(cls: type[TensorBase]) -> None:
    """From now on ops make tensors of this class, and their fast paths serve these."""
    global Tensor
    Tensor = cls
    PLAIN.clear()
    PLAIN.add(cls)
    if compiled is not None:
        compiled.results(cls)


def wrap(array: Any, storage: Any, node: Any = None) -> Any:
    """A Tensor of this array.

    All of its fields are set here, nowhere else on the hot path but in the fast paths below.
    """
    out = new(Tensor)
    out.array, out._storage, out._node, out._grad, out.origin = array, storage, node, None, None
    return out


def fresh(array: Any, backend: type[Storage]) -> Any:
    """A Tensor of an array that was just computed."""
    if type(array) is not backend.array_type:
        array = backend.asarray(array)
    storage = backend()
    if mode.inference:
        storage.inference = True
    return wrap(array, storage)


if compiled is not None:
    wrap, fresh = compiled.wrap, compiled.fresh


def apply(op: type[Op], *args: Any, **params: Any) -> Any:
    """Run one op on Tensors; numbers and None are passed on unchanged."""
    return general(op)(*args, **params)


def _general(op: type[Op]) -> Callable[..., Any]:
    """Make the general function of an op, which accepts all operands. Attributes of the op are read once."""
    sequence, arity, chars, casts, kernels, shows = op.sequence, op.arity, op.chars, op.casts, op.kernels, op.view
    composite, several, laid = op.composite, op.several, op.elementwise and not op.row_major
    tracked, needs_all = op.differentiable, op.elementwise and op.arity == 2

    def call(*args: Any, **params: Any) -> Any:
        if CLASSES and among(args):
            return class_hooks.run(op, args, params)
        if sequence or (arity is not None and len(args) > arity):
            args, params = separated(op, args, params)
        arrays: list[Any] = []
        edges: list[Any] = []
        backend, dtype, result, needs, bit, mixed, number = UNKNOWN, UNKNOWN, UNKNOWN, 0, 1, False, False
        for a in args:
            if isinstance(a, TensorBase):
                arrays.append(array := a.array)
                edges.append(node := a._node if a.origin is None else node_of(a))
                if node is not None:
                    needs |= bit
                if (own := type(a._storage)) is not backend:
                    backend = own if backend is None else meet(op, args)
                if array.dtype is not dtype:
                    dtype, mixed = (array.dtype, mixed) if dtype is None else (dtype, True)
            else:
                if not isinstance(a, SCALARS) and (a is not None or needs_all):
                    raise refused(op, a)
                number, mixed = number or a is not None, mixed or type(a) is complex
                arrays.append(a.item() if isinstance(a, generic) else a)    # a NumPy scalar counts as a Python number
                edges.append(None)
            bit <<= 1
        if backend is None or backend is MOVE:
            return call(*([_gathered(op, args)] if sequence else _gathered(op, args)), **params)
        if ((char := dtype.char) not in chars or (mixed and (casts or holds_halves(op, arrays, number)))
                or (number and casts and char not in "fdFD")):
            arrays, result = compute(common, op, args, arrays, backend)
        kernel = kernels[backend]
        if type(kernel) is Pair:
            if (outs := paired(op, kernel, backend, args, arrays, edges, needs, params, result)) is not NotImplemented:
                return outs
            kernel = kernels.from_definition(backend)
        if composite and needs and mode.record:
            return by_definition(op, backend, args, params, result)
        try:
            y = compute(kernel, arrays, **params) if sequence else compute(kernel, *arrays, **params)
        except (ValueError, MemoryError) as error:
            raise explained(op, arrays, error) from None
        if several:
            return several_results(op, args, edges, needs, params, y, result, backend)
        if result is not None:
            y = compute(rounded, y, result, backend)
        if laid and y.ndim > 1 and backend.ordered is not None:
            y = backend.ordered(y, [a for a in arrays if type(a) is backend.array_type])
        if shows and (shows == "always" or backend.aliases(y, arrays[0])):
            return view(op, args, edges, needs, params, y)
        out = fresh(y, backend)
        if needs and tracked and (record := mode.record):
            record(plans_of(op).of(needs, args), args, edges, params, out)
        return out
    return call


general: Callable[[Any], Callable[..., Any]] = cache(lambda op: crossing(op) if op.crosses else _general(op))


def crossing(op: type[Op]) -> Callable[..., Any]:
    """Make the function of an op of one tensor whose result may have another layout, and so another storage class."""
    kernels, plans = op.kernels, plans_of(op)

    def call(x: Any, **params: Any) -> Any:
        backend, node = type(x._storage), node_of(x)
        try:
            y = compute(kernels[backend], x.array, **params)
        except MemoryError as error:
            raise explained(op, (x.array,), error) from None
        out = fresh(y, backend.home(y))
        if node is not None and (record := mode.record):
            record(plans[1], (x,), (node,), params, out)
        return out
    return call


def separated(op: type[Op], args: tuple[Any, ...], params: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the operands and the parameters of a call that gives some parameters by position."""
    count = 1 if op.sequence else op.arity
    params = dict(zip(op.parameters, args[count:]), **params)
    return (tuple(args[0]) if op.sequence else args[:count]), params


def several_results(op: type[Op], args: tuple[Any, ...], edges: list[Any], needs: int, params: dict[str, Any],
                    arrays: Any, dtype: Any,
                    backend: Any) -> list[Any]:
    """Return the Tensors of an op with several results, cast to a dtype if there is one, and record their step."""
    if dtype is not None:
        arrays = [compute(rounded, array, dtype, backend) for array in arrays]
    outs: list[Any] = parts(op, args[0], arrays) if op.view else [fresh(array, backend) for array in arrays]
    if needs and op.differentiable and mode.record:
        record_several(plans_of(op).of(needs, args), args, edges, params, outs)
    return outs


def refused(op: type[Op], value: Any) -> TypeError:
    """PyTorch's error for an operand that is neither tensor nor number: it names the public function and its
    argument.
    """
    frame, got = sys._getframe(1), type(value).__name__
    while frame.f_back is not None:
        code = frame.f_code
        if ".api." in frame.f_globals.get("__name__", "") and not code.co_name.startswith("_"):
            for position, name in enumerate(code.co_varnames[:code.co_argcount], 1):
                if frame.f_locals.get(name) is value:
                    return TypeError(f"{code.co_name}(): argument '{name}' (position {position}) must be Tensor, not "
                                     f"{got}")
        frame = frame.f_back
    return TypeError(f"{op.opname}(): expected a Tensor or a number, got {got}")


def explained(op: type[Op], arrays: Any, error: Exception) -> Exception:
    """PyTorch's error for memory that is not there and for shapes that do not broadcast, or the error itself."""
    if isinstance(error, MemoryError) or beyond(error):
        return memory_error(error, op.opname) or error
    shapes = [a.shape for a in arrays if hasattr(a, "shape")]
    if op.explain is not None:
        return advised(found, "of_shapes") if (found := op.explain(*shapes)) is not None else error
    if op.elementwise and len(shapes) > 1:
        ndim = max(map(len, shapes))
        for axis in range(-1, -ndim - 1, -1):
            sizes = [s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1]
            if sizes and any(n != sizes[0] for n in sizes):
                other = next(n for n in sizes if n != sizes[0])
                return misfit(f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({other}) at "
                              f"non-singleton dimension {ndim + axis}")
    return error


def unsupported(op: type[Op], arrays: Any, dtype: str) -> Exception:
    """Return the error of an op without a kernel for a dtype. Shapes that do not broadcast go first, as in PyTorch."""
    name = op.kernel_name if isinstance(op.kernel_name, str) else op.kernel_name(*arrays)
    error = NotImplementedError(f'"{name}" not implemented for \'{dtype}\'')
    return explained(op, arrays, error) if op.elementwise else error


def view(op: type[Op], args: Any, edges: Any, needs: int, params: Any, y: Any) -> Any:
    """The result of a view op: it shares its input's storage and remembers where it came from."""
    out = wrap(y, shared(args[0]))
    out.origin = Origin(args[0], op, args, params, None if mode.grad else view_kind())
    if needs:
        if record := mode.record:
            record(plans_of(op).of(needs, args), args, edges, params, out)
        elif not out._storage.inference:
            out._node = Leaf(out)      # as in PyTorch, a view made in no_grad mode is a leaf that requires grad
            out._storage.watched = True
    return out


def shared(tensor: Any) -> Any:
    """Return a tensor's storage, marked as shared by several tensors."""
    storage = tensor._storage
    if storage.memory is None:
        storage.memory = tensor.array
    return storage


def view_kind() -> str:
    return "inference" if mode.inference else "no_grad"


def parts(op: type[Op], parent: Any, arrays: Any) -> list[Any]:
    """The results of a view op with several: views that autograd does not let be written to."""
    storage = shared(parent)
    storage.watched = True
    outs = [wrap(array, storage) for array in arrays]
    kind = "several" if mode.grad else view_kind()
    origin = Origin(parent, op, (parent,), {}, kind)        # shared by all nodes: there may be millions
    for out in outs:
        out.origin = origin
        if kind == "no_grad" and node_of(parent) is not None:
            out._node = Leaf(out)
    return outs


# ── unlike operands ───────────────────────────────────────────────────────────────────────────────────────────────────


class MOVE:
    """A marker in place of the backend: operands must first be moved to one device, or one level of vmap."""

    rank = -1


def meet(op: type[Op], args: Any) -> Any:
    """Return MOVE for operands that fit together, 0-d CPU tensors included; raise if devices differ.

    Where layouts differ, return the storage class that has rules for this.
    """
    if any(t._storage.hollow and t._storage.leads for t in args if isinstance(t, TensorBase)):
        return MOVE
    devices = {t._storage.device: None for t in args if isinstance(t, TensorBase)
               and (t.array.ndim or str(t._storage.device) != "cpu")}
    if len(devices) > 1:
        first, second, *_ = devices
        if "meta" in (first.type, second.type):
            raise RuntimeError(f"Tensor on device {second} is not on the expected device {first}!")
        raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                           f"{first} and {second}! (when checking the arguments of {op.opname})")
    return next((backend for t in args if isinstance(t, TensorBase)
                 and (backend := type(t._storage)).dense is not None), MOVE)


def _gathered(op: type[Op], args: Any) -> list[Any]:
    """Return the operands on one device, and at one level of vmap; raise PyTorch's error if none is a tensor."""
    if not any(isinstance(a, TensorBase) for a in args):
        raise refused(op, args[0])
    if any(type(a._storage).rank for a in args if isinstance(a, TensorBase)):
        return batches.gathered(args)  # type: ignore[no-any-return]
    backends = [type(a._storage) for a in args if isinstance(a, TensorBase)
                and (a.array.ndim or str(a._storage.device) != "cpu" or a._storage.leads)]
    target = next((b for b in backends if b.leads), backends[0])
    return [move(a, target) if isinstance(a, TensorBase) and type(a._storage) is not target else a for a in args]


def level_of(other: Any, tensor: Any) -> Any:
    """Return `tensor` with memory for each example, if `other` is a batch inside vmap; else `tensor` itself."""
    if not type(other._storage).rank:
        return tensor
    return batches.with_memory(tensor, other)


def move(tensor: Any, target: Any, source: Any = None) -> Any:
    """A copy on another device, recorded."""
    op, source = OPS["to_device"], type(tensor._storage)
    if source.hollow and source.leads:      # there is nothing to copy: it fits all devices
        return tensor
    if source.rank:
        return batches.moved(tensor, target)
    if source.dense is not None:
        return source.hooks["moved"](tensor, target)
    array = (target.asarray(tensor.array) if target.hollow
             else compute(op.kernels[source], tensor.array, source=source, target=target))
    out = fresh(array, target)
    node = node_of(tensor)
    if node is not None and (record := mode.record):
        record(plans_of(op)[1], (tensor,), (node,), {"source": source, "target": target}, out)
    return out


def holds_halves(op: type[Op], arrays: list[Any], number: bool = False) -> bool:
    """Return True if an operand is of few bits, and the op computes with it, or is to move a number there."""
    return (number or "V" not in op.kinds) and any(map(is_half, arrays))


def common(op: type[Op], args: Any, arrays: list[Any], backend: Any) -> tuple[list[Any], Any]:
    """Cast the operands to their common dtype; return them, and the dtype for the result (None: the kernel's).

    bfloat16, float16 and complex32 are dtypes to store in: they compute in float32 or complex64 and are rounded once,
    as PyTorch does.
    """
    if op.casts is None:
        narrow = next((a.dtype for a in arrays if is_half(a)), None)
        if (narrow is None or "V" not in op.kinds and narrow.itemsize == 1
                or narrow == COMPLEX32 and not op.complex32 and ("V" not in op.kinds or op.complex32 is False)):
            raise unsupported(op, arrays, _scalar_type(args))
        if "V" in op.kinds:
            return [number_array(a, narrow, backend) if isinstance(a, SCALARS) else a for a in arrays], None
        return [backend.cast(a, computed(a.dtype)) if is_half(a) else a for a in arrays], narrow
    target = result_type(*[a for a in args if a is not None])
    if op.casts == "float" and target.category < FLOATING:
        target = get_default_dtype()
    few_bits = (target in HALF_DTYPES or op.takes_float8 and target in EIGHT_BITS
                or target is complex32 and op.complex32)
    compute = (complex64 if target.is_complex else float32) if few_bits and "V" not in op.kinds else target
    if compute.numpy.kind not in op.kinds:
        raise unsupported(op, arrays, SCALAR_TYPES[target.name])
    dtype = compute.numpy
    cast = [None if a is None else backend.cast(a, dtype) if isinstance(t, TensorBase)
            else number_array(a, dtype, backend)
            for t, a in zip(args, arrays, strict=True)]
    return cast, target.numpy if compute is not target else None


def _scalar_type(args: Any) -> str:
    return SCALAR_TYPES[FROM_NUMPY[next(a.array.dtype for a in args if isinstance(a, TensorBase))].name]


# ── kernels with a shortcut back ──────────────────────────────────────────────────────────────────────────────────────


def paired(op: type[Op], pair: Pair, backend: Any, args: Any, arrays: Any, edges: Any, needs: int, params: Any,
           dtype: Any) -> Any:
    """Run a kernel pair and record its residual; NotImplemented for arguments that it does not serve.

    Results are cast to a dtype if there is one: the operands were.
    """
    if pair.whole is not None:
        return pair.whole(*([args] if op.sequence else args), **params)
    if mode.watching.hooks:         # they are to see the values that the formulas save
        return NotImplemented
    try:
        pair, served = (compute(pair.served, arrays, **params) if op.sequence
                        else compute(pair.served, *arrays, **params))
    except MemoryError as error:
        raise explained(op, arrays, error) from None
    if served is NotImplemented:
        return served
    y, residual = served
    if dtype is not None:
        y = ([compute(rounded, part, dtype, backend) for part in y] if op.several
             else compute(rounded, y, dtype, backend))
    outs = [fresh(part, backend) for part in y] if op.several else [fresh(y, backend)]
    if needs and mode.record:
        record_fused(plans_of(op).of(needs, args), pair, args, edges, params, outs, residual)
    return outs if op.several else outs[0]


def by_definition(op: type[Op], backend: Any, args: Any, params: Any, dtype: Any) -> Any:
    """Run a composite op by the ops that it calls, with more bits if its operands have few; round its results once."""
    table = namespace(backend)
    if dtype is None or dtype.char not in HALVES:
        return op.forward(table, *([args] if op.sequence else args), **params)
    args = [table.cast(a, dtype=computed(a.array.dtype)) if isinstance(a, TensorBase) and is_half(a.array) else a
            for a in args]
    y = op.forward(table, *([args] if op.sequence else args), **params)
    return [_rounded(table, part, dtype) for part in y] if op.several else _rounded(table, y, dtype)


def _rounded(table: Any, y: Any, dtype: Any) -> Any:
    return y if (target := precise(y.array.dtype.kind, dtype)) is None else table.cast(y, dtype=target)


def defined(op: type[Op], backend: Any, args: Any, edges: Any, params: Any) -> Any:
    """Run an op by its definition: recorded with its gradient formulas, or, if composite, by the ops that it calls."""
    recording = mode.record and any(e is not None for e in edges)
    arrays, dtype = [a.array if isinstance(a, TensorBase) else a for a in args], None
    if holds_halves(op, arrays):
        arrays, dtype = compute(common, op, args, arrays, backend)
    if recording and op.composite:
        return by_definition(op, backend, args, params, dtype)
    y = compute(op.kernels.from_definition(backend), *([arrays] if op.sequence else arrays), **params)
    outs = [fresh(part if dtype is None else compute(rounded, part, dtype, backend), backend)
            for part in (y if op.several else [y])]
    if recording:
        plan = plans_of(op).of(sum(1 << i for i, e in enumerate(edges) if e is not None), edges)
        if op.several:
            record_several(plan, tuple(args), edges, params, outs)
        else:
            mode.record(plan, tuple(args), edges, params, outs[0])
    return outs if op.several else outs[0]


# ── fast paths: elementwise ops of one or two tensors of one dtype ────────────────────────────────────────────────


def compiled_form(op: type[Op], operands: int, numbers: bool = False, parameters: bool = False,
                  mixed: bool = False) -> Callable[[Any], Callable[..., Any]]:
    """Replace a function by its compiled form, if any (native/fast_path.c), which calls the function for other
    operands.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function = keeping_images(op, function)
        if compiled is None:
            return function
        views = 2 if op.view == "always" else int(bool(op.view))
        rounds = "f" in op.kinds and "V" not in op.kinds and not views and not op.to_complex
        form: Callable[..., Any] = compiled.fast_path(
            function, op, op.kernels, plans_of(op), op.chars, operands, op.differentiable or op.composite, numbers,
            parameters, views, op.elementwise and not op.row_major, op.composite, mixed, bool(op.images), rounds)
        return update_wrapper(form, function)
    return decorate


def unary(op: type[Op], otherwise: Any = None) -> Callable[..., Any]:
    """Make the fast path of ops of one tensor; `otherwise` handles unsupported operands: other dtypes and classes."""
    kernels, chars, tracked, plans, laid = (op.kernels, op.chars, op.differentiable, plans_of(op),
                                            op.elementwise and not op.row_major)
    otherwise = otherwise or general(op)

    @compiled_form(op, 1)
    def call(a: Any) -> Any:
        if type(a) in PLAIN and (x := a.array).dtype.char in chars and \
                type(kernel := kernels[backend := type(a._storage)]) is not Pair:
            token = begin(STATE)
            try:
                y = kernel(x)
            except MemoryError as error:
                raise explained(op, (x,), error) from None
            finally:
                end(token)
            if type(y) is not backend.array_type:
                y = backend.asarray(y)
            elif laid and backend.ordered is not None and 0 in x.strides:        # NumPy and PyTorch agree about others
                y = backend.ordered(y, (x,))
            out = new(Tensor)
            out.array, out._storage, out._node, out._grad, out.origin = y, backend(), None, None, None
            node = a._node if a.origin is None else node_of(a)
            if node is not None and tracked and (record := mode.record):
                record(plans[1], (a,), (node,), NO_PARAMS, out)
            elif mode.inference:
                out._storage.inference = True
            return out
        return otherwise(a)
    return call


def parametric(op: type[Op]) -> Callable[..., Any]:
    """Make the fast path of ops of one tensor with parameters, such as reductions."""
    kernels, chars, tracked, plans, otherwise = op.kernels, op.chars, op.differentiable, plans_of(op), general(op)
    laid = op.elementwise and not op.row_major

    @compiled_form(op, 1, parameters=True)
    def call(a: Any, *positional: Any, **params: Any) -> Any:
        if not positional and type(a) in PLAIN and (x := a.array).dtype.char in chars and \
                type(kernel := kernels[backend := type(a._storage)]) is not Pair:
            try:
                y = compute(kernel, x, **params)
            except MemoryError as error:
                raise explained(op, (x,), error) from None
            out = fresh(backend.ordered(y, (x,)) if laid and backend.ordered is not None and 0 in x.strides else y,
                        backend)
            node = a._node if a.origin is None else node_of(a)
            if node is not None and tracked and (record := mode.record):
                record(plans[1], (a,), (node,), params, out)
            return out
        return otherwise(a, *positional, **params)
    return call


def binary(op: type[Op], otherwise: Any = None, numbers: Any = NUMBERS) -> Callable[..., Any]:
    """Make the fast path of ops of two operands; `otherwise` handles unlike dtypes, devices and classes."""
    kernels, chars, tracked, plans, numbers = (op.kernels, op.chars, op.differentiable, plans_of(op),
                                               numbers if "f" in op.kinds else ())
    otherwise = otherwise or general(op)

    @compiled_form(op, 2, numbers=bool(numbers))
    def call(a: Any, b: Any) -> Any:
        if type(a) in PLAIN and type(kernel := kernels[backend := type(a._storage)]) is not Pair:
            x = a.array
            if type(b) in PLAIN:
                y, m = b.array, b._node if b.origin is None else node_of(b)
                fast = x.dtype is y.dtype and backend is type(b._storage) and x.dtype.char in chars
            else:
                y, m = b, None
                fast = type(b) in numbers and x.dtype.char in "fd"
            if fast:
                token = begin(STATE)
                try:
                    z = kernel(x, y)
                except (ValueError, MemoryError) as error:
                    raise explained(op, (x, y), error) from None
                finally:
                    end(token)
                if type(z) is not backend.array_type:
                    z = backend.asarray(z)
                elif z.ndim > 1 and (ordered := backend.ordered) is not None and type(y) is type(x):
                    z = ordered(z, (x, y))
                out = new(Tensor)
                out.array, out._storage, out._node, out._grad, out.origin = z, backend(), None, None, None
                n = a._node if a.origin is None else node_of(a)
                if (n is not None or m is not None) and tracked and (record := mode.record):
                    record(plans[2 if n is None else 1 if m is None else 3], (a, b), (n, m), NO_PARAMS, out)
                elif mode.inference:
                    out._storage.inference = True
                return out
        return otherwise(a, b)
    return call


class TensorNamespace:
    """The op table for Tensors. Arrays that formulas make (zeros, arange, …) are on the namespace's device."""

    def __init__(self, backend: type[Storage] | None = None) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        if name in OPS:
            found = move if name == "to_device" else lane(OPS[name])
        elif name in MAKERS:
            found = self._maker(name)
        else:
            raise AttributeError(f"the op table has no {name!r}")
        setattr(self, name, found)
        return found

    @property
    def backend(self) -> type[Storage]:
        """The storage class of arrays that formulas make."""
        return self._backend or backend_of(None)

    def constant(self, array: Any) -> Any:
        """Return an array of a formula as an operand; on arrays, `xp.constant` is the array itself."""
        return fresh(array, self.backend.dense or self.backend)

    def _maker(self, name: str) -> Callable[..., Any]:
        def make(*args: Any, dtype: Any = None, **params: Any) -> Any:
            backend = self._backend or backend_of(None)
            if CLASSES and among(args):
                return class_hooks.like(name, *args, **params if dtype is None else {**params, "dtype": dtype})
            if name.endswith("_like"):
                backend, args = type(args[0]._storage), (args[0].array, *args[1:])
            if dtype is not None:
                params["dtype"] = as_dtype(dtype).numpy
            return fresh(compute(getattr(backend.xp, name), *args, **params), backend)
        return make


@cache
def namespace(backend: type[Storage]) -> TensorNamespace:
    """Return the op table for Tensors on one device."""
    return TensorNamespace(backend)


def viewing(op: type[Op]) -> Callable[..., Any]:
    """Make the fast path of ops whose result is, or may be, a view of their only tensor."""
    kernels, plans, always, otherwise = op.kernels, plans_of(op), op.view == "always", general(op)

    @compiled_form(op, 1, parameters=True)
    def call(a: Any, *positional: Any, **params: Any) -> Any:
        if (not positional and type(a) in PLAIN and (storage := a._storage).rank == 0
                and type(kernel := kernels[backend := type(storage)]) is not Pair):
            try:
                y = compute(kernel, x := a.array, **params)
            except (ValueError, MemoryError) as error:
                raise explained(op, (a.array,), error) from None
            node = a._node if a.origin is None else node_of(a)
            if always or backend.aliases(y, x):
                return view(op, (a,), (node,), 0 if node is None else 1, params, y)
            out = fresh(y, backend)
            if node is not None and (record := mode.record):
                record(plans[1], (a,), (node,), params, out)
            return out
        return otherwise(a, *positional, **params)
    return call


def joining(op: type[Op]) -> Callable[..., Any]:
    """Make the fast path of ops of a sequence of tensors of one dtype and device."""
    kernels, chars, tracked, otherwise = op.kernels, op.chars, op.differentiable, general(op)

    def call(tensors: Any, *positional: Any, **params: Any) -> Any:
        arrays, edges, needs, bit = [], [], 0, 1
        dtype = backend = None
        for t in () if positional else tensors:
            if type(t) not in PLAIN:
                break
            array = t.array
            if dtype is None:
                dtype, backend = array.dtype, type(t._storage)
            elif array.dtype is not dtype or type(t._storage) is not backend:
                break
            arrays.append(array)
            edges.append(node := t._node if t.origin is None else node_of(t))
            if node is not None:
                needs |= bit
            bit <<= 1
        else:
            if dtype is not None and dtype.char in chars and type(kernel := kernels[backend]) is not Pair:
                try:
                    out = fresh(compute(kernel, arrays, **params), backend)  # type: ignore[arg-type]
                except MemoryError as error:
                    raise explained(op, arrays, error) from None
                if needs and tracked and (record := mode.record):
                    record(plans_of(op).of(needs, edges), tuple(tensors), edges, params, out)
                return out
        return otherwise(tensors, *positional, **params)
    return call


OPERANDS = 5        # the most that a compiled lane takes


def lane(op: type[Op]) -> Callable[..., Any]:
    """Return the function that calls an op on Tensors."""
    if op.crosses:
        return general(op)
    if op.sequence and not (op.view or op.several or op.composite):
        return keeping_images(op, joining(op))
    if (op.view and op.arity == 1 and op.differentiable and not (op.several or op.sequence or op.composite)
            and set("biufcV") <= set(op.kinds)):
        return viewing(op)
    if op.arity in (1, 2) and not (op.view or op.several or op.composite):
        if not op.parameters:
            return (unary if op.arity == 1 else binary)(op)
        if op.arity == 1:
            return parametric(op)
    if op.arity and op.arity <= OPERANDS and not (op.view or op.several or op.sequence):
        return compiled_form(op, op.arity, parameters=bool(op.parameters), mixed=op.casts is None)(general(op))
    return keeping_images(op, general(op))


xp: Any = TensorNamespace()


# ── registration ──────────────────────────────────────────────────────────────────────────────────────────────────────


class OpDispatch:
    """Better implementations of single ops on single devices, from outside the op.

    >>> import numpy as np
    >>> from tensorgrad.core.dispatch import OpDispatch
    >>> from tensorgrad.const import OP, DEVICE
    >>> @OpDispatch.register(OP.EXP, DEVICE.CPU)
    ... def exp(x):
    ...     return np.exp2(x * 1.4426950408889634)
    >>> OpDispatch.unregister(OP.EXP, DEVICE.CPU)
    """

    @staticmethod
    def register(op: Any, device: Any) -> Callable[[Any], Any]:
        """Decorate a function, or class with `forward` and `backward`, to make it the op's kernel on the device.

        A later registration goes before an earlier one; `unregister` brings the earlier one back.
        """
        found, backend = OpDispatch.op(op), OpDispatch.backend(device)

        def decorate(kernel: Any) -> Any:
            found.kernels.register(backend, as_kernel(kernel))
            return kernel
        return decorate

    @staticmethod
    def unregister(op: Any, device: Any) -> None:
        """Remove the latest kernel of an op on a device; KeyError if there is none."""
        found, backend = OpDispatch.op(op), OpDispatch.backend(device)
        registered = found.kernels.registered.get(backend)
        if not registered:
            raise KeyError(f"no kernel is registered for {found.opname!r} on {backend.device}")
        found.kernels.unregister(backend, registered[-1])

    @staticmethod
    @contextmanager
    def override(op: Any, device: Any, kernel: Any) -> Iterator[None]:
        """The kernel, for the length of a `with` block."""
        OpDispatch.register(op, device)(kernel)
        try:
            yield
        finally:
            OpDispatch.unregister(op, device)

    @staticmethod
    def op(op: Any) -> type[Op]:
        if isinstance(op, type) and issubclass(op, Op):
            return op
        name = getattr(op, "value", op)
        if name not in OPS:
            raise KeyError(f"unknown op {name!r}")
        return OPS[name]

    @staticmethod
    def backend(device: Any) -> Any:
        if isinstance(device, type) and issubclass(device, Storage):
            return device
        return CudaStorage if str(device) == "cuda" else backend_of(getattr(device, "value", device))

    @staticmethod
    def execute(op: Any, *tensors: Any, **params: Any) -> Any:
        """Run an op of the table by its name."""
        return apply(OpDispatch.op(op), *tensors, **params)


def as_kernel(kernel: Any) -> Any:
    if isinstance(kernel, Pair) or not hasattr(kernel, "backward"):
        return kernel
    return Pair(kernel.forward, kernel.backward)
