"""Spectra of short pieces of a signal, and the signal from these.

https://pytorch.org/docs/stable/torch.html#spectral-ops
"""
from __future__ import annotations

import warnings
from typing import Any

from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ..dtype import int64
from ._arguments import check_tensor, is_unknown, promoted, warn
from ._register import public
from .fourier import resized

# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _type_name(x: Any) -> str:
    kind = SCALAR_TYPES[x.dtype.name]
    return f"CPU{kind}Type" if x.dtype.is_complex else f"torch.{kind}Tensor"


def _call(name: str, x: Any, **arguments: Any) -> str:
    """Return the call as PyTorch's errors quote it."""
    def shown(value: Any) -> str:
        if hasattr(value, "array"):
            return f"{_type_name(value)}{{{list(value.array.shape)}}}"
        return str(int(value)) if isinstance(value, bool) else str(value)
    return f"{name}({_type_name(x)}{list(x.array.shape)}, {', '.join(f'{n}={shown(v)}' for n, v in arguments.items())})"


def _is_complex(x: Any) -> bool:
    return x is not None and x.dtype.is_complex


def _window(window: Any, length: int, size: int, like: Any) -> Any:
    """Return the window, or ones without one, centred in `size` places by zero padding."""
    if window is None and length == size:
        return None
    window = (like.new_ones(length, dtype=like.real.dtype if _is_complex(like) else like.dtype) if window is None
              else window)
    before = (size - length) // 2
    return xp.pad_constant(window, widths=((before, size - length - before),))


def _center_padded(x: Any, width: int, mode: str) -> Any:
    """Signals with `width` elements before and after."""
    *lead, size = x.array.shape
    if mode == "constant":
        return xp.pad_constant(x, widths=(*((0, 0) for _ in lead), (width, width)))
    if mode == "circular":
        return xp.concat([x.narrow(-1, size - width, width), x, x.narrow(-1, 0, width)], axis=len(lead))
    places: Any = range(-width, size + width)
    if mode == "replicate":
        places = [min(max(i, 0), size - 1) for i in places]
    elif mode == "reflect":
        if width >= size:
            raise RuntimeError("Argument #4: Padding size should be less than the corresponding input dimension, but "
                               f"got: padding ({width}, {width}) at dimension 2 of input {[1, *x.array.shape]}")
        places = [min(abs(i), 2 * (size - 1) - abs(i)) for i in places]
    else:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return xp.border(x, x.new_tensor(places, dtype=int64), axis=len(lead))


# ── to spectra ────────────────────────────────────────────────────────────────────────────────────────────────────────


@public()
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
    """out[…, k, t] = Σ window[j]·x[t·hop_length + j]·exp(−2πi·jk/n_fft): spectra of pieces of a signal, which `center`
    has around their times.

    hop_length is n_fft // 4 and win_length n_fft unless given.

    Input: (*, L), of 1 or 2 dimensions, floating point or complex; window (win_length)
    Output: (*, n_fft // 2 + 1, T) for real input, (*, n_fft, T) for complex input or onesided=False; (…, 2), real and
        imaginary parts, for return_complex=False; T = 1 + (L − n_fft) // hop_length, where `center` adds n_fft // 2
        places on each side to L
    Errors: RuntimeError for other dtypes or numbers of dimensions, n_fft that is not from 1 to L, hop_length ≤ 0,
        win_length that is not from 1 to n_fft, a window of another length, or real input without return_complex
    https://pytorch.org/docs → torch.stft

    >>> import tensorgrad as torch
    >>> torch.stft(torch.ones(8), n_fft=4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    check_tensor(input, "stft", "input", 1)
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if _unclear(return_complex, input, window):
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further "
                           "require that return_complex=True in a future PyTorch release.")
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    one = input.array.ndim < 2
    x = xp.reshape(input, (1, -1)) if one else input
    if center:
        x = _center_padded(x, n_fft // 2, pad_mode) if n_fft > 1 else xp.contiguous(x)
    elif align_to_window:
        x = (resized(x, (x.array.shape[-1],), (1,)) if length == n_fft
             else _center_padded(x, (n_fft - length) // 2, "constant"))
    quoted = _call("stft", xp.squeeze(x, axis=0) if one else x, n_fft=n_fft, hop_length=hop, win_length=length,
                   window=window, normalized=normalized, onesided=onesided, return_complex=return_complex,
                   align_to_window=align_to_window)
    _check_stft(x, n_fft, hop, length, window, quoted)
    whole = _is_complex(x) or _is_complex(window)
    if onesided and whole:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = xp.unfold(x, axis=1, size=n_fft, step=min(hop, x.array.shape[1] + 1))
    if window is None:
        warn("A window was not provided. A rectangular window will be applied,which is known to cause spectral "
             "leakage. Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce "
             "spectral leakage.To suppress this warning and use a rectangular window, explicitly set "
             "`window=torch.ones(n_fft, device=<device>)`.")
    spread = _window(window, length, n_fft, x)
    if spread is not None:
        frames = xp.multiply(*promoted(frames, spread))
    out = _spectra(frames, "ortho" if normalized else "backward", not whole if onesided is None else onesided)
    out = xp.swapaxes(out, 1, 2)
    out = xp.squeeze(out, axis=0) if one else out
    return out if return_complex or return_complex is None else xp.view_as_real(out)


def _unclear(return_complex: Any, x: Any, window: Any) -> bool:
    return return_complex is None and not _is_complex(x) and not _is_complex(window)


def _spectra(frames: Any, norm: str, half: bool) -> Any:
    from .fourier import fft, rfft
    return (rfft if half else fft)(frames, norm=norm)


def _check_stft(x: Any, n_fft: int, hop: int, length: int, window: Any, quoted: str) -> None:
    size = x.array.shape[-1]
    if x.array.dtype.kind not in "fc":
        raise RuntimeError(f"{quoted} : expected a tensor of floating point or complex values")
    if x.array.ndim > 2:
        raise RuntimeError(f"{quoted} : expected a 1D or 2D tensor")
    if not 0 < n_fft <= size:
        raise RuntimeError(f"{quoted} : expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{quoted} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{quoted} : expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and window.array.shape != (length,):
        raise RuntimeError(f"{quoted} : expected a 1D window tensor of size equal to win_length={length}, but got "
                           f"window with size {list(window.array.shape)}")


# ── from spectra ──────────────────────────────────────────────────────────────────────────────────────────────────────


@public()
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Tensor:
    """The signal whose `stft` is nearest to this: the pieces, windowed again and added up, over the sum of the squares
    of their windows.

    Input: (*, n_fft // 2 + 1, T), or (*, n_fft, T) with onesided=False, complex, of 2 or 3 dimensions; window
        (win_length)
    Output: (*, length), by default n_fft + hop_length·(T − 1), without n_fft // 2 places on each side with `center`;
        real unless return_complex
    Errors: RuntimeError for real input, another number of frequencies, hop_length or win_length that do not fit, a
        window of another length, or windows that leave places without weight; IndexError for less than 2 dimensions
    https://pytorch.org/docs → torch.istft

    >>> import tensorgrad as torch
    >>> x, window = torch.tensor([1., 2., 3., 4., 5., 6., 7., 8.]), torch.ones(4)
    >>> torch.istft(torch.stft(x, n_fft=4, window=window, return_complex=True), n_fft=4, window=window)
    tensor([1., 2., 3., 4., 5., 6., 7., 8.])
    """
    check_tensor(input, "istft", "input", 1)
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    quoted = _call("istft", input, n_fft=n_fft, hop_length=hop, win_length=width, window=window, center=center,
                   normalized=normalized, onesided=onesided, length=length, return_complex=return_complex)
    half = _check_istft(input, n_fft, hop, width, window, onesided, return_complex, quoted)
    one = input.array.ndim == 2
    spectra = xp.swapaxes(xp.expand_dims(input, 0) if one else input, 1, 2)
    frames = _pieces(spectra, n_fft, "ortho" if normalized else "backward", half, return_complex)
    if window is None:
        warn("A window was not provided. A rectangular window will be applied.Please provide the same window used by "
             "stft to make the inversion lossless.To suppress this warning and use a rectangular window, explicitly "
             "set `window=torch.ones(n_fft, device=<device>)`.")
    spread = _window(window, width, n_fft, frames)
    if spread is None:
        spread = frames.new_ones(n_fft)
    count, steps = frames.array.shape[:2]
    total = n_fft + hop * (steps - 1)
    frames, spread = promoted(frames, spread)
    signal = xp.unfold_add(xp.multiply(frames, spread), shape=(count, total), axis=1, size=n_fft, step=hop)
    squares = xp.broadcast_to(xp.square(spread), shape=(1, steps, n_fft))
    weight = xp.unfold_add(squares, shape=(1, total), axis=1, size=n_fft, step=hop)
    start = n_fft // 2 if center else 0
    end = total - (n_fft // 2 if center else 0) if length is None else min(start + length, total)
    signal, weight = (part.narrow(1, start, max(end - start, 0)) for part in (signal, weight))
    least = abs(weight.array).min() if weight.array.size else 0
    if not (least > 1e-11 or is_unknown(weight)):
        raise RuntimeError(f"{quoted} window overlap add min: 1")
    out = xp.divide(signal, weight)
    if length is not None and end - start < length:
        warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in "
                      "the tail. Please check your center and hop_length settings.", UserWarning, stacklevel=2)
        out = resized(out, (length,), (1,))
    return xp.squeeze(out, axis=0) if one else out


def _pieces(spectra: Any, n_fft: int, norm: str, half: bool, return_complex: bool) -> Any:
    """Return the pieces of the signal, one per row; real ones from the first half of their spectra."""
    from .fourier import ifft, irfft
    if return_complex:
        return ifft(spectra, norm=norm)
    return irfft(spectra if half else spectra.narrow(-1, 0, n_fft // 2 + 1), n_fft, norm=norm)


def _check_istft(x: Any, n_fft: int, hop: int, width: int, window: Any, onesided: Any, return_complex: bool,
                 quoted: str) -> bool:
    """Raise the errors of `istft`; return True if the spectra are halves."""
    if not _is_complex(x):
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with "
                           "return_complex=True.")
    if x.array.ndim < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [-{x.array.ndim + 1}, {x.array.ndim}], "
                         f"but got -3)")
    if x.array.ndim > 3:
        raise RuntimeError(f"{quoted} : expected a tensor with 3 or 4 dimensions, but got {x.array.ndim + 1}")
    if not x.array.size:
        raise RuntimeError(f"{quoted} : input tensor cannot be empty.")
    if _is_complex(window) and not return_complex and onesided is not False:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    rows = x.array.shape[-2]
    half = rows != n_fft if onesided is None else onesided
    if half and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if half and rows != n_fft // 2 + 1:
        raise RuntimeError(f"{quoted} : expected the frequency dimension (3rd to the last) of the input tensor to "
                           f"match n_fft / 2 + 1 when onesided=True, but got {rows}")
    if not half and rows != n_fft:
        raise RuntimeError(f"{quoted} : expected the frequency dimension (3rd to the last) of the input tensor to "
                           f"match n_fft when onesided=False, but got {rows}")
    if not 0 < hop <= width:
        raise RuntimeError(f"{quoted} : expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{quoted} : expected 0 < win_length <= n_fft")
    if window is not None and window.array.shape != (width,):
        raise RuntimeError(f"{quoted} : Invalid window shape. window has to be 1D and length of `win_length`")
    return bool(half)
