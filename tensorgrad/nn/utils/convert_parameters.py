"""Convert parameters to a vector, and back."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ... import api as tg

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate the elements of all parameters. See PyTorch's `torch.nn.utils.parameters_to_vector`.

    >>> import tensorgrad as torch
    >>> torch.nn.utils.parameters_to_vector([torch.zeros(1, 2), torch.ones(1)])
    tensor([0., 0., 1.])
    """
    parameters = list(parameters)
    _check_one_device(parameters)
    return tg.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the parameters to the elements of a vector: each becomes a view of its piece.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.empty(1, 2))
    >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0]), [weight])
    >>> weight.tolist()
    [[1.0, 2.0]]
    """
    if not isinstance(vec, tg.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {tg.typename(vec)}")
    parameters = list(parameters)
    _check_one_device(parameters)
    start = 0
    for parameter in parameters:
        stop = start + parameter.numel()
        parameter.data = vec[start:stop].view_as(parameter).data
        start = stop


def _check_one_device(parameters):
    if len({parameter.device for parameter in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
