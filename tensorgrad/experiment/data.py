"""Where a trainer's batches come from: loaders and how much of them is used."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import api as tg
from ..utils.data import DataLoader, DistributedSampler, IterableDataset, RandomSampler, SequentialSampler
from .datamodule import DataModule, Loaders
from .hooks import DataHooks, overrides

__all__ = ["Source", "batches_of", "transfer"]

METHODS = {
    "train": "train_dataloader",
    "val": "val_dataloader",
    "test": "test_dataloader",
    "predict": "predict_dataloader",
}


class Source:
    """The loaders of a run: those that are given, or else the data module's, or else the module's own."""

    def __init__(self, trainer: Any, module: Any, datamodule: DataModule | None, **given: Any) -> None:
        self._trainer, self._owners, self._given = trainer, [datamodule, module], given
        self._made: dict[str, list[Any]] = {}

    def loaders(self, kind: str) -> list[Any]:
        """The loaders of a kind: "train", "val", "test" or "predict"; none if there are none."""
        if kind not in self._made:
            overfit = self._trainer.overfit_batches
            found = self._found("train" if kind == "val" and overfit and self._found("val") is not None else kind)
            several = kind != "train" and isinstance(found, (list, tuple)) and not (found and _is_batch(found[0]))
            loaders = list(found) if several else [] if found is None else [found]  # type: ignore[arg-type]
            for loader in loaders:
                if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
                    raise TypeError(f"{METHODS[kind]}: {type(loader).__name__} cannot be iterated over for batches")
            self._made[kind] = [self._shared_out(loader, kind == "train") for loader in loaders]
        return self._made[kind]

    def _found(self, kind: str) -> Any:
        if self._given.get(kind) is not None:
            return self._given[kind]
        for owner in self._owners:
            if owner is not None and overrides(owner, METHODS[kind], Loaders):
                return getattr(owner, METHODS[kind])()
        return None

    def _shared_out(self, loader: Any, training: bool) -> Any:
        """Give a plain DataLoader a sampler for this process if there are several; no shuffling if batches are to be
        overfitted."""
        if (
            not isinstance(loader, DataLoader)
            or isinstance(loader.dataset, IterableDataset)
            or loader.batch_size is None
        ):
            return loader
        if not isinstance(loader.sampler, (RandomSampler, SequentialSampler)):
            return loader
        parallel, trainer = self._trainer.parallel, self._trainer
        shuffle = isinstance(loader.sampler, RandomSampler) and not trainer.overfit_batches
        if parallel.world > 1 and trainer.use_distributed_sampler:
            return _rebuilt(loader, DistributedSampler(loader.dataset, parallel.world, parallel.rank, shuffle=shuffle))
        if trainer.overfit_batches and isinstance(loader.sampler, RandomSampler):
            return _rebuilt(loader, SequentialSampler(loader.dataset))
        return loader


def _is_batch(value: Any) -> bool:
    """Return True if an element of a list is a batch rather than a loader."""
    if isinstance(value, list):
        return bool(value) and _is_batch(value[0]) and not isinstance(value[0], (list, tuple, dict))
    return isinstance(value, (tg.Tensor, dict, tuple, str, float, int)) or hasattr(value, "__array__")


def _rebuilt(loader: Any, sampler: Any) -> Any:
    """Return a copy of a loader with this sampler."""
    return DataLoader(
        loader.dataset,
        loader.batch_size,
        sampler=sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        drop_last=loader.drop_last,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor if loader.num_workers else None,
        persistent_workers=loader.persistent_workers,
        in_order=loader.in_order,
    )


def length(loader: Any) -> float:
    """Return the number of batches of a loader; infinity if it has no length."""
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return math.inf


def batches_of(loader: Any, limit: int | float, name: str) -> float:
    """Return how many batches of a loader are used: `limit` batches if it is an int, that fraction if it is a float."""
    count = length(loader)
    if isinstance(limit, int):
        return min(limit, count)
    if limit in (0.0, 1.0):
        return count * limit if limit else 0
    if count == math.inf:
        raise ValueError(f"Trainer({name}={limit}): a part of a loader that has no length; give a number of batches")
    if count and not int(count * limit):
        raise ValueError(
            f"Trainer({name}={limit}): {limit} of {count} batches is none; it takes at least {1 / count:.3g}"
        )
    return int(count * limit)


def new_epoch(loader: Any, epoch: int) -> None:
    """Call `set_epoch(epoch)` of those samplers of a loader that have it."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    for one in {
        id(one): one
        for one in (loader, getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None))
    }.values():
        if callable(getattr(one, "set_epoch", None)):
            one.set_epoch(epoch)


def transfer(trainer: Any, module: Any, datamodule: Any) -> Callable[[Any, int], Any] | None:
    """Return a function that moves a batch to the device and calls the transfer hooks; None if there is nothing to
    do.
    """

    def owner(name: str) -> Any:
        return next((one for one in (datamodule, module) if one is not None and overrides(one, name, DataHooks)), None)

    before, move, after = (
        owner(name) for name in ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")
    )
    device, precision = trainer.device, trainer.precision_plugin
    moves = move is not None or device.type != "cpu"
    if before is after is None and not moves and precision.name != "64":
        return None

    def transferred(batch: Any, dataloader_idx: int) -> Any:
        if before is not None:
            batch = before.on_before_batch_transfer(batch, dataloader_idx)
        if moves:
            batch = (move or module).transfer_batch_to_device(batch, device, dataloader_idx)
        batch = precision.batch(batch)
        return batch if after is None else after.on_after_batch_transfer(batch, dataloader_idx)

    return transferred
