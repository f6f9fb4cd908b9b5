"""The array API standard: the same calls on NumPy, which keeps to the standard, and on tensors; and how NumPy's
functions treat tensors.
"""
import warnings

import numpy as np
import pytest
from support import Programs, cpu_only, not_numpy_2_0, on_device

import tensorgrad as tg
from tensorgrad import array_api

RNG = np.random.default_rng(0)
M = RNG.normal(size=(3, 4)).astype(np.float32)
SQUARE = RNG.normal(size=(2, 3, 3)).astype(np.float64)
SYMMETRIC = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(3)
I = RNG.integers(-5, 6, (3, 4))         # noqa: E741
SMALL = RNG.integers(0, 100, (3, 4)).astype(np.int8)
B = I > 0
C = (M + 1j * M[::-1]).astype(np.complex64)

CALLS = [call.strip() for call in """
    xp.abs(m) | xp.acos(xp.clip(m, -1.0, 1.0)) | xp.add(m, 2) | xp.atan2(m, m + 1) | xp.bitwise_and(i, 3) | xp.bitwise_invert(i) | xp.ceil(i)
    xp.ceil(m) | xp.floor(i) | xp.round(i) | xp.trunc(m) | xp.clip(i, -2, 3) | xp.clip(m, None, 0.5) | xp.conj(c) | xp.copysign(m, -m)
    xp.divide(m, 2) | xp.equal(i, 2) | xp.exp(m) | xp.expm1(m) | xp.floor_divide(i, 3) | xp.greater(i, 0) | xp.hypot(m, m) | xp.imag(c)
    xp.isfinite(m) | xp.less_equal(m, 0) | xp.log1p(m * m) | xp.logaddexp(m, m) | xp.logical_and(b, b) | xp.logical_not(b) | xp.maximum(m, -m)
    xp.minimum(m, 0 * m) | xp.multiply(m, m) | xp.negative(i) | xp.nextafter(m, m + 1) | xp.not_equal(i, 1) | xp.positive(m) | xp.pow(m * m, 2)
    xp.real(c) | xp.reciprocal(m) | xp.remainder(i, 3) | xp.sign(i) | xp.signbit(m) | xp.square(m) | xp.sum(m) | xp.sum(m, axis=0)
    xp.sum(m, axis=(0, 1), keepdims=True) | xp.sum(small, axis=1) | xp.sum(b) | xp.sum(i, dtype=xp.float64) | xp.prod(small[:, :2], axis=(0, 1))
    xp.prod(m, axis=-1, keepdims=True) | xp.mean(m, axis=1) | xp.std(m) | xp.var(m, axis=0, correction=1.0) | xp.max(m, axis=(0, 1))
    xp.min(i, axis=1, keepdims=True) | xp.any(i, axis=0) | xp.all(b, axis=(0, 1)) | xp.all(i) | xp.count_nonzero(i, axis=1)
    xp.argmax(m, axis=1) | xp.argmin(i, axis=0, keepdims=True) | xp.argmax(m) | xp.cumulative_sum(i, axis=1)
    xp.cumulative_sum(small, axis=0, include_initial=True) | xp.cumulative_prod(m[0, :]) | xp.diff(i, axis=0) | xp.diff(m, n=2)
    xp.sort(m, axis=0) | xp.argsort(i, axis=1, stable=True) | xp.searchsorted(xp.sort(m[0, :]), m[1, :], side='right') | xp.nonzero(i)[1]
    xp.sort(xp.unique_values(i)) | xp.unique_counts(i).counts | xp.unique_inverse(i).inverse_indices | xp.unique_all(i).indices
    xp.unique_all(i).values | xp.take(m, i[0, :2] % 3, axis=1) | xp.take_along_axis(m, xp.argsort(m, axis=1), axis=1)
    xp.concat([m, m], axis=None) | xp.concat((m, m), axis=1) | xp.stack([m, m], axis=1) | xp.unstack(m, axis=1)[2] | xp.expand_dims(m, axis=1)
    xp.squeeze(xp.expand_dims(m, axis=0), axis=0) | xp.permute_dims(m, (1, 0)) | xp.flip(m) | xp.flip(m, axis=1) | xp.roll(m, 2)
    xp.roll(m, (1, 2), axis=(0, 1)) | xp.reshape(m, (2, 6)) | xp.repeat(m, 2, axis=0) | xp.repeat(m[0, :], 2) | xp.tile(m, (2, 1, 2))
    xp.moveaxis(square, 0, 2) | xp.broadcast_to(m[0, :], (2, 4)) | xp.broadcast_arrays(m, m[0, :])[1] | xp.arange(5) | xp.arange(1, 7, 2)
    xp.arange(5, 1) | xp.arange(3, dtype=xp.float32) | xp.linspace(0, 1, 5, endpoint=False, dtype=xp.float64)
    xp.eye(3, 4, k=1, dtype=xp.float64) | xp.zeros(3, dtype=xp.int16) | xp.ones((2, 3), dtype=xp.float64) | xp.full((2,), 7)
    xp.full(3, 2.5, dtype=xp.float64) | xp.meshgrid(i[0, :], i[:, 0])[0] | xp.meshgrid(m[0, :], m[:, 0], indexing='ij')[1] | xp.tril(m, k=1)
    xp.triu(square, k=-1) | xp.where(b, m, 0 * m) | xp.zeros_like(i) | xp.full_like(m, 3) | xp.astype(m, xp.int32) | xp.asarray([1, 2])
    xp.asarray(m, dtype=xp.float64) | xp.matmul(m, xp.matrix_transpose(m)) | xp.tensordot(m, m, axes=2) | xp.tensordot(m, m, axes=((1,), (1,)))
    xp.vecdot(c, c) | xp.vecdot(m, m, axis=0) | xp.matrix_transpose(square) | xp.linalg.cholesky(symmetric)
    xp.linalg.cross(m[:, :3], m[:, 1:]) | xp.linalg.det(square) | xp.linalg.diagonal(square, offset=1) | xp.linalg.eigvalsh(symmetric)
    xp.linalg.inv(square) | xp.linalg.matrix_norm(square) | xp.linalg.matrix_norm(square, ord=2, keepdims=True)
    xp.linalg.matrix_power(square, 3) | xp.linalg.matrix_rank(square) | xp.linalg.outer(m[0, :], m[1, :]) | xp.linalg.pinv(m)
    xp.abs(xp.linalg.qr(square).R) | xp.linalg.slogdet(square).logabsdet | xp.linalg.solve(square, square[0, ...])
    xp.linalg.solve(square, square[0, :, 0]) | xp.linalg.svdvals(m) | xp.linalg.trace(square, offset=1)
    xp.linalg.vector_norm(m, axis=1, ord=1) | xp.linalg.vector_norm(square, axis=(0, 2)) | xp.linalg.svd(m, full_matrices=False).S
    xp.fft.fft(m) | xp.fft.ifft(c, n=6, axis=0) | xp.fft.rfft(m, norm='ortho') | xp.fft.irfft(c) | xp.fft.fftn(m, axes=(0, 1))
    xp.fft.hfft(c, axis=1) | xp.fft.fftshift(m, axes=0) | xp.fft.fftfreq(6, d=0.5) | m + m | m @ m.T | -m | i // 2 | i % 3 | m ** 2 | i << 1
    i & 3 | ~b | b ^ b | m < 0 | abs(m) | m[1:, ...] | m[:, None, 0] | m[b] | i == i
""".replace("\n", "|").split("|") if call.strip()]  # noqa: E501


def standard(xp, made):
    names = {"m": M, "square": SQUARE, "symmetric": SYMMETRIC, "i": I, "small": SMALL, "b": B, "c": C}
    return {name: made(value) for name, value in names.items()} | {"xp": xp, "abs": abs}


OURS = standard(array_api, lambda value: on_device(tg.from_numpy(value.copy())))
NUMPYS = standard(np, lambda value: value)


@cpu_only
@not_numpy_2_0
@pytest.mark.parametrize("call", CALLS)
def test_the_standard_on_tensors_is_the_standard_on_arrays(call):
    expected, got = eval(call, NUMPYS), eval(call, OURS)          # noqa: S307
    assert isinstance(got, tg.Tensor)
    expected = np.asarray(expected)
    if call.startswith(("xp.linspace", "xp.eye", "xp.ones", "xp.fft.fftfreq")) or "dtype=" in call:
        got = got.to(getattr(tg, str(expected.dtype)))
    assert tuple(got.shape) == expected.shape and str(got.dtype) == f"torch.{expected.dtype}"
    np.testing.assert_allclose(got.numpy(), expected, rtol=2e-5, atol=2e-6)


@not_numpy_2_0
def test_the_namespace_is_whole():
    x = tg.ones(2)
    xp = x.__array_namespace__()
    assert xp is array_api and x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.12")
    wanted = (set(np.__array_namespace_info__().dtypes())
              | {c.split("(")[0].removeprefix("xp.") for c in CALLS if c.startswith("xp.") and c.count(".") == 1})
    assert not [name for name in wanted if not hasattr(xp, name)]
    assert all(hasattr(xp, name) for name in xp.__all__)
    assert all(hasattr(tg.Tensor, name) for name in "to_device mT T __matmul__ __dlpack__ "
                                                    "__array_namespace__ __complex__".split())


def test_inspection():
    info = array_api.__array_namespace_info__()
    assert info.default_dtypes()["integral"] is tg.int64 and tg.device("cpu") in info.devices()
    assert info.dtypes(kind="bool") == {"bool": tg.bool} and info.capabilities()["boolean indexing"]
    assert (array_api.isdtype(tg.int8, "signed integer") and array_api.isdtype(tg.float32, ("bool", "numeric"))
            and not array_api.isdtype(tg.bool, "numeric"))
    assert array_api.finfo(tg.ones(1)).bits == 32 and array_api.iinfo(tg.int8).max == 127


@pytest.mark.parametrize("call", ["xp.squeeze(m, axis=0)", "xp.cumulative_sum(m)", "xp.take(m, i[0, :1])",
                                  "xp.nonzero(xp.asarray(1))",
                                  "xp.reshape(m.T, (12,), copy=False)", "xp.asarray([1], copy=False)"])
def test_the_standards_errors(call):
    with pytest.raises(ValueError):
        eval(call, OURS)          # noqa: S307


def test_gradients_flow_through_the_standard():
    x = on_device(tg.tensor([[1., 2.], [3., 4.]])).requires_grad_()
    xp = x.__array_namespace__()
    xp.sum(xp.cumulative_sum(xp.permute_dims(x, (1, 0)), axis=0) * 2).backward()
    assert x.grad.tolist() == [[4., 2.], [4., 2.]]


# ── what NumPy makes of tensors ───────────────────────────────────────────────────────────────────────────────────────


program = Programs()


def shown(torch, value):
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), value.tolist()
    return type(value).__name__, str(getattr(value, "dtype", "")), np.asarray(value).tolist()


@program
def ufuncs_and_functions(torch):
    t, a = torch.tensor([1., 4., 9.]), np.array([1., 2., 3.], np.float32)
    calls = [lambda: np.sqrt(t), lambda: np.add(t, a), lambda: np.add(a, t), lambda: np.multiply(t, 2), lambda: t + a,
             lambda: t - a,
             lambda: a / t, lambda: np.float32(2) * t, lambda: t * np.float64(2), lambda: np.sum(t), lambda: np.mean(t),
             lambda: np.max(t),
             lambda: np.concatenate([t, t]), lambda: np.stack([t, t]), lambda: np.dot(t, t), lambda: np.matmul(t, t),
             lambda: np.isnan(t),
             lambda: np.equal(t, t), lambda: np.asarray(t), lambda: np.array(t),
             lambda: np.asarray(t, dtype=np.float64),
             lambda: np.where(t > 2, t, 0), lambda: np.clip(t, 2, 5), lambda: np.argsort(t), lambda: np.sort(t),
             lambda: np.log(t),
             lambda: np.exp2(t), lambda: np.allclose(t, t), lambda: np.array_equal(t, t), lambda: np.ones_like(t),
             lambda: np.transpose(t),
             lambda: np.reshape(t, (3, 1)), lambda: np.squeeze(t), lambda: np.cumsum(t), lambda: np.std(t),
             lambda: np.linalg.norm(t),
             lambda: np.argmax(t), lambda: np.round(t), lambda: np.abs(t), lambda: np.shape(t), lambda: np.ndim(t),
             lambda: np.arange(3)[torch.tensor([0, 2])], lambda: a[t > 2], lambda: np.vstack([t, a])]
    results = []
    for i, call in enumerate(calls):
        try:
            with warnings.catch_warnings():
                # PyTorch's __array_wrap__ takes no return_scalar
                warnings.simplefilter("ignore", DeprecationWarning)
                results.append((i, *shown(torch, call())))
        except Exception as error:
            results.append((i, type(error).__name__))
    return results


@program
def memory_is_shared(torch):
    t = torch.zeros(3)
    a = t.numpy()
    a[0] = 1
    np.asarray(t)[1] = 2
    b = np.zeros(2)
    s = torch.from_numpy(b)
    s[0] = 5
    return t, b.tolist(), torch.as_tensor(b).data_ptr() == s.data_ptr()


test_programs = cpu_only(program.test())
