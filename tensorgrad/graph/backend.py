"""The storage of recorded tensors, which a program makes in place of CPU arrays while it is lowered."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..interpret.symbol import Symbol
from ..interpret.symbol_storage import SymbolStorage
from ..ops.base import OPS
from ..storage.base import Storage
from ..storage.cpu import NumpyStorage
from .functions import Functions, made
from .lines import CannotLower, user_line
from .recorded import Recorded
from .recorder import running
from .recording import argument, run, write
from .steps import Draw
from .symbolic_sizes import NUMBERS, plainly, symbolic


class Draws:
    """A generator whose numbers are drawn at each run of the graph."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __getattr__(self, name: str) -> Any:
        recorder = running()
        generator = self.generator if recorder.reading is not None else SymbolStorage.draws(self.generator)
        symbols = generator is not self.generator

        def bare(a: Any) -> Any:
            return a if type(a) is not Recorded else SymbolStorage.asarray(a.inner) if symbols else a.inner

        def draw(*args: Any, **params: Any) -> Any:
            varies = recorder.sizes is not None and symbolic(
                ([a.shape if type(a) is Recorded else a for a in args], params))
            values = getattr(generator, name)(*map(bare, plainly(args)), **plainly(params))
            values = values if symbols else np.asarray(values)
            infer = partial(drawn, generator, name) if varies else None
            node, = recorder.step(Draw(name), map(argument, args), params, [values], False, infer=infer)
            made = Recorded(values, node, False)
            return recorder.sizes.named(made) if varies else made
        return draw


def drawn(generator: Any, name: str, args: Any, params: Any) -> Any:
    """Return the symbol of random numbers."""
    args = [SymbolStorage.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    return getattr(generator, name)(*args, **params)


class RecordingStorage(Storage):
    """Main memory, while a program is recorded."""

    array_type = Recorded
    module = Functions()
    leads = True
    writes = False
    put = staticmethod(write)
    draws = Draws
    ordered = staticmethod(lambda y, operands: y)       # symbols have the axes in order already

    @classmethod
    def asarray(cls, data: Any, dtype: Any = None) -> Any:
        if type(data) is Recorded:
            return data if dtype is None or data.dtype == dtype else data.astype(dtype)
        if type(data) in NUMBERS:
            return made("full", (), data, dtype=np.asarray(data.value).dtype if dtype is None else dtype)
        return Recorded(np.asarray(data, dtype))

    @classmethod
    def host(cls, array: Any) -> Any:
        return array.read() if type(array) is Recorded else array

    @classmethod
    def seen(cls, array: Any) -> Any:
        return np.empty(0) if type(array.inner) is Symbol else array.inner

    @classmethod
    def native(cls, op: Any) -> Any:
        return carried if op.opname == "to_device" else partial(run, op)

    @classmethod
    def aliases(cls, a: Any, b: Any) -> bool:
        return a is b or a.parent is b


def carried(x: Any, *, source: Any, target: Any) -> Any:
    """Copy an array to another storage: as a step, but not a gradient to a tensor that is not recorded."""
    if source is RecordingStorage and not target.leads and not x.known:
        raise CannotLower("a gradient for a tensor that is no argument of the function", user_line())
    return run(OPS["to_device"], x, source=source, target=target)


RecordingStorage.device = NumpyStorage.device           # replaces it while a program is recorded
