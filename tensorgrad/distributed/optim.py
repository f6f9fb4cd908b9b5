"""torch.distributed.optim: optimizers whose state is spread over processes: not there. https://pytorch.org/docs/stable/distributed.optim.html"""
from ..optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """The class of optimizers that share their state among processes: it cannot be used, since processes do not communicate."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tensorgrad has no torch.distributed.optim.ZeroRedundancyOptimizer: processes do not communicate")
