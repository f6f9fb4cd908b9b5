"""torch.ao: quantization and pruning of models, of which the latter is in torch.nn.utils.prune. https://pytorch.org/docs → torch.ao"""
from . import quantization

__all__ = ["quantization"]
