"""An optimizer whose state is spread over the ranks: each updates its share of the parameters, and sends it to the
others.
"""
from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from ... import api as tg
from ... import distributed as dist
from ... import serialization
from ...optim import Optimizer
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]

# bytes of a parameter that is sent by itself, straight from its memory; smaller ones travel together
LARGE = 1 << 20


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Keep the state of an optimizer once among all ranks, rather than once on each.

    https://pytorch.org/docs → torch.distributed.optim.ZeroRedundancyOptimizer

    Each rank owns some of the parameters: of each group the largest first, each to the rank that has the fewest
        elements so far. `step` updates the own ones
    by an `optimizer_class(…, **defaults)`, `optim`, then broadcasts those of each rank. Results equal those of the
    plain optimizer bit for bit, as long as it updates each parameter for itself (all but LBFGS do). Each of n ranks
    holds 1 / n of the state.

    params: tensors or parameter groups, alike on all ranks, as are their gradients (DistributedDataParallel sees to
        that). process_group: the ranks;
    None: all. parameters_as_bucket_view: let the parameters of each rank be views of one tensor, so that they are sent
        without a copy. All dtypes of
    parameters are allowed. overlap_with_ddp=True raises NotImplementedError: gradients are reduced during backward, and
    `step` follows it.

    Errors: TypeError for what is neither tensors nor groups, ValueError for an empty list.

    >>> import tensorgrad as torch
    >>> import tensorgrad.distributed as dist
    >>> from tensorgrad.distributed.optim import ZeroRedundancyOptimizer
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> weight = torch.ones(2, requires_grad=True)
    >>> optimizer = ZeroRedundancyOptimizer([weight], optimizer_class=torch.optim.SGD, lr=0.5)
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> weight.tolist()
    [0.5, 0.5]
    >>> optimizer.consolidate_state_dict(to=0)
    >>> optimizer.state_dict()["param_groups"][0]["lr"]
    0.5
    >>> dist.destroy_process_group()
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
                 parameters_as_bucket_view: bool = False,
                 overlap_with_ddp: bool = False, **defaults: Any) -> None:
        given = _checked(params)
        if overlap_with_ddp:
            raise NotImplementedError("tensorgrad's ZeroRedundancyOptimizer does not implement overlap_with_ddp=True: "
                                      "DistributedDataParallel reduces gradients while backward goes on, and step() "
                                      "follows it")
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.world_size, self.rank = dist.get_world_size(self.process_group), dist.get_rank(self.process_group)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._owners: dict[Any, int] = {}               # of each parameter
        self._loads = [0] * self.world_size             # elements that each rank owns
        self._messages: list[list[list[Any]]] = []      # of each rank: parameters that are sent together
        # of each rank: (device, dtype) → the tensor that its parameters are views of
        self._buckets: list[dict[Any, Any]] = []
        self._consolidated: dict[int, Any] | None = None
        self.initialized = False
        Optimizer.__init__(self, given, defaults)
        Joinable.__init__(self)
        self.global_rank = dist.get_global_rank(self.process_group, self.rank)
        self.optim = optimizer_class([self._own_part(group) for group in self.param_groups], **defaults)
        self.state = self.optim.state
        _copy_options(self.optim.param_groups, self.param_groups)
        self._plan_messages()
        self.initialized = True

    # who owns what

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; on all ranks. Parameters that are there already keep their owners."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for param in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
            rank = self._loads.index(min(self._loads))
            self._owners[param] = rank
            self._loads[rank] += param.numel()
        if self.initialized:
            self.optim.add_param_group(self._own_part(group))
            _copy_options(self.optim.param_groups, self.param_groups)
            self._plan_messages()

    def owns(self, param: Any) -> bool:
        """Return True if this rank updates a parameter and keeps its state."""
        return self._owners[param] == self.rank

    def _own_part(self, group: dict[str, Any]) -> dict[str, Any]:
        """Return a parameter group with this rank's parameters only, the largest first, as they were shared out."""
        order = sorted(range(len(group["params"])), key=lambda i: group["params"][i].numel(), reverse=True)
        own = [i for i in order if self._owners[group["params"][i]] == self.rank]
        return group | {name: [group[name][i] for i in own] for name in ("params", "param_names") if name in group}

    def _plan_messages(self) -> None:
        """Sort each rank's parameters into messages: a large one by itself, small ones of a device and dtype
        together.
        """
        self._messages, self._buckets = [], []
        for rank in range(self.world_size):
            alone: list[list[Any]] = []
            together: dict[Any, list[Any]] = {}
            for param, owner in self._owners.items():
                if owner != rank or not param.numel():
                    continue
                if param.numel() * param.element_size() >= LARGE and not self.parameters_as_bucket_view:
                    alone.append([param])
                else:
                    together.setdefault((param.device, param.dtype), []).append(param)
            self._messages.append(alone + list(together.values()))
            if self.parameters_as_bucket_view:
                self._buckets.append({kind: _bucket(params) for kind, params in together.items()})

    # steps

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's parameters, then bring those of all ranks to all.

        Returns what the optimizer's step returns here.
        """
        Join.notify_join_context(self)
        _copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        _copy_options(self.optim.param_groups, self.param_groups)
        self._send_parameters()
        return loss

    @tg.no_grad()
    def _send_parameters(self) -> None:
        """Broadcast the parameters of each rank."""
        waiting = []
        for rank in range(self.world_size):
            source = dist.get_global_rank(self.process_group, rank)
            buckets = list(self._buckets[rank].values()) if self._buckets else None
            for i, params in enumerate(self._messages[rank]):
                packed = buckets is None and len(params) > 1
                flat = (_flat(params, fill=rank == self.rank) if packed else params[0].data if buckets is None
                        else buckets[i])
                work = dist.broadcast(flat, source, group=self.process_group, async_op=True)
                waiting.append((work, flat, params if packed and rank != self.rank else []))
        for work, flat, params in waiting:
            work.wait()
            if params:
                for param, piece in zip(params, flat.split([param.numel() for param in params]), strict=True):
                    param.copy_(piece.view_as(param))

    # uneven numbers of batches

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for `Join`: a rank that has no more batches goes on to update and send its parameters, by the
        gradients that these have.
        """
        return _StepsOn(self)

    @property
    def join_device(self) -> Any:
        """Return the device of the first parameter."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """Return the ranks that the state is spread over."""
        return self.process_group

    # checkpoints

    def own_state_dict(self) -> dict[str, Any]:
        """Return the state of this rank's parameters only, under their numbers among all parameters; all groups and
        their options.

        `distributed.checkpoint.state_dict.get_optimizer_state_dict` takes this, so that each rank saves its own part.
        """
        _copy_options(self.param_groups, self.optim.param_groups)
        self.state = self.optim.state
        return super().state_dict()

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all ranks to the rank `to` of the group, on the CPU, where `state_dict` gives it.

        All ranks call this.
        """
        own = self.own_state_dict()["state"]
        if self.rank != to:
            buffer = io.BytesIO()
            serialization.save(own, buffer)
            data = tg.frombuffer(bytearray(buffer.getvalue()), dtype=tg.uint8).to(self.join_device)
            dist.send(tg.tensor([data.numel()], device=data.device), group=self.process_group, group_dst=to)
            dist.send(data, group=self.process_group, group_dst=to)
            return
        self._consolidated = {number: _on_cpu(state) for number, state in own.items()}
        for rank in range(self.world_size):
            if rank != to:
                size = tg.zeros(1, dtype=tg.int64, device=self.join_device)
                dist.recv(size, group=self.process_group, group_src=rank)
                data = tg.empty(int(size), dtype=tg.uint8, device=self.join_device)
                dist.recv(data, group=self.process_group, group_src=rank)
                self._consolidated |= serialization.load(io.BytesIO(data.cpu().numpy().tobytes()), map_location="cpu")

    def state_dict(self) -> dict[str, Any]:
        """Return the whole state as of the last `consolidate_state_dict` to this rank, as the plain optimizer's would
        be.

        RuntimeError if there was none: call it on all ranks, or let `get_optimizer_state_dict` save each rank's part.
        """
        if self._consolidated is None:
            raise RuntimeError(f"Optimizer state has not been consolidated on this rank. Please call "
                               f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save "
                               "the global state. torch.distributed.checkpoint.state_dict.get_optimizer_state_dict "
                               "needs no consolidation: each rank saves its own part.")
        whole = self.own_state_dict()
        return whole | {"state": dict(sorted(self._consolidated.items()))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over this rank's part of a whole state, of a `ZeroRedundancyOptimizer` on any number of ranks or of a
        plain optimizer.
        """
        params = list(chain.from_iterable(group["params"] for group in self.param_groups))
        saved = list(chain.from_iterable(group["params"] for group in state_dict["param_groups"]))
        owner = {number: self._owners[param] for number, param in zip(saved, params)}
        own = {number: state for number, state in state_dict["state"].items()
               if owner.get(number, self.rank) == self.rank}
        super().load_state_dict(state_dict | {"state": own})
        self.optim.state = self.state
        _copy_options(self.param_groups, self.optim.param_groups)
        self._consolidated = None


class _StepsOn(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """Do the others' next step with them."""
        self.optimizer.step()


def _checked(params: Any) -> list[Any]:
    """Return the tensors or groups in a list, or raise PyTorch's error."""
    if isinstance(params, tg.Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {tg.typename(params)}")
    if not isinstance(params, Iterable):
        raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got {tg.typename(params)}")
    given = list(params)
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if not all(isinstance(p, tg.Tensor) for p in given) and not all(isinstance(p, dict) for p in given):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    if any(isinstance(p, dict) and "params" not in p for p in given):
        raise ValueError("Each parameter group passed-in via `params` must have a 'params' key mapping to the "
                         "parameters in the group")
    return given


def _copy_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    """Copy the options of parameter groups, such as a learning rate that a scheduler has set."""
    for one, other in zip(source, target, strict=True):
        other.update((name, value) for name, value in one.items() if name not in ("params", "param_names"))


def _flat(params: list[Any], fill: bool) -> Any:
    """Return a new tensor as long as all parameters together, with their values if they are to be sent."""
    if fill:
        return tg.cat([param.detach().reshape(-1) for param in params])
    return tg.empty(sum(param.numel() for param in params), dtype=params[0].dtype, device=params[0].device)


def _bucket(params: list[Any]) -> Any:
    """Return a tensor with the values of all parameters, which become views of it."""
    bucket = _flat(params, fill=True)
    for param, piece in zip(params, bucket.split([param.numel() for param in params]), strict=True):
        param.data = piece.view_as(param)
    return bucket


def _on_cpu(state: Any) -> Any:
    """Return a copy of an optimizer's state whose tensors are on the CPU and its own."""
    if isinstance(state, tg.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {name: _on_cpu(value) for name, value in state.items()}
    return type(state)(map(_on_cpu, state)) if type(state) in (list, tuple) else state
