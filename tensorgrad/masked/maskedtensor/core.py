"""Tensors that bring a mask of their valid elements. https://pytorch.org/docs/stable/masked.html

A MaskedTensor is the tensor of its values, with its history, and one attribute, the mask, of the same layout. An
operation computes with all values, as for any tensor. `operations` has the rules: the mask of the result, and
reductions without the invalid elements. `sparse` has those for sparse layouts.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ... import api as tg
from ..._tensor.torch_function import DisableTorchFunctionSubclass

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

RULES: list[Callable[..., Any]] = []        # `operations` registers the function that answers for others
DTYPES = (tg.float16, tg.float32, tg.float64, tg.bool, tg.int8, tg.int16, tg.int32, tg.int64)
PROTOTYPE = ("The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open "
             "a Github issue for features requests and see our documentation on the torch.masked module for further "
             "information about the project.")
HISTORY = ("It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can "
           "use data.detach().clone()")


class MaskedTensor(tg.Tensor):
    """A tensor with a mask: True marks the elements that are valid.

    Input: data, of a real dtype; mask, of bools and the shape of data
    Errors: TypeError if one is no plain tensor or has another dtype; ValueError if the shapes differ
    https://pytorch.org/docs → torch.masked.MaskedTensor

    >>> import tensorgrad as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):          # it is a prototype, here as in PyTorch
    ...     x = torch.masked.masked_tensor(torch.tensor([1., 2., 4.]), torch.tensor([True, False, True]))
    >>> x + 1, x.mean()
    (MaskedTensor(
      [  2.0000,       --,   5.0000]
    ), MaskedTensor(  2.5000, True))
    """

    _masked_mask: Any

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        data, mask = checked(data, mask)
        warnings.warn(PROTOTYPE, UserWarning, stacklevel=2)
        if data.requires_grad:
            warnings.warn(HISTORY, UserWarning, stacklevel=2)
        return masked(data.detach().clone(), mask.clone()).requires_grad_(bool(requires_grad))

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        """Do nothing: `__new__` made the tensor."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            return RULES[0](func, args, kwargs or {})

    def get_data(self) -> Any:
        """Return the values as a tensor, with their history."""
        with DisableTorchFunctionSubclass():
            return self.as_subclass(tg.Tensor)

    def get_mask(self) -> Any:
        """Return the mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Any:
        """Return the values as a tensor, with `value` in place of the invalid elements."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    def is_sparse_coo(self) -> bool:
        """Return True for values of the layout sparse_coo."""
        return self.layout is tg.sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Return True for values of the layout sparse_csr."""
        return self.layout is tg.sparse_csr

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        """True for values of a sparse layout."""
        return self.is_sparse_coo() or self.is_sparse_csr()

    def __repr__(self) -> str:  # type: ignore[override]
        data, mask = (t.to_dense() for t in (self.detach().get_data(), self.get_mask()))
        if not data.ndim:
            return f"MaskedTensor({_element(data) if mask.item() else '--'}, {mask.item()})"
        return "MaskedTensor(\n" + _indented(_rows(data, mask)) + "\n)"


def _element(x: Any) -> str:
    value = x.item()
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _rows(data: Any, mask: Any) -> str:
    if data.ndim > 1:
        return "[\n" + ",\n".join(_indented(_rows(x, kept)) for x, kept in zip(data, mask)) + "\n]"
    elements = [_element(x) if kept else None for x, kept in zip(data, mask.tolist())]
    width = max((8 if e is None else len(e) for e in elements), default=0)
    return "[" + ", ".join("--".rjust(width) if e is None else e for e in elements) + "]"


def checked(data: Any, mask: Any) -> tuple[Any, Any]:
    """Return values and mask, sparse ones at the places of the mask.

    Raises PyTorch's errors for a pair that makes no MaskedTensor.
    """
    for name, part in (("data", data), ("mask", mask)):
        if isinstance(part, MaskedTensor) or not isinstance(part, tg.Tensor):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout != mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout is not tg.strided:
        data, mask = _at_places(data, mask)
    if type(data) is not type(mask):
        raise TypeError(f"data and mask must have the same type. Got {type(data)} and {type(mask)}")
    if mask.dtype is not tg.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.ndim != mask.ndim:
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    return data, mask


def _at_places(data: Any, mask: Any) -> tuple[Any, Any]:
    """Return sparse values and mask, with each place once, and as many values as the mask has."""
    if data.layout not in (tg.sparse_coo, tg.sparse_csr):
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if coo := data.layout is tg.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data._nnz() != mask._nnz():
        data = data.sparse_mask(mask)
    kind = ("indices",) if coo else ("crow_indices", "col_indices")
    if data.shape == mask.shape and not all(tg.equal(getattr(data, k)(), getattr(mask, k)()) for k in kind):
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices." if coo else
                         "data and mask are both sparse CSR tensors but do not share either crow or col indices.")
    return data, mask


def tensors_match(a: Any, b: Any, exact: bool = True, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    """Return True for tensors of as many axes whose elements are equal, or close."""
    if isinstance(a, MaskedTensor) or isinstance(b, MaskedTensor):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.layout is not tg.strided:
        a, b = a.to_dense(), b.to_dense()
    b = b.to(a.dtype)
    return a.ndim == b.ndim and bool((a == b).all() if exact else tg.allclose(a, b, rtol=rtol, atol=atol))


def masks_match(a: Any, b: Any) -> bool:
    """Return True unless two MaskedTensors have unlike masks."""
    both = isinstance(a, MaskedTensor) and isinstance(b, MaskedTensor)
    return not both or tensors_match(a.get_mask(), b.get_mask())


_tensors_match, _masks_match = tensors_match, masks_match      # PyTorch's names, which its tests ask for


def masked(data: Any, mask: Any) -> Any:
    """Return the tensor as a MaskedTensor that shares its memory and history."""
    with DisableTorchFunctionSubclass():
        made = data.as_subclass(MaskedTensor)
    made._masked_mask = mask
    return made


def is_masked_tensor(obj: Any, /) -> bool:
    """Return True if the object is a MaskedTensor. https://pytorch.org/docs → torch.masked.is_masked_tensor"""
    return isinstance(obj, MaskedTensor)


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """Make a MaskedTensor, a leaf, of copies of values and mask.

    https://pytorch.org/docs → torch.masked.masked_tensor
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """Make a MaskedTensor that keeps the history of its values.

    https://pytorch.org/docs → torch.masked.as_masked_tensor
    """
    data, mask = checked(data, mask)
    warnings.warn(PROTOTYPE, UserWarning, stacklevel=2)
    return masked(data.clone(), mask.clone())   # type: ignore[no-any-return]
