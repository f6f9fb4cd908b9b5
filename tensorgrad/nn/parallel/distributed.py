"""Train a module in several processes, each on its own batches.

https://pytorch.org/docs → torch.nn.parallel.DistributedDataParallel
"""
from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ...futures import Future
from .. import processes
from ..modules import Module
from ..parameter import UninitializedParameter
from .buckets import GradBucket
from .comm import place
from .initial_sync import broadcast_coalesced, check_alike
from .join import Join, Joinable, JoinHook
from .reducer import Reducer
from .scatter_gather import scatter_kwargs

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["DistributedDataParallel"]

FIRST_BUCKET = 1 << 20      # bytes: the first bucket is small, so that it travels soon
TOGETHER = 250 << 20        # bytes of parameters or buffers that are broadcast at once


class DistributedDataParallel(Module, Joinable):
    """Trains copies of a module in several processes: gradients are averaged over them while backward goes on.

    After backward, each `.grad` is Σ over the processes of their gradients, divided by how many they are: with losses
    that are means over batches of one size, the gradient of the mean over all of them. Gradients travel in buckets,
    each as soon as its last one is there; backward ends when all have arrived. Forward inside `no_sync`, or without
    gradients, changes nothing for other processes.

    A process group has `rank()`, `size()`, and `allreduce(tensor)`, `broadcast(tensor, root)` and `allgather(tensors,
    tensor)`, which
    give something to wait for: `torch.distributed` makes them. See PyTorch's
        `torch.nn.parallel.DistributedDataParallel`.

    Args:
        module: the module; all processes start with the parameters and buffers of the first
        device_ids: the GPU that inputs are moved to, as a list of one; None leaves them where they are
        output_device, dim: kept, as PyTorch has them
        broadcast_buffers: an old name of forward_sync_buffers, which leaves buffers alone at the start as well
        init_sync: whether parameters are compared, and those of the first process copied, at the start
        process_group: the processes that train together, all of them by default
        bucket_cap_mb: MiB of gradients that travel together, 25 by default; the first bucket has 1 MiB then
        find_unused_parameters: whether some parameters may get no gradient in some processes; those without one in all
            processes keep their `.grad`
        gradient_as_bucket_view: whether `.grad` is the same memory in each step; else it is new in each step in which
            it was None before
        static_graph: whether all steps use the same parameters equally often: then the first step finds the unused
            ones, and parameters may be used in several reentrant checkpoints
        skip_all_reduce_unused_params: whether buckets without a gradient do not travel: all processes must leave out
            the same parameters, in all steps
        bucket_cap_mb_list: MiB of the first bucket, of the second …; the last is the size of all others
        batched_grad_copy: changes nothing
        forward_sync_buffers: whether each forward starts with the buffers of the first process
    Errors: ValueError without a process group, or for device_ids that do not fit; RuntimeError for a module without
        parameters that need gradients, or unlike that of another process; and from forward, for parameters that got no
        gradient in the step before.

    >>> import tensorgrad as torch
    >>> import tensorgrad.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: Any = 0,
                 broadcast_buffers: Any = None, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: Any = None, find_unused_parameters: bool = False, check_reduction: bool = False,
                 gradient_as_bucket_view: bool = False, static_graph: bool = False,
                 delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
                 mixed_precision: Any = None, device_mesh: Any = None, skip_all_reduce_unused_params: bool = False,
                 bucket_cap_mb_list: list[int] | None = None, batched_grad_copy: bool = False,
                 forward_sync_buffers: bool | None = None) -> None:
        super().__init__()
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is not None or param_to_hook_all_reduce is not None
                or mixed_precision is not None):
            raise NotImplementedError("DistributedDataParallel: delay_all_reduce_named_params, "
                                      "param_to_hook_all_reduce and mixed_precision are not implemented; see "
                                      "torch.autocast for mixed precision")
        self.process_group = _group(process_group, device_mesh)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        parameters = [p for name, p in module.named_parameters() if name not in ignored]
        self._check(parameters, device_ids, output_device)
        self.module, self.dim, self.device, self.parameters_to_ignore = module, dim, parameters[0].device, ignored
        self.broadcast_buffers_at_start = self._choose_buffers(broadcast_buffers, forward_sync_buffers)
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.static_graph, self.skip_all_reduce_unused_params = static_graph, skip_all_reduce_unused_params
        self.batched_grad_copy = batched_grad_copy
        if check_reduction:
            warnings.warn("The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please "
                          "avoid using it.", FutureWarning,
                          stacklevel=2)
        self.bucket_limits = _limits(bucket_cap_mb, bucket_cap_mb_list)
        self.bucket_bytes_cap = self.bucket_limits[-1]
        self._comm_hooks = []
        if init_sync:
            check_alike(self.process_group, [p for _, p in self._trained()])
            self._copy_state(0, self.broadcast_buffers_at_start)
        self._make_reducer()
        if static_graph and find_unused_parameters:
            warnings.warn(UNNEEDED, stacklevel=2)

    def _check(self, parameters, device_ids, output_device):
        """Raise PyTorch's errors for modules and devices that do not go together, and keep the devices."""
        if not any(parameter.requires_grad for parameter in parameters):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that "
                               "requires a gradient.")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        devices = {p.device for p in parameters}
        kinds = {device.type for device in devices}
        if len(kinds) != 1:
            raise ValueError("DistributedDataParallel's input module must be on the same type of devices, but input "
                             f"module parameters locate in {kinds}.")
        self.is_multi_device_module, self.device_type = len(devices) > 1, next(iter(kinds))
        self.device_ids = self.output_device = None
        if device_ids and self.device_type != "cpu" and not self.is_multi_device_module:
            self.device_ids = [place(device).index for device in device_ids]
            self.output_device = place(device_ids[0] if output_device is None else output_device).index
        elif device_ids or output_device:
            raise ValueError("DistributedDataParallel device_ids and output_device arguments only work with "
                             f"single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                             f"{device_ids}, output_device {output_device}, and module parameters {devices}.")
        if any(isinstance(p, UninitializedParameter) for p in parameters):
            raise RuntimeError("Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
                               "Run a dummy forward pass to correctly initialize the modules")

    def _choose_buffers(self, old, new):
        """Set whether each forward copies buffers; whether the start does."""
        if old is not None:
            warnings.warn(BOTH if new is not None else OLD, FutureWarning, stacklevel=3)
        self.forward_sync_buffers = new if new is not None else old is None or old
        return new is not None or self.forward_sync_buffers

    @property
    def broadcast_buffers(self) -> bool:
        """Deprecated name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: Tensor) -> bool:
        self.forward_sync_buffers = value

    def _trained(self):
        """Return (name, parameter) of the parameters whose gradients are averaged."""
        return [(name, p) for name, p in self.module.named_parameters()
                if name not in self.parameters_to_ignore and p.requires_grad]

    def _make_reducer(self):
        names, parameters = zip(*self._trained(), strict=True)
        self.reducer = Reducer(parameters, names, self.process_group, self.bucket_limits, self.find_unused_parameters,
                               self.static_graph,
                               self.gradient_as_bucket_view, self.skip_all_reduce_unused_params)

    # ── a step ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def forward(self, *inputs: Any, **kwargs: Any) -> Tensor:
        records = tg.is_grad_enabled()
        counted = records and self.require_backward_grad_sync
        if counted:
            self.reducer.check_finished()
        joined = self._join_config.enable
        if joined:
            self._tell_the_joined(self._join_config.notify(self))
        if records:
            self.reducer.rebuild()
        if self.will_sync_module_buffers():
            self._copy_buffers(self._common_rank(True) if joined else 0)
        if joined:
            self._anyone_syncs(self.require_backward_grad_sync)
        if self.device_ids:
            inputs, kwargs = (parts[0] for parts in scatter_kwargs(inputs, kwargs, self.device_ids, self.dim))
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = counted
        if counted:
            self.reducer.prepare()
        return output

    def will_sync_module_buffers(self) -> Any:
        """Return True if the next forward begins with the buffers of the first process."""
        return self.require_forward_param_sync and self.forward_sync_buffers and self.process_group.size() > 1 and \
            next(self.module.buffers(), None) is not None

    def _synced_buffers(self):
        return [b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _copy_buffers(self, root):
        broadcast_coalesced(self.process_group, self._synced_buffers(), root, TOGETHER, dated=False)

    def _copy_state(self, root, buffers=True):
        """Broadcast parameters, and buffers, from one process."""
        parameters = [p for name, p in self.module.named_parameters() if name not in self.parameters_to_ignore]
        broadcast_coalesced(self.process_group, [*parameters, *(self._synced_buffers() if buffers else ())], root,
                            TOGETHER)

    @contextmanager
    def no_sync(self) -> Any:
        """Return a context manager that accumulates gradients locally.

        The first forward and backward after it averages the sums over the processes.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # ── communication hooks ───────────────────────────────────────────────────────────────────────────────────────────

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Have `hook(state, bucket)` reduce each GradBucket in place of the all-reduce and the division; it gives a
        Future of the flat tensor.

        https://pytorch.org/docs → ddp_comm_hooks. Errors: TypeError unless it can be called, ValueError for annotations
        of other types, RuntimeError for a second hook.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature = inspect.signature(hook)
        if signature.parameters["bucket"].annotation not in (inspect.Parameter.empty, GradBucket, "GradBucket",
                                                             "dist.GradBucket"):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if (signature.return_annotation not in (inspect.Signature.empty, Future[tg.Tensor])
                and not isinstance(signature.return_annotation, str)):
            raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")
        if self._comm_hooks:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hooks.append((hook, state))
        self.reducer.hook, self.reducer.state = hook, state

    def _set_static_graph(self):
        """Set `static_graph=True` after construction."""
        if self.static_graph:
            warnings.warn("You've set static_graph to be True, no need to set it again.", stacklevel=2)
            return
        self.static_graph = True
        self._make_reducer()
        for hook, state in self._comm_hooks:
            self.reducer.hook, self.reducer.state = hook, state
        if self.find_unused_parameters:
            warnings.warn(UNNEEDED, stacklevel=2)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore):
        """Name parameters and buffers of a module that will be left alone."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _get_ddp_logging_data(self):
        """Return facts about this module and its buckets."""
        parameters, group = self.reducer.parameters, self.process_group
        sizes = [sum(p.array.nbytes for p in bucket.parameters) for bucket in self.reducer.buckets]
        return {"bucket_sizes": ", ".join(map(str, sizes)), "module_name": type(self.module).__name__,
                "device_ids": ", ".join(map(str, self.device_ids or ())),
                "master_addr": os.environ.get("MASTER_ADDR", "N/A"),
                "master_port": os.environ.get("MASTER_PORT", "N/A"),
                "broadcast_buffers": int(self.forward_sync_buffers),
                "bucket_cap_bytes": self.bucket_bytes_cap, "find_unused_parameters": int(self.find_unused_parameters),
                "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
                "is_multi_device_module": int(self.is_multi_device_module),
                "num_parameter_tensors": len(parameters), "output_device": -1 if self.output_device is None
                else self.output_device,
                "rank": group.rank(), "total_parameter_size_bytes": sum(sizes), "world_size": group.size()}

    def _check_reducer_finalized(self):
        """Raise if the last backward left parameters without a gradient."""
        self.reducer.check_finished()

    def _remove_autograd_hooks(self):
        self.reducer.remove_hooks()

    # ── uneven inputs ─────────────────────────────────────────────────────────────────────────────────────────────────

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Any:
        """Return a context manager for uneven numbers of batches.

        Processes that are done take part in the collectives of the others, with zeros. At the end all processes have
        the module of one that finished last. Modules that communicate in forward (SyncBatchNorm) are not allowed.
        https://pytorch.org/docs → torch.nn.parallel.DistributedDataParallel.join

        Args:
            divide_by_initial_world_size: whether gradients are divided by the number of all processes; else by that of
                the busy ones
            enable: whether the block does anything
            throw_on_early_termination: whether RuntimeError ends all processes once one is done
        """
        return Join([self], enable, throw_on_early_termination,
                    divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> Any:
        """Return the hook that answers for this process when it has no more data."""
        return ModuleJoinHook(self, **kwargs)

    @property
    def join_device(self) -> Any:
        """Device of the tensors that processes exchange."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """Group of the processes that train together."""
        return self.process_group

    _divide_by_initial_world_size = True

    def _tell_the_joined(self, told):
        """Set the divisor of gradients: the number of all processes, or of the busy ones."""
        if told is not None:
            busy, work = told
            processes.finish(work)
            self.reducer.divisor = self.process_group.size() if self._divide_by_initial_world_size else int(busy.item())

    def _common_rank(self, candidate):
        """Return the greatest rank whose `candidate` is true, the same in all processes. All of them call this."""
        group = self.process_group
        flags = list(tg.zeros(group.size(), 1, device=self.device))
        processes.at_once(group.allgather, flags, tg.full((1,), float(candidate), device=self.device))
        return max(rank for rank, flag in enumerate(flags) if flag.item())

    def _anyone_syncs(self, own):
        """Return True if some process will average gradients in this step."""
        flag = tg.tensor([float(own)], device=self.device)
        processes.at_once(self.process_group.allreduce, flag)
        return bool(flag.item())

    # ── pickling ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def __getstate__(self) -> Any:
        if self.process_group is not processes.default_group or self.process_group is None:
            raise RuntimeError("DDP Pickling/Unpickling are only supported when using DDP with the default process "
                               "group. That is, when you have called init_process_group and have not passed "
                               "process_group argument to DDP constructor")
        state = super().__getstate__()
        for name in ("process_group", "reducer", "_comm_hooks", "_join_config"):
            del state[name]
        return state

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.process_group = _group(None, None)
        self._comm_hooks = []
        Joinable.__init__(self)
        self._make_reducer()


class ModuleJoinHook(JoinHook):
    """Hook of a process without data: takes part in the collectives of the other processes' steps."""

    def __init__(self, module: Module, divide_by_initial_world_size: bool = True, **others: Any) -> None:
        self.module = module
        module._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        module, reducer = self.module, self.module.reducer
        reducer.rebuild()
        if module.will_sync_module_buffers():
            module._copy_buffers(module._common_rank(False))
        module.require_forward_param_sync = syncs = module._anyone_syncs(False)
        if syncs:
            reducer.shadow()

    def post_hook(self, is_last_joiner: Any) -> None:
        """Take over the parameters and buffers of a process that finished last."""
        module = self.module
        module._copy_state(module._common_rank(is_last_joiner), module.forward_sync_buffers)


def _group(group, mesh):
    """Return the given process group, that of a mesh of one dimension, or the default one.

    Errors: RuntimeError for both, or for a mesh of more dimensions; ValueError without any.
    """
    if group is not None and mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if mesh is not None:
        if mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
        return mesh.get_group(mesh_dim=0)
    group = processes.default_group if group is None else group
    if group is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return group


def _limits(cap, caps):
    """Return the limits of buckets in bytes: the first, the second, …; the last is the limit of all others."""
    if caps is not None:
        return [int(size * (1 << 20)) for size in caps]
    return [FIRST_BUCKET, 25 << 20] if cap is None else [int(cap * (1 << 20))]


OLD = ("`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
       "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you rely on buffers "
       "NOT being synced at init (e.g. rank-local buffers), keep using `broadcast_buffers=False` until "
       "`init_sync_buffers` is available.")
BOTH = ("Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and its "
        "value is ignored when `forward_sync_buffers` is provided.")
UNNEEDED = ("You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect unused "
            "parameters automatically, so you do not need to set find_unused_parameters=true, just be sure these "
            "unused parameters will not change during training loop while calling `_set_static_graph`.")
