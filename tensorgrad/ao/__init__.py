"""torch.ao: quantization, which is absent, and pruning of models, see torch.nn.utils.prune.
https://pytorch.org/docs → torch.ao
"""
from . import quantization

__all__ = ["quantization"]
