"""Pooling: reduce windows of a fixed size, windows for a fixed output size, or windows of random sizes to a number
each."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import functional as F
from .utils import Functional, PerDimension, _ntuple, _single, named, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


class _Pool(PerDimension, Functional):
    """Base of pooling layers: `_function` names the function; the stride is by default the kernel's size."""

    _function: str

    def _keep(self, kernel_size, stride, **others):
        super()._keep(kernel_size=kernel_size, stride=kernel_size if stride is None else stride, **others)


# ── maximum ───────────────────────────────────────────────────────────────────────────────────
class _MaxPoolNd(_Pool):
    _doc = """The largest element of each window (torch.nn.{name}).

    An axis of length L gets length `(L + 2*padding - dilation*(kernel_size - 1) - 1) / stride + 1`.

    Parameters:
        kernel_size: int or tuple: required
        stride: int or tuple: kernel_size
        padding: int or tuple: 0, with minus infinity, at most half of the kernel
        dilation: int or tuple: 1
        return_indices: bool: False, also return where the elements were, for MaxUnpool{n}d
        ceil_mode: bool: False, round the length up
    Input: (N, C, {axes}) or (C, {axes})
    Output: (N, C, {axes}) or (C, {axes}); with return_indices a pair of these
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(3, stride=2)(torch.ones(2, 4, {each:9})).shape
    torch.Size([2, 4, {each:4}])
    """

    __init__ = settings("kernel_size", stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False)

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, self._function)
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
                    return_indices=self.return_indices)

    def extra_repr(self) -> str:
        return named(self, "kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPoolNd, dims=1): _function = "max_pool1d"
class MaxPool2d(_MaxPoolNd, dims=2): _function = "max_pool2d"
class MaxPool3d(_MaxPoolNd, dims=3): _function = "max_pool3d"


class _MaxUnpoolNd(_Pool):
    _doc = """Puts maxima back where they were, among zeros (torch.nn.{name}).

    An axis of length L gets length `(L - 1)*stride - 2*padding + kernel_size`, unless output_size says otherwise.

    Parameters:
        kernel_size: int or tuple: required
        stride: int or tuple: kernel_size
        padding: int or tuple: 0
    Input: maxima and indices, both (N, C, {axes}) or (C, {axes}); then an output_size, if wanted
    Output: (N, C, {axes}) or (C, {axes})
    Weights: none

    >>> import tensorgrad as torch
    >>> maxima, indices = torch.nn.MaxPool{n}d(2, return_indices=True)(torch.ones(2, 4, {each:6}))
    >>> torch.nn.{name}(2)(maxima, indices).shape
    torch.Size([2, 4, {each:6}])
    """

    __init__ = settings("kernel_size", stride=None, padding=0)

    def _keep(self, **sizes):
        super()._keep(**sizes)
        for name in sizes:
            setattr(self, name, _ntuple(self._dims)(getattr(self, name)))

    def forward(self, input: Tensor, indices: Any, output_size: Any = None) -> Tensor:
        return getattr(F, self._function)(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd, dims=1): _function = "max_unpool1d"
class MaxUnpool2d(_MaxUnpoolNd, dims=2): _function = "max_unpool2d"
class MaxUnpool3d(_MaxUnpoolNd, dims=3): _function = "max_unpool3d"


# ── mean and power mean ───────────────────────────────────────────────────────────────────────
class _AvgPoolNd(_Pool):
    _doc = """The mean of each window (torch.nn.{name}).

    An axis of length L gets length `(L + 2*padding - kernel_size) / stride + 1`.

    Parameters:
        kernel_size: int or tuple: required
        stride: int or tuple: kernel_size
        padding: int or tuple: 0, with zeros, at most half of the kernel
        ceil_mode: bool: False, round the length up
        count_include_pad: bool: True, the padding's zeros count in the mean
        divisor_override: int: None, divide by this instead of the window's size (AvgPool2d, AvgPool3d)
    Input: (N, C, {axes}) or (C, {axes})
    Output: (N, C, {axes}) or (C, {axes})
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(3, stride=2)(torch.ones(2, 4, {each:9})).shape
    torch.Size([2, 4, {each:4}])
    """

    __init__ = settings("kernel_size", stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                        divisor_override=None)

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, self._function)
        return pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                    self.divisor_override)

    def extra_repr(self) -> str:
        return named(self, "kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd, dims=1):
    __init__ = settings("kernel_size", stride=None, padding=0, ceil_mode=False, count_include_pad=True)

    def _keep(self, **values):
        super()._keep(**values)
        for name in ("kernel_size", "stride", "padding"):
            setattr(self, name, _single(getattr(self, name)))

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd, dims=2): _function = "avg_pool2d"
class AvgPool3d(_AvgPoolNd, dims=3): _function = "avg_pool3d"


class _LPPoolNd(PerDimension, Functional):
    _doc = """The p-norm of each window: `sum(x**p) ** (1/p)` (torch.nn.{name}).

    Parameters:
        norm_type: float: required, p; infinity is MaxPool{n}d
        kernel_size: int or tuple: required
        stride: int or tuple: kernel_size
        ceil_mode: bool: False, round the length up
    Input: (N, C, {axes}) or (C, {axes})
    Output: (N, C, {axes}) or (C, {axes})
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(2, 3, stride=2)(torch.ones(2, 4, {each:9})).shape
    torch.Size([2, 4, {each:4}])
    """

    __init__ = settings("norm_type", "kernel_size", stride=None, ceil_mode=False)

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, self._function)
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd, dims=1): _function = "lp_pool1d"
class LPPool2d(_LPPoolNd, dims=2): _function = "lp_pool2d"
class LPPool3d(_LPPoolNd, dims=3): _function = "lp_pool3d"


# ── windows by the size of the output ─────────────────────────────────────────────────────────
class _FractionalMaxPoolNd(PerDimension, Functional):
    _doc = """The largest element of each window, windows being placed at random (torch.nn.{name}).

    The output has a given size; the places of the windows are drawn anew in each call (Graham, 2014).

    Parameters:
        kernel_size: int or tuple: required
        output_size: int or tuple: None, this or output_ratio
        output_ratio: float or tuple: None, output size over input size, between 0 and 1
        return_indices: bool: False, also return where the elements were
    Input: (N, C, {axes}) or (C, {axes})
    Output: (N, C, *output_size) or (C, *output_size); with return_indices a pair of these
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(2, output_size=5)(torch.ones(2, 4, {each:9})).shape
    torch.Size([2, 4, {each:5}])
    """

    __init__ = settings("kernel_size", output_size=None, output_ratio=None, return_indices=False, _random_samples=None)

    def _keep(self, kernel_size, output_size, output_ratio, return_indices, _random_samples):
        name, sizes = f"FractionalMaxPool{self._dims}d", _ntuple(self._dims)
        if self._dims == 3 and min(sizes(kernel_size)) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.register_buffer("_random_samples", _random_samples)
        super()._keep(
            kernel_size=sizes(kernel_size),
            return_indices=return_indices,
            output_size=None if output_size is None else sizes(output_size),
            output_ratio=None if output_ratio is None else sizes(output_ratio),
        )
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, self._function)
        return pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                    _random_samples=self._random_samples)

    def extra_repr(self) -> str:
        return ""


class FractionalMaxPool2d(_FractionalMaxPoolNd, dims=2): _function = "fractional_max_pool2d"
class FractionalMaxPool3d(_FractionalMaxPoolNd, dims=3): _function = "fractional_max_pool3d"


class _AdaptiveMaxPoolNd(PerDimension, Functional):
    _doc = """The largest element of each window, windows being as large as the output asks (torch.nn.{name}).

    Along an axis of length L, window i of M runs from `floor(i*L/M)` to `ceil((i + 1)*L/M)`.

    Parameters:
        output_size: int, None or tuple: required, None for the input's
        return_indices: bool: False, also return where the elements were, for MaxUnpool{n}d
    Input: (N, C, {axes}) or (C, {axes})
    Output: (N, C, *output_size) or (C, *output_size); with return_indices a pair of these
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(5)(torch.ones(2, 4, {each:9})).shape
    torch.Size([2, 4, {each:5}])
    """

    __init__ = settings("output_size", return_indices=False)

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return named(self, "output_size")


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, dims=1): _function = "adaptive_max_pool1d"
class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, dims=2): _function = "adaptive_max_pool2d"
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, dims=3): _function = "adaptive_max_pool3d"


class _AdaptiveAvgPoolNd(PerDimension, Functional):
    _doc = """The mean of each window, windows being as large as the output asks (torch.nn.{name}).

    Along an axis of length L, window i of M runs from `floor(i*L/M)` to `ceil((i + 1)*L/M)`.

    Parameters:
        output_size: int, None or tuple: required, None for the input's
    Input: (N, C, {axes}) or (C, {axes})
    Output: (N, C, *output_size) or (C, *output_size)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(5)(torch.ones(2, 4, {each:9})).shape
    torch.Size([2, 4, {each:5}])
    """

    __init__ = settings("output_size")

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, dims=1): _function = "adaptive_avg_pool1d"
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, dims=2): _function = "adaptive_avg_pool2d"
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, dims=3): _function = "adaptive_avg_pool3d"
