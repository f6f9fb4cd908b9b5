"""Sequences of different lengths in one tensor: padded to equal length, or packed without any padding.

    padded (time, batch, *)        packed: the valid elements, time step by time step
      a b c                          a b c  a b c  a c  c
      a b c                          batch_sizes 3 3 2 1
      a . c
      . . c
"""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from ... import api as tg
from ..._tensor.torch_function import namespaced as _namespaced

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence",
           "unpad_sequence", "pack_sequence", "unpack_sequence"]


class PackedSequence(namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])):
    """Several sequences, packed; made by `pack_padded_sequence` and `pack_sequence`, understood by recurrent layers.

    `data` holds all valid elements in the order of time, `batch_sizes` (on the CPU) the number of sequences at each
    step. Sequences are sorted by descending length; `sorted_indices` and `unsorted_indices` are that permutation and
    its inverse. See PyTorch's `torch.nn.utils.rnn.PackedSequence`.
    """

    def __new__(cls, data: Tensor, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> Self:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences on another device or of another dtype, as `Tensor.to`; `batch_sizes` remain on the
        CPU.
        """
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data, lambda index: index.to(data.device))

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences on the GPU."""
        return self.to(*args, **kwargs) if args else self.to(**{"device": "cuda", **kwargs})

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences on the CPU."""
        return self.to(*args, **kwargs) if args else self.to(**{"device": "cpu", **kwargs})

    def pin_memory(self) -> Self:
        """Return the sequences in page-locked memory."""
        return self._with(self.data.pin_memory(), lambda index: index.pin_memory())

    def _with(self, data, move):
        indices = (None if index is None else move(index) for index in self[2:])
        return type(self)(data, self.batch_sizes, *indices)

    def double(self) -> Self:
        """Cast to float64."""
        return self.to(tg.float64)

    def float(self) -> Self:
        """Cast to float32."""
        return self.to(tg.float32)

    def half(self) -> Self:
        """Cast to float16."""
        return self.to(tg.float16)

    def long(self) -> Self:
        """Cast to int64."""
        return self.to(tg.int64)

    def int(self) -> Self:
        """Cast to int32."""
        return self.to(tg.int32)

    def short(self) -> Self:
        """Cast to int16."""
        return self.to(tg.int16)

    def char(self) -> Self:
        """Cast to int8."""
        return self.to(tg.int8)

    def byte(self) -> Self:
        """Cast to uint8."""
        return self.to(tg.uint8)

    @property
    def is_cuda(self) -> bool:
        """True if the data is on the GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Return True if the data is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one (None for None).

    >>> import tensorgrad as torch
    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([1, 2, 0]))
    tensor([2, 0, 1])
    """
    if permutation is None:
        return None
    places = tg.arange(permutation.numel(), device=permutation.device)
    return tg.empty_like(permutation).scatter_(0, permutation, places)


# ── padded <-> packed ─────────────────────────────────────────────────────────────────────────
def pack_padded_sequence(input: Tensor, lengths: Tensor | list[int], batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Leave out the padding of (time, batch, *), or with `batch_first` of (batch, time, *).

    Sequences must come in the order of descending length, unless `enforce_sorted` is False; then they are sorted here.
    See PyTorch's `torch.nn.utils.rnn.pack_padded_sequence`.

    >>> import tensorgrad as torch
    >>> padded = torch.tensor([[1, 2, 3], [4, 0, 0]])
    >>> packed = torch.nn.utils.rnn.pack_padded_sequence(padded, [3, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """
    lengths = tg.as_tensor(lengths, dtype=tg.int64)
    batch_dim = 0 if batch_first else 1
    steps, size = input.shape[1 - batch_dim], input.shape[batch_dim]
    order = None
    if not enforce_sorted:
        lengths, order = tg.sort(lengths, descending=True)
    longest = _check_lengths(lengths, input, steps, size)
    is_valid = tg.arange(longest)[:, None] < lengths                     # (time, batch)
    place = _reordered(_places(is_valid), size, order)
    if batch_first:
        place = _transposed(place, steps, size)
    data = input.flatten(0, 1).index_select(0, place.to(input.device))
    return PackedSequence(data, is_valid.sum(1), None if order is None else order.to(input.device))


def _check_lengths(lengths, input, steps, size):
    """Return the greatest length. RuntimeError if the lengths do not fit the input."""
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.ndim != 1 or lengths.device.type != "cpu":
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got "
                           f"{lengths.ndim}D {lengths.device.type} Long tensor")
    counts = lengths.tolist()
    if len(counts) != size:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} "
                           f"(batch_size={size})")
    if min(counts) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is "
                           "<= 0")
    if counts != sorted(counts, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability.")
    if counts[0] > steps:
        raise RuntimeError(f"Expected no length to exceed the {steps} steps of the input, but got {counts[0]}")
    return counts[0]


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`: (time, batch, *) or (batch, time, *), and the lengths.

    >>> import tensorgrad as torch
    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
    >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    batch_sizes = sequence.batch_sizes
    steps = len(batch_sizes)
    if total_length is not None and total_length < steps:
        raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                         f"total_length={total_length} and max sequence length being {steps}")
    size = int(batch_sizes[0])
    is_valid = tg.arange(size) < batch_sizes[:, None]                    # (time, batch)
    lengths, place = is_valid.sum(0), _places(is_valid)
    if sequence.unsorted_indices is not None:
        order = sequence.unsorted_indices.cpu()
        lengths, place = lengths[order], _reordered(place, size, invert_permutation(order))
    padded = _spread(sequence.data, place, (total_length or steps, size), padding_value)
    return padded.transpose(0, 1) if batch_first else padded, lengths


# ── indices into a grid, row by row ───────────────────────────────────────────────────────────
def _places(is_valid):
    """Return the flat indices at which a grid is True."""
    return is_valid.flatten().nonzero().squeeze(1)


def _reordered(place, width, order):
    """Return the flat indices with column i replaced by column order[i]."""
    return place if order is None else place // width * width + order[place % width]


def _transposed(place, height, width):
    """Return the flat indices, of a grid of this width, in its transpose, whose width is `height`."""
    return place % width * height + place // width


def _spread(rows, place, shape, padding_value):
    """Return a grid with the rows at the given indices, and padding elsewhere."""
    grid = rows.new_full((shape[0] * shape[1], *rows.shape[1:]), padding_value)
    return grid.index_copy(0, place.to(rows.device), rows).unflatten(0, shape)


# ── lists of sequences ────────────────────────────────────────────────────────────────────────
def pad_sequence(sequences: Tensor | list[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Stack sequences (length, *) into (time, batch, *) or (batch, time, *), padding all to the longest.

    See PyTorch's `torch.nn.utils.rnn.pad_sequence`.

    >>> import tensorgrad as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(1)], batch_first=True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    sequences = _check_sequences(sequences, padding_side)
    counts = [len(sequence) for sequence in sequences]
    size, longest = len(counts), max(counts)
    if min(counts) == longest:
        return tg.stack(sequences, 0 if batch_first else 1)
    step, lengths = tg.arange(longest), tg.tensor(counts)[:, None]
    place = _places(step < lengths if padding_side == "right" else step >= longest - lengths)
    shape = size, longest
    if not batch_first:
        place, shape = _transposed(place, size, longest), (longest, size)
    return _spread(tg.cat(sequences), place, shape, padding_value)


def _check_sequences(sequences, padding_side):
    """Return the sequences with the dtype and trailing sizes of the first, broadcast if needed."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for i, sequence in enumerate(sequences):
        if not isinstance(sequence, tg.Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(sequence).__name__}")
        if sequence.ndim == 0:
            raise RuntimeError("pad_sequence: Expected sequences of at least 1 dimension, but got a scalar")
    dtype, shape = sequences[0].dtype, tuple(sequences[0].shape)[1:]
    return [sequence if sequence.dtype is dtype and tuple(sequence.shape)[1:] == shape else
            _fitted(sequence, shape).to(dtype) for sequence in sequences]


def _fitted(sequence, shape):
    """Broadcast to a shape behind the first dimension."""
    for dim, (expected, size) in enumerate(zip(shape, sequence.shape[1:], strict=False), start=1):
        if size not in (1, expected):
            raise RuntimeError(f"The size of tensor a ({expected}) must match the size of tensor b ({size}) at "
                               f"non-singleton dimension {dim}")
    return sequence.reshape(len(sequence), *sequence.shape[1:]).expand(len(sequence), *shape)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Undo `pad_sequence`: the list of the first `lengths[i]` elements of sequence i.

    >>> import tensorgrad as torch
    >>> torch.nn.utils.rnn.unpad_sequence(torch.ones(2, 2), torch.tensor([1, 2]), batch_first=True)
    [tensor([1.]), tensor([1., 1.])]
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[:max(length, 0)].clone() for sequence, length in zip(batch, lengths.tolist(), strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (length, *). See PyTorch's `torch.nn.utils.rnn.pack_sequence`.

    >>> import tensorgrad as torch
    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo `pack_sequence`: the list of sequences.

    >>> import tensorgrad as torch
    >>> rnn = torch.nn.utils.rnn
    >>> rnn.unpack_sequence(rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


globals().update(_namespaced({_name: globals()[_name] for _name in __all__}, __name__))
