"""The ONNX graph under construction: nodes, constants, and sizes that are known at run time only.

Rules use it: `g.Add(a, b)` adds a node and returns its result. Arrays and numbers among the inputs become constants.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ._sizes import Varying, formula
from .errors import SymbolicValueError

BOOL, INT, FLOAT = np.dtype("bool"), np.dtype("int64"), np.dtype("float32")


class Refused(Exception):
    """Raised by a rule for a call of its op that ONNX cannot express."""


class Term:
    """An array of the graph: its name and, if known, its shape, dtype and values."""

    __slots__ = ("name", "shape", "dtype", "data")

    def __init__(self, name: str, shape: Any = None, dtype: Any = None, data: Any = None) -> None:
        self.name, self.shape, self.dtype, self.data = name, shape, dtype, data

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Graph:
    """Nodes and initializers.

    `scope` is the location in the model of the step being written, `out` the step's results.
    """

    def __init__(self, onnx: Any, opset: int) -> None:
        self.onnx, self.opset = onnx, opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        # dynamic axes of inputs: (input, axis, its sizes in the traces)
        self.symbols: list[tuple[Term, int, tuple[int, ...]]] = []
        self.scope = ""
        self.out: list[Term] = []
        self.numbers: dict[str, int] = {}
        self.constants: dict[Any, Term] = {}
        self.shapes: dict[str, Term] = {}
        self.domains: dict[str, int] = {}

    # ── nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def __getattr__(self, kind: str) -> Any:
        if not kind[0].isupper():
            raise AttributeError(kind)
        return lambda *inputs, **attributes: self.node(kind, *inputs, **attributes)

    def node(self, kind: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node, and return its result, or a list of its results."""
        names = [self.term(x).name for x in inputs]
        while names and not names[-1]:
            names.pop()
        path = self.unique(f"/{self.scope.replace('.', '/')}/{kind}" if self.scope else f"/{kind}")
        made = [Term(f"{path}_output_{i}") for i in range(outputs)]
        attributes = {name: value for name, value in attributes.items() if value is not None}
        if not domain:
            self.check(kind, attributes)
        self.nodes.append(self.onnx.helper.make_node(kind, names, [t.name for t in made], name=path, domain=domain,
                                                     **attributes))
        if domain:
            self.domains[domain] = 1
        return made[0] if outputs == 1 else made

    def check(self, kind: str, attributes: Any) -> None:
        """Refuse an operator or attribute that the opset lacks."""
        defs = self.onnx.defs
        try:
            known = defs.get_schema(kind, self.opset, "").attributes
        except defs.SchemaError:
            raise Refused(f"needs opset_version {defs.get_schema(kind).since_version} or later") from None
        if set(attributes) - set(known):
            raise Refused(f"needs a later opset_version than {self.opset}")

    def unique(self, name: str) -> str:
        number = self.numbers.get(name, 0)
        self.numbers[name] = number + 1
        return f"{name}_{number}" if number else name

    def term(self, x: Any) -> Term:
        """Return an input of a node as a term: a term itself, an empty one for None, or a constant."""
        if isinstance(x, Term):
            return x
        return Term("") if x is None else self.constant(x)

    def constant(self, data: Any, dtype: Any = None, name: str | None = None) -> Term:
        """Add a constant array; integers in lists are int64."""
        array = np.asarray(data, dtype)
        key = (array.dtype, array.shape, array.tobytes()) if name is None and array.size <= 64 else None
        if key in self.constants:
            return self.constants[key]
        name = self.unique(name or "constant")
        self.initializers[name] = array
        made = Term(name, array.shape, array.dtype, array)
        if key is not None:
            self.constants[key] = made
        return made

    def like(self, number: Any, x: Any) -> Term:
        """Return a constant in the dtype of a term, or in the given dtype."""
        return self.constant(number, getattr(x, "dtype", x))

    def cast(self, x: Any, dtype: Any) -> Any:
        x = self.term(x)
        if x.dtype == dtype:
            return x
        if x.data is not None and x.data.size <= 64:
            return self.constant(x.data.astype(dtype))
        made = self.Cast(x, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        made.shape, made.dtype = x.shape, np.dtype(dtype)
        return made

    def reduce(self, kind: str, x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        """Add a reduction; older opsets have the axes as an attribute."""
        if axes is not None and not len(axes):
            return self.Identity(x)
        if self.opset >= (13 if kind == "ReduceSum" else 18):
            return self.node(kind, x, None if axes is None else list(axes), keepdims=int(keepdims))
        return self.node(kind, x, axes=None if axes is None else list(axes), keepdims=int(keepdims))

    def sum(self, terms: Sequence[Any]) -> Any:
        total = terms[0]
        for term in terms[1:]:
            total = self.Add(total, term)
        return total

    # ── sizes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def size_of(self, x: Term, axis: int) -> Any:
        """Return the run-time size of an axis, as a vector of one element."""
        if x.name not in self.shapes:
            self.shapes[x.name] = self.Shape(x)
        return self.Gather(self.shapes[x.name], [axis], axis=0)

    def size(self, number: Any, *near: Term) -> Any:
        """Return a number, which may depend on dynamic axes, as an int64 vector of one element; read from a size of
        the `near` terms if possible."""
        if not isinstance(number, Varying):
            return self.constant([int(number)])
        for x in near:
            for axis, n in enumerate(x.shape or ()):
                if n == number and x.data is None:
                    return self.size_of(x, axis)
        found = formula(number, [values for _, _, values in self.symbols])
        if found is not None:
            terms: list[Any] = [self.constant([found.constant])] if found.constant or not found.terms else []
            for factor, chosen in found.terms:
                parts = [self.size_of(*self.symbols[k][:2]) for k in chosen]
                product = parts[0]
                for part in (*parts[1:], *([factor] if factor != 1 else [])):
                    product = self.Mul(product, part if isinstance(part, Term) else [part])
                terms.append(product)
            total = self.sum(terms)
            return total if found.divisor == 1 else self.Div(total, [found.divisor])
        for x in near:
            for start in range(len(x.shape or ())):
                for stop in range(start + 2, len(x.shape) + 1):
                    if prod(x.shape[start:stop]) == number:
                        self.size_of(x, 0)
                        return self.ReduceProd(self.Slice(self.shapes[x.name], [start], [stop]), keepdims=1)
        raise SymbolicValueError(f"a size was {', '.join(map(str, number.values))} where the dynamic axes had the "
                                 f"sizes {'; '.join(', '.join(map(str, values)) for _, _, values in self.symbols)}: "
                                 f"how it depends on them cannot be told{f' (in {self.scope})' if self.scope else ''}")

    def scalar(self, number: Any, dtype: Any = INT) -> Any:
        """Return a number, which may depend on dynamic axes, as a 0-d array."""
        return (self.cast(self.Squeeze(self.size(number), [0]), dtype) if isinstance(number, Varying)
                else self.constant(number, dtype))

    def sizes(self, shape: Sequence[Any], *near: Term) -> Any:
        """Return several sizes as a vector."""
        if not any(isinstance(n, Varying) for n in shape):
            return self.constant([int(n) for n in shape], INT)
        return self.Concat(*[self.size(n, *near) for n in shape], axis=0)

    def reshape(self, x: Any, shape: Sequence[Any]) -> Any:
        """Reshape: a varying size is copied from the input's axis at its position (0), and a single other one is
        inferred (-1)."""
        own = getattr(x, "shape", None)
        if 0 in shape:
            return self.Reshape(x, self.sizes(shape), **({"allowzero": 1} if self.opset >= 14 else {}))
        wanted = [0 if isinstance(n, Varying) and own is not None and i < len(own) and own[i] == n else n
                  for i, n in enumerate(shape)]
        if sum(isinstance(n, Varying) for n in wanted) == 1:
            wanted = [-1 if isinstance(n, Varying) else n for n in wanted]
        made = self.Reshape(x, self.sizes(wanted, *([x] if own is not None else [])))
        made.shape = tuple(shape)
        return made

    def expand(self, x: Term, shape: Sequence[Any], *near: Term) -> Any:
        """Broadcast to a shape; 1 keeps an axis."""
        if x.shape is not None and tuple(x.shape) == tuple(shape):
            return x
        own = None if x.shape is None else (1,) * (len(shape) - len(x.shape)) + tuple(x.shape)
        wanted = [1 if own is not None and isinstance(n, Varying) and own[i] == n else n for i, n in enumerate(shape)]
        return self.Expand(x, self.sizes(wanted, x, *near))

    def flat_places(self, x: Term) -> Any:
        """Return the flat index of each element of a term, in its shape."""
        if not any(isinstance(n, Varying) for n in x.shape):
            return self.constant(np.arange(prod(x.shape)).reshape(x.shape))
        count = self.Size(x)
        return Term(self.Reshape(self.Range(self.constant(0), count, self.constant(1)), self.Shape(x)).name, x.shape,
                    INT)
