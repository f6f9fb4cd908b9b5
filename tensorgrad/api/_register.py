"""Attach all forms of a function: `torch.f`, `Tensor.f`, `Tensor.f_`, `out=`.

The function in `api/` defines signature, argument checks and docstring; `@public` attaches it. PyTorch also takes
NumPy's names of some arguments (axis, keepdims, x): they are translated here, once.
"""
from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from numpy import empty_like, ndarray

from .._tensor import Tensor
from .._tensor.torch_function import PARSER, instead
from .._tensor.usual_types import odd, usual
from ..core import inplace
from ..core.class_hooks import CLASSES, among
from ..core.class_hooks import hooks as class_hooks
from ..core.mode import mode
from ..core.step_names import naming
from ..core.tape import TensorBase
from ..dtype import SCALAR_TYPES, as_dtype, can_cast, strided
from ._arguments import C_NAMES, warn
from .return_types import given

FUNCTIONS: dict[str, Callable[..., Any]] = {}    # everything that becomes a name of the root package
EXPLAINED: set[Any] = set()                      # methods whose errors are already PyTorch's
JOINING = frozenset("cat column_stack dstack hstack stack vstack".split())
VARIADIC = 4 | 8                                 # a code object's flags for *args and **kwargs
SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


def public(*aliases: str, name: str | None = None, function: bool = True, method: bool | str = True,
           inplace: bool = False,
           out: bool | str = False) -> Callable[[Any], Any]:
    """Attach a function under its name and aliases.

    function: as a name of the root package; method: as a method of Tensor (the first argument is the tensor); inplace:
    also with a trailing underscore; out: the root function takes `out=`, of any dtype that the result can be cast to. A
    string of words restricts it: "same", it must have the result's dtype; "parts", only if there are several results;
    "apart", it may not overlap an argument; "given", the result has its dtype unless `dtype=` is given; "filled", it
    keeps its shape if it has as many elements as the result.
    """
    def attach(raw: Any) -> Any:
        kept = name or raw.__name__
        takes = raw.__code__.co_varnames[:raw.__code__.co_argcount + raw.__code__.co_kwonlyargcount]
        raw = naming(raw, kept)
        call = (_with_layout(raw) if "layout" in takes and not raw.__module__.endswith(OWN_LAYOUT)
                else _with_synonyms(raw, takes))
        if out:
            words = str(out).split()
            call_with_out = _with_out(call, "same" in words, "apart" in words, "given" in words, "parts" in words,
                                      "device" in takes, "keepdim" in takes, kept, "filled" in words)
        for n in (kept, *aliases):
            if function:
                FUNCTIONS[n] = call_with_out if out else call
            if method:
                setattr(Tensor, n, call)
            if inplace:
                setattr(Tensor, f"{n}_", in_place_form(call, n))
        return call_with_out if out else call
    return attach


def _with_layout(raw: Any) -> Any:
    @wraps(raw)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "layout" in kwargs and raw.__name__ not in SPARSE_TOO:
            check_layout(kwargs["layout"], raw.__name__)
        return raw(*args, **kwargs)
    call.bare = raw  # type: ignore[attr-defined]
    return call


def wraps(raw: Any) -> Callable[[Any], Any]:
    """functools.wraps, at a third of its cost: half a thousand functions are dressed when the package is imported."""
    def dress(call: Any) -> Any:
        call.__dict__.update(raw.__dict__)
        call.__module__, call.__name__, call.__qualname__, call.__doc__ = (raw.__module__, raw.__name__,
                                                                           raw.__qualname__, raw.__doc__)
        call.__wrapped__ = raw
        return call
    return dress


OWN_LAYOUT = ("windows", "sparse", "sparse_methods", "sparse_conversions")      # modules whose functions check it
# these make tensors of sparse layouts
SPARSE_TOO = frozenset("zeros empty zeros_like empty_like ones_like full_like rand_like randn_like "
                       "randint_like".split())


# {function: the name in errors of the function that fills its result}
FILLS = {"rand": "uniform_", "randn": "normal_", "randint": "random_.from", "eye": "eye.m_out",
         "arange": "arange.start_out", "linspace": "linspace.out"}


def check_layout(layout: Any, name: str = "full") -> None:
    """Raise PyTorch's error for a function that would fill a tensor that is not strided."""
    if layout in (None, strided):
        return
    if name not in FILLS:
        raise RuntimeError("full(...) is not implemented for sparse layout")
    raise NotImplementedError(f"Could not run 'aten::{FILLS[name]}' with arguments from the 'SparseCPU' backend. This "
                              "could be because the operator doesn't exist for this backend, or was omitted during the "
                              "selective/custom build process (if using custom build).")


def _with_synonyms(raw: Any, takes: Any) -> Any:
    if "dim" not in takes and "keepdim" not in takes:
        return raw
    renamed = {old: new for old, new in SYNONYMS.items() if new in takes and old not in takes}

    @wraps(raw)
    def call(*args: Any, **kwargs: Any) -> Any:
        return raw(*args, **translate(renamed, kwargs)) if kwargs else raw(*args)
    call.translates, call.bare = (raw, renamed), raw  # type: ignore[attr-defined]
    return call


def translate(renamed: dict[str, str], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keywords with PyTorch's names in place of NumPy's, but for arguments that are given twice."""
    if renamed.keys().isdisjoint(kwargs):
        return kwargs
    return {renamed[k] if k in renamed and renamed[k] not in kwargs else k: v for k, v in kwargs.items()}


# functions whose several results may not be written over their input
PICKING = frozenset("aminmax kthvalue max min mode topk".split())


def _with_out(call: Any, exact: bool = False, apart: bool = False, given: bool = False, parts: bool = False,
              places: bool = False, reduces: bool = False, key: str = "", filled: bool = False) -> Any:
    picks = call.__name__ in PICKING

    @wraps(call)
    def with_out(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return call(*args, **kwargs)
        if CLASSES and among((out, *args, *kwargs.values())):
            return class_hooks.into(call, args, out, kwargs)
        if type(out) is Tensor:
            if apart:
                inplace.check_writeable(out)
            for a in () if reduces and not isinstance(args[1:] and args[1], TensorBase) else args:
                for t in a if apart and isinstance(a, (tuple, list)) else (a,):
                    if isinstance(t, TensorBase) and (apart or t._storage is out._storage):
                        inplace.check_overlap(out.array, t.array, apart=apart)
            if given:
                kwargs["dtype"] = _given_dtype(out, kwargs.get("dtype"))
                if places:
                    kwargs.setdefault("device", out.device)
        elif apart and any(o is a for o in out for a in args):
            raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor "
                               "refer to a single memory location. Please clone() the tensor before performing the "
                               "operation.")
        result = call(*args, **kwargs)
        if filled and isinstance(out, TensorBase):
            result = _in_shape(result, out, key)
        if picks and args and isinstance(result, tuple) and isinstance(out, (tuple, list)) and len(out) == len(result):
            for o in out:
                if isinstance(o, TensorBase) and o._storage is args[0]._storage:
                    inplace.check_overlap(o.array, args[0].array, apart=True)
        return write_out(result, out, exact or parts and type(out) is not Tensor, call.__name__, key, quiet=places)
    with_out.bare = getattr(call, "bare", call)  # type: ignore[attr-defined]
    return with_out


def _in_shape(result: Any, out: Any, name: str) -> Any:
    """Return a sequence in the shape of `out`, if this has as many elements; else `out` takes the sequence's."""
    if result.array.size == out.array.size:
        return result.reshape(out.array.shape)
    if out.array.size and name in ("arange", "range"):
        warn(f"The number of elements in the out tensor of shape {list(out.array.shape)} is {out.array.size} which "
             f"does not match the computed number of elements {result.array.size}. Note that this may occur as a "
             f"result of rounding error. The out tensor will be resized to a tensor of shape ({result.array.size},).")
    if mode.grad and out.requires_grad:
        return result
    _resize(out, result.array, quiet=True)
    return result


def _given_dtype(out: Any, dtype: Any) -> Any:
    """The dtype of `out=`, which `dtype=` may not contradict."""
    if dtype not in (None, out.dtype):
        raise RuntimeError(f"dtype {SCALAR_TYPES[as_dtype(dtype).name]} does not match dtype of out parameter "
                           f"({SCALAR_TYPES[out.dtype.name]})")
    return out.dtype


OWN_DTYPE = {    # in-place methods that accept only results of the tensor's dtype, and their messages for others
    "abs": "In-place abs is not supported for complex tensors.",
    "absolute": "In-place abs is not supported for complex tensors.",
    "cumsum": "Bad in-place call: input tensor dtype {0} and output tensor dtype {1} should match",
    "cumprod": "Bad in-place call: input tensor dtype {0} and output tensor dtype {1} should match",
    "float_power": "the base given to float_power_ has dtype {2} but the operation's result requires dtype {3}",
}


def _keeping_dtype(call: Any, name: str) -> Any:
    @wraps(call)
    def kept(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if name in ("cumsum", "cumprod") and kwargs.get("dtype") in (None, self.dtype):
            if self.array.dtype.kind == "b":
                raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
            kwargs["dtype"] = self.dtype
        out = call(self, *args, **kwargs)
        if out.dtype is not self.dtype:
            raise RuntimeError(OWN_DTYPE[name].format(*(names[t.dtype.name] for names in (C_NAMES, SCALAR_TYPES)
                                                        for t in (self, out))))
        return out
    return kept


def in_place_form(call: Any, name: str) -> Any:
    """The method with a trailing underscore."""
    first: Any = None           # looked up at the first call, with what follows
    positions: Any = None
    named: Any = None
    kept = _keeping_dtype(call, name) if name in OWN_DTYPE else call

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        nonlocal first, positions, named
        if first is None:
            first, positions, named = usual(call)
        try:
            if (kwargs or len(args) >= first) and odd(given := (self, *args), kwargs, positions, named) and (
                    better := instead(None, method, None, f"{name}_", given, kwargs)):
                return better.result()
            return inplace.in_place(self, kept, *args, **kwargs)
        except Exception as error:
            better = instead(error, method, None, f"{name}_", (self, *args), kwargs)
            if better is None:
                raise
            return better.result()
    EXPLAINED.add(method)
    method.__wrapped__ = call  # type: ignore[attr-defined]
    method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
    method.__doc__ = f"In-place version of `{name}`: the tensor takes the result's values."
    return method


def _parser(*call: Any) -> Any:
    from ._parsing import answer
    return answer(*call)


PARSER.append(_parser)


def explain_methods() -> None:
    """Put the methods that take arguments in the form that has its errors explained."""
    for name, value in list(vars(Tensor).items()):
        if (type(value) is FunctionType and ".api." in value.__module__ and value not in EXPLAINED
                and not name.startswith("_")):
            code = value.__code__
            if code.co_argcount + code.co_kwonlyargcount > 1 or code.co_flags & VARIADIC:
                setattr(Tensor, name, _explained(value, name))


def _explained(method: Any, name: str) -> Any:
    raw, renamed = getattr(method, "translates", (method, None))
    first: Any = None           # looked up at the first call, with what follows
    positions: Any = None
    named: Any = None

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal first, positions, named
        if first is None:
            first, positions, named = usual(raw)
        try:
            if (kwargs or len(args) > first) and odd(args, kwargs, positions, named) and (
                    better := instead(None, raw, None, name, args, kwargs)):
                return better.result()
            return raw(*args, **translate(renamed, kwargs)) if kwargs and renamed else raw(*args, **kwargs)
        except Exception as error:
            better = instead(error, method, None, name, args, kwargs)
            if better is None:
                raise
            return better.result()
    call.__module__, call.__name__, call.__qualname__, call.__doc__ = (method.__module__, method.__name__,
                                                                       method.__qualname__, method.__doc__)
    call.__wrapped__ = method  # type: ignore[attr-defined]
    EXPLAINED.add(call)
    return call


def write_out(result: Any, out: Any, exact: bool = False, name: str = "function", key: str = "",
              place: int = 0, quiet: bool = False) -> Any:
    """Write a result to the tensors of `out=`, and return these.

    key: the name of PyTorch's compiled function, where it is another; place: which of several results this is; quiet:
    functions that make tensors change the shape of `out` without a warning
    """
    if isinstance(result, (tuple, list)):
        if name == "nonzero":
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"expected tuple of {len(result)} elements but got "
                            f"{len(out) if isinstance(out, (tuple, list)) else 1}")
        for i, (r, o) in enumerate(zip(result, out, strict=True)):
            _check_out(r, o, exact, name, key, i)
        written = [write_out(r, o, exact, name, key, i) for i, (r, o) in enumerate(zip(result, out, strict=True))]
        return given(type(result))(*written) if hasattr(result, "_fields") else type(result)(written)
    _check_out(result, out, exact, name, key, place)
    if inplace.is_dropped(out, result.array):
        return result
    if result.array.shape != out.array.shape:
        _resize(out, result.array, quiet, name)
    inplace.check_mode(out)
    inplace.write(out, result.array)
    return out


def _check_out(result: Any, out: Any, exact: bool, name: str, key: str = "", place: int = 0) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if any(t._node is not None and not t._node.requires_grad for t in (result, out)):
        raise NotImplementedError(f"Trying to use forward AD with {name}_out that does not support it because it is an "
                                  f"out= function")
    if mode.grad and (result._node is not None or out.requires_grad) and name not in inplace.UNRECORDED:
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the arguments requires grad.")
    if type(result._storage).rank or type(out._storage).rank:
        raise RuntimeError(f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't work on "
                           f"out= or view ops.")
    if type(result._storage) is not type(out._storage) and not (result._storage.leads or out._storage.leads):
        raise RuntimeError(f"Expected out tensor to be on {result.device}, but got {out.device} instead")
    from ._out_dtypes import check_out_dtype  # a long table, which few programs need
    if check_out_dtype(key or name, result, out, exact, place):
        return
    if name in JOINING and not can_cast(result.dtype, out.dtype):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type "
                        f"{SCALAR_TYPES[out.dtype.name]}")
    inplace.check_cast(out, result)


IN_ROWS = frozenset("addmm kron".split())        # whose results in `out=` are contiguous, and those of `fft`


def _resize(out: Any, like: Any, quiet: bool = False, name: str = "") -> None:
    """Give `out` new memory of the shape of an array, for most functions in the order of its axes, too."""
    if out.array.size and not quiet:
        warn(f"An output with one or more elements was resized since it had shape {list(out.array.shape)}, "
             f"which does not match the required output shape {list(like.shape)}. This behavior is "
             "deprecated, and in a future PyTorch release outputs will not be resized unless they have zero "
             "elements.", again=True)
    backend = type(out._storage)
    ordered = type(like) is backend.array_type is ndarray and name not in IN_ROWS and "fft" not in name
    made = (empty_like(like, dtype=out.array.dtype) if ordered else backend.xp.empty(like.shape, dtype=out.array.dtype))
    out._point_to(made, backend())
