"""Saves, loads and pickles modules with lazy parameters, which wait for their shapes."""
from __future__ import annotations

from typing import Any

from .. import api as tg
from ..nn.parameter import is_lazy


class Waiting:
    """A mixin of `Layer`, usable with any module: lazy parameters remain lazy in copies, and take the shape of a loaded
    value.

    Names with dots belong to submodules that do not exist yet.
    """

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Save lazy tensors themselves, because they cannot be detached."""
        state = self._local_state()
        if keep_vars or not any(map(is_lazy, state.values())):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            return
        for name, tensor in state.items():
            destination[prefix + name] = tensor if is_lazy(tensor) else tensor.detach()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str],
                              error_msgs: list[str]) -> None:
        """Give each lazy tensor the shape of its loaded value, then load as usual."""
        state = self._local_state()
        for name, tensor in state.items():
            loaded = state_dict.get(prefix + name)
            if is_lazy(tensor) and isinstance(loaded, tg.Tensor) and not is_lazy(loaded):
                with tg.no_grad():
                    tensor.materialize(loaded.shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)
        unexpected_keys[:] = [key for key in unexpected_keys if key.removeprefix(prefix) not in state]

    def __getstate__(self) -> dict[str, Any]:
        """Add the devices and dtypes of lazy tensors, which their pickles omit."""
        kinds = {name: (tensor.device, tensor.dtype) for name, tensor in self._local_state().items() if is_lazy(tensor)}
        return {**super().__getstate__(), "_kinds": kinds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "_kinds"})
        for name, (device, dtype) in state.get("_kinds", {}).items():
            tensor = self._parameters.get(name, self._buffers.get(name))
            tensor.data = tg.empty(0, device=device, dtype=dtype)
