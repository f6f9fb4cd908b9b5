"""torch.nested: tensors of different lengths in one. https://pytorch.org/docs/stable/nested.html

>>> import tensorgrad as torch
>>> x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
>>> torch.nn.functional.linear(x, torch.ones(1, 3)).to_padded_tensor(0.).squeeze(-1)
tensor([[3., 3., 0., 0.],
        [3., 3., 3., 3.]])
"""
from typing import Any as _Any

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",  # noqa: F822
           "to_padded_tensor"]  # noqa: F822


# The class overrides functions, for which all methods of Tensor must ask: it is made when it is first used.
def __getattr__(name: str) -> _Any:
    if name == "_internal":
        from ._internal import nested_tensor
        return __import__("sys").modules[nested_tensor.__package__]
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import functions
    return getattr(functions, name)
