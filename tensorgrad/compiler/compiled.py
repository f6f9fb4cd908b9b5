"""Compiled functions: one executable per signature of a call, and eager runs of what graphs cannot hold."""
from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from .._dynamo import config
from .._tensor.torch_function import state as overriding
from ..core.mode import mode
from ..device import get_default_device
from ..dtype import get_default_dtype
from ..graph.recorder import here
from ..graph.replay import OtherPath
from ..graph.symbolic_sizes import Sizes
from ..nn.modules.module import Module
from ..runtime.collecting import Paused
from ..storage.base import lock
from .entries import Entry
from .families import MARKS, Families, Family, General
from .shared import Shared
from .signature import Signature, Unlike, twins
from .stances import ALL, counters, stance
from .state import Reason, state
from .tracing import Trace, trace

MOST_SIZES = 64              # of a function with dynamic=True
GRAD = Reason("gradients are recorded: compiled code has no backward")


class Running:
    """The number of eager runs of compiled functions, in all threads.

    A trace replaces the tensors of a program, so it waits for none of them and does not start while others run.
    """

    def __init__(self) -> None:
        self.lock, self.count = threading.Lock(), 0

    def alone(self) -> bool:
        """Return True if no other thread runs a compiled function eagerly."""
        return self.count == state.eager

    def __enter__(self) -> None:
        with lock:                          # held by a trace until it has ended
            with self.lock:
                self.count += 1
        state.eager += 1

    def __exit__(self, *exception: object) -> None:
        state.eager -= 1
        with self.lock:
            self.count -= 1


running = Running()


class Compiled:
    """A function or module that `torch.compile` was called with, and what is known of its calls.

    `entries` are by signature. `eager` counts calls that ran eagerly, by reason.
    """

    def __init__(self, program: Callable[..., Any], *, fullgraph: bool = False, dynamic: bool | None = None,
                 build: Any = None, freeze: bool = False) -> None:
        self.program, self.fullgraph, self.dynamic, self.build, self.freeze = program, fullgraph, dynamic, build, freeze
        self.entries: dict[tuple[Any, ...], list[Entry]] = {}
        self.eager: Counter[str] = Counter()
        self.changed: list[str] = []                    # guards that failed
        self.frozen = False
        self.witness: tuple[Any, str, Any] | None = None      # (table, name, parameter that requires a gradient)
        self.shared = Shared()                          # what the executables compute ahead
        self.families = Families(False if build is not None or freeze and not dynamic else dynamic)
        ALL.add(self)

    # ── a call ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        now = mode.__dict__
        grad = now["grad"]
        if (overriding.modes or now["batches"] or now["transforms"] or now["quiet"] is not None or stance.eager
                or config.disable or now["tangents"].levels or now["watching"].anomaly or now["watching"].hooks
                or get_default_device().type != "cpu"):
            return self._eagerly(self._prevented(now), args, kwargs)
        if grad and self.witness is not None and self.witness[0].get(self.witness[1]) is self.witness[2] and (
                self.witness[2].requires_grad):
            return self._eagerly(GRAD, args, kwargs)
        found = Signature()
        try:
            for value in args:
                found.add(value)
            if kwargs:
                found.add(kwargs)
        except Unlike as error:
            return self._eagerly(error.reason, args, kwargs)
        found.key += (len(args), grad, now["inference"], get_default_dtype())
        inputs = found.tensors
        if len(inputs) > 1 and len({*map(id, inputs)}) < len(inputs):
            found.key.append(twins(inputs))             # programs may ask: query is key
        key = tuple(found.key)
        if grad and self.build is None and any(tensor.requires_grad for tensor in inputs):
            return self._eagerly(GRAD, args, kwargs)
        for entry in self.entries.get(key, ()):
            if entry.holds():
                break
        else:
            entry = self._missed(key, found, args, kwargs)      # type: ignore[assignment]
            if entry is None:
                return self._as_it_is(args, kwargs)
        if entry.run is None:
            return self._eagerly(entry.reason, args, kwargs)
        if self.build is not None:
            return entry.nested(entry.run.on_tensors(inputs), inputs)
        if grad and entry.needs_grad():
            return self._eagerly(GRAD, args, kwargs)
        return entry.results([tensor.array for tensor in inputs], inputs)

    def _prevented(self, now: Any) -> Reason:
        """Return the reason if the thread's modes, or the stance, let nothing compiled run."""
        if config.disable:
            return Reason("torch._dynamo.config.disable is set")
        if stance.eager:
            return Reason("the stance is force_eager")
        if overriding.modes:
            return Reason(f"{type(overriding.modes[-1]).__name__} is on")
        if now["batches"] or now["transforms"] or now["tangents"].levels:
            return Reason("a function transform runs")
        if now["quiet"] is not None:
            return Reason("the program runs for its shapes")
        if now["watching"].anomaly or now["watching"].hooks:
            return Reason("anomaly mode or hooks on saved tensors are on")
        return Reason(f"new tensors are made on {get_default_device()}")

    def _eagerly(self, reason: Reason, args: Any, kwargs: Any) -> Any:
        """Run the program as it is, and say why, once."""
        if state.trace is not None or here.recorder is not None:
            return self.program(*args, **kwargs)
        text = str(reason)
        if not self.eager[text]:
            tell("%s runs eagerly: %s", name_of(self.program), text)
        self.eager[text] += 1
        return self._as_it_is(args, kwargs)

    def _as_it_is(self, args: Any, kwargs: Any) -> Any:
        if state.trace is not None or here.recorder is not None:
            return self.program(*args, **kwargs)
        with running:
            return self.program(*args, **kwargs)

    # ── a new signature ───────────────────────────────────────────────────────────────────────────────────────────────

    def _missed(self, key: Any, found: Signature, args: Any, kwargs: Any) -> Entry | None:
        """Return the entry of a signature that has none whose guards hold; None if the call is to run as it is."""
        if state.trace is not None or here.recorder is not None:        # part of another program's trace
            return None
        with lock:
            changes = []
            general = self.families.general(key, args, kwargs)
            if any(entry.again for entry in self.entries.get(key, ())):
                self.entries[key] = [entry for entry in self.entries[key] if not entry.again]
                return self._compile(key, found, args, kwargs, general, last=True)
            for entry in self.entries.get(key, ()):
                changes.append(entry.failed())
                if changes[-1] is None:
                    return entry
            for family in self.families.of(general):
                changes.append(None if family.base.holds() else family.base.failed())
                if changes[-1] is None and (resized := self._resized(family, key, found)) is not None:
                    return resized
            failed = next(filter(None, changes), None)          # of the latest graph
            if not found.tensors:
                self.eager["there are no tensors among the inputs"] += 1
                return None
            if self._waits(key, found, failed):
                return None
            if failed is not None:
                self.changed.append(failed)
                tell("%s is traced again: %s changed", name_of(self.program), failed)
            return self._compile(key, found, args, kwargs, general)

    def _waits(self, key: Any, found: Signature, failed: str | None) -> bool:
        """Return True if a new signature is to run as it is, for now."""
        if stance.name == "fail_on_recompile" and self.entries:
            raise RuntimeError(f"Detected recompile when torch.compile stance is 'fail_on_recompile'. "
                               f"{name_of(self.program)}: {failed or 'no graph has this signature'}")
        if stance.name in ("eager_then_compile", "aot_eager_then_compile") and key not in self.entries:
            self.entries[key] = []
            return True
        reason = ("the stance is eager_on_recompile" if stance.name == "eager_on_recompile" else
                  "another thread ran a compiled function eagerly" if not running.alone() else
                  f"torch._dynamo.config.recompile_limit is reached: {self.count} graphs" if self.full(found) else None)
        if reason is not None:
            self.eager[reason] += 1
        return reason is not None

    @property
    def count(self) -> int:
        """The number of traces."""
        return len(self.families) + sum(entry.family is None for kept in self.entries.values() for entry in kept)

    def full(self, found: Signature) -> bool:
        """Return True if there are as many traces as the limit allows."""
        dynamic = self.dynamic or self.dynamic is None and any(
            getattr(tensor, name, None) for tensor in found.tensors for name in MARKS)
        return self.count >= (MOST_SIZES if dynamic else config.recompile_limit)

    def _compile(self, key: Any, found: Signature, args: Any, kwargs: Any, general: General | None,
                 last: bool = False) -> Entry:
        """Trace a call. A program that changes what it reads may do so once, to keep something (`cached_property`): its
        next call is traced, too, unless this is the last try.
        """
        if general is not None and (entry := self._with_symbols(key, found, args, kwargs, general, last)) is not None:
            return entry
        with Paused():
            traced = trace(self.program, args, kwargs, found.objects)
            try:
                run = None if traced.graph is None else self._built(traced, found)
            except MemoryError:
                run, traced.graph, traced.reason = None, None, Reason("there is no memory for its plan or its weights")
            entry = Entry.of_trace(traced, found.objects, run)
        if general is not None and str(traced.reason).startswith("raises"):
            self.families.refused.pop(general.key, None)            # an error of the program for these sizes
        if traced.reason is not None and traced.reason.breaks:
            counters["graph_break"][traced.reason.text] += 1
            if self.fullgraph:
                from .._dynamo.exc import Unsupported
                raise Unsupported(f"{name_of(self.program)} cannot be one graph: {traced.reason}")
        entry.again = bool(traced.changed) and not last and stance.name == "default"
        entry.inputs = ", ".join(described(tensor) for tensor in found.tensors)
        kept = self.entries.setdefault(key, [])
        kept.insert(0, entry)
        counters["stats"]["unique_graphs" if entry.run is not None else "eager_signatures"] += 1
        if isinstance(self.program, Module) and self.build is None and not self.frozen:
            self._find_witness()
        return entry

    def _with_symbols(self, key: Any, found: Signature, args: Any, kwargs: Any, general: General,
                      last: bool) -> Entry | None:
        """Trace a call with symbolic sizes; None, and a note why, if each of its sizes needs a trace."""
        with Paused():
            sizes = Sizes()
            traced = trace(self.program, args, kwargs, found.objects, symbols=(sizes, general.axes))
            if traced.graph is None or traced.changed and not last:
                self.families.refused[general.key] = str(traced.reason)
                return None
            if self.freeze and not self.frozen and isinstance(self.program, Module):
                self._let_go(traced)            # but for the graph, which packs them for each size
            family = Family(traced, sizes, general.axes, found.objects)
            family.check_marks(found.tensors)
            if (entry := self._resized(family, key, found)) is not None:
                self.families.add(general, family)
                counters["stats"]["unique_graphs"] += 1
        if entry is not None and isinstance(self.program, Module) and not self.frozen:
            self._find_witness()
        return entry

    def _resized(self, family: Family, key: Any, found: Signature) -> Entry | None:
        """Return the entry of a family for these sizes; None if they lead to another path, or need too much memory."""
        from .executable import build
        try:
            with Paused():
                entry = family.entry(found.tensors, partial(build, shared=self.shared))
        except (OtherPath, MemoryError):
            return None
        entry.inputs = ", ".join(described(tensor) for tensor in found.tensors)
        self.families.keep(key, entry, self.entries)
        return entry

    def _built(self, traced: Trace, found: Signature) -> Any:
        """Return what runs a traced graph on arrays."""
        if self.build is not None:
            return self.build(traced.graph, found.tensors)
        from .executable import build
        if not self.freeze or self.frozen or not isinstance(self.program, Module):
            return build(traced.graph, self.shared)  # type: ignore[arg-type]
        return build(traced.graph, self.shared, partial(self._let_go, traced))      # type: ignore[arg-type]

    def _let_go(self, traced: Trace) -> None:
        """Freeze the program, a module."""
        from .erased import erase  # a class with a dispatcher of its own: most programs need none
        self.frozen, self.witness = True, None
        erase(self.program, traced)                                     # type: ignore[arg-type]

    def _find_witness(self) -> None:
        """Note a parameter that requires a gradient: while it does, calls that record gradients run eagerly at once."""
        modules = self.program.modules()                # type: ignore[attr-defined]
        self.witness = next(((module._parameters, name, tensor) for module in modules
                             for name, tensor in module._parameters.items()
                             if tensor is not None and tensor.requires_grad), None)

    def forget(self) -> None:
        """Drop everything that was compiled."""
        self.entries, self.eager, self.changed = {}, Counter(), []
        self.families = Families(self.families.dynamic)


def tell(text: str, *values: Any) -> None:
    """Give a message to the logger `tensorgrad.compiler`."""
    import logging
    logging.getLogger("tensorgrad.compiler").info(text, *values)


def described(tensor: Any) -> str:
    """Return the dtype and shape of a tensor: float32[2, 3]."""
    return f"{str(tensor.dtype).rpartition('.')[2]}{list(tensor.shape)}"


def name_of(program: Any) -> str:
    """Return the name of a function, or of a module's class."""
    return getattr(program, "__qualname__", None) or type(program).__qualname__


# a child process may be forked while another thread traces: the lock would never be released in it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
