"""Modules as functions of dictionaries. https://pytorch.org/docs → torch.func.functional_call"""
from ..func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
