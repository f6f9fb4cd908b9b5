"""Fourier transforms, spectra of pieces of signals, and windows: beside PyTorch, and beside what they are by
definition.
"""
import warnings

import numpy as np
import pytest
from side_by_side import compare, outcome
from support import DEVICE

import tensorgrad

F = tensorgrad.fft
TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
NORMS = (None, "forward", "ortho", "backward")
OF_REALS = ("rfft", "ihfft")


def drawn(shape, dtype="float64", seed=0):
    """Numbers from the normal distribution."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else values).astype(dtype)


def ours(array, requires_grad=False):
    return tensorgrad.tensor(array, device=DEVICE).requires_grad_(requires_grad)


def both_ways(function, *arrays, tolerance=1e-9):
    """Assert that results and gradients are PyTorch's."""
    oracle = pytest.importorskip("torch")
    runs = []
    for torch, make in ((tensorgrad, ours), (oracle, oracle.tensor)):
        inputs = [make(a).requires_grad_() for a in arrays]
        out = function(torch, *inputs)
        weights = drawn(tuple(out.shape), "complex128" if out.dtype.is_complex else "float64", 7)
        grads = torch.autograd.grad((out * make(weights)).sum().real, inputs)
        runs.append([x.detach().cpu().resolve_conj().numpy() for x in (out, *grads)])
    for a, b in zip(*runs, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1, np.abs(b).max(initial=0)))


# ── transforms ────────────────────────────────────────────────────────────────────────────────────────────────────────


def inputs_of(name, shape):
    """Arrays of the dtypes that a transform takes."""
    return [drawn(shape)] if name.startswith(OF_REALS) else [drawn(shape), drawn(shape, "complex128")]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_along_one_axis(name, norm):
    for x in inputs_of(name, (3, 6, 2)):
        for n in (None, 1, 4, 5, 6, 9):
            for dim in (0, 1, -1):
                if not (name in ("irfft", "hfft") and dim == -1 and n is None):
                    both_ways(lambda torch, x: getattr(torch.fft, name)(x, n, dim, norm), x)  # noqa: B023


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_along_several_axes(name, norm):
    for x in inputs_of(name, (3, 4, 5)):
        for s, dim in ((None, None), ((4, 3), None), (None, (0, 2)), ((2, -1), (1, 2)), ((5,), (0,)), (None, (2, 0, 1)),
                       ((6, 7), (2, 1))):
            both_ways(lambda torch, x: getattr(torch.fft, f"{name}n")(x, s, dim, norm), x)  # noqa: B023
        both_ways(lambda torch, x: getattr(torch.fft, f"{name}2")(x, norm=norm), x)
        both_ways(lambda torch, x: getattr(torch.fft, f"{name}2")(x, (3, 4), (0, 1), norm), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64", "bool", "uint8"])
def test_dtypes(dtype):
    x = ours(np.array([1, 0, 1, 1]).astype(dtype))
    wide = dtype in ("float64", "complex128")
    assert F.fft(x).dtype is (tensorgrad.complex128 if wide else tensorgrad.complex64)
    assert F.irfft(x).dtype is (tensorgrad.float64 if wide else tensorgrad.float32)
    np.testing.assert_allclose(F.fft(x).cpu().numpy(), np.fft.fft([1, 0, 1, 1]), atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_transforms_and_their_inverses(n):
    x, z = ours(drawn((2, n))), ours(drawn((2, n), "complex128"))
    for there, back, signal in (("fft", "ifft", z), ("ifft", "fft", z), ("rfft", "irfft", x), ("ihfft", "hfft", x)):
        for norm in NORMS:
            again = getattr(F, back)(getattr(F, there)(signal, norm=norm), **({} if signal is z else {"n": n}),
                                     norm=norm)
            np.testing.assert_allclose(again.cpu().numpy(), signal.cpu().numpy(), atol=1e-12)


def test_the_definition():
    x = drawn(5, "complex128")
    waves = np.exp(-2j * np.pi * np.outer(np.arange(5), np.arange(5)) / 5)
    np.testing.assert_allclose(F.fft(ours(x)).cpu().numpy(), waves @ x)
    half = np.fft.rfft(x.real)
    # real numbers: half is computed, half mirrored
    np.testing.assert_allclose(F.fft(ours(x.real)).cpu().numpy()[:3], half)
    np.testing.assert_allclose(F.ifftn(ours(drawn((3, 4, 5)))).cpu().numpy(), np.fft.ifftn(drawn((3, 4, 5))))


def test_second_gradients_of_a_spectrum_s_power():
    x = ours(drawn(6), True)
    assert tensorgrad.autograd.gradgradcheck(lambda x: F.rfft(x).abs().square(), (x,))
    assert tensorgrad.autograd.gradgradcheck(lambda x: F.fft2(x.reshape(2, 3)).abs().square(), (x,))
    z = ours(drawn(4, "complex128"), True)
    assert tensorgrad.autograd.gradgradcheck(lambda z: F.irfft(z * z, 5).square(), (z,))


def test_out():
    out = tensorgrad.empty(3, dtype=tensorgrad.complex64, device=DEVICE)
    assert F.rfft(ours(np.ones(4, "float32")), out=out) is out
    assert out.tolist() == [4, 0, 0]


# ── expressions that come to the same: a value, or an error ───────────────────────────────────────────────────────────

EXPRESSIONS = {
    "transforms": """
    F.fft(i) ; F.fft(b) ; F.fft(h) ; F.fft(x.bfloat16()) ; F.rfft(c) ; F.rfft(i) ; F.rfft(h) ; F.irfft(x) ; F.irfft(c, 0) ; F.irfft(torch.ones(1))
    F.irfft(c, n=1) ; F.fft(x, 0) ; F.fft(x, -1) ; F.fft(x, 2) ; F.fft(x, dim=1) ; F.fft(x, norm='x') ; F.fft(x, norm=1) ; F.fft(torch.ones(0))
    F.fft(1) ; F.fft(s) ; F.rfft(torch.ones(0)) ; F.irfft(torch.ones(0)) ; F.hfft(x) ; F.hfft(c, 5) ; F.hfft(c, 0) ; F.ihfft(c) ; F.ihfft(x).resolve_conj()
    F.fft2(x) ; F.fft2(X, s=(2,)) ; F.fft2(X, s=(2, 2, 2)) ; F.fft2(X, dim=(0, 0)) ; F.fft2(X, dim=0) ; F.fftn(X, s=(2, 2, 2))
    F.fftn(X, s=(2,)) ; F.fftn(X, s=(2,), dim=(0, 1)) ; F.fftn(X, s=(2, -1)) ; F.fftn(X, s=(2, 0)) ; F.fftn(X, s=2) ; F.fftn(X, dim=1)
    F.fftn(X, dim=()) ; F.fftn(X, dim=(0, 5)) ; F.fftn(s) ; F.fftn(s, dim=0) ; F.rfftn(s) ; F.rfftn(X, dim=()) ; F.irfftn(X, dim=())
    F.rfftn(X + 0j) ; F.ihfftn(X + 0j) ; F.hfftn(X, dim=()) ; F.hfft2(X, s=(2, 5)) ; F.irfftn(X, s=(2, 0)) ; F.fft(x, axis=0)
    """,  # noqa: E501
    "frequencies": """
    F.fftfreq(4) ; F.fftfreq(5) ; F.fftfreq(0) ; F.fftfreq(-1) ; F.fftfreq(4, d=0) ; F.fftfreq(4, .5, dtype=torch.int64) ; F.rfftfreq(5)
    F.fftfreq(5, dtype=torch.float64) ; F.fftfreq(5.5) ; F.rfftfreq(0) ; F.rfftfreq(6, 2.) ; F.fftfreq(5, requires_grad=True).requires_grad
    F.fftshift(X) ; F.fftshift(X, dim=0) ; F.fftshift(X, dim=(0, 0)) ; F.fftshift(X, dim=5) ; F.fftshift(s) ; F.ifftshift(X) ; F.ifftshift(X, -1)
    F.ifftshift(torch.arange(5)) ; F.fftshift(torch.arange(5))
    """,  # noqa: E501
    "pieces": """
    torch.stft(x, 4) ; torch.stft(x, 4, return_complex=True) ; torch.stft(x, 4, return_complex=False) ; torch.stft(c, 4)
    torch.stft(x, 4, return_complex=True, center=False) ; torch.stft(x, 8, return_complex=True, center=False)
    torch.stft(x, 8, return_complex=True) ; torch.stft(x, 8, return_complex=True, pad_mode='constant')
    torch.stft(x, 8, return_complex=True, pad_mode='z') ; torch.stft(X[None].expand(2, 3, 4), 4, return_complex=True)
    torch.stft(i, 4, return_complex=True) ; torch.stft(x, 0, return_complex=True) ; torch.stft(x, 4, hop_length=0, return_complex=True)
    torch.stft(x, 4, hop_length=-1, return_complex=True) ; torch.stft(x, 4, win_length=5, return_complex=True)
    torch.stft(x, 4, win_length=0, return_complex=True) ; torch.stft(x, 4, window=torch.ones(3), return_complex=True)
    torch.stft(x, 4, window=X, return_complex=True) ; torch.stft(x, 4, win_length=2, window=torch.ones(2), return_complex=True)
    torch.stft(x, 4, window=c) ; torch.stft(c, 4, onesided=True) ; torch.stft(x, 4, return_complex=True, onesided=False)
    torch.stft(x, 4, return_complex=True, normalized=True) ; torch.stft(x, 4, window=torch.ones(4).double(), return_complex=True)
    torch.stft(y, 4, return_complex=True, center=False, align_to_window=True)
    torch.stft(y, 8, win_length=4, return_complex=True, center=False, align_to_window=True)
    torch.stft(y, 8, win_length=4, return_complex=True, align_to_window=True) ; torch.stft(y, 4, pad_mode='replicate', return_complex=True)
    torch.stft(y, 4, pad_mode='circular', return_complex=True) ; y.stft(4, 3, return_complex=True) ; torch.stft(X, 3, return_complex=True)
    """,  # noqa: E501
    "signals": """
    torch.istft(X, 4) ; torch.istft(Z, 4) ; torch.istft(Z, 4, window=torch.ones(4)) ; torch.istft(Z, 4, window=torch.zeros(4)) ; torch.istft(Z, 8)
    torch.istft(Z, 4, onesided=False) ; torch.istft(Z.mT, 4, onesided=False) ; torch.istft(Z.mT, 4, onesided=False, return_complex=True)
    torch.istft(Z, 4, return_complex=True) ; torch.istft(Z, 4, center=False) ; torch.istft(Z, 4, hop_length=5) ; torch.istft(Z, 4, hop_length=0)
    torch.istft(Z, 4, win_length=5) ; torch.istft(Z, 4, win_length=2, hop_length=1) ; torch.istft(Z, 4, window=torch.ones(3))
    torch.istft(Z, 4, length=2) ; torch.istft(Z, 4, length=20) ; torch.istft(c, 4) ; torch.istft(Z[None, None], 4) ; torch.istft(Z[:, :0], 4)
    torch.istft(Z, 4, window=c) ; torch.istft(Z, 4, normalized=True) ; Z.istft(4, hop_length=2) ; torch.istft(Z[None], 4)
    """,  # noqa: E501
    "windows": """
    torch.hann_window(6) ; torch.hann_window(5, False) ; torch.hann_window(-1) ; torch.hann_window(0) ; torch.hann_window(1)
    torch.hann_window(5, dtype=torch.int64) ; torch.hann_window(5.) ; torch.hann_window(5, dtype=torch.float64)
    torch.hann_window(5, layout=torch.sparse_coo) ; torch.hann_window(5, requires_grad=True).requires_grad ; torch.hamming_window(6)
    torch.hamming_window(5, False, .6) ; torch.hamming_window(5, True, .6, .3) ; torch.blackman_window(6) ; torch.blackman_window(5, False)
    torch.bartlett_window(6) ; torch.bartlett_window(5, False) ; torch.bartlett_window(6, False, dtype=torch.float64) ; torch.kaiser_window(6)
    torch.kaiser_window(5, False, 3.) ; torch.kaiser_window(5, True, beta=3.) ; torch.kaiser_window(1) ; torch.kaiser_window(-1)
    torch.hann_window(5, dtype=torch.complex64)
    """,  # noqa: E501
    "signal": """
    W.hann(6) ; W.hann(5, sym=False) ; W.hann(-1) ; W.hann(0) ; W.hann(1) ; W.hann(3, dtype=torch.int64) ; W.hann(3, layout=torch.sparse_coo)
    W.hann('a') ; W.hamming(6) ; W.hamming(5, sym=False) ; W.blackman(6) ; W.blackman(5, sym=False) ; W.nuttall(6) ; W.nuttall(5, sym=False)
    W.bartlett(6) ; W.bartlett(5, sym=False) ; W.cosine(6) ; W.cosine(5, sym=False) ; W.exponential(6) ; W.exponential(5, tau=2., sym=False)
    W.exponential(5, center=1, sym=False) ; W.exponential(3, tau=0) ; W.exponential(3, center=1) ; W.exponential(1) ; W.gaussian(6)
    W.gaussian(5, std=2., sym=False) ; W.gaussian(3, std=0) ; W.kaiser(6) ; W.kaiser(5, beta=3., sym=False) ; W.kaiser(3, beta=-1)
    W.general_cosine(5, a=[.5, .3, .2]) ; W.general_cosine(3, a=3) ; W.general_cosine(3, a=[]) ; W.general_cosine(3, a=(w for w in (.5, .5)))
    W.general_hamming(4, alpha=.4) ; W.general_hamming(4, alpha=.4, sym=False, dtype=torch.float64) ; W.kaiser(4, requires_grad=True).requires_grad
    """,  # noqa: E501
}


def given(torch):
    """The names that expressions are written in."""
    return {"torch": torch, "F": torch.fft, "W": torch.signal.windows, "s": torch.tensor(1.0), "x": torch.ones(4),
            "y": torch.arange(10.0), "X": torch.arange(12.0).reshape(3, 4), "c": torch.ones(4) + 0j,
            "Z": torch.arange(12.0).reshape(3, 4) + 1j,
            "i": torch.arange(4),
            "b": torch.ones(4, dtype=torch.bool), "h": torch.ones(4, dtype=torch.float16)}


@pytest.mark.parametrize("family", EXPRESSIONS)
def test_expressions(family):
    oracle = pytest.importorskip("torch")
    for line in EXPRESSIONS[family].strip().splitlines():
        for expression in line.split(" ; "):
            def program(torch, expression=expression):
                return eval(expression, given(torch))
            compare(outcome(program, tensorgrad)[0], outcome(program, oracle)[0], 1e-5, 1e-6, expression.strip())


# ── pieces of signals ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("options", [{}, {"center": False}, {"hop_length": 3, "normalized": True}, {"win_length": 5},
                                     {"pad_mode": "constant"},
                                     {"onesided": False, "hop_length": 8}], ids=str)
def test_stft(options):
    window = drawn(options.get("win_length", 8), seed=1)
    both_ways(lambda torch, x, w: torch.stft(x, 8, window=w, return_complex=True, **options), drawn((2, 30)), window)
    both_ways(lambda torch, x: torch.stft(x, 8, return_complex=True, **options),
              drawn(30, "complex128" if "onesided" in options else "float64"))


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("options", [{}, {"center": False}, {"hop_length": 3, "normalized": True}, {"length": 9},
                                     {"onesided": False}], ids=str)
def test_istft(options):
    rows, window = 8 if "onesided" in options else 5, np.abs(drawn(8, seed=1)) + 0.5
    both_ways(lambda torch, z, w: torch.istft(z, 8, window=w, **options), drawn((2, rows, 6), "complex128"), window)
    both_ways(lambda torch, z: torch.istft(z, 8, **options), drawn((rows, 6), "complex128"))


@pytest.mark.filterwarnings("ignore:A window was not provided")
def test_signals_come_back():
    x = drawn((2, 50))
    for hop, window in ((2, None), (4, ours(np.hanning(9)[:8])), (3, ours(np.hamming(8)))):
        spectra = tensorgrad.stft(ours(x), 8, hop, window=window, return_complex=True)
        again = tensorgrad.istft(spectra, 8, hop, window=window, length=45)
        np.testing.assert_allclose(again.cpu().numpy(), x[:, :45], atol=1e-12)


@pytest.mark.filterwarnings("ignore:A window was not provided")
def test_a_signal_that_is_too_short_is_filled_up():
    spectra = tensorgrad.stft(ours(drawn(16)), 8, return_complex=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = tensorgrad.istft(spectra, 8, length=40)
    assert "shorter than the length parameter" in str(caught[-1].message)
    assert out.shape == (40,) and out[-10:].tolist() == [0.0] * 10


# ── windows ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_periodic_windows_are_longer_ones_cut(name):
    root, symmetric = getattr(tensorgrad, f"{name}_window"), getattr(tensorgrad.signal.windows, name)
    for n in (2, 5, 8):
        np.testing.assert_allclose(root(n), root(n + 1, periodic=False)[:-1], atol=1e-6)
        np.testing.assert_allclose(root(n, periodic=False), symmetric(n), atol=1e-6)
        np.testing.assert_allclose(root(n), symmetric(n, sym=False), atol=1e-6)


@pytest.mark.parametrize("name", sorted(tensorgrad.signal.windows.__all__))
def test_symmetric_windows_are_symmetric(name):
    options = {"a": [0.4, 0.5, 0.1]} if name == "general_cosine" else {}
    for n in (2, 5, 8):
        window = getattr(tensorgrad.signal.windows, name)(n, dtype=tensorgrad.float64, **options)
        np.testing.assert_allclose(window, window.flip(0), atol=1e-12)
