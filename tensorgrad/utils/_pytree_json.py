"""Specs of trees as JSON, in PyTorch's format, as part of torch.utils._pytree.

    [1, {"type": name, "context": text, "children_spec": [...]}]       a leaf's type and context are null

>>> from tensorgrad.utils._pytree import tree_structure, treespec_dumps, treespec_loads
>>> text = treespec_dumps(tree_structure([1]))
>>> text[:50]
'[1, {"type": "builtins.list", "context": "null", "'
>>> treespec_loads(text)
TreeSpec(list, None, [*])
"""
from __future__ import annotations

import json
import sys
import warnings
from collections import defaultdict
from enum import Enum
from typing import Any

from ._pytree import CONTAINERS, LEAF, NAMED, NAMES_OF_NAMED, TreeSpec, check_spec

PROTOCOL = 1
REMEDY = "Please make the context json {0}-able, or register a custom serializer using _register_pytree_node."


def _found(module: str, name: str) -> Any:
    """Return an attribute of a loaded module, by its dotted name. No module is imported. ValueError if it is absent."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise ValueError(f"the spec of a tree names {module}.{name}, which is not imported")
    return found


def _encoded(value: Any) -> Any:
    if isinstance(value, Enum):
        cls = type(value)
        return {"__enum__": True, "fqn": f"{cls.__module__}:{cls.__qualname__}", "name": value.name}
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _decoded(value: dict[str, Any]) -> Any:
    if "__enum__" not in value:
        return value
    module, _, name = value["fqn"].partition(":")
    cls = _found(module, name)
    if not (isinstance(cls, type) and issubclass(cls, Enum)):
        raise ValueError(f"the spec of a tree names {module}.{name}, which is no class of Enum")
    return cls[value["name"]]


def _to_dumpable(spec: TreeSpec) -> Any:
    """Return the context of a spec as JSON can hold it."""
    container = CONTAINERS[spec.type]
    if container is NAMED:
        if spec.context not in NAMES_OF_NAMED:
            raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {spec.context} because we didn't "
                                      "register a serializated_type_name. Please register using "
                                      "`_register_namedtuple`.")
        return NAMES_OF_NAMED[spec.context]
    if spec.type is defaultdict:
        factory, keys = spec.context
        return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__,
                "dict_context": keys}
    if container.to_dumpable is not None:
        return container.to_dumpable(spec.context)
    try:
        return json.dumps(spec.context, default=_encoded)
    except TypeError as error:
        raise TypeError(f"Unable to serialize context. {REMEDY.format('dump')}") from error


def _from_dumpable(cls: Any, context: Any) -> Any:
    """Return the context of a container of a class from what JSON holds."""
    container = CONTAINERS[cls]
    if container is NAMED:
        return _class_of(context, NAMES_OF_NAMED, "Can't deserialize TreeSpec of namedtuple class {0} because we "
                                                  "couldn't find a serializated name.")
    if cls is defaultdict:
        parts = ("default_factory_module", "default_factory_name", "dict_context")
        if not isinstance(context, dict) or set(context) != set(parts):
            raise AssertionError(f"dumpable_context keys must be {set(parts)}, got {context!r:.80}")
        return [_found(context[parts[0]], context[parts[1]]), context[parts[2]]]
    if container.from_dumpable is not None:
        return container.from_dumpable(context)
    try:
        return json.loads(context, object_hook=_decoded)
    except TypeError as error:
        raise TypeError(f"Unable to deserialize context. {REMEDY.format('load')}") from error


def _class_of(name: str, names: dict[Any, str | None], refusal: str) -> Any:
    for cls, known in reversed(names.items()):          # the latest registration of a name counts
        if known is not None and known == name:
            return cls
    raise NotImplementedError(refusal.format(name))


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    if spec.type not in CONTAINERS:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    name = CONTAINERS[spec.type].name
    if name is None:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")
    return {"type": name, "context": _to_dumpable(spec), "children_spec": list(map(_to_json, spec._children))}


def _from_json(schema: Any) -> TreeSpec:
    name, context, children = schema["type"], schema["context"], schema["children_spec"]
    if name is None and context is None and not children:
        return LEAF
    names = {cls: container.name for cls, container in CONTAINERS.items()}
    cls = _class_of(name, names, "Deserializing {0} in pytree is not registered.")
    return TreeSpec(cls, _from_dumpable(cls, context), list(map(_from_json, children)))


def _check_protocol(protocol: Any) -> None:
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return the spec as JSON. Errors: NotImplementedError for a class that is registered without a name for JSON."""
    check_spec(treespec)
    _check_protocol(PROTOCOL if protocol is None else protocol)
    return json.dumps((PROTOCOL, _to_json(treespec)), default=_encoded)


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the spec that `treespec_dumps` wrote. No module is imported: it refers to those that are loaded."""
    protocol, schema = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(schema)


def pytree_to_str(treespec: TreeSpec) -> str:
    """Return `treespec_dumps(treespec)`: the deprecated name."""
    warnings.warn("`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.", FutureWarning, stacklevel=2)
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> TreeSpec:
    """Return `treespec_loads(json)`: the deprecated name."""
    warnings.warn("`str_to_pytree` is deprecated. Please use `treespec_loads` instead.", FutureWarning, stacklevel=2)
    return treespec_loads(json)
