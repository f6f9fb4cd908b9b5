"""Random numbers inside vmap: separate numbers per example, drawn at once with leading batch axes, or common ones for
all.
"""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core.dispatch import fresh
from ..core.mode import mode
from ..interpret.batched import Batched, built
from ..interpret.batching import base_of
from ..storage.cpu import NumpyStorage

REFUSED = ("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
           "randomness flags on vmap or perform the randomness operation out of vmap")
REFUSED_FIRST = ("vmap: We do not yet support calling random operations inside of vmap. Please perform random "
                 "operations outside of vmap as a workaround")
SAME = ("Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
        "functorch")
ALONE = ("vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
         "randomness. If this is necessary for your usage, please file an issue with functorch.")
# the position of the shape among a generator's arguments, if it is not the first
PLACES = {"randint": 2, "bernoulli": 1}
DEPENDENT = {"normal_around", "poisson", "binomial", "standard_gamma", "dirichlet", "multinomial"}


def hidden_axes() -> tuple[int, ...]:
    """Return the batch lengths of random numbers, 1 for levels whose examples share them; () if all levels do."""
    for level in mode.batches:
        if level.randomness == "error":
            raise RuntimeError(REFUSED_FIRST if level.first else REFUSED)
    sizes = tuple(level.size if level.randomness == "different" else 1 for level in mode.batches)
    return sizes if any(level.randomness == "different" for level in mode.batches) else ()


class Draws:
    """A generator for functions inside vmap."""

    def __init__(self, source: Any) -> None:
        self.source, self.hidden = source, hidden_axes()

    def __getattr__(self, name: str) -> Any:
        return partial(self._draw, name)

    def _draw(self, name: str, *args: Any, **params: Any) -> Any:
        draw, hidden = getattr(self.source, name), self.hidden
        if name == "randperm":
            rows = (np.stack([draw(*args, **params) for _ in range(int(np.prod(hidden)))]) if hidden
                    else draw(*args, **params))
            return self._built(rows.reshape(*hidden, *rows.shape[-1:]))
        if name == "multinomial":
            weights, *rest = args
            return self._built(draw(weights.reshape(-1, weights.shape[-1]), *rest).reshape(*weights.shape[:-1], -1))
        if name in DEPENDENT or name == "bernoulli" and args[1] is None:
            return self._built(draw(*args, **params))
        place = PLACES.get(name, 0)
        shape = (*hidden, *args[place])
        if place == 1 and isinstance(args[0], np.ndarray):
            args = (args[0].reshape(*hidden, *(1,) * (len(args[1]) - args[0].ndim + len(hidden)),
                                    *args[0].shape[len(hidden):]), *args[1:])
        return self._built(draw(*args[:place], shape, *args[place + 1:], **params))

    def _built(self, values: Any) -> Any:
        return built(values, len(self.hidden), NumpyStorage)


def probabilities(tensor: Any) -> Any:
    """The values of a tensor that random numbers depend on, with an example for each that is to be drawn."""
    hidden, array = hidden_axes(), tensor.array
    values, own = (array.values, array.hidden) if isinstance(array, Batched) else (array, ())
    own = own + (1,) * (len(mode.batches) - len(own))
    if any(n != 1 and level.randomness == "same" for n, level in zip(own, mode.batches, strict=True)):
        raise RuntimeError(SAME)
    values = base_of(type(tensor._storage)).host(values).reshape(*own[:len(hidden)], *array.shape)
    return np.broadcast_to(values, (*hidden, *array.shape)).copy()


def placed(values: Any, backend: Any) -> Any:
    """A tensor of numbers that were drawn on the host."""
    inner = base_of(backend)
    if not isinstance(values, Batched):
        return fresh(inner.asarray(values), inner)
    array = built(inner.asarray(values.values), values.depth, inner)
    return fresh(array, type(array).storage)


def memory(array: Any) -> tuple[Any, tuple[int, ...]]:
    """Return an array of the layout for which numbers are drawn in place, and the lengths of its hidden axes.

    Different numbers are drawn in the memory order of the whole batch, common numbers for one new example.
    """
    hidden, values = hidden_axes(), getattr(array, "values", array)
    whole = (*hidden, *array.shape)
    return values if hidden and values.shape == whole else np.empty(whole, array.dtype), hidden


def examples(values: Any, hidden: tuple[int, ...]) -> Any:
    """Return drawn numbers, whose first axes are these, as a batch."""
    return built(values, len(hidden), NumpyStorage)


def check_in_place(tensor: Any) -> None:
    """Raise RuntimeError if examples would get different numbers, but share the tensor's memory."""
    if len(hidden_axes()) > type(tensor._storage).rank:
        raise RuntimeError(ALONE)
