"""Helpers for tensors and modules that are one step from PyTorch's own functions."""
import copy
import math
from itertools import chain

from .. import api as tg
from .. import nn
from ..nn.parameter import is_lazy
from .structures import is_sequence

__all__ = ["th_clip_norm", "th_copy_module", "th_flatten", "th_flatten_tensors", "th_global_avg_pool",
           "th_global_max_pool", "th_hard_update", "th_huber_loss_per_element", "th_median", "th_median_abs",
           "th_new_full", "th_norm", "th_normalize_feature", "th_soft_update", "th_to_scalar",
           "th_unflatten_tensors", "th_where"]


# ── tensors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def th_new_full(size, value, dtype=None, device=None, requires_grad=False):
    """Return a tensor filled with a value: `torch.full`, by default in the default dtype."""
    return tg.full(tuple(size) if is_sequence(size) else (size,), value, dtype=dtype or tg.get_default_dtype(),
                   device=device, requires_grad=requires_grad)


def th_to_scalar(x):
    """Return the only element of a tensor as a Python number; numbers pass through.

    >>> import tensorgrad as torch
    >>> th_to_scalar(torch.tensor([2.5])), th_to_scalar(3)
    (2.5, 3)
    """
    return x.item() if hasattr(x, "item") else x


def th_where(condition, x, y):
    """`torch.where`: elements of x where the condition holds, of y elsewhere; either may be a number."""
    return tg.where(condition, x, y)


def th_median(x):
    """The median of all elements, the lower one of two."""
    return x.median()


def th_median_abs(x):
    """The median of the absolute values."""
    return x.abs().median()


def th_normalize_feature(x):
    """Normalize each feature (all axes but the first) to mean 0 and standard deviation 1 over the samples.

    Constant features become 0.

    >>> import tensorgrad as torch
    >>> th_normalize_feature(torch.tensor([[1., 5.], [2., 5.], [3., 5.]]))[:, 0].tolist()
    [-1.0, 0.0, 1.0]
    """
    deviation = x.std(0)
    return (x - x.mean(0)) / deviation.where(deviation > 0, 1.0)


def th_flatten(x, start_dim=1):
    """Join the axes from `start_dim` on. Errors: ValueError unless there is such an axis."""
    if not -x.dim() <= start_dim < x.dim():
        raise ValueError(f"start_dim must be less than the number of axes, {x.dim()}, got {start_dim}")
    return x.flatten(start_dim)


def _over_space(x):
    if x.dim() < 3:
        raise ValueError(f"global pooling takes (batch, channels, …), got {tuple(x.shape)}")
    return x.flatten(2)


def th_global_avg_pool(x):
    """(batch, channels): the mean over all axes of (batch, channels, …) but the first two."""
    return _over_space(x).mean(2)


def th_global_max_pool(x):
    """(batch, channels): the maximum over all axes of (batch, channels, …) but the first two."""
    return _over_space(x).amax(2)


def th_huber_loss_per_element(x, y=None, delta=1.0):
    """Huber's loss of each element of x − y: half the square up to delta, linear beyond.

    Without y, x is the difference.

    >>> import tensorgrad as torch
    >>> th_huber_loss_per_element(torch.tensor([0.5, 3.0]))
    tensor([0.1250, 2.5000])
    """
    return nn.functional.huber_loss(x, tg.zeros_like(x) if y is None else y, reduction="none", delta=delta)


def th_norm(tensors, p=2):
    """The p-norm of all elements of a tensor, of a list of tensors or of a module's parameters; p may be inf.

    >>> import tensorgrad as torch
    >>> th_norm(torch.tensor([3., -4.])).item(), th_norm([torch.tensor([3.]), torch.tensor([-4.])], float("inf")).item()
    (5.0, 4.0)
    """
    return tg.linalg.vector_norm(th_flatten_tensors([tensors] if isinstance(tensors, tg.Tensor) else tensors), p)


def th_clip_norm(x, clip, p=2, in_place=False):
    """Scale a tensor down such that its p-norm is at most `clip`; a new tensor unless `in_place`.

    >>> import tensorgrad as torch
    >>> th_clip_norm(torch.tensor([3., 4.]), 1)
    tensor([0.6000, 0.8000])
    """
    norm = th_norm(x, p)
    factor = tg.where(norm > clip, clip / norm, 1.0).to(x.dtype)
    return x.mul_(factor) if in_place else x * factor


# ── many tensors as one ───────────────────────────────────────────────────────────────────────────────────────────────


def _tensors_of(source):
    return list(source.parameters() if isinstance(source, nn.Module) else source)


def th_flatten_tensors(tensors):
    """Concatenate the elements of a list of tensors, or of a module's parameters, into a vector.

    >>> import tensorgrad as torch
    >>> th_flatten_tensors([torch.ones(2), torch.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    return tg.cat([x.reshape(-1) for x in _tensors_of(tensors)])


def th_unflatten_tensors(flat, like):
    """Undo `th_flatten_tensors`: views of a vector in the shapes of a list of tensors, or of a module's parameters.

    Errors: ValueError for another length.
    """
    shapes = [x.shape for x in _tensors_of(like)]
    sizes = [math.prod(shape) for shape in shapes]
    if flat.dim() != 1 or len(flat) != sum(sizes):
        raise ValueError(f"expected one axis of {sum(sizes)} elements, got the shape {tuple(flat.shape)}")
    return [part.view(shape) for part, shape in zip(flat.split(sizes), shapes)]


# ── modules ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def th_copy_module(module):
    """Return a copy of a module that shares no memory with it."""
    return copy.deepcopy(module)


def th_soft_update(target, source, tau):
    """Move a module's parameters towards those of another of the same form: p ← (1 − tau)·p + tau·q; buffers are
    copied.

    Parameters correspond by their order. Errors: ValueError if the shapes differ; nothing is changed then.
    """
    pairs, buffers = _pairs(target, source)
    with tg.no_grad():
        for p, q in pairs:
            p.mul_(1 - tau).add_(q.to(p.device, p.dtype), alpha=tau)
        for p, q in buffers:
            p.copy_(q)


def th_hard_update(target, source):
    """Copy the parameters and buffers of another module of the same form. Errors: as for `th_soft_update`."""
    with tg.no_grad():
        for p, q in chain(*_pairs(target, source)):
            p.copy_(q)


def _pairs(target, source):
    """Return (pairs of parameters, pairs of buffers) of two modules.

    Uninitialized tensors of the target get the source's shapes and values.
    """
    found, late = [], []
    for what in "parameters", "buffers":
        ours, theirs = (dict(getattr(module, f"named_{what}")()) for module in (target, source))
        if len(ours) != len(theirs):
            raise ValueError(f"the modules differ: {len(ours)} and {len(theirs)} {what}")
        pairs = []
        for name, p, q in zip(ours, ours.values(), theirs.values()):
            if is_lazy(q):
                if not is_lazy(p):
                    raise ValueError(f"the modules differ: {name} waits for its shape in one of them")
                continue
            if is_lazy(p):
                late.append((p, q))
            elif p.shape != q.shape:
                raise ValueError(f"the modules differ: {name} has the shape {tuple(p.shape)}, the other's is "
                                 f"{tuple(q.shape)}")
            pairs.append((p, q))
        found.append(pairs)
    with tg.no_grad():
        for p, q in late:
            p.materialize(q.shape)
            p.copy_(q)
    return found
