"""Convolutions and transposed convolutions over one, two or three axes, with lazy variants."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ...ops.windows import input_length
from .. import functional as F
from .lazy import LazyModuleMixin, declare_later
from .module import Module
from .utils import PerDimension, _ntuple, _reverse_repeat_tuple, changed, declare, named, reset_by_fan_in

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _options(names):
    return "{" + ", ".join(map(repr, names)) + "}"


class _ConvNd(Module):
    """Base of all convolutions: sizes as tuples, checks, weights and `repr`."""

    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
                     "out_channels", "kernel_size"]  # fmt: skip
    padding_mode = "zeros"  # for modules pickled before there was a choice

    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...],
                 padding: str | tuple[int, ...], dilation: tuple[int, ...], transposed: bool,
                 output_padding: tuple[int, ...], groups: int, bias: bool,
                 padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'], device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {_options(('same', 'valid'))}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_options(PADDING_MODES)}, "
                             f"but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = kernel_size, stride, dilation
        self.padding, self.output_padding, self.padding_mode = padding, output_padding, padding_mode
        self.transposed = transposed
        self._reversed_padding_repeated_twice = self._padding_for_pad()
        declare(self, device, dtype, weight=self._weight_shape(), bias=(out_channels,) if bias else None)
        self.reset_parameters()

    def _weight_shape(self):
        outer, inner = self.out_channels, self.in_channels
        if self.transposed:
            outer, inner = inner, outer
        return outer, inner // self.groups, *self.kernel_size

    def _padding_for_pad(self):
        """Return the padding as `F.pad` takes it: last axis first, both sides; 'same' puts the odd one on the right."""
        if self.padding == "valid":
            return [0, 0] * len(self.kernel_size)
        if self.padding != "same":
            return _reverse_repeat_tuple(self.padding, 2)
        totals = [step * (kernel - 1) for step, kernel in zip(self.dilation, self.kernel_size)]
        return [side for total in reversed(totals) for side in (total // 2, total - total // 2)]

    def reset_parameters(self) -> None:
        reset_by_fan_in(self.weight, self.bias)

    def extra_repr(self) -> str:
        nothing, once = (0,) * len(self.kernel_size), (1,) * len(self.kernel_size)
        return (
            f"{self.in_channels}, {self.out_channels}, {named(self, 'kernel_size', 'stride')}"
            + changed(self, padding=nothing, dilation=once, output_padding=nothing, groups=1)
            + (", bias=False" if self.bias is None else "")
            + changed(self, padding_mode="zeros")
        )


class _Conv(PerDimension, _ConvNd):
    """Base of the forward convolutions; `_function` names the function."""

    _doc = """Cross-correlation over {n} axes (torch.nn.Conv{n}d).

    `y[n, o] = bias[o] + sum over c of weight[o, c] * x[n, c]`, where * slides the kernel along the axes; an axis of
    length L gets length `(L + 2*padding - dilation*(kernel_size - 1) - 1) // stride + 1`. Weight and bias are drawn
    from U(-k, k) with k = 1/sqrt(in_channels / groups * kernel elements).

    Parameters:
        in_channels: int: required, a multiple of groups
        out_channels: int: required, a multiple of groups
        kernel_size: int or tuple: required
        stride: int or tuple: 1
        padding: int, tuple, 'same' or 'valid': 0, 'same' only with stride 1
        dilation: int or tuple: 1
        groups: int: 1, inputs and outputs are joined within groups only
        bias: bool: True, add a bias
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular': 'zeros'
        device, dtype: None: the device and dtype of the weights
    Input: (N, in_channels, {axes}) or (in_channels, {axes})
    Output: (N, out_channels, {axes}) or (out_channels, {axes})
    Weights: weight (out_channels, in_channels / groups, *kernel_size), bias (out_channels)

    >>> import tensorgrad as torch
    >>> torch.nn.Conv{n}d(4, 8, 3, stride=2)(torch.ones(2, 4, {each:9})).shape
    torch.Size([2, 8, {each:4}])
    """

    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: Any = 1, bias: bool = True, padding_mode: str = "zeros",
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        sizes = _ntuple(self._dims)
        padding = padding if isinstance(padding, str) else sizes(padding)
        super().__init__(in_channels, out_channels, sizes(kernel_size), sizes(stride), padding, sizes(dilation),
                         False, sizes(0), groups, bias, padding_mode, device, dtype)

    def _conv_forward(self, input, weight, bias):
        convolve, padding = getattr(F, self._function), self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv, dims=1): _function = "conv1d"
class Conv2d(_Conv, dims=2): _function = "conv2d"
class Conv3d(_Conv, dims=3): _function = "conv3d"


class _ConvTransposeNd(_ConvNd):
    """Base of the transposed convolutions: choose among the input sizes that a strided convolution maps to one
    output size."""

    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any, padding: Any,
                 dilation: Any, transposed: Any, output_padding: Any, groups: Any, bias: Any, padding_mode: Any,
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding,
                         groups, bias, padding_mode, device, dtype)

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """Return the padding that turns the smallest possible output into `output_size`, which may include batch and
        channels."""
        if output_size is None:
            return self.output_padding
        lead = 2 if input.dim() == num_spatial_dims + 2 else 1
        if len(output_size) == lead + num_spatial_dims:
            output_size = output_size[lead:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have "
                             f"{num_spatial_dims} or {lead + num_spatial_dims} elements (got {len(output_size)})")
        smallest = list(input_length(input.shape[lead:], kernel_size, stride, padding, dilation or [1] * len(stride)))
        largest = [low + step - 1 for low, step in zip(smallest, stride)]
        if any(not low <= n <= high for low, n, high in zip(smallest, output_size, largest)):
            raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {smallest} "
                             f"to {largest} (for an input of {input.size()[2:]})")
        return [n - low for n, low in zip(output_size, smallest)]


class _ConvTranspose(PerDimension, _ConvTransposeNd):
    """Base of the transposed convolutions; `_function` names the function."""

    _doc = """Transposed convolution over {n} axes (torch.nn.ConvTranspose{n}d): the gradient of Conv{n}d by its input.

    An axis of length L gets length `(L - 1)*stride - 2*padding + dilation*(kernel_size - 1) + output_padding + 1`.
    Weight and bias are drawn from U(-k, k) with k = 1/sqrt(out_channels / groups * kernel elements).

    Parameters:
        in_channels: int: required, a multiple of groups
        out_channels: int: required, a multiple of groups
        kernel_size: int or tuple: required
        stride: int or tuple: 1
        padding: int or tuple: 0, what the convolution to be reversed has padded
        output_padding: int or tuple: 0, added to one side of the output
        groups: int: 1, inputs and outputs are joined within groups only
        bias: bool: True, add a bias
        dilation: int or tuple: 1
        padding_mode: 'zeros': 'zeros'
        device, dtype: None: the device and dtype of the weights
    Input: (N, in_channels, {axes}) or (in_channels, {axes}); then an `output_size`, if wanted
    Output: (N, out_channels, {axes}) or (out_channels, {axes})
    Weights: weight (in_channels, out_channels / groups, *kernel_size), bias (out_channels)

    >>> import tensorgrad as torch
    >>> up = torch.nn.ConvTranspose{n}d(8, 4, 3, stride=2)
    >>> up(torch.ones(2, 8, {each:4})).shape
    torch.Size([2, 4, {each:9}])
    >>> up(torch.ones(2, 8, {each:4}), output_size=({each:10},)).shape
    torch.Size([2, 4, {each:10}])
    """

    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: Any = 1, bias: bool = True, dilation: Any = 1,
                 padding_mode: str = "zeros", device: Device | None = None, dtype: Dtype | None = None) -> None:
        sizes = _ntuple(self._dims)
        super().__init__(in_channels, out_channels, sizes(kernel_size), sizes(stride), sizes(padding), sizes(dilation),
                         True, sizes(output_padding), groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for ConvTranspose{self._dims}d")
        extra = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, self._dims,
                                     self.dilation)
        convolve = getattr(F, self._function)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose, dims=1): _function = "conv_transpose1d"
class ConvTranspose2d(_ConvTranspose, dims=2): _function = "conv_transpose2d"
class ConvTranspose3d(_ConvTranspose, dims=3): _function = "conv_transpose3d"


class _LazyConvXdMixin(LazyModuleMixin):
    """Reads `in_channels` off the first input."""

    _doc = """A convolution over {n} axes that reads `in_channels` off its first input (torch.nn.{name}).

    From then on it is an ordinary module: the one of this name without "Lazy".

    Parameters:
        as the ordinary module: without in_channels
    Input: (N, in_channels, {axes}) or (in_channels, {axes})
    Output: (N, out_channels, {axes}) or (out_channels, {axes})
    Weights: weight and bias as in the ordinary module, once known

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(8, kernel_size=1)(torch.ones(2, 4, {each:9})).shape
    torch.Size([2, 8, {each:9}])
    """

    def _become_lazy(self, out_channels, bias, device, dtype):
        self.out_channels = out_channels
        declare_later(self, device, dtype, "weight", *(["bias"] if bias else []))

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        single, batch = self._dims + 1, self._dims + 2
        if input.dim() not in (single, batch):
            raise RuntimeError(f"Expected {single}D (unbatched) or {batch}D (batched) input to {type(self).__name__}, "
                               f"but got input of size: {input.shape}")
        return input.shape[-single]


class _LazyConv(_LazyConvXdMixin):
    def __init__(self, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: Any = 1, bias: bool = True, padding_mode: str = "zeros", device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._become_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(self, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: Any = 1, bias: bool = True, dilation: Any = 1,
                 padding_mode: str = "zeros", device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode,
                         device, dtype)
        self._become_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d, dims=1): cls_to_become = Conv1d
class LazyConv2d(_LazyConv, Conv2d, dims=2): cls_to_become = Conv2d
class LazyConv3d(_LazyConv, Conv3d, dims=3): cls_to_become = Conv3d
class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d, dims=1): cls_to_become = ConvTranspose1d
class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d, dims=2): cls_to_become = ConvTranspose2d
class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d, dims=3): cls_to_become = ConvTranspose3d
