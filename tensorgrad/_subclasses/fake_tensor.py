"""Fake tensors: they have a shape, a dtype, strides and a device, and no values. https://pytorch.org/docs → Fake tensor

Programs compute their shapes alone, for any sizes and devices:

>>> import tensorgrad as torch
>>> from tensorgrad._subclasses.fake_tensor import FakeTensorMode
>>> with FakeTensorMode():
...     model = torch.nn.Linear(1_000_000, 4, device="cuda")
...     model(torch.empty(8, 1_000_000, device="cuda"))
FakeTensor(..., device='cuda:0', size=(8, 4), grad_fn=<AddmmBackward0>)

Arrays of fake tensors are symbols, as those of device "meta", in a storage that says it is on another device. All
functions run on them, and modes have nothing to ask: a mode only puts these storages in the place of others, for the
tensors that its thread makes. Beside PyTorch's fake tensors, sizes are numbers, none is unknown; constants are
forgotten; and outside of a mode, operands may be fake and real.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from .._tensor import Tensor
from ..core.dispatch import wrap
from ..device import device as Device
from ..interpret.symbol_storage import NoValues, SymbolStorage
from ..storage.base import Backends, Storage, standing_in
from ..utils.weak import WeakIdKeyDictionary

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorConverter",
           "FakeTensorMode", "UnsupportedFakeTensorException", "is_fake", "unset_fake_temporarily"]
KINDS = ("cpu", "cuda", "xpu", "mtia")


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor of which there are no fakes, such as a sparse one."""


# an operator whose result has a size that depends on values
DynamicOutputShapeException = NoValues


class DataDependentOutputException(NoValues):
    """An operator that returns a value as a number."""

    def __init__(self, func: Any) -> None:
        RuntimeError.__init__(self, str(func))
        self.func = func


class FakePlace(Device):
    """A device, whose new tensors are fake."""

    __slots__ = ("_name",)

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._name, self._text = self._text, f"fake {self._text}"

    def __str__(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        return str(other) == self._name if isinstance(other, (Device, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._name)

    def __reduce__(self) -> Any:
        return Device, (self.type, self.index)


class FakeTensorStorage(SymbolStorage):
    """The storage of fake tensors; each device has a subclass."""

    label = "FakeTensor"

    @classmethod
    def host(cls, array: Any) -> Any:
        from .._ops import ops
        raise DataDependentOutputException(ops.aten._local_scalar_dense.default)


def storage_on(device: Any) -> type[FakeTensorStorage]:
    """Return the storage class of fake tensors that say they are on a device."""
    found = Device(device)
    if found.type not in ("cpu", "meta") and found.index is None:
        found = Device(found.type, 0)
    place = FakePlace(found)
    known = dict.get(Storage.by_device, place._text)
    if known is None:
        known = type(FakeTensorStorage.__name__, (FakeTensorStorage,), {})
        known.device = place            # not in the class body: the table's key is not the name of the device
        Storage.by_device[place._text] = known
    return known  # type: ignore[no-any-return]


class FakeBackends(Backends):
    """A table of backends that returns those of fake tensors, in the thread that asked for it."""

    def get(self, name: str, default: Any = None) -> Any:
        if name.partition(":")[0] in self.kinds and threading.get_ident() == self.thread:
            return storage_on(name)
        return dict.get(self, name, default)


class _Fake(type(Tensor)):              # type: ignore[misc]
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and isinstance(value._storage, FakeTensorStorage)


class FakeTensor(metaclass=_Fake):
    """The class of fake tensors, for isinstance.

    FakeTensor(fake_mode, elem, device) makes one of a tensor of device "meta".
    """

    def __new__(cls, fake_mode: Any, elem: Any, device: Any, constant: Any = None) -> Any:
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        return wrap(elem.array, storage_on(device)())


class FakeTensorMode:
    """While it is on, the tensors that this thread makes are fake.

    Errors: NotImplementedError for a `shape_env`: sizes are numbers

    >>> import tensorgrad as torch
    >>> mode = FakeTensorMode()
    >>> x = mode.from_tensor(torch.ones(2, 3))
    >>> (x @ x.T).sum(0)
    FakeTensor(..., size=(2,))
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False,
                 shape_env: Any = None, static_shapes: bool | None = None, export: bool = False) -> None:
        if shape_env is not None:
            raise NotImplementedError("tensorgrad has no fake tensors of unknown sizes: leave out shape_env")
        self.allow_fallback_kernels, self.allow_non_fake_inputs = allow_fallback_kernels, allow_non_fake_inputs
        self.static_shapes, self.export, self.shape_env = True, export, None
        self.fake_tensor_converter = FakeTensorConverter()
        self._entered: list[ExitStack] = []

    def __enter__(self) -> FakeTensorMode:
        block = ExitStack()
        block.enter_context(standing_in(FakeTensorStorage, *KINDS, table=FakeBackends))
        self._entered.append(block)
        return self

    def __exit__(self, *raised: object) -> None:
        self._entered.pop().close()

    def from_tensor(self, tensor: Any, *, static_shapes: bool | None = None, source: Any = None,
                    symbolic_context: Any = None, trace: bool = True) -> Any:
        """Return the fake of a tensor: the same one each time. A fake tensor is its own.

        Errors: UnsupportedFakeTensorException for a sparse tensor
        """
        return self.fake_tensor_converter.from_real_tensor(self, tensor)


class FakeTensorConverter:
    """Makes fakes of tensors, and remembers them as long as the tensors exist."""

    def __init__(self) -> None:
        self.tensor_memo = WeakIdKeyDictionary()

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Any) -> Any:
        """Return the fake of a tensor, with its strides, its gradient, and whether it requires one."""
        if isinstance(t, FakeTensor):
            return t
        if (known := self.tensor_memo.get(t)) is not None:
            return known
        if t._storage.dense is not None:
            raise UnsupportedFakeTensorException(f"there are no fakes of {t.layout} tensors")
        storage = storage_on(t.device)
        out = wrap(storage.asarray(t.array), storage())
        if getattr(t, "_is_param", False):
            from ..nn.parameter import Parameter
            out = Parameter(out, t.requires_grad)
        elif t.requires_grad:
            out.requires_grad_()
        if t._grad is not None:
            out._grad = self.from_real_tensor(fake_mode, t._grad)
        self.tensor_memo[t] = out
        return out

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Any, device: Any) -> Any:
        """Return a fake of a tensor of device "meta" that says it is on another."""
        return FakeTensor(fake_mode, t, device)


def is_fake(x: Any) -> bool:
    """Return True for a fake tensor."""
    return isinstance(x, FakeTensor)


@contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """Make ordinary tensors in a `with` block inside a mode."""
    before = Storage.by_device
    plain = before
    while isinstance(plain, FakeBackends):
        plain = plain.before
    Storage.by_device = plain
    try:
        yield
    finally:
        Storage.by_device = before
