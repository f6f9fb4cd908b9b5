"""GradScaler: scale the loss so that small gradients survive half precision, and find the scale.

https://pytorch.org/docs/stable/amp.html

    loss · s  →  gradients · s  →  step with gradients / s, unless one is infinite or NaN: then skip it and halve s.
"""
from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from .. import api as tg

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """The stage of an optimizer in the current iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, unscales gradients, skips steps with infinities. https://pytorch.org/docs → torch.amp.GradScaler

    The scale is multiplied by `growth_factor` after `growth_interval` good steps in a row, and by `backoff_factor`
    after a bad one.

    >>> import tensorgrad as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.5), torch.amp.GradScaler("cpu")
    >>> scaler.scale((w * 3).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([-0.5000], requires_grad=True)
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0 ** 16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        self._device, self._enabled = device, enabled
        if device == "cuda" and enabled and not _cuda_is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", UserWarning,
                          stacklevel=2)
            self._enabled = False
        if self._enabled:
            assert growth_factor > 1.0, "The growth factor must be > 1.0."
            assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
            self._init_scale, self._growth_factor, self._backoff_factor = init_scale, growth_factor, backoff_factor
            self._growth_interval, self._init_growth_tracker = growth_interval, 0
            self._scale: Any = None
            self._growth_tracker: Any = None
            self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def scale(self, outputs: Any) -> Any:
        """The outputs times the scale: a tensor, or tensors in lists and tuples."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, tg.Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            return outputs * self._scale.to(device=outputs.device)
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(o) for o in outputs]
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        if isinstance(outputs, Iterable):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _get_scale_async(self) -> Any:
        """Return the scale as a tensor, None before the first loss."""
        return self._scale

    def _begin(self, device: Any) -> None:
        self._scale = tg.full((), self._init_scale, dtype=tg.float32, device=device)
        self._growth_tracker = tg.full((), self._init_growth_tracker, dtype=tg.int32, device=device)

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, in place: before clipping them, say."""
        if not self._enabled:
            return
        self._check_begun("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, self._scale.double().reciprocal().float(),
                                                             tg.zeros((), device=self._scale.device), False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> dict[Any, Any]:
        """Multiply the gradients by `inv_scale`; return {device: 1 if one of them is infinite or NaN, else 0}."""
        from ..api.native_forms import _amp_foreach_non_finite_check_and_unscale_
        found: dict[Any, Any] = {}
        with tg.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if (g := parameter.grad) is None:
                        continue
                    if g.dtype is tg.float16 and not allow_fp16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    if g.is_sparse:
                        if g.dtype is tg.float16:       # sums of halves may be infinite where no addend is
                            g = parameter.grad = g.coalesce()
                        g = g._values()
                    flag = found.setdefault(g.device, found_inf.to(g.device, copy=True))
                    _amp_foreach_non_finite_check_and_unscale_([g], flag, inv_scale.to(g.device))
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step the optimizer on unscaled gradients, unless one is infinite or NaN; return its result, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_begun("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_by_itself(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            assert state["found_inf_per_device"], "No inf checks were recorded for this optimizer."
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Step unless a gradient was infinite or NaN."""
        return None if _any(optimizer_state) else optimizer.step(*args, **kwargs)

    def _step_by_itself(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """Step an optimizer that unscales gradients and skips steps itself: it finds out how in its attributes."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn("GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. "
                          "In the near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the "
                          "passed optimizer and let the optimizer use them directly.", FutureWarning, stacklevel=3)
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        flags = [flag.to(self._scale.device) for flag in state["found_inf_per_device"].values()]
        optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else self._scale.clone()
        optimizer.found_inf = sum(flags)
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        """Look for infinities and NaN in the gradients, and leave these as they are."""
        one, zero = (tg.full((), value, device=self._scale.device) for value in (1.0, 0.0))
        found = self._unscale_grads_(optimizer, one, zero, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        """Return {device: 1 if a gradient was infinite or NaN, else 0}."""
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]  # type: ignore[no-any-return]

    def update(self, new_scale: Any = None) -> None:
        """Find the scale for the next iteration, or set it."""
        if not self._enabled:
            return
        self._check_begun("update")
        if new_scale is not None:
            self._scale.fill_(new_scale)
        else:
            states = self._per_optimizer_states.values()
            assert any(state["found_inf_per_device"] for state in states), ("No inf checks were recorded prior to "
                                                                           "update.")
            if any(map(_any, states)):
                self._scale.mul_(self._backoff_factor)
                self._growth_tracker.zero_()
            elif int(self._growth_tracker) + 1 == self._growth_interval:
                grown = self._scale * self._growth_factor
                if bool(tg.isfinite(grown)):
                    self._scale.copy_(grown)
                self._growth_tracker.zero_()
            else:
                self._growth_tracker += 1
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _check_begun(self, function: str) -> None:
        assert self._scale is not None, (f"Attempted {function} but _scale is None.  This may indicate your script did "
                                         "not use scaler.scale(loss or outputs) earlier in the iteration.")

    # ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def is_enabled(self) -> bool:
        """Return True if scaling is enabled."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale; 1 if it is not enabled."""
        return 1.0 if not self._enabled else self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Return the factor of the scale after `growth_interval` good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set it."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor of the scale after a bad step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set it."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of good steps in a row after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set it."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker)

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors, interval and count of good steps; empty if it is not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a saved state."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance "
                               "of GradScaler.")
        self._init_scale, self._growth_factor, self._backoff_factor = (state_dict[k]
                                                                       for k
                                                                       in ("scale", "growth_factor", "backoff_factor"))
        self._growth_interval, self._init_growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            assert not self._per_optimizer_states, ("A GradScaler instance may only be pickled at the beginning of an "
                                                    "iteration, or at the end after scaler.update().")
            state |= {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker(),
                      "_scale": None, "_growth_tracker": None}
        return state


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """Return the state of an optimizer before its gradients are looked at."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _any(state: dict[str, Any]) -> bool:
    """Return True if a gradient of the optimizer was infinite or NaN."""
    return any(bool(flag) for flag in state["found_inf_per_device"].values())


def _cuda_is_available() -> bool:
    from .. import cuda
    return cuda.is_available()
