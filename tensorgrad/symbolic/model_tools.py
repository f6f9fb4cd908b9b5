"""Count and compare the parameters of modules."""
from __future__ import annotations

from hashlib import sha256
from typing import Any

from .. import api as tg
from ..nn import Module


def get_parameter_count(model: Module, only_trainable: bool = False) -> int:
    """The number of a module's parameters, shared ones counted once; `only_trainable` leaves out those that are frozen.

    >>> import tensorgrad as torch
    >>> net = torch.nn.Linear(3, 2)
    >>> net.bias = net.bias.requires_grad_(False)
    >>> get_parameter_count(net), get_parameter_count(net, only_trainable=True)
    (8, 6)
    """
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not only_trainable)


def get_parameter_shapes(model: Module) -> list[tuple[int, ...]]:
    """The shapes of a module's parameters, in their order.

    >>> import tensorgrad as torch
    >>> get_parameter_shapes(torch.nn.Linear(3, 2))
    [(2, 3), (2,)]
    """
    return [tuple(p.shape) for p in model.parameters()]


def model_similar(a: Module, b: Module) -> bool:
    """Return True if two modules have parameters of equal shapes, in any order.

    >>> import tensorgrad as torch
    >>> model_similar(torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)), model_similar(torch.nn.Linear(3, 2), torch.nn.Linear(2, 3))
    (True, False)
    """  # noqa: E501
    return sorted(get_parameter_shapes(a)) == sorted(get_parameter_shapes(b))


def hash_torch_tensor(tensor: Any) -> str:
    """Return a digest of a tensor's dtype, shape and bits, which does not depend on its strides or device.

    >>> import tensorgrad as torch
    >>> hash_torch_tensor(torch.ones(2, 2)) == hash_torch_tensor(torch.ones(2, 4)[:, ::2]) != hash_torch_tensor(torch.ones(4))
    True
    """  # noqa: E501
    digest = sha256(f"{tensor.dtype} {tuple(tensor.shape)} ".encode())
    digest.update(tensor.detach().cpu().flatten().contiguous().view(tg.uint8).numpy().tobytes())
    return digest.hexdigest()


def models_have_corresponding_parameters(a: Module, b: Module) -> bool:
    """Return True if the sets of two modules' parameter values are equal, whatever their order and names.

    Equal parameters count once.

    >>> import tensorgrad as torch
    >>> first, second = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    >>> models_have_corresponding_parameters(first, torch.nn.Sequential(first)), models_have_corresponding_parameters(first, second)
    (True, False)
    """  # noqa: E501
    return {hash_torch_tensor(p) for p in a.parameters()} == {hash_torch_tensor(p) for p in b.parameters()}


__all__ = ["get_parameter_count", "get_parameter_shapes", "hash_torch_tensor", "model_similar",
           "models_have_corresponding_parameters"]
