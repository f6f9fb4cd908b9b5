"""functorch.einops: axes by name. https://pytorch.org/docs → torch.func.rearrange"""
from ..func import rearrange

__all__ = ["rearrange"]
