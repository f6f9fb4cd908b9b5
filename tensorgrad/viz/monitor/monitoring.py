"""The monitor of a training: hooks while a block runs, and a page that is rewritten regularly."""
from __future__ import annotations

import math
import os
from numbers import Real
from pathlib import Path
from typing import Any

from ...core.tape import TensorBase
from ...serialization._atomic import replacing
from .boundary import Boundary
from .page import page
from .recording import Record


def monitor(module: Any, optimizer: Any, path: Any = "training.html", *, every: int = 10, refresh: float = 2.0,
            boundary: Any = None,
            title: str = "Training") -> Monitor:
    """A training as a page that refreshes itself while the `with` block runs, and is kept after it.

    Works offline, from file://.

    Call `.step(loss)` after each step. Hooks of the optimizer measure its first step and each `every`-th one: the
    2-norms of the gradient, the weights before the step and their update, for each module that has parameters of its
    own. Units that gave 0 for all inputs since the measured step
    before are counted: of `nn.ReLU` and `nn.ReLU6`, and of calls of `F.relu` and `F.relu6` after a layer of the module
        while gradients are recorded. A
    unit is an index of axis 1; of results with three axes, in modules without `nn.Conv1d`, of the last axis. The page
    is written on entry, at the first loss, at each `every`-th one and in the end, always whole, and its folder is made;
    a browser reads it anew every `refresh` seconds until then. `boundary=(points, labels)` draws where a module of two
    inputs decides: points of shape (n, 2), n labels. Under a Trainer of `tensorgrad.experiment`, the callback
        `TrainingPage` does all of this.

    If the block raises, the page keeps all that was measured and says after which step it ended, and the error goes on.
    TypeError for arguments of a wrong type, ValueError for wrong values and where the optimizer updates no parameter of
    the module, OSError where the page cannot be written.

    >>> import tempfile, tensorgrad as torch
    >>> net = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with torch.viz.monitor(net, optimizer, f"{folder}/training.html", every=2) as seen:
    ...         for _ in range(4):
    ...             optimizer.zero_grad()
    ...             loss = net(torch.ones(3, 2)).square().mean()
    ...             loss.backward()
    ...             optimizer.step()
    ...             seen.step(loss)
    >>> len(seen.record.losses), seen.record.measured, [layer.name for layer in seen.record.layers]
    (4, [1, 2, 4], ['Linear'])
    """
    from ...nn import Module
    from ...optim import Optimizer
    if not isinstance(module, Module):
        raise TypeError(f"monitor(): module must be a Module, not {type(module).__name__}")
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"monitor(): optimizer must be an Optimizer, not {type(optimizer).__name__}")
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"monitor(): path must be a str or a path, not {type(path).__name__}")
    if not isinstance(title, str):
        raise TypeError(f"monitor(): title must be a str, not {type(title).__name__}")
    if isinstance(every, bool) or not isinstance(every, int):
        raise TypeError(f"monitor(): every must be an int, not {type(every).__name__}")
    if isinstance(refresh, bool) or not isinstance(refresh, Real):
        raise TypeError(f"monitor(): refresh must be a number, not {type(refresh).__name__}")
    if every < 1:
        raise ValueError(f"monitor(): every must be at least 1, but got {every}")
    if not 0 < refresh < math.inf:
        raise ValueError(f"monitor(): refresh must be positive and finite, but got {refresh}")
    if boundary is not None and not (isinstance(boundary, (tuple, list)) and len(boundary) == 2):
        raise TypeError(f"monitor(): boundary must be a pair (points, labels), not {type(boundary).__name__}")
    record = Record(module, optimizer, every)
    if not record.layers:
        raise ValueError("monitor(): the optimizer updates no parameter of the module")
    return Monitor(record, path, float(refresh), None if boundary is None else Boundary(module, *boundary), title)


class Monitor:
    """Monitor of a training: `record` holds the numbers, `step` adds a loss, `write` writes the page."""

    def __init__(self, record: Record, path: Any, refresh: float, boundary: Boundary | None, title: str) -> None:
        self.record, self.path, self.refresh, self.boundary, self.title = record, path, refresh, boundary, title
        self.state = "not started"
        self.handles: list[Any] = []

    def __enter__(self) -> Monitor:
        if self.state != "not started":
            raise RuntimeError("a monitor is entered once: make another one with viz.monitor()")
        Path(os.fsdecode(self.path)).parent.mkdir(parents=True, exist_ok=True)
        self.write("running")
        self.handles = self.record.hooks()
        return self

    def step(self, loss: Any) -> None:
        """Add the loss of a step, a number or a tensor of one element, and the current learning rates.

        Errors: TypeError for other things, RuntimeError outside of the block.
        """
        if self.state != "running":
            raise RuntimeError("Monitor.step(): call it inside of the `with` block")
        self.record.add_loss(number(loss))
        if len(self.record.losses) == 1 or len(self.record.losses) % self.record.every == 0:
            self.write("running")

    def write(self, state: str) -> None:
        """Replace the page atomically: readers find either the previous one or this one."""
        self.record.paused = True                            # forwards for the boundary are no part of the training
        try:
            text = page(self.record, self.boundary, self.title, state, self.refresh if state == "running" else None)
        finally:
            self.record.paused = False
        with replacing(self.path) as file:
            file.write(text.encode("utf-8"))
        self.state = state

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        for handle in self.handles:
            handle.remove()
        if error is None:
            self.write("done")
            return
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        try:
            self.write(f"Ended after step {len(self.record.losses)} by {told:.300}")
        except Exception:                                    # must not hide the program's own error
            self.state = "ended"


def number(loss: Any) -> float:
    """A loss as a number."""
    if isinstance(loss, TensorBase) and loss.numel() == 1 and not loss.is_complex():
        return float(loss.detach())
    if isinstance(loss, TensorBase):
        raise TypeError(f"Monitor.step(): loss must be a real number or a tensor with one, but got {loss.dtype} of "
                        f"shape {tuple(loss.shape)}")
    if isinstance(loss, (str, bytes, complex)) or not hasattr(loss, "__float__"):
        raise TypeError(f"Monitor.step(): loss must be a real number or a tensor with one, not {type(loss).__name__}")
    return float(loss)
