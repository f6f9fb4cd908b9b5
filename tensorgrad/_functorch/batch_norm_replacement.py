"""Batch normalization without running statistics. https://pytorch.org/docs/stable/func.batch_norm.html"""
from ..func import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
