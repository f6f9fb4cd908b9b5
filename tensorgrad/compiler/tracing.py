"""Trace a program for compilation: its graph, or the reason why it must run eagerly.

The program's Python runs once more than the caller asked for. So its effects must not be seen: what it prints, opens or
asks the system for ends the trace before it happens, and what it changes in reachable objects is changed back.
"""
from __future__ import annotations

import linecache
import sys
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from ..core.mode import mode
from ..core.tape import TensorBase
from ..device import device as Device
from ..dtype import dtype as Dtype
from ..graph.lines import CannotLower, ReadsValues, ours, user_line
from ..graph.lowered import Lowered
from ..graph.lowering import Sizes, Symbols, lower
from ..graph.recorder import here
from ..graph.steps import Draw
from ..messages.warn_once import WARNED
from ..nn.modules.module import Module
from ..nn.parameter import is_lazy
from ..storage.base import NoValues
from ..storage.cpu import NumpyStorage
from ..utils._pytree import tree_flatten, tree_unflatten
from .signature import twins
from .state import Reason, Stopped, state
from .surroundings import Surroundings

PLAIN_LEAVES = (int, float, complex, bool, str, bytes, type(None), Dtype, Device)
WARN = warnings.warn
QUIET = frozenset({"fspath", "get_ident", "allocate_lock", "RLock"})      # functions of OUTSIDE without effects
LOCKING = frozenset({"__enter__", "__exit__", "acquire", "release", "locked"})       # of locks: cached properties do
ASKING = frozenset({"print", "input", "open", "breakpoint"})         # of the builtin functions
STANDARD = linecache.__file__.removesuffix("linecache.py")               # the folder of Python's own modules
READERS = (linecache.__file__, tokenize.__file__)        # read the lines of programs, for the texts of errors
OUTSIDE = frozenset({"_io", "io", "posix", "nt", "time", "_socket", "_random", "random", "_posixsubprocess", "mmap",
                     "_datetime", "datetime", "_thread", "select", "_queue", "_sqlite3", "_signal"})


class Trace:
    """A trace. `graph` is None if `reason` says why there is none.

    `slots` describe the leaves of the result, nested as `spec`: ("made", i) for output i of the graph, ("given", i)
    for tensor i of the inputs, ("held", value) for anything else. `strides` are those of the outputs, in bytes.
    """

    def __init__(self, program: Any, surroundings: Surroundings) -> None:
        self.program, self.surroundings, self.tensors = program, surroundings, surroundings.tensors
        self.graph: Lowered | None = None
        self.reason: Reason | None = None
        self.slots: list[tuple[str, Any]] = []
        self.spec: Any = None
        self.strides: list[tuple[int, ...]] = []
        self.changed: set[tuple[int, str]] = set()          # (number of a place, name): what the program itself changes
        self.words: set[str] = set()                        # names and texts in the code that ran
        self.twins: tuple[int, ...] = ()                    # of the inputs, see `signature.twins`
        self.grad = False               # the gradient mode that the program sees
        self._codes: dict[CodeType, bool] = {}
        self.__wrapped__ = program.forward if isinstance(program, Module) else program

    # ── the run, inside of `lower` ────────────────────────────────────────────────────────────────────────────────────

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs, given = self._as_given(args, kwargs)
        states, warned = self._random_states(), set(WARNED)
        try:
            with self._watched():
                result = self.program(*args, **kwargs)
        except Stopped:
            WARNED.intersection_update(warned)
            raise
        finally:
            self._undo(states)
        for tensor in given:
            if tensor.array.memory.written:
                raise Stopped(Reason("writes to an input in place"))
        if self.surroundings.generators and any(type(node.target) is Draw for node in here.recorder.graph.nodes):
            raise Stopped(Reason("draws from a generator of its own"))
        return self._results(result, given)

    def _as_given(self, args: Any, kwargs: Any) -> tuple[Any, Any, list[Any]]:
        """Return the arguments, with one object where the caller gave one, and the tensors among them."""
        leaves, spec = tree_flatten((args, kwargs))
        given = [leaf for leaf in leaves if isinstance(leaf, TensorBase)]
        if self.twins != tuple(range(len(given))):
            given = [given[first] for first in self.twins]
            left = iter(given)
            args, kwargs = tree_unflatten([next(left) if isinstance(x, TensorBase) else x for x in leaves], spec)
        return args, kwargs, given

    def _undo(self, states: Any) -> None:
        """Undo what the program changed, and note it."""
        for number, place in enumerate(self.surroundings.places):
            for name in place.changes():
                self.changed.add((number, name))
        if self.changed:
            self.surroundings.restore()
        if states != self._random_states():
            if states[0] is not None:
                sys.modules["random"].setstate(states[0])
            if states[1] is not None:
                sys.modules["numpy.random"].set_state(dict(states[1]))
            self.reason = Reason("draws random numbers from Python or NumPy")

    def _random_states(self) -> tuple[Any, Any]:
        """Return the states of Python's and NumPy's global generators; None for those not imported yet."""
        python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
        return (None if python is None else python.getstate(), None if numpy is None else tuple(
            (key, _comparable(value)) for key, value in numpy.get_state(legacy=False).items()))

    def _results(self, result: Any, given: list[Any]) -> tuple[Any, ...]:
        """Describe the result, and return the tensors that the graph must compute."""
        leaves, self.spec = tree_flatten(result)
        made: list[Any] = []
        places = {id(tensor): i for i, tensor in enumerate(given)}
        held = {id(tensor) for tensor in self.tensors.values()}
        memories = {id(t.array.memory) for t in (*given, *self.tensors.values()) if hasattr(t.array, "memory")}
        for leaf in leaves:
            if id(leaf) in places:
                self.slots.append(("given", places[id(leaf)]))
            elif id(leaf) in held or isinstance(leaf, PLAIN_LEAVES):
                self.slots.append(("held", leaf))
            elif not isinstance(leaf, TensorBase):
                raise Stopped(Reason(f"returns an object of class {type(leaf).__name__}"))
            elif not hasattr(leaf.array, "memory"):
                raise Stopped(Reason("returns a tensor that does not depend on the inputs"))
            elif id(leaf.array.memory) in memories or leaf.array.memory.name is not None:
                raise Stopped(Reason("returns a view of an input, a parameter or a buffer"))
            else:
                places_made = [i for i, other in enumerate(made) if other is leaf]
                if not places_made:
                    places_made = [len(made)]
                    made.append(leaf)
                    self.strides.append(tuple(leaf.array.strides))
                self.slots.append(("made", places_made[0]))
        return tuple(made)

    # ── watching Python ───────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Watch the calls of this thread, under the caller's gradient mode."""
        before, grad = sys.getprofile(), mode.grad
        mode.set_grad(self.grad)
        here.recorder.watcher = watcher = self._event
        sys.setprofile(watcher)
        try:
            yield
        finally:
            here.recorder.watcher = None
            _profile_again(before)
            mode.set_grad(grad)

    def _event(self, frame: Any, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in self._codes:
                self._entered(frame, code)
        elif event == "c_call" and (arg is WARN or not self._codes.get(frame.f_code, True)):
            self._called(arg)

    def _entered(self, frame: Any, code: CodeType) -> None:
        """Note the names that code reads, and the globals of functions that were not found yet."""
        file = code.co_filename
        own = ours.get(file)
        if own is None:
            own = ours[file] = file.startswith(_own())
        self._codes[code] = own or file in READERS
        if here.recorder.sizes is not None and not self._codes[code] and _asks_types(code):
            raise Stopped(Reason("may ask a size for its type", user_line()))
        self.words.update(code.co_names)
        self.words.update(text for text in code.co_consts if type(text) is str)

    def _called(self, function: Any) -> None:
        """End the trace at a function with effects, or whose result is another one the next time."""
        if function is WARN:
            raise Stopped(Reason("gives a warning", user_line(), breaks=True))
        owner = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        module = function.__module__ or type(owner).__module__
        outside = module in OUTSIDE and name not in QUIET and (module != "_thread" or name not in LOCKING)
        if outside or module == "builtins" and name in ASKING:
            raise Stopped(Reason(f"calls {name if module == 'builtins' else f'{module}.{name}'}", user_line(),
                                 breaks=True))


def _asks_types(code: CodeType) -> bool:
    """Return True if code of the program, or of a package, calls `type`: a symbolic size is no `int` for it."""
    if "type" not in code.co_names or code.co_filename.startswith(STANDARD) and "-packages" not in code.co_filename:
        return False
    import dis
    return any(step.argval == "type" and step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
               for step in dis.get_instructions(code))


def _profile_again(function: Any) -> None:
    """Set back what `sys.getprofile` returned: a function, None, or an object of cProfile, which is switched on."""
    if function is None or callable(function):
        sys.setprofile(function)
    else:
        sys.setprofile(None)
        function.enable()


def _own() -> tuple[str, ...]:
    from ..graph.lines import OWN
    return OWN


def _comparable(value: Any) -> Any:
    return {key: part.tolist() if hasattr(part, "tolist") else part for key, part in value.items()} \
        if isinstance(value, dict) else value


def trace(program: Any, args: Any, kwargs: Any, objects: Any = (), sizes: Sizes | None = None,
          symbols: Symbols | None = None) -> Trace:
    """Trace a program for arguments like these, among them `objects` that are no tensors.

    Errors of the program itself are reasons: the eager run raises them.
    """
    found = Trace(program, Surroundings(program, objects))
    odd = next((name for name, t in found.tensors.items() if type(t._storage) is not NumpyStorage or is_lazy(t)), None)
    if odd is not None:
        found.reason = Reason(f"uses {odd}, which is not a dense tensor in main memory")
        return found
    leaves = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, TensorBase)]
    found.twins = twins(leaves)
    found.grad = mode.grad and not any(tensor.requires_grad for tensor in (*leaves, *found.tensors.values()))
    before, state.trace = state.trace, found
    try:
        graph = lower(found, args, kwargs, sizes=sizes, symbols=symbols)
    except Stopped as error:
        found.reason = error.reason
    except ReadsValues as error:
        found.reason = Reason(error.what, error.source, breaks=True)
    except CannotLower as error:
        found.reason = Reason(error.what, error.source, breaks=True)
    except NoValues as error:
        found.reason = Reason(str(error), breaks=True)
    except Exception as error:
        found.reason = Reason(f"raises {type(error).__name__} while it is traced: {str(error).partition(chr(10))[0]}")
    else:
        if found.reason is None:
            found.reason = _effects(found, graph)
        if found.reason is None:
            found.graph = graph
    finally:
        state.trace = before
    return found


def _effects(found: Trace, graph: Lowered) -> Reason | None:
    """Return the reason if a program does more than its graph."""
    if graph.written:
        return Reason(f"writes to {', '.join(graph.written)} in place")
    if found.changed:
        number, name = min(found.changed)
        title = found.surroundings.places[number].title
        return Reason(f"changes {'.'.join(part for part in (title, name) if part) or 'a list'}")
    return None
