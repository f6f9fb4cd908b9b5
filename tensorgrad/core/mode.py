"""Modes of the tape: no_grad, enable_grad, inference_mode. Each thread has separate modes."""
from __future__ import annotations

import threading
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..runtime.decorating import decorated


def refuse_inference(node: Any) -> None:
    """Raise if a step saved a tensor that was made in inference mode."""
    for value in node.saved:
        if getattr(getattr(getattr(value, "tensor", value), "_storage", None), "inference", False):
            raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in "
                               "inference mode in computation tracked by autograd. To work around this, you can make a "
                               "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead "
                               "of `torch.inference_mode()`.")


CAREFUL = (refuse_inference,)     # the watchers of a thread that has been in inference mode


class Writers:
    """The functions that record a step. The tape registers them; compiled functions may replace them.

    `plain` is used without watchers, `careful` if the watchers are CAREFUL, and `watched`, which calls the watchers,
    otherwise.
    """

    __slots__ = ("plain", "careful", "watched")

    def __init__(self) -> None:
        self.plain: Any = None
        self.careful: Any = None
        self.watched: Any = None

    def register(self, **functions: Any) -> None:
        """Register functions by name, and use them in this thread at once."""
        for name, function in functions.items():
            setattr(self, name, function)
        mode.set_grad(mode.grad)


writers = Writers()


class Watching:
    """The watchers of a thread's new steps and backwards."""

    __slots__ = ("watchers", "anomaly", "check_nan", "hooks", "refused", "writing", "timing")

    def __init__(self) -> None:
        # functions of a new step: anomaly mode, hooks on saved values, the check for inference tensors
        self.watchers: tuple[Any, ...] = ()
        self.anomaly = False                    # steps remember their forward call, for the errors of backward
        self.check_nan = True                   # in anomaly mode, backward looks for NaN
        self.hooks: tuple[Any, ...] = ()        # the pairs of saved_tensors_hooks in force, from the outermost
        self.refused: str | None = None         # the error for saved_tensors_hooks, if they are disabled
        self.writing: Any = None                # a function of each tensor that is about to be written to
        self.timing: Any = None     # in a profile: returns the block that times a step of a backward, or what is named


class Tangents:
    """Forward mode in one thread. The mode records steps for their tangents even where gradients are off."""

    __slots__ = ("levels", "see", "on", "passing", "keep")

    def __init__(self) -> None:
        self.levels: tuple[Any, ...] = ()       # from the outermost
        # while there are levels: the function that pushes tangents through a new step
        self.see: Any = None
        self.on = True                          # tangents go on from step to step
        # steps that tangents, but no gradients, are being pushed through
        self.passing: frozenset[Any] = frozenset()
        self.keep = False                       # steps stay on the tape although no gradient flows through them


class Mode(threading.local):
    """The modes of one thread.

    Fields that each op reads are attributes of this object, for the compiled fast path, too.
    """

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.record = writers.plain             # the function that writes the tape, or None while the tape is off
        # an array whose values are not needed any more: a kernel may write its result there
        self.landing: Any = None
        # a generator for all random numbers, while a model runs on tensors without values
        self.quiet: Any = None
        self.batches: tuple[Any, ...] = ()      # the running vmaps, the outermost first
        self.transforms = 0                     # the number of running derivatives of functions, and `functionalize`s
        self.sweep: Any = None                  # the running backward
        self.watching = Watching()
        self.tangents = Tangents()

    @property
    def transforming(self) -> bool:
        """True while a function transform runs. The first vmap, and batches of gradients, are none."""
        return self.transforms > 0 or any(not level.first for level in self.batches)

    def set_grad(self, on: bool) -> None:
        self.grad = on
        recording = not self.inference and (on or self.tangents.levels and self.tangents.on)
        self.record = self.writer() if recording else None

    def writer(self) -> Any:
        """The function that writes the tape now, were it on."""
        watchers = self.watching.watchers
        if self.tangents.see is not None or watchers and watchers != CAREFUL:
            return writers.watched
        return writers.careful if watchers else writers.plain

    def set_forward(self, on: bool) -> None:
        self.tangents.on = on
        self.set_grad(self.grad)

    def watch(self, watcher: Any, on: bool = True) -> None:
        """Show each new step of the tape to `watcher(node)`, or no longer."""
        others = tuple(w for w in self.watching.watchers if w != watcher)
        self.watching.watchers = (*others, watcher) if on else others
        self.set_grad(self.grad)


mode = Mode()


UNTIMED: AbstractContextManager[Any] = nullcontext()


def timed(name: str, owner: Any) -> AbstractContextManager[Any]:
    """Return a block that is an entry of a profile, if one is running; `{}` in the name is the class of `owner`."""
    timing = mode.watching.timing
    return UNTIMED if timing is None else timing(name.format(type(owner).__name__))


class Switch:
    """A context manager that is a decorator too, of functions and of generators."""

    def __call__(self, function: Any) -> Any:
        if isinstance(function, type):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only "
                          "decorate functions or methods. To preserve the current behavior of class decoration, you "
                          "can directly decorate the `__init__` method and nothing else.", FutureWarning, stacklevel=2)
        return decorated(function, self.clone)

    def clone(self) -> Any:
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what it switches")

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say what it switches back")


class GradSwitch(Switch):
    """Sets the gradient mode, and restores it."""

    on: bool

    def __new__(cls, orig_func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)   # @no_grad without parentheses

    def __enter__(self) -> None:
        self.before = mode.grad
        mode.set_grad(self.on)

    def __exit__(self, *exception: object) -> None:
        mode.set_grad(self.before)


class no_grad(GradSwitch):
    """Turn recording off inside a block. https://pytorch.org/docs → no_grad

    >>> import tensorgrad as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    on = False


class enable_grad(GradSwitch):
    """Recording is on inside, also within no_grad. https://pytorch.org/docs → enable_grad"""

    on = True


class set_grad_enabled(Switch):
    """Turn recording on or off: at once, and until the end of the block if used as one.

    https://pytorch.org/docs → set_grad_enabled
    """

    def __init__(self, mode: bool) -> None:
        if type(mode) is not bool:
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                            f"{type(mode).__name__}")
        self.before = _mode.grad
        self.on = mode
        _mode.set_grad(mode)

    def __call__(self, function: Any) -> Any:
        _mode.set_grad(self.before)
        return super().__call__(function)

    def clone(self) -> Any:
        return set_grad_enabled(self.on)

    def __enter__(self) -> None:
        _mode.set_grad(self.on)

    def __exit__(self, *exception: object) -> None:
        _mode.set_grad(self.before)


_mode = mode


class inference_mode(Switch):
    """Turn recording off inside a block, whose tensors may not enter a graph later.

    https://pytorch.org/docs → inference_mode
    """

    on: bool

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        self.on = True if callable(mode) else bool(mode)
        return self(mode) if callable(mode) else self

    def __init__(self, mode: Any = True) -> None:
        pass

    def clone(self) -> Any:
        return inference_mode(self.on)

    def __enter__(self) -> None:
        self.before = _mode.grad, _mode.inference
        _mode.inference = self.on
        _mode.watch(refuse_inference)   # from now on this thread may hold inference tensors
        _mode.set_grad(not self.on)

    def __exit__(self, *exception: object) -> None:
        _mode.inference = self.before[1]
        _mode.set_grad(self.before[0])


def is_grad_enabled() -> bool:
    """Return True if operations are recorded. https://pytorch.org/docs → is_grad_enabled"""
    return mode.grad


def is_inference_mode_enabled() -> bool:
    """Return True if inference mode is on. https://pytorch.org/docs → is_inference_mode_enabled"""
    return mode.inference


def is_anomaly_enabled() -> bool:
    """Return True if anomaly mode is on. https://pytorch.org/docs → torch.autograd.detect_anomaly"""
    return mode.watching.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Return True if anomaly mode, when on, checks for NaN. https://pytorch.org/docs → torch.autograd.detect_anomaly"""
    return mode.watching.check_nan
