"""Fourier transforms.

`norm` says which direction divides by the length: 'backward' (the inverse), 'forward', or 'ortho' (both, by its root).
"""
from __future__ import annotations

from .base import AlongAxis, Op
from .signatures import complex_dtype, real_dtype

# the norm under which the transposed transform scales alike
SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


class FourierTransform(Op):
    """out[k] = Σ x[j]·exp(∓2πi·jk/n) along axes, with + for the inverse; as a matrix it is symmetric.

    `last` is an axis that is to lie innermost
    """

    torch_name = "FftC2C"
    kinds = "fc"
    host = True
    batch = "along"
    axes = ("axes",)
    linear = ("x",)

    def name(self):
        """Return the name of the last step that PyTorch records: it mirrors the half spectrum of real numbers."""
        params = self.params
        if self.edges[0].dtype.kind == "c" or len(params["axes"]) > 1:
            return f"Fft{'C' if params.get('last') is None else 'R'}2CBackward0"
        return "ConjBackward0" if params.get("inverse") else "FftR2CBackward0"

    def infer(x, **params):
        return x.shape, complex_dtype(x.dtype)

    def forward(xp, x, *, axes, inverse=False, norm="backward", last=None):
        if x.dtype.kind == "f":
            return mirrored(xp, x, axes, inverse, norm)
        if len(axes) == 1:
            return (xp.fft.ifft if inverse else xp.fft.fft)(x, axis=axes[0], norm=norm)
        return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=axes, norm=norm)

    def grad_x(xp, g, axes, inverse=False, norm="backward"):
        return xp.fourier_transform(g, axes=axes, inverse=inverse, norm=norm)


def mirrored(xp, x, axes, inverse, norm):
    """The transform of real numbers: half of it is computed, and the other is its mirror image."""
    *others, last = axes
    half = (xp.fft.rfftn(x, axes=axes, norm=SWAPPED[norm] if inverse else norm) if others else
            xp.fft.rfft(x, axis=last, norm=SWAPPED[norm] if inverse else norm))
    half = half.conj() if inverse else half
    image = half[(slice(None),) * (last % x.ndim) + (slice((x.shape[last] - 1) // 2, 0, -1),)].conj()
    for axis in others:
        image = xp.roll(xp.flip(image, axis), 1, axis)
    return xp.concatenate([half, image], last)


class HalfSpectrum(AlongAxis):
    """The first half of the transform of real numbers, which the other half mirrors; `doubled`: and the mirror images
    added
    """

    torch_name = "FftR2C"
    analytic = False
    kinds = "f"
    host = True
    linear = ("x",)

    def infer(x, *, axis, **params):
        return resized(x.shape, axis, x.shape[axis] // 2 + 1), complex_dtype(x.dtype)

    def forward(xp, x, *, axis, norm="backward", doubled=False):
        out = xp.fft.rfft(x, axis=axis, norm=norm)
        return scaled_inside(out, x.shape[axis], axis, 2) if doubled else out

    def grad_x(xp, g, x_shape, axis, norm="backward", doubled=False):
        return xp.from_half_spectrum(g, n=x_shape[axis], axis=axis, norm=SWAPPED[norm], halved=not doubled)


class FromHalfSpectrum(AlongAxis):
    """The n real numbers whose transform has this first half; `halved`: each mirrored part counts half"""

    torch_name = "FftC2R"
    analytic = False
    kinds = "c"
    host = True
    linear = ("x",)

    def infer(x, *, n, axis, **params):
        return resized(x.shape, axis, n), real_dtype(x.dtype)

    def forward(xp, x, *, n, axis, norm="backward", halved=False):
        return xp.fft.irfft(scaled_inside(x, n, axis, 0.5) if halved else x, n, axis=axis, norm=norm)

    def grad_x(xp, g, axis, norm="backward", halved=False):
        return xp.half_spectrum(g, axis=axis, norm=SWAPPED[norm], doubled=not halved)


def resized(shape, axis, n):
    """A shape with another length along an axis."""
    axis %= len(shape)
    return (*shape[:axis], n, *shape[axis + 1:])


def scaled_inside(x, n, axis, factor):
    """Scale half a spectrum by `factor`, except the mean and, for even n, frequency n/2: they have no mirror image."""
    out = x.copy()
    out[(slice(None),) * (axis % x.ndim) + (slice(1, (n + 1) // 2),)] *= factor
    return out
