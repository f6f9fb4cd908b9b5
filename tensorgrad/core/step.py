"""Steps of the tape: applications of ops, or of a program's Functions. `Step` is their common interface.

A step pulls a gradient back (`pull` on arrays, `pull_tensors` on Tensors, recorded), and describes itself (`read`): its
inputs, its saved values, and its results. Its class inherits from its kind and its op: MulBackward0 is
`type("MulBackward0", (PlainStep, Multiply), {})`. All kinds have the slots of `Node` and no others, so that a step can
change its kind.
"""
from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, ClassVar, NamedTuple

from ..dtype import holds_complex
from ..ops.base import HALVES, OPS
from ..runtime.numpy_state import outside
from ..runtime.small_floats import computed
from .class_hooks import hooks as class_hooks
from .class_hooks import is_own
from .dispatch import apply, namespace, wrap, xp
from .mode import no_grad
from .node import Node
from .plan import kind, named_type
from .stale import second_time, stale
from .tape import FREED, Output, TensorBase
from .unbroadcast import checked, fitted, sum_to

# types that are not freed after a backward, as in PyTorch: numbers and shapes
WIDE = HALVES | set("FD")       # letters of the dtypes whose gradients `_pull_wide` pulls
NO_MEMORY = {int, float, bool, complex, tuple, type(None)}
PUBLIC = ("__class__", "__doc__", "_input_metadata", "_sequence_nr", "metadata", "name", "next_functions",
          "register_hook", "register_prehook", "requires_grad")
SIZES = frozenset(("self_sym_sizes", "self_sym_numel"))
PARAMETERS = {"dim": "axis", "keepdim": "keepdims"}      # PyTorch's names of parameters


class Operand(NamedTuple):
    """An input of a step, or another argument of its gradient formulas."""

    name: str
    # the number of the input, or of the result after the inputs; −1 for shapes and parameters
    position: int
    edge: Any = None            # the input's or the result's place on the tape; None where no gradient flows
    value: Any = None           # the saved value: a tensor, an array, a number; None if there is none
    stale: bool = False         # True if it was modified since


class Reading(NamedTuple):
    """A description of a step: its op, its inputs, the arguments of its gradient formulas, its results."""

    op: Any                             # an op of the table; None for a program's Function
    inputs: tuple[Operand, ...]         # all of them
    asked: dict[str, Operand]           # the arguments of the gradient formulas, by name, in their order
    # the places of the results on the tape; None for those that are gone, or have no gradient
    results: tuple[Any, ...]

    def kept(self) -> Iterator[Operand]:
        """The inputs and results that the step keeps."""
        found = [*self.inputs, *(o for o in self.asked.values() if o.position >= len(self.inputs))]
        return (o for o in found if o.value is not None)


class Packed:
    """A saved tensor as a saved-tensors hook keeps it."""

    __slots__ = ("packed", "unpack")

    def __init__(self, packed: Any, unpack: Any) -> None:
        self.packed, self.unpack = packed, unpack

    @classmethod
    def by(cls, hooks: tuple[Any, Any], tensor: Any) -> Packed:
        """Pack a tensor by a pair of hooks."""
        pack_hook, unpack_hook = hooks
        version = tensor._storage.version
        with no_grad():
            packed = pack_hook(tensor)
        if tensor._storage.version != version:
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to "
                               "pack hook cannot be modified by in-place operations as this can lead to unexpected "
                               "side-effects. Please open an issue if you need to perform in-place operations on the "
                               "input to a pack hook.")
        return cls(packed, unpack_hook)

    def unpacked(self) -> TensorBase:
        tensor = outside(self.unpack, self.packed)
        if not isinstance(tensor, TensorBase):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                            f"{type(tensor).__name__}")
        return tensor


def is_packed(value: Any) -> bool:
    """Return True if a saved value is kept by a hook."""
    return type(value) is Packed


class Step(Node):
    """A step of the tape. See the module's docstring."""

    __slots__ = ()
    op: ClassVar[Any] = None                # the op of the table that it applies
    # True if its gradients may be arrays that others hold, like those of a program's Function
    shares: ClassVar[bool] = False
    materialize: ClassVar[bool] = True      # gradients of unused results reach it as zeros

    def pull(self, g: Any, useful: Any) -> list[tuple[Any, Any]]:
        """Return [(edge, gradient)] of the inputs in `useful`, as arrays, given the gradient of the result (a list, for
        several).
        """
        raise NotImplementedError(f"{type(self).__name__} has no gradient")

    def pull_tensors(self, g: Any, useful: Any) -> list[tuple[Any, Any]]:
        """Pull on Tensors: recorded, so that the gradients can be differentiated again."""
        raise NotImplementedError(f"{type(self).__name__} has no gradient")

    def read(self, unpack: bool = True) -> Reading:
        """Describe the step. Values that hooks keep are unpacked, or left out if not `unpack`."""
        return Reading(None, tuple(Operand(f"input {i}", i, e) for i, e in enumerate(self.edges)), {}, self.places())

    def places(self) -> tuple[Any, ...]:
        """Return the nodes of the results: the step itself, or the outputs of several; None for those that are gone."""
        return (self,) if type(self.dtype) is not tuple else tuple(None if r is None else r() for r in self.results)

    def place(self, index: int, array: Any) -> Any:
        """Return the output of a result that has a gradient: the living one, which has the hooks, else a new one."""
        reference = self.results[index]
        return None if reference is None else reference() or Output(self, index, array)

    @property
    def memory(self) -> Any:
        """The saved values. Setting it to them again undoes `free`."""
        return type(self), self.saved, getattr(self, "residual", None)

    @memory.setter
    def memory(self, kept: Any) -> None:
        self.__class__, self.saved, self.residual = kept

    @property
    def freed(self) -> bool:
        """True if the saved values were freed."""
        return self.saved is FREED

    def free(self) -> None:
        """Free the saved values, unless they are numbers and shapes."""
        saved = self.saved
        if type(saved) is not tuple or not all(type(v) in NO_MEMORY for v in saved):
            self.saved = FREED

    def completed(self, g: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of all results: zeros for those that nobody used."""
        backend: Any = type(self._storage)
        for i, part in enumerate(g):
            if part is None and self.materialize and self.dtype[i] is not None:
                zeros = backend.xp.zeros(self.shape[i], dtype=self.dtype[i])
                g[i] = wrap(zeros, backend()) if create_graph else zeros
        return g

    def __call__(self, *gradients: Any, **keywords: Any) -> Any:
        """Return the gradients of the inputs, given those of the results, like one step of a backward."""
        if keywords:
            raise TypeError("keyword arguments are not supported")
        several = type(self.dtype) is tuple
        if len(gradients) != (count := len(self.dtype) if several else 1):
            raise TypeError(f"expected {count} arguments, got {len(gradients)} instead")
        found = {}
        if any(g is not None for g in gradients):
            g = self.completed(list(gradients), True) if several else gradients[0]
            found = {id(edge): g for edge, g in self.pull_tensors(g, None)}
        results = tuple(found.get(id(edge)) for edge in self.edges)
        return results[0] if len(results) == 1 or not any(edge is not None for edge in self.edges[1:]) else results


@kind("plain")
class PlainStep(Step):
    """An application of an op of the table: pulls with its gradient formulas, from the values in `saved`."""

    __slots__ = ()
    op: ClassVar[Any]

    def name(self) -> str:
        try:
            return self.title
        except AttributeError:
            return self.op.name(self)  # type: ignore[no-any-return]

    def as_function(self) -> tuple[Node, int]:
        """Return the step as `grad_fn` shows it: the name of its class is its own."""
        if (name := self.name().rpartition("::")[2]) != type(self).__name__:
            self.__class__ = named_type(self.op, type(self).__bases__, name)
        return self, 0

    def __dir__(self) -> list[str]:
        """Return the attributes that programs ask for, the saved values among them under PyTorch's names."""
        op, last = self.op, self.op.inputs[-1] if self.op.elementwise and len(self.op.inputs) == 2 else None
        theirs = {op.inputs[0]: "self", last: "other", "out": "result"}
        saved = [] if op.composite else [theirs.get(name, name) for name in self.plan.names]
        return sorted({*PUBLIC, *(f"_saved_{name}" for name in (*saved, *op.parameters)),
                       *(f"_raw_saved_{name}" for name in saved)})

    # ── gradients

    def pull(self, g: Any, useful: Any) -> list[tuple[Any, Any]]:
        saved, plan, time = self.saved, self.plan, self.time
        if saved is FREED:
            raise second_time(self)
        if plan.saves_out and self._storage.written > time:
            self._check_output()
        values: list[Any] = []
        for v in saved:
            if isinstance(v, TensorBase):
                if v._storage.written > time:
                    raise self._outdated(len(values), v)
                v = v.array
            elif type(v) is Packed:
                v = v.unpacked().array
            values.append(v)
        for extra in plan.extras:
            values.append(extra(self, values))
        backend_xp, edges = self._storage.xp, self.edges
        if type(g) is list or g.dtype.char in WIDE:
            return self._pull_wide(g, values, useful)
        pulled = []
        try:
            for i, formula, wants in plan.steps:
                edge = edges[i]
                if useful is None or edge in useful:
                    ge = (formula(backend_xp, g, values[wants[0]]) if len(wants) == 1
                          else formula(backend_xp, g, *[values[w] for w in wants]))
                    if ge.shape != edge.shape or ge.dtype is not edge.dtype:
                        ge = fitted(backend_xp, ge, edge)
                    pulled.append((edge, ge))
        except TypeError:               # a float32 gradient meets a saved bfloat16 array
            if any(getattr(getattr(v, "dtype", None), "kind", "") == "V" for v in values):
                return self._pull_wide(g, values, useful)
            raise
        return pulled

    def _pull_wide(self, g: Any, values: Any, useful: Any) -> list[tuple[Any, Any]]:
        """`pull` for complex numbers, which are conjugated around analytic formulas, for halves, which compute in
        float32, and for steps with several results."""
        parts, backend_xp = g if type(g) is list else [g], self._storage.xp
        narrow = parts[0].dtype if parts[0].dtype.char in HALVES else None
        parts, values = widened(backend_xp, parts), widened(backend_xp, values)
        conjugate = self.op.analytic and any(part.dtype.kind == "c" for part in parts)
        if conjugate:
            parts = [part.conj() for part in parts]
        g = parts if type(g) is list else parts[0]
        pulled = []
        for i, formula, wants in self.plan.steps:
            edge = self.edges[i]
            if useful is None or edge in useful:
                ge = formula(backend_xp, g, *[values[w] for w in wants])
                # PyTorch's products are rounded before they are summed; other formulas round at each step there
                if narrow is not None and ge.shape != edge.shape and self.op.elementwise and len(wants) == 1:
                    ge = widened(backend_xp, [backend_xp.cast(ge, dtype=narrow)])[0]
                pulled.append((edge, fitted(backend_xp, ge.conj() if conjugate else ge, edge)))
        return pulled

    def pull_tensors(self, g: Any, useful: Any) -> list[tuple[Any, Any]]:
        values, op = self.linked(), self.op
        backend: Any = type(self._storage)
        table = namespace(backend)
        if any(part.array.dtype.char in HALVES for part in (g if type(g) is list else [g])):
            g = widened(table, g) if type(g) is list else widened(table, [g])[0]
            values = widened(table, values)
        conjugate = op.analytic and any(part.array.dtype.kind == "c" for part in (g if type(g) is list else [g]))
        if conjugate:
            g = [xp.conj(part) for part in g] if type(g) is list else xp.conj(g)
        pulled = []
        for i, formula, wants in self.plan.steps:
            edge = self.edges[i]
            if useful is None or edge in useful:
                ge = formula(table, g, *[values[w] for w in wants])
                ge = fitted_tensor(xp.conj(ge) if conjugate else ge, edge)
                pulled.append((edge, _tied(ge, self.edges) if op.flat else ge))
        return pulled

    def by_formulas(self) -> PlainStep:
        """Return the step, converted to one that pulls with the op's gradient formulas."""
        return self

    def moved(self, result: Any, target: Any, storage: Any) -> None:
        """Note that the result was written to `target`: a saved result is read from there, and later writes to its
        storage are noticed.
        """
        if self.plan.saves_out:
            self._storage = storage
            # keep one copy of the values, not two
            self.saved = tuple(target.array if v is result.array else v for v in self.saved)

    # ── saved values

    def linked(self) -> list[Any]:
        """Return the arguments of the formulas as Tensors with their edges, in the order of the plan."""
        saved, plan = self.saved, self.plan
        if saved is FREED:
            raise second_time(self)
        if plan.saves_out and self._storage.written > self.time:
            self._check_output()
        values = [self._relinked(place, v) if place < len(plan.origins) else v for place, v in enumerate(saved)]
        for extra in plan.extras:
            values.append(extra(self, values))
        return values

    def _relinked(self, place: int, v: Any) -> Any:
        """Return a saved value as a Tensor with its edge."""
        origin, arity = self.plan.origins[place], len(self.edges)
        if type(v) is Packed:
            v = v.unpacked()
        elif isinstance(v, TensorBase) and v._storage.written > self.time:
            raise self._outdated(place, v)
        if origin < arity:
            if not isinstance(v, TensorBase) or v._node is self.edges[origin] and type(v) is not TensorBase:
                return v      # the very tensor
            if is_own(v):
                return class_hooks.relinked(v, self.edges[origin])
            return wrap(v.array, v._storage, self.edges[origin])
        if is_own(v):
            several = type(self.dtype) is tuple
            return class_hooks.relinked(v, self.place(origin - arity, v.array) if several else self)
        if type(self.dtype) is not tuple:
            return wrap(getattr(v, "array", v), self._storage, self)
        return wrap(v.array, v._storage, self.place(origin - arity, v.array))

    def read(self, unpack: bool = True) -> Reading:
        op, plan, results, edges = self.op, self.plan, self.places(), self.edges
        arity = len(edges)
        saved = ([None] * len(plan.origins) if self.saved is FREED
                 else [(v.unpacked() if unpack else None) if type(v) is Packed else v for v in self.saved])
        inputs = [Operand(name, i, e) for i, (name, e) in enumerate(zip(plan.inputs, edges))]
        kept: list[Operand] = []
        for origin, name, value in zip(plan.origins, plan.names, saved):
            operand = inputs[origin] if origin < arity else Operand(name, origin, results[origin - arity])
            kept.append(operand._replace(value=value, stale=value is not None
                                         and self._is_stale(value, origin >= arity)))
            if origin < arity:
                inputs[origin] = kept[-1]
        return Reading(op, tuple(inputs), self._asked(kept, inputs, saved), results)

    def _asked(self, kept: list[Operand], inputs: list[Operand], saved: list[Any]) -> dict[str, Operand]:
        """Return the arguments of the gradient formulas, by name."""
        op, plan = self.op, self.plan
        if op.composite:
            return ({o.name: o for o in kept if o.value is not None or self.freed}
                    | {name: Operand(name, -1, None, v) for name, v in self.params.items()})
        arrays, found = [v.array if isinstance(v, TensorBase) else v for v in saved], {}
        for extra in plan.extras if self.saved is not FREED else ():
            arrays.append(extra(self, arrays))
        for (_, _, wants), names in zip(plan.steps, plan.asks):
            for name, place in zip(names, wants):
                if place < len(kept):
                    found[name] = kept[place]._replace(name=name)
                elif op.arity is None and name == op.inputs[-1]:                  # any number of inputs, together
                    found |= {o.name: o for o in inputs[len(op.inputs) - 1:]}
                else:
                    found[name] = Operand(name, -1, None, arrays[place] if place < len(arrays)
                                          else (self.params or {}).get(name))
        return found

    def _is_stale(self, value: Any, result: bool) -> bool:
        since = max(self.time, getattr(self, "since", 0))
        return bool(value._storage.written > since if isinstance(value, TensorBase)
                    else result and self.plan.saves_out and self._storage.written > since)

    def _check_output(self) -> None:
        """Raise unless the saved result is unmodified since its step, or since the in-place write that made it."""
        since = getattr(self, "since", self.time)
        if self._storage.written > since:
            out = next(v for v, origin in zip(self.saved, self.plan.origins) if origin >= len(self.edges))
            if type(out) is Packed:             # hooks keep it: they may have kept a copy
                return
            raise stale(self, out, self._storage, self, self._storage.version_at(since))

    def _outdated(self, place: int, v: TensorBase) -> RuntimeError:
        """Return the error for a saved tensor that was modified since."""
        result = self.plan.origins[place] - len(self.edges)
        source = v._node if result < 0 else Output(self, result, v.array) if v.array.dtype.kind in "fcV" else None
        return stale(self, v.array, v._storage, source, v._storage.version_at(self.time))

    def __getattr__(self, name: str) -> Any:
        """`_saved_self`, `_saved_other`, `_saved_result`: saved inputs and results, by PyTorch's names or ours."""
        if not name.startswith(("_saved_", "_raw_saved_")):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
        op, plan, asked = self.op, self.plan, name.partition("saved_")[2]
        if (not name.startswith("_raw") and (parameter := PARAMETERS.get(asked, asked)) in op.parameters
                and asked not in op.inputs):
            return self.params.get(parameter, op.parameters[parameter])
        if asked in SIZES and (edge := self.edges[0]) is not None:
            return tuple(edge.shape) if asked == "self_sym_sizes" else prod(edge.shape)
        if self.saved is FREED and not name.startswith("_raw"):
            raise second_time(self)
        wanted = {"self": op.inputs[0], "result": "out",
                  **dict.fromkeys(("other", "exponent", "mat2", "tensor"), op.inputs[-1])}.get(asked, asked)
        if op.composite or wanted not in plan.names:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
        place = plan.names.index(wanted)
        return SavedTensor.of(self, place) if name.startswith("_raw") else self._relinked(place, self.saved[place])

    def kept_at(self, place: int) -> Any:
        """Return a saved value as a Tensor, or as a hook packed it."""
        node = self.by_formulas()
        value = node.saved[place]
        return value if type(value) is Packed else node._relinked(place, value)

    def keep_at(self, place: int, value: Any) -> None:
        """Replace a saved value."""
        node = self.by_formulas()
        node.saved = (*node.saved[:place], value, *node.saved[place + 1:])

    def pack(self, hooks: tuple[Any, Any]) -> None:
        """Pack the saved tensors by a pair of hooks."""
        origins, packed = self.plan.origins, []
        for place, value in enumerate(self.saved):
            if place < len(origins) and (isinstance(value, TensorBase) or origins[place] >= len(self.edges)):
                array, storage = ((value.array, value._storage) if isinstance(value, TensorBase)
                                  else (value, self._storage))
                kept = origins[place] < len(self.edges) or is_own(value)
                packed.append(Packed.by(hooks, value if kept else wrap(array, storage)))
            else:
                packed.append(value)
        self.saved = tuple(packed)


class SavedTensor:
    """A saved value, for separate hooks: `y.grad_fn._raw_saved_self.register_hooks(pack, unpack)`."""

    def __init__(self, *arguments: Any) -> None:
        """Refuse: nodes make their saved values."""
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def of(cls, node: Any, place: int) -> SavedTensor:
        """Return a saved value of a step."""
        found = cls.__new__(cls)
        found.node, found.place = node, place
        return found

    node: Any           # with the methods `kept_at` and `keep_at`
    place: int

    def register_hooks(self, *hooks: Any) -> None:
        """Put the saved value through a pack hook now, and through an unpack hook when it is needed."""
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError("register_hooks(): incompatible function arguments. The following argument types are "
                            "supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: "
                            "collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\nInvoked with: "
                            + ", ".join(map(repr, (self, *hooks))))
        if self.node.freed:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate "
                               "values of the graph are freed when you call .backward() or autograd.grad(). Specify "
                               "retain_graph=True if you need to backward through the graph a second time or if you "
                               "need to access saved variables after calling backward.")
        value = self.node.kept_at(self.place)
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if type(value) is Packed:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only "
                               "one pair of hooks is allowed at a time.")
        self.node.keep_at(self.place, Packed.by(hooks, value))


def _tied(ge: Any, edges: Any) -> Any:
    """Record a constant gradient as a function of the step's inputs, so that its own gradients are zeros, not None."""
    for edge in edges:
        if edge is not None:
            ge = xp.copied(wrap(ge.array, ge._storage, edge), ge)
    return ge


def widened(table: Any, values: list[Any]) -> list[Any]:
    """Return arrays or Tensors, those of few bits in the dtype that ops compute in."""
    return [table.cast(v, dtype=computed(dtype)) if getattr(
        dtype := getattr(getattr(v, "array", v), "dtype", None), "char", "") in HALVES else v for v in values]


def fitted_tensor(ge: Any, edge: Any) -> Any:
    """Sum and cast a gradient, a Tensor, to the shape and dtype of its edge: `fitted`, recorded."""
    if ge.array.shape != edge.shape:
        ge = checked(sum_to(xp, ge, edge.shape), edge)
    if ge.array.dtype.kind == "c" and not holds_complex(edge.dtype):
        ge = xp.real(ge)
    return ge if ge.array.dtype == edge.dtype else apply(OPS["cast"], ge, dtype=edge.dtype)
