"""PowerSGD: gradients travel as products of narrow matrices.

T. Vogels, S. P. Karimireddy, M. Jaggi (2019), https://arxiv.org/abs/1905.13727

A gradient M of n × m becomes P Qᵀ, with r columns in P and Q: with Q of the step before, P is the orthogonalized mean
of M Q over the processes, and Q the mean of Mᵀ P. The remainder is added to the gradient of the next step.
"""
from __future__ import annotations

from math import ceil, sqrt
from typing import Any

import numpy as np

from .... import api as tg
from ....futures import Future
from ....nn.parallel.buckets import GradBucket
from ....nn.processes import at_once, finish
from .default_hooks import chosen, mean

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """Settings of PowerSGD, and its memory from step to step. https://pytorch.org/docs → PowerSGDState

    Args:
        process_group: the processes; None for all
        matrix_approximation_rank: columns of P and Q
        start_powerSGD_iter: steps with plain means before the first one with products
        min_compression_rate: how many times fewer numbers P and Q must have than M
        use_error_feedback: whether what was left out is added to the next gradient
        warm_start: whether Q of one step begins the next; else it is random
        orthogonalization_epsilon: added to norms of columns, against division by 0
        random_seed: of Q
        compression_stats_logging_frequency: kept
        batch_tensors_with_same_shape: whether matrices of one shape are multiplied at once
    Errors: ValueError for a start before the third step with error feedback or warm start: buckets change after the
        first.
    """

    def __init__(self, process_group: Any, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1_000,
                 min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
                 orthogonalization_epsilon: float = 0,
                 random_seed: int = 0,
                 compression_stats_logging_frequency: int = 10_000,
                 batch_tensors_with_same_shape: bool = False) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError("Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, "
                             "because PowerSGD can only be applied after the first two iterations in DDP.")
        self.process_group, self.matrix_approximation_rank, self.start_powerSGD_iter = (process_group,
                                                                                        matrix_approximation_rank,
                                                                                        start_powerSGD_iter)
        self.min_compression_rate, self.use_error_feedback, self.warm_start = (min_compression_rate, use_error_feedback,
                                                                               warm_start)
        self.orthogonalization_epsilon, self.batch_tensors_with_same_shape = (orthogonalization_epsilon,
                                                                              batch_tensors_with_same_shape)
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Any] = {}            # by the number of the bucket
        self.p_memory_dict: dict[int, list[Any]] = {}
        self.q_memory_dict: dict[int, list[Any]] = {}
        self.iter = self.total_numel_before_compression = self.total_numel_after_compression = 0

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = None
        vars(self).update(state)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step when its last bucket comes."""
        self.iter += bucket.is_last()

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer numbers travelled, how many there were, and how many travelled."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after else 0, before, after


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """Reduce each matrix of gradients as a product, where that saves enough, and all others as they are.

    https://pytorch.org/docs → powerSGD_hook
    """
    group, buffer = chosen(state.process_group), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(group, buffer)
    before = _with_errors(state, bucket.index(), buffer)
    matrices: dict[Any, list[Any]] = {}
    others, start = [], 0
    for parameter in bucket.parameters():
        piece = buffer[start:start + parameter.numel()]
        start += parameter.numel()
        rows = parameter.shape[0] if parameter.ndim else 1
        matrix = piece.view(rows, -1)
        numbers = sum(matrix.shape) * min(*matrix.shape, state.matrix_approximation_rank)
        state.total_numel_before_compression += piece.numel()
        if numbers * state.min_compression_rate < piece.numel():
            state.total_numel_after_compression += numbers
            matrices.setdefault(matrix.shape, []).append(matrix)
        else:
            state.total_numel_after_compression += piece.numel()
            others.append(piece)
    flat = tg.cat(others) if others else None
    work = None if flat is None else group.allreduce(flat)
    lots = ([[m] for same in matrices.values() for m in same] if not state.batch_tensors_with_same_shape
            else list(matrices.values()))
    stacks = [tg.stack(lot) for lot in lots]
    _approximate(state, bucket.index(), group, stacks, work)
    for lot, stack in zip(lots, stacks, strict=True):
        for matrix, found in zip(lot, stack, strict=True):
            matrix.copy_(found)
    if flat is not None:
        for piece, found in zip(others, flat.div_(group.size()).split([piece.numel() for piece in others]),
                                strict=True):
            piece.copy_(found)
    return _done(state, bucket, before, buffer)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """Reduce all gradients of a bucket as one square matrix: faster and coarser.

    https://pytorch.org/docs → batched_powerSGD_hook
    """
    group, buffer = chosen(state.process_group), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(group, buffer)
    side = ceil(sqrt(buffer.numel()))
    state.total_numel_before_compression += buffer.numel()
    state.total_numel_after_compression += 2 * side * state.matrix_approximation_rank
    whole = buffer.new_zeros(side * side)
    whole[:buffer.numel()] = buffer
    before = _with_errors(state, bucket.index(), whole)
    square = whole.view(1, side, side)
    _approximate(state, bucket.index(), group, [square], None)
    buffer.copy_(whole[:buffer.numel()])
    return _done(state, bucket, before, whole, buffer)


def _with_errors(state: PowerSGDState, index: int, buffer: Any) -> Any:
    """Add what the last step left out to the gradients; a copy of them then."""
    if not state.use_error_feedback:
        return None
    if index in state.error_dict:
        buffer.add_(state.error_dict[index])
    return buffer.clone()


def _done(state: PowerSGDState, bucket: GradBucket, before: Any, after: Any, result: Any = None) -> Future[Any]:
    if state.use_error_feedback:
        state.error_dict[bucket.index()] = before.sub_(after)
    state.maybe_increase_iter(bucket)
    future: Future[Any] = Future()
    future.set_result(after if result is None else result)
    return future


def _approximate(state: PowerSGDState, index: int, group: Any, stacks: list[Any], pending: Any) -> None:
    """Replace stacks of matrices (B, n, m) by the products P Qᵀ that stand for their means.

    `pending` is what began before, and ends meanwhile.
    """
    qs = state.q_memory_dict.get(index) if state.warm_start else None
    if qs is None:
        generator = tg.Generator().manual_seed(int(state.rng.randint(1_000_000_000)))
        widths = [min(*stack.shape[1:], state.matrix_approximation_rank) for stack in stacks]
        qs = [tg.randn(stack.shape[0], stack.shape[2], width, dtype=stack.dtype, generator=generator).to(stack.device)
              for stack, width in zip(stacks, widths, strict=True)]
    for q in qs:
        _orthogonalize(q, state.orthogonalization_epsilon)
    ps = [stack @ q for stack, q in zip(stacks, qs, strict=True)]
    finish(pending)
    _summed(group, ps)
    for p in ps:
        _orthogonalize(p, state.orthogonalization_epsilon)
    qs = [stack.mT @ p for stack, p in zip(stacks, ps, strict=True)]
    _summed(group, qs)
    for stack, p, q in zip(stacks, ps, qs, strict=True):
        stack.copy_(p @ q.div_(group.size()).mT)
    if state.warm_start:
        state.p_memory_dict[index], state.q_memory_dict[index] = ps, qs


def _summed(group: Any, tensors: list[Any]) -> None:
    """Replace tensors by their sums over the processes, which travel together."""
    if tensors:
        flat = tg.cat([t.flatten() for t in tensors])
        at_once(group.allreduce, flat)
        for tensor, found in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(found.view(tensor.shape))


def _orthogonalize(matrices: Any, epsilon: float) -> None:
    """Make the columns of matrices (B, n, r) orthonormal."""
    rank = matrices.shape[2]
    if rank > 2 and matrices.dtype.itemsize > 2:
        matrices.copy_(tg.linalg.qr(matrices)[0])
        return
    for i in range(rank):
        column = matrices[:, :, i:i + 1]
        column.div_(column.norm(dim=1, keepdim=True) + epsilon)
        rest = matrices[:, :, i + 1:]
        rest.sub_((column * rest).sum(1, keepdim=True) * column)
