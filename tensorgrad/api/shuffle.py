"""Channels and places that change roles. https://pytorch.org/docs/stable/nn.functional.html#vision-functions"""
from __future__ import annotations

from operator import index
from typing import Any

from .._tensor import Tensor
from ..core.dispatch import xp
from ..core.formats import in_channels_last
from ._arguments import converted, refuse_complex32
from ._kinds import Index, Ints, Number
from ._register import public


def _apart(out: Any, input: Any) -> Any:
    """Return the result, laid out like the input, and copied if it shares the input's memory."""
    if in_channels_last(input):
        return xp.channels_last(out)
    return xp.clone(out) if out._storage is input._storage else out


@public(method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, C·r², H, W) → (…, C, H·r, W·r). https://pytorch.org/docs → torch.nn.functional.pixel_shuffle

    >>> import tensorgrad as torch
    >>> torch.pixel_shuffle(torch.arange(4.).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    if input.ndim < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with "
                           f"{input.ndim} dimension(s)")
    if upscale_factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}")
    refuse_complex32(input, "pixel_shuffle")
    r, (*lead, channels, height, width) = upscale_factor, input.shape
    if channels % (r * r):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                           f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}")
    n = len(lead)
    parts = input.reshape(*lead, channels // (r * r), r, r, height, width)
    return _apart(parts.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, channels // (r * r),
                                                                                  height * r, width * r), input)


@public(method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, C, H·r, W·r) → (…, C·r², H, W): undoes pixel_shuffle.

    https://pytorch.org/docs → torch.nn.functional.pixel_unshuffle

    >>> import tensorgrad as torch
    >>> torch.pixel_unshuffle(torch.arange(4.).reshape(1, 2, 2), 2).shape
    torch.Size([4, 1, 1])
    """
    if input.ndim < 3:
        raise RuntimeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
                           f"{input.ndim} dimension(s)")
    if downscale_factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {downscale_factor}")
    refuse_complex32(input, "pixel_unshuffle")
    r, (*lead, channels, height, width) = downscale_factor, input.shape
    for size, name, axis in ((height, "height", 2), (width, "width", 1)):
        if size % r:
            raise RuntimeError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                               f"input.size(-{axis})={size} is not divisible by {r}")
    n = len(lead)
    parts = input.reshape(*lead, channels, height // r, r, width // r, r)
    return _apart(parts.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, channels * r * r, height // r,
                                                                                  width // r), input)


@public("native_channel_shuffle", method=False)
def channel_shuffle(input: Tensor, groups: Index) -> Tensor:
    """Channels dealt out, so that each group gets some of every group.

    https://pytorch.org/docs → torch.nn.functional.channel_shuffle

    >>> import tensorgrad as torch
    >>> torch.channel_shuffle(torch.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError("Number of groups to divide channels in must be positive. Value of groups:" + str(groups))
    refuse_complex32(input, "channel_shuffle")
    n, channels, *rest = input.shape
    if channels % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {channels} channels and {groups} "
                           f"groups.")
    return _apart(input.reshape(n, groups, channels // groups, *rest).transpose(1, 2).reshape(input.shape), input)


@public(method=False)
def constant_pad_nd(input: Tensor, pad: Ints, value: Number = 0) -> Tensor:
    """A border of one value, for the last axes first: (left, right, top, bottom, …).

    https://pytorch.org/docs → torch.nn.functional.pad

    >>> import tensorgrad as torch
    >>> torch.constant_pad_nd(torch.ones(2), (1, 2), 7)
    tensor([7., 1., 1., 7., 7.])
    """
    pad = tuple(map(index, pad))
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError("Length of pad should be no more than twice the number of dimensions of the input. Pad "
                           f"length is {len(pad)} while the input has {input.ndim} dimensions.")
    pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    widths = ((0, 0),) * (input.ndim - len(pairs)) + tuple(pairs)
    for i, (n, (a, b)) in enumerate(zip(input.shape, widths, strict=True)):
        if n + a + b < 0:
            raise RuntimeError(f"The input size {n}, plus negative padding {a} and {b} resulted in a negative output "
                               f"size, which is invalid. Check dimension {i} of your input.")
    return xp.pad_constant(input, widths=widths, value=converted(value, input.dtype))
