"""Sizes that may vary in exported programs. https://pytorch.org/docs/stable/export.html#torch.export.Dim"""
from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from .._dynamo.exc import UserError
from ..core.tape import TensorBase
from ..graph.inputs import parameters_of
from ..utils._pytree import GetAttrKey, register_pytree_node, tree_map

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims", "register_dataclass"]
PAGE = ("For more information about this error, see: "
        "https://pytorch.org/docs/main/generated/exportdb/index.html#dynamic-shapes-validation")


class _DimHint(Enum):
    """A hint for the size of an axis, which has no name."""

    AUTO = 0
    STATIC = 1
    DYNAMIC = 2

    def __repr__(self) -> str:
        return f"DimHint({self.name})"


class Dim:
    """A size that may vary, by name, between `min` and `max`. Axes with one name have equal sizes.

    `2 * Dim("n") + 1` is a size that depends on another. AssertionError for a name that is no identifier, or bounds in
    the wrong order. https://pytorch.org/docs → torch.export.Dim

    >>> batch = Dim("batch", min=2, max=64)
    >>> batch, 2 * batch + 1
    (Dim('batch', max=64), 2*batch + 1)
    """

    AUTO, STATIC, DYNAMIC = _DimHint

    def __init__(self, name: str, *, min: Any = None, max: Any = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, 0 if min is None else min, max
        if max is not None and max < self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={self.min}, max={max}")
        self.root, self.factor, self.offset = self, 1, 0

    def _derived(self, factor: int, offset: int) -> Dim:
        new = object.__new__(Dim)
        new.root, new.factor, new.offset = self.root, self.factor * factor, self.offset * factor + offset
        start = self.root.__name__ if new.factor == 1 else f"{new.factor}*{self.root.__name__}"
        new.__name__ = f"{start} {'+' if new.offset > 0 else '-'} {abs(new.offset)}" if new.offset else start
        new.min, new.max = self.min * factor + offset, None if self.max is None else self.max * factor + offset
        return new

    def __add__(self, other: int) -> Dim:
        return self._derived(1, _whole(other, "add"))

    def __sub__(self, other: int) -> Dim:
        return self._derived(1, -_whole(other, "subtract"))

    def __mul__(self, other: int) -> Dim:
        if _whole(other, "multiply") <= 0:
            raise NotImplementedError(f"Attempted to multiply {other} with {self.__name__}, where a positive integer "
                                      f"was expected. (Only increasing linear operations with integer coefficients are "
                                      f"supported.)")
        return self._derived(other, 0)

    __radd__, __rmul__ = __add__, __mul__

    def sized(self, root: int) -> int:
        """Return the size for a size of the Dim that this one depends on."""
        return self.factor * root + self.offset

    def __repr__(self) -> str:
        if self.root is not self:
            return self.__name__
        bounds = f", min={self.min}" * (self.min != 2) + f", max={self.max}" * (self.max is not None)     # as PyTorch
        return f"Dim('{self.__name__}'{bounds})"


def _whole(number: Any, verb: str) -> int:
    if type(number) is not int:
        raise NotImplementedError(f"Attempted to {verb} {number!r} and a Dim, where an integer was expected. (Only "
                                  f"increasing linear operations with integer coefficients are supported.)")
    return number


def dims(*names: str, min: Any = None, max: Any = None) -> tuple[Dim, ...]:
    """Return several Dims of these bounds.

    >>> dims("a", "b")
    (Dim('a', min=0), Dim('b', min=0))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


def dynamic_axes(dynamic_shapes: Any, names: list[str], values: list[Any]) -> dict[tuple[int, int], Any]:
    """Return {(index of a tensor among the arguments, axis): Dim or hint} of the axes that may vary.

    UserError if `dynamic_shapes` does not fit the arguments.
    """
    if dynamic_shapes is None:
        return {}
    if isinstance(dynamic_shapes, dict):
        if set(dynamic_shapes) != set(names):
            raise UserError(f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                            f"{names} of `inputs`, but here they are {list(dynamic_shapes)}. Alternatively, you could "
                            f"also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching "
                            f"`inputs`. {PAGE}")
        given = [dynamic_shapes[name] for name in names]
    else:
        given = list(dynamic_shapes)
    if len(given) != len(values):
        raise UserError(f"Expected `dynamic_shapes` to match the {len(values)} arguments, but it has {len(given)} "
                        f"parts. {PAGE}")
    found: dict[tuple[int, int], Any] = {}
    count = 0

    def walk(value: Any, shape: Any, path: str) -> None:
        nonlocal count
        if isinstance(value, TensorBase):
            found.update({(count, axis): dim for axis, dim in _axes(shape, value, path).items()})
            count += 1
        elif isinstance(value, dict):
            for key, part in value.items():
                walk(part, None if shape is None else shape.get(key), f"{path}[{key!r}]")
        elif isinstance(value, (list, tuple)):
            for i, part in enumerate(value):
                walk(part, None if shape is None else shape[i], f"{path}[{i}]")
    for name, value, shape in zip(names, values, given, strict=True):
        walk(value, shape, f"['{name}']")
    return found


def _axes(shape: Any, tensor: Any, path: str) -> dict[int, Any]:
    """Return {axis: Dim or hint} of a tensor."""
    if shape is None:
        return {}
    if not isinstance(shape, (dict, list, tuple)):
        raise UserError(f"Unexpected input tensor shape {shape} specified at `dynamic_shapes{path}` (expected either a "
                        f"list/tuple of dimensions, or a dict mapping indices to dimensions, where each dimension is "
                        f"an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)\n{PAGE}")
    items = dict(shape) if isinstance(shape, dict) else dict(enumerate(shape))
    if not isinstance(shape, dict) and len(shape) != tensor.ndim or any(axis >= tensor.ndim for axis in items):
        raise UserError(f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{path}` to have the same "
                        f"length as the actual tensor shape {tensor.shape} (expected {tensor.ndim}, but got "
                        f"{len(shape)} instead)\n{PAGE}")
    for axis, dim in items.items():
        if isinstance(dim, int) and dim != tensor.shape[axis]:
            raise UserError(f"Static shape constraint of {dim} does not match input size of {tensor.shape[axis]}, for "
                            f"`dynamic_shapes{path}[{axis}]`\n{PAGE}")
    return {axis: dim for axis, dim in items.items() if isinstance(dim, (Dim, _DimHint)) and dim is not Dim.STATIC}


class ShapesCollection:
    """The sizes that may vary, by tensor: {tensor: {axis: Dim}}, whatever arguments they are in.

    https://pytorch.org/docs → torch.export.ShapesCollection

    >>> import tensorgrad as torch
    >>> x, shapes = torch.ones(2, 3), ShapesCollection()
    >>> shapes[x] = (Dim("batch", min=2), None)
    >>> shapes.dynamic_shapes(torch.nn.Linear(3, 4), (x,))
    {'input': (Dim('batch'), None)}
    """

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}
        self._kept: list[Any] = []              # tensors, which are known by id

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, (TensorBase, int)):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-int type {type(t)}")
        if id(t) in self._shapes and self._shapes[id(t)] != shape:
            raise AssertionError(f"Shapes assigned to input is a {type(t)}, and does not match existing shape "
                                 f"{self._shapes[id(t)]}; expected {shape}")
        self._kept.append(t)
        self._shapes[id(t)] = shape

    def __getitem__(self, t: Any) -> Any:
        self._kept.append(t)
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Return `dynamic_shapes` of these arguments. ValueError for a tensor that is not among them."""
        seen: set[int] = set()

        def shape_of(leaf: Any) -> Any:
            seen.add(id(leaf))
            return self._shapes.get(id(leaf))
        found = {name: tree_map(shape_of, value) for name, value in parameters_of(m, args, kwargs or {})}
        if set(self._shapes) - seen:
            raise ValueError("Some tensors that were assigned shapes were not found in args. Maybe such tensors were "
                             "copied when passing them as args? Maybe such tensors are contained in classes that were "
                             "not registered with pytree?")
        return found


class AdditionalInputs:
    """Further arguments of a program: axes whose sizes differ among them may vary.

    https://pytorch.org/docs → torch.export.AdditionalInputs

    >>> import tensorgrad as torch
    >>> more = AdditionalInputs()
    >>> more.add((torch.ones(5, 3),))
    >>> more.dynamic_shapes(torch.nn.Linear(3, 4), (torch.ones(2, 3),))
    {'input': [DimHint(DYNAMIC), None]}
    """

    def __init__(self) -> None:
        self._examples: list[tuple[Any, Any]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Add arguments."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Return `dynamic_shapes` of these arguments and those added."""
        first, *others = [dict(parameters_of(m, *each)) for each in ((args, kwargs or {}),
                                                                     *((a, k or {}) for a, k in self._examples))]

        def varying(leaf: Any, *more: Any) -> Any:
            if not isinstance(leaf, TensorBase):
                return None
            return [Dim.DYNAMIC if any(other.shape[axis] != n for other in more) else None
                    for axis, n in enumerate(leaf.shape)]
        return {name: tree_map(varying, value, *(other[name] for other in others)) for name, value in first.items()}

    def verify(self, ep: Any) -> None:
        """Call a program with all arguments that were added."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let arguments and results of exported programs be of a dataclass.

    https://pytorch.org/docs → torch.export.register_dataclass
    """
    if not is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    names = [field.name for field in fields(cls) if field.init]

    def flatten(value: Any) -> tuple[list[Any], Any]:
        given = [name for name in names if getattr(value, name) is not None]
        return [getattr(value, name) for name in given], [given, [name for name in names if name not in given]]

    def unflatten(values: Any, context: Any) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)), **dict.fromkeys(context[1]))

    def flatten_with_keys(value: Any) -> tuple[list[Any], Any]:
        values, context = flatten(value)
        return [(GetAttrKey(name), part) for name, part in zip(context[0], values, strict=True)], context
    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=flatten_with_keys)
