"""Pipes in another order."""
from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from typing import Any

from ...sampler import Sampler, SequentialSampler, draw_seed
from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ['SamplerIterDataPipe', 'ShufflerIterDataPipe']


class SamplerIterDataPipe(IterDataPipe):
    """The indices, or samples, that a sampler of a pipe yields."""

    def __init__(self, datapipe: Any, sampler: type[Sampler] = SequentialSampler, sampler_args: tuple | None = None,
                 sampler_kwargs: dict[str, Any] | None = None) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError('Sampler class requires input datapipe implemented `__len__`')
        self.datapipe, self.sampler_args = datapipe, sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), 'data_source': datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return self._length(self.sampler)


@functional_datapipe('shuffle')
class ShufflerIterDataPipe(IterDataPipe):
    """Samples in a random order, each drawn from a buffer of ``buffer_size``.

    ``set_seed`` fixes the next order; else the global generator does. A loader's ``shuffle`` turns it on and off.
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError('buffer_size should be larger than 0')
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._enabled, self._seed = buffer_size, True, None
        self._rng, self._buffer = random.Random(), []

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Turn the shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Fix the order of the next iteration."""
        self._seed = seed
        return self

    def reset(self) -> None:
        self._buffer = []
        if self._enabled:
            self._rng.seed(draw_seed() if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer: list[Any] = self._buffer
        for sample in self.datapipe:
            if len(buffer) == self.buffer_size:
                place = self._rng.randint(0, len(buffer) - 1)
                drawn, buffer[place] = buffer[place], sample
                yield drawn
            else:
                buffer.append(sample)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return self._length(self.datapipe)
