"""Settings of all pipes of a graph: shares of workers, shuffling, seeds."""
from __future__ import annotations

import inspect
import warnings
from typing import Any

from ... import api as tg
from .datapipes.iter import Shuffler
from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import traverse_dps

__all__ = ['apply_random_seed', 'apply_sharding', 'apply_shuffle_seed', 'apply_shuffle_settings',
           'get_all_graph_pipes']


def get_all_graph_pipes(graph: dict[int, Any]) -> list[Any]:
    """Return each pipe of a graph once."""
    found: dict[int, Any] = {}
    waiting = [graph]
    for level in waiting:
        for key, (pipe, held) in level.items():
            if key not in found:
                found[key] = pipe
                waiting.append(held)
    return list(found.values())


def _is_sharding(pipe: Any) -> bool:
    return isinstance(pipe, _ShardingIterDataPipe) or inspect.ismethod(getattr(pipe, 'apply_sharding', None))


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int,
                   sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT) -> Any:
    """Set the share of the pipes that divide samples. RuntimeError if one of them follows another."""
    def visit(graph: dict[int, Any], before: Any) -> None:
        for pipe, held in graph.values():
            shares = _is_sharding(pipe)
            if shares and before is not None:
                raise RuntimeError('Sharding twice on a single pipeline is likely unintended and will cause data loss. '
                                   f'Sharding already applied to {before} while trying to apply to {pipe}')
            if shares:
                arguments = num_of_instances, instance_id
                takes = len(inspect.signature(pipe.apply_sharding).parameters)
                pipe.apply_sharding(*arguments, *([sharding_group] if takes >= 3 else []))
            visit(held, pipe if shares else before)
    visit(traverse_dps(datapipe), None)
    return datapipe


def _is_shuffle_datapipe(pipe: Any) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in ('set_shuffle', 'set_seed'))


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turn the shuffling of a graph on or off; None leaves it. A pipe that shuffles is added if there is none."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffle_datapipe(pipe)]
    if not shufflers and shuffle:
        warnings.warn('`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. '
                      'Be aware that the default buffer size might not be sufficient for your task.', stacklevel=2)
        datapipe = Shuffler(datapipe)
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """Do what `apply_random_seed` does, by an older name."""
    warnings.warn('`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases.\nPlease '
                  'use `apply_random_seed` instead.', FutureWarning, stacklevel=2)
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Give each pipe that draws random numbers a seed from a generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if inspect.ismethod(getattr(pipe, 'set_seed', None)):
            pipe.set_seed(int(tg.empty(1, dtype=tg.int64).random_(generator=rng).item()))
    return datapipe
