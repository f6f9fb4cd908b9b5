"""Padding, and shuffles of channels and pixels. https://pytorch.org/docs/stable/nn.functional.html#vision-functions"""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ...api._arguments import converted, refuse, refuse_complex32
from ...api._halves import once_rounded
from ...api._kinds import Ints
from ...core.dispatch import xp
from ...core.step_names import called
from ...size import whole
from ...storage.out_of_memory import check_room

__all__ = ["channel_shuffle", "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle"]

pixel_shuffle, pixel_unshuffle = tg.pixel_shuffle, tg.pixel_unshuffle
channel_shuffle = native_channel_shuffle = tg.channel_shuffle


def pad(input: Tensor, pad: Ints, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last axes by (left, right, top, bottom, …); negative widths crop.

    mode: 'constant' (of `value`), 'reflect', 'replicate' or 'circular'.

    Input: (*); for other modes than 'constant', with 1 or 2 dimensions before the 1 to 3 that are padded
    Output: each padded size grows by its two widths
    Errors: NotImplementedError for another mode, or other numbers of dimensions; RuntimeError for an odd number of
        widths, more than two per dimension, a size below 0, widths that reach beyond the input in 'reflect' (its size −
        1) and 'circular' (its size), or a value for other modes; TypeError for widths that are no integers
    https://pytorch.org/docs → torch.nn.functional.pad

    >>> import tensorgrad as torch
    >>> x = torch.tensor([[1., 2., 3.]])
    >>> torch.nn.functional.pad(x, (1, 2)), torch.nn.functional.pad(x, (1, 2), 'reflect')
    (tensor([[0., 1., 2., 3., 0., 0.]]), tensor([[2., 1., 2., 3., 2., 1.]]))
    """
    if mode not in BORDERS and mode != "constant":
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    widths = _widths(input, pad)
    if mode == "constant":
        if any(n + a + b < 0 for n, (a, b) in zip(input.shape[::-1], widths)):
            raise RuntimeError("narrow(): length must be non-negative.")
        padded = ((0, 0),) * (input.ndim - len(widths)) + tuple(widths[::-1])
        value = 0 if value is None else value
        return xp.pad_constant(input, widths=padded, value=converted(value, input.dtype))
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    _check_border(input, widths, mode)
    lengths = [n + before + after for n, (before, after) in zip(input.shape[::-1], widths)]
    check_room((*input.shape[:input.ndim - len(widths)], *lengths[::-1]), input.array.itemsize, "pad")
    out = _bordered(input, widths, mode)
    if out is not input and out.requires_grad:
        kind = {"reflect": "Reflection", "replicate": "Replication"}.get(mode)
        called(out, f"{kind}Pad{len(widths)}DBackward0" if kind else "torch::autograd::CopySlices")
    return out


@once_rounded
def _bordered(input: Any, widths: Any, mode: str) -> Any:
    for i, (before, after) in enumerate(widths):
        if before or after:
            axis = input.ndim - 1 - i
            places = tg.tensor(BORDERS[mode](input.shape[axis], before, after), dtype=tg.int64, device=input.device)
            input = (xp.take_axis if mode == "circular" else xp.border)(input, places, axis=axis)
    return input


def _widths(input: Any, pad: Any) -> list[tuple[int, int]]:
    """Return (before, after) for the last axes, the last one first."""
    for i, n in enumerate(pad):
        if not hasattr(n, "__index__"):
            raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                            f"{type(n).__name__} at pos {i}")
    pad = [n if type(n) is int else whole(n) for n in pad]
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got "
                           f"padding length {len(pad)} and input of dimension {input.ndim}")
    return list(zip(pad[::2], pad[1::2], strict=True))


def _check_border(input: Any, widths: Any, mode: str) -> None:
    n = len(widths)
    if mode != "circular":
        kernel = f"{'reflection' if mode == 'reflect' else 'replication'}_pad{n}d"
        refuse(input, "b", kernel)
        refuse_complex32(input, kernel)
    if not 1 <= n <= 3 or input.ndim not in (n + 1, n + 2):
        raise NotImplementedError(f"Padding size {2 * n} is not supported for {input.ndim}D input tensor.")
    if 0 in input.shape[-n - 1 if input.ndim == n + 1 else -n - 1:]:
        raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other "
                           "non-zero dimensions for input, but "
                           f"got: {list(input.shape)}")
    for i, (before, after) in enumerate(widths):
        size, axis = input.shape[-1 - i], input.ndim - 1 - i
        if mode == "reflect" and max(before, after) >= size:
            raise RuntimeError(f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input "
                               f"dimension, but got: padding ({before}, "
                               f"{after}) at dimension {axis} of input {list(input.shape)}")
        if mode == "circular" and max(before, after) > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0 or (size + before + after == 0 and mode != "circular"):
            raise RuntimeError(f"input ({'WHD'[i]}: {size}) is too small. Calculated output {'WHD'[i]}: "
                               f"{size + before + after}"
                               if mode != "circular" else "Negative padding value is resulting in an empty dimension")


def wrapped(i: int, n: int, start: int) -> int:
    """Return the index i, wrapped circularly into the n elements from `start` on that cropping left."""
    return start + i % n


# The index into an axis of length n for each index of the padded one.
BORDERS = {
    "reflect": lambda n, a, b: [abs(i) if i < n else 2 * (n - 1) - i for i in range(-a, n + b)],
    "replicate": lambda n, a, b: [min(max(i, 0), n - 1) for i in range(-a, n + b)],
    "circular": lambda n, a, b: [wrapped(i, n + min(a, 0) + min(b, 0), max(-a, 0))
                                 for i in range(-max(a, 0), n + min(a, 0) + b)],
}
