"""Batch normalization over the batches of several processes."""
from ... import api as tg
from ...autograd.function import Function
from ...core.dispatch import xp
from ..processes import at_once


def batch_norm_of_all(input, running_mean, running_var, weight, bias, momentum, eps, group):
    """Normalize by the mean and the variance over all processes, and update the running ones."""
    channels, count = input.shape[1], input.numel() // input.shape[1]
    precise = input if input.dtype.itemsize > 2 else input.float()
    mean, variance = (Moments.apply(precise) if count else (precise.flatten(2).sum((0, *range(2, min(input.ndim, 3)))),)
                      * 2)
    parts = Gather.apply(group, tg.cat([mean, variance, mean.new_full((1,), count)]))
    means, variances, counts = parts[:, :channels], parts[:, channels:-1], parts[:, -1:].detach()
    total = counts.sum()
    if not total:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    share = counts / total
    mean = (share * means).sum(0)
    variance = (share * (variances + (means - mean) ** 2)).sum(0)
    if running_mean is not None:
        with tg.no_grad():
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            running_var.lerp_((variance * (total / (total - 1))).to(running_var.dtype), momentum)
    out = xp.affine_by_channel(precise, weight, bias, mean, variance, eps=eps)
    return out.to(input.dtype)


class Moments(Function):
    """Mean and variance of each channel (axis 1), Σ x / n and Σ (x − μ)² / n; dL/dx = dL/dμ / n + dL/dσ² · 2 (x − μ) /
    n
    """

    @staticmethod
    def forward(ctx, x):
        _, mean, variance = xp.native_batch_norm(x, None, None, eps=1.0)
        ctx.save_for_backward(x, mean)
        return mean, variance

    @staticmethod
    def backward(ctx, g_mean, g_variance):
        x, mean = ctx.saved_tensors
        count = x.numel() // x.shape[1]
        slope = g_variance * (2 / count)
        none = tg.zeros_like(mean)
        return xp.affine_by_channel(x, slope, g_mean / count - slope * mean, none, none + 1, eps=0.0)


class Gather(Function):
    """Concatenates the tensors of all processes; in backward, each process gets the sum of all gradients for its
    tensor."""

    @staticmethod
    def forward(ctx, group, own):
        ctx.group = group
        parts = list(tg.empty(group.size(), *own.shape, dtype=own.dtype, device=own.device).unbind(0))
        at_once(group.allgather, parts, own.contiguous())
        return tg.stack(parts)

    @staticmethod
    def backward(ctx, g):
        return None, Sum.apply(ctx.group, g)[ctx.group.rank()]


class Sum(Function):
    """Sums over all processes; the gradient is the sum of all processes' gradients."""

    @staticmethod
    def forward(ctx, group, own):
        ctx.group = group
        whole = own.clone(memory_format=tg.contiguous_format)
        at_once(group.allreduce, whole)
        return whole

    @staticmethod
    def backward(ctx, g):
        return None, Sum.apply(ctx.group, g)
