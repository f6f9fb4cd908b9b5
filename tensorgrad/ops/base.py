"""The base of ops.

A class is an operation, defined by formulas; an instance is one application of it on the tape (see core/step.py).

    class Multiply(Elementwise):
        torch_name = "Mul"
        def forward(xp, a, b): return xp.multiply(a, b)
        def grad_a(xp, g, b):  return g * b
        def grad_b(xp, g, a):  return g * a

`forward(xp, *inputs, *, **params)` computes; `grad_<input>(xp, g, …)` is dL/d<input>, given g = dL/dout. A gradient's
signature is
its save list: it asks, by name, for an input, `out`, `<input>_shape`, a parameter, or another result of the op.
    Formulas know nothing of devices,
Tensors, broadcasting (the engine sums gradients of elementwise ops back to their inputs' shapes) or dtypes.
"""
from __future__ import annotations

import re
from functools import partial
from typing import Any, ClassVar

from ..storage.base import Namespace, Storage

OPS: dict[str, type[Op]] = {}


# NumPy's letters of dtypes, by kind. float16 counts with the dtypes that NumPy does not compute with, bfloat16, float8
# and complex32: ops take float32 or complex64 in their place, and round once. CuPy's arrays of these have dtypes of
# ml_dtypes, with letters of their own.
HALVES = frozenset("VeE45GCW")
CHARS = {"b": "?", "i": "bhilq", "u": "BHILQ", "f": "fd", "c": "FD", "V": "".join(sorted(HALVES))}


class OpType(type):
    """The metaclass of ops. Ops add no attributes to tape steps, so that all steps share one memory layout."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> OpType:
        return super().__new__(cls, name, bases, {"__slots__": (), **namespace}, **kwargs)


class Op(metaclass=OpType):
    """An operation. See the module's docstring."""

    edges: Any                                    # attributes of every application, see core/node.py
    params: Any

    # attributes that a subclass may set
    torch_name: ClassVar[str]                     # PyTorch's name for grad_fn, less 'Backward0'
    former: ClassVar[str] = ""                    # its name in the first version of this project, which const.OP keeps
    kernel_name: ClassVar[Any]                    # its name in errors about dtypes, or a function of inputs to find it
    native: ClassVar[bool] = False                # the module's function of this name is the whole kernel
    elementwise: ClassVar[bool] = False           # inputs broadcast; the engine sums gradients back
    # 'promote': inputs to one dtype; 'float': and integers to the default float
    casts: ClassVar[str | None] = None
    # NumPy kinds of dtype that the kernels take as they are; those that take "V" move elements, and do not compute
    kinds: ClassVar[str] = "biufc"
    takes_float8: ClassVar[bool] = False          # float8 operands, too: in float32, as those of 16 bits
    # complex32 operands, too: in complex64; False: refused by an op that moves elements of all other dtypes
    complex32: ClassVar[bool | None] = None
    to_complex: ClassVar[bool] = False              # True if real operands have a complex result
    outputs: ClassVar[tuple[str, ...]] = ()       # names of the results, if there are several
    several: ClassVar[bool] = False               # forward returns a tuple
    analytic: ClassVar[bool] = True               # complex gradients: conjugate, apply the formula, conjugate
    view: ClassVar[str] = ""                      # the result shares the first input's memory: 'always', or 'maybe'
    # a view of the input's whole storage, not only of the input's elements
    by_memory: ClassVar[bool] = False
    # the gradient is piecewise constant in the inputs: its own gradient is zero
    flat: ClassVar[bool] = False
    crosses: ClassVar[bool] = False               # the result may have another layout, and so another storage class
    sequence: ClassVar[bool] = False              # the inputs come as one sequence: concat([a, b])
    # the results are contiguous, whatever the inputs' strides; others keep the order of their inputs' axes
    row_major: ClassVar[bool] = False
    # the inputs by whose memory format results, and gradients, are channels_last; for a sequence, if all of it is
    images: ClassVar[str] = ""
    order: ClassVar[tuple[int, ...]] = ()         # of the inputs in `next_functions`, if another than the formulas'
    volumes: ClassVar[bool] = True                # so are images of three dimensions
    in_order: ClassVar[bool] = False              # results have their axes in the first input's order, for all kernels
    # results that are stacks of matrices, as the inputs are, have them column by column; others are contiguous
    column_major: ClassVar[bool] = False
    # its kernels may write over the first input, if its values are given up: they read each element before
    lands: ClassVar[bool] = False
    explain: ClassVar[Any] = None                 # explain(*shapes): the error for operands that do not fit together
    # check(xp, *inputs, **params): the error for values that the op refuses, where there are values
    check: ClassVar[Any] = None

    # attributes for other interpretations of the op; where neither it nor its family sets one, the definition is traced
    # infer(*inputs, **params): the result's (shape, dtype), or a list of them; inputs have these alone
    infer: ClassVar[Any] = None
    # how vmap maps it over hidden axes: a family, or a rule, see interpret/_batched_ops.py; '': one by one
    batch: ClassVar[Any] = ""
    # parameters that name axes, counted from the front: hidden axes push them back
    axes: ClassVar[tuple[str, ...]] = ()
    # of each input, how many of its last axes belong to one problem; those in front broadcast
    core: ClassVar[tuple[int, ...]] = ()
    # groups of inputs in which it is linear while the others stay fixed: "x b" moves both at once
    linear: ClassVar[tuple[str, ...]] = ()
    # of an op f of one array, for sparse arrays: "kept" if f(0) = 0, "additive" if also f(x + y) = f(x) + f(y)
    zeros: ClassVar[str] = ""
    # PyTorch's name of an op whose result has a shape that depends on values
    by_values: ClassVar[str] = ""
    notation: ClassVar[str] = ""                  # its notation in formulas: "{} · {}", or the name of a function, "Σ"
    # the ONNX operator that computes just this; "definition": the export has that; else onnx/_rules_* say
    onnx: ClassVar[str] = ""
    # its definition computes with functions of the host, as LAPACK and the special functions do
    host: ClassVar[bool] = False

    # computed attributes
    opname: ClassVar[str]                         # the key in the table, and the name in `xp`
    chars: ClassVar[str]                          # NumPy's letters of the dtypes that the kernels take as they are
    kernels: ClassVar[Kernels]
    inputs: ClassVar[tuple[str, ...]]
    arity: ClassVar[int | None]                   # None for any number of inputs
    parameters: ClassVar[dict[str, Any]]          # name -> default
    differentiable: ClassVar[bool]
    composite: ClassVar[bool] = False             # no gradient formulas: the definition itself is differentiated

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "forward" not in cls.__dict__:         # a family of ops, or the class of an op's tape nodes
            return
        named, any_number, cls.parameters = arguments(cls.forward)
        cls.opname = cls.__dict__.get("opname") or _snake(cls.__name__)
        cls.inputs = named[1:]
        cls.arity = None if cls.sequence or any_number else len(cls.inputs)
        cls.differentiable = (cls.__dict__.get("differentiable")
                              or any(name.startswith("grad_") for name in cls.__dict__))
        cls.several = bool(cls.outputs) or cls.several
        cls.chars = "".join(CHARS[kind] for kind in cls.kinds)
        if cls.complex32 is False:
            cls.chars = cls.chars.replace("V", "")
        cls.kernels = Kernels(cls)
        cls.torch_name = cls.__dict__.get("torch_name", cls.__name__)
        cls.kernel_name = cls.__dict__.get("kernel_name", f"{cls.opname}_cpu")
        OPS[cls.opname] = cls

    forward: ClassVar[Any]

    def overload(self) -> int:
        """Return the number of PyTorch's overload that this step is, which ends its name."""
        return 0

    def name(self) -> str:
        """PyTorch's name of the step."""
        number = self.overload()
        return f"{type(self).__name__[:-1]}{number}" if number else type(self).__name__


def arguments(function: Any) -> tuple[tuple[str, ...], bool, dict[str, Any]]:
    """Return the names of a formula's positional arguments, True if the last is variadic, and its keyword-only
    defaults.

    (Like inspect.signature, without importing a tenth of the standard library.)
    """
    code = function.__code__
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    starred = names[positional + keyword:positional + keyword + 1] if code.co_flags & 0x04 else ()
    defaults = function.__kwdefaults__ or {}
    return (names[:positional] + starred, bool(starred),
            {n: defaults.get(n, NO_DEFAULT) for n in names[positional:positional + keyword]})


NO_DEFAULT: Any = type("NO_DEFAULT", (), {"__repr__": lambda self: "required"})()


WORD = re.compile("(?<!^)[A-Z]")


def _snake(name: str) -> str:
    return WORD.sub(r"_\g<0>", name).lower()


def input_name(op: type[Op], position: int) -> str:
    """The name of the input at a position; those past the last share its name (concat, indices)."""
    return op.inputs[min(position, len(op.inputs) - 1)]


def asked(op: type[Op]) -> set[str]:
    """The names that the gradients of an op ask for."""
    return {name for each in dict.fromkeys(op.inputs) if (formula := getattr(op, f"grad_{each}", None))
            for name in arguments(formula)[0][2:]}


class Elementwise(Op):
    """Ops on each element: inputs broadcast and come to one dtype."""

    elementwise = True
    native = True
    casts: ClassVar[str | None] = "promote"
    batch = "elementwise"


class Floating(Elementwise):
    """Elementwise ops of the reals: integers become the default float first."""

    casts = "float"
    kinds = "fc"


class AlongAxis(Op):
    """Ops that reduce, or go along, the axis that `axis` names."""

    __slots__ = ()
    batch = "along"
    axes = ("axis",)


class Composite(Op):
    """Ops defined by other ops of the table, which have their gradients: they exist for their kernel pairs."""

    composite = True


class Kernels(dict[Any, Any]):
    """The kernels of an op by storage class. Without a registered kernel, the op's `forward` runs."""

    def __init__(self, op: type[Op]) -> None:
        self.op = op
        self.registered: dict[Any, list[Any]] = {}
        # the definition with in-place writes, for backends whose arrays are memory: see kernels/arrays.py
        self.in_arrays: Any = None

    def __missing__(self, backend: type[Storage]) -> Any:
        for cls in backend.__mro__:
            if self.registered.get(cls):
                found = self.registered[cls][-1]
                break
        else:
            found = backend.native(self.op)
        found = self.from_definition(backend) if found is None else self.laid_out(found, backend)
        if (guard := backend.guard) is not None:
            found = found.wrapped(guard, guard) if isinstance(found, Pair) else guard(found)
        self[backend] = found
        return found

    @property
    def primitive(self) -> bool:
        """True if the formula calls the op itself, like xp.max(x): a function of the module or of arrays."""
        return self.op.opname in self.op.forward.__code__.co_names

    def from_definition(self, backend: type[Storage]) -> Any:
        definition = (backend.writes or self.primitive) and self.in_arrays or self.op.forward
        # a function of the module
        if backend.module is None and (self.op.native or self.op.opname in definition.__code__.co_names):
            raise NotImplementedError(f"Could not run '{self.op.opname}' on the device '{backend.device}': no kernel "
                                      f"is registered for it. OpDispatch.register('{self.op.opname}', "
                                      f"'{backend.device}') adds one.")
        native = (getattr(backend.module, self.op.opname, None) if self.op.native and definition is self.op.forward
                  else None)
        return self.laid_out(self.checked(native or partial(definition, backend.xp), backend), backend)

    def checked(self, kernel: Any, backend: type[Storage]) -> Any:
        """A kernel that looks at the values first, where the op refuses some and the backend has any."""
        check, xp = self.op.check, backend.judge()
        if check is None or xp is None:
            return kernel

        def run(*args: Any, **params: Any) -> Any:
            check(xp, *args, **params)
            return kernel(*args, **params)
        return run

    def laid_out(self, kernel: Any, backend: type[Storage]) -> Any:
        """Wrap a kernel so that results with another memory layout than the op promises are copied, if arrays have
        strides.
        """
        copied = backend.row_major
        if self.op.column_major and backend.column_major is not None:
            return in_columns(kernel, backend, self.op.several)
        if copied is None or not (self.op.row_major or self.op.in_order):
            return kernel
        if self.op.in_order:
            return as_first(kernel, backend.ordered, self.op.several)
        if isinstance(kernel, Pair):
            return kernel.laid_out(copied)
        if self.op.several:
            return lambda *args, **params: tuple(y if y.flags.c_contiguous else copied(y)
                                                 for y in kernel(*args, **params))

        def run(*args: Any, **params: Any) -> Any:
            y = kernel(*args, **params)
            return y if y.flags.c_contiguous else copied(y)
        return run

    def register(self, backend: type[Storage], kernel: Any) -> None:
        registered = self.registered.setdefault(backend, [])
        if isinstance(kernel, Pair) and registered and isinstance(registered[-1], Pair):
            kernel.below = registered[-1]
        registered.append(kernel)
        self.forget()

    def unregister(self, backend: type[Storage], kernel: Any) -> None:
        self.registered[backend].remove(kernel)
        self.forget()

    def forget(self) -> None:
        """Drop the chosen kernels, so that the next call, and every `xp`, choose again."""
        self.clear()
        for backend in (Storage, *_descendants(Storage)):
            if backend.xp is not None:
                backend.xp.__dict__.pop(self.op.opname, None)
                if any(self.registered.get(cls) for cls in backend.__mro__):
                    setattr(backend.xp, self.op.opname, _callable(self.op, backend))


def as_first(kernel: Any, ordered: Any, several: bool) -> Any:
    def run(x: Any, *args: Any, **params: Any) -> Any:
        found = kernel(x, *args, **params)
        return tuple(ordered(y, (x,)) for y in found) if several else ordered(found, (x,))
    return run


def in_columns(kernel: Any, backend: type[Storage], several: bool) -> Any:
    """Wrap a kernel so that results that are matrices, like the inputs, are column-major, and others contiguous, as
    with LAPACK.
    """
    rows, columns = backend.row_major or (lambda y: y), backend.column_major

    def run(*args: Any, **params: Any) -> Any:
        ndim = max(getattr(a, "ndim", 0) for a in args)
        found = kernel(*args, **params)
        laid = [columns(y) if y.ndim == ndim else y if y.flags.c_contiguous else rows(y)
                for y in (found if several else (found,))]
        return tuple(laid) if several else laid[0]
    return run


def _descendants(cls: type) -> list[Any]:
    children: list[Any] = cls.__subclasses__()
    return [d for child in children for d in (child, *_descendants(child))]


def _callable(op: type[Op], backend: type[Storage]) -> Any:
    """A kernel as `xp` offers it: a pair shows its result, not its residual, and parameters may follow the inputs, as
    in NumPy.
    """
    kernel = op.kernels[backend]

    def shown(*args: Any, **params: Any) -> Any:
        _, served = kernel.served(*args, **params)
        return op.kernels.from_definition(backend)(*args, **params) if served is NotImplemented else served[0]
    run = shown if isinstance(kernel, Pair) else kernel
    if not op.parameters or op.arity is None and not op.sequence:
        return run
    count, names = len(op.inputs), tuple(op.parameters)

    def call(*args: Any, **params: Any) -> Any:
        return run(*args[:count], **dict(zip(names, args[count:])), **params)
    return call


class Pair:
    """A kernel with a shortcut back: forward -> (out, residual), backward(g, residual, needs) -> gradients.

    The pair serves first gradients; gradients of gradients go through the op's definition, so a fast kernel can never
    make a higher derivative wrong. `forward` may return NotImplemented for unsupported arguments: then the pair that
    was registered before runs, and finally the definition. `rows` copies results that are not contiguous, for ops that
    promise contiguous results; the compiled fast path applies it, too. `whole`, if any, is a function of Tensors that
    takes the place of both: it calls other ops, which are recorded.
    """

    __slots__ = ("forward", "backward", "below", "rows", "whole")

    def __init__(self, forward: Any, backward: Any, below: Pair | None = None, rows: Any = None,
                 whole: Any = None) -> None:
        self.forward, self.backward, self.below, self.rows, self.whole = forward, backward, below, rows, whole

    def served(self, *args: Any, **params: Any) -> tuple[Pair, Any]:
        """Return the first pair that supports the arguments, and its forward's result, or NotImplemented."""
        pair = self
        while (found := pair.forward(*args, **params)) is NotImplemented and pair.below is not None:
            pair = pair.below
        if pair.rows is not None and found is not NotImplemented and not found[0].flags.c_contiguous:
            found = (pair.rows(found[0]), *found[1:])
        return pair, found

    def wrapped(self, forward: Any, backward: Any = None) -> Pair:
        """Wrap the functions of the pair, and of the pairs below it."""
        below = self.below and self.below.wrapped(forward, backward)
        return Pair(forward(self.forward), backward(self.backward) if backward else self.backward, below, self.rows)

    def laid_out(self, rows: Any) -> Pair:
        """Return the pair, and the pairs below it, with `rows` to make results contiguous."""
        return Pair(self.forward, self.backward, self.below and self.below.laid_out(rows), rows)


@Namespace.register
def _of_table(backend: type[Storage], name: str) -> Any:
    """An op of the table for `xp`, where the backend's module lacks it."""
    return _callable(OPS[name], backend) if name in OPS else None


__all__ = ["OPS", "AlongAxis", "Composite", "Elementwise", "Floating", "Kernels", "Namespace", "Op", "Pair",
           "input_name"]
