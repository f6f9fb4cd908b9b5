"""Products of matrices and tensors. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from math import pi
from typing import Any

from ... import api as torch
from ._table import number, operator
from ._types import dtype_of


@operator("MatMul")
def matmul(a: Any, b: Any) -> Any:
    return torch.matmul(a, b)


@operator("Gemm")
def gemm(a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0, broadcast: int = 0) -> Any:
    """alpha · a' · b' + beta · c"""
    a, b = a.t() if transA else a, b.t() if transB else b
    if alpha == beta == 1 and c is not None and c.ndim == 1 and transB:
        return torch.addmm(c, a, b)
    found = torch.mm(a, b)
    found = found if alpha == 1 else found * (alpha if found.is_floating_point() else int(alpha))
    if c is None:
        return found
    return found + (c if beta == 1 else c * (beta if c.is_floating_point() else int(beta)))


@operator("Einsum")
def einsum(*values: Any, equation: str) -> Any:
    return torch.einsum(equation.replace(" ", ""), *values)


def _centred(x: Any, zero: Any, rows: bool) -> Any:
    """Return x − zero as int32; a zero for each row of the first matrix, or each column of the second."""
    x = x.int()
    if zero is None:
        return x
    zero = zero.int()
    if zero.numel() == 1:
        return x - zero.reshape(())
    return x - (zero.unsqueeze(-1) if rows and zero.ndim == 1 else zero)


@operator("MatMulInteger")
def matmul_integer(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return torch.matmul(_centred(a, a_zero, True), _centred(b, b_zero, False))


@operator("QLinearMatMul")
def quantized_matmul(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any,
                     y_zero: Any) -> Any:
    exact = torch.matmul(_centred(a, a_zero, True), _centred(b, b_zero, False)).double()
    scale = (a_scale.unsqueeze(-1) if a_scale.ndim == 1 and a_scale.numel() > 1 else a_scale).double()
    return requantized(exact * scale * b_scale.double() / y_scale.double(), y_zero)


def requantized(y: Any, zero: Any) -> Any:
    """Return saturate(round(y) + zero) in the type of `zero`."""
    limits = torch.iinfo(zero.dtype)
    return torch.clamp(torch.round(y) + zero.double(), limits.min, limits.max).to(zero.dtype)


@operator("DFT")
def dft_of_axis(x: Any, length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Any:
    return dft(x, length, axis, inverse=inverse, onesided=onesided)


@operator("DFT", since=20)
def dft(x: Any, length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0) -> Any:
    """The last axis has a real and maybe an imaginary part; the axis of the signal counts it too."""
    along = -2 if axis is None else int(number(axis))
    along %= x.ndim
    n = None if length is None else int(number(length))
    signal = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x[..., 0]
    if inverse and onesided:
        return torch.fft.irfft(signal, n, along).unsqueeze(-1)
    if onesided:
        found = torch.fft.rfft(signal, n, along)
    else:
        found = torch.fft.ifft(signal, n, along) if inverse else torch.fft.fft(signal, n, along)
    return torch.view_as_real(found)


@operator("STFT", fixed=(2,))
def stft(signal: Any, step: Any, window: Any = None, length: Any = None, *, onesided: int = 1) -> Any:
    hop = int(number(step))
    size = int(number(length)) if length is not None else window.shape[0]
    values = torch.view_as_complex(signal.contiguous()) if signal.shape[-1] == 2 else signal[..., 0]
    frames = values.unfold(-1, size, hop)
    frames = frames if window is None else frames * window
    one = onesided and not frames.is_complex()
    return torch.view_as_real(torch.fft.rfft(frames) if one else torch.fft.fft(frames))


def _window(name: str, terms: tuple[float, ...]) -> None:
    """Define a window of cosines: w[k] = Σ (−1)^i · terms[i] · cos(2πik / n)"""
    @operator(name)
    def window(size: Any, *, output_datatype: int = 1, periodic: int = 1) -> Any:
        n = int(number(size))
        angle = torch.arange(n, dtype=torch.float64) * (2 * pi / (n if periodic else max(n - 1, 1)))
        found = sum((-1) ** i * term * torch.cos(i * angle) for i, term in enumerate(terms))
        return found.to(dtype_of(output_datatype))


_window("HannWindow", (0.5, 0.5))
_window("HammingWindow", (25 / 46, 21 / 46))
_window("BlackmanWindow", (0.42, 0.5, 0.08))


@operator("MelWeightMatrix")
def mel_weight_matrix(bins: Any, size: Any, rate: Any, low: Any, high: Any, *, output_datatype: int = 1) -> Any:
    """Triangles over the bins of a spectrum, with corners at equal distances in mel."""
    count, n = int(number(bins)), int(number(size)) // 2 + 1
    limits = torch.tensor([number(low), number(high)], dtype=torch.float64)
    mels = 2595 * torch.log10(1 + limits / 700)
    steps = torch.arange(count + 2, dtype=torch.float64) * ((mels[1] - mels[0]) / (count + 2)) + mels[0]
    hertz = 700 * (10 ** (steps / 2595) - 1)
    corners = torch.floor((int(number(size)) + 1) * hertz / number(rate)).long()
    first, peak, last = corners[:-2], corners[1:-1], corners[2:]
    places = torch.arange(n).unsqueeze(1)
    rising = (places - first).double() / torch.clamp(peak - first, min=1).double()
    falling = (last - places).double() / torch.clamp(last - peak, min=1).double()
    zero = torch.zeros((), dtype=torch.float64)
    found = torch.where((places >= first) & (places < peak), rising,
                        torch.where((places >= peak) & (places < last), falling, zero))
    found = torch.where((first == peak) & (places == peak), torch.ones((), dtype=torch.float64), found)
    return found.to(dtype_of(output_datatype))
