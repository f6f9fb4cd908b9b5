"""Record the steps of a run as a graph."""
from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable
from typing import Any

from .lines import ReadsValues, user_line


class Here(threading.local):
    """The run that this thread records."""

    recorder: Any = None


here = Here()


def running() -> Recorder:
    """Return the run that this thread records. ReadsValues if it has ended."""
    if here.recorder is None:
        raise ReadsValues("a tensor is used after its program was recorded", user_line())
    return here.recorder  # type: ignore[no-any-return]


class Scope(str):
    """The path of a module that runs, with the number of its calls before, and the scope that called it."""

    def __new__(cls, path: str, count_of_calls: int = 0, outer: Any = None) -> Scope:
        made = super().__new__(cls, path)
        made.count_of_calls, made.outer = count_of_calls, outer
        return made

    count_of_calls: int
    outer: Any

    def __reduce__(self) -> Any:
        return Scope, (str(self), self.count_of_calls, self.outer)


class Recorder:
    """A run of a program, whose tensors are of the storage `backend`. `graph` gets a node for each step.

    Values that depend on the inputs are symbols, or, with `reading`, arrays computed from the example inputs:
    `reading(source)` is then called when the program reads one. An application of an op is one step if `whole(op,
    operands, params)` is true, else the steps of its definition. With `fold`, values computed from constants alone are
    constants, without steps.
    """

    def __init__(self, graph: Any, backend: Any, reading: Callable[[str], None] | None = None,
                 whole: Callable[..., bool] | None = None,
                 fold: bool = True) -> None:
        self.graph, self.backend, self.reading, self.whole, self.fold = graph, backend, reading, whole, fold
        self.scopes: list[str] = [""]
        self.calls: dict[str, int] = {}
        self.constants: dict[int, Any] = {}
        self.held: list[Any] = []            # the arrays of the constants, kept alive because they are known by id
        self.written: list[str] = []         # buffers that the program wrote to
        self.relied: dict[str, None] = {}    # tensors whose values the program read, or shapes depend on
        self.scalars: Any = None             # how whole numbers of the inputs are read: see `recording.Scalars`
        self.sizes: Any = None               # sizes that stay symbolic, if some do: see `symbolic_sizes`
        self.branches = False                # True: `torch.cond` on unknown values is a node
        self.watcher: Any = None             # a profiling function: calls within the package are hidden from it
        self.begun = 0                       # the start of the program: arrays made later are its own

    # ── nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def described(self, node: Any, inner: Any, known: bool) -> Any:
        """Set the `meta` of a node from its result, and return the node."""
        node.meta.update(shape=tuple(inner.shape), dtype=inner.dtype, scope=self.scopes[-1])
        if known:
            node.meta["value"] = inner
        return node

    def constant(self, array: Any) -> Any:
        """Return the node of an array that does not depend on the inputs."""
        node = self.constants.get(id(array))
        if node is None:
            name = f"_constant{len(self.constants)}"
            self.held.append(array)
            node = self.constants[id(array)] = self.described(self.graph.get_attr(name), array, True)
            node.meta["source"] = user_line()
        return node

    def step(self, target: Any, args: Any, params: Any, results: Any, known: bool, several: bool = False,
             infer: Any = None) -> list[Any]:
        """Add a call of a function, and return the nodes of its results. `infer` gives those for other sizes."""
        node = self.graph.call_function(target, tuple(args), dict(params))
        source = node.meta["source"] = user_line()
        if self.sizes is not None:
            node.meta.update({"infer": infer} if infer is not None else {"results": results if several else results[0]})
        if not several:
            return [self.described(node, results[0], known)]
        node.meta.update(shape=[tuple(r.shape) for r in results], dtype=[r.dtype for r in results],
                         scope=self.scopes[-1])
        parts = [self.graph.call_function(operator.getitem, (node, k), {}) for k in range(len(results))]
        for part, result in zip(parts, results, strict=True):
            self.described(part, result, known).meta["source"] = source
        return parts

    # ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def rely(self, arrays: Iterable[Any]) -> None:
        """Note the program's tensors that known arrays, which it reads, were computed from."""
        left, seen = [a.node for a in arrays if a.node is not None], set[Any]()
        while left:
            node = left.pop()
            if node not in seen:
                seen.add(node)
                left += node._input_nodes
                if node.op == "get_attr" and node.meta.get("state"):
                    self.relied[node.target] = None

    def read(self, what: str) -> None:
        """Handle a read of a value that depends on the inputs: ReadsValues, or a call of `reading`."""
        if self.reading is None:
            raise ReadsValues(what, user_line())
        self.reading(user_line())
