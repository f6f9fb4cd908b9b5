"""One module in several processes, each at work on a batch of its own."""
from contextlib import contextmanager

from ... import api as tg
from ..modules import Module
from .reduction import reduce_early

__all__ = ["DistributedDataParallel"]

default_group = None        # of all processes; whoever starts communication between them puts it here


class DistributedDataParallel(Module):
    """Trains copies of a module in several processes: their gradients are averaged as soon as backward has found them.

    A process group, such as `torch.distributed` makes, has `rank()`, `size()`, `broadcast(tensor, root)` and `allreduce(tensor)`, which adds up in place.
    See PyTorch's
    `torch.nn.parallel.DistributedDataParallel`.

    Args:
        module: the module; all processes start with the parameters and buffers of the first
        broadcast_buffers: whether each forward starts with the buffers of the first process
        process_group: the processes that train together, all of them by default
    Errors: ValueError without a process group.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True, process_group=None,
                 bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False):
        super().__init__()
        self.process_group = default_group if process_group is None else process_group
        if self.process_group is None:
            raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient.")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        self.module, self.device_ids, self.output_device, self.dim = module, device_ids, output_device, dim
        self.broadcast_buffers, self.require_backward_grad_sync = broadcast_buffers, True
        if init_sync:
            self._broadcast([*module.parameters(), *module.buffers()])
        self._handles = reduce_early(module, self._average)

    def _broadcast(self, tensors):
        if self.process_group.size() > 1:
            with tg.no_grad():
                for tensor in tensors:
                    _finish(self.process_group.broadcast(tensor, 0))

    def _average(self, parameter):
        """Runs when backward has added to the parameter's gradient."""
        if self.require_backward_grad_sync and self.process_group.size() > 1:
            with tg.no_grad():
                _finish(self.process_group.allreduce(parameter.grad))
                parameter.grad.div_(self.process_group.size())

    def forward(self, *inputs, **kwargs):
        if self.broadcast_buffers and self.require_backward_grad_sync and tg.is_grad_enabled():
            self._broadcast(self.module.buffers())
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self):
        """Inside, gradients only add up in each process; the first backward after it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


def _finish(work):
    """Wait for what a process group has begun, if it gives anything to wait for."""
    if work is not None:
        work.wait()
