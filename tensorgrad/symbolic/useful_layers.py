"""Operations as layers, for programs that want a module where a function would do: in `nn.Sequential`, in a ModuleList,
under a name of its own.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import api as tg
from ..nn import Module


class LambdaOpLayer(Module):
    """Calls a function: `forward(*args, **kwargs)` is `op(*args, **kwargs)`.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input, useful_layers
    >>> useful_layers.LambdaOpLayer(lambda x: x.flatten(1))(Input((2, 3))).shape
    (None, 6)
    """

    def __init__(self, op: Callable[..., Any]) -> None:
        super().__init__()
        self.op = op

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)


class NamedLambdaOpLayer(LambdaOpLayer):
    """A `LambdaOpLayer` with a name, which summaries and pictures show.

    >>> from tensorgrad.symbolic.useful_layers import NamedLambdaOpLayer
    >>> NamedLambdaOpLayer(abs, "Magnitude")
    Magnitude()
    """

    def __init__(self, op: Callable[..., Any], name: str) -> None:
        super().__init__(op)
        self.name = name

    def _get_name(self) -> str:
        return self.name


class CallbackLayer(LambdaOpLayer):
    """Calls a function on its input, and returns the input: to inspect intermediate values.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic.useful_layers import CallbackLayer
    >>> CallbackLayer(lambda x: print(x.shape))(torch.ones(2, 3)).sum()
    torch.Size([2, 3])
    tensor(6.)
    """

    def forward(self, x: Any) -> Any:
        self.op(x)
        return x


# ── operators ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class AddOpLayer(Module):
    """`a + b`

    >>> AddOpLayer()(2, 3)
    5
    """

    def forward(self, a: Any, b: Any) -> Any:
        return a + b


class SubOpLayer(Module):
    """`a - b`

    >>> SubOpLayer()(2, 3)
    -1
    """

    def forward(self, a: Any, b: Any) -> Any:
        return a - b


class MulOpLayer(Module):
    """`a * b`

    >>> MulOpLayer()(2, 3)
    6
    """

    def forward(self, a: Any, b: Any) -> Any:
        return a * b


class ModOpLayer(Module):
    """`a % b`

    >>> ModOpLayer()(8, 3)
    2
    """

    def forward(self, a: Any, b: Any) -> Any:
        return a % b


class MatmulOpLayer(Module):
    """`a @ b`

    >>> import tensorgrad as torch
    >>> MatmulOpLayer()(torch.ones(2, 3), torch.ones(3)).tolist()
    [3.0, 3.0]
    """

    def forward(self, a: Any, b: Any) -> Any:
        return a @ b


# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ConcatLayer(Module):
    """Concatenates its arguments, or the tensors of a single list, along an existing axis. Axis 0 is the batch.

    >>> from tensorgrad.symbolic import Input
    >>> ConcatLayer(dim=1)(Input((1, 2, 3)), Input((5, 2, 3))).shape
    (None, 6, 2, 3)
    """

    def __init__(self, dim: int = 1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, *tensors: Any) -> Any:
        return tg.cat(_several(tensors), dim=self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class StackLayer(ConcatLayer):
    """Joins tensors of one shape along a new axis.

    >>> from tensorgrad.symbolic import Input
    >>> StackLayer(dim=1)(Input((4,)), Input((4,))).shape
    (None, 2, 4)
    """

    def forward(self, *tensors: Any) -> Any:
        return tg.stack(_several(tensors), dim=self.dim)


def _several(tensors: tuple[Any, ...]) -> Sequence[Any]:
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


class ReshapeLayer(Module):
    """Reshapes its input.

    The first axis is kept, unless `batch_size_included` says that the shape has the size of the batch in it.

    >>> from tensorgrad.symbolic import Input
    >>> x = Input((4, 6))
    >>> ReshapeLayer((8, 3))(x).shape, ReshapeLayer((-1, 3), batch_size_included=True)(x).shape
    ((None, 8, 3), (None, 3))
    """

    def __init__(self, shape: Sequence[int], batch_size_included: bool = False) -> None:
        super().__init__()
        self.shape, self.batch_size_included = tuple(shape), batch_size_included

    def forward(self, x: Any) -> Any:
        return x.reshape(self.sizes(x))

    def sizes(self, x: Any) -> tuple[int, ...]:
        """The whole shape of the result."""
        return self.shape if self.batch_size_included else (x.shape[0], *self.shape)

    def extra_repr(self) -> str:
        return f"{self.shape}, batch_size_included={self.batch_size_included}"


class ViewCopyLayer(ReshapeLayer):
    """A `ReshapeLayer` that copies: writes to the result do not change the input.

    >>> import tensorgrad as torch
    >>> x = torch.zeros(2, 6)
    >>> y = ViewCopyLayer((3, 2))(x).fill_(1)
    >>> y.shape, x.any()
    (torch.Size([2, 3, 2]), tensor(False))
    """

    def forward(self, x: Any) -> Any:
        return x.view(self.sizes(x)).clone()


class AggregateLayer(Module):
    """A function such as `torch.mean` or `torch.argmax`, of all elements or along an axis.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input
    >>> AggregateLayer(torch.sum, dim=1, keepdim=True)(Input((4, 6))).shape
    (None, 1, 6)
    """

    def __init__(self, op: Callable[..., Any], dim: Any = None, keepdim: bool = False) -> None:
        super().__init__()
        self.op, self.dim, self.keepdim = op, dim, keepdim

    def forward(self, x: Any) -> Any:
        return self.op(x) if self.dim is None and not self.keepdim else self.op(x, dim=self.dim, keepdim=self.keepdim)

    def extra_repr(self) -> str:
        return f"{getattr(self.op, '__name__', self.op)}, dim={self.dim}, keepdim={self.keepdim}"


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class UnpackLayer(Module):
    """Return an iterable as a tuple; several arguments as they are.

    >>> UnpackLayer()({"a": 1, "b": 2}), UnpackLayer()(3, 4)
    (('a', 'b'), (3, 4))
    """

    def forward(self, *data: Any) -> tuple[Any, ...]:
        return tuple(data[0]) if len(data) == 1 else data


class SliceLayer(Module):
    """`data[idx]`, for a constant index.

    >>> import tensorgrad as torch
    >>> SliceLayer((0, slice(2)))(torch.arange(6).view(2, 3))
    tensor([0, 1])
    """

    def __init__(self, idx: Any) -> None:
        super().__init__()
        self.idx = idx

    def forward(self, data: Any) -> Any:
        return data[self.idx]

    def extra_repr(self) -> str:
        return f"{self.idx}"


class SliceLayerSymbolicIdx(Module):
    """`data[idx]`, for an index that is a node of the graph as well.

    >>> SliceLayerSymbolicIdx()({"a": 1}, "a")
    1
    """

    def forward(self, data: Any, idx: Any) -> Any:
        return data[idx]


class MethodCall(Module):
    """Calls a method of its input.

    >>> import tensorgrad as torch
    >>> MethodCall("clamp", min=0)(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    def __init__(self, method_name: str, *args: Any, **kwds: Any) -> None:
        super().__init__()
        self.method_name, self.args, self.kwds = method_name, args, kwds

    def forward(self, owner: Any) -> Any:
        return getattr(owner, self.method_name)(*self.args, **self.kwds)

    def extra_repr(self) -> str:
        return ", ".join([self.method_name, *map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwds.items())])


class GetAttr(Module):
    """Reads an attribute of its input.

    >>> GetAttr("imag")(3j)
    3.0
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, owner: Any) -> Any:
        return getattr(owner, self.name)

    def extra_repr(self) -> str:
        return self.name


# their names elsewhere
AnyOpLayer, NamedAnyOpLayer, ConcatOpLayer, StackOpLayer = LambdaOpLayer, NamedLambdaOpLayer, ConcatLayer, StackLayer

__all__ = ["AddOpLayer", "AggregateLayer", "AnyOpLayer", "CallbackLayer", "ConcatLayer", "ConcatOpLayer", "GetAttr",
           "LambdaOpLayer", "MatmulOpLayer", "MethodCall", "ModOpLayer", "MulOpLayer", "NamedAnyOpLayer",
           "NamedLambdaOpLayer", "ReshapeLayer", "SliceLayer", "SliceLayerSymbolicIdx", "StackLayer", "StackOpLayer",
           "SubOpLayer", "UnpackLayer",
           "ViewCopyLayer"]
