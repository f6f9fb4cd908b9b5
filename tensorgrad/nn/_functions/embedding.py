"""Linear maps and tables of vectors. https://pytorch.org/docs/stable/nn.functional.html#sparse-functions"""
from __future__ import annotations

from ... import api as tg
from ..._tensor import Tensor
from ...api._arguments import each_example, in_batch, is_batched, is_hollow, is_unknown
from ...api._kinds import Index
from ...api.linear import check_bags, embedding_renorm_, linear
from ...messages.warn_once import warn

__all__ = ["bilinear", "embedding", "embedding_bag", "linear", "one_hot"]

bilinear = tg.bilinear


def embedding(input: Tensor, weight: Tensor, padding_idx: Index | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Look up rows of a table.

    Rows longer than `max_norm` are shortened in the table first. Rows of `padding_idx` get no gradient. Gradients are
    dense.

    Input: input (*), int64 or int32, from 0 to V − 1; weight (V, D)
    Output: (*, D), the weight's dtype
    Errors: IndexError for an index out of range; RuntimeError for an input of another dtype or a weight that is not
        2-dimensional; AssertionError if padding_idx is out of range
    https://pytorch.org/docs → torch.nn.functional.embedding

    >>> import tensorgrad as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        if in_batch(input, weight):
            return each_example(embedding, input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        if weight.array.ndim != 2:
            raise RuntimeError(f"Expected 2-dimensional tensor, but got {weight.array.ndim}-dimensional tensor for "
                               "argument #1 'self' (while checking arguments for embedding_renorm_)")
        embedding_renorm_(weight, input, max_norm, norm_type)
    return tg.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of bags of rows.

    Input: input (N, L), a bag in each row, or (M), with the starts of N bags in offsets (N); weight (V, D);
        per_sample_weights in the input's shape
    Output: (N, D)
    Errors: ValueError for a mode other than sum, mean and max, for missing or superfluous offsets, for other numbers of
        dimensions, or if per_sample_weights have another shape than the input; NotImplementedError for
        per_sample_weights unless mode is 'sum'; RuntimeError for an index out of range
    https://pytorch.org/docs → torch.nn.functional.embedding_bag

    >>> import tensorgrad as torch
    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1], [2, 2]]), torch.tensor([[1.], [2.], [4.]]))
    tensor([[1.5000],
            [4.0000]])
    """
    if weight.dtype is tg.int64 and input.is_floating_point():
        warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
             "...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.", again=True)
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must "
                         "have the same shape as the input "
                         f"({input.shape})")
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
                             f"fixed length sequences. However, found offsets of type "
                             f"{str(type(offsets)).replace('tensorgrad._tensor', 'torch')}")
        offsets = tg.arange(input.shape[0], device=input.device) * input.shape[1]
        include_last_offset, input = False, input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    _check_mode(mode, scale_grad_by_freq, sparse)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                                  f"supported for mode='sum' (got mode='{mode}'). Please open a feature request on "
                                  f"GitHub.")
    if max_norm is not None:
        if not in_batch(input, offsets):
            check_bags(weight, input, offsets, padding_idx, MODES[mode])        # before max_norm writes to rows
        embedding_renorm_(weight, input, max_norm, norm_type)
    return tg.embedding_bag(weight, input, offsets, scale_grad_by_freq, MODES[mode], sparse, per_sample_weights,
                            include_last_offset, padding_idx)[0]


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """1 at each class, 0 elsewhere along a new last axis.

    Input: (*), int64, from 0 to num_classes − 1
    Output: (*, num_classes), int64; num_classes is 1 + the greatest class unless given
    Errors: RuntimeError for other dtypes, negative classes, classes from num_classes on, or an empty input without
        num_classes
    https://pytorch.org/docs → torch.nn.functional.one_hot

    >>> import tensorgrad as torch
    >>> torch.nn.functional.one_hot(torch.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    if input.dtype is not tg.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not input.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return input.new_zeros(*input.shape, num_classes)
    if is_hollow(input) and num_classes > 0:
        return input.new_zeros(*input.shape, num_classes)
    if is_batched(input):
        if num_classes < 1:
            raise RuntimeError("When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive "
                               "num_classes argument.")
        return (input.unsqueeze(-1) == tg.arange(num_classes, device=input.device)).long()
    if num_classes < 0 or not is_unknown(input):
        if int(input.min()) < 0:
            raise RuntimeError("Class values must be non-negative.")
        most = int(input.max())
        if num_classes == -1:
            num_classes = most + 1
        elif num_classes <= most:
            raise RuntimeError("Class values must be smaller than num_classes.")
    return (input.unsqueeze(-1) == tg.arange(num_classes, device=input.device)).long()
