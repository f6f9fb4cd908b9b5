"""Checkpoints of a trainer: everything that a fit needs to resume exactly where it was."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import streams
from .hparams import kept
from .optimization import called

__all__ = ["Resuming", "arguments_for", "newest", "read"]


OWN = "loop", "loaders"  # parts that each process has to itself


class Resuming:
    """Saves and restores the parts of a fit: module, optimizers, schedulers, scaler, loaders, loop, callbacks, data
    module, run, random streams."""

    def __init__(self, trainer: Any, module: Any, datamodule: Any) -> None:
        self._trainer, self._module, self._datamodule = trainer, module, datamodule
        self._checkpointer: Any = None

    def prepare(self) -> None:
        """Let loaders record, from before the first batch, what their states need."""
        from .checkpoint import Checkpointer

        self._checkpointer = Checkpointer(self._trainer.checkpoint_directory or ".", **self._parts())

    def _parts(self) -> dict[str, Any]:
        trainer, optimization = self._trainer, self._trainer.optimization
        parts = {
            "model": self._module,
            "optimizers": optimization.optimizers,
            "schedulers": [one.scheduler for one in optimization.schedules],
            "loop": trainer.fit_loop,
            "callbacks": Callbacks(trainer.callbacks),
            "loaders": self._loaders(),
        }
        if trainer.precision_plugin.scaler is not None:
            parts["scaler"] = trainer.precision_plugin.scaler
        if self._datamodule is not None:
            parts["datamodule"] = self._datamodule
        return parts

    def _loaders(self) -> list[Any]:
        """Return the loaders that can resume from a state."""
        source = self._trainer.source
        return [loader for kind in ("train", "val") for loader in source.loaders(kind) if self.knows_its_place(loader)]

    def knows_its_place(self, loader: Any) -> bool:
        """Return True if a loader can resume from its `state_dict`; a loader shared by training and validation cannot,
        for it has a single position for both."""
        source = self._trainer.source
        shared = any(loader is one for one in source.loaders("train")) and any(
            loader is one for one in source.loaders("val")
        )
        return (
            not shared
            and callable(getattr(loader, "state_dict", None))
            and callable(getattr(loader, "load_state_dict", None))
        )

    def state(self, weights_only: bool = False) -> dict[str, Any]:
        """Return a checkpoint of plain values and tensors, other processes' included."""
        trainer, module = self._trainer, self._module
        if weights_only or trainer.optimization is None:
            model = module.state_dict()
            state: dict[str, Any] = {"format": 1, "step": trainer.global_step, "parts": {"model": model}}
        else:
            state = self._checkpointer.state(step=trainer.global_step)
            if trainer.parallel.world > 1:
                state["ranks"] = trainer.parallel.gathered(
                    {"streams": state["streams"], "parts": {name: state["parts"][name] for name in OWN}}
                )
            if trainer.run is not None:
                state["run"] = trainer.run.state_dict()
        state |= {
            "epoch": trainer.current_epoch,
            "global_step": trainer.global_step,
            "state_dict": state["parts"]["model"],
            "hyper_parameters": kept(getattr(module, "hparams", {})),
        }
        if self._datamodule is not None:
            state["datamodule_hyper_parameters"] = kept(self._datamodule.hparams)
        trainer.hooks("on_save_checkpoint", state)
        return state

    def load(self, state: dict[str, Any]) -> None:
        """Restore all parts from a checkpoint."""
        trainer = self._trainer
        ranks = state.get("ranks") or []
        if len(ranks) == trainer.parallel.world > 1:
            own = ranks[trainer.parallel.rank]
            state = state | {"streams": own["streams"], "parts": state["parts"] | own["parts"]}
        self._checkpointer.load(state)
        for optimizer in trainer.optimization.optimizers if trainer.fit_loop.global_step else ():
            optimizer._opt_called = True  # before this process: its schedule need not warn
        for loader, place in zip(self._loaders(), state["parts"]["loaders"]):
            if place.get("handed_out") and not (trainer.fit_loop.batch and loader in trainer.source.loaders("train")):
                iter(loader)  # begins anew, where a limit had cut its last iteration short
        streams.restore(state["streams"])
        for optimizer in trainer.optimizers if trainer.global_step else ():
            called(optimizer)  # in an earlier process
        if trainer.run is not None and trainer.run.resumed and "run" in state:
            trainer.run.load_state_dict(state["run"])


class Callbacks:
    """The states of callbacks by their keys."""

    def __init__(self, callbacks: list[Any]) -> None:
        self._callbacks = callbacks

    def _keyed(self) -> list[tuple[str, Any]]:
        keyed, seen = [], dict[str, int]()
        for callback in self._callbacks:
            key = callback.state_key
            seen[key] = seen.get(key, -1) + 1
            keyed.append((f"{key}#{seen[key]}" if seen[key] else key, callback))
        return keyed

    def state_dict(self) -> dict[str, Any]:
        """Return the non-empty states of the callbacks, by their keys."""
        return {key: state for key, callback in self._keyed() if (state := callback.state_dict())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore each callback from its own state."""
        for key, callback in self._keyed():
            if key in state:
                callback.load_state_dict(state[key])


def read(path: Any, map_location: Any = None) -> dict[str, Any]:
    """Read a checkpoint file without running code from it."""
    from ..serialization import load

    state = load(os.fspath(path), map_location=map_location, weights_only=True)
    if not isinstance(state, dict) or "state_dict" not in state:
        raise ValueError(f"{path} is no checkpoint of a trainer: it has no 'state_dict'")
    return state


def newest(directory: Path) -> Path | None:
    """The checkpoint of a directory that was saved last and can be read: `last.ckpt`, or the newest of the others."""
    if not directory.is_dir():
        return None
    files = sorted(
        (p for p in directory.glob("*.ckpt") if p.name != "last.ckpt"), key=lambda p: p.stat().st_mtime_ns, reverse=True
    )
    for path in [directory / "last.ckpt", *files]:
        if path.exists():
            try:
                read(path)
                return path
            except Exception as error:
                warnings.warn(f"{path} cannot be read ({error}); the one before it is taken", UserWarning, stacklevel=4)
    return None


def arguments_for(cls: type, hparams: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The hyper-parameters that a class takes, and those given before them."""
    parameters = inspect.signature(cls).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return {name: value for name, value in hparams.items() if takes_all or name in parameters} | dict(given)
