"""Making nested tensors, and dense tensors of them. https://pytorch.org/docs/stable/nested.html"""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import api as tg
from .._tensor import Tensor
from ..api._kinds import Device, Dtype, Layout
from ..dtype import SCALAR_TYPES
from . import shapes, strided_rules  # noqa: F401
from .ragged import of_lengths, shared
from .strided import is_strided, joined, padded_places, strided
from .tensor import is_nested, nested, view_of


def nested_tensor(tensor_list: Any, *, dtype: Dtype | None = None, layout: Layout | None = None,
                  device: Device | None = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Make a nested tensor, a leaf, from copies of tensors of different sizes.

    Input: tensors of one dtype and number of axes, or nested lists of numbers; layout: torch.jagged, for those that
        differ in the length of one axis, or torch.strided, which is the default
    Errors: RuntimeError if the tensors do not fit
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
    if is_nested(ts) or is_strided(ts):
        if ts.layout is not (layout or tg.strided):  # type: ignore[union-attr]
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        found: Tensor = ts if dtype is None and device is None else ts.to(dtype=dtype, device=device)
        return found
    if not (isinstance(ts, Tensor) or isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, Tensor) and ts.ndim < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, Tensor) and layout in (None, tg.strided, tg.jagged) and ts.shape[0]:
        values: Any = ts.to(dtype=dtype, device=device)  # type: ignore[attr-defined]
        if layout is tg.jagged:
            ragged = of_lengths([ts.shape[1]] * ts.shape[0], values.device, given=True)
            return nested(values.flatten(0, 1), ragged)  # type: ignore[no-any-return]
        return strided(values.flatten(), np.asarray([ts.shape[1:]] * ts.shape[0]))  # type: ignore[no-any-return]
    return _joined(list(ts), layout, dtype, device)  # type: ignore[no-any-return]


def _joined(parts: list[Any], layout: Any, dtype: Any, device: Any) -> Any:
    """Return the nested tensor of some components, with their history."""
    if layout not in (None, tg.strided, tg.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    if layout is not tg.jagged:
        for place, (one, two) in enumerate(zip(parts, parts[1:], strict=False), 1):
            if one.ndim != two.ndim:
                raise RuntimeError("All Tensors given to nested_tensor must have the same dimension. Found dimension "
                                   f"{two.ndim} for Tensor at index {place} and dimension {one.ndim} for Tensor at "
                                   f"index {place - 1}.")
        options = {"dtype": dtype, "device": device}
        first = dict(dtype=dtype or parts[0].dtype, device=device) if parts else options
        return joined([part.to(**first) for part in parts], **options)
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
        raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged layout. Note that "
                           "the jagged layout only allows for a single ragged dimension. For example: (B, *, D_0, "
                           "D_1, ..., D_N), with ragged * dim.")
    axis = unlike[0] if unlike else 0
    values = tg.cat(parts, axis).to(dtype=dtype, device=device)
    ragged = of_lengths([part.shape[axis] for part in parts], values.device, given=True)
    return nested(values, ragged, axis + 1)


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
        ragged = shared(of_lengths(lengths.tolist(), values.device).offsets, min_seqlen=min_seqlen,
                        max_seqlen=max_seqlen)
    else:
        ragged = shared(offsets, lengths, min_seqlen=min_seqlen, max_seqlen=max_seqlen)
    place = 1 if jagged_dim is None else jagged_dim
    size = int(values.shape[place - 1])
    starts, counts = ragged.starts, ragged.counts
    fit = len(starts) == len(counts) and min(counts.min(initial=0), starts.min(initial=0)) == 0
    ends = starts + counts if fit else starts
    if not fit or ends.max(initial=0) > size or lengths is None and ends[-1:].sum() != size:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at "
                           f"dimension {place - 1}), but got split_sizes={ragged.counts.tolist()}")
    return view_of(values, ragged, place)  # type: ignore[no-any-return]


def to_padded_tensor(input: Tensor, padding: float, output_size: tuple[int, ...] | None = None,
                     out: Tensor | None = None) -> Tensor:
    """Return the components as one dense tensor, padded at their ends.

    Output: (batch, *), as long as the longest component along the ragged axis, or the output_size
    Errors: RuntimeError for holes between components, or an output_size that a strided one does not fit
    https://pytorch.org/docs → torch.nested.to_padded_tensor

    >>> import tensorgrad as torch
    >>> torch.nested.to_padded_tensor(torch.nested.nested_tensor([[1., 2.], [3.]]), 0.)
    tensor([[1., 2.],
            [3., 0.]])
    """
    if not is_nested(input) and not is_strided(input):
        raise NotImplementedError("Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend. This "
                                  "could be because the operator doesn't exist for this backend, or was omitted during "
                                  "the selective/custom build process (if using custom build).")
    found = input.to_padded_tensor(padding, output_size)  # type: ignore[attr-defined]
    return found if out is None else out.copy_(found)  # type: ignore[no-any-return, attr-defined]


def narrow(tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Layout | None = None) -> Tensor:
    """Return a nested tensor of `length` elements of each row, from `start` on, in the memory of the tensor.

    Input: tensor (batch, n, *); start and length: numbers, or tensors (batch); layout: torch.jagged
    https://pytorch.org/docs → torch.nested.narrow

    >>> import tensorgrad as torch
    >>> x = torch.arange(6.).reshape(2, 3)
    >>> torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([1, 2]), layout=torch.jagged).unbind()
    (tensor([0.]), tensor([4., 5.]))
    """
    if layout is not tg.jagged:
        if not isinstance(start, int) or not isinstance(length, int):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        made: Any = as_nested_tensor(list(tensor), layout=tg.strided)  # type: ignore[call-overload]
        return made.narrow(dim, start, length)  # type: ignore[no-any-return]
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    x: Any = tensor
    count, size = x.shape[0], x.shape[1]

    def each(value: Any) -> Any:
        return value.to(dtype=tg.int64) if isinstance(value, Tensor) else tg.full((count,), value, device=x.device)
    first, lengths = each(start), each(length)
    if count and (bool((first < 0).any()) or bool((lengths < 0).any()) or bool((first + lengths > size).any())):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    starts, values = first + tg.arange(count, device=x.device) * size, x.reshape(count * size, *x.shape[2:])
    ends = starts + lengths
    offsets = tg.cat([starts, ends[-1:]])
    if bool((ends[:-1] == starts[1:]).all()):           # without holes
        begin = int(offsets[0]) if count else 0
        part = values[begin:int(offsets[-1]) if count else 0]
        return nested(part, shared(offsets - begin))  # type: ignore[no-any-return]
    return nested(values, shared(offsets, lengths))  # type: ignore[no-any-return]


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """Return a nested tensor of the elements that a mask keeps in each row, along the last axis.

    https://pytorch.org/docs → torch.nested.masked_select

    >>> import tensorgrad as torch
    >>> x = torch.tensor([[1., 2.], [3., 4.]])
    >>> torch.nested.masked_select(x, x > 1.5).unbind()
    (tensor([2.]), tensor([3., 4.]))
    """
    if tensor.layout is not tg.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    wide = mask.expand(tensor.shape)  # type: ignore[attr-defined]
    chosen = tensor.masked_select(wide)  # type: ignore[attr-defined]
    found: Tensor = nested(chosen, of_lengths(wide.sum(-1).reshape(-1).tolist(), tensor.device))
    return found


# ── under private names ───────────────────────────────────────────────────────────────────────────────────────────────


def _nested_tensor_from_tensor_list(list: Any, dtype: Any = None, layout: Any = None, device: Any = None,
                                    pin_memory: Any = None) -> Any:
    """`as_nested_tensor` of a list of tensors. https://pytorch.org/docs → torch.nested.as_nested_tensor"""
    return _joined([*list], layout, dtype, device)


def _nested_tensor_from_mask_left_aligned(t: Any, mask: Any) -> bool:
    """Return True if the mask keeps a prefix of each row."""
    return bool((mask[:, 1:] <= mask[:, :-1]).all())


def _nested_tensor_from_mask(t: Any, mask: Any, mask_check: bool = True) -> Any:
    """Return the rows that a mask (batch, n) keeps of each matrix of a batch (batch, n, d), as a strided nested tensor.

    Errors: RuntimeError unless the mask is boolean, of the batch's sizes, and without gaps
    """
    if mask.dtype is not tg.bool:
        raise RuntimeError("Expected mask to be of ScalarType Bool, but got "
                           f"{SCALAR_TYPES[mask.dtype.name]} instead.")
    if mask.ndim != 2:
        raise RuntimeError(f"Padding mask should be 2D, but got {mask.ndim}D")
    if t.ndim != 3:
        raise RuntimeError(f"Input should be a 3D tensor, but got {t.ndim}D")
    if t.shape[:2] != mask.shape:
        raise RuntimeError("Mask size should match input size")
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    lengths = np.asarray(mask.sum(1).tolist(), dtype="int64").reshape(-1, 1)
    sizes = np.concatenate([lengths, np.full_like(lengths, t.shape[2])], axis=1)
    return strided(t[mask].reshape(-1), sizes)


def _nested_from_padded(padded: Any, cpu_nested_shape_example: Any, fuse_transform_0213: bool = False) -> Any:
    """The parts of a padded batch with the sizes in the rows of a tensor, as a strided nested tensor."""
    if fuse_transform_0213:
        padded = padded.permute(0, 2, 1, 3).flatten(2)
    sizes = np.asarray(cpu_nested_shape_example.tolist(), dtype="int64")
    for axis, (most, n) in enumerate(zip(sizes.max(axis=0).tolist(), padded.shape[1:], strict=True)):
        if most > n:
            raise RuntimeError(f"The size of tensor a ({most}) must match the size of tensor b ({n}) at non-singleton "
                               f"dimension {axis + 1}")
    places = tg.from_numpy(padded_places(sizes, padded.shape)).to(device=padded.device)
    return strided(padded.reshape(-1).index_select(0, places), sizes)


def _nested_from_padded_and_nested_example(padded: Any, nt_example: Any) -> Any:
    """The parts of a padded batch with the sizes of the components of a strided nested tensor."""
    return _nested_from_padded(padded, nt_example._nested_tensor_size())


def _nested_view_from_buffer(self: Any, nested_size: Any, nested_strides: Any, offsets: Any) -> Any:
    """A strided nested tensor of a buffer: the sizes and steps of components are rows of tensors, which are checked.

    Errors: RuntimeError if a component reaches beyond the buffer
    """
    parts = [np.asarray(part.tolist(), dtype="int64") for part in (nested_size, nested_strides, offsets)]
    sizes, steps, starts = parts[0].reshape(len(parts[2]), -1), parts[1].reshape(len(parts[2]), -1), parts[2]
    ends = starts + np.where((sizes > 0).all(axis=1), (np.maximum(sizes - 1, 0) * steps).sum(axis=1) + 1, 0)
    if sizes.shape != steps.shape or min(part.min(initial=0) for part in parts) < 0 or self.ndim != 1 or (
            ends > self.shape[0]).any():
        raise RuntimeError(f"the components of a nested tensor must be inside of its buffer of {tuple(self.shape)}")
    return strided(self, sizes, steps, starts)


__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
           "to_padded_tensor"]
