"""Checks of arguments that many functions share."""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from ..advice import misfit
from ..core.casting import result_type
from ..core.dispatch import SCALAR_TYPES, apply, explained
from ..core.tape import TensorBase
from ..device import device
from ..dtype import C_NAMES as C_NAMES
from ..generator import Generator
from ..messages.warn_once import WARNED as WARNED
from ..messages.warn_once import warn as warn
from ..ops.base import OPS
from ..size import Size, shape_together, whole


def normalize_dim(dim: Any, ndim: int) -> int:
    """Return an axis counted from the front; IndexError if it is out of range. A 0-d tensor counts as 1-d."""
    n = ndim or 1
    if type(dim) is not int:
        dim = integer(dim, "dim")
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


def integer(value: Any, argument: str) -> int:
    """An argument that counts something.

    PyTorch takes integers, also NumPy's, and 0-d integer tensors; TypeError for others.
    """
    if type(value) is int:
        return value
    if isinstance(value, TensorBase):
        fits = not value.array.ndim and value.array.dtype.kind in "iu"
    else:
        fits = hasattr(value, "__index__") and not isinstance(value, bool) and not hasattr(value, "__array_finalize__")
    if not fits:
        raise TypeError(f"argument '{argument}' must be int, not {type(value).__name__}")
    return whole(value)


def check_long(*values: int) -> None:
    """ValueError for integers that do not fit in 64 bits."""
    for value in map(whole, values):
        if not -1 << 63 <= value < 1 << 63:
            raise ValueError("Overflow when unpacking long long")


def normalize_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Normalize one axis or several; RuntimeError if one is named twice."""
    if not isinstance(dims, (tuple, list)):
        return (normalize_dim(dims, ndim),)
    out = tuple(normalize_dim(d, ndim) for d in dims)
    for d in out:
        if out.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return out


def check_tensor(value: Any, function: str, argument: str, position: int) -> None:
    """TypeError if an argument is no tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"{function}(): argument '{argument}' (position {position}) must be Tensor, not "
                        f"{type(value).__name__}")


def check_tensors(input: Any, other: Any, function: str) -> None:
    """Raise TypeError if one of two operands is no tensor."""
    check_tensor(input, function, "input", 1)
    check_tensor(other, function, "other", 2)


def check_format(ndim: int, memory_format: Any) -> None:
    """Raise RuntimeError for a memory format that needs another number of axes."""
    needed = {dtypes.channels_last: 4, dtypes.channels_last_3d: 5}.get(memory_format, ndim)
    if ndim != needed:
        raise RuntimeError(f"required rank {needed} tensor to use channels_last{'_3d' * (needed == 5)} format")


def refuse(tensor: Any, kinds: str, kernel: str) -> None:
    """Raise NotImplementedError for a dtype of one of NumPy's kinds, for which PyTorch's kernel has no code."""
    if (kind := tensor.array.dtype.kind) in kinds or kind == "V" and "c" in kinds and tensor.dtype.is_complex:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{SCALAR_TYPES[tensor.dtype.name]}'")


def refuse_complex32(tensor: Any, kernel: str) -> None:
    """Raise NotImplementedError for complex32, for which PyTorch's kernel has no code."""
    if tensor.dtype is dtypes.complex32:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'ComplexHalf'")


def is_batched(tensor: Any) -> bool:
    """Return True if the tensor is a batch inside vmap."""
    return type(tensor._storage).rank > 0


def in_batch(*values: Any) -> bool:
    """Return True if any value is a batch inside vmap."""
    return any(isinstance(v, TensorBase) and type(v._storage).rank for v in values)


def each_example(function: Any, *args: Any, **params: Any) -> Any:
    """Run a function whose result depends on values that it must read once per example of a batch."""
    from ..interpret.batching import one_by_one
    return one_by_one(function, args, params)


def anywhere(condition: Any) -> bool:
    """Return True if the condition holds for any element; inside vmap, of any example."""
    return bool(condition.array.any())


def is_hollow(*values: Any) -> bool:
    """Return True if any value is a tensor without data, so that there are no values to check."""
    return any(isinstance(v, TensorBase) and v._storage.hollow for v in values)


def is_unknown(*values: Any) -> bool:
    """Return True if a tensor's values are unknown here, so that there is nothing to check."""
    return any(isinstance(v, TensorBase) and (v._storage.hollow or getattr(v.array, "unknown", False)) for v in values)


def check_list(tensors: Any, function: str) -> None:
    """TypeError for something else than a list or tuple."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")


# classes that PyTorch names with its own name in front
FACTS = (dtypes.dtype, device, dtypes.layout, dtypes.memory_format, Size, Generator)


def typename(value: Any) -> str:
    """The name of a value's type as PyTorch writes it."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "numpy":
        return f"numpy.{kind.__name__}"
    return f"torch.{kind.__name__}" if isinstance(value, FACTS) else kind.__name__


def check_elements(tensors: Any) -> None:
    """TypeError if a list of tensors holds something else."""
    for place, value in enumerate(tensors):
        if not isinstance(value, TensorBase):
            raise TypeError(f"expected Tensor as element {place} in argument 0, but got {typename(value)}")


def broadcast_shape(*tensors: Any) -> tuple[int, ...]:
    """The shape that tensors broadcast to; RuntimeError for two that do not."""
    try:
        return shape_together(*(t.array.shape for t in tensors))
    except ValueError as error:
        raise explained(OPS["where"], [t.array for t in tensors], error) from None


def check_product(x: Any, weight: Any, bias: Any = None) -> None:
    """RuntimeError unless two matrices, and what is added to their product, have one dtype."""
    if bias is not None and bias.array.dtype != weight.array.dtype:
        _check_sparse_product(x, weight, bias)
        kinds = SCALAR_TYPES[bias.dtype.name], SCALAR_TYPES[weight.dtype.name]
        raise misfit("self and mat2 must have the same dtype, but got {} and {}".format(*kinds))
    if x.array.dtype == weight.array.dtype:
        return
    _check_sparse_product(x, weight, bias)
    if bias is not None:
        kinds = SCALAR_TYPES[x.dtype.name], SCALAR_TYPES[weight.dtype.name]
        raise misfit("mat1 and mat2 must have the same dtype, but got {} and {}".format(*kinds))
    raise misfit(f"expected m1 and m2 to have the same dtype, but got: {C_NAMES[x.dtype.name]} != "
                 f"{C_NAMES[weight.dtype.name]}")


def _check_sparse_product(x: Any, weight: Any, bias: Any) -> None:
    """Raise PyTorch's error for dtypes that differ, if a matrix is sparse."""
    if x._storage.dense is None and weight._storage.dense is None:
        return
    own, other = (x, weight) if x._storage.dense is not None else (weight, x)
    if bias is not None and own.array.dtype == other.array.dtype:
        other = bias
    kinds = [SCALAR_TYPES[t.dtype.name] for t in (own, other)]
    if other._storage.dense is not None:
        if own.layout is dtypes.sparse_coo:
            raise misfit("mat1 dtype {} does not match mat2 dtype {}".format(*kinds))
        kinds.reverse()
    raise misfit("expected scalar type {} but found {}".format(*kinds))


def promoted(*tensors: Any) -> tuple[Any, ...]:
    """The tensors in their common dtype."""
    target = result_type(*tensors)
    return tuple(in_dtype(t, target) for t in tensors)


def in_dtype(tensor: Any, dtype: dtypes.dtype) -> Any:
    """The tensor in a dtype; itself if it has it."""
    return tensor if tensor.array.dtype == dtype.numpy else apply(OPS["cast"], tensor, dtype=dtype.numpy)


def floating(tensor: Any) -> Any:
    """Integers and bools in the default dtype."""
    return in_dtype(tensor, dtypes.get_default_dtype()) if tensor.array.dtype.kind in "biu" else tensor


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────────

C_TYPES = {"float32": "float", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float64": "double",
           "complex64": "c10::complex<float>", "complex32": "c10::complex<c10::Half>", "int32": "int"}
LARGEST = {"float32": 3.4028234663852886e38, "complex64": 3.4028234663852886e38, "float16": 65504.0,
           "bfloat16": 3.3895313892515355e38}
LEAST_LARGEST = min(LARGEST.values())


def converted(number: Any, dtype: dtypes.dtype, single: bool = False) -> Any:
    """Convert a Python number for a dtype.

    Raises RuntimeError if it is out of range; unsigned dtypes wrap negative integers around.

    For a single element of 16 bits, numbers that are too large become infinity.
    """
    kind, fits, most, name = dtype.numpy.kind, True, 0, dtype.name
    if kind == "b":
        return number != 0
    single = single and name in ("float16", "bfloat16")
    if isinstance(number, complex) and not dtype.is_complex:
        fits, number = number.imag == 0, number.real
    if kind in "iu":
        most = 2 ** (8 * dtype.itemsize - (kind == "i")) - 1
        least = -most - 1 if kind == "i" else -most if isinstance(number, int) else 0
        fits = fits and least <= number <= most
    elif name in LARGEST and not single:
        fits = fits and not LARGEST[name] < abs(number) < float("inf")
    if not fits:
        raise RuntimeError(f"value cannot be converted to type "
                           f"{'double' if single else C_TYPES.get(name, f'{name}_t')} without overflow")
    return int(number) % (most + 1) if kind == "u" else number
