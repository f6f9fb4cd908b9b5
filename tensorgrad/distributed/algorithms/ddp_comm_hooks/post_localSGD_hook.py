"""Gradients are averaged over all processes at first, and later over a part of them; parameters over all now and then.

T. Lin, S. U. Stich, K. K. Patel, M. Jaggi (2018), https://arxiv.org/abs/1808.07217
"""
from __future__ import annotations

from typing import Any

from ....futures import Future
from ....nn.parallel.buckets import GradBucket
from .debugging_hooks import noop_hook
from .default_hooks import chosen, mean

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """When to stop averaging over all processes. https://pytorch.org/docs → PostLocalSGDState

    Args:
        process_group: all processes; None for the default group
        subgroup: those that average gradients later on; None for the processes of this machine
        start_localSGD_iter: steps with means over all
        post_local_gradient_allreduce: whether the subgroup averages gradients at all
    """

    def __init__(self, process_group: Any, subgroup: Any, start_localSGD_iter: int,
                 post_local_gradient_allreduce: bool = True) -> None:
        self.process_group, self.subgroup, self.start_localSGD_iter = process_group, subgroup, start_localSGD_iter
        self.post_local_gradient_allreduce, self.iter = post_local_gradient_allreduce, 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step when its last bucket comes."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Any]:
    """Average gradients over all processes, and from a certain step on over a part.

    https://pytorch.org/docs → post_localSGD_hook

    A `PeriodicModelAverager` averages parameters after the optimizer's steps then.
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(chosen(state.process_group), bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return noop_hook(state, bucket)
    if state.subgroup is None:
        from .... import distributed
        state.subgroup, _ = distributed.new_subgroups()
    return mean(state.subgroup, bucket.buffer())
