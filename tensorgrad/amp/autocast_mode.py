"""autocast: which functions run in half precision, and which in float32. https://pytorch.org/docs/stable/amp.html

It is a mode, as `torch.overrides.TorchFunctionMode` is: while it is on, it sees every call, casts the arguments and
    hands the call on.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from .._tensor import Tensor
from .._tensor.torch_function import arm, state
from ..device import device as Device
from ..dtype import bfloat16, float16, float32, float64

# PyTorch's lists, by the names of the functions: https://pytorch.org/docs/stable/amp.html#autocast-op-reference
LOWER_ANYWHERE = frozenset("_addmm_activation _native_multi_head_attention addbmm addmm baddbmm bmm chain_matmul "
                           "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d einsum "
                           "inner linear matmul mm multi_dot multi_head_attention_forward prelu rnn_relu_cell "
                           "rnn_tanh_cell scaled_dot_product_attention tensordot vecdot __rmatmul__ _rnn".split())
FLOAT32_ANYWHERE = frozenset(
    "avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky cholesky_ex cholesky_inverse "
    "cholesky_solve cond cosine_embedding_loss cross_entropy ctc_loss eig eigh eigvals eigvalsh fft fft2 fftn geqrf "
    "grid_sample grid_sampler hfft hinge_embedding_loss householder_product huber_loss ifft ifft2 ifftn ihfft inv "
    "inv_ex inverse irfft irfft2 irfftn kl_div l1_loss lstsq lu lu_solve margin_ranking_loss matrix_power matrix_rank "
    "mse_loss multi_margin_loss multilabel_margin_loss nanquantile nll_loss orgqr ormqr pinv pinverse poisson_nll_loss "
    "polar prod qr quantile rfft rfft2 rfftn smooth_l1_loss soft_margin_loss solve stft istft svd svd_lowrank svdvals "
    "tensorinv tensorsolve trace triangular_solve triplet_margin_loss view_as_complex".split())
LOWER = {"cpu": LOWER_ANYWHERE, "cuda": LOWER_ANYWHERE | frozenset("addmv addr gru_cell lstm_cell mv".split())}
FLOAT32 = {
    "cpu": FLOAT32_ANYWHERE | frozenset(
        "adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices fractional_max_pool2d "
        "fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices grid_sampler_2d "
        "grid_sampler_3d linear_cross_entropy max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d "
        "max_unpool3d".split()),
    "cuda": FLOAT32_ANYWHERE | frozenset(
        "__pow__ __rpow__ acos asin cosh cosine_similarity cumprod cumsum dist erfinv exp expm1 gelu group_norm "
        "instance_norm layer_norm log log10 log1p log2 log_softmax norm normalize pdist pow reciprocal renorm rms_norm "
        "rsqrt sinh softmax softmin softplus sum tan".split())}
JOINING = frozenset("cat column_stack concat concatenate dstack hstack index_copy row_stack stack vstack".split())
WIDEST = {"cpu": JOINING, "cuda": JOINING
          | frozenset("addcdiv addcmul atan2 bilinear cross dot grid_sample index_put scatter_add vdot".split())}
# products of matrices are their last step
LOWER_RESULT = frozenset("corrcoef cov matrix_power pinv pinverse".split())
DEFAULTS: dict[str, Any] = {"cpu": bfloat16, "cuda": float16, "ipu": float16, "xpu": float16, "maia": bfloat16,
                            "xla": bfloat16, "mps": float16, "hpu": bfloat16, "mtia": float16, "privateuseone": float16}
SUPPORTED = (bfloat16, float16)
cache_enabled, nesting = [True], [0]


class Casting:
    """The mode of an autocast block, which casts the arguments of calls."""

    def __init__(self, device: str, dtype: Any, enabled: bool) -> None:
        self.device, self.dtype, self.enabled = device, dtype, enabled
        self.lower, self.full, self.widest = (table.get(device, frozenset()) for table in (LOWER, FLOAT32, WIDEST))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.__name__.removeprefix("linalg_").removeprefix("fft_")
        if not self.enabled or name.endswith("_") and not name.startswith("__") or kwargs.get("out") is not None:
            return func(*args, **kwargs)
        if name in self.lower and name in UNLESS and UNLESS[name](*args, **kwargs):
            return func(*args, **kwargs)
        if name in self.lower:
            args, kwargs = self._cast((args, kwargs), self.dtype, self._wide)
        elif name in self.full or self.device == "cpu" and name in FLOAT32_IF and FLOAT32_IF[name](*args, **kwargs):
            args, kwargs = self._cast((args, kwargs), float32, self._narrow)
        elif name in self.widest:
            found = [t.dtype for t in _tensors((args, kwargs)) if self._here(t)]
            if any(dtype not in (self.dtype, float32) for dtype in found):
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
            if len(set(found)) > 1:
                args, kwargs = self._cast((args, kwargs), float32, self._here)
        result = func(*args, **kwargs)
        if (name in LOWER_RESULT and self._wide(result)
                and not (name == "matrix_power" and abs(args[1] if len(args) > 1 else kwargs["n"]) < 2)):
            result = result.to(self.dtype)
        return result

    def _here(self, tensor: Any) -> bool:
        return tensor.dtype.is_floating_point and tensor.dtype is not float64 and tensor.device.type == self.device

    def _wide(self, tensor: Any) -> bool:
        return self._here(tensor) and tensor.dtype is not self.dtype

    def _narrow(self, tensor: Any) -> bool:
        return self._here(tensor) and tensor.dtype is not float32

    def _cast(self, value: Any, dtype: Any, which: Callable[[Any], bool]) -> Any:
        if isinstance(value, Tensor):
            return value.to(dtype) if which(value) else value
        if type(value) in (list, tuple):
            return type(value)(self._cast(part, dtype, which) for part in value)
        if type(value) is dict:
            return {key: self._cast(part, dtype, which) for key, part in value.items()}
        return value


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return [t for part in parts for t in _tensors(part)]


def _no_product(equation: Any, *operands: Any) -> bool:
    """Return True if an einsum has no matrix product: no summed index is in two operands."""
    if not isinstance(equation, str):
        return False
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    parts = [set(part) - {"."} for part in inputs.split(",")]
    if not arrow:
        output = "".join(label for label in set(inputs) if inputs.count(label) == 1)
    return not any(label not in output and sum(label in part for part in parts) > 1 for label in set().union(*parts))


def _to_a_number(a: Any, b: Any, dims: Any = 2, **kwargs: Any) -> bool:
    """Return True if tensordot sums over all dimensions."""
    count = int(dims) if isinstance(dims, (int, Tensor)) else len(dims[0]) if isinstance(dims[0], (list, tuple)) else 1
    return bool(count == a.ndim == b.ndim and count)


def _no_matrix(input: Any, other: Any) -> bool:
    return not input.ndim or not other.ndim or input.ndim == other.ndim == 1


def _mirrors(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> bool:
    return mode == "replicate" or mode == "reflect" and len(pad) < 6


def _averages_3d(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", **kwargs: Any) -> bool:
    return mode == "area" and input.ndim == 5


UNLESS: dict[str, Callable[..., bool]] = {"einsum": _no_product, "tensordot": _to_a_number, "inner": _no_matrix,
                                          "_rnn": lambda kind, *args: kind == "GRU"}
FLOAT32_IF: dict[str, Callable[..., bool]] = {"pad": _mirrors, "interpolate": _averages_3d}


class autocast:
    """Functions inside the `with` block, or the decorated function, run in the precision that suits them.

    https://pytorch.org/docs → torch.autocast

    Products of matrices and convolutions run in `dtype` (bfloat16 on the CPU, float16 on CUDA, unless said otherwise),
    losses and factorizations in float32; what is added or multiplied element by element keeps its dtype. Parameters
    stay what they are, and so do their gradients.
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = _kind(device_type)
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and self.device == "cuda" and not _cuda_is_available():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", UserWarning,
                          stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in SUPPORTED:
            shown = "torch.bfloat16 and torch.float16" if self.device == "cuda" else "torch.bfloat16, torch.float16"
            warnings.warn(f"In {self.device.upper()} autocast, but the target dtype is not supported. Disabling "
                          f"autocast.\n{self.device.upper()} Autocast only supports dtypes of {shown} currently.",
                          UserWarning,
                          stacklevel=2)
            enabled = False
        self._enabled = enabled

    def __enter__(self) -> autocast:
        arm()
        self._before = state.modes
        others = tuple(m for m in state.modes if not (isinstance(m, Casting) and m.device == self.device))
        state.modes = (*others, Casting(self.device, self.fast_dtype, self._enabled))
        return self

    def __exit__(self, *exception: object) -> None:
        state.modes = self._before

    def __call__(self, function: Any) -> Any:
        return autocast_decorator(self, function)

    def _like(self, other: autocast) -> autocast:
        self.device, self.fast_dtype, self._cache_enabled, self._enabled = (other.device, other.fast_dtype,
                                                                            other._cache_enabled, other._enabled)
        return self


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which will run inside such a block."""
    @wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with type(autocast_instance).__new__(type(autocast_instance))._like(autocast_instance):
            return func(*args, **kwargs)
    return decorated


def _kind(device_type: str) -> str:
    """Return the kind of a device, which PyTorch must know; the device need not exist."""
    kind = device_type.partition(":")[0]
    return kind if kind in DEFAULTS else Device(device_type).type


def _cuda_is_available() -> bool:
    from .. import cuda
    return cuda.is_available()


def _current(device_type: str) -> Casting | None:
    return next((m for m in reversed(state.modes) if isinstance(m, Casting) and m.device == device_type), None)


def is_autocast_available(device_type: str) -> bool:
    """Return True if the device supports autocast. https://pytorch.org/docs → torch.amp.is_autocast_available"""
    return _kind(device_type) in DEFAULTS


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return True if autocast is on for the device. https://pytorch.org/docs → torch.is_autocast_enabled"""
    found = _current(_kind(device_type))
    return found is not None and found.enabled


def get_autocast_dtype(device_type: str) -> Any:
    """The dtype that autocast uses for products. https://pytorch.org/docs → torch.get_autocast_dtype"""
    found = _current(kind := _kind(device_type))
    if kind not in DEFAULTS:
        raise RuntimeError("unsupported scalarType")
    return DEFAULTS[kind] if found is None else found.dtype


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the default dtype of autocast for a device."""
    DEFAULTS[device_type] = dtype


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Open or close autocast for the device, without a block."""
    arm()
    others = tuple(m for m in state.modes if not (isinstance(m, Casting) and m.device == device_type))
    state.modes = (*others, Casting(device_type, DEFAULTS[device_type], enabled))


def is_autocast_cache_enabled() -> bool:
    """Return the setting for caching casts of parameters, which has no effect."""
    return cache_enabled[0]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether to cache casts of parameters; it has no effect."""
    cache_enabled[0] = enabled


def clear_autocast_cache() -> None:
    """Do nothing: casts are not cached."""


def _deprecated(old: str, new: str, value: Any, given: str = "") -> Any:
    warnings.warn(f"torch.{old}({given}) is deprecated. Please use torch.{new} instead.", DeprecationWarning,
                  stacklevel=3)
    return value


def get_autocast_cpu_dtype() -> Any:
    """`get_autocast_dtype('cpu')` by an older name."""
    return _deprecated("get_autocast_cpu_dtype", "get_autocast_dtype('cpu')", get_autocast_dtype("cpu"))


def get_autocast_gpu_dtype() -> Any:
    """`get_autocast_dtype('cuda')` by an older name."""
    return _deprecated("get_autocast_gpu_dtype", "get_autocast_dtype('cuda')", get_autocast_dtype("cuda"))


def is_autocast_cpu_enabled() -> Any:
    """`is_autocast_enabled('cpu')` by an older name."""
    return _deprecated("is_autocast_cpu_enabled", "is_autocast_enabled('cpu')", is_autocast_enabled("cpu"))


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """`set_autocast_dtype('cpu', dtype)` by an older name."""
    _deprecated("set_autocast_cpu_dtype", "set_autocast_dtype('cpu', dtype)", set_autocast_dtype("cpu", dtype), "dtype")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """`set_autocast_dtype('cuda', dtype)` by an older name."""
    _deprecated("set_autocast_gpu_dtype", "set_autocast_dtype('cuda', dtype)", set_autocast_dtype("cuda", dtype),
                "dtype")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled('cpu', enabled)` by an older name."""
    _deprecated("set_autocast_cpu_enabled", "set_autocast_enabled('cpu', enabled)",
                set_autocast_enabled("cpu", enabled), "enabled")


def autocast_increment_nesting() -> int:
    """Count one more open block, for programs that open blocks by hand; return the count."""
    nesting[0] += 1
    return nesting[0]


def autocast_decrement_nesting() -> int:
    """Count one open block less; return the count."""
    nesting[0] -= 1
    return nesting[0]


# ── custom Functions ──────────────────────────────────────────────────────────────────────────────────────────────────


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorate the `forward` of a Function: run it under the current autocast, or cast its inputs first.

    https://pytorch.org/docs → torch.amp.custom_fwd
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return lambda function: custom_fwd(function, device_type=device_type, cast_inputs=cast_inputs)

    @wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        casting = Casting(device_type, cast_inputs, True)
        args, kwargs = casting._cast((args, kwargs), cast_inputs, casting._wide)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *args, **kwargs)
    return decorated


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate the `backward` of a Function: run it under the autocast of its forward.

    https://pytorch.org/docs → torch.amp.custom_bwd
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return lambda function: custom_bwd(function, device_type=device_type)

    @wraps(bwd)
    def decorated(ctx: Any, *gradients: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *gradients, **kwargs)
    return decorated


__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
