"""Activation checkpointing trades time for memory: backward recomputes a part of a model instead of keeping its tensors
(PyTorch: ``torch.utils.checkpoint``).

T. Chen et al., Training Deep Nets with Sublinear Memory Cost (2016).

Without reentrance, the part is recorded as usual, but the tape holds a `_Slot` in place of each saved tensor. When
backward needs the first of them, the part runs again, and its tensors fill the slots; each is freed as soon as it was
used. With reentrance, the part is one step of the tape, whose backward records the part and runs backward through it.
"""
from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .. import api as tg
from .._tensor import torch_function
from ..api.random import fork_rng
from ..autograd.function import Function, Saved
from ..core.anomaly import saved_tensors_hooks
from ..core.engine import backward
from ..core.mode import enable_grad, mode, no_grad
from ._device_states import DefaultDeviceType, get_device_states, set_device_states
from ._device_states import infer_device_type as _infer_device_type  # noqa: F401  PyTorch's name
from ._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = ["CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "GraphExecGroup",
           "SAC_IGNORED_OPS", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint",
           "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable", "get_device_states",
           "noop_context_fn",
           "set_checkpoint_debug_enabled",
           "set_checkpoint_early_stop", "set_device_states"]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed part differs from the first."""


class _Stop(Exception):
    """Ends the second run early, once all saved tensors have been recomputed."""


_overrides: dict[str, Any] = {"early_stop": None, "debug": None}


@contextlib.contextmanager
def _override(name: str, value: Any) -> Iterator[None]:
    before, _overrides[name] = _overrides[name], value
    try:
        yield
    finally:
        _overrides[name] = before


def set_checkpoint_early_stop(enable: bool) -> Any:
    """A context manager that overrides `early_stop` of calls: recompute parts to their end (False), or only as far as
    needed (True).

    https://pytorch.org/docs → torch.utils.checkpoint.set_checkpoint_early_stop
    """
    return _override("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> Any:
    """A context manager that overrides `debug` of calls: True lets errors list the steps of both runs.

    https://pytorch.org/docs → torch.utils.checkpoint.set_checkpoint_debug_enabled
    """
    return _override("debug", enabled)


def noop_context_fn() -> tuple[Any, Any]:
    """Return null contexts for the two runs, the default of `context_fn`."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], Any] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, **kwargs: Any) -> Any:
    """Call `function(*args, **kwargs)`, and keep nothing but the arguments for backward, which calls it again.
    https://pytorch.org/docs → torch.utils.checkpoint.checkpoint

    The function must be deterministic; `preserve_rng_state` (True) repeats its random numbers. `context_fn` returns two
    context managers, for the first and the second run; `determinism_check` "default" compares the shapes, dtypes and
    devices of the saved tensors, "none" does not (CheckpointError); `debug` lists the steps of both runs in that error;
    `early_stop` ends the second run once all saved tensors are recomputed.

    >>> import tensorgrad as torch
    >>> from tensorgrad.utils.checkpoint import checkpoint
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum().backward()
    >>> bool((x.grad == x.exp().cos() * x.exp()).all())
    True
    """
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
                      "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
                      "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
                      "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
                      "two variants.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    logs: Any = None
    if _overrides["debug"] if _overrides["debug"] is not None else debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        logs = _Log(), _Log()
    first, second = logs or context_fn()
    part = _Part(function, args, kwargs, _Surroundings(args, preserve), second, logs,
                 CHECKS[determinism_check], early_stop if _overrides["early_stop"] is None
                 else _overrides["early_stop"])
    if not mode.grad:
        return function(*args, **kwargs)
    part.keep()
    with saved_tensors_hooks(part.pack, part.unpack), first:
        result = function(*args, **kwargs)
        part.finished = True
    if not part.finished:
        raise RuntimeError("torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception "
                           "raised during the checkpointed forward. This is not supported because checkpoint cannot "
                           "return a value for a failed forward.")
    return result


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          **kwargs: Any) -> Any:
    """Run a chain of modules or functions in `segments` parts, of which all but the last are checkpointed.

    https://pytorch.org/docs → torch.utils.checkpoint.checkpoint_sequential

    >>> import tensorgrad as torch
    >>> from tensorgrad.utils.checkpoint import checkpoint_sequential
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    >>> checkpoint_sequential(model, 2, torch.ones(3, 2), use_reentrant=False).shape
    torch.Size([3, 1])
    """
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
                      "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
                      "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
                      "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
                      "two variants.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    from ..nn import Sequential
    chain = list(functions.children() if isinstance(functions, Sequential) else functions)
    size = len(chain) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        input = checkpoint(_chained(chain[start:start + size]), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve)
    return _chained(chain[last:])(input)


def _chained(functions: Any) -> Any:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value
    return run


# ── without reentrance ────────────────────────────────────────────────────────────────────────────────────────────────


def _outline(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


CHECKS: dict[str, Callable[[Any], Any]] = {"default": _outline, "none": lambda tensor: None}


class _Surroundings:
    """The global state that a function sees: the random number generators of the CPU and of its arguments' GPUs,
    autocast, and the default device."""

    def __init__(self, args: Any, preserve: bool) -> None:
        self.preserve, self.device = preserve, tg.get_default_device()
        self.casting = tuple(filter(_casts, torch_function.state.modes))
        if preserve:
            self.cpu = tg.get_rng_state()
            self.gpus = dict(zip(*get_device_states(*args)))

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Restore the saved state until the block ends."""
        with fork_rng(self.gpus if self.preserve else [], enabled=self.preserve), tg.device(self.device):
            if self.preserve:
                tg.set_rng_state(self.cpu)
                set_device_states(self.gpus, self.gpus.values())
            before = torch_function.state.modes
            torch_function.state.modes = (*(m for m in before if not _casts(m)), *self.casting)
            try:
                yield
            finally:
                torch_function.state.modes = before


def _casts(override: Any) -> bool:
    from ..amp.autocast_mode import Casting
    return isinstance(override, Casting)


class _Here(threading.local):
    group: Any = None


_here = _Here()


class GraphExecGroup:
    """A context manager in which parts are recomputed once for all backward calls together; no two of them may need the
    same tensor.

    https://pytorch.org/docs → torch.utils.checkpoint.GraphExecGroup
    """

    def __enter__(self) -> GraphExecGroup:
        if _here.group is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {_here.group}")
        _here.group, self.notes = self, {}
        return self

    def __exit__(self, *exception: object) -> None:
        _here.group, self.notes = None, {}


class _Slot:
    """A placeholder on the tape for a saved tensor that is recomputed."""


class _Part:
    """A call of a checkpointed function: how to call it again, and the slots that a second run fills."""

    def __init__(self, function: Any, args: Any, kwargs: Any, surroundings: _Surroundings, context: Any, logs: Any,
                 outline: Any,
                 early_stop: bool) -> None:
        self.function, self.args, self.kwargs, self.surroundings, self.context = (function, args, kwargs, surroundings,
                                                                                  context)
        self.logs, self.outline, self.early_stop = logs, outline, early_stop
        self.slots: list[Any] = []          # weak references: slots that the tape has dropped need no value
        self.outlines: list[Any] = []
        self.finished = self.overtaken = False

    def keep(self) -> None:
        """Save the arguments as the tape saves tensors: later writes to them are detected, and an outer checkpoint
        has slots for them."""
        self.args = [Saved(a, None) if isinstance(a, tg.Tensor) else a for a in self.args]

    def pack(self, tensor: Any) -> _Slot:
        slot = _Slot()
        self.slots.append(weakref.ref(slot))
        self.outlines.append(self.outline(tensor))
        return slot

    def unpack(self, slot: _Slot) -> Any:
        try:
            return self.value(slot)
        except CheckpointError as error:
            if self.logs is None:
                raise
            raise CheckpointError(_report(*self.logs)) from error

    def value(self, slot: _Slot) -> Any:
        """Return the value of a slot, recomputing the part if needed.

        Each backward, or GraphExecGroup, holds its own values until it ends.
        """
        notes = _here.group.notes if _here.group is not None else {} if mode.sweep is None else mode.sweep.notes
        found = notes.get(self)
        if found is None:
            notes[self] = found = weakref.WeakKeyDictionary()
            self.run_again(found)
        if slot not in found:
            why = "" if _here.group is None else (
                "Performing two backward calls that overlap (i.e. require the same saved activation in order to "
                "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. ")
            raise CheckpointError(f"torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                                  f"unpacked once. {why}If you are calling ctx.saved_tensors in backward, make sure to "
                                  "do so only once. Otherwise please open an issue with details on your use case.")
        return found.pop(slot)

    def run_again(self, found: Any) -> None:
        """Run the function again, and put its saved tensors into `found` by slot."""
        outlines: list[Any] = []

        def refill(tensor: Any) -> Any:
            tensor = tensor.detach() if tensor.requires_grad else tensor
            place = len(outlines)
            outlines.append(self.outline(tensor))
            if place >= len(self.slots):
                if self.finished:
                    raise CheckpointError("torch.utils.checkpoint: trying to save more tensors during recomputation "
                                          f"than during the original forward pass.\n{TIP}")
                self.overtaken = True         # backward was called inside the part, before its first run has ended
                return tensor
            slot = self.slots[place]()
            if slot is not None:
                found[slot] = tensor
            if self.early_stop and place + 1 == len(self.slots):
                raise _Stop
            return tensor

        args = [a.restored(None) if isinstance(a, Saved) else a for a in self.args]
        with (contextlib.suppress(_Stop), saved_tensors_hooks(refill, lambda tensor: tensor), enable_grad(),
              self.surroundings.again(), self.context):
            self.function(*args, **self.kwargs)
        if not self.overtaken:
            self.compare(outlines)

    def compare(self, outlines: list[Any]) -> None:
        if len(outlines) != len(self.slots):
            raise CheckpointError("torch.utils.checkpoint: A different number of tensors was saved during the original "
                                  f"forward and recomputation.\nNumber of tensors saved during forward: "
                                  f"{len(self.slots)}\nNumber of tensors saved during recomputation: "
                                  f"{len(outlines)}.\n{TIP}")
        different = [(i, a, b) for i, (slot, a, b) in enumerate(zip(self.slots, self.outlines, outlines))
                     if slot() is not None and a != b]
        if different:
            listed = "".join(f"tensor at position {i}:\nsaved metadata: {a}\nrecomputed metadata: {b}\n"
                             for i, a, b in different)
            raise CheckpointError("torch.utils.checkpoint: Recomputed values for the following tensors have different "
                                  f"metadata than during the forward pass.\n{listed}.\n{TIP}")


TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint-debug mode globally.
"""


class _Log:
    """The steps that the tape records inside a block."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def note(self, node: Any) -> None:
        self.steps.append(f"{node.name().removesuffix('Backward0')} -> {node.shape}")

    def __enter__(self) -> None:
        mode.watch(self.note)

    def __exit__(self, *exception: object) -> None:
        mode.watch(self.note, False)


def _report(first: _Log, second: _Log) -> str:
    runs = "\n".join(f"{title}:\n" + "".join(f"    {step}\n" for step in log.steps)
                     for title, log in (("Operations executed during the original forward", first),
                                        ("Operations executed during recomputation", second)))
    return (" An error happened while unpacking tensors; dumping logs of latest computation\nbecause you passed "
            f"`debug=True` to `torch.utils.checkpoint.checkpoint()`.\n\n{runs}\n ERROR: Detected non-determinism while "
            "running activation checkpointing\n\nYou are seeing this error because you passed `debug=True` to "
            "checkpoint, or called it inside set_checkpoint_debug_enabled(True). The two runs of the function recorded "
            "different steps: compare the lists above to find the first that differs.")


# ── with reentrance ───────────────────────────────────────────────────────────────────────────────────────────────────


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs with each tensor as a new leaf, which requires grad if the tensor does."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, tg.Tensor) else x for x in inputs)


def check_backward_validity(inputs: Any) -> None:
    """Warn if no input requires grad, because no result will either."""
    if not any(x.requires_grad for x in inputs if isinstance(x, tg.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class CheckpointFunction(Function):
    """A part of a model as one step, whose backward runs the part again, records it, and runs backward through it."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function, ctx.surroundings = run_function, _Surroundings(args, preserve_rng_state)
        ctx.inputs = [None if isinstance(a, tg.Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, tg.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if mode.sweep.useful is not None:
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                               "passing an `inputs` parameter to .backward(). To resolve this error, you can either "
                               "set use_reentrant=False, or call .backward() without passing the `inputs` argument.")
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[place] = tensor
        leaves = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*leaves)
        outputs = (outputs,) if isinstance(outputs, tg.Tensor) else outputs
        roots = [(out, g) for out, g in zip(outputs, gradients) if isinstance(out, tg.Tensor) and out.requires_grad]
        if not roots:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in roots], [g for _, g in roots])
        return None, None, *(x.grad if isinstance(x, tg.Tensor) else None for x in leaves)
