"""Activations: elementwise functions, softmaxes along an axis, and multi-head attention."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..._tensor.torch_function import PUBLIC
from .. import functional as F
from .. import init as initial
from .._functions import native_attention
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .utils import Functional, declare, named, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


# ── elementwise ───────────────────────────────────────────────────────────────────────────────
class Threshold(Functional):
    """`x` where `x > threshold`, `value` elsewhere (torch.nn.Threshold).

    Parameters:
        threshold: float: required
        value: float: required
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Threshold(1, 20)(torch.tensor([0.0, 1.0, 2.0]))
    tensor([20., 20.,  2.])
    """

    __init__ = settings("threshold", "value", inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class ReLU(Functional):
    """Rectifier: `max(x, 0)` (torch.nn.ReLU).

    Parameters:
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    __init__ = settings(inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class RReLU(Functional):
    """Randomized leaky rectifier: `x` where `x >= 0`, `a * x` elsewhere (torch.nn.RReLU).

    While training, each element draws its own `a` from U(lower, upper); otherwise `a = (lower + upper) / 2`.

    Parameters:
        lower: float: 1/8
        upper: float: 1/3
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    __init__ = settings(lower=1 / 8, upper=1 / 3, inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(Functional):
    """`x` clipped to `[min_val, max_val]` (torch.nn.Hardtanh).

    Parameters:
        min_val: float: -1.0
        max_val: float: 1.0, greater than min_val
        inplace: bool: False, overwrite the input
        min_value, max_value: None: the deprecated names of the bounds
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Hardtanh(-2, 2)(torch.tensor([-3.0, 0.5]))
    tensor([-2.0000,  0.5000])
    """

    __init__ = settings(min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None)

    def _keep(self, min_value=None, max_value=None, **bounds):
        for name, value in (("min_val", min_value), ("max_val", max_value)):
            if value is not None:
                warnings.warn(f"keyword argument `{name}ue` is deprecated and renamed to `{name}`", FutureWarning,
                              stacklevel=3)
                bounds[name] = value
        super()._keep(**bounds)
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """`x` clipped to `[0, 6]` (torch.nn.ReLU6).

    Parameters:
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.ReLU6()(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """

    __init__ = settings(inplace=False)

    def _keep(self, inplace):
        super()._keep(min_val=0.0, max_val=6.0, inplace=inplace)


class Sigmoid(Functional):
    """`1 / (1 + exp(-x))` (torch.nn.Sigmoid).

    Parameters: none
    Input: (*)
    Output: (*), within 0 and 1
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Sigmoid()(torch.tensor([0.0]))
    tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return PUBLIC["sigmoid"](input)


class Hardsigmoid(Functional):
    """A sigmoid of straight lines: `x / 6 + 1 / 2` clipped to `[0, 1]` (torch.nn.Hardsigmoid).

    Parameters:
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*), within 0 and 1
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    __init__ = settings(inplace=False)
    extra_repr = Module.extra_repr

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Tanh(Functional):
    """Hyperbolic tangent (torch.nn.Tanh).

    Parameters: none
    Input: (*)
    Output: (*), within -1 and 1
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Tanh()(torch.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return PUBLIC["tanh"](input)


class SiLU(Functional):
    """Sigmoid linear unit, or swish: `x * sigmoid(x)` (torch.nn.SiLU).

    Parameters:
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.SiLU()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """

    __init__ = settings(inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(Functional):
    """`x * tanh(softplus(x))` (torch.nn.Mish).

    Parameters:
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Mish()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """

    __init__ = settings(inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class Hardswish(Functional):
    """A swish of straight lines: `x * clip(x + 3, 0, 6) / 6` (torch.nn.Hardswish).

    Parameters:
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Hardswish()(torch.tensor([-4.0, 4.0]))
    tensor([-0., 4.])
    """

    __init__ = settings(inplace=False)
    extra_repr = Module.extra_repr

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class ELU(Functional):
    """Exponential linear unit: `x` where `x > 0`, `alpha * (exp(x) - 1)` elsewhere (torch.nn.ELU).

    Parameters:
        alpha: float: 1.0
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    __init__ = settings(alpha=1.0, inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(Functional):
    """Continuously differentiable ELU: `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))` (torch.nn.CELU).

    Parameters:
        alpha: float: 1.0
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.CELU(2.0)(torch.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    __init__ = settings(alpha=1.0, inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(Functional):
    """Scaled ELU: `scale * elu(x, alpha)`, which keeps mean 0 and variance 1 (torch.nn.SELU).

    alpha = 1.6732632423543772, scale = 1.0507009873554805.

    Parameters:
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.SELU()(torch.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])
    """

    __init__ = settings(inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Functional):
    """Gated linear unit: `a * sigmoid(b)`, a and b being the halves of the input (torch.nn.GLU).

    Parameters:
        dim: int: -1, the axis to halve
    Input: (*, 2M, *)
    Output: (*, M, *)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    __init__ = settings(dim=-1)

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class GELU(Functional):
    """Gaussian error linear unit: `x * P(Z <= x)`, Z being normal (torch.nn.GELU).

    Parameters:
        approximate: 'none' or 'tanh': 'none', 'tanh' for `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))`
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.GELU()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """

    __init__ = settings(approximate="none")

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Functional):
    """`x` where `|x| > lambd`, 0 elsewhere (torch.nn.Hardshrink).

    Parameters:
        lambd: float: 0.5
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Hardshrink()(torch.tensor([-2.0, 0.25]))
    tensor([-2.,  0.])
    """

    __init__ = settings(lambd=0.5)

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class LeakyReLU(Functional):
    """`x` where `x >= 0`, `negative_slope * x` elsewhere (torch.nn.LeakyReLU).

    Parameters:
        negative_slope: float: 0.01
        inplace: bool: False, overwrite the input
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.LeakyReLU(0.5)(torch.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    __init__ = settings(negative_slope=0.01, inplace=False)

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class LogSigmoid(Functional):
    """`log(sigmoid(x))`, computed without overflow (torch.nn.LogSigmoid).

    Parameters: none
    Input: (*)
    Output: (*), at most 0
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.LogSigmoid()(torch.tensor([0.0]))
    tensor([-0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Functional):
    """A smooth rectifier: `log(1 + exp(beta * x)) / beta` (torch.nn.Softplus).

    Parameters:
        beta: float: 1.0
        threshold: float: 20.0, beyond which `beta * x` counts as linear
    Input: (*)
    Output: (*), positive
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    __init__ = settings(beta=1.0, threshold=20.0)

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Softshrink(Functional):
    """`x` moved towards 0 by `lambd`, but not beyond (torch.nn.Softshrink).

    Parameters:
        lambd: float: 0.5, not negative
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Softshrink()(torch.tensor([-2.0, 0.25, 2.0]))
    tensor([-1.5000,  0.0000,  1.5000])
    """

    __init__ = settings(lambd=0.5)

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    """A leaky rectifier that learns its slope: `x` where `x >= 0`, `weight * x` elsewhere (torch.nn.PReLU).

    Parameters:
        num_parameters: int: 1, one slope for all, or one per channel
        init: float: 0.25
        device, dtype: None: where the slopes are, and what
    Input: (N, C, *) or (*)
    Output: the input's shape
    Weights: weight (num_parameters)

    >>> import tensorgrad as torch
    >>> torch.nn.PReLU()(torch.tensor([-1.0, 2.0])).detach()
    tensor([-0.2500,  2.0000])
    """

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        declare(self, device, dtype, weight=(num_parameters,))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return named(self, "num_parameters")


class Softsign(Functional):
    """`x / (1 + |x|)` (torch.nn.Softsign).

    Parameters: none
    Input: (*)
    Output: (*), within -1 and 1
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Softsign()(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Functional):
    """`x - tanh(x)` (torch.nn.Tanhshrink).

    Parameters: none
    Input: (*)
    Output: (*)
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Tanhshrink()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


# ── along an axis ─────────────────────────────────────────────────────────────────────────────
class _AlongAxis(Functional):
    dim = None  # for modules pickled before there was a choice
    __init__ = settings(dim=None)


class Softmin(_AlongAxis):
    """`exp(-x) / sum(exp(-x))` along an axis (torch.nn.Softmin).

    Parameters:
        dim: int: None, the axis; leaving it out is deprecated
    Input: (*)
    Output: (*), sums to 1 along the axis
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Softmin(dim=0)(torch.tensor([3.0, 3.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongAxis):
    """`exp(x) / sum(exp(x))` along an axis (torch.nn.Softmax).

    Parameters:
        dim: int: None, the axis; leaving it out is deprecated
    Input: (*)
    Output: (*), sums to 1 along the axis
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Softmax(dim=0)(torch.tensor([3.0, 3.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongAxis):
    """`x - log(sum(exp(x)))` along an axis (torch.nn.LogSoftmax).

    Parameters:
        dim: int: None, the axis; leaving it out is deprecated
    Input: (*)
    Output: (*), at most 0
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.LogSoftmax(dim=0)(torch.tensor([3.0, 3.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Functional):
    """Softmax over the channels, at each place of an image (torch.nn.Softmax2d).

    Parameters: none
    Input: (N, C, H, W) or (C, H, W)
    Output: the input's shape, sums to 1 over C
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.Softmax2d()(torch.ones(2, 4, 3, 3)).unique()
    tensor([0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


# ── attention ─────────────────────────────────────────────────────────────────────────────────
class MultiheadAttention(Module):
    """Attention in several heads side by side (torch.nn.MultiheadAttention).

    Query, key and value are mapped to embed_dim and cut into heads; each head computes
    `softmax(q @ k.T / sqrt(head_dim) + mask) @ v`; the heads, joined again, are mapped by `out_proj`.
    A bool mask blocks where it is True; a float mask is added. The projections are drawn by Xavier's rule.

    Parameters:
        embed_dim: int: required, a multiple of num_heads
        num_heads: int: required
        dropout: float: 0.0, of the attention weights
        bias: bool: True, in all projections
        add_bias_kv: bool: False, append a learned key and value
        add_zero_attn: bool: False, append a key and value of zeros
        kdim, vdim: int: embed_dim, features of keys and values
        batch_first: bool: False, (N, L, E) for (L, N, E)
        device, dtype: None: the device and dtype of the weights
    Input: query (L, N, E), key (S, N, kdim), value (S, N, vdim), or without N; then key_padding_mask (N, S),
        need_weights, attn_mask (L, S) or (N * num_heads, L, S), average_attn_weights, is_causal
    Output: (L, N, E), and the weights (N, L, S), or (N, num_heads, L, S) where not averaged, or None
    Weights: in_proj_weight (3E, E), or q_proj_weight (E, E), k_proj_weight (E, kdim), v_proj_weight (E, vdim);
        in_proj_bias (3E), out_proj.weight (E, E), out_proj.bias (E), bias_k and bias_v (1, 1, E)

    >>> import tensorgrad as torch
    >>> attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.ones(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    __constants__ = ["batch_first"]
    _qkv_same_embed_dim = True  # for modules pickled before there was a choice

    def __init__(self, embed_dim: Any, num_heads: Any, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: Any = None, vdim: Any = None,
                 batch_first: bool = False, device: Device | None = None, dtype: Dtype | None = None) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, "
                             f"got embed_dim={embed_dim} and num_heads={num_heads} instead")
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        joint = self._qkv_same_embed_dim
        declare(
            self, device, dtype,
            in_proj_weight=(3 * embed_dim, embed_dim) if joint else None,
            q_proj_weight=None if joint else (embed_dim, embed_dim),
            k_proj_weight=None if joint else (embed_dim, self.kdim),
            v_proj_weight=None if joint else (embed_dim, self.vdim),
            in_proj_bias=(3 * embed_dim,) if bias else None,
            bias_k=(1, 1, embed_dim) if add_bias_kv else None,
            bias_v=(1, 1, embed_dim) if add_bias_kv else None,
        )  # fmt: skip
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                initial.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            initial.constant_(self.in_proj_bias, 0.0)
            initial.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                initial.xavier_normal_(extra)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        if not self.training and query is key is value and not self._obstacle(query, attn_mask, key_padding_mask):
            return self._inferred(query, attn_mask, key_padding_mask, need_weights, average_attn_weights)
        if any(x.is_nested for x in (query, key, value)):
            why = ("training is enabled" if self.training else self._obstacle(query, attn_mask, key_padding_mask) or
                   "non-self attention was used (query, key, and value are not the same Tensor)")
            raise AssertionError("MultiheadAttention does not support NestedTensor outside of its fast path. The fast "
                                 f"path was not hit because {why}")
        batch_first = self.batch_first and query.dim() == 3
        if batch_first:  # one tensor for what is one: the function then projects query, key and value at once
            turned = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = turned[id(query)], turned[id(key)], turned[id(value)]
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (output.transpose(0, 1) if batch_first else output), weights

    def _obstacle(self, query, attn_mask, key_padding_mask):
        """Return why evaluation does not take the path of inference; "" if it does."""
        if any(mask is not None and mask.is_floating_point() for mask in (attn_mask, key_padding_mask)):
            return "floating-point masks are not supported for fast path."
        for name in ("in_proj_bias", "in_proj_weight"):
            if (weight := getattr(self, name)) is not None and query.dtype is not weight.dtype:
                return f"dtypes of query ({query.dtype}) and self.{name} ({weight.dtype}) don't match"
        return native_attention.obstacle(self, query, (query, self.in_proj_weight, self.in_proj_bias,
                                                       self.out_proj.weight, self.out_proj.bias))

    def _inferred(self, query, attn_mask, key_padding_mask, need_weights, average_attn_weights):
        key_padding_mask = F._canonical_mask(key_padding_mask, "key_padding_mask", F._none_or_dtype(attn_mask),
                                             "attn_mask", query.dtype)
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        mask, kind = self.merge_masks(attn_mask, key_padding_mask, query)
        return native_attention._native_multi_head_attention(
            query, query, query, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.out_proj.weight, self.out_proj.bias, mask, need_weights, average_attn_weights, kind)

    def merge_masks(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                    query: Tensor) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and its kind: None for no mask, 1 for key_padding_mask alone, 2 for all heads."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length)
        return merged, 2
