"""Helpers for printing that packages with their own tensor classes use, under PyTorch's names."""
from __future__ import annotations

from typing import Any

from ._tensor import printing
from ._tensor.printing import options as PRINT_OPTS
from ._tensor.printing import printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "printoptions", "set_printoptions"]


def _tensor_str(self: Any, indent: int) -> str:
    """The values of a tensor in brackets."""
    values = self.detach().cpu().resolve_conj().numpy() if self.numel() else None
    return "[]" if values is None else printing._values(values, tuple(self.shape), indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool = False) -> str:
    """Append suffixes and a closing bracket to a tensor's text."""
    return printing._with_suffixes(tensor_str, suffixes, indent, force_newline)
