"""Nodes of a graph: placeholders for values that are not computed yet.

A node has parents, and a call of a layer or function on them. Shapes, dtypes and the structure of its value come from
running that call on fake tensors (fake_tensors.py), hence from the operations themselves. An unknown size, such as the
batch's, has different values in two worlds; the second world is evaluated when somebody asks which sizes depend on it.
In a third world the size is 1, for operations that accept some sizes only, such as a sum with eight rows.
"""
from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any, ClassVar, NoReturn
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy as np

from .. import api as tg
from .._tensor.torch_function import METHODS, watch_for
from ..nn.modules.module import Module
from ..storage.base import TWO_SIDED
from . import config
from .calls import OPERATORS, Attribute, Call, Method, Unpack
from .shape_inference import merge

ABSENT: Any = object()
# of Tensor's dunders
OPERATOR_OF = {METHODS.get(dunder, dunder): function for function in OPERATORS
               if (dunder := f"__{function.__name__.strip('_')}__")}
created = count(1)


class SymbolicData:
    """The base of all nodes: a value of a graph that is not computed yet.

    Operators, attributes, methods, indices, unpacking and every function of the package give new nodes; so do layers,
    as `layer(x)` and as `x(layer)`. Nodes are compared by identity.
    """

    __slots__ = ("_call", "_parents", "_children", "_depth", "_order", "_known", "_values", "_root", "_family",
                 "custom_name", "__weakref__")
    __array_ufunc__ = None          # makes a NumPy array on the left defer to our operators
    _kind: ClassVar[str] = "data"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        watch_for(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        assert cls._kind != "data", "SymbolicData is the base of nodes: make one with Input or CustomInput"
        return object.__new__(cls)

    @classmethod
    def _made(cls, call: Call | None, parents: tuple[SymbolicData, ...], known: bool, values: list[Any],
              name: str | None = None, kind: Any = None) -> Any:
        """Make a node whose class follows from its value, unless `kind` is given.

        Tensors keep a subclass of their parents.
        """
        family = (parents[0]._family if parents else kind if kind is not None and kind._kind == "tensor"
                  else SymbolicTensor)
        value = values[0]
        if kind is None:
            kind = (family if isinstance(value, tg.Tensor) else SymbolicCallable if callable(value)
                    else class_for(type(value)))
        node = object.__new__(kind)
        node._family = family
        node._call, node._parents, node._known, node._values, node.custom_name = call, parents, known, values, name
        node._children, node._root, node._order = None, None, next(created)
        node._depth = 1 + max((p._depth for p in parents), default=-1)
        for parent in parents:
            if parent._children is None:
                parent._children = WeakValueDictionary()
            parent._children[node._order] = node
        return node

    # ── properties ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def parents(self) -> tuple[SymbolicData, ...]:
        """The nodes that the value is computed from."""
        return self._parents

    @property
    def children(self) -> tuple[SymbolicData, ...]:
        """The live nodes that are computed from this one."""
        return () if self._children is None else tuple(node for _, node in sorted(self._children.items()))

    @property
    def depth(self) -> int:
        """The number of steps from the farthest input."""
        return self._depth

    @property
    def layer(self) -> Any:
        """The layer or function whose result the node is; None for an input."""
        return None if self._call is None else self._call.target

    @property
    def batch_size_known(self) -> bool:
        """True if all sizes are known."""
        return self._known

    @property
    def v(self) -> Any:
        """An example of the value, computed at each access from examples of the inputs; random generators and
        buffers are kept."""
        from .tracing import example
        return example(self)

    def _in_world(self, world: int) -> Any:
        """Return the value in a world, with fake tensors; fill the world first if needed."""
        if self._values[world] is ABSENT:
            from .tracing import fill_world
            fill_world(self, world)
        return self._values[world]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}; {len(self._parents)} parents; {len(self.children)} children>"

    # ── new nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def __call__(self, layer: Any, *others: Any, custom_name: str | None = None) -> Any:
        """`x(layer, y)` is `layer(x, y)`. A class of layers is first constructed without arguments."""
        return join(layer() if isinstance(layer, type) and issubclass(layer, Module) else layer, self, *others,
                    custom_name=custom_name)

    def _joined_by(self, module: Any, args: Any, kwargs: Any, name: str | None = None) -> Any:
        """Return the node of `module(*args, **kwargs)`, when a module is called with this node."""
        config.check_layer_calls(module)
        return join(module, *args, **kwargs if name is None else {**kwargs, "custom_name": name})

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if func is getattr(tg.Tensor, name, None):          # a method of a tensor with a node as an argument
            if name == "__eq__":
                return False
            func = OPERATOR_OF[name] if name in OPERATOR_OF and len(args) == 2 and not kwargs else Method(name)
        return join(func, *args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            return join(Attribute(name), self)
        except AttributeError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}, and neither has the value "
                                 f"that it stands for") from None

    def __getitem__(self, index: Any) -> Any:
        return join(operator.getitem, self, index)

    def __iter__(self) -> Iterator[Any]:
        count = len(tuple(self._in_world(0)))
        return map(join(Unpack(count), self).__getitem__, range(count))

    def __len__(self) -> int:
        return len(self._in_world(0))

    def __bool__(self) -> NoReturn:
        raise TypeError(f"the truth of a {type(self).__name__} is not known while the graph is built: put the decision "
                        "into a function and add that with add_to_graph")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:        # by identity, where a tensor would compare elementwise
        return self is not other

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("nodes of a graph cannot be pickled or copied: SymbolicModel(inputs, outputs) can")


def _operator(name: str) -> None:
    function = abs if name == "abs" else getattr(operator, f"__{name}__")
    setattr(SymbolicData, f"__{name}__", lambda self, *others: join(function, self, *others))
    if name in TWO_SIDED:
        setattr(SymbolicData, f"__r{name}__", lambda self, other: join(function, other, self))


for _name in [*TWO_SIDED, *"lt le gt ge neg pos abs invert".split()]:
    _operator(_name)


@cache
def class_for(kind: type) -> type[SymbolicData]:
    """Return the class of nodes for values of this type."""
    return type(f"SymbolicData({kind.__name__})", (SymbolicData,), {"__slots__": (), "_kind": "other"})


class SymbolicCallable(SymbolicData):
    """A node whose value can be called; calling the node gives the node of the result."""

    __slots__ = ()
    _kind = "callable"

    def __call__(self, *args: Any, custom_name: str | None = None, **kwargs: Any) -> Any:
        call = self._call
        if call is not None and type(call.target) is Attribute:        # x.relu(): one step, not two
            return join(Method(call.target.name), *call.args, *args, custom_name=custom_name, **kwargs)
        return join(operator.call, self, *args, custom_name=custom_name, **kwargs)


PLAIN = (bool, int, float, str, type(None), tg.dtype, tg.layout)


class SymbolicTensor(SymbolicData):
    """A tensor that is not computed yet. Its `shape` has None for an unknown size, such as the batch's.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input
    >>> x = Input((3, 32, 32))
    >>> y = torch.nn.Conv2d(3, 8, 3)(x).relu().flatten(1)
    >>> y.shape, y.features
    ((None, 7200), 7200)
    """

    __slots__ = ()
    _kind = "tensor"

    @property
    def shape(self) -> Any:
        """The sizes of the axes; None for unknown ones."""
        here = self._in_world(0)
        return here.shape if self._known else merge(here, self._in_world(1))

    dtype = property(lambda self: self._in_world(0).dtype, doc="The data type of the elements.")
    ndim = property(lambda self: self._in_world(0).ndim, doc="The number of axes.")
    device = property(lambda self: tg.device("cpu"),
                      doc="The CPU: what is made on it while the graph is built moves with the model.")

    def dim(self) -> int:
        """The number of axes."""
        return int(self.ndim)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[range(self.ndim)[dim]]

    def numel(self) -> int:
        """The number of elements; per example, if the size of the batch is unknown."""
        return int(np.prod([n for n in self.shape if n is not None], dtype=int))

    @property
    def batch_size(self) -> int | None:
        """The size of the first axis, or None."""
        return self.shape[0]

    features = property(lambda self: self.shape[-1], doc="The size of the last axis.")

    def _chw(self) -> tuple[int, int, int]:
        assert self.ndim == 4, f"The data is not of [C,H,W] form! Its shape is {tuple(self.shape)}."
        return tuple(self.shape[1:])

    C = channels = property(lambda self: self._chw()[0], doc="The channels of images (N, C, H, W).")
    H = property(lambda self: self._chw()[1], doc="The height of images (N, C, H, W).")
    W = property(lambda self: self._chw()[2], doc="The width of images (N, C, H, W).")
    HW = property(lambda self: self._chw()[1:], doc="Height and width of images (N, C, H, W).")
    CHW = property(_chw, doc="Channels, height and width of images (N, C, H, W).")
    HWC = property(lambda self: (*self.HW, self.C), doc="Height, width and channels of images (N, C, H, W).")

    def __getattr__(self, name: str) -> Any:
        value = ABSENT if name.startswith("_") else getattr(self._in_world(0), name, ABSENT)
        # .nbytes depends on the batch
        sure = type(value) is not int or self._known or value == getattr(self._in_world(1), name)
        return value if type(value) in PLAIN and sure else super().__getattr__(name)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        if self.shape[0] is None:
            raise TypeError("the size of the batch is not known: give it with Input(batch_shape=...)")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        length = self.shape[0]
        if length is None:
            warnings.warn("iterating over a batch whose size is not known gives one row: say how many there are with "
                          "Input(batch_shape=...)", stacklevel=2)
        return (self[i] for i in range(1 if length is None else length))

    def _sized(self, name: str, *shape: Any) -> Any:
        """Call a method that takes sizes; None is replaced by the size of this tensor's axis at that position."""
        sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return join(Method(name), self, *[join(Method("size"), self, axis) if n is None else n
                                          for axis, n in enumerate(sizes)])

    def view(self, *shape: Any) -> Any:
        """Return a view of another shape.

        None means the size of this tensor's axis at that position: `x.view(*x.shape[:2], -1)`.
        """
        return (join(Method("view"), self, *shape) if len(shape) == 1 and isinstance(shape[0], tg.dtype)
                else self._sized("view", *shape))

    def reshape(self, *shape: Any) -> Any:
        """Return the elements in another shape. None means the size of this tensor's axis at that position."""
        return self._sized("reshape", *shape)

    def expand(self, *sizes: Any) -> Any:
        """Return the tensor repeated along axes of size 1.

        None means the size of this tensor's axis at that position.
        """
        return self._sized("expand", *sizes)


def join(target: Any, /, *args: Any, custom_name: str | None = None, **kwargs: Any) -> Any:
    """Return the node of `target(*args, **kwargs)`, whose arguments contain at least one node, at any depth."""
    if any(isinstance(a, SymbolicTensor) for a in args) and any(isinstance(a, np.ndarray) for a in args):
        args = tuple(tg.as_tensor(a) if isinstance(a, np.ndarray) else a for a in args)
    call = Call(target, args, kwargs).filled(lambda leaf: leaf)
    parents = tuple(dict.fromkeys(leaf for leaf in call.leaves() if isinstance(leaf, SymbolicData)))
    assert parents, f"No Symbolic Data detected in the arguments of {call.title()}"
    known = all(p._known for p in parents)
    from .tracing import first_values
    node = parents[0]._made(call, parents, known, first_values(call, known), custom_name)
    if isinstance(target, Module):
        calls_of.setdefault(target, WeakSet()).add(node)
    return node


# the live results of each layer's calls
calls_of: WeakKeyDictionary[Module, WeakSet[SymbolicData]] = WeakKeyDictionary()


def index_of_call(node: SymbolicData) -> int | None:
    """Return the index of a node among the live results of its layer, by age; 0 for a function's, None for an input."""
    if node.layer is None:
        return None
    return (sum(other._order < node._order for other in calls_of.get(node.layer, ())) if isinstance(node.layer, Module)
            else 0)


def parts_of(node: Any) -> Any:
    """Return the node, or for a value that is a tuple, list or dictionary, that structure of the nodes of its parts."""
    value = node._in_world(0)
    if isinstance(value, (tuple, list)):
        parts = [parts_of(node[k]) for k in range(len(value))]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return {key: parts_of(node[key]) for key in value} if isinstance(value, dict) else node


__all__ = ["SymbolicCallable", "SymbolicData", "SymbolicTensor", "index_of_call", "join"]
