"""Restore the place of an iteration in a pipe that was loaded from a file."""
from __future__ import annotations

from typing import Any

from ...graph_settings import apply_random_seed
from .._hook_iterator import _SnapshotState
from ..datapipe import IterDataPipe


def _simple_graph_snapshot_restoration(datapipe: IterDataPipe, n_iterations: int, rng: Any = None) -> None:
    """Let the next iterator of a pipe go on behind its first samples, which are drawn again and dropped.

    rng: the generator, in the state in which the iteration began, that seeds the pipes that shuffle. A pickled pipe has
    the number of its samples so far as ``_number_of_samples_yielded``. RuntimeError if the pipe is restored already, or
    has fewer samples.

    >>> from tensorgrad.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(5)).map(abs)
    >>> _simple_graph_snapshot_restoration(pipe, 3)
    >>> list(pipe), list(pipe)
    ([3, 4], [0, 1, 2, 3, 4])
    """
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError('Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph '
                           'if your graph has not been restored.')
    apply_random_seed(datapipe, rng)
    samples = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(samples)
        except StopIteration:
            raise RuntimeError(f'Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples '
                               'available.') from None
    datapipe._fast_forward_iterator, datapipe._snapshot_state = samples, _SnapshotState.Restored
