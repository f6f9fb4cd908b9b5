"""Watchers of the tape: anomaly mode, which finds the source of NaN, and hooks on saved tensors."""
from __future__ import annotations

import warnings
from os.path import dirname, join
from typing import Any

from .mode import Switch, mode
from .step import PlainStep


def keep_trace(node: Any) -> None:
    """Record the stack of a step's forward call, down to the function of tensors that the program called."""
    import traceback
    node.trace = traceback.format_list([line for line in traceback.extract_stack()
                                        if not line.filename.startswith(_INSIDE)])


_PACKAGE = dirname(dirname(__file__))
_INSIDE = ("<frozen runpy>", join(_PACKAGE, "__main__.py"),             # python -m tensorgrad
           *(join(_PACKAGE, folder, "") for folder in "_tensor api core interpret kernels ops runtime".split()))


def pack_saved(node: Any) -> None:
    """Pass a step's saved tensors to the innermost hooks. (`Function` does so itself, see `function.py`.)"""
    if isinstance(node, PlainStep):
        node.pack(mode.watching.hooks[-1])


class set_detect_anomaly(Switch):
    """Turns anomaly mode on or off: a failing or NaN-making backward step shows the forward call that it belongs to.

    https://pytorch.org/docs → torch.autograd.set_detect_anomaly
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.arguments = mode, check_nan
        self.before = _mode.watching.anomaly, _mode.watching.check_nan
        _set(mode, check_nan)

    def clone(self) -> Any:
        return set_detect_anomaly(*self.arguments)

    def __enter__(self) -> None:
        _set(*self.arguments)

    def __exit__(self, *exception: object) -> None:
        _set(*self.before)


_mode = mode


def _set(anomaly: bool, check_nan: bool) -> None:
    mode.watching.anomaly, mode.watching.check_nan = anomaly, check_nan
    mode.watch(keep_trace, anomaly)


class detect_anomaly(Switch):
    """Anomaly mode for the length of a block. https://pytorch.org/docs → torch.autograd.detect_anomaly"""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.",
                      UserWarning, stacklevel=2)

    def clone(self) -> Any:
        return detect_anomaly(self.check_nan)

    def __enter__(self) -> None:
        self.before = mode.watching.anomaly, mode.watching.check_nan
        _set(True, self.check_nan)

    def __exit__(self, *exception: object) -> None:
        _set(*self.before)


class saved_tensors_hooks(Switch):
    """Values saved for backward go through `pack_hook`, and through `unpack_hook` when it is needed.

    https://pytorch.org/docs → torch.autograd.graph.saved_tensors_hooks
    """

    def __init__(self, pack_hook: Any, unpack_hook: Any) -> None:
        self.hooks = pack_hook, unpack_hook

    def clone(self) -> Any:
        return saved_tensors_hooks(*self.hooks)

    def __enter__(self) -> None:
        if mode.watching.refused is not None:
            raise RuntimeError(mode.watching.refused)
        if not all(map(callable, self.hooks)):
            raise TypeError("_push_saved_tensors_default_hooks(): incompatible function arguments. The following "
                            "argument types are supported:\n    (pack_hook: function, unpack_hook: function)")
        mode.watching.hooks = (*mode.watching.hooks, self.hooks)
        mode.watch(pack_saved)

    def __exit__(self, *exception: object) -> None:
        mode.watching.hooks = mode.watching.hooks[:-1]
        mode.watch(pack_saved, bool(mode.watching.hooks))


class disable_saved_tensors_hooks(Switch):
    """Refuses saved_tensors_hooks, with this message.

    https://pytorch.org/docs → torch.autograd.graph.disable_saved_tensors_hooks
    """

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def clone(self) -> Any:
        return disable_saved_tensors_hooks(self.message)

    def __enter__(self) -> None:
        if mode.watching.hooks:
            raise RuntimeError(self.message)
        self.before, mode.watching.refused = mode.watching.refused, self.message

    def __exit__(self, *exception: object) -> None:
        mode.watching.refused = self.before


class save_on_cpu(saved_tensors_hooks):
    """Keep tensors that are saved for backward in host memory.

    https://pytorch.org/docs → torch.autograd.graph.save_on_cpu
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.cpu() if t.device.type != "cpu" else t.clone()),
                         lambda packed: packed[1].to(packed[0]))

    def clone(self) -> Any:
        return save_on_cpu()
