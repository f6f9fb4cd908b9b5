"""The base of all storage backends, and `xp`, the op table for a backend's arrays."""
from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, ClassVar

import numpy as np

from ..device import KINDS, defaults, get_default_device
from ..device import device as Device
from ..dtype import holds_complex

clock = count(1)  # the one clock: it dates tape nodes and in-place writes
RECALLED = 8      # the number of latest writes whose dates a storage keeps, for its error messages


class Namespace:
    """`xp`: the op table for one backend: the functions of its module, and every op that the module lacks.

    This module must not import the op table, which registers a `finder(backend, name)`: it returns an op's function on
    arrays, or None.
    """

    finders: ClassVar[list[Callable[[type[Storage], str], Any]]] = []

    @classmethod
    def register(cls, finder: Callable[[type[Storage], str], Any]) -> Callable[[type[Storage], str], Any]:
        """Search `finder`, too, for names that a backend's module lacks. Usable as a decorator."""
        cls.finders.append(finder)
        return finder

    def __init__(self, backend: type[Storage]) -> None:
        self.backend = backend

    @staticmethod
    def constant(array: Any) -> Any:
        """Return an array that is no input, as an operand: itself, unless operands are Tensors."""
        return array

    def __getattr__(self, name: str) -> Any:
        backend = self.backend
        found = getattr(backend.module, name, None)
        if found is None:
            found = partial(made_on_host, backend, name) if name in MAKERS else self._found(name)
        if name in FILLERS:
            found = by_cast(backend, found)
        elif name in ("zeros", "empty") and backend.held.__func__ is not Storage.held.__func__:  # type: ignore[attr-defined]
            found = as_held(backend, found)
        setattr(self, name, found)
        return found

    def _found(self, name: str) -> Any:
        """The op `name` as a function on this backend's arrays."""
        for finder in self.finders:
            if (found := finder(self.backend, name)) is not None:
                return found
        raise AttributeError(f"the op table has no {name!r}, and neither has {self.backend.__name__}'s module")


FILLERS = {"ones", "full", "arange", "eye", "ones_like", "full_like"}
MAKERS = {"zeros", "zeros_like", *FILLERS}
VOID = np.dtypes.VoidDType          # the class of dtypes that NumPy does not compute with: bfloat16, float8, …


TWO_SIDED = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def attach_operators(cls: type, run: Any) -> None:
    """Python's operators on a class of arrays: `run(operator, operands, self)` computes them."""
    def attach(name: str, function: Any) -> None:
        def method(self: Any, *others: Any) -> Any:
            return run(function, (self, *others), self)

        def reflected(self: Any, other: Any) -> Any:
            return run(function, (other, self), self)
        setattr(cls, f"__{name}__", method)
        if name in TWO_SIDED:
            setattr(cls, f"__r{name}__", reflected)
    for name in [*TWO_SIDED, *"lt le eq ne gt ge neg pos abs invert".split()]:
        attach(name, getattr(operator, f"__{name}__"))


def made_on_host(backend: type[Storage], name: str, *args: Any, dtype: Any = None) -> Any:
    """Make a new array for a backend whose module has no function for it, by way of a host array."""
    if name.endswith("_like"):
        like, *args = args      # type: ignore[assignment]
        name, args, dtype = name.removesuffix("_like"), (like.shape, *args), dtype or like.dtype
    return backend.asarray(getattr(np, name)(*args, dtype=dtype))


def by_cast(backend: type[Storage], function: Any) -> Any:
    """Extend a function that fills arrays to dtypes that NumPy lacks: fill float32 or complex64, and cast."""
    def make(*args: Any, dtype: Any = None, **params: Any) -> Any:
        wanted = getattr(args[0], "dtype", None) if dtype is None else dtype
        if type(wanted) is VOID:
            wide = np.complex64 if holds_complex(wanted) else np.float32
            return backend.cast(function(*args, dtype=wide, **params), wanted)
        return function(*args, dtype=dtype, **params)
    return make


def as_held(backend: type[Storage], function: Any) -> Any:
    """Return a function that makes arrays, extended to dtypes of dtype.py, for which the backend may have others."""
    def make(*args: Any, dtype: Any = None, **params: Any) -> Any:
        return function(*args, dtype=None if dtype is None else backend.held(dtype), **params)
    return make


class NoValues(NotImplementedError):
    """The error of code that needs values of arrays that only have shapes. PyTorch's is a NotImplementedError, too.

    >>> from tensorgrad.interpret.symbol_storage import NoValues, Symbol
    >>> try:
    ...     bool(Symbol((), "float32"))
    ... except NoValues as error:
    ...     print(error)
    bool() needs values, and there are only shapes here
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs values, and there are only shapes here")


class Block:
    """The state that storages of one memory share: the clock of the last write through any of them, and `fixed`.

    `x.data` has a version counter of its own, so autograd sees no writes through it. Who keeps values that were
    computed from the memory must see them.
    """

    __slots__ = ("written", "fixed")

    def __init__(self, written: int, fixed: bool) -> None:
        self.written, self.fixed = written, fixed


class Storage:
    """A memory block on one device, shared by its views. Its class is the backend, and the dispatch key.

    A new backend is a subclass that sets `device` and defines `array_type`, `asarray` and `host`; the class statement
    registers it, and raises TypeError if one is missing. `module` is a NumPy-like module of functions on its arrays, or
    None: then every op used on the device needs a registered kernel.
    """

    device: ClassVar[Any] = None        # the device its tensors live on
    module: ClassVar[Any] = None        # functions on arrays under NumPy's names
    array_type: ClassVar[Any] = None    # the class of the arrays
    row_major: ClassVar[Any] = None     # makes an array contiguous, where arrays have strides
    column_major: ClassVar[Any] = None  # makes the matrices of an array contiguous column by column
    # puts the axes of a result in the order of its operands', where arrays have strides
    ordered: ClassVar[Any] = None
    # makes a function run with the right device current, where there is such a thing
    guard: ClassVar[Any] = None
    piece: ClassVar[int] = 0            # the best number of elements per block of an in-place write; 0: all at once
    # True if formulas with in-place writes may run on the arrays, see kernels/arrays.py
    writes: ClassVar[bool] = True
    lands: ClassVar[bool] = False       # True if kernels support `mode.landing`
    rank: ClassVar[int] = 0             # the number of hidden axes, one per level of vmap
    leads: ClassVar[bool] = False       # True if operands of other backends are converted, while a model is traced
    hollow: ClassVar[bool] = False      # True if arrays have a shape and a dtype, but no values
    label: ClassVar[str] = "tensor"     # the name of the tensors' kind, as it is printed
    draws: ClassVar[Any] = None         # a function that replaces the generator of random numbers
    xp: ClassVar[Any] = None
    nowhere: ClassVar[Any] = None       # a storage for tape steps whose memory is not needed any more
    by_device: ClassVar[dict[str, type[Storage]]] = {}
    # {class of arrays that are not dense blocks: function of the dense storage class that returns their storage class}
    layouts: ClassVar[dict[type, Callable[[Any], type[Storage]]]] = {}
    dense: ClassVar[Any] = None         # for a sparse layout: the storage class of its values
    # for devices whose storage class is made on first use
    makers: ClassVar[dict[str, Callable[[int], type[Storage]]]] = {}

    written = 0       # clock of the last write in place
    crossed: Any = None     # for a batch inside vmap: how to get back to the tensor that it was made of
    rebased = 0       # clock of the last write in place that autograd recorded
    replaced = 0      # clock of when a tensor's memory was replaced by this
    version = 0       # number of writes in place
    dates: tuple[int, ...] = ()  # clocks of the latest of them
    inference = False  # made in inference mode
    watched = False   # has views that must notice every write, recorded or not
    memory: Any = None  # the array that spans the block, known once a second tensor shares it
    shared: Any = None  # the block of memory that other processes see, too
    fixed = False     # True if others own the memory, too: a NumPy array, or a buffer
    block: Any = None   # the Block of memory that other storages write to, too
    lazy: Any = None    # while a lazy copy shares the memory: the Side of core/lazy_copies.py

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("device") is not None:
            cls._check_complete()
        cls.xp, cls.nowhere = Namespace(cls), cls()
        if isinstance(cls.__dict__.get("device"), str):
            KINDS.add(cls.device.partition(":")[0])
            cls.device = Device(cls.device)
        if "device" in cls.__dict__:
            Storage.by_device[str(cls.device)] = cls

    @classmethod
    def _check_complete(cls) -> None:
        """Raise TypeError for a storage class that has a device but not the methods it needs."""
        said = {name for home in cls.__mro__[:cls.__mro__.index(Storage)] for name in vars(home)}
        if missing := [name for name in ("array_type", "asarray", "host") if name not in said]:
            raise TypeError(f"{cls.__name__} cannot be the storage of the device {str(cls.device)!r}: it does not "
                            f"define {', '.join(missing)}")

    @classmethod
    def beside(cls) -> type[Storage]:
        """Return the storage class of plain tensors on the same device."""
        return cls

    @staticmethod
    def assign(array: Any, values: Any) -> None:
        array[...] = values

    def wrote(self) -> None:
        """Date a write in place."""
        self.written = next(clock)
        self.version += 1
        self.dates = (*self.dates[1 - RECALLED:], self.written)
        if self.block is not None:
            self.block.written = self.written
        if self.watched:
            self.rebased = self.written

    def another(self) -> Storage:
        """Return another storage of the memory, whose version counter is its own."""
        other = type(self)()
        other.memory = self.memory
        if self.block is None:
            self.block = Block(self.written, self.fixed)
        other.block = self.block
        if self.lazy is not None:
            self.lazy.join(other)
        return other

    def hand_out(self) -> None:
        """Note that a NumPy array shares the memory from now on, so that writes to it may go unseen."""
        if self.lazy is not None:
            self.lazy.part()
        self.fixed = True
        if self.block is not None and not self.block.fixed:
            self.block.fixed, self.block.written = True, next(clock)

    def version_at(self, time: int) -> int | None:
        """The version that a step made at `time` saw, if that was not too many writes ago."""
        later = sum(date > time for date in self.dates)
        return None if later == RECALLED else self.version - later

    @classmethod
    def held(cls, dtype: Any) -> Any:
        """Return the backend's dtype of arrays for a dtype of dtype.py: for bfloat16 on CUDA, that of ml_dtypes."""
        return dtype

    @classmethod
    def cast(cls, array: Any, dtype: Any) -> Any:
        """The array in a dtype: itself if it has it."""
        return array.astype(cls.held(dtype), copy=False)

    # ── methods that a backend defines ────────────────────────────────────────────────────────────────────────────

    @classmethod
    def asarray(cls, data: Any, dtype: Any = None) -> Any:
        """Return an array of this backend from a host array, a number, or one of its own arrays (shared where
        possible).
        """
        raise NotImplementedError(f"{cls.__name__} does not say how its arrays are made: define asarray")

    @classmethod
    def host(cls, array: Any) -> np.ndarray[Any, Any]:
        """Return the values as a NumPy array, a view if the memory is the host's."""
        raise NotImplementedError(f"{cls.__name__} does not say how its arrays are read: define host")

    @classmethod
    def one(cls, array: Any) -> np.ndarray[Any, Any]:
        """Return the only element as a NumPy array."""
        return cls.host(array)

    @classmethod
    def judge(cls) -> Any:
        """Return the `xp` for checks of values, whose `any` and `all` give an answer; None if arrays have no values."""
        return None if cls.hollow else cls.xp

    @classmethod
    def seen(cls, array: Any) -> np.ndarray[Any, Any]:
        """Return the known values of an array, for error messages."""
        return cls.host(array)

    @classmethod
    def native(cls, op: Any) -> Any:
        """The module's own function for an op that is nothing more than that, or None."""
        return getattr(cls.module, op.opname, None) if op.native else None

    @classmethod
    def home(cls, array: Any) -> type[Storage]:
        """Return the storage class of an array, of any layout, on this class's device."""
        found = cls.layouts.get(type(array))
        return (cls.dense or cls) if found is None else found(cls.dense or cls)

    @classmethod
    def aliases(cls, a: Any, b: Any) -> bool:
        """Return True if array `a`, just made from `b`, is a view of its memory."""
        base = a.base
        return a is b or (base is not None and (base is b or base is b.base))


def backend_of(spec: Any) -> type[Storage]:
    """The storage class of a device: 'cpu', 'cuda:1', a device object, or None for the default device."""
    device = get_default_device() if spec is None else \
        spec if isinstance(spec, Device) else Device(spec)
    found = Storage.by_device.get(device._text)
    if found is None and device.type == "cuda":
        index = defaults.current_cuda if device.index is None else device.index
        return Storage.by_device.get(f"cuda:{index}") or Storage.makers["cuda"](index)
    if found is None and device.type == "meta":
        return Storage.makers["meta"](0)
    if found is None:
        found = Storage.by_device.get(device.type) if device.index in (None, 0) or device.type == "cpu" else None
    if found is None and device.type in ("xpu", "mtia"):
        raise AssertionError(f"Torch not compiled with {device.type.upper()} enabled")
    if found is None and device.type not in KINDS:
        raise RuntimeError(f"PyTorch is not linked with support for {device.type} devices")
    if found is None:
        raise RuntimeError(f"no storage backend is registered for the device {device}: "
                           f"known are {', '.join(sorted(Storage.by_device))}")
    return found


# ── a backend in the place of others ──────────────────────────────────────────────────────────────────────────────────

lock = threading.RLock()


class Backends(dict[str, Any]):
    """A table of backends that returns `stand_in` for some kinds of device, in the thread that asked for it."""

    def __init__(self, backends: Any, stand_in: type[Storage], kinds: tuple[str, ...]) -> None:
        super().__init__(backends)
        self.before, self.thread, self.stand_in, self.kinds = backends, threading.get_ident(), stand_in, kinds

    def get(self, name: str, default: Any = None) -> Any:
        return (self.stand_in if name.partition(":")[0] in self.kinds and threading.get_ident() == self.thread
                else super().get(name, default))


@contextmanager
def standing_in(backend: type[Storage], *kinds: str, table: type[Backends] = Backends) -> Iterator[None]:
    """Let `backend` make this thread's tensors of some kinds of device, in a `with` block; one thread at a time.

    table: the class that looks up backends
    """
    with lock:
        before = Storage.by_device
        Storage.by_device = table(before, backend, kinds)
        try:
            yield
        finally:
            before.update(Storage.by_device)             # keep registrations of the block
            Storage.by_device = before
