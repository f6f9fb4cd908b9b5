"""Normalization of each channel over the batch, with running statistics for evaluation."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import api as tg
from .. import functional as F
from .. import init, processes
from ..parameter import UninitializedBuffer
from ._functions import batch_norm_of_all
from .lazy import LazyModuleMixin, declare_later
from .module import Module
from .utils import PerDimension, check_dims, declare, named

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
           "SyncBatchNorm"]  # fmt: skip


class _NormBase(PerDimension, Module):
    """Base of batch and instance norms: scale and shift, running statistics, and their state."""

    _version = 2  # 1 had no num_batches_tracked
    _input_dims: tuple[int, ...]
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Device | None = None, dtype: Dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,) if affine else None
        declare(self, device, dtype, weight=shape, bias=shape if bias else None)
        mean = var = count = None
        if track_running_stats:
            mean = tg.zeros(num_features, device=device, dtype=dtype)
            var = tg.ones(num_features, device=device, dtype=dtype)
            count = tg.tensor(0, dtype=tg.int64, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        check_dims(input, self._input_dims)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, {named(self, 'eps', 'momentum', 'affine')}, bias={self.bias is not None}, "
                f"{named(self, 'track_running_stats')}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            known = count is not None and count.device.type != "meta"
            state_dict[key] = count if known else tg.tensor(0, dtype=tg.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _LazyNormBase(LazyModuleMixin):
    """Reads `num_features` off the first input."""

    _doc = """A norm that reads `num_features` off its first input (torch.nn.{name}).

    From then on it is an ordinary module: the one of this name without "Lazy".

    Parameters:
        eps: float: 1e-05
        momentum: float: 0.1, None for the plain mean of all batches
        affine: bool: True, learn scale and shift
        track_running_stats: bool: True
        device, dtype: None: the device and dtype of the weights
        bias: bool: True, learn the shift as well (by keyword only)
    Input: (N, C, {axes})
    Output: (N, C, {axes})
    Weights: weight and bias (C); buffers running_mean and running_var (C), num_batches_tracked (); once known

    >>> import tensorgrad as torch
    >>> torch.nn.{name}()(torch.ones(2, 4, {each:3})).shape
    torch.Size([2, 4, {each:3}])
    """

    def __init__(self, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Device | None = None, dtype: Dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            declare_later(self, device, dtype, "weight", *(["bias"] if bias else []))
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tg.tensor(0, dtype=tg.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class _BatchNorm(_NormBase):
    _doc = """Each channel with mean 0 and variance 1 over the batch (torch.nn.{name}).

    `(x - mean) / sqrt(var + eps) * weight + bias`. While training, mean and (biased) variance are the batch's, and
    running statistics follow them: `running = (1 - momentum) * running + momentum * batch`, with the unbiased
    variance. In evaluation the running statistics take their place.

    Parameters:
        num_features: int: required, C
        eps: float: 1e-05
        momentum: float: 0.1, None for the plain mean of all batches
        affine: bool: True, learn scale and shift
        track_running_stats: bool: True, False for the batch's statistics at all times
        device, dtype: None: the device and dtype of the weights
        bias: bool: True, learn the shift as well (by keyword only)
    Input: (N, C, {axes}){cls._or_flat}
    Output: the input's shape
    Weights: weight and bias (C); buffers running_mean and running_var (C), num_batches_tracked ()

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(4)(torch.ones(2, 4, {each:3})).shape
    torch.Size([2, 4, {each:3}])
    """

    _or_flat = ""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Device | None = None, dtype: Dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        updates = self.training and self.track_running_stats
        if updates and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches so far
                momentum = 1.0 / float(self.num_batches_tracked)
        known = updates or not self.training
        mean, var = (self.running_mean, self.running_var) if known else (None, None)
        by_batch = self.training or (mean is None and var is None)
        return self._normalized(input, mean, var, by_batch, momentum)

    def _normalized(self, input, mean, var, by_batch, momentum):
        """Normalize the input by the statistics of the batch, or by the running ones."""
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm, dims=1): _input_dims, _or_flat = (2, 3), " or (N, C)"
class BatchNorm2d(_BatchNorm, dims=2): _input_dims = (4,)
class BatchNorm3d(_BatchNorm, dims=3): _input_dims = (5,)
class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d, dims=1): cls_to_become = BatchNorm1d
class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d, dims=2): cls_to_become = BatchNorm2d
class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d, dims=3): cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all processes together (torch.nn.SyncBatchNorm).

    Mean and variance are taken over the N elements of a channel in all processes: from each process's mean μᵣ, variance
    σᵣ² and count nᵣ, `mean = Σ nᵣ μᵣ / N` and `var = Σ nᵣ (σᵣ² + (μᵣ - mean)²) / N`. Gradients equal those of a single
    process with the whole batch, to any order. In evaluation, or with one process, it is BatchNorm over any number of
    axes.

    Parameters:
        num_features: int: required, C
        eps: float: 1e-05
        momentum: float: 0.1, None for the plain mean of all batches
        affine: bool: True, learn scale and shift
        track_running_stats: bool: True, False for the batch's statistics at all times
        process_group: object: None, the processes that share a batch
        device, dtype: None: the device and dtype of the weights
        bias: bool: True, learn the shift as well (by keyword only)
    Input: (N, C, *)
    Output: (N, C, *)
    Weights: weight and bias (C); buffers running_mean and running_var (C), num_batches_tracked ()

    >>> import tensorgrad as torch
    >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm2d(4))
    SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: Any | None = None, device: Device | None = None,
                 dtype: Dtype | None = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _normalized(self, input, mean, var, by_batch, momentum):
        group = processes.default_group if self.process_group is None else self.process_group
        if not (by_batch and self.training) or group is None or group.size() == 1:
            return super()._normalized(input, mean, var, by_batch, momentum)
        return batch_norm_of_all(input, mean, var, self.weight, self.bias, momentum, self.eps, group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """Return `module` with each batch norm in it replaced by a SyncBatchNorm of its weights and buffers."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = SyncBatchNorm(module.num_features, module.eps, module.momentum, module.affine,
                                      module.track_running_stats, process_group, bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(converted, name, getattr(module, name))
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
