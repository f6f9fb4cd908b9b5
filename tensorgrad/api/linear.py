"""Linear and bilinear maps, and tables of vectors.

https://pytorch.org/docs/stable/nn.functional.html#linear-functions
"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..advice import misfit
from ..core import inplace
from ..core.casting import is_half
from ..core.dispatch import SCALAR_TYPES, fresh, xp
from ..core.mode import mode
from ..dtype import int64
from ..runtime.numpy_state import Region
from ..runtime.small_floats import computed
from ..storage.cpu import NumpyStorage
from ._arguments import C_NAMES, check_product, each_example, in_batch, is_hollow, is_unknown
from ._halves import once_rounded
from ._kinds import Index
from ._register import public
from ._sparse import rules

# ── linear maps ───────────────────────────────────────────────────────────────────────────────────────────────────────


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input · weightᵀ + bias, along the last axis.

    Input: (*, I), weight (O, I) or (I), bias (O) or one that broadcasts, all of one dtype
    Output: (*, O), or (*) for a weight (I)
    Errors: RuntimeError if the sizes I or O do not match, the dtypes differ, the input has no axis, the weight has more
        than two, or a weight (I) comes with a bias
    https://pytorch.org/docs → torch.nn.functional.linear

    >>> import tensorgrad as torch
    >>> torch.nn.functional.linear(torch.tensor([1., 2.]), torch.tensor([[10., 1.]]), torch.tensor([5.]))
    tensor([17.])
    """
    x, w = input.array, weight.array
    if w.ndim != 2 or not x.ndim or x.shape[-1] != w.shape[1] or x.dtype is not w.dtype:
        _check_linear(input, weight, bias)
    if bias is None:
        return xp.linear_without_bias(input, weight) if w.ndim == 2 else xp.matmul(input, weight)
    b = bias.array
    if b.shape == w.shape[:1] and b.dtype is w.dtype:
        return xp.linear(input, weight, bias)
    if b.dtype is w.dtype or x.ndim not in (3, 4) or input.is_contiguous():     # else PyTorch adds the bias in place
        check_product(input, weight, bias)
    product, rows = xp.linear_without_bias(input, weight), max(x.size // x.shape[-1], 1) if x.shape[-1] else 1
    if b.ndim == 1 and b.size not in (1, w.shape[0]):
        raise misfit(f"The expanded size of the tensor ({w.shape[0]}) must match the existing size ({b.shape[0]}) at "
                           f"non-singleton dimension 1.  Target sizes: {[rows, w.shape[0]]}.  Tensor sizes: "
                           f"{list(b.shape)}")
    return product + bias if b.dtype is w.dtype else product.add_(bias)


def _check_linear(input: Any, weight: Any, bias: Any) -> None:
    """PyTorch's error for arguments of `linear` that do not fit."""
    if not input.ndim or not weight.ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and "
                           f"{weight.ndim}D")
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if weight.ndim == 1 and bias is not None:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    rows = [input.numel() // max(input.shape[-1], 1), input.shape[-1]]
    if input.shape[-1] != weight.shape[-1]:
        if weight.ndim == 1:
            raise misfit(f"size mismatch, got input ({rows[0]}), mat ({rows[0]}x{rows[1]}), vec ({weight.shape[0]})")
        raise misfit(f"mat1 and mat2 shapes cannot be multiplied ({rows[0]}x{rows[1]} and "
                     f"{weight.shape[1]}x{weight.shape[0]})")
    if input.dtype is not weight.dtype:
        check_product(input, weight, bias)


@public(method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """out[…, o] = Σ x₁[…, i] · w[o, i, j] · x₂[…, j] + bias[o].

    Input: (*, I), (*, J), weight (O, I, J), bias (O), all of one dtype
    Output: (*, O)
    Errors: RuntimeError if the dtypes differ or the leading axes, I, J or O do not match
    https://pytorch.org/docs → torch.nn.functional.bilinear

    >>> import tensorgrad as torch
    >>> torch.bilinear(torch.tensor([1., 2.]), torch.tensor([3.]), torch.ones(1, 2, 1))
    tensor([9.])
    """
    given = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    if len({t.dtype for t in given.values() if t is not None}) > 1:
        raise RuntimeError("All tensors must have the same dtype, got "
                           + ", ".join(f"{k}: {C_NAMES[t.dtype.name]}" for k, t in given.items()
                                       if t is not None))
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for i, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {a} and {b}")
    for k, t in ((1, input1), (2, input2)):
        if t.shape[-1] != weight.shape[k]:
            raise RuntimeError(f"bilinear(): input{k} size does not match weight size: got {t.shape[-1]} but expected "
                               f"{weight.shape[k]}")
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected "
                           f"{weight.shape[0]}")
    return _bilinear(input1, input2, weight, bias)


@once_rounded
def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    outs, m, n = weight.shape
    left = linear(input1, weight.permute(0, 2, 1).reshape(outs * n, m)).reshape(*input1.shape[:-1], outs, n)
    out = (left @ input2.unsqueeze(-1)).squeeze(-1)
    return out if bias is None else out + bias


# ── tables of vectors ─────────────────────────────────────────────────────────────────────────────────────────────────


def _check_indices(weight: Any, *indices: Any, function: str) -> None:
    for t in indices:
        if t.array.dtype.kind != "i" or t.array.dtype.itemsize < 4:
            raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: "
                               f"Long, Int; but got {t.type()} instead (while checking arguments for {function})")


def _outside(index: Any, rows: int) -> bool:
    """Return True if an index is out of range. Checked on the CPU only: a GPU would have to synchronize."""
    array = index.array
    if type(index._storage) is NumpyStorage:      # one pass is enough: negative numbers are large when read as unsigned
        return array.size > 0 and int(array.view(f"u{array.itemsize}").max()) >= rows
    return str(index.device) == "cpu" and array.size > 0 and (int(array.min()) < 0 or int(array.max()) >= rows)


@public(method=False)
def embedding(weight: Tensor, indices: Tensor, padding_idx: Index = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Tensor:
    """The rows of a table.

    Row `padding_idx` gets no gradient.

    Input: weight (V, D), indices (*) of int32 or int64
    Output: (*, D)
    Errors: IndexError if an index is not in [0, V); RuntimeError if the weight is not 2-D or the indices have another
        dtype
    https://pytorch.org/docs → torch.nn.functional.embedding

    >>> import tensorgrad as torch
    >>> torch.embedding(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1, 1, 0]))
    tensor([[3., 4.],
            [3., 4.],
            [1., 2.]])
    """
    if weight.array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(weight, indices, function="embedding")
    if _outside(indices, weight.array.shape[0]):
        if not weight.array.shape[0]:
            raise RuntimeError("index_select(): self indexing axis dim should be positive")
        raise IndexError("index out of range in self")
    if sparse:
        return embedding_sparse(weight, indices, padding_idx, scale_grad_by_freq)
    if padding_idx < 0 and not scale_grad_by_freq:
        return xp.embedding(weight, indices)
    return xp.embedding(weight, indices, padding=padding_idx if padding_idx >= 0 else None,
                        by_frequency=scale_grad_by_freq)


def embedding_sparse(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    """The rows of a table whose gradient is sparse."""
    rules()
    return xp.embedding_sparse(weight, indices, padding=padding_idx if padding_idx >= 0 else None,
                               by_frequency=scale_grad_by_freq)


def embedding_renorm_(weight: Any, indices: Any, max_norm: float, norm_type: float = 2.0) -> Any:
    """Scale the rows that will be read down to a norm of `max_norm`, in place and off the tape."""
    if is_hollow(weight, indices) or mode.quiet is not None:
        return weight
    array, rows = weight.array, type(weight._storage).xp.unique(indices.array)
    backend = type(weight._storage)
    chosen = fresh(array[rows], backend)
    dtype = computed(array.dtype) if is_half(array) else array.dtype       # factors of halves are halves, too
    norms = backend.cast(xp.vector_norm(chosen, ord=norm_type, axis=(1,), keepdims=True).array, dtype)
    where = (norms > max_norm).reshape(-1)
    with Region():
        values = array.copy()
        factors = backend.cast(max_norm / (norms[where] + 1e-7), array.dtype)
        scaled = backend.cast(array[rows[where]], dtype) * backend.cast(factors, dtype)
        values[rows[where]] = backend.cast(scaled, array.dtype)
    inplace.write(weight, values)
    return weight


@public(name="embedding_renorm_", method=False)
def _embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Rows that are named, scaled down in place to a norm of `max_norm`.

    Input: (V, D), floating point or complex, indices of int32 or int64
    Output: the tensor itself, changed
    Errors: RuntimeError if it is not 2-D, or is of integers, or a leaf that requires grad
    https://pytorch.org/docs → torch.nn.functional.embedding

    >>> import tensorgrad as torch
    >>> torch.embedding_renorm_(torch.tensor([[3., 4.], [3., 4.]]), torch.tensor([1]), 1., 2.)
    tensor([[3.0000, 4.0000],
            [0.6000, 0.8000]])
    """
    if mode.record and input.requires_grad:
        inplace.check(input)
    if input.array.ndim != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {input.array.ndim}-dimensional tensor for argument "
                           "#1 'self' (while checking arguments for embedding_renorm_)")
    if input.array.dtype.kind in "biu":
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got "
                           f"{SCALAR_TYPES[input.dtype.name]} instead.")
    norm_type = float(norm_type)
    return embedding_renorm_(input, indices, max_norm, norm_type)


def bag_numbers(offsets: Any, count: int) -> Any:
    """Return the number of the bag of each of `count` places, given the bags' offsets."""
    backend = type(offsets._storage)
    numbers = backend.xp.searchsorted(offsets.array, backend.xp.arange(count), side="right") - 1
    return fresh(numbers.astype("int64"), backend)


@public("_embedding_bag", "_embedding_bag_forward_only", method=False)
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
                  sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor | tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums (mode 0), means (1) or maxima (2) of rows, bag by bag; bags start at the offsets.

    The result is a tuple, for PyTorch's is: the bags, the bag of each index, the sizes of the bags, and where maxima
    were found.

    Input: weight (V, D), floating point; indices (N) and offsets (B) of int32 or int64; per_sample_weights (N)
    Output: (B, D), and three tensors of integers; with include_last_offset the last offset ends the last bag, and B is
        one less
    Errors: RuntimeError if an index is not in [0, V), the first offset is not 0, the last is above N, offsets decrease
        (unless mode is 2), padding_idx is not in [−V, V), or the dtypes are others; IndexError if another offset is not
        in [0, N]
    https://pytorch.org/docs → torch.embedding_bag

    >>> import tensorgrad as torch
    >>> torch.embedding_bag(torch.tensor([[1.], [2.], [4.]]), torch.tensor([0, 1, 2]), torch.tensor([0, 2]))[0]
    tensor([[3.],
            [4.]])
    """
    if in_batch(indices, offsets):
        return each_example(embedding_bag, weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                            per_sample_weights, include_last_offset,
                            padding_idx)
    if indices.ndim == 2:           # rows of indices are no bags here
        indices, offsets = indices.flatten(), offsets.flatten()
    check_bags(weight, indices, offsets, padding_idx, mode, per_sample_weights)
    if per_sample_weights is not None and mode:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    all_bags = bag = bag_numbers(offsets[:bags] if mode != 2 else offsets[:bags].sort()[0], indices.shape[0])
    padded, quick = padding_idx is not None, _is_quick(weight, per_sample_weights)
    kept = indices != padding_idx % weight.shape[0] if padding_idx is not None else None
    # in some modes of PyTorch, indices after the last offset are in no bag; else they are in the last one
    if (include_last_offset and bags and quick and not padded and mode != 2 and not is_hollow(offsets)
            and int(offsets[-1]) < indices.shape[0]):
        inside = bag.new_tensor(range(indices.shape[0])) < offsets[-1]
        kept = inside if kept is None else kept & inside
    if kept is not None and not is_hollow(indices):
        indices, bag = indices[kept], bag[kept]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights[kept]
    sizes = xp.embedding_add(bag.new_ones(bag.shape), bag, rows=bags)
    if mode == 2:
        out, places = _largest(weight, indices, bag, sizes, bags)
        return out, all_bags, sizes, places
    scale = per_sample_weights
    if mode == 1:
        scale = (1 / sizes.clamp(min=1).to(weight.dtype))[bag]
    if scale_grad_by_freq and not sparse:
        gathered = xp.embedding(weight, indices, by_frequency=True)
        out = xp.embedding_add(gathered if scale is None else gathered * scale.unsqueeze(-1), bag, rows=bags)
    elif sparse:
        gathered = embedding_sparse(weight, indices, -1, scale_grad_by_freq)
        out = xp.embedding_add(gathered if scale is None else gathered * scale.unsqueeze(-1), bag, rows=bags)
    else:
        out = xp.embedding_bag(weight, indices, bag, scale, bags=bags)
    if mode == 1:
        return out, all_bags, sizes, sizes.clone()
    # sums need no counts: PyTorch leaves them zero, one per offset if no gradient is needed
    unused = sizes.new_zeros(bags if weight.requires_grad else offsets.shape[0])
    return out, all_bags if padded or not quick else bag.new_zeros(0), unused, unused.clone()


def _is_quick(weight: Any, scale: Any) -> bool:
    """Return True if PyTorch adds the rows without a table of their bags."""
    return (weight.dtype.name in ("float32", "float16", "bfloat16") and weight.stride(1) == 1
            and (scale is None or scale.stride(0) == 1))


def check_bags(weight: Any, indices: Any, offsets: Any, padding_idx: int | None, mode: int, scale: Any = None) -> None:
    if indices.ndim not in (1, 2):
        raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}")
    if indices.ndim == 1 and offsets.ndim != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.ndim}")
    if weight.ndim != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    _check_indices(weight, indices, offsets, function="embedding_bag")
    if not weight.is_floating_point():
        raise RuntimeError("Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, "
                           f"BFloat16, Float, Double; but got {weight.type()} instead (while checking arguments for "
                           f"embedding_bag)")
    if scale is not None and scale.dtype is not weight.dtype:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                           f"'per_sample_weights'; but type {weight.type()} does not equal {scale.type()} (while "
                           "checking arguments for embedding_bag)")
    count, rows = indices.shape[0], weight.shape[0]
    if offsets.shape[0] and not is_unknown(offsets):
        if int(offsets[0]) != 0:
            raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
                               f"position 0. However, got {int(offsets[0])}")
        if int(offsets[-1]) > count:
            raise RuntimeError(f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of "
                               f"{int(offsets[-1])}")
        starts = offsets.array
        if int(starts.min()) < 0 or int(starts.max()) > count:
            raise IndexError("index out of range in self")
        if mode != 2 and bool((starts[1:] < starts[:-1]).any()):
            raise RuntimeError(f"embedding_bag: offsets must not decrease, but got {offsets.tolist()}")
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got "
                           f"{padding_idx}")
    if _outside(indices, rows):
        wrong = ((indices < 0) | (indices >= rows)).nonzero()[0, 0]
        if mode == 2 or padding_idx is not None or not _is_quick(weight, scale):
            raise RuntimeError("embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                               f"{int(indices[wrong])}")
        raise RuntimeError(f"Index {int(wrong)} of input takes value {int(indices[wrong])} which is not in the valid "
                           f"range [0, {rows})")


def _largest(weight: Any, indices: Any, bag: Any, sizes: Any, bags: int) -> Any:
    """The largest value of each column in each bag; zero in empty bags."""
    longest = int(sizes.max()) if bags and not is_hollow(sizes) else 0
    if not longest:
        none = xp.embedding_add(xp.embedding(weight, indices[:0]), bag[:0], rows=bags)         # recorded, as others are
        return none, bag.new_zeros(bags, weight.shape[1])
    starts = sizes.cumsum(0) - sizes
    place = starts.unsqueeze(1) + bag.new_tensor(range(longest),
                                                 dtype=int64).minimum((sizes - 1).clamp(min=0).unsqueeze(1))
    table = indices[place.clamp(max=indices.shape[0] - 1)]
    values, which = xp.embedding(weight, table).max(dim=1)
    empty = (sizes == 0).unsqueeze(1)
    return values.masked_fill(empty, 0), table.gather(1, which).masked_fill(empty, 0)
