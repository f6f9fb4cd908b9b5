"""PyTorch's CPU random numbers, bit for bit. https://docs.pytorch.org → torch.Generator

The engine is NumPy's MT19937. Each method takes from it exactly the words that PyTorch takes, so `manual_seed(s)` gives
PyTorch's initial weights, shuffles and dropout masks. The reference is PyTorch on an x86 processor with AVX2; elsewhere
PyTorch itself rounds some last bits otherwise.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import closing
from typing import Any, Self

import numpy as np

from ..device import device as Device
from ..dtype import holds_complex, letter
from ..runtime.native import native
from ..runtime.numpy_state import computing
from ..runtime.small_floats import combine, convert, converted, wide
from . import variates as streams
from .variates import BLOCK, TYPES, Array, as_shape, cast, fill, libm

DEFAULT_SEED = 67280421310721
LEAST = 1   # numbers from which on compiled code is faster
MANY = 1 << 11  # words of 64 bits from which on NumPy's call for them is faster
AHEAD = 1024  # uniforms drawn ahead for the samplers that reject
# Constants as arrays, which combine with others faster than numbers do
BITS_24, BITS_53 = np.array((1 << 24) - 1, np.uint64), np.array((1 << 53) - 1, np.uint64)
UNIT_24, UNIT_53 = np.array(2.0 ** -24, np.float32), np.array(2.0 ** -53)
WORD = np.array(32, np.uint64)

# PyTorch's layout of the state: 5,056 bytes. The normal that is held back is `normal_y`.
STATE = np.dtype([("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("words", "<u8", 624),
                  ("normal_x", "<f8"), ("normal_y", "<f8"), ("normal_rho", "<f8"), ("has_normal", "<i8"),
                  ("float_normal", "<f4"), ("has_float_normal", "<i4")])


def memory_of(engine: Any) -> Any:
    """Return the engine's words and the position of the next, for compiled code; False without it, or for another
    layout.
    """
    if native is None:
        return False
    memory = np.frombuffer(native.twister(engine), np.uint8)
    state, words = engine.state["state"], memory.view(np.uint32)
    return memory if words[624] == state["pos"] and np.array_equal(words[:624], state["key"]) else False


def words_of(engine: Any, memory: Any) -> tuple[Array, int]:
    """Return an engine's 624 words and the position of the next.

    NumPy's `state` takes 24 µs, reading its memory takes 1.
    """
    if memory is False:
        state = engine.state["state"]
        return state["key"], state["pos"]
    words = memory.view(np.uint32)
    return words[:624], int(words[624])


def below(longs: Array, limit: int) -> Array:
    """Return True where the low 53 bits of a word are below the limit. Overwrites `longs`."""
    longs &= BITS_53
    return longs < limit


class States:
    """Conversions of generator states for programs: arrays of bytes, until the API registers tensors."""

    def __init__(self) -> None:
        self.show: Callable[[Array], Any] = np.asarray
        self.read: Callable[[Any], Array] = np.asarray

    def register(self, show: Callable[[Array], Any], read: Callable[[Any], Array]) -> None:
        """`show` makes a state of an array of bytes, `read` gives the array back."""
        self.show, self.read = show, read


states = States()


STREAMLESS = frozenset("meta lazy vulkan opengl opencl ideep mkldnn ipu ve fpga maia".split())


class Stream:
    """The words that a generator draws from, their seed and their state."""

    __slots__ = ("_device", "_seed", "_engine", "_twister", "_draw", "_normal", "_float_normal", "__weakref__")

    def __init__(self, device: Any = "cpu") -> None:
        where = Device("cpu" if device is None else device)
        if where.type in STREAMLESS:
            raise RuntimeError(f"{where.type.upper()} device type not an accelerator.")
        self._device = Device("cpu") if where.type == "cpu" else where
        self._engine: Any = None  # numpy.random is imported with the first number
        self._twister: Any = None  # the engine's memory, for compiled code; False where that is none
        self._reset(DEFAULT_SEED)

    @property
    def device(self) -> Device:
        return self._device

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    def manual_seed(self, seed: int, /) -> Self:
        """Start the stream of `seed`, a number of 64 bits; a negative one means seed + 2**64."""
        if isinstance(seed, np.integer):
            raise TypeError("an integer is required")
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self._reset(seed % (1 << 64))
        return self

    def seed(self) -> int:
        """Start a stream with an unpredictable seed, and return the seed."""
        self._reset(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed that the stream was started with."""
        return self._seed

    def get_offset(self) -> int:
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int, /) -> None:
        raise RuntimeError("CPU Generator does not use offset")

    def _reset(self, seed: int) -> None:
        self._seed: int = seed
        self._draw: Callable[[int], Array] | None = None  # until the first word is drawn
        self._normal: float | None = None  # the second of the last pair of normals
        self._float_normal: tuple[float, int] = 0.0, 0  # has a place in PyTorch's state; no CPU kernel uses it
        if self._engine is not None:
            np.random.RandomState(self._engine).seed(seed & 0xFFFFFFFF)

    def _started(self) -> Any:
        """The engine, at its place in the stream."""
        if self._engine is None:
            self._engine = np.random.MT19937(0)
            np.random.RandomState(self._engine).seed(self._seed & 0xFFFFFFFF)
            self._twister = memory_of(self._engine)
        return self._engine

    def _state(self) -> Array:
        """The state as PyTorch's 5,056 bytes."""
        words, place = words_of(self._started(), self._twister)
        state = np.zeros((), STATE)
        state["seed"], state["seeded"] = self._seed, 1
        state["left"] = 625 - place
        state["next"] = 0 if self._draw is None else place
        state["words"] = words
        if self._normal is not None:
            state["normal_y"], state["has_normal"] = self._normal, 1
        state["float_normal"], state["has_float_normal"] = self._float_normal
        return state.reshape(1).view(np.uint8)

    def _place(self) -> Array | None:
        """Return what `_return_to` goes back to: the state, or None before the first number, which needs no engine."""
        return None if self._engine is None else self._state()

    def _return_to(self, place: Array | None) -> None:
        if place is not None:
            self._set_state(place)
        elif self._engine is not None:
            self._reset(self._seed)

    def _set_state(self, state: Array) -> None:
        """Go on from a state that `_state()`, or PyTorch, gave."""
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE.itemsize:
            raise RuntimeError(f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input RNG "
                               f"state size to be {state.size}")
        s = np.frombuffer(state.tobytes(), STATE)[0]
        if s["seeded"] & 255 != 1 or not 0 < s["left"] <= 624 or s["next"] > 624:
            raise RuntimeError("Invalid mt19937 state")
        engine = self._started()
        self._seed = int(s["seed"])
        engine.state = {"bit_generator": "MT19937",
                        "state": {"key": s["words"].astype(np.uint32), "pos": 625 - int(s["left"])}}
        self._draw = engine.random_raw if s["next"] else None
        self._normal = float(s["normal_y"]) if s["has_normal"] & 255 else None
        self._float_normal = float(s["float_normal"]), int(s["has_float_normal"])

    def get_state(self) -> Any:
        """Return the state, a tensor of bytes in PyTorch's layout."""
        return states.show(self._state())

    def set_state(self, new_state: Any) -> Self:
        """Set a state from `get_state`, and return the generator.

        Raises TypeError for another object, RuntimeError for bytes of another generator.
        """
        self._set_state(states.read(new_state))
        return self

    def clone_state(self) -> Self:
        """Return a generator in the same state."""
        out = type(self)(self._device)
        out._set_state(self._state())
        return out

    def graphsafe_get_state(self) -> Self:
        """Return a generator in the same state."""
        return self.clone_state()

    def graphsafe_set_state(self, state: Stream) -> None:
        """Go on from another generator's state."""
        self._set_state(state._state())

    def __reduce__(self) -> Any:
        return rebuild, (None if type(self) is Generator else type(self), self._device), self._state()

    def __setstate__(self, state: Any) -> None:
        # PyTorch's: (seed, offset, state)
        self._set_state(state[2].numpy() if isinstance(state, tuple) else state)


class Generator(Stream):
    """A stream of random numbers with its own seed. https://docs.pytorch.org → torch.Generator

    >>> import tensorgrad as torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> generator.initial_seed(), generator.device
    (0, device(type='cpu'))
    >>> generator.uniform(2), generator.normal(1)
    (array([0.4962566, 0.7682218], dtype=float32), array([-0.29050925], dtype=float32))
    """

    __module__ = "tensorgrad.generator"     # as pickles and messages name it
    __slots__ = ()

    # ── words and uniforms ────────────────────────────────────────────────────────────────────────────────────────

    def _words(self, n: int) -> Array:
        """n random words of 32 bits, as uint64."""
        if self._draw is None:
            self._draw = self._started().random_raw
        return self._draw(n)

    def _longs(self, n: int) -> Array:
        """Draw n random words of 64 bits; the first word drawn is the high half."""
        if n >= MANY:
            self._draw = self._started().random_raw
            return np.random.RandomState(self._engine).randint(0, 1 << 64, n, np.uint64)
        words = self._words(2 * n)
        longs = words[0::2] << WORD
        longs |= words[1::2]
        return longs

    def _singles(self, n: int) -> Array:
        """n multiples of 2**-24 in [0, 1), as float32."""
        words = self._words(n)
        words &= BITS_24
        uniforms = words.view(np.int64).astype(np.float32)
        uniforms *= UNIT_24
        return uniforms

    def _doubles(self, n: int) -> Array:
        """n multiples of 2**-53 in [0, 1)."""
        longs = self._longs(n)
        longs &= BITS_53
        return longs.view(np.int64) * UNIT_53

    def _compiled(self, kernel: str, out: Array, *numbers: Any) -> bool:
        """Fill the array by a native kernel, which draws the same words; return False if none applies."""
        if self._twister is None:
            self._started()
        if self._twister is False or out.size < LEAST or not out.flags.c_contiguous:
            return False
        with self._engine.lock:
            if getattr(native, kernel)(self._twister, out, out.size, *numbers) is not None:
                return False
        self._draw = self._engine.random_raw
        return True

    def _one_by_one(self) -> Any:
        """Iterate over doubles. They are drawn ahead in blocks; closing the iterator puts the unused ones back."""
        engine = self._started()
        while True:
            state, used = engine.state, 0
            try:
                for u in self._doubles(AHEAD).tolist():
                    used += 1
                    yield u
            finally:
                if used < AHEAD:
                    engine.state = state
                    engine.random_raw(2 * used, output=False)

    # ── continuous distributions ──────────────────────────────────────────────────────────────────────────────────

    def uniform(self, shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = np.float32) -> Array:
        """Uniform on [low, high): one word a value, two for float64. → Tensor.uniform_"""
        dtype = np.dtype(dtype)
        if holds_complex(dtype):
            return streams.paired(self.uniform((*as_shape(shape), 2), low, high, streams.real(dtype)), dtype)
        streams.check_bounds(low, high, dtype)
        low, high = float(low), float(high)
        if ((low, high) == (0, 1) and dtype.char in "fd"
                and self._compiled("random_uniform", out := np.empty(shape, dtype))):
            return out
        if dtype == np.float64:
            out = fill(shape, dtype, self._doubles, lambda u: streams.fma(u, high - low, low))
        elif low == 0 and high == 1:
            out = fill(shape, dtype, self._singles)
        else:
            origin, end = streams.singles(low, high)
            span = float(np.float32(end - origin))
            out = fill(shape, dtype, self._singles, lambda u: u.astype(np.float64) * span + origin)
        if dtype.itemsize == 2 or (low, high) != (0, 1):  # rounding may give the excluded upper end
            first, end = (cast(np.asarray(bound, np.float64), dtype) for bound in (low, high))
            if dtype.kind == "V":
                out[out.view(np.uint16) == end.view(np.uint16)] = first
            else:
                np.putmask(out, out == end, first)
        return out

    def normal(self, shape: Any, mean: float = 0.0, std: float = 1.0, dtype: Any = np.float32,
               contiguous: bool = True) -> Array:
        """Draw normal numbers: in blocks if there are 16 or more in contiguous memory, else in pairs. →
        Tensor.normal_
        """
        dtype = np.dtype(dtype)
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
        if holds_complex(dtype):
            parts = self.normal((*as_shape(shape), 2), mean, std / math.sqrt(2), streams.real(dtype), contiguous)
            return streams.paired(parts, dtype)
        streams.expect_floating(dtype, "normal_kernel_cpu")
        n = math.prod(as_shape(shape))
        if contiguous and n >= BLOCK:
            values = self._normals_by_blocks(n, float(mean), float(std), dtype)
        else:
            values = streams.fma(self._normals_by_pairs(n), float(std), float(mean))
        return cast(values, dtype).reshape(shape)

    def normal_around(self, mean: Any, std: Any) -> Array:
        """Normal numbers whose means, deviations or both are arrays. → torch.normal"""
        dtype = getattr(mean, "dtype", None) or std.dtype
        if not isinstance(std, np.ndarray):
            out = self.normal(mean.shape, 0.0, std, dtype)
            return combine(np.add, out, mean, out)
        if holds_complex(std.dtype):
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if not np.all(wide(std) >= 0):
            raise RuntimeError("normal expects all elements of std >= 0.0")
        out = self.normal(np.broadcast_shapes(np.shape(mean), std.shape), dtype=dtype)
        combine(np.multiply, out, std, out)
        return combine(np.add, out, mean, out)

    def _normals_by_blocks(self, n: int, mean: float, std: float, dtype: np.dtype[Any]) -> Array:
        """Draw n >= 16 normals in blocks of 16. The last 16 values are drawn again if their block is not full."""
        if dtype.char in "fd" and self._compiled("random_normal", out := np.empty(n, dtype), mean, std):
            return out
        rest = n % BLOCK
        draw, width = (self._doubles, np.float64) if dtype == np.float64 else (self._singles, np.float32)
        u = fill(n - rest, width, draw)
        if not rest:
            return streams.normal_blocks(u, mean, std)
        if dtype.itemsize > 2:
            draw(rest)
        z = streams.normal_blocks(np.concatenate([u, draw(BLOCK)]), mean, std)
        out = z[:n].copy()
        out[n - BLOCK:] = z[-BLOCK:]
        return out

    def _normals_by_pairs(self, n: int) -> Array:
        """Return n float64 standard normals, two from two uniforms; an unused one is kept for the next call."""
        held = 0 if self._normal is None or n == 0 else 1
        pairs = (n - held + 1) // 2
        out = np.empty(held + 2 * pairs)
        if held:
            out[0], self._normal = self._normal, None
        if pairs:
            u = self._doubles(2 * pairs)
            out[held::2], out[held + 1::2] = streams.box_muller(u[1::2], u[0::2], log="log1p")
        if out.size > n:
            self._normal = float(out[n])
        return out[:n]

    def log_normal(self, shape: Any, mean: float = 1.0, std: float = 2.0, dtype: Any = np.float32) -> Array:
        """exp of a normal number. → Tensor.log_normal_"""
        dtype = np.dtype(dtype)
        if not std > 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
        streams.expect_floating(dtype, "log_normal_cpu")
        values = streams.fma(self._normals_by_pairs(math.prod(as_shape(shape))), float(std), float(mean))
        with np.errstate(over="ignore"):
            return cast(libm("exp", values, dtype), dtype).reshape(shape)

    def exponential(self, shape: Any, lambd: float = 1.0, dtype: Any = np.float32) -> Array:
        """-ln(1 - u) / lambd. → Tensor.exponential_"""
        dtype = np.dtype(dtype)
        if not lambd > 0:
            raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
        if letter(dtype) not in "fV":
            raise RuntimeError("Exponential distribution is a continuous probability distribution. "
                               f"dtype must be a floating point but you specified {TYPES[dtype].name}")
        if dtype == np.float64 and self._compiled("random_exponential", out := np.empty(shape, dtype), -1.0 / lambd):
            return out
        return fill(shape, dtype, self._doubles, lambda u: (-1.0 / lambd) * libm("log1p", -u, dtype))

    def cauchy(self, shape: Any, median: float = 0.0, sigma: float = 1.0, dtype: Any = np.float32) -> Array:
        """median + sigma tan(π (u - ½)). → Tensor.cauchy_"""
        dtype = np.dtype(dtype)
        if not sigma > 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
        if letter(dtype) not in "fV":
            raise RuntimeError("Cauchy distribution is a continuous probability distribution. "
                               f"dtype must be a floating point but you specified {TYPES[dtype].c_name}")
        sigma, median = float(sigma), float(median)
        if math.isinf(median):      # which 0 · sigma does not move
            return fill(shape, dtype, self._doubles, lambda u: np.full(u.shape, median))
        return fill(shape, dtype, self._doubles,
                    lambda u: streams.fma(libm("tan", math.pi * (u - 0.5), dtype), sigma, median))

    def standard_gamma(self, alpha: Array) -> Array:
        """Gamma numbers of shape `alpha` and scale 1, at least the smallest normal number. → torch._standard_gamma"""
        streams.expect_double_or_float(alpha.dtype, "gamma_cpu")
        with closing(self._one_by_one()) as uniforms:
            draw = uniforms.__next__
            values = [streams.gamma(a, draw, lambda: self._next_normal(draw)) for a in alpha.reshape(-1)]
        tiny = np.finfo(alpha.dtype).tiny
        return np.fmax(np.array(values).astype(alpha.dtype), tiny).reshape(alpha.shape)

    def dirichlet(self, alpha: Array) -> Array:
        """Points of the simplex: gamma numbers over their sum along the last axis. → torch._sample_dirichlet

        float64 may differ from PyTorch's in the last bit, for NumPy adds in another order.
        """
        streams.expect_double_or_float(alpha.dtype, "dirichlet")
        gammas = self.standard_gamma(alpha.astype(np.float64))
        shares = (gammas / gammas.sum(-1, keepdims=True)).astype(alpha.dtype)
        one = alpha.dtype.type(1)
        return np.clip(shares, np.finfo(alpha.dtype).tiny, np.nextafter(one, 0 * one))

    def _next_normal(self, draw: streams.Draw) -> float:
        if self._normal is not None:
            value, self._normal = self._normal, None
            return value
        angle = 2.0 * math.pi * draw()
        radius = math.sqrt(-2.0 * math.log1p(-draw()))
        self._normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    # ── discrete distributions ────────────────────────────────────────────────────────────────────────────────────

    def randint(self, low: int, high: int, shape: Any, dtype: Any = np.int64) -> Array:
        """Integers from low to high - 1. → torch.randint"""
        return self.random_(shape, dtype, low, high)

    def random_(self, shape: Any, dtype: Any = np.int64, low: int | None = None, high: int | None = None) -> Array:
        """Integers from `low`, or 0, up to `high` - 1, or the greatest of the dtype. → Tensor.random_

        They are remainders of a word, of two where 2**28 or more values are possible.
        """
        dtype = np.dtype(dtype)
        if low is None and high is None:
            return self._random_whole(shape, dtype)
        low = int(low or 0)
        if high is None and low == -(1 << 63):
            streams.expect_64_bits(dtype)
            return fill(shape, dtype, self._longs, lambda r: r.view(np.int64))
        low, last = streams.integer_range(low, high, dtype)
        span = last - low + 1
        if (dtype == np.int64 and span < 1 << 63 and self._compiled("random_integers", out := np.empty(shape, dtype),
                                                                    low, span, span >= 1 << 28)):
            return out
        draw = self._longs if span >= 1 << 28 else self._words
        return fill(shape, dtype, draw, lambda r: (r % np.uint64(span) + np.uint64(low % (1 << 64))).view(np.int64))

    def _random_whole(self, shape: Any, dtype: np.dtype[Any]) -> Array:
        """From 0 to the greatest number of an integer dtype, or to 2**digits for floating point."""
        streams.expect_common(dtype, "random_kernel_cpu", "fViub")
        values = np.uint64(streams.greatest(dtype) + 1)
        draw = self._longs if dtype.name in ("int64", "float64") else self._words
        return fill(shape, dtype, draw, lambda r: (r % values).view(np.int64))

    def randperm(self, n: int, dtype: Any = np.int64) -> Array:
        """Return 0 … n-1 in random order: each place, in turn, swaps with a later place or itself. → torch.randperm"""
        dtype = np.dtype(dtype)
        streams.check_randperm(n, dtype)
        if self._compiled("permutation", out := np.empty(n, np.int64)):
            return converted(out, dtype)
        order = list(range(n))
        if n > 1:
            later = self._words(n - 1)
            later %= np.arange(n, 1, -1, dtype=np.uint64)
            later += np.arange(n - 1, dtype=np.uint64)
            for i, j in enumerate(later.tolist()):  # in sequence, for each exchange depends on those before
                order[i], order[j] = order[j], order[i]
        return converted(np.array(order, np.int64), dtype)

    def bernoulli(self, p: Any, shape: Any = None, dtype: Any = np.float32) -> Array:
        """1 with probability p, a number or an array, else 0. → Tensor.bernoulli_, torch.bernoulli

        One probability, or float64 ones, take two words a value; an array of smaller floats takes one.
        """
        if isinstance(p, np.ndarray):
            return self._bernoulli_each(p, p.shape if shape is None else shape, dtype)
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        limit = math.ceil(math.ldexp(p, 53))  # u < p, in units of 2**-53
        if np.dtype(dtype).char in "fd" and self._compiled("random_choice", out := np.empty(shape, dtype), limit, 1.0):
            return out
        return fill(shape, dtype, self._longs, lambda r: below(r, limit))

    def _bernoulli_each(self, p: Array, shape: Any, dtype: Any) -> Array:
        streams.expect_floating(p.dtype, "bernoulli_tensor_cpu_p_")
        p = wide(p)
        if not np.all((p >= 0) & (p <= 1)):
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
                               "(Could this error message be improved?  If so, please report an enhancement request "
                               "to PyTorch.)")
        draw, width = (self._doubles, np.float64) if p.dtype == np.float64 else (self._singles, np.float32)
        return convert(np.asarray(fill(shape, width, draw) < p.astype(width)), dtype)

    def dropout(self, shape: Any, p: float, dtype: Any = np.float32) -> Array:
        """Return F.dropout's factors for 0 < p < 1: 0 with probability p, else 1 / (1-p)."""
        dtype = np.dtype(dtype)
        factor = cast(1 / np.asarray(1 - p, np.float64 if dtype == np.float64 else np.float32), dtype)
        limit = math.ceil(math.ldexp(1 - p, 53))
        if dtype.char in "fd" and self._compiled("random_choice", out := np.empty(shape, dtype), limit, float(factor)):
            return out
        factor = wide(factor)
        return fill(shape, dtype, self._longs, lambda r: below(r, limit) * factor)

    def geometric(self, shape: Any, p: float, dtype: Any = np.float32) -> Array:
        """The number of the first success: ceil(ln u / ln(1-p)). → Tensor.geometric_"""
        dtype = np.dtype(dtype)
        if not 0 < p < 1:
            raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
        streams.expect_common(dtype, "geometric_cpu", "fViu")
        log_q = math.log1p(-p)

        def trials(u: Array) -> Array:
            with np.errstate(divide="ignore"):
                count = np.ceil(np.log(u) / log_q)
            return count.astype(np.int64) if dtype.kind in "iu" else count
        return fill(shape, dtype, self._doubles, trials)

    def poisson(self, rate: Array) -> Array:
        """Draw a Poisson number for each rate, one by one: they take unequal numbers of words. → torch.poisson"""
        streams.expect_floating(rate.dtype, "poisson_cpu")
        with closing(self._one_by_one()) as uniforms:
            draw = uniforms.__next__
            values = [streams.poisson(r, draw) for r in convert(rate, np.float64).ravel().tolist()]
        return cast(np.array(values, np.float64), rate.dtype).reshape(rate.shape)

    def binomial(self, count: Array, p: Array) -> Array:
        """Successes in `count` trials of probability `p`, broadcast, one by one. → torch.binomial"""
        streams.check_binomial(count.dtype, p.dtype)
        counts, ps = np.broadcast_arrays(count.astype(np.float64), p.astype(np.float64))
        with closing(self._one_by_one()) as uniforms:
            draw = uniforms.__next__
            values = [streams.binomial(n, q, draw) for n, q in zip(counts.ravel().tolist(), ps.ravel().tolist())]
        return cast(np.array(values, np.float64), count.dtype).reshape(counts.shape)

    def multinomial(self, weights: Array, n: int, replacement: bool = False) -> Array:
        """n indices a row, drawn in proportion to the weights. → torch.multinomial

        Without replacement, and for n = 1, it is a race: the n greatest of weight / exponential number; of equal ones
        (frequent in 16 bits) the first comes first, where PyTorch leaves the order open. With replacement, uniforms are
        looked up in the running sum.
        """
        streams.check_multinomial(weights, n, replacement)
        if replacement and n > 1:
            return self._multinomial_lookup(weights, n)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            race = wide(combine(np.divide, weights, in_memory_order(
                weights, lambda shape: self.exponential(shape, 1.0, weights.dtype))))
        if n == 1:
            return race.argmax(-1, keepdims=True)
        return np.ascontiguousarray(np.argsort(-race, axis=-1, kind="stable")[..., :n])

    def _multinomial_lookup(self, weights: Array, n: int) -> Array:
        rows = weights.reshape(-1, weights.shape[-1])
        out = np.empty((len(rows), n), np.int64)
        for row, indices in zip(converted(rows, np.float64 if weights.dtype == np.float64 else np.float32), out):
            sums = np.add.accumulate(row)
            sums /= sums[-1]
            sums[-1] = 1
            indices[:] = sums.astype(np.float64).searchsorted(fill(n, np.float64, self._doubles))
        return out.reshape(*weights.shape[:-1], n)


def rebuild(kind: type[Stream] | None, device: Any) -> Stream:
    """Return the stream of a pickle. Pickles have None for Generator, which may be renamed `torch._C.Generator`."""
    return (kind or Generator)(device)


def in_memory_order(like: Array, drawn: Callable[[tuple[int, ...]], Array]) -> Array:
    """Draw random numbers in the shape of a matrix, column by column if the matrix is column-major."""
    if like.ndim == 2 and not like.flags.c_contiguous and 0 < like.strides[0] < like.strides[1]:
        return drawn(like.shape[::-1]).T
    return drawn(like.shape)


for _name in ("uniform", "normal", "normal_around", "log_normal", "exponential", "cauchy", "standard_gamma",
              "dirichlet", "random_", "randperm", "bernoulli",
              "dropout", "geometric", "poisson", "binomial", "multinomial"):
    setattr(Generator, _name, computing(getattr(Generator, _name)))


default_generator = Generator()
