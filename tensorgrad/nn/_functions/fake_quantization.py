"""Values rounded to the levels of quantized numbers, for training with their errors.

A value x becomes s · (clamp(round(x / s) + z, low, high) − z), with a scale s and a zero point z. Backward takes the
staircase for the identity: gradients pass unchanged inside of the range, and are 0 outside.
"""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ..._tensor.torch_function import namespaced
from ...api._arguments import check_tensor, normalize_dim
from ...autograd.function import Function
from ...dtype import SCALAR_TYPES, float16, float32, int32, promote_types

__all__ = ["fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"]


class FakeQuantize(Function):
    """The staircase, with the gradient of the identity."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
        wide = x.to(promote_types(x.dtype, float32))
        steps = wide * (1 / scale).to(wide.dtype)
        level = tg.round(steps + zero) if zero.is_floating_point() else tg.round(steps) + zero
        kept = tg.where(level >= low, level, low).clamp(max=high)             # NaN becomes the lowest level
        return ((kept - zero) * scale.to(wide.dtype)).to(x.dtype), (level >= low) & (level <= high)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, g: Any, unused: Any) -> Any:
        return g * ctx.saved_tensors[0], None, None, None, None


def _check(input: Any, name: str, zero: Any, low: int, high: int) -> None:
    if not input.is_floating_point():
        kernel = f"fake_quantize_{name.split('_')[3]}_cachemask_kernel_type_handling"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{SCALAR_TYPES[input.dtype.name]}'")
    if low > high:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if not zero._storage.hollow and not bool(((zero >= low) & (zero <= high)).all()):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def fake_quantize_per_tensor_affine(input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int,
                                    quant_max: int) -> Tensor:
    """Round values to the levels of one scale and zero point.

    Input: input floating point; scale, zero_point: numbers, or tensors of one element; quant_min ≤ zero_point ≤
        quant_max
    Output: the input's shape and dtype
    Errors: RuntimeError for a zero point outside of the range; NotImplementedError for other dtypes
    https://pytorch.org/docs → torch.fake_quantize_per_tensor_affine

    >>> import tensorgrad as torch
    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.12, 0.27, 9.0]), 0.1, 0, 0, 15)
    tensor([0.1000, 0.3000, 1.5000])
    """
    check_tensor(input, "fake_quantize_per_tensor_affine", "input", 1)
    scales, zeros = (value if isinstance(value, Tensor) else tg.tensor(value, dtype=kind, device=input.device)
                     for value, kind in ((scale, float32), (zero_point, int32)))
    _check(input, "fake_quantize_per_tensor_affine", zeros, quant_min, quant_max)
    return FakeQuantize.apply(input, scales, zeros, quant_min, quant_max)[0]  # type: ignore[no-any-return]


def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int,
                                     quant_max: int) -> Tensor:
    """Round values to the levels of a scale and a zero point for each index along an axis.

    Input: input floating point; scale and zero_point (C), of int32 or floating point, for an axis of length C
    Output: the input's shape and dtype
    Errors: RuntimeError if the lengths differ, for a zero point outside of the range, or of another dtype
    https://pytorch.org/docs → torch.fake_quantize_per_channel_affine

    >>> import tensorgrad as torch
    >>> x, zero = torch.tensor([[0.12, 0.27], [0.12, 0.27]]), torch.zeros(2, dtype=torch.int32)
    >>> torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.25]), zero, 0, 0, 15)
    tensor([[0.1000, 0.3000],
            [0.0000, 0.2500]])
    """
    for position, (name, value) in enumerate({"input": input, "scale": scale, "zero_point": zero_point}.items(), 1):
        check_tensor(value, "fake_quantize_per_channel_affine", name, position)
    if zero_point.dtype not in (int32, float32, float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {SCALAR_TYPES[zero_point.dtype.name]}")
    axis = normalize_dim(axis, input.dim())
    if not scale.shape == zero_point.shape == input.shape[axis:axis + 1]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    _check(input, "fake_quantize_per_channel_affine", zero_point, quant_min, quant_max)
    shape = [-1 if i == axis else 1 for i in range(input.dim())]
    return FakeQuantize.apply(input, scale.view(shape), zero_point.view(shape),  # type: ignore[no-any-return]
                              quant_min, quant_max)[0]


globals().update(namespaced({f.__name__: f for f in (
    fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine)}, __name__.partition(".")[0]))
