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


def _later(name: str) -> _Any:
    """A function of `functions` under a private name of the root, which loads the classes when it is called."""
    def call(*args: _Any, **kwargs: _Any) -> _Any:
        from . import functions
        return getattr(functions, name)(*args, **kwargs)
    call.__name__ = call.__qualname__ = name
    return call


globals().update({_name: _later(_name) for _name in (
    "_nested_from_padded", "_nested_from_padded_and_nested_example", "_nested_tensor_from_mask",
    "_nested_tensor_from_mask_left_aligned", "_nested_tensor_from_tensor_list", "_nested_view_from_buffer")})
