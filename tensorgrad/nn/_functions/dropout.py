"""Dropout. https://pytorch.org/docs/stable/nn.functional.html#dropout-functions"""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ...core.inplace import in_place
from ...messages.warn_once import warn

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _run(function: Any, input: Any, p: float, training: bool, inplace: bool) -> Any:
    _check(p)
    return in_place(input, function, p, training) if inplace else function(input, p, training)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element is 0 with probability p, else x / (1 − p).

    Input: (*), floating point
    Output: the input's shape; the input itself unless training
    Errors: ValueError unless 0 ≤ p ≤ 1; while training, RuntimeError for integers and bools, NotImplementedError for
        complex numbers
    https://pytorch.org/docs → torch.nn.functional.dropout

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.dropout(torch.ones(6))
    tensor([0., 0., 2., 0., 0., 0.])
    """
    return _run(tg.dropout, input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of selu's outputs.

    Input: (*), floating point
    Output: the input's shape; the input itself unless training
    Errors: ValueError unless 0 ≤ p ≤ 1; RuntimeError for integers and bools while training
    https://pytorch.org/docs → torch.nn.functional.alpha_dropout

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.alpha_dropout(torch.zeros(4), training=True)
    tensor([-0.7792, -0.7792,  0.7792, -0.7792])
    """
    return _run(tg.alpha_dropout, input, p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Alpha dropout of whole channels (axis 1).

    Input: (N, C, *), floating point
    Output: the input's shape; the input itself unless training
    Errors: ValueError unless 0 ≤ p ≤ 1; RuntimeError for integers, bools, and less than 2 dimensions while training
    https://pytorch.org/docs → torch.nn.functional.feature_alpha_dropout

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.feature_alpha_dropout(torch.zeros(1, 3, 2), training=True)
    tensor([[[-0.7792, -0.7792],
             [-0.7792, -0.7792],
             [ 0.7792,  0.7792]]])
    """
    return _run(tg.feature_alpha_dropout, input, p, training, inplace)


def _of_channels(input: Any, p: float, training: bool, inplace: bool, single: bool) -> Any:
    """Dropout of whole channels; a `single` sample has no axis for the batch."""
    if not single:
        return _run(tg.feature_dropout, input, p, training, inplace)
    return _run(lambda x, *args: tg.feature_dropout(x.unsqueeze(0), *args).squeeze(0), input, p, training, inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L).

    Input: (N, C, L) or (C, L)
    Output: the input's shape; the input itself unless training
    Errors: ValueError unless 0 ≤ p ≤ 1; RuntimeError for other numbers of dimensions
    https://pytorch.org/docs → torch.nn.functional.dropout1d

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.dropout1d(torch.ones(3, 2))
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.]])
    """
    _check(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
                           "dropout1d exists to provide channel-wise "
                           "dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
                           "dimension (i.e. 2D or 3D inputs).")
    return _of_channels(input, p, training, inplace, input.ndim == 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, H, W).

    Input: (N, C, H, W); also (N, C, L), with a UserWarning
    Output: the input's shape; the input itself unless training
    Errors: ValueError unless 0 ≤ p ≤ 1; RuntimeError for less than 2 dimensions while training
    https://pytorch.org/docs → torch.nn.functional.dropout2d

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.dropout2d(torch.ones(1, 3, 1, 2)).flatten()
    tensor([0., 0., 0., 0., 2., 2.])
    """
    _check(p)
    if input.ndim not in (3, 4):
        warn(f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and will result "
             "in an error in a future release. To "
             "retain the behavior and silence this warning, please use dropout instead. Note that dropout2d "
             "exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel "
             "dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
             again=True)
    if input.ndim == 3:
        warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
             "is desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior "
             "will change in a future release to interpret the input as one without a batch dimension, i.e. "
             "shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using "
             "dropout1d instead.", again=True)
    return _of_channels(input, p, training, inplace, False)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    Input: (N, C, D, H, W) or (C, D, H, W)
    Output: the input's shape; the input itself unless training
    Errors: ValueError unless 0 ≤ p ≤ 1
    https://pytorch.org/docs → torch.nn.functional.dropout3d

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.dropout3d(torch.ones(3, 1, 1, 2)).flatten()
    tensor([0., 0., 0., 0., 2., 2.])
    """
    _check(p)
    if input.ndim not in (4, 5):
        warn(f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated and will result "
             "in an error in a future release. To "
             "retain the behavior and silence this warning, please use dropout instead. Note that dropout3d "
             "exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel "
             "dimension, and an optional batch dimension (i.e. 4D or 5D inputs).",
             again=True)
    return _of_channels(input, p, training, inplace, input.ndim != 5)
