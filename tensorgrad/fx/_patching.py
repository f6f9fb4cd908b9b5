"""Wrap functions in the namespaces of a program while it is traced: calls of them with proxies become nodes.

A program asks for it by `wrap`; a tracer by its `autowrap_modules` and `autowrap_functions`. The namespaces are the
program's own, and have their functions back when the trace ends.
"""
from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ..graph.nesting import leaves
from .proxy import Proxy

ABSENT: Any = object()
wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}       # (id of a namespace, name) → the namespace
wrapped_methods: list[tuple[type, str]] = []


def proxy_among(*values: Any) -> Proxy | None:
    """Return the last proxy in nested values; None if there is none."""
    found = None
    for leaf in leaves(values):
        if isinstance(leaf, Proxy):
            found = leaf
    return found


def wrapped_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that becomes a node if it is called with a proxy."""
    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = proxy_among(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result
    return wrapped


def wrapped_method(kind: type, name: str) -> Callable[..., Any]:
    """Return a method that becomes a node if it is called with a proxy."""
    method = getattr(kind, name)

    @wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = proxy_among(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)
    return wrapped


class Patcher:
    """Puts functions into namespaces and classes, until the end of its `with` block."""

    def __init__(self) -> None:
        self.patches_made: list[tuple[Any, str, Any, Any]] = []         # (namespace or class, name, before, new)
        self.visited: set[int] = set()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Callable[..., Any],
              deduplicate: bool = True) -> None:
        """Put a function into a namespace; once only, if `deduplicate`."""
        before = frame_dict.get(name, ABSENT)
        if before is ABSENT and not hasattr(builtins, name):
            raise KeyError(name)
        if not getattr(before, "__fx_already_patched", False):
            self._put(frame_dict, name, before, new_fn, deduplicate)

    def patch_method(self, cls: type, name: str, new_fn: Callable[..., Any], deduplicate: bool = True) -> None:
        """Put a method on a class; once only, if `deduplicate`."""
        if not getattr(getattr(cls, name), "__fx_already_patched", False):
            self._put(cls, name, cls.__dict__.get(name, ABSENT), new_fn, deduplicate)

    def _put(self, owner: Any, name: str, before: Any, new: Any, deduplicate: bool) -> None:
        new.__fx_already_patched = deduplicate
        self.patches_made.append((owner, name, before, new))
        assign(owner, name, new)

    def visit_once(self, thing: Any) -> bool:
        """Return True at the first call with this object."""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def autowrap(self, namespace: dict[str, Any], ids: set[int]) -> None:
        """Wrap the functions of these ids that a namespace has."""
        if self.visit_once(namespace):
            for name, value in list(namespace.items()):
                if not name.startswith("_") and callable(value) and id(value) in ids:
                    self.patch(namespace, name, wrapped_function(value))

    def wrap_registered(self) -> None:
        """Wrap the functions and methods that programs registered."""
        for (_, name), namespace in list(wrapped_functions.items()):
            function = namespace[name] if name in namespace or not hasattr(builtins, name) else getattr(builtins, name)
            self.patch(namespace, name, wrapped_function(function))
        for kind, name in wrapped_methods:
            self.patch_method(kind, name, wrapped_method(kind, name))

    def revert_all_patches(self) -> list[Any]:
        """Put back what was there before."""
        for owner, name, before, _ in reversed(self.patches_made):
            assign(owner, name, before)
        return self.patches_made

    def reapply_all_patches(self) -> list[Any]:
        """Undo `revert_all_patches`."""
        for owner, name, _, new in self.patches_made:
            assign(owner, name, new)
        return self.patches_made

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *exception: object) -> None:
        self.revert_all_patches()
        self.patches_made.clear()
        self.visited.clear()


def assign(owner: Any, name: str, value: Any) -> None:
    """Set, or delete if it was absent, an item of a namespace or an attribute of a class."""
    if isinstance(owner, dict):
        if value is ABSENT:
            del owner[name]
        else:
            owner[name] = value
    elif value is ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


patchers: list[Patcher] = []            # of the traces that run, the innermost last


@contextmanager
def new_patcher() -> Iterator[Patcher]:
    """Return the patcher of a trace, which undoes its patches when the block ends."""
    with Patcher() as patcher:
        patchers.append(patcher)
        try:
            yield patcher
        finally:
            patchers.pop()


@contextmanager
def all_reverted() -> Iterator[None]:
    """Undo the patches of the innermost trace until the block ends."""
    if not patchers:
        yield
        return
    patcher = patchers[-1]
    patcher.revert_all_patches()
    try:
        yield
    finally:
        patcher.reapply_all_patches()
