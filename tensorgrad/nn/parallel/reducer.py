"""Gradients become the mean of those of all processes while backward goes on.

S. Li et al., PyTorch Distributed, VLDB 2020
"""
from __future__ import annotations

import weakref
from typing import Any

from ... import api as tg
from ...core.dispatch import wrap
from ...core.mode import mode
from ...core.sweep import on
from ...futures import Future
from ..processes import at_once, finish
from .buckets import Bucket, GradBucket, assigned, settle

__all__ = ["Reducer"]

UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
    "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by "
    "\nmaking sure all `forward` function outputs participate in calculating loss. ")
CHANGED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your training graph has changed in this iteration, e.g., one parameter is used in first iteration, but then got "
    "unused in the second iteration. this is not compatible with static_graph set to True.")
NEWLY_USED = (
    "Your training graph has changed in this iteration, e.g., one parameter is unused in first iteration, but then got "
    "used in the second iteration. this is not compatible with static_graph set to True.")
TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a "
    "module parameter outside the `forward` function. Please make sure model parameters are not shared across multiple "
    "concurrent forward-backward passes. or try to use _set_static_graph() as a workaround if this module graph does "
    "not change during training loop.2) Reused parameters in multiple reentrant backward passes. For example, if you "
    "use multiple `checkpoint` functions to wrap the same part of your model, it would result in the same set of "
    "parameters been used by different reentrant backward passes multiple times, and hence marking a variable ready "
    "multiple times.")


class Reducer:
    """Averages gradients over the processes of a group, bucket by bucket, each as soon as its last gradient is there.

    Buckets hold parameters in the reverse of their order in the module, which is about the order in which gradients
    come; after the first backward, in the order in which they came to the first process. All processes start buckets in
    one order, whichever is full first. After `prepare`, at the end of a forward, the next backward counts.

    Args:
        parameters, names: those that need gradients, alike in all processes
        group: the process group: `size()`, `allreduce(tensor)`
        limits: bytes of the first bucket, of the second …, of all others
        finds_unused: whether some parameters may get no gradient in some processes
        static: whether all backwards use the same parameters as often as the first
        lasting: whether gradients stay views of memory that lasts
        skips_unused: whether a bucket that no gradient came to does not travel: all processes must leave out the same
    """

    def __init__(self, parameters: Any, names: Any, group: Any, limits: Any, finds_unused: bool = False,
                 static: bool = False, lasting: bool = False, skips_unused: bool = False) -> None:
        self.parameters, self.names, self.group, self.limits = parameters, names, group, limits
        self.finds_unused, self.static, self.lasting, self.skips_unused = finds_unused, static, lasting, skips_unused
        self.hook = self.state = None
        self.divisor = group.size()
        self.expecting = self.unfinished = False
        self.used = [0] * len(parameters)       # whether a gradient came, since processes met last
        self.used_anywhere = None               # of a static graph, after its first backward
        self.uses = None                        # of a static graph: how often a gradient came in the first backward
        self.arrivals = []                      # the order of gradients in the first backward, until buckets follow it
        self.rebuilt = finds_unused and not static      # then that order says little
        self._fill(range(len(parameters) - 1, -1, -1))
        self.handles = [p.register_post_accumulate_grad_hook(_listener(weakref.ref(self), i))
                        for i, p in enumerate(parameters)]

    def __del__(self) -> None:
        self.remove_hooks()

    def remove_hooks(self) -> None:
        """Let gradients come without being noticed."""
        for handle in self.__dict__.get("handles", ()):
            handle.remove()

    def _fill(self, order):
        room = getattr(self.group, "room", None)
        self.buckets = [Bucket(indices, [self.parameters[i] for i in indices], self.lasting, room)
                        for indices in assigned(self.parameters, order, self.limits)]
        self.places = {i: (bucket, place) for bucket in self.buckets for place, i in enumerate(bucket.indices)}
        self.places = [self.places[i] for i in range(len(self.parameters))]
        self._reset()

    def rebuild(self) -> None:
        """Once, after the first backward, arrange buckets in the order in which gradients came to the first process."""
        if self.rebuilt or not self.arrivals:
            return
        order = [*dict.fromkeys(self.arrivals)]
        order += [i for i in range(len(self.parameters) - 1, -1, -1) if i not in set(order)]
        if self.group.size() > 1:
            agreed = tg.tensor(order, dtype=tg.int32, device=self.parameters[0].device)
            at_once(self.group.broadcast, agreed, 0)
            order = agreed.tolist()
        self.rebuilt, self.arrivals = True, []
        for bucket in self.buckets:
            bucket.release()
        self._fill(order)

    @property
    def travels(self) -> Any:
        """Return True if there is anything to do besides counting."""
        return self.hook is not None or self.group.size() > 1

    # ── one iteration ─────────────────────────────────────────────────────────────────────────────────────────────────

    def prepare(self) -> None:
        """Count the gradients of the next backward.

        Errors: RuntimeError if some of those of the last one never came.
        """
        self.check_finished()
        self._reset()
        self.expecting = True

    def prepare_for_backward(self, outputs: Any) -> None:
        """`prepare`, under the name by which programs force averaging after a forward within `no_sync`."""
        self.prepare()

    def check_finished(self) -> None:
        """Raise RuntimeError if parameters got no gradient in the last backward."""
        if self.unfinished:
            raise RuntimeError(self._what_is_missing())

    def _reset(self):
        count = len(self.parameters)
        self.ready, self.next, self.idle = [False] * count, 0, []
        self.left = [0] * count if self.uses is None else list(self.uses)
        self.counts, self.unfinished = None, False
        for bucket in self.buckets:
            bucket.begin()

    def _what_is_missing(self):
        missing = [i for i, ready in enumerate(self.ready) if not ready]
        rank = self.group.rank()
        return (f"{CHANGED if self.static else UNUSED}\n"
                f"Parameters which did not receive grad for rank {rank}: "
                f"{', '.join(reversed([self.names[i] for i in missing]))}\nParameter indices which did not receive "
                f"grad for rank {rank}: {' '.join(map(str, missing))}")

    def arrived(self, index: int) -> None:
        """A backward has added all it has to the gradient of a parameter."""
        self.used[index] = 1
        if not self.expecting:
            return
        if self not in mode.sweep.notes:
            self._begin_sweep()
        if not self.rebuilt and not self.ready[index]:
            self.arrivals.append(index)
        if self.static:
            if self.uses is None:
                self.left[index] += 1
                return
            if not self.uses[index]:
                raise RuntimeError(NEWLY_USED)
            self.left[index] -= 1
            if self.left[index]:
                return
        self._complete(index)

    def _begin_sweep(self):
        """See what the backward that is under way will bring."""
        mode.sweep.notes[self] = self.unfinished = True
        mode.sweep.callbacks.append(self._end_sweep)
        if self.uses is not None:
            self._idle(i for i, uses in enumerate(self.uses) if not uses)
        elif self.finds_unused and not self.static and mode.sweep.outer is None:
            self._idle(i for i, p in enumerate(self.parameters) if not mode.sweep.reaches(p._node))

    def _idle(self, indices):
        """Count parameters that no gradient will come to."""
        for index in indices:
            if not self.ready[index]:
                self.idle.append(index)
                self._complete(index, used=False)

    def _complete(self, index, used=True):
        """Put a gradient into its bucket, and start the buckets that are full and whose turn it is."""
        if self.ready[index]:
            raise RuntimeError(f"{TWICE} Parameter at index {index} with name {self.names[index]} has been marked as "
                               f"ready twice.")
        self.ready[index] = True
        bucket, place = self.places[index]
        if self.travels:
            bucket.take(place, 1 if self.hook is not None else 1 / self.divisor, used)
        bucket.pending -= 1
        if bucket.pending == 0:
            self._start_full_ones()

    def _start_full_ones(self):
        try:
            while self.next < len(self.buckets) and self.buckets[self.next].pending == 0:
                bucket, index = self.buckets[self.next], self.next
                self.next += 1
                if self.travels and not (self.skips_unused and set(bucket.indices) <= set(self.idle)):
                    bucket.work = on(bucket, self.start)(bucket, index)
            if self.next == len(self.buckets) and self._asks_who_used():
                self.counts = self.exchange_used()
        except BaseException:
            self.expecting = self.unfinished = False        # this backward is over
            raise

    def start(self, bucket: Any, index: int) -> Any:
        """Let a bucket travel: by the communication hook, or by an all-reduce. Return the work to wait for."""
        if self.hook is None:
            tensor = bucket.tensor()
            if index + 1 < len(self.buckets) or tensor.device.type != "cpu":
                return self.group.allreduce(tensor)
            at_once(self.group.allreduce, tensor)       # little is left to be done meanwhile
            return None
        given = GradBucket(bucket, index, index + 1 == len(self.buckets))
        future = self.hook(self.state, given)
        if not isinstance(future, Future):
            raise RuntimeError(f"DDP communication hook's callback must return a torch.futures.Future object, but got "
                               f"{type(future).__name__}")
        return Result(future, bucket)

    def _asks_who_used(self):
        return (self.group.size() > 1 and (self.finds_unused and not self.static or self.static
                                           and self.used_anywhere is None))

    def exchange_used(self) -> Any:
        """Return how many processes have a gradient for each parameter, as a tensor."""
        counts = tg.tensor(self.used, dtype=tg.int32, device=self.parameters[0].device)
        at_once(self.group.allreduce, counts)
        return counts

    def _end_sweep(self):
        """At the end of a backward: wait for the buckets, if it brought all that was to come."""
        if not self.expecting:
            return
        first = self.static and self.uses is None
        if first:
            self.uses = self.left
            for index, uses in enumerate(self.uses):
                if uses:
                    self._complete(index)
        if first or self.finds_unused and not self.static:
            self._idle(range(len(self.parameters)))
        else:       # a step may end without a gradient, as a Function does that returns None
            self._idle([i for i, p in enumerate(self.parameters) if not self.ready[i] and p._node is not None
                        and mode.sweep.reaches(p._node)])
        if self.next == len(self.buckets):
            self._finish()

    def _finish(self):
        self.expecting = self.unfinished = False
        for bucket in self.buckets:
            on(bucket, bucket.finish)()
        used, self.used = self.used, [0] * len(self.used)
        if self.counts is not None:
            used = self.counts.tolist()
        if self.static:
            self.used_anywhere = used = used if self.used_anywhere is None else self.used_anywhere
        if self.travels:
            for index in self.idle:
                if used[index]:
                    self._give(index)

    def _give(self, index):
        """Give a parameter that was not used here the gradient that it has elsewhere."""
        bucket, place = self.places[index]
        parameter, view = self.parameters[index], bucket.views[place]
        if parameter._grad is None:
            parameter._grad = wrap(view, type(bucket._storage)())
        elif parameter._grad.array is not view:
            settle(parameter._grad, view)

    # ── for processes that have no more data ──────────────────────────────────────────────────────────────────────────

    def shadow(self) -> None:
        """Take part in the reductions of a backward of others, with zeros; gradients are the mean of theirs then."""
        works = []
        for index, bucket in enumerate(self.buckets):
            bucket.begin()
            bucket.tensor()
            bucket._storage.assign(bucket.flat, 0)
            works.append(self.start(bucket, index))
        used = self.exchange_used() if self._asks_who_used() else None
        for work in works:
            finish(work)
        counts = self.used_anywhere if used is None else used.tolist()
        if self.static:
            self.used_anywhere = counts
        for index in range(len(self.parameters)):
            if counts is None or counts[index]:
                self._give(index)
        if not self.rebuilt and not self.arrivals:
            self.arrivals = [i for bucket in self.buckets for i in bucket.indices]


class Result:
    """Pending result of a communication hook, which goes into the bucket once it is waited for."""

    def __init__(self, future: Any, bucket: Any) -> None:
        self.future, self.bucket = future, bucket

    def wait(self) -> None:
        """Until it is there."""
        result = self.future.wait()
        result = result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result
        if not isinstance(result, tg.Tensor):
            raise RuntimeError(f"expected the hook result to be a tensor, but got {type(result).__name__}")
        if result.array is not self.bucket.flat:
            self.bucket._storage.assign(self.bucket.flat, result.array.reshape(-1))


def _listener(reducer, index):
    """A hook of a parameter that does not keep its reducer alive."""
    def arrived(parameter):
        if (alive := reducer()) is not None:
            alive.arrived(index)
    return arrived
