"""Helpers of `torch.linalg`: attaching functions, checks of matrices, errors of failed factorizations."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, namespace, xp
from ..core.step_names import naming
from ..core.tape import TensorBase
from ..ops.linalg import LinAlgError
from ._register import FUNCTIONS, _with_out, _with_synonyms

LINALG: dict[str, Callable[..., Any]] = {}      # the names of `torch.linalg`


def linalg(*roots: str, out: bool = True) -> Callable[[Any], Any]:
    """Attach a function as a name of `torch.linalg`; `roots` are its names in the root package, and as methods."""
    def attach(raw: Any) -> Any:
        takes = raw.__code__.co_varnames[:raw.__code__.co_argcount + raw.__code__.co_kwonlyargcount]
        call = _with_synonyms(naming(raw, f"linalg_{raw.__name__}"), takes)
        LINALG[raw.__name__] = found = _with_out(call, key=f"linalg_{raw.__name__}") if out else call
        for root in roots:
            FUNCTIONS[root] = found
            setattr(Tensor, root, call)
        return found
    return attach


def kind_of(x: Any) -> str:
    """Return the dtype's name in PyTorch's errors."""
    return SCALAR_TYPES[x.dtype.name]


def check_matrix(x: Any, function: str, *, name: str = "A", argument: str = "A", position: int = 1, square: bool = True,
                 kernel: str = "") -> None:
    """Raise unless x is a stack of floating point or complex matrices (`square`: square ones) of full precision."""
    if not isinstance(x, TensorBase):
        raise TypeError(f"{function.removeprefix('torch.').replace('.', '_')}(): argument '{argument}' (position "
                        f"{position}) must be Tensor, not {type(x).__name__}")
    check_shape(x, function, name, square)
    dtype = x.array.dtype
    if dtype.kind in "biu":
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {kind_of(x)}")
    if dtype.itemsize == 2 or dtype.kind == "V":
        if kernel:
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind_of(x)}'")
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {kind_of(x)}")


def check_shape(x: Any, function: str, name: str = "A", square: bool = True) -> None:
    shape = x.array.shape
    if len(shape) < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")
    if square and shape[-1] != shape[-2]:
        raise RuntimeError(f"{function}: {name} must be batches of square matrices, but they are {shape[-2]} by "
                           f"{shape[-1]} matrices")


def check_kernel(x: Any, kernel: str, function: str, argument: str = "A") -> None:
    """Raise the errors of a kernel that only takes float32, float64 and their complex dtypes."""
    if not isinstance(x, TensorBase):
        raise TypeError(f"{function}(): argument '{argument}' (position 1) must be Tensor, not {type(x).__name__}")
    if x.array.dtype.kind not in "fc" or x.array.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind_of(x)}'")


def check_info(info: Any, function: str, message: str, error: type[Exception] = LinAlgError) -> None:
    """Raise for the first matrix of a stack whose `info` is nonzero; {} in the message is replaced by that number."""
    if info.array.any():
        codes = type(info._storage).seen(info.array)
        found = codes.ravel().tolist()
        place = next(i for i, code in enumerate(found) if code)
        where = f"(Batch element {place}): " if codes.ndim else ""
        raise error(f"{function}: {where}{message.replace('{}', str(found[place]))}")


SINGULAR = "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."
NOT_POSITIVE = ("The factorization could not be completed because the input is not positive-definite (the leading "
                "minor of order {} is not positive-definite).")


def transposed(x: Any) -> Any:
    return xp.swapaxes(x, -2, -1)


def adjoint(x: Any) -> Any:
    """Rows and columns exchanged, and conjugated."""
    return xp.conj(transposed(x)) if x.dtype.is_complex else transposed(x)


def eye_beside(x: Any, rows: int, columns: int) -> Any:
    """Return an identity matrix with the dtype and device of x."""
    return namespace(type(x._storage)).eye(rows, columns, dtype=x.dtype)


def as_column(x: Any) -> Any:
    return xp.expand_dims(x, -1)


def from_column(x: Any) -> Any:
    return xp.squeeze(x, axis=-1)


def counts_as_vectors(a: Any, b: Any) -> bool:
    """Return True if the right-hand sides B of a stack of matrices A are a stack of vectors."""
    m, n = a.array.shape, b.array.shape
    return len(n) == 1 or len(m) - 1 == len(n) and n == m[:-1]


def check_fits(a: Any, b: Any, left: bool, vectors: bool, function: str) -> None:
    shape, n = (*b.array.shape, 1) if vectors else b.array.shape, a.array.shape[-1]
    if shape[-2 if left else -1] != n:
        raise RuntimeError(f"{function}: Incompatible shapes of A and B for the equation "
                           f"{'AX = B' if left else 'XA = B'} ({n}x{n} and {shape[-2]}x{shape[-1]})")


def check_pair(b: Any, a: Any, name: str) -> None:
    """Raise the errors of the older functions that solve A·X = B."""
    if a.array.dtype != b.array.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {kind_of(b)} and A of type "
                           f"{kind_of(a)} instead.")
    m, n = a.array.shape, b.array.shape
    if m[-1] != m[-2]:
        raise RuntimeError(f"A must be batches of square matrices, but they are {m[-2]} by {m[-1]} matrices")
    if m[-1] != n[-2]:
        raise RuntimeError(f"Incompatible matrix sizes for {name}: each A matrix is {m[-1]} by {m[-1]} but each b "
                           f"matrix is {n[-2]} by {n[-1]}")


def inverse_of(a: Any, function: str, check_errors: bool = True) -> tuple[Any, Any]:
    """Return A⁻¹, and a code per matrix, 0 if it is invertible.

    Raises LinAlgError in the function's name for a singular matrix, if errors are checked.
    """
    check_matrix(a, "linalg.inv")
    inverse, info = xp.inverse_matrix(a)
    if check_errors:
        check_info(info, function, SINGULAR)
    return inverse, info
