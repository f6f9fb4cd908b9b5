"""One function, all of its forms: `torch.f`, `Tensor.f`, `Tensor.f_`, `out=`.

The function in `api/` is the truth for its signature, argument checks and docstring; `@public` attaches it. PyTorch also takes NumPy's names of
some arguments (axis, keepdims, x, other names are its own): they are translated here, once.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._tensor import Tensor
from ..autograd import inplace
from ..autograd.tape import TensorBase

FUNCTIONS: dict[str, Callable[..., Any]] = {}    # everything that becomes a name of the root package
C_NAMES = {"bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
           "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
           "complex128": "c10::complex<double>", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t"}
SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


def public(*aliases: str, name: str | None = None, function: bool = True, method: bool | str = True, inplace: bool = False,
           out: bool | str = False) -> Callable[[Any], Any]:
    """Attach a function under its name and aliases.

    function: as a name of the root package; method: as a method of Tensor (the first argument is the tensor); inplace: also with a trailing
    underscore; out: the root function takes `out=`, of any dtype that the result can be cast to, or of the result's own ("same"), and, for "apart",
    in memory that no argument lies in.
    """
    def attach(raw: Any) -> Any:
        kept = name or raw.__name__
        takes = raw.__code__.co_varnames[:raw.__code__.co_argcount + raw.__code__.co_kwonlyargcount]
        call = _with_synonyms(raw, takes)
        if out:
            call_with_out = _with_out(call, exact=out in ("same", "apart"), apart=out == "apart")
        for n in (kept, *aliases):
            if function:
                FUNCTIONS[n] = call_with_out if out else call
            if method:
                setattr(Tensor, n, call)
            if inplace:
                setattr(Tensor, f"{n}_", in_place_form(call, n))
        return call_with_out if out else call
    return attach


def _with_synonyms(raw: Any, takes: Any) -> Any:
    renamed = {old: new for old, new in SYNONYMS.items() if new in takes and old not in takes}
    if not ({"dim", "keepdim"} & set(takes)):
        return raw

    @wraps(raw)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for old in renamed.keys() & kwargs.keys():
                kwargs[renamed[old]] = kwargs.pop(old)
        return raw(*args, **kwargs)
    return call


def _with_out(call: Any, exact: bool = False, apart: bool = False) -> Any:
    @wraps(call)
    def with_out(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if apart and out is not None and any(o is a for o in out for a in args):
            raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                               "location. Please clone() the tensor before performing the operation.")
        if type(out) is Tensor:
            for a in args:
                if isinstance(a, TensorBase) and a.storage is out.storage:
                    inplace.check_overlap(out.array, a.array)
        result = call(*args, **kwargs)
        return result if out is None else write_out(result, out, exact, call.__name__)
    return with_out


def in_place_form(call: Any, name: str) -> Any:
    """The method with a trailing underscore."""
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return inplace.in_place(self, call, *args, **kwargs)
    method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
    method.__doc__ = f"In-place version of `{name}`: the tensor takes the result's values."
    return method


def write_out(result: Any, out: Any, exact: bool = False, name: str = "function") -> Any:
    """Put a result into the tensors that `out=` gave, and return these."""
    if isinstance(result, (tuple, list)):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"out must be a tuple of {len(result)} tensors")
        written = [write_out(r, o, exact, name) for r, o in zip(result, out, strict=True)]
        return type(result)(*written) if hasattr(result, "_fields") else type(result)(written)
    if not isinstance(out, TensorBase):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if result._node is not None or out.requires_grad:  # type: ignore[attr-defined]
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires "
                           "grad.")
    if type(result.storage) is not type(out.storage):
        raise RuntimeError(f"Expected out tensor to be on {result.device}, but got {out.device} instead")
    if exact and result.array.dtype != out.array.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {C_NAMES[result.dtype.name]}, but got {C_NAMES[out.dtype.name]} instead")
    if result.array.shape != out.array.shape:
        _resize(out, result.array.shape)
    inplace.check_result(out, result)
    inplace.write(out, result.array)
    return out


def _resize(out: Any, shape: Any) -> None:
    if out.array.size:
        import warnings
        warnings.warn(f"An output with one or more elements was resized since it had shape {list(out.array.shape)}, which does not match the "
                      f"required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs will not be "
                      "resized unless they have zero elements.", UserWarning, stacklevel=4)
    backend = type(out.storage)
    out._point_to(backend.xp.empty(shape, dtype=out.array.dtype), backend())
