"""Normalization of each channel of each sample."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
           "LazyInstanceNorm3d"]  # fmt: skip


class _InstanceNorm(_NormBase):
    _doc = """Each channel of each sample with mean 0 and variance 1 (torch.nn.{name}).

    `(x - mean) / sqrt(var + eps) * weight + bias`, mean and (biased) variance being taken over the {n} last axes; in
    evaluation they are the running statistics, if these are tracked.

    Parameters:
        num_features: int: required, C
        eps: float: 1e-05
        momentum: float: 0.1
        affine: bool: False, learn scale and shift
        track_running_stats: bool: False
        device, dtype: None: the device and dtype of the weights
        bias: bool: True, learn the shift as well (by keyword only)
    Input: (N, C, {axes}) or (C, {axes})
    Output: the input's shape
    Weights: weight and bias (C) if affine; buffers running_mean and running_var (C), num_batches_tracked () if tracked

    >>> import tensorgrad as torch
    >>> torch.nn.{name}(4)(torch.ones(2, 4, {each:3})).shape
    torch.Size([2, 4, {each:3}])
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Device | None = None, dtype: Dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self):
        return self._dims + 1

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = self._get_no_batch_dim()
        axis = input.dim() - single
        if (features := input.size(axis)) != self.num_features:
            if self.affine:
                raise ValueError(f"expected input's size at dim={axis} to match num_features ({self.num_features}), "
                                 f"but got: {features}.")
            warnings.warn(f"input's size at dim={axis} does not match num_features. You can silence this warning by "
                          "not passing in num_features, which is not used because affine=False", stacklevel=2)
        if input.dim() == single:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)

    def _apply_instance_norm(self, input):
        by_sample = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias, by_sample,
                               momentum, self.eps)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        """Refuse, with advice, the running statistics of a state from before they had to be asked for."""
        stale = [key for key in (prefix + "running_mean", prefix + "running_var") if key in state_dict]
        if stale and local_metadata.get("version") is None and not self.track_running_stats:
            keys, name = " and ".join(f'"{key}"' for key in stale), type(self).__name__
            error_msgs.append(
                f"Unexpected running stats buffer(s) {keys} for {name} with track_running_stats=False. If state_dict "
                f"is a checkpoint saved before 0.4.0, this may be expected because {name} does not track running stats "
                f"by default since 0.4.0. Please remove these keys from state_dict. If the running stats are actually "
                f"needed, instead set track_running_stats=True in {name} to enable them. See the documentation of "
                f"{name} for details."
            )
            for key in stale:
                del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)


class InstanceNorm1d(_InstanceNorm, dims=1): _input_dims = (2, 3)
class InstanceNorm2d(_InstanceNorm, dims=2): _input_dims = (3, 4)
class InstanceNorm3d(_InstanceNorm, dims=3): _input_dims = (4, 5)
class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d, dims=1): cls_to_become = InstanceNorm1d
class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d, dims=2): cls_to_become = InstanceNorm2d
class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d, dims=3): cls_to_become = InstanceNorm3d
