"""Making nested tensors, and dense tensors of them. https://pytorch.org/docs/stable/nested.html"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from .._tensor import Tensor
from ..api._kinds import Device, Dtype, Layout
from . import shapes  # noqa: F401
from .operations import packed
from .ragged import Ragged, of_lengths
from .tensor import is_nested, nested


def nested_tensor(tensor_list: Any, *, dtype: Dtype | None = None, layout: Layout | None = None,
                  device: Device | None = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Make a nested tensor, a leaf, of copies of tensors that differ in the length of one axis.

    Input: tensors of one dtype and number of axes, or nested lists of numbers; layout: torch.jagged or torch.strided,
        which is the default, for programs from before jagged ones
    Errors: RuntimeError if the tensors do not fit; NotImplementedError if several axes differ in their lengths
    https://pytorch.org/docs → torch.nested.nested_tensor

    >>> import tensorgrad as torch
    >>> torch.nested.nested_tensor([[1., 2.], [3.]], layout=torch.jagged).unbind()
    (tensor([1., 2.]), tensor([3.]))
    """
    if not isinstance(tensor_list, (list, tuple)) and not (isinstance(tensor_list, Tensor) and layout is tg.jagged):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [part.detach() if isinstance(part, Tensor) else tg.tensor(part, dtype=dtype) for part in tensor_list]
    made = _joined(parts, layout, dtype, device)
    return made.detach().requires_grad_(requires_grad)  # type: ignore[no-any-return]


def as_nested_tensor(ts: Any, dtype: Dtype | None = None, device: Device | None = None,
                     layout: Layout | None = None) -> Tensor:
    """Make a nested tensor of tensors, or of the parts of one, that keeps their history; a nested tensor is itself.

    https://pytorch.org/docs → torch.nested.as_nested_tensor

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> torch.nested.as_nested_tensor([x, x[:1]], layout=torch.jagged).sum().backward()
    >>> x.grad
    tensor([2., 1.])
    """
    if is_nested(ts):
        if ts.layout is not (layout or tg.strided):
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        found: Tensor = ts if dtype is None and device is None else ts.to(dtype=dtype, device=device)
        return found
    if not (isinstance(ts, Tensor) or isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, Tensor) and ts.ndim < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    return _joined(list(ts), layout, dtype, device)  # type: ignore[no-any-return]


def _joined(parts: list[Any], layout: Any, dtype: Any, device: Any) -> Any:
    """A nested tensor of its components, with their history."""
    if layout not in (None, tg.strided, tg.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    if not parts and layout is not tg.jagged:
        return nested(tg.zeros(0, dtype=dtype, device=device), of_lengths([], device), 1, tg.strided)
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if len({part.ndim for part in parts}) > 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    if len({part.dtype for part in parts}) > 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dtype")
    if not parts[0].ndim:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    unlike = [axis for axis in range(parts[0].ndim) if len({part.shape[axis] for part in parts}) > 1]
    if len(unlike) > 1:
        raise NotImplementedError(f"the components of a nested tensor may differ in the length of one axis alone here, "
                                  f"but these differ in axes {unlike}: pad all but one of them")
    axis = unlike[0] if unlike else 0
    values = tg.cat(parts, axis).to(dtype=dtype, device=device)
    ragged = of_lengths([part.shape[axis] for part in parts], values.device)
    return nested(values, ragged, axis + 1, layout or tg.strided)


def nested_tensor_from_jagged(values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None,
                              jagged_dim: int | None = None, min_seqlen: int | None = None,
                              max_seqlen: int | None = None) -> Tensor:
    """Make a nested tensor that shares the memory and history of joined values.

    Component i has the values from offsets[i] up to offsets[i + 1], or as many as lengths[i]: then there may be holes.

    Input: values (*, n, *); offsets (batch + 1) or lengths (batch), or both; jagged_dim: the ragged axis of the result,
        1 unless given
    Errors: RuntimeError without offsets and lengths, or if they do not fit the values
    https://pytorch.org/docs → torch.nested.nested_tensor_from_jagged

    >>> import tensorgrad as torch
    >>> torch.nested.nested_tensor_from_jagged(torch.arange(5.), torch.tensor([0, 2, 5])).unbind()
    (tensor([0., 1.]), tensor([2., 3., 4.]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        ragged = of_lengths(lengths.tolist(), values.device)
    else:
        ragged = Ragged(offsets, lengths)
    place = 1 if jagged_dim is None else jagged_dim
    size = int(values.shape[place - 1])
    starts, counts = ragged.starts, ragged.counts
    fit = len(starts) == len(counts) and min(counts.min(initial=0), starts.min(initial=0)) == 0
    ends = starts + counts if fit else starts
    if not fit or ends.max(initial=0) > size or lengths is None and ends[-1:].sum() != size:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at "
                           f"dimension {place - 1}), but got split_sizes={ragged.counts.tolist()}")
    return nested(values, ragged, place)  # type: ignore[no-any-return]


def to_padded_tensor(input: Tensor, padding: float, output_size: tuple[int, ...] | None = None,
                     out: Tensor | None = None) -> Tensor:
    """The components in one dense tensor, with `padding` behind their ends.

    Output: (batch, *), as long as the longest component along the ragged axis, or the output_size
    Errors: RuntimeError for holes between components, or an output_size that a strided one does not fit
    https://pytorch.org/docs → torch.nested.to_padded_tensor

    >>> import tensorgrad as torch
    >>> torch.nested.to_padded_tensor(torch.nested.nested_tensor([[1., 2.], [3.]]), 0.)
    tensor([[1., 2.],
            [3., 0.]])
    """
    if not is_nested(input):
        raise RuntimeError("Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend.")
    found = input.to_padded_tensor(padding, output_size)  # type: ignore[attr-defined]
    return found if out is None else out.copy_(found)  # type: ignore[no-any-return, attr-defined]


def narrow(tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Layout | None = None) -> Tensor:
    """A nested tensor of a part of each row of a tensor: from start on, so many elements; it shares the memory.

    Input: tensor (batch, n, *); start and length: numbers, or tensors (batch); layout: torch.jagged
    https://pytorch.org/docs → torch.nested.narrow

    >>> import tensorgrad as torch
    >>> x = torch.arange(6.).reshape(2, 3)
    >>> torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([1, 2]), layout=torch.jagged).unbind()
    (tensor([0.]), tensor([4., 5.]))
    """
    if layout is not tg.jagged:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    x: Any = tensor
    count, size = x.shape[0], x.shape[1]

    def each(value: Any) -> Any:
        return value.to(dtype=tg.int64) if isinstance(value, Tensor) else tg.full((count,), value, device=x.device)
    starts, lengths = each(start) + tg.arange(count, device=x.device) * size, each(length)
    if count and (bool((each(start) < 0).any()) or bool((lengths < 0).any())
                  or bool((each(start) + lengths > size).any())):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    offsets = tg.cat([starts, (starts[-1:] + lengths[-1:])])
    found = nested(x.reshape(count * size, *x.shape[2:]), Ragged(offsets, lengths))
    whole = bool((lengths == size).all())
    return packed(found) if whole else found  # type: ignore[no-any-return]


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """A nested tensor of the elements of each row of a tensor that a mask keeps.

    https://pytorch.org/docs → torch.nested.masked_select

    >>> import tensorgrad as torch
    >>> x = torch.tensor([[1., 2.], [3., 4.]])
    >>> torch.nested.masked_select(x, x > 1.5).unbind()
    (tensor([2.]), tensor([3., 4.]))
    """
    if tensor.layout is not tg.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    wide = mask.expand(tensor.shape)  # type: ignore[attr-defined]
    lengths = wide.sum(tuple(range(1, tensor.ndim)))
    chosen = tensor.masked_select(wide)  # type: ignore[attr-defined]
    found: Tensor = nested(chosen, of_lengths(lengths.tolist(), tensor.device))
    return found


__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
           "to_padded_tensor"]
