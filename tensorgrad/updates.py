"""Steps of optimizers as one kernel each, for the backends that have one.

A kernel writes to the arrays that change: `kernel(*changed, *read, **numbers)`, or returns NotImplemented before it writes anything. It may put off what
it does to the end of the optimizer's step, where threads share it all.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import local
from types import TracebackType
from typing import Any, NamedTuple

from .autograd.inplace import check_mode
from .autograd.mode import mode
from .dispatch import PLAIN, OpDispatch
from .sharing import available, finish

KERNELS: dict[tuple[str, Any], Callable[..., Any]] = {}


def register(name: str, device: Any) -> Callable[[Any], Any]:
    """A decorator: the function becomes the kernel of this update on the device."""
    def decorate(kernel: Any) -> Any:
        KERNELS[name, OpDispatch.backend(device)] = kernel
        return kernel
    return decorate


class Update(NamedTuple):
    """One that is put off: how long it takes on one thread, and jobs that it consists of, for so many threads."""

    nanoseconds: float
    jobs: Callable[[int], Sequence[Callable[[], None]]]


class Together(local):
    """`with together:` of updates that may be put off to its end: there each thread does some of them."""

    def __init__(self) -> None:
        self.put_off: list[Update] | None = None
        self.written: set[Any] = set()          # memory that they are to write to

    def __enter__(self) -> None:
        self.put_off = []

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.make()
        self.put_off = None

    def make(self) -> None:
        """Make those that were put off."""
        updates, self.put_off = self.put_off or [], []
        self.written.clear()
        make(updates)


together = Together()


def make(updates: Sequence[Update]) -> None:
    threads = available(sum(update.nanoseconds for update in updates), short=True)
    finish([job for update in updates for job in update.jobs(threads)], threads)


def at_once(name: str, changed: tuple[Any, ...], read: tuple[Any, ...], **numbers: Any) -> bool:
    """Whether a kernel made this update. Tensors that change may be None; nothing is recorded."""
    backend, arrays = type(changed[0]._storage), []
    kernel = KERNELS.get((name, backend))
    if kernel is None or mode.record or mode.hooks:
        return False
    for tensor in changed + read:
        if tensor is not None and (type(tensor) not in PLAIN or type(tensor._storage) is not backend):
            return False
        arrays.append(None if tensor is None else tensor.array)
    for number in numbers.values():
        if not isinstance(number, (int, float)):
            return False
    for tensor in changed:
        if tensor is not None:
            check_mode(tensor)
    if together.put_off:                    # the same memory in another tensor is to be seen as it will be
        memory = {tensor._storage for tensor in changed + read if tensor is not None}
        if not memory.isdisjoint(together.written):
            together.make()
    waiting = len(together.put_off or ())
    if kernel(*arrays, **numbers) is NotImplemented:
        return False
    if len(together.put_off or ()) > waiting:
        together.written.update(tensor._storage for tensor in changed if tensor is not None)
    for tensor in changed:
        if tensor is not None:
            tensor._storage.wrote()
    return True
