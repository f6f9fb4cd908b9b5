"""Random tensors. https://pytorch.org/docs/stable/torch.html#random-sampling

On the CPU the numbers are PyTorch's, bit for bit (see generator.py). Each CUDA device has a host generator, whose
numbers are copied to it: reproducible, but not PyTorch's.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core import inplace as _inplace
from ..core.class_hooks import hooks as class_hooks
from ..core.class_hooks import is_own
from ..core.dispatch import fresh, xp
from ..core.formats import in_channels_last
from ..core.mode import mode
from ..core.tape import TensorBase, node_of
from ..device import device as Device
from ..dtype import SCALAR_TYPES, as_dtype, strided
from ..generator import Generator, default_generator, states
from ..ops.shape import inverse
from ..runtime.small_floats import fill
from ..storage.base import backend_of
from ._arguments import broadcast_shape, check_long, integer
from ._kinds import Dtype, Index, Ints, Ints1, Layout, MemoryFormat
from ._register import public, write_out
from ._sparse import like_sparse
from .creation import as_leaf, axes_in_memory, empty_like, like_by_class, shape_of, unmade

# ── generators ────────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def cuda_generator(index: int) -> Generator:
    """The default generator of a CUDA device."""
    return Generator(f"cuda:{index}")


_cuda_seed: list[int] = []      # manual_seed's requests for devices that are not in use yet


def generator_of(backend: Any, generator: Any) -> Any:
    """Return the generator to draw from: the given one, or the device's default; inside vmap, one for the batch."""
    found = device_generator(backend, generator)
    if mode.batches:
        from ._batched_random import Draws
        return Draws(found)
    return found if backend.draws is None else backend.draws(found)


def tensor_of(values: Any, backend: Any) -> Any:
    """A tensor of numbers that were drawn on the host."""
    if mode.batches:
        from ._batched_random import placed
        return placed(values, backend)
    return fresh(backend.asarray(values), backend)


def device_generator(backend: Any, generator: Any) -> Generator:
    if generator is not None:
        if generator.device.type != backend.device.type and not backend.hollow:
            raise RuntimeError(f"Expected a '{backend.device.type}' device type for generator but found "
                               f"'{generator.device.type}'")
        return mode.quiet or generator  # type: ignore[no-any-return]
    if mode.quiet is not None:
        return mode.quiet  # type: ignore[no-any-return]
    if backend.device.type != "cuda":
        return default_generator
    index = backend.device.index or 0
    found = cuda_generator(index)
    if index not in _started:
        _started.add(index)
        if _cuda_seed:
            found.manual_seed(_cuda_seed[0])
    return found


_started: set[int] = set()


def seed_cuda(seed: int, index: int | None = None) -> None:
    """Seed the default generators of the CUDA devices, those yet to be used included."""
    if index is None:
        _cuda_seed[:] = [seed]
        for i in _started:
            cuda_generator(i).manual_seed(seed)
    else:
        cuda_generator(index).manual_seed(seed)
        _started.add(index)


@public(method=False)
def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices.

    Errors: ValueError if the seed is outside [−2⁶³, 2⁶⁴)
    https://pytorch.org/docs → torch.manual_seed

    >>> import tensorgrad as torch
    >>> torch.manual_seed(0).initial_seed(), torch.rand(2)
    (0, tensor([0.4963, 0.7682]))
    """
    seed = int(seed)
    seed_cuda(seed)
    return default_generator.manual_seed(seed)


@public(method=False)
def seed() -> int:
    """Seed the default generators with a number from the system, and return it.

    https://pytorch.org/docs → torch.seed
    """
    value = int.from_bytes(os.urandom(8), "little") >> 1
    manual_seed(value)
    return value


@public(method=False)
def initial_seed() -> int:
    """Return the default generator's seed. https://pytorch.org/docs → torch.initial_seed"""
    return default_generator.initial_seed()


def _as_tensor(state: Any) -> Any:
    """A generator's state, a tensor of bytes in PyTorch's layout."""
    return fresh(state, backend_of("cpu"))


def _as_bytes(state: Any) -> Any:
    """The bytes of a state that `_as_tensor` gave. Raises a TypeError for another tensor or object."""
    if not isinstance(state, TensorBase):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    if state.array.dtype != np.uint8:
        raise TypeError("RNG state must be a torch.ByteTensor")
    return state.array


states.register(show=_as_tensor, read=_as_bytes)


@public(method=False)
def get_rng_state() -> Tensor:
    """The state of the CPU's default generator.

    Output: (5056) of uint8
    https://pytorch.org/docs → torch.get_rng_state

    >>> import tensorgrad as torch
    >>> torch.get_rng_state().shape
    torch.Size([5056])
    """
    return default_generator.get_state()


@public(method=False)
def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the CPU's default generator.

    Input: (5056) of uint8, from `get_rng_state`
    Errors: TypeError for another object or dtype; RuntimeError for another length
    https://pytorch.org/docs → torch.set_rng_state

    >>> import tensorgrad as torch
    >>> state = torch.get_rng_state()
    >>> first = torch.rand(2)
    >>> torch.set_rng_state(state); torch.equal(torch.rand(2), first)
    True
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
             device_type: str = "cuda") -> Iterator[None]:
    """The default generators get their state back at the end of the block.

    Input: devices: the CUDA devices, numbers or names, to do so for; by default those in use
    https://pytorch.org/docs → torch.random.fork_rng

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     first = torch.rand(1)
    >>> torch.equal(torch.rand(1), first)
    True
    """
    Device(device_type)
    if not enabled:
        yield
        return
    kept = default_generator._state()
    chosen = ([Device("cuda", d).index if isinstance(d, int) else Device(d).index or 0 for d in devices]
              if devices is not None else list(_started))
    others = {i: cuda_generator(i)._state() for i in chosen if i is not None}
    try:
        yield
    finally:
        default_generator._set_state(kept)
        for i, state in others.items():
            cuda_generator(i)._set_state(state)


# ── new tensors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn(method: str, shape: tuple[int, ...], dtype: Any, device: Any, generator: Any, requires_grad: bool,
          *args: Any) -> Any:
    """A new tensor of random numbers."""
    backend = backend_of(device)
    kind = dtypes.get_default_dtype() if dtype is None else as_dtype(dtype)
    try:
        values = getattr(generator_of(backend, generator), method)(shape, *args, dtype=kind.numpy)
    except (ValueError, MemoryError) as error:
        raise unmade(error, "rand", shape) from None
    return as_leaf(tensor_of(values, backend), requires_grad)


def _sampler(name: str, method: str, what: str) -> Any:
    def make(*size: Ints1, generator: Generator | None = None, out: Tensor | None = None, dtype: Dtype | None = None,
             layout: Layout | None = None, device: Device | None = None, requires_grad: bool | None = False,
             pin_memory: bool | None = False, **keywords: Any) -> Tensor:
        if "size" in keywords:
            size = (keywords.pop("size"),)
        if keywords:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(keywords))}'")
        if not size:
            raise TypeError(f"{name}() received an invalid combination of arguments - got (), but expected (tuple of "
                            f"ints size)")
        kind = out.dtype if out is not None and dtype is None else dtype
        made = drawn(method, shape_of(size), kind, device if out is None else out.device, generator, requires_grad)
        return made if out is None else write_out(made, out)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = (f"{what}\n\n"
                    "Input: the size, as numbers or as one sequence\n"
                    "Output: size, of the default dtype unless another is given\n"
                    "Errors: RuntimeError for a negative size; TypeError without a size; NotImplementedError for "
                    f"integers\nhttps://pytorch.org/docs → torch.{name}\n\n"
                    f">>> import tensorgrad as torch\n>>> torch.{name}(2, 3).shape\ntorch.Size([2, 3])\n")
    return public(method=False)(make)


rand = _sampler("rand", "uniform", "Uniform numbers on [0, 1).")
randn = _sampler("randn", "normal", "Standard normal numbers.")


def _like_sampler(name: str, method: str) -> Any:
    def make(input: Tensor, *, dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
             requires_grad: bool | None = False, memory_format: MemoryFormat | None = None,
             pin_memory: bool | None = False, generator: Generator | None = None) -> Tensor:
        if is_own(input):
            return as_leaf(like_by_class(name, input, dtype=dtype, layout=layout, device=device,
                                         memory_format=memory_format, generator=generator), requires_grad)
        kind, device = input.dtype if dtype is None else dtype, input.device if device is None else device
        if layout is not None and layout is not strided or input._storage.dense is not None:
            return as_leaf(like_sparse(
                name.removesuffix("_like"), input, layout, kind, device,
                lambda shape: drawn(method, shape, kind, device, generator, False)), requires_grad)
        # the numbers follow each other in memory
        if memory_format is not None or not input.is_contiguous() or in_channels_last(input, 5):
            made = empty_like(input, dtype=kind, device=device, memory_format=memory_format)
            return as_leaf(getattr(made, f"{method}_")(generator=generator), requires_grad)
        return drawn(method, input.array.shape, kind, device, generator, requires_grad)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = (f"`{name.removesuffix('_like')}` in the shape, dtype and device of a tensor.\n\n"
                    "Output: the input's shape\n"
                    "Errors: NotImplementedError for integers, unless a dtype is given\n"
                    f"https://pytorch.org/docs → torch.{name}\n\n"
                    f">>> import tensorgrad as torch\n>>> torch.{name}(torch.zeros(2, 3)).shape\ntorch.Size([2, 3])\n")
    return public(method=False)(make)


rand_like, randn_like = _like_sampler("rand_like", "uniform"), _like_sampler("randn_like", "normal")


@public(method=False)
def randint(low: Index | None = None, high: Index | None = None, size: Ints | None = None, *,
            generator: Generator | None = None, out: Tensor | None = None, dtype: Dtype | None = None,
            layout: Layout | None = None, device: Device | None = None, requires_grad: bool | None = False,
            pin_memory: bool | None = False) -> Tensor:
    """Integers from low (0) up to, without, high.

    Output: size, of int64 unless another dtype is given
    Errors: RuntimeError if high is not above low, high − 1 does not fit the dtype, or a size is negative; TypeError
        without a size
    https://pytorch.org/docs → torch.randint

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randint(10, (3,))
    tensor([4, 9, 3])
    """
    if size is None:
        if not isinstance(high, (tuple, list)):
            raise TypeError("randint() received an invalid combination of arguments: size is missing")
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    low, high = int(low or 0), int(high)
    check_long(low, high)
    if high <= low:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    kind = dtypes.int64 if dtype is None and out is None else out.dtype if dtype is None else as_dtype(dtype)
    backend = backend_of(device if out is None else out.device)
    values = generator_of(backend, generator).randint(low, high, shape_of((size,)), kind.numpy)
    made = tensor_of(values, backend)
    if out is not None:
        return write_out(made, out)
    return as_leaf(made, requires_grad)


@public(method=False)
def randint_like(input: Tensor, low: Index | None = None, high: Index | Tensor | None = None, *,
                 generator: Generator | None = None, dtype: Dtype | None = None, layout: Layout | None = None,
                 device: Device | None = None, requires_grad: bool | None = False,
                 memory_format: MemoryFormat | None = None) -> Tensor:
    """`randint` in the shape, dtype and device of a tensor.

    Output: the input's shape and dtype
    Errors: RuntimeError if high is not above low; TypeError without high
    https://pytorch.org/docs → torch.randint_like

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randint_like(torch.zeros(3), 10)
    tensor([4., 9., 3.])
    """
    if low is None and high is None:
        raise TypeError("randint_like() missing 1 required positional argument: 'high'")
    low, high = (0, low) if high is None else (0 if low is None else low, high)
    if isinstance(high, TensorBase) and high.array.ndim:
        raise RuntimeError("high must be a scalar tensor and on CPU")
    if is_own(input):
        return as_leaf(like_by_class(  # type: ignore[no-any-return]
            "randint_like.low_dtype", input, low, high, dtype=dtype, layout=layout, device=device,
            memory_format=memory_format, generator=generator), requires_grad)
    kind, device = input.dtype if dtype is None else dtype, input.device if device is None else device
    if layout is not None and layout is not strided or input._storage.dense is not None:
        return as_leaf(like_sparse(  # type: ignore[no-any-return]
            "randint", input, layout, kind, device,
            lambda shape: randint(low, high, shape, generator=generator, dtype=kind, device=device)), requires_grad)
    if memory_format is not None or not input.is_contiguous() or in_channels_last(input, 5):
        made = empty_like(input, dtype=kind, device=device, memory_format=memory_format)
        return as_leaf(made.random_(int(low), int(high), generator=generator), requires_grad)
    return randint(low, high, input.array.shape, generator=generator, dtype=kind, device=device,
                   requires_grad=requires_grad)


@public(method=False)
def randperm(n: Index, *, generator: Generator | None = None, out: Tensor | None = None,
             dtype: Dtype | None = dtypes.int64, layout: Layout | None = None, device: Device | None = None,
             requires_grad: bool | None = False, pin_memory: bool | None = False) -> Tensor:
    """The numbers 0 … n − 1 in random order.

    Output: (n) of int64
    Errors: RuntimeError if n is negative, n − 1 does not fit the dtype, or requires_grad is set for integers; TypeError
        if n is not an integer; NotImplementedError for bool
    https://pytorch.org/docs → torch.randperm

    >>> import tensorgrad as torch
    >>> torch.randperm(4).sort()[0]
    tensor([0, 1, 2, 3])
    """
    check_long(n := integer(n, "n"))
    backend = backend_of(device if out is None else out.device)
    kind = as_dtype(dtype) if out is None else out.dtype
    made = tensor_of(generator_of(backend, generator).randperm(n, kind.numpy), backend)
    return as_leaf(made, requires_grad) if out is None else write_out(made, out)


@public(method=False)
def normal(mean: Tensor | float = 0.0, std: Tensor | float = 1.0, size: Ints | None = None, *,
           generator: Generator | None = None, out: Tensor | None = None, dtype: Dtype | None = None,
           layout: Layout | None = None, device: Device | None = None, requires_grad: bool | None = False,
           pin_memory: bool | None = False) -> Tensor:
    """Normal numbers of given means and deviations, each a number or a tensor.

    Input: mean and std, numbers or floating point tensors that broadcast; size only with two numbers
    Output: size, or the broadcast shape
    Errors: RuntimeError if std is negative; TypeError for two numbers without a size; NotImplementedError for integers
    https://pytorch.org/docs → torch.normal

    >>> import tensorgrad as torch
    >>> torch.normal(torch.tensor([1., 2.]), 0.)
    tensor([1., 2.])
    """
    tensors = [t for t in (mean, std) if isinstance(t, TensorBase)]
    if not tensors and size is None:
        raise TypeError(f"normal() received an invalid combination of arguments - got ({type(mean).__name__}, "
                        f"{type(std).__name__}), but expected one of:\n * (Tensor mean, Tensor std)\n * (Tensor mean, "
                        "float std)\n * (float mean, Tensor std)\n * (float mean, float std, tuple of ints size)")
    if size is not None:
        made = drawn("normal", shape_of((() if size is None else size,)), dtype, device, generator, requires_grad,
                     float(mean), float(std))
    else:
        backend = type(tensors[0]._storage)
        bare = [_host(t) if isinstance(t, TensorBase) else float(t) for t in (mean, std)]
        if len(tensors) > 1:
            broadcast_shape(*tensors)
        made = tensor_of(generator_of(backend, generator).normal_around(*bare), backend)
        for t in tensors:
            made = _of(t.expand(made.array.shape), made)
    return made if out is None else write_out(made, out)


def _host(t: Any) -> Any:
    if mode.batches:
        from ._batched_random import probabilities
        return probabilities(t)
    return t.array if t._storage.leads or t._storage.hollow else type(t._storage).host(t.array)


@public(method=True, out=True)
def bernoulli(input: Tensor, p: Tensor | float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that each element gives (or p), else 0.

    Input: (*), floating point, probabilities from 0 to 1
    Output: (*) of 0 and 1
    Errors: RuntimeError for a probability outside [0, 1]; NotImplementedError for integers without p
    https://pytorch.org/docs → torch.bernoulli

    >>> import tensorgrad as torch
    >>> torch.bernoulli(torch.tensor([0., 1.]))
    tensor([0., 1.])
    """
    backend = type(input._storage)
    if not input.array.size and input.array.dtype.kind not in "fV":
        return _of(input, input.clone())
    source = generator_of(backend, generator)
    values = source.bernoulli(_host(input), None, input.array.dtype) if p is None else source.bernoulli(
        _host(p) if isinstance(p, TensorBase) else float(p), input.array.shape, input.array.dtype)
    return _of(input, tensor_of(values, backend))


def _of(source: Any, drawn: Any) -> Any:
    """Random numbers as a function of the tensor that they depend on: its gradient is zero."""
    return xp.copied(source, drawn) if mode.record and node_of(source) is not None else drawn


@public(method=True, out="same")
def multinomial(input: Tensor, num_samples: Index, replacement: bool = False, *,
                generator: Generator | None = None) -> Tensor:
    """Indices drawn in proportion to the weights of each row.

    Input: (n) or (m, n), floating point; the weights need not add up to 1
    Output: (num_samples) or (m, num_samples), of int64
    Errors: RuntimeError if num_samples is not in [1, n] (without replacement), a weight is negative or not finite, a
        row adds up to 0, or for integers or another number of axes
    https://pytorch.org/docs → torch.multinomial

    >>> import tensorgrad as torch
    >>> torch.multinomial(torch.tensor([0., 3., 0.]), 2, replacement=True)
    tensor([1, 1])
    """
    backend = type(input._storage)
    return tensor_of(generator_of(backend, generator).multinomial(_host(input), num_samples, replacement), backend)


@public(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers, one for each rate.

    Input: (*), floating point, rates
    Output: (*)
    Errors: RuntimeError for a negative rate; NotImplementedError for integers
    https://pytorch.org/docs → torch.poisson

    >>> import tensorgrad as torch
    >>> torch.poisson(torch.zeros(2))
    tensor([0., 0.])
    """
    backend = type(input._storage)
    return _of(input, tensor_of(generator_of(backend, generator).poisson(_host(input)), backend))


@public(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Successes in `count` trials.

    Input: count and prob, floating point of one dtype, which broadcast
    Output: the broadcast shape
    Errors: RuntimeError if the shapes do not broadcast or the dtypes differ; ValueError for integers
    https://pytorch.org/docs → torch.binomial

    >>> import tensorgrad as torch
    >>> torch.binomial(torch.tensor([3., 5.]), torch.tensor([1., 0.]))
    tensor([3., 0.])
    """
    backend = type(count._storage)
    if count.is_floating_point() and prob.is_floating_point():
        broadcast_shape(count, prob)
    return tensor_of(generator_of(backend, generator).binomial(_host(count), _host(prob)), backend)


@public(method=False, name="_standard_gamma")
def standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma numbers of scale 1, differentiable by their shape parameters (torch._standard_gamma)."""
    backend = type(input._storage)
    drawn = tensor_of(generator_of(backend, generator).standard_gamma(_host(input)), backend)
    return xp.standard_gamma(input, drawn) if mode.record and node_of(input) is not None else drawn


@public(method=False, name="_standard_gamma_grad")
def standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """Return the derivatives of gamma numbers by their shape parameters (torch._standard_gamma_grad)."""
    return xp.standard_gamma_grad(input, output)


@public(method=False, name="_sample_dirichlet")
def sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw points of the simplex; the concentrations are along the last axis (torch._sample_dirichlet)."""
    backend = type(input._storage)
    return tensor_of(generator_of(backend, generator).dirichlet(_host(input)), backend)


@public(method=False, name="_dirichlet_grad")
def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """Return PyTorch's part of the derivative of Dirichlet numbers by their concentrations (torch._dirichlet_grad)."""
    return xp.dirichlet_grad(x, alpha, total)


# ── filling tensors ───────────────────────────────────────────────────────────────────────────────────────────────────


PIECE = 1 << 18         # numbers, a multiple of the blocks that normal ones are drawn in


def filled(input: Any, draw: Any, generator: Any = None, in_pieces: bool = False) -> Any:
    """Write the numbers that draw(generator, shape, dtype, axes, contiguous) gives, in place.

    The history gives no gradient. `axes` are the tensor's axes by decreasing stride, those of `shape`. With
    `in_pieces`, draws for pieces one after the other are those for the whole: a large tensor needs no second one then.
    """
    if mode.batches:
        from ._batched_random import check_in_place
        check_in_place(input)
    if mode.record and node_of(input) is not None:
        _inplace.check(input)
        return _inplace.in_place(input, lambda x: xp.copied(x, _drawn_like(x, draw, generator)))
    _inplace.check_mode(input)
    array = input.array
    if in_pieces and type(array) is np.ndarray and array.size >= 2 * PIECE and array.flags.c_contiguous and not (
            mode.batches):
        _inplace.check_writeable(input)
        source, flat = generator_of(type(input._storage), generator), array.reshape(-1)
        for start in range(0, flat.size - PIECE + 1, PIECE):
            part = flat[start:start + PIECE if start + 2 * PIECE <= flat.size else None]
            fill(part, draw(source, part.shape, array.dtype, (0,), True))
        _inplace.write(input, array)
    else:
        _inplace.write(input, _drawn_like(input, draw, generator).array)
    return input


def _drawn_like(input: Any, draw: Any, generator: Any) -> Any:
    """Draw numbers for a tensor in the order of its elements in memory, as PyTorch does."""
    backend, array, hidden = type(input._storage), input.array, ()
    if not array.size and array.dtype.kind not in "fV":       # no kernel runs: the arguments are checked
        shape = array.shape
        draw(generator_of(backend, generator), shape, np.dtype("float32"), range(len(shape)), True)
        return input
    source: Any = generator_of(backend, generator)
    if mode.batches:
        from ._batched_random import memory
        array, hidden = memory(array)
        source = source.source
    order = range(array.ndim) if array.flags.c_contiguous else axes_in_memory(array)
    values = draw(source, tuple(array.shape[d] for d in order), array.dtype, order, array.flags.c_contiguous)
    values = values.transpose(inverse(order)) if array.ndim > 1 else values
    if mode.batches:
        from ._batched_random import examples
        values = examples(values, hidden)
    return tensor_of(values, backend)


def _drawn_by_class(name: str, tensor: Any, args: Any, keywords: Any, generator: Any) -> Any:
    """Let a class that defines `__torch_dispatch__` write random numbers."""
    _inplace.check_mode(tensor)
    class_hooks.like(name, tensor, *args, **keywords, **{} if generator is None else {"generator": generator})
    tensor._storage.wrote()
    return tensor


def _filler(name: str, what: str, errors: str, **defaults: Any) -> None:
    names = list(defaults)

    def method(self: Tensor, *args: Any, generator: Generator | None = None, **keywords: Any) -> Tensor:
        if len(args) > len(names) or keywords.keys() - set(names):
            raise TypeError(f"{name}_() takes {', '.join(names)} and generator")
        if is_own(self) and node_of(self) is None:
            ending = "" if name != "bernoulli" else ".Tensor" if isinstance([*args, .5][0], TensorBase) else ".float"
            return _drawn_by_class(f"{name}_{ending}", self, args, keywords, generator)
        given = defaults | dict(zip(names, args, strict=False)) | keywords
        values = [given[n] for n in names]
        if name != "bernoulli" and any(isinstance(v, TensorBase) and v.array.ndim for v in values):
            raise TypeError(f"{name}_(): arguments must be float, not Tensor")
        if name == "bernoulli" and isinstance(values[0], TensorBase):
            if mode.batches:
                _host(values[0])            # its errors come first
                _inplace.check_room(self, values[0], name="bernoulli_")
            values[0] = values[0].expand(self.shape)    # type: ignore[attr-defined]

        def draw(source: Any, shape: Any, dtype: Any, axes: Any, contiguous: bool) -> Any:
            if name == "normal":
                values[2:] = [contiguous]
            elif name == "bernoulli" and isinstance(values[0], TensorBase):
                return DRAW[name](source, shape, dtype, values[0], axes)
            return DRAW[name](source, shape, dtype, *values)
        return filled(self, draw, generator, name in ("uniform", "normal"))
    method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
    method.__doc__ = (f"{what}\n\nOutput: the tensor itself, changed\n"
                      f"Errors: RuntimeError for {errors}, or a leaf that requires grad\n"
                      f"https://pytorch.org/docs → torch.Tensor.{name}_")
    setattr(Tensor, f"{name}_", method)


def _real(dtype: Any, p: Any) -> bool:
    if dtypes.holds_complex(dtype):
        kernel = "bernoulli_tensor_cpu_self_" if isinstance(p, TensorBase) else "bernoulli_scalar_cpu_"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{SCALAR_TYPES[dtypes.FROM_NUMPY[dtype].name]}'")
    return True


DRAW = {
    "uniform": lambda g, shape, dtype, low, high: g.uniform(shape, float(low), float(high), dtype),
    "normal": lambda g, shape, dtype, mean, std, contiguous: g.normal(shape, float(mean), float(std), dtype,
                                                                      contiguous=contiguous),
    "log_normal": lambda g, shape, dtype, mean, std: g.log_normal(shape, float(mean), float(std), dtype),
    "exponential": lambda g, shape, dtype, lambd: g.exponential(shape, float(lambd), dtype),
    "cauchy": lambda g, shape, dtype, median, sigma: g.cauchy(shape, float(median), float(sigma), dtype),
    "geometric": lambda g, shape, dtype, p: g.geometric(shape, float(p), dtype),
    "bernoulli": lambda g, shape, dtype, p, axes=None: _real(dtype, p)
    and g.bernoulli(float(p) if axes is None else _host(p).transpose(axes), shape, dtype),
}
_filler("uniform", "Filled with uniform numbers on [from, to).", "from > to", **{"from": 0.0, "to": 1.0})
_filler("normal", "Filled with normal numbers.", "std < 0", mean=0.0, std=1.0)
_filler("log_normal", "Filled with numbers whose logarithm is normal.", "std ≤ 0", mean=1.0, std=2.0)
_filler("exponential", "Filled with exponential numbers of the mean 1 / lambd.", "lambd ≤ 0", lambd=1.0)
_filler("cauchy", "Filled with Cauchy numbers.", "sigma ≤ 0", median=0.0, sigma=1.0)
_filler("geometric", "Filled with the number of the first success.", "p outside (0, 1)", p=None)
_filler("bernoulli", "Filled with 1 with probability p, else 0.", "p outside [0, 1]", p=0.5)


@public(function=False)
def random_(input: Tensor, *args: Any, generator: Generator | None = None, to: int | None = None,
            **keywords: Any) -> Tensor:
    """Filled with integers: from args[0] (0) up to, without, args[-1].

    Output: the tensor itself, changed
    Errors: RuntimeError if the upper end is not above the lower, does not fit the dtype, or for a leaf that requires
        grad
    https://pytorch.org/docs → torch.Tensor.random_

    >>> import tensorgrad as torch
    >>> torch.zeros(2).random_(1)
    tensor([0., 0.])
    """
    if is_own(input) and node_of(input) is None:
        named = keywords | ({} if to is None else {"to": to})
        name = "random_" + ("", ".to", ".from")[len(args) + len(named)]
        return _drawn_by_class(name, input, args, named, generator)  # type: ignore[no-any-return]
    low = keywords.get("from")
    if len(args) == 2:
        low, to = args
    elif args:
        low, to = 0 if to is None else args[0], args[0] if to is None else to
    elif to is not None and low is None:
        low = 0
    check_long(*(int(v) for v in (low, to) if v is not None))
    return filled(input, lambda source, shape, dtype, *_: source.random_(shape, dtype, low, to), generator)

