"""Dual tensors: values together with tangents, for derivatives along a direction.

https://pytorch.org/docs → torch.autograd.forward_ad

    >>> import tensorgrad as torch
    >>> import tensorgrad.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(2.), torch.tensor(1.))
    ...     fwAD.unpack_dual(x ** 3)
    UnpackedDualTensor(primal=tensor(8.), tangent=tensor(12.))
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ..core.mode import Switch
from ..core.mode import mode as _mode
from ..core.tape import TensorBase, node_of
from ..dtype import strided
from ..interpret.forward import Level, check_continuous
from ..messages.missing_names import MissingName


def enter_dual_level() -> int:
    """Begin a level. Only one level may be open: use func.jvp for derivatives of higher order."""
    if current_level():
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    DualLevel().__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tangents are gone."""
    current = current_level()
    if level is not None and level != (0 if current else -1):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    if current is None:
        raise RuntimeError("Dual level must be a positive number.")
    current.__exit__()


class DualLevel(Level):
    """The level of dual tensors that a program handles itself."""

    wraps = False


def current_level(number: int | None = None, function: str = "") -> Any:
    """The level, which has the number 0, or None."""
    found = next((level for level in _mode.tangents.levels if type(level) is DualLevel), None)
    if found is not None and number:
        raise RuntimeError(f"Invalid level given to {function}")
    return found


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A tensor in the memory of `tensor` that moves along `tangent`.

    https://pytorch.org/docs → torch.autograd.forward_ad.make_dual
    """
    current = current_level(level, "_make_dual")
    if current is None:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")
    check_continuous(tensor, tangent)
    if current[node_of(tensor)] is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
                           "level 0 is not supported.")
    if current[node_of(tangent)] is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level0 is not "
                           "supported.")
    return current.dual(tensor, _laid_as(tensor, tangent))


def _laid_as(tensor: Any, tangent: Any) -> Any:
    """Return the tangent, copied unless its strides and its memory are those of the tensor: views of both are alike."""
    shape, strides, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
    if tensor.layout is not strided or tangent.layout is not strided or tangent.shape != shape:
        return tangent
    batched = type(tangent._storage).rank
    if (all(n == 1 or a == b for n, a, b in zip(shape, strides, tangent.stride(), strict=True))
            and (batched or offset == tangent.storage_offset() and _room(tensor) == _room(tangent))):
        return tangent
    return tangent.new_zeros(_room(tensor)).as_strided(shape, strides, offset).copy_(tangent)


def _room(tensor: Any) -> int:
    """Return the number of elements that a tensor's memory has room for."""
    memory = tensor._storage.memory
    return int(tensor.array.size if memory is None else memory.nbytes // tensor.array.dtype.itemsize)


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual tensor; the tangent is None where there is none."""

    primal: Any
    tangent: Any


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """A dual tensor's value and tangent. https://pytorch.org/docs → torch.autograd.forward_ad.unpack_dual"""
    current = current_level(level, "_fw_primal")
    if current is None or not isinstance(tensor, TensorBase):
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(current.primal(tensor), current[node_of(tensor)])


class dual_level(Switch):
    """A block in which there are dual tensors. https://pytorch.org/docs → torch.autograd.forward_ad.dual_level"""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    return _mode.tangents.on


class _set_fwd_grad_enabled(Switch):
    """Turn the propagation of tangents on or off, until the end of the block if used as one."""

    def __init__(self, mode: bool) -> None:
        self.on, self.before = mode, _mode.tangents.on
        _mode.set_forward(mode)

    def clone(self) -> Any:
        return _set_fwd_grad_enabled(self.on)

    def __enter__(self) -> None:
        _mode.set_forward(self.on)

    def __exit__(self, *exception: object) -> None:
        _mode.set_forward(self.before)


def __getattr__(name: str) -> Any:
    """`_current_level`: the number of the open level, −1 without one."""
    if name == "_current_level":
        return -1 if current_level() is None else 0
    raise MissingName(__name__, name)


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
