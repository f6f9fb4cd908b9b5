"""torch.distributed.optim: optimizers of several processes. https://pytorch.org/docs/stable/distributed.optim.html"""
from ...messages.missing_names import missing
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

__getattr__ = missing(__name__)
