"""Ways to watch the tape: anomaly mode (where did this NaN come from?) and hooks on what is saved."""
from __future__ import annotations

import traceback
from typing import Any

from ..dispatch import wrap
from .mode import Switch, mode
from .tape import Packed, TensorBase, record


def _recorder() -> Any:
    """What writes the tape under the features that are on."""
    if not mode.anomaly and not mode.hooks:
        return record

    def watched(op: Any, needs: int, args: Any, edges: Any, params: Any, out: Any) -> None:
        record(op, needs, args, edges, params, out)
        if mode.hooks:
            _pack(out._node, mode.hooks[-1])
        if mode.anomaly:
            out._node.trace = traceback.format_list(traceback.extract_stack()[:-2])
    return watched


def _pack(node: Any, hooks: Any) -> None:
    pack, unpack = hooks
    origins, packed = node.plan.origins, []
    for place, value in enumerate(node.saved):
        if place < len(origins) and (isinstance(value, TensorBase) or origins[place] >= len(node.edges)):
            tensor = value if isinstance(value, TensorBase) else wrap(value, node.storage)
            packed.append(Packed(pack(wrap(tensor.array, tensor.storage)), unpack))
        else:
            packed.append(value)
    node.saved = tuple(packed)


class set_detect_anomaly(Switch):
    """Turns anomaly mode on or off: a failing or NaN-making backward step shows the forward call that it belongs to.

    https://pytorch.org/docs → torch.autograd.set_detect_anomaly
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.arguments = mode, check_nan
        self.before = _mode.anomaly, _mode.check_nan
        self.__enter__()

    def clone(self) -> Any:
        return set_detect_anomaly(*self.arguments)

    def __enter__(self) -> None:
        _mode.anomaly, _mode.check_nan = self.arguments
        _mode.set_recorder(_recorder())

    def __exit__(self, *exception: object) -> None:
        _mode.anomaly, _mode.check_nan = self.before
        _mode.set_recorder(_recorder())


_mode = mode


class detect_anomaly(Switch):
    """Anomaly mode for the length of a block. https://pytorch.org/docs → torch.autograd.detect_anomaly"""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

    def clone(self) -> Any:
        return detect_anomaly(self.check_nan)

    def __enter__(self) -> None:
        self.before = mode.anomaly, mode.check_nan
        mode.anomaly, mode.check_nan = True, self.check_nan
        mode.set_recorder(_recorder())

    def __exit__(self, *exception: object) -> None:
        mode.anomaly, mode.check_nan = self.before
        mode.set_recorder(_recorder())


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return mode.anomaly


class saved_tensors_hooks(Switch):
    """What is saved for backward goes through `pack_hook`, and through `unpack_hook` when it is needed.

    https://pytorch.org/docs → torch.autograd.graph.saved_tensors_hooks
    """

    def __init__(self, pack_hook: Any, unpack_hook: Any) -> None:
        self.hooks = pack_hook, unpack_hook

    def clone(self) -> Any:
        return saved_tensors_hooks(*self.hooks)

    def __enter__(self) -> None:
        mode.hooks = (*mode.hooks, self.hooks)
        mode.set_recorder(_recorder())

    def __exit__(self, *exception: object) -> None:
        mode.hooks = mode.hooks[:-1]
        mode.set_recorder(_recorder())


class save_on_cpu(saved_tensors_hooks):
    """Keeps what is saved for backward in host memory. https://pytorch.org/docs → torch.autograd.graph.save_on_cpu"""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.cpu() if t.device.type != "cpu" else t.clone()), lambda packed: packed[1].to(packed[0]))

    def clone(self) -> Any:
        return save_on_cpu()
