"""Facts about operators and their schemas, under the names of `torch._library.utils`."""
from __future__ import annotations

from typing import Any

from .._ops import ops
from .schemas import Schema, parse

__all__ = ["get_source", "is_functional_schema", "is_tensor_like_type", "is_tensorlist_like_type", "lookup_op",
           "parse_namespace"]
LISTS = frozenset(("List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]",
                   "Optional[List[Optional[Tensor]]]"))


def get_source(stacklevel: int) -> str:
    """Return `file:line` of a caller, `stacklevel` frames up."""
    import sys
    frame = sys._getframe(stacklevel)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def parse_namespace(qualname: str) -> tuple[str, str]:
    """Split `namespace::name`. Errors: ValueError if it has another form."""
    namespace, colons, name = qualname.partition("::")
    if not colons or "::" in name:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname '
                         f"passed to the torch.library APIs must consist of a namespace and a name, e.g. aten::sin")
    return namespace, name


def lookup_op(qualname: str) -> Any:
    """Return an operator's overload, by default that without a name.

    >>> import tensorgrad as torch
    >>> torch._library.utils.lookup_op("aten::add.Tensor")(torch.ones(1), 2)
    tensor([3.])
    """
    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(ops, namespace), name), overload or "default")


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Return True if an operator writes to no argument, returns no view of one, and returns something.

    allow_valid_view: a view is allowed if one tensor is given and one returned

    >>> import tensorgrad as torch
    >>> torch._library.utils.is_functional_schema("f(Tensor x) -> Tensor")
    True
    """
    found: Schema = parse(schema) if isinstance(schema, str) else schema
    if found.is_mutable:
        return False
    if any(r.alias_info is not None for r in found.returns):
        tensors = [sum(a.kind == "Tensor" for a in part) for part in (found.arguments, found.returns)]
        return allow_valid_view and tensors == [1, 1]
    return bool(found.returns)


def is_tensorlist_like_type(typ: Any) -> bool:
    """Return True for the type of an argument that is a list of tensors, some of which may be None."""
    return str(typ) in LISTS


def is_tensor_like_type(typ: Any) -> bool:
    """Return True for the type of an argument that is a tensor, or None."""
    return str(typ) in ("Tensor", "Optional[Tensor]")
