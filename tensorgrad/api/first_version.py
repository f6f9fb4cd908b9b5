"""Spellings of this project's first versions, which PyTorch lacks: functions as methods of Tensor, and makers of
tensors as attributes of `Tensor` and of `tensor`. They change nothing that PyTorch has.

>>> import tensorgrad as torch
>>> torch.tensor.zeros(2, 3).concat([torch.ones(1, 3)], dim=0).shape
torch.Size([3, 3])
"""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ._kinds import Ints1, Tensors
from ._register import EXPLAINED, FUNCTIONS
from .creation import as_leaf, full, tensor

# ── methods ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def method(*names: str) -> Any:
    """Decorate a function that becomes a method of Tensor under these names, with its own errors."""
    def attach(function: Any) -> Any:
        EXPLAINED.add(function)
        for name in names:
            setattr(Tensor, name, function)
        return function
    return attach


@method("from_data")
def from_data(input: Tensor, data: Any) -> Tensor:
    """A tensor with a copy of the data: of this tensor's class, dtype and device, and with gradients if it has them."""
    made = tensor(data, dtype=input.dtype, device=input.device)
    return as_leaf(made if type(input) is Tensor else made.as_subclass(type(input)), input.requires_grad)


@method("copy")
def copy(input: Tensor) -> Tensor:
    """A leaf with a copy of the values, that has gradients if this tensor has them:
    `x.detach().clone().requires_grad_(x.requires_grad)`.
    """
    return as_leaf(input.detach().clone(), input.requires_grad)


@method("cat", "concat")
def cat(input: Tensor, tensors: Tensors, dim: int = 0) -> Tensor:
    """Join this tensor and a list of others along an axis: `torch.cat([x, *tensors], dim)`."""
    return FUNCTIONS["cat"]([input, *tensors], dim)


@method("lookup")
def lookup(input: Tensor, index: Tensor) -> Tensor:
    """The rows of this table at an index of any shape: (V, D) → (…, D), as `nn.functional.embedding(index, x)`.

    IndexError for an index below 0.
    """
    return FUNCTIONS["embedding"](input, index)


@method("conv2d")
def conv2d(input: Tensor, kernel: Tensor, bias: Tensor | None = None, stride: Ints1 | None = None,
           padding: Ints1 | None = None, dilation: Ints1 = 1, groups: int = 1) -> Tensor:
    """Cross-correlation over the last two axes, as `nn.functional.conv2d`: (N, C, H, W) with a kernel (O, C / groups,
    K, K).
    """
    from ..nn import functional as F
    return F.conv2d(input, kernel, bias, 1 if stride is None else stride, 0 if padding is None else padding, dilation,
                    groups)


@method("max_pool2d")
def max_pool2d(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 | None = None,
               dilation: Ints1 = 1, ceil_mode: bool = False) -> Tensor:
    """The largest value of each window, as `nn.functional.max_pool2d`."""
    from ..nn import functional as F
    return F.max_pool2d(input, kernel_size, stride, 0 if padding is None else padding, dilation, ceil_mode)


@method("avg_pool2d")
def avg_pool2d(input: Tensor, kernel_size: Ints1, stride: Ints1 | None = None, padding: Ints1 | None = None,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of each window, as `nn.functional.avg_pool2d`."""
    from ..nn import functional as F
    return F.avg_pool2d(input, kernel_size, stride, 0 if padding is None else padding, ceil_mode, count_include_pad,
                        divisor_override)


# ── makers of tensors ─────────────────────────────────────────────────────────────────────────────────────────────────


def randn(*size: Ints1, mu: float = 0.0, sigma: float = 1.0, requires_grad: bool = False, **options: Any) -> Tensor:
    """Numbers from a normal distribution of mean `mu` and standard deviation `sigma`.

    >>> import tensorgrad as torch
    >>> torch.Tensor.randn(2, mu=5.0, sigma=0.0)
    tensor([5., 5.])
    """
    made = FUNCTIONS["randn"](*size, **options)
    return as_leaf(made if (mu, sigma) == (0.0, 1.0) else (made * sigma + mu).detach(), requires_grad)


def bernoulli(p: float, shape: Any, **options: Any) -> Any:
    """Zeros and, with probability p, ones."""
    requires_grad = options.pop("requires_grad", False)
    return as_leaf(FUNCTIONS["bernoulli"](full(shape, float(p), **options)), requires_grad)


MAKERS = {name: FUNCTIONS[name] for name in ("arange", "empty", "ones", "rand", "randint", "zeros")} | {"randn": randn}
for _name, _make in MAKERS.items():
    setattr(Tensor, _name, staticmethod(_make))


def with_makers(tensor: Any) -> None:
    """Give `torch.tensor` the functions that make tensors, as attributes. (`Tensor.bernoulli` is PyTorch's method.)"""
    for name, make in (MAKERS | {"bernoulli": bernoulli}).items():
        setattr(tensor, name, make)
