"""The stub of Tensor: methods, operators and properties, of which `tensorgrad.api` attaches most."""
from __future__ import annotations

import inspect
from typing import Any

from ..._tensor.torch_function import BINARY
from .definitions import KINDS, Definitions
from .names import Names
from .results import HEAD

# Properties and attributes that are made without annotations. `Tensor | Any` may be None, which programs know better.
ATTRIBUTES = {"H": "Tensor", "T": "Tensor", "mH": "Tensor", "mT": "Tensor", "real": "Tensor", "imag": "Tensor",
              "grad": "Tensor | Any", "data": "Tensor", "array": "Any", "origin": "Any", "node": "Any",
              "itemsize": "int", "nbytes": "int", "layout": "Layout", "name": "str | None",
              "names": "tuple[str | None, ...]", "_base": "Tensor | None",
              "grad_dtype": "Dtype | None",
              "retains_grad": "bool", "volatile": "bool"}
PRIVATE = ("_version", "_base", "_is_view", "_make_subclass", "__torch_function__")
OPERATORS = BINARY | {f"__{sign}__" for sign in "eq ne lt le gt ge div rdiv idiv".split()}
COMPARES = ("__eq__", "__ne__")
# operators that take no NumPy array
REFUSE = ({name for name in BINARY if name.startswith("__r")} - {"__rshift__", "__rtruediv__"}
          | {f"__{sign}__" for sign in "ne lt le gt ge".split()})


def tensor_stub() -> str:
    """Return the stub of `tensorgrad._tensor.tensor`."""
    from ..._tensor import Tensor
    operators = [n for n in dir(Tensor) if n.startswith("__") and callable(getattr(Tensor, n))
                 and (n not in dir(object) or n in OPERATORS) and n not in ("__class_getitem__", *PRIVATE)]
    members = [*sorted(n for n in dir(Tensor) if not n.startswith("_")), *sorted(operators), *PRIVATE]
    home = frozenset((module, "Tensor") for module in ("tensorgrad._tensor", "tensorgrad._tensor.tensor"))
    names = Names("tensorgrad._tensor.tensor", False, frozenset(members), home)
    write = Definitions(names)
    body = []
    for name in members:
        member = inspect.getattr_static(Tensor, name)
        if isinstance(member, classmethod):
            body += ["@classmethod", f"def {name}(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> "
                                     f"Any: ..."]
        elif isinstance(member, staticmethod):
            body += write.lines(name, member.__func__, name, "static")
        elif name in OPERATORS:
            in_place = name[2] == "i" and name not in ("__invert__",)
            said = (names.annotation("Operand" if name in REFUSE else "Operand | np.ndarray", KINDS),
                    names.use("typing", "Self") if in_place else "Tensor")
            body.append(f"def {name}(self, other: {said[0]}) -> {said[1]}: ..." + "  # type: ignore[override]"
                        * (name in COMPARES))
        elif name in ("__neg__", "__pos__", "__invert__", "__abs__"):
            body.append(f"def {name}(self) -> Tensor: ...")
        elif callable(member):
            body += write.lines(name, member, name, "self")
        else:
            body += _attribute(name, member, names)
    for word in ("Any", "Self", "Callable"):
        names.use("collections.abc" if word == "Callable" else "typing", word)
    names.use("tensorgrad.core.tape", "TensorBase")
    text = [HEAD, *names.imports(), "", "ABOVE: dict[str, Callable[..., Any]]", "", "class Tensor(TensorBase):",
            "    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...",
            "    def __hash__(self) -> _int: ...", *(f"    {line}" for line in body)]
    return "\n".join(text) + "\n"


def _attribute(name: str, member: Any, names: Names) -> list[str]:
    getter = getattr(member, "fget", None)
    said = ATTRIBUTES.get(name)
    if said is None and getter is not None:
        said = getattr(getter, "__annotations__", {}).get("return")
    if said is None:
        said = "bool" if name.startswith("is_") else "Any"
    annotation = names.annotation(said, KINDS if name in ATTRIBUTES
                                  else {**KINDS, **getattr(getter, "__globals__", {})})
    # with a setter of another type, so that checkers forget `x.grad = None` at the next backward
    if name == "grad":
        return ["@property", f"def grad(self) -> {annotation}: ...", "@grad.setter",
                "def grad(self, value: Tensor | None) -> None: ...",
                "@grad.deleter", "def grad(self) -> None: ..."]
    if getter is not None and getattr(member, "fset", None) is None and name not in ("T", "data"):
        return ["@property", f"def {name}(self) -> {annotation}: ..."]
    return [f"{name}: {annotation}"]
