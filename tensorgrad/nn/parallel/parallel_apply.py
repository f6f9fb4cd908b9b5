"""Modules at work at the same time, each in a thread and on a device of its own."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ..._tensor.torch_function import state
from ._errors import ExceptionWrapper
from .comm import place

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device
    from ..modules.module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Tensor | list[Any] | tuple[Any, ...] | dict[Any, Any]) -> Tensor | None:
    """The first tensor in a nest of lists, tuples and dicts, or None."""
    if isinstance(obj, tg.Tensor):
        return obj
    for part in obj.items() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ():
        if (found := get_a_var(part)) is not None:
            return found
    return None


def parallel_apply(modules: Sequence[Module], inputs: Sequence[Any],
                   kwargs_tup: Sequence[dict[str, Any]] | None = None,
                   devices: Sequence[int | Device | None] | None = None) -> list[Any]:
    """The results of `modules[i](*inputs[i], **kwargs_tup[i])`, each computed in a thread with `devices[i]` as the
    current device.

    An error in a thread is raised again here, with the traceback in its message. See PyTorch's
    `torch.nn.parallel.parallel_apply`.

    Errors: AssertionError for lists of unlike length, or without a CUDA device.
    """
    for what, values in ("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices):
        if values is not None and len(values) != len(modules):
            raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of {what} "
                                 f"{len(values)}")
    from ...cuda import is_available
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return applied(modules, inputs, kwargs_tup, [place(device) for device in devices or [None] * len(modules)])


def applied(modules: Any, inputs: Any, kwargs_tup: Any, devices: Any) -> Any:
    """`parallel_apply` for devices of any kind."""
    results = [None] * len(modules)
    modes, grad = state.modes, tg.is_grad_enabled()
    streams = [_stream(device) for device in devices]

    def work(i, module, input, kwargs, device):
        state.modes = modes                         # autocast, above all
        try:
            with tg.set_grad_enabled(grad), _at_work_on(streams[i]):
                results[i] = module(*(input if isinstance(input, (list, tuple)) else (input,)), **kwargs)
        except Exception:
            results[i] = ExceptionWrapper(where=f"in replica {i} on device "
                                                f"{device.index if device.type == 'cuda' else device}")

    jobs = list(zip(range(len(modules)), modules, inputs, kwargs_tup or [{} for _ in modules], devices, strict=True))
    threads = [threading.Thread(target=work, args=job) for job in jobs] if len(jobs) > 1 else []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not threads:
        work(*jobs[0])
    for result in results:
        if isinstance(result, ExceptionWrapper):
            result.reraise()
    return results


def _stream(device):
    from ...cuda import current_stream
    return current_stream(device) if device.type == "cuda" else None


@contextmanager
def _at_work_on(stream):
    """The stream and its device are the current ones of this thread; None stands for the CPU, which has neither."""
    if stream is None:
        yield
        return
    from ...cuda import StreamContext
    with StreamContext(stream):
        yield
