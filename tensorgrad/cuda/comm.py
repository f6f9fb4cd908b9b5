"""Copies between CUDA devices, under the name that PyTorch gave them first.

https://pytorch.org/docs → torch.cuda.comm
"""
from ..nn.parallel.comm import broadcast, broadcast_coalesced, gather, reduce_add, reduce_add_coalesced, scatter

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]
