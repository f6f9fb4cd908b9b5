"""torch.ops.aten: the functions of this package, under PyTorch's names for its operators and their overloads.

All overloads of an operator call the one function, which tells them apart by their arguments. Programs keep operators
in tables, and never call many of them: an operator that this package lacks raises when it is called.
"""
from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ._aten_images import IMAGES
from ._tensor.torch_function import ASKING, asked, overriding, state
from .api import FUNCTIONS, Tensor
from .core.dispatch import xp
from .dtype import float32, get_default_dtype
from .messages.unsupported import unsupported

PACKAGE = __name__.partition(".")[0]


class OpOverload:
    """An overload of an operator, such as `aten.add.Tensor`."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = self._overloadpacket = packet         # packages that count operations ask for the second
        self._overloadname, self._opname = overload, packet.__name__
        self.namespace, self.__name__ = packet.namespace, f"{packet.__name__}.{overload}"
        self.__module__ = packet.__module__

    _defined_in_python = False

    @property
    def is_mutable(self) -> bool:
        """True for an operator that writes to an argument."""
        return self._overloadname.endswith("out") or self._opname.endswith("_") and not self._opname.endswith("__")

    @property
    def tags(self) -> list[Any]:
        """The tags that follow from the name, and the one that all of PyTorch's operators have."""
        from ._library.tags import Tag
        names = ["inplace"] * (self._opname.endswith("_") and not self._opname.endswith("__"))
        return [Tag[name] for name in (*names, *["out"] * self._overloadname.endswith("out"), "pt2_compliant_tag")]

    def name(self) -> str:
        """The operator's name with its namespace, and the overload's unless it is the default."""
        kept = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{kept}"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ASKING and state.classes and (found := overriding((*args, *kwargs.values()))):
            return asked(self, found, args, kwargs)
        return self.overloadpacket._function(*args, **kwargs)


class OpOverloadPacket:
    """An operator: a function of this package, whose overloads are attributes."""

    def __init__(self, namespace: str, name: str, function: Callable[..., Any]) -> None:
        self.namespace, self.__name__, self._function = namespace, name, function
        self._qualified_op_name, self.__module__ = f"{namespace}::{name}", f"torch._ops.{namespace}"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ASKING and state.classes and (found := overriding((*args, *kwargs.values()))):
            return asked(self, found, args, kwargs)
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("_"):
            raise AttributeError(f"'OpOverloadPacket' object has no attribute '{overload}'")
        setattr(self, overload, made := OpOverload(self, overload))
        return made


# ── operators that PyTorch's public functions do not have ─────────────────────────────────────────────────────────────


def _slice(input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


def _index(input: Any, indices: Any) -> Any:
    return input[tuple(slice(None) if index is None else index for index in indices)]


def _index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = input.clone()
    places = tuple(slice(None) if index is None else index for index in indices)
    if accumulate and slice(None) in places:
        return out.index_put_(_in_full(input, indices), values, accumulate=True)
    if accumulate:
        return out.index_put_(places, values, accumulate=True)
    out[places] = values
    return out


def _in_full(input: Any, indices: Any) -> tuple[Any, ...]:
    """Return index tensors that broadcast, one for each axis; whole axes become ranges, in the last places."""
    given = [index for index in indices if index is not None]
    lead = given[0].ndim if len(given) == 1 else max(index.ndim for index in given)
    whole = [axis for axis in range(input.ndim) if axis >= len(indices) or indices[axis] is None]
    if whole != list(range(whole[0], input.ndim)) and whole != list(range(len(whole))):
        raise NotImplementedError("index_put() that adds at index tensors around a whole axis")
    first = whole[0] == 0           # the whole axes come first, in the values, too
    found = []
    for axis in range(input.ndim):
        behind = (lead if first else 0) + len(whole) - 1 - whole.index(axis) if axis in whole else 0
        if axis in whole:
            counted = FUNCTIONS["arange"](input.shape[axis], device=input.device)
            found.append(counted.reshape(-1, *[1] * behind))
        else:
            found.append(indices[axis] if first else indices[axis].reshape(*indices[axis].shape, *[1] * len(whole)))
    return tuple(found)


def _convolution_backward(grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any,
                          dilation: Any, transposed: bool, output_padding: Any, groups: int,
                          output_mask: Any) -> tuple[Any, ...]:
    """The gradients of a convolution in its input, weight and bias; None for those that the mask leaves out."""
    if transposed:
        raise NotImplementedError("convolution_backward of a transposed convolution")
    how = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation), "groups": groups}
    wants_input, wants_weight, wants_bias = output_mask
    size, kernel = tuple(input.shape[2:]), tuple(weight.shape[2:])
    return (xp.convolution_input(grad_output, weight, None, size=size, **how) if wants_input else None,
            xp.convolution_weight(grad_output, input, size=kernel, **how) if wants_weight else None,
            grad_output.sum((0, *range(2, grad_output.ndim))) if wants_bias else None)


def _to_copy(input: Any, *, non_blocking: bool = False, layout: Any = None, pin_memory: Any = None,
             **kwargs: Any) -> Any:
    return input.to(**{key: value for key, value in kwargs.items() if value is not None}, copy=True)


def _softmax(name: str) -> Callable[..., Any]:
    """softmax or log_softmax, which may compute halves in float32 on CUDA."""
    def softmax(input: Any, dim: int, half_to_float: bool) -> Any:
        if half_to_float and input.device.type == "cpu":
            raise RuntimeError("softmax with half to float conversion is not supported on CPU")
        return FUNCTIONS[name](input, dim, dtype=float32 if half_to_float else None)
    return softmax


def _functional(name: str) -> Any:
    return getattr(import_module(f"{PACKAGE}.nn.functional"), name)


def _convolution(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                 output_padding: Any, groups: int) -> Any:
    name = f"conv{'_transpose' if transposed else ''}{weight.dim() - 2}d"
    if transposed:
        return _functional(name)(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _functional(name)(input, weight, bias, stride, padding, dilation, groups)


def _conv(dims: int) -> Callable[..., Any]:
    def conv(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
             groups: int = 1) -> Any:
        single = isinstance(padding, (list, tuple)) and len(padding) == 1
        return _functional(f"conv{dims}d")(input, weight, bias, stride, padding[0] if single else padding, dilation,
                                           groups)
    return conv


def _batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                momentum: float, eps: float, cudnn_enabled: bool = True) -> Any:
    return _functional("batch_norm")(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _batch_norm_of_inference(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float,
                             eps: float) -> Any:
    empty = input.new_empty(0)
    return _functional("batch_norm")(input, running_mean, running_var, weight, bias, False, momentum, eps), empty, empty


def _max_pool2d_with_indices(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                             ceil_mode: bool = False) -> Any:
    return _functional("max_pool2d")(input, kernel_size, stride or None, padding, dilation, ceil_mode, True)


def _fourier(name: str, inverse: bool = False) -> Callable[..., Any]:
    """A Fourier transform, whose division by √n or n is a number: 0 for none, 1 for √n, 2 for n."""
    def function(input: Any, dim: Any, normalization: int, rest: Any = True) -> Any:
        back = inverse or name == "c2c" and not rest
        norm = ("backward", "ortho", "forward")[2 - normalization if back else normalization]
        module = import_module(f"{PACKAGE}.fft")
        if name == "c2c":
            return (module.ifftn if back else module.fftn)(input, dim=dim, norm=norm)
        if name == "c2r":
            return module.irfftn(input, [*(input.shape[d] for d in dim[:-1]), rest], dim, norm)
        return (module.rfftn if rest else module.fftn)(input, dim=dim, norm=norm)
    return function


def _svd(A: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None) -> Any:
    linalg = import_module(f"{PACKAGE}.linalg")
    if compute_uv:
        return linalg.svd(A, full_matrices, driver=driver)
    return A.new_empty(0), linalg.svdvals(A, driver=driver), A.new_empty(0)


def _layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                cudnn_enable: bool = True) -> Any:
    return _functional("layer_norm")(input, normalized_shape, weight, bias, eps)


def _group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                cudnn_enabled: bool = True) -> Any:
    return _functional("group_norm")(input, num_groups, weight, bias, eps)


def _elu(input: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    negative = (input.clamp(max=0) * input_scale).expm1() * (alpha * scale)
    return FUNCTIONS["where"](input > 0, input * scale, negative)


def _embedding(weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False,
               sparse: bool = False) -> Any:
    return _functional("embedding")(indices, weight, None if padding_idx == -1 else padding_idx, None, 2.0,
                                    scale_grad_by_freq, sparse)


def _filled_with(value: Any) -> Callable[..., Any]:
    """zeros or ones, whose options may be None."""
    def make(*size: Any, pin_memory: Any = None, layout: Any = None, **kwargs: Any) -> Any:
        shape = size[0] if size and isinstance(size[0], (tuple, list)) else size
        return FUNCTIONS["full"](shape, value, **{"dtype": kwargs.pop("dtype", None) or get_default_dtype(), **kwargs})
    return make


def _cross_entropy(name: str) -> Callable[..., Any]:
    def loss(input: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100,
             label_smoothing: float = 0.0) -> Any:
        options = {"label_smoothing": label_smoothing} if name == "cross_entropy" else {}
        return _functional(name)(input, target, weight, ignore_index=ignore_index,
                                 reduction=("none", "mean", "sum")[reduction], **options)
    return loss


def _reducing(name: str) -> Callable[..., Any]:
    """A loss, whose reduction is a number in `aten`: 0, 1, 2 for none, mean, sum."""
    def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        reduce, places = getattr(import_module(f"{PACKAGE}.nn.functional"), name), LOSSES[name]
        kwargs.update(zip(places, args))
        kind = kwargs.pop("reduction", 1)
        return reduce(input, target, **kwargs, reduction=("none", "mean", "sum")[kind])
    return loss


LOSSES = {"binary_cross_entropy_with_logits": ["weight", "pos_weight", "reduction"],
          "mse_loss": ["reduction"], "l1_loss": ["reduction"], "binary_cross_entropy": ["weight", "reduction"],
          "smooth_l1_loss": ["reduction", "beta"], "huber_loss": ["reduction", "delta"],
          "soft_margin_loss": ["reduction"]}
# gradients: of the loss in the result, g, to that in the input, from the result or the input
BACKWARDS: dict[str, Callable[..., Any]] = {
    "tanh_backward": lambda g, out: g * (1 - out * out.conj()),
    "sigmoid_backward": lambda g, out: g * (out * (1 - out)).conj(),
    "silu_backward": lambda g, x: g * x.sigmoid() * (1 + x * (1 - x.sigmoid())),
    "threshold_backward": lambda g, x, threshold: g.masked_fill(x <= threshold, 0),
    "_softmax_backward_data": lambda g, out, dim, input_dtype: out * (g - (g * out).sum(dim, keepdim=True)),
    "_log_softmax_backward_data": lambda g, out, dim, input_dtype: g - out.exp() * g.sum(dim, keepdim=True)}
OWN: dict[str, Callable[..., Any]] = {
    **IMAGES,
    "_fft_c2c": _fourier("c2c"), "_fft_r2c": _fourier("r2c"), "_fft_c2r": _fourier("c2r", True), "_linalg_svd": _svd,
    "slice": _slice, "index": _index, "index_put": _index_put,
    "convolution_backward": _convolution_backward, "_to_copy": _to_copy, "_softmax": _softmax("softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "convolution": _convolution, "conv1d": _conv(1), "conv2d": _conv(2), "conv3d": _conv(3), "batch_norm": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm_of_inference,
    "max_pool2d_with_indices": _max_pool2d_with_indices, "layer_norm": _layer_norm, "group_norm": _group_norm,
    "elu": _elu, "embedding": _embedding,
    "cross_entropy_loss": _cross_entropy("cross_entropy"), "nll_loss_nd": _cross_entropy("nll_loss"),
    "log_sigmoid": lambda input: _functional("logsigmoid")(input), "zeros": _filled_with(0), "ones": _filled_with(1),
    "unfold": lambda input, dimension, size, step: input.unfold(dimension, size, step),
    "alias": lambda input: input.view_as(input), "lift_fresh_copy": lambda input: input.clone(),
    "_assert_tensor_metadata": lambda *args, **kwargs: None,
    "lift_fresh": lambda input: input, "lift": lambda input: input,
    "_unsafe_view": lambda input, size: input.view(size), "sym_size": lambda input, dim: input.shape[dim],
    "sym_stride": lambda input, dim: input.stride(dim), "sym_numel": lambda input: input.numel(),
    "_local_scalar_dense": lambda input: input.item(), **{name: _reducing(name) for name in LOSSES}, **BACKWARDS}


def function_of(name: str) -> Callable[..., Any]:
    """Return the function of this name for `aten`: from the namespaces, nn.functional, or Tensor's methods."""
    from .nn import functional
    namespace, _, rest = name.partition("_")
    public = _of_package(name) if name in FUNCTIONS else None           # which asks overriding classes and modes
    found: Any = OWN.get(name) or public or getattr(functional, name, None)
    if found is None and namespace in ("linalg", "fft", "special"):
        found = getattr(import_module(f"{PACKAGE}.{namespace}"), rest, None)
    if found is None:
        found = getattr(Tensor, name, None) or _of_package(name)
    return found if callable(found) else unsupported(name, "torch.ops.aten",
                                                     "`aten` has the functions that this package has")[name]


def _of_package(name: str) -> Any:
    """A function of the root namespace that is loaded when it is first used."""
    try:
        return getattr(import_module(PACKAGE), name)
    except AttributeError:
        return None
