"""Discrete Fourier transforms. https://pytorch.org/docs/stable/fft.html

All take `norm`: who divides by the length, the inverse ('backward', the default), the transform itself ('forward'), or
    both by its root ('ortho').
"""
from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..ops.fourier import SWAPPED
from ._arguments import check_tensor, floating, in_dtype, normalize_dim
from ._kinds import Device, Dtype, Index, Ints1, Layout
from ._register import _with_out, _with_synonyms
from .creation import as_leaf
from .sequences import arange

FFT: dict[str, Callable[..., Any]] = {}     # the names of `torch.fft`


def fft_function(raw: Any) -> Any:
    """Attach a name of `torch.fft`."""
    FFT[raw.__name__] = found = _with_out(_with_synonyms(raw, ("input", "dim")), key=f"fft_{raw.__name__}")
    return found


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _norm_of(input: Any, norm: Any, name: str) -> str:
    """The norm, of which 'backward' is the default."""
    check_tensor(input, f"fft_{name}", "input", 1)
    if isinstance(norm, bytes):
        norm = norm.decode(errors="replace")
    if norm is not None and not isinstance(norm, str):
        raise TypeError(f"fft_{name}(): argument 'norm' must be str, not {type(norm).__name__}")
    if norm is not None and norm not in SWAPPED:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm or "backward"


def _computable(input: Any) -> Any:
    """The input in a floating point or complex dtype; RuntimeError for half precision."""
    if input.dtype is dtypes.complex32:
        raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
    if input.array.dtype.itemsize == 2 and input.array.dtype.kind in "fV":
        raise RuntimeError(f"Unsupported dtype {_kind(input)}")
    return floating(input)


def _kind(input: Any) -> str:
    return SCALAR_TYPES[input.dtype.name]


def _complex(x: Any) -> Any:
    return (x if x.dtype.is_complex else in_dtype(x, dtypes.complex128 if x.array.dtype.itemsize == 8
                                                         else dtypes.complex64))


def _axis(x: Any, dim: int) -> int:
    if not x.array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return normalize_dim(dim, x.array.ndim)


def _length(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def resized(x: Any, sizes: Any, axes: Any) -> Any:
    """The first elements along axes, or zeros after the last."""
    wanted = dict(zip(axes, sizes, strict=True))
    widths = tuple((0, wanted.get(a, n) - n) for a, n in enumerate(x.array.shape))
    return xp.pad_constant(x, widths=widths) if any(after for _, after in widths) else x


def _axes_and_sizes(x: Any, s: Any, dim: Any, last_is_half: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes to transform, and how many points there are to be along each; the last may hold the half of a
    spectrum.
    """
    ndim, s = x.array.ndim, (s,) if isinstance(s, int) else s
    if dim is not None:
        axes = tuple(_axis(x, d) for d in ((dim,) if isinstance(dim, int) else dim))
        if len(set(axes)) < len(axes):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(axes):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    else:
        if s is not None and len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        axes = tuple(range(ndim - (ndim if s is None else len(s)), ndim))
    given = [-1] * len(axes) if s is None else list(s)
    sizes = [x.array.shape[a] if n == -1 else n for a, n in zip(axes, given, strict=True)]
    if last_is_half and axes and given[-1] == -1:
        sizes[-1] = 2 * (sizes[-1] - 1)
    return axes, tuple(map(_length, map(index, sizes)))


# ── along one axis ────────────────────────────────────────────────────────────────────────────────────────────────────


def _along_one(input: Any, n: Any, dim: int, norm: Any, name: str, inverse: bool) -> Any:
    norm = _norm_of(input, norm, name)
    x = _computable(input)
    axis = _axis(x, dim)
    size = _length(x.array.shape[axis] if n is None else n)
    return xp.fourier_transform(resized(x, (size,), (axis,)), axes=(axis,), inverse=inverse, norm=norm)


@fft_function
def fft(input: Tensor, n: Index | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """out[k] = Σ x[j]·exp(−2πi·jk/n) along an axis, cut or filled with zeros to n points.

    Input: (*, m, *), any dtype
    Output: (*, n, *), complex; n is m unless given
    Errors: RuntimeError for n < 1, another norm, or half precision; IndexError if dim is out of range, or without
        dimensions
    https://pytorch.org/docs → torch.fft.fft

    >>> import tensorgrad as torch
    >>> torch.fft.fft(torch.tensor([1., 2., 3., 4.]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _along_one(input, n, dim, norm, "fft", False)


@fft_function
def ifft(input: Tensor, n: Index | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """out[j] = Σ x[k]·exp(2πi·jk/n) / n: the inverse of `fft`.

    Input: (*, m, *), any dtype
    Output: (*, n, *), complex; n is m unless given
    Errors: RuntimeError for n < 1, another norm, or half precision; IndexError if dim is out of range, or without
        dimensions
    https://pytorch.org/docs → torch.fft.ifft

    >>> import tensorgrad as torch
    >>> torch.fft.ifft(torch.tensor([4., 0., 0., 0.])).real
    tensor([1., 1., 1., 1.])
    """
    return _along_one(input, n, dim, norm, "ifft", True)


def _to_half(input: Any, n: Any, dim: int, norm: Any, name: str) -> Any:
    norm = _norm_of(input, norm, name)
    if input.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {_kind(input)}")
    x = _computable(input)
    axis = _axis(x, dim)
    size = _length(x.array.shape[axis] if n is None else n)
    norm = norm if name == "rfft" else SWAPPED[norm]
    return xp.half_spectrum(resized(x, (size,), (axis,)), axis=axis, norm=norm)


def _from_half(input: Any, n: Any, dim: int, norm: Any, name: str) -> Any:
    norm = _norm_of(input, norm, name)
    x = _computable(input)
    x, axis = _complex(x), _axis(x, dim)
    size = _length(2 * (x.array.shape[axis] - 1) if n is None else n)
    x = resized(x, (size // 2 + 1,), (axis,))
    if name == "hfft":
        x, norm = xp.conj(x), SWAPPED[norm]
    return xp.from_half_spectrum(x, n=size, axis=axis, norm=norm)


@fft_function
def rfft(input: Tensor, n: Index | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`fft` of real numbers: the first n/2 + 1 results, whose conjugates the others are.

    Input: (*, m, *), real numbers
    Output: (*, n // 2 + 1, *), complex; n is m unless given
    Errors: RuntimeError for n < 1, another norm, or input in complex numbers or half precision; IndexError if dim is
        out of range, or without dimensions
    https://pytorch.org/docs → torch.fft.rfft

    >>> import tensorgrad as torch
    >>> torch.fft.rfft(torch.tensor([1., 2., 3., 4.]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _to_half(input, n, dim, norm, "rfft")


@fft_function
def irfft(input: Tensor, n: Index | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """n real numbers from the first half of their `fft`; n is even by default.

    Input: (*, m, *), any dtype: n // 2 + 1 results
    Output: (*, n, *), real; n is 2 (m − 1) unless given
    Errors: RuntimeError for n < 1, another norm, or half precision; IndexError if dim is out of range, or without
        dimensions
    https://pytorch.org/docs → torch.fft.irfft

    >>> import tensorgrad as torch
    >>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1., 2., 3., 4.])))
    tensor([1., 2., 3., 4.])
    """
    return _from_half(input, n, dim, norm, "irfft")


@fft_function
def hfft(input: Tensor, n: Index | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The n real numbers that are the `fft` of a signal of which this is the first half, and its conjugate the other.

    Input: (*, m, *), any dtype: n // 2 + 1 results
    Output: (*, n, *), real; n is 2 (m − 1) unless given
    Errors: RuntimeError for n < 1, another norm, or half precision; IndexError if dim is out of range, or without
        dimensions
    https://pytorch.org/docs → torch.fft.hfft

    >>> import tensorgrad as torch
    >>> torch.fft.hfft(torch.tensor([1., 2., 1.]))
    tensor([ 6.,  0., -2.,  0.])
    """
    return _from_half(input, n, dim, norm, "hfft")


@fft_function
def ihfft(input: Tensor, n: Index | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first half of the `ifft` of real numbers: the inverse of `hfft`.

    Input: (*, m, *), real numbers
    Output: (*, n // 2 + 1, *), complex; n is m unless given
    Errors: RuntimeError for n < 1, another norm, or input in complex numbers or half precision; IndexError if dim is
        out of range, or without dimensions
    https://pytorch.org/docs → torch.fft.ihfft

    >>> import tensorgrad as torch
    >>> torch.fft.ihfft(torch.tensor([6., 0., -2., 0.])).real
    tensor([1., 2., 1.])
    """
    return xp.conj(_to_half(input, n, dim, norm, "ihfft"))


# ── along several axes ────────────────────────────────────────────────────────────────────────────────────────────────


def _along_many(input: Any, s: Any, dim: Any, norm: Any, name: str, inverse: bool) -> Any:
    norm = _norm_of(input, norm, name)
    axes, sizes = _axes_and_sizes(input, s, dim)
    x = resized(_computable(input), sizes, axes)
    return xp.fourier_transform(x, axes=axes, inverse=inverse, norm=norm) if axes else _complex(x)


@fft_function
def fftn(input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None) -> Tensor:
    """`fft` along several axes, or all; cut or filled with zeros to s points.

    Input: (*), any dtype
    Output: the input's shape, with s along the axes dim; complex
    Errors: RuntimeError for sizes < 1, more sizes than dimensions, unlike numbers of s and dim, a dim twice, another
        norm, or half precision; IndexError if a dim is out of range
    https://pytorch.org/docs → torch.fft.fftn

    >>> import tensorgrad as torch
    >>> torch.fft.fftn(torch.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _along_many(input, s, dim, norm, "fftn", False)


@fft_function
def ifftn(input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None) -> Tensor:
    """`ifft` along several axes, or all.

    Input: (*), any dtype
    Output: the input's shape, with s along the axes dim; complex
    Errors: RuntimeError for sizes < 1, more sizes than dimensions, unlike numbers of s and dim, a dim twice, another
        norm, or half precision; IndexError if a dim is out of range
    https://pytorch.org/docs → torch.fft.ifftn

    >>> import tensorgrad as torch
    >>> torch.fft.ifftn(torch.ones(2, 2)).real
    tensor([[1., 0.],
            [0., 0.]])
    """
    return _along_many(input, s, dim, norm, "ifftn", True)


def _to_half_of_many(input: Any, s: Any, dim: Any, norm: Any, name: str) -> Any:
    norm = _norm_of(input, norm, name)
    if input.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {_kind(input)}" if name == "ihfftn" else
                           f"rfftn expects a real-valued input tensor, but got {_kind(input)}")
    axes, sizes = _axes_and_sizes(input, s, dim)
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")
    norm = SWAPPED[norm] if name == "ihfftn" else norm
    half = xp.half_spectrum(resized(_computable(input), sizes, axes), axis=axes[-1], norm=norm)
    return (xp.fourier_transform(half, axes=axes[:-1], norm=norm, last=axes[-1] if name == "rfftn" else None)
            if len(axes) > 1 else half)


def _from_half_of_many(input: Any, s: Any, dim: Any, norm: Any, name: str) -> Any:
    norm = _norm_of(input, norm, name)
    axes, sizes = _axes_and_sizes(input, s, dim, last_is_half=True)
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = resized(_complex(_computable(input)), (*sizes[:-1], sizes[-1] // 2 + 1), axes)
    if name == "hfftn":
        x, norm = xp.conj(x), SWAPPED[norm]
    if len(axes) > 1:
        x = xp.fourier_transform(x, axes=axes[:-1], inverse=True, norm=norm)
    return xp.from_half_spectrum(x, n=sizes[-1], axis=axes[-1], norm=norm)


@fft_function
def rfftn(input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None) -> Tensor:
    """`fftn` of real numbers: the first half along the last axis.

    Input: (*), real numbers
    Output: the input's shape, with s along the axes dim, the last of these with s // 2 + 1; complex
    Errors: RuntimeError for sizes < 1, more sizes than dimensions, unlike numbers of s and dim, a dim twice, another
        norm, or input in complex numbers or half precision; IndexError if a dim is out of range
    https://pytorch.org/docs → torch.fft.rfftn

    >>> import tensorgrad as torch
    >>> torch.fft.rfftn(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """
    return _to_half_of_many(input, s, dim, norm, "rfftn")


@fft_function
def irfftn(input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None) -> Tensor:
    """Real numbers from the first half of their `fftn` along the last axis.

    Input: (*), any dtype
    Output: the input's shape, with s along the axes dim, the last of these with 2 (m − 1) for its m unless given; real
    Errors: RuntimeError for sizes < 1, more sizes than dimensions, unlike numbers of s and dim, a dim twice, another
        norm, or half precision; IndexError if a dim is out of range
    https://pytorch.org/docs → torch.fft.irfftn

    >>> import tensorgrad as torch
    >>> torch.fft.irfftn(torch.fft.rfftn(torch.ones(2, 4)))
    tensor([[1., 1., 1., 1.],
            [1., 1., 1., 1.]])
    """
    return _from_half_of_many(input, s, dim, norm, "irfftn")


@fft_function
def hfftn(input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None) -> Tensor:
    """The real `fftn` of a signal of which this is the first half along the last axis.

    Input: (*), any dtype
    Output: the input's shape, with s along the axes dim, the last of these with 2 (m − 1) for its m unless given; real
    Errors: RuntimeError for sizes < 1, more sizes than dimensions, unlike numbers of s and dim, a dim twice, another
        norm, or half precision; IndexError if a dim is out of range
    https://pytorch.org/docs → torch.fft.hfftn

    >>> import tensorgrad as torch
    >>> torch.fft.hfftn(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """
    return _from_half_of_many(input, s, dim, norm, "hfftn")


@fft_function
def ihfftn(input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None) -> Tensor:
    """The first half along the last axis of the `ifftn` of real numbers: the inverse of `hfftn`.

    Input: (*), real numbers
    Output: the input's shape, with s along the axes dim, the last of these with s // 2 + 1; complex
    Errors: RuntimeError for sizes < 1, more sizes than dimensions, unlike numbers of s and dim, a dim twice, another
        norm, or input in complex numbers or half precision; IndexError if a dim is out of range
    https://pytorch.org/docs → torch.fft.ihfftn

    >>> import tensorgrad as torch
    >>> torch.fft.ihfftn(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """
    return xp.conj(_to_half_of_many(input, s, dim, norm, "ihfftn"))


def _of_two_axes(many: Any) -> None:
    """The form of a transform along the last two axes."""
    name = many.__name__

    def function(input: Tensor, s: Ints1 | None = None, dim: Ints1 = (-2, -1), norm: str | None = None) -> Tensor:
        if dim is None:
            raise TypeError(f"fft_{name[:-1]}2(): argument 'dim' must be tuple of ints, not NoneType")
        return many(input, s, dim, norm)
    function.__name__ = function.__qualname__ = name[:-1] + "2"
    function.__doc__ = (f"`{name}` along two axes, the last two unless told.\n\nInput, output and errors are those of "
                        f"`{name}`; TypeError if dim is None.\nhttps://pytorch.org/docs → torch.fft.{name[:-1]}2\n\n"
                        f">>> import tensorgrad as torch\n>>> x = torch.ones(3, 3)\n>>> "
                        f"torch.fft.{name[:-1]}2(x).equal(torch.fft.{name}(x))\nTrue\n")
    globals()[function.__name__] = fft_function(function)


for _many in (fftn, ifftn, rfftn, irfftn, hfftn, ihfftn):
    _of_two_axes(_many)


# ── frequencies ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _frequencies(steps: Any, n: int, d: float, dtype: Any, device: Any, requires_grad: bool) -> Any:
    step = n * d
    return as_leaf(xp.multiply(steps(dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype), device),
                               1 / step if step else float("inf")), requires_grad)


def _check_frequencies(n: Any, dtype: Any, name: str) -> None:
    if not hasattr(n, "__index__"):
        raise TypeError(f"fft_{name}(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if dtype is not None and dtypes.as_dtype(dtype).category < dtypes.FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if n < 0 and name == "fftfreq":
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")


@fft_function
def fftfreq(n: int, d: float = 1.0, *, dtype: Dtype | None = None, layout: Layout | None = None,
            device: Device | None = None, requires_grad: bool | None = False,
            pin_memory: bool | None = False) -> Tensor:
    """The frequencies of the results of `fft` of n samples at distances d: 0, 1, …, −2, −1 over n·d.

    Output: (n), in cycles per unit of d
    Errors: RuntimeError for a negative n or a dtype of integers; TypeError for an n that is no integer
    https://pytorch.org/docs → torch.fft.fftfreq

    >>> import tensorgrad as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    d = float(d)
    _check_frequencies(n, dtype, "fftfreq")

    def steps(dtype: Any, device: Any) -> Any:
        return xp.concat([arange(0, (n + 1) // 2, dtype=dtype, device=device),
                          arange(-(n // 2), 0, dtype=dtype, device=device)], axis=0)
    return _frequencies(steps, n, d, dtype, device, requires_grad)


@fft_function
def rfftfreq(n: int, d: float = 1.0, *, dtype: Dtype | None = None, layout: Layout | None = None,
             device: Device | None = None, requires_grad: bool | None = False,
             pin_memory: bool | None = False) -> Tensor:
    """The frequencies of the results of `rfft` of n samples at distances d.

    Output: (n // 2 + 1), in cycles per unit of d
    Errors: RuntimeError for a negative n or a dtype of integers; TypeError for an n that is no integer
    https://pytorch.org/docs → torch.fft.rfftfreq

    >>> import tensorgrad as torch
    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    d = float(d)
    _check_frequencies(n, dtype, "rfftfreq")
    return _frequencies(lambda dtype, device: arange(int(n / 2) + 1, dtype=dtype, device=device), n, d, dtype, device,
                        requires_grad)


def _shifted(input: Any, dim: Any, back: bool) -> Any:
    ndim = input.array.ndim
    axes = range(ndim) if dim is None else [normalize_dim(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim)]
    if not len(axes):
        raise RuntimeError("`shifts` required")
    shifts = tuple((input.array.shape[a] + int(back)) // 2 for a in axes)
    return xp.roll(input, shift=shifts, axis=tuple(axes))


def fftshift(input: Tensor, dim: Ints1 | None = None) -> Tensor:
    """The results of `fft` with the frequency zero in the middle.

    Input: (*), any dtype
    Output: the input's shape, shifted along all axes or those of dim
    Errors: IndexError if a dim is out of range; RuntimeError without dimensions
    https://pytorch.org/docs → torch.fft.fftshift

    >>> import tensorgrad as torch
    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    check_tensor(input, "fft_fftshift", "input", 1)
    return _shifted(input, dim, False)


def ifftshift(input: Tensor, dim: Ints1 | None = None) -> Tensor:
    """The inverse of `fftshift`.

    Input: (*), any dtype
    Output: the input's shape, shifted along all axes or those of dim
    Errors: IndexError if a dim is out of range; RuntimeError without dimensions
    https://pytorch.org/docs → torch.fft.ifftshift

    >>> import tensorgrad as torch
    >>> torch.fft.ifftshift(torch.tensor([1, 2, 3]))
    tensor([2, 3, 1])
    """
    check_tensor(input, "fft_ifftshift", "input", 1)
    return _shifted(input, dim, True)


FFT.update(fftshift=_with_synonyms(fftshift, ("input", "dim")), ifftshift=_with_synonyms(ifftshift, ("input", "dim")))
