"""Convert layers to plain data and back: dictionaries, JSON and YAML.

A layer is `{"type": class name, None: [positional arguments], keyword: argument, …}`; a container has its `layers`.
Arguments are numbers, texts, lists, tuples, dictionaries and further layers. Types that JSON lacks are dictionaries
with a single key: `{"tuple": […]}`, `{"slice": [start, stop, step]}`, `{"dtype": "float64"}`, `{"device": "cpu"}`,
`{"ellipsis": true}`, `{"node": name}` in graphs (graph_spec.py), and `{"dict": [[key, value], …]}` for dictionaries
that look like one of these.

A spec may be untrusted: a mistake in it is a `SpecError` that names the path, no code in it is executed, and only
registered layers and the modules of `nn` are made.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from types import ModuleType
from typing import Any

from .. import api as tg
from .. import nn
from ..dtype import dtype as Dtype
from ..messages.escaping import escaped
from ..messages.extras import install
from ..nn.parameter import is_lazy
from ..symbolic.construction import arguments_of

REGISTRY: dict[str, Any] = {}               # every class of layers by its name

DEEPEST = 64                # layers in layers in layers
MOST = 100_000              # values in one spec
LARGEST = 10**8             # an integer
COUNTS = {"num_layers": 1000, "num_normalize_dim": 64}      # arguments that say how many things to make
ELEMENTS = 2**30            # numbers in the parameters of one module

CONTAINERS = {"Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Module",
              "RNNBase", "RNNCellBase"}


class SpecError(ValueError, AssertionError):
    """A spec that describes no layer, or a layer that no spec describes.

    The message begins with the path in the spec. Text from the spec is escaped in it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(escaped(message, keep="\n"))


@dataclass(frozen=True)
class NodeName:
    """A reference to the result of a step of a graph."""

    name: str


# ── layers to data ────────────────────────────────────────────────────────────────────────────
def described(module: Any) -> dict[str | None, Any]:
    """The spec of a layer, or of a plain module of `nn` whose constructor's arguments can be read back."""
    if not hasattr(module, "_spec_parts"):
        return _described_native(module)
    name, arguments = module._spec_parts()
    return {"type": name, **{key: data(value, name if key is None else f"{name}.{key}")
                             for key, value in arguments.items()}}


def data(value: Any, path: str) -> Any:
    """Convert an argument to plain data. SpecError, with the path, if it is no data."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        parts = [data(part, f"{path}[{i}]") for i, part in enumerate(value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, dict):
        if (all(isinstance(key, str) for key in value) and "type" not in value
                and not (len(value) == 1 and value.keys() <= TAGS.keys())):
            return {key: data(part, f"{path}.{key}") for key, part in value.items()}
        return {"dict": [[data(key, path), data(part, f"{path}[{key!r}]")] for key, part in value.items()]}
    if isinstance(value, slice):
        return {"slice": [data(part, path) for part in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if isinstance(value, NodeName):
        return {"node": value.name}
    if isinstance(value, Dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, tg.device):
        return {"device": str(value)}
    if isinstance(value, nn.Module):
        return described(value)
    raise SpecError(f"{path}: a {type(value).__name__} is not plain data, so no spec can hold it")


def _described_native(module: nn.Module) -> dict[str | None, Any]:
    """Return the spec of a plain module, from its constructor's arguments."""
    cls = type(module)
    name = f"nn.{cls.__name__}"
    if cls is nn.Sequential:
        return {"type": name, "layers": [described(child) for child in module]}
    arguments = arguments_of(module) if _native_class(cls.__name__) is cls else None
    if arguments is None:
        raise SpecError(f"{name}: a {cls.__module__}.{cls.__qualname__} is neither a layer nor a module of nn whose "
                        "arguments can be read back; derive it from Layer, or give a Layer class with the same "
                        "function")
    return {"type": name, **{key: data(value, f"{name}.{key}") for key, value in arguments.items()}}


def _native_class(name: str) -> Any:
    """A class of `nn` that a spec may name, or None."""
    cls = getattr(nn, name, None) if name in nn.modules.__all__ else None
    return (cls if isinstance(cls, type) and issubclass(cls, nn.Module) and name not in CONTAINERS
            and not name.startswith("Transformer") else None)


# ── data to layers ────────────────────────────────────────────────────────────────────────────
def build(spec: Any) -> Any:
    """The layer or module that a spec describes."""
    return _Reader().module(spec, "", 0)


class _Reader:
    """A pass over a spec, which counts values and depth against the limits."""

    def __init__(self) -> None:
        self.seen = 0

    def _count(self, path: str, depth: int) -> None:
        self.seen += 1
        if self.seen > MOST:
            raise SpecError(f"{path or 'spec'}: more than {MOST} values")
        if depth > DEEPEST:
            raise SpecError(f"{_short(path)}: nested more than {DEEPEST} deep")

    def module(self, spec: Any, path: str, depth: int) -> Any:
        self._count(path, depth)
        if not isinstance(spec, Mapping):
            raise SpecError(f"{path or 'spec'}: a layer is a dictionary with a type, not {_shown(spec)}")
        if odd := [key for key in spec if key is not None and not isinstance(key, str)]:
            raise SpecError(f"{path or 'spec'}: keys are names of arguments, and None for the positional ones, not "
                            f"{_shown(odd[0])}")
        if "type" not in spec:
            raise SpecError(f"{_at(path, 'type')}: missing from {_shown(list(spec))}")
        if None in spec and "null" in spec:
            raise SpecError(f"{_at(path, 'null')}: positional arguments are given both under None and under 'null'")
        cls = self._class(spec["type"], _at(path, "type"))
        args, kwargs = [], {}
        for key, value in spec.items():
            if key in (None, "null"):
                args = self._positional(value, path, depth)
            elif key != "type":
                kwargs[key] = self.value(value, _at(path, key), depth + 1)
        return _made(cls, args, kwargs, spec["type"], path)

    def _class(self, name: Any, path: str) -> Any:
        if not isinstance(name, str):
            raise SpecError(f"{path}: the name of a class, not {_shown(name)}")
        if name.startswith("nn."):
            if cls := nn.Sequential if name == "nn.Sequential" else _native_class(name[3:]):
                return cls
        elif name in REGISTRY:
            return REGISTRY[name]
        elif name == "SymbolicModel":
            from ..symbolic.model import SymbolicModel
            return SymbolicModel
        else:
            found = {cls for known, cls in REGISTRY.items() if known.casefold() == name.casefold()}
            if len(found) == 1:
                return found.pop()
            if found:
                raise SpecError(f"{path}: {name!r} may be any of {', '.join(sorted(cls.__name__ for cls in found))}; "
                                f"write it as the one that is meant")
        known = {known.casefold(): known
                 for known in (*REGISTRY, *(f"nn.{n}" for n in nn.modules.__all__ if _native_class(n)))}
        near = get_close_matches(name[:100].casefold(), known, 3)
        raise SpecError(f"{path}: unknown layer {_shown(name)}"
                        + (f"; nearest: {', '.join(known[n] for n in near)}" if near else ""))

    def _positional(self, value: Any, path: str, depth: int) -> list[Any]:
        """Return the positional arguments: a list holds several, any other value is a single argument."""
        if not isinstance(value, (list, tuple)):
            return [self.value(value, _at(path, "null"), depth + 1)]
        self._count(path, depth)
        return [self.value(part, f"{_at(path, 'null')}[{i}]", depth + 1) for i, part in enumerate(value)]

    def value(self, value: Any, path: str, depth: int) -> Any:
        """An argument out of a spec: the reverse of `data`."""
        self._count(path, depth)
        if value is None or isinstance(value, (bool, float, str)):
            return value
        if isinstance(value, int):
            if abs(value) > LARGEST:
                raise SpecError(f"{path}: {_shown(value)} is too large a number for a layer's argument")
            return value
        if isinstance(value, (list, tuple)):
            parts = [self.value(part, f"{path}[{i}]", depth + 1) for i, part in enumerate(value)]
            return tuple(parts) if isinstance(value, tuple) else parts
        if not isinstance(value, Mapping):
            raise SpecError(f"{path}: {_shown(value)} is no argument that a spec can hold")
        if "type" in value:
            return self.module(value, path, depth)
        if len(value) == 1 and (tag := next(iter(value))) in TAGS:
            return TAGS[tag](self, value[tag], _at(path, tag), depth + 1)
        if odd := [key for key in value if not isinstance(key, str)]:
            raise SpecError(f"{path}: {_shown(odd[0])} is not a text; such a dictionary is written {{'dict': [[key, "
                            f"value], …]}}")
        return {key: self.value(part, _at(path, key), depth + 1) for key, part in value.items()}

    def _list(self, value: Any, path: str, depth: int, size: int | None = None) -> list[Any]:
        if not isinstance(value, (list, tuple)) or size not in (None, len(value)):
            raise SpecError(f"{path}: expected a list{f' of {size}' if size else ''}, not {_shown(value)}")
        return [self.value(part, f"{path}[{i}]", depth + 1) for i, part in enumerate(value)]

    def _slice(self, value: Any, path: str, depth: int) -> slice:
        ends = self._list(value, path, depth, 3)
        if any(end is not None and type(end) is not int for end in ends):
            raise SpecError(f"{path}: the ends of a slice are whole numbers or None, not {_shown(value)}")
        return slice(*ends)

    def _dict(self, value: Any, path: str, depth: int) -> dict[Any, Any]:
        pairs = ([self._list(pair, f"{path}[{i}]", depth, 2) for i, pair in enumerate(value)]
                 if isinstance(value, (list, tuple)) else None)
        try:
            return dict(pairs)
        except TypeError:
            raise SpecError(f"{path}: expected a list of keys and values, not {_shown(value)}") from None

    def _dtype(self, value: Any, path: str, depth: int) -> Any:
        found = getattr(tg, value, None) if isinstance(value, str) else None
        if not isinstance(found, Dtype):
            raise SpecError(f"{path}: {_shown(value)} is not the name of a dtype")
        return found

    def _device(self, value: Any, path: str, depth: int) -> Any:
        try:
            return tg.device(value if isinstance(value, str) else "")
        except (RuntimeError, ValueError, TypeError):
            raise SpecError(f"{path}: {_shown(value)} is not the name of a device") from None

    def _node(self, value: Any, path: str, depth: int) -> NodeName:
        if not isinstance(value, str):
            raise SpecError(f"{path}: the name of a step, not {_shown(value)}")
        return NodeName(value)

    def _ellipsis(self, value: Any, path: str, depth: int) -> Any:
        if value is not True:
            raise SpecError(f"{path}: true, not {_shown(value)}")
        return ...


TAGS = {"tuple": lambda reader, *where: tuple(reader._list(*where)), "slice": _Reader._slice, "dict": _Reader._dict,
        "dtype": _Reader._dtype,
        "device": _Reader._device, "ellipsis": _Reader._ellipsis, "node": _Reader._node}


def _made(cls: Any, args: list[Any], kwargs: dict[str, Any], name: str, path: str) -> Any:
    """Construct the layer; SpecError if the constructor raises."""
    place = f"{path}: " if path else ""
    try:
        if cls is nn.Sequential:
            return nn.Sequential(*layers_in(args, kwargs))
        if hasattr(cls, "_arguments_from_spec"):
            args, kwargs = cls._arguments_from_spec(args, kwargs)
        given = signature(cls).bind(*args, **kwargs).arguments
        for argument, most in COUNTS.items():
            count = given.get(argument, given.get("kwargs", given.get("options", {})).get(argument, 0))
            if isinstance(count, int) and count > most:
                raise ValueError(f"{argument}={count} is more than {most}")
        # its parameters are made at once
        if _native_class(cls.__name__) is cls or getattr(cls, "_inferred", None) == ():
            _trial(cls, args, kwargs)
        return cls(*args, **kwargs)
    except SpecError as error:
        raise SpecError(f"{place}{error}") from None
    except Exception as error:              # a constructor may raise anything
        raise SpecError(f"{place}cannot make {name}: {type(error).__name__}: {_short(str(error))}") from error


def layers_in(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Return the layers of a container's spec, given as `layers`, as `layer_list` or as positional arguments."""
    given = [kwargs[name] for name in ("layers", "layer_list") if name in kwargs] + ([args] if args else [])
    if len(given) != 1 or not isinstance(given[0], (list, tuple)) or len(kwargs) > 1:
        raise SpecError(f"layers: one list of layers, not {_shown(kwargs or args)}")
    return as_sequence(given[0])


def as_sequence(layers: Any) -> list[Any]:
    """Layers given one by one, or as one list."""
    return list(layers[0]) if len(layers) == 1 and isinstance(layers[0], (list, tuple)) else list(layers)


def _trial(cls: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Construct the module on the meta device. ValueError if it has more than ELEMENTS parameters."""
    parameters = signature(cls).parameters
    if "device" not in parameters and not issubclass(cls, nn.RNNBase):
        return cls(*args, **kwargs)
    with tg.device("meta"):
        module = cls(*args, **{**kwargs, "device": "meta"})
    elements = sum(p.numel() for p in module.parameters() if not is_lazy(p))
    if elements > ELEMENTS:
        raise ValueError(f"it has {elements} parameters, and a spec may ask for {ELEMENTS}")
    return module


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:100]} … {text[-80:]}"


def _shown(value: Any) -> str:
    """Return a value's text in messages; the type for a large or nested value."""
    if isinstance(value, (str, int, float, type(None))):
        return (_short(repr(value)) if not isinstance(value, int) or abs(value) < 10**50
                else "a number of more than 50 digits")
    return (f"a {type(value).__name__}" if isinstance(value, Mapping) or not isinstance(value, (list, tuple))
            else f"a {type(value).__name__} of {len(value)}")


# ── as text ───────────────────────────────────────────────────────────────────────────────────
def _tagged(value: Any) -> Any:
    """Return the spec with tuples written `{"tuple": […]}`, because JSON and YAML have lists only."""
    if isinstance(value, dict):
        return {key: _tagged(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_tagged(part) for part in value]
        return {"tuple": parts} if isinstance(value, tuple) else parts
    return value


def to_json(layer: Any, indent: int | None = None) -> str:
    """The spec of a layer as JSON.

    >>> from tensorgrad import layers
    >>> text = layers.to_json(layers.Conv2d(8, (3, 5)))
    >>> text
    '{"type": "Conv2d", "null": [8, {"tuple": [3, 5]}]}'
    >>> layers.from_json(text)
    Conv2d(8, (3, 5))
    """
    return json.dumps(_tagged(described(layer)), indent=indent)


def from_json(text: str | bytes) -> Any:
    """The layer that a JSON text describes. SpecError (a ValueError) if it describes none."""
    try:
        spec = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise SpecError(f"spec: this is not JSON: {_short(str(error))}") from error
    return build(spec)


def to_yaml(layer: Any) -> str:
    """The spec of a layer as YAML; needs PyYAML (the extra `yaml`)."""
    return _yaml().safe_dump(_tagged(described(layer)), sort_keys=False)


def from_yaml(text: str | bytes) -> Any:
    """The layer that a YAML text describes; needs PyYAML (the extra `yaml`).

    SpecError (a ValueError) if it describes none.
    """
    yaml = _yaml()
    try:
        spec = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise SpecError(f"spec: this is not YAML: {_short(str(error))}") from error
    return build(spec)


def _yaml() -> ModuleType:
    try:
        import yaml
    except ImportError:
        raise ImportError(f"specs as YAML need PyYAML: {install('yaml')}") from None
    return yaml
