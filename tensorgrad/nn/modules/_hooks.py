"""Hooks of modules: their tables, and how a call runs them.

Hooks live in ordered tables, one per kind, on every module and (for hooks on all modules) in this file.
A module without hooks skips this file: see `Module.__call__`.
"""
from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..._tensor import ABOVE
from ...core.node import RemovableHandle
from ._backward_hooks import BackwardHook, watch_output_node

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from .module import Module

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

MODULE_TABLES = (
    "_backward_pre_hooks", "_backward_hooks",
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")

_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_is_full_backward_hook = None               # the kind of backward hooks in use; None: neither yet


def shared() -> Any:
    """Return the module with the tables of hooks on all modules, which programs may replace."""
    return sys.modules[f"{__package__}.module"]


class BoundHook:
    """A hook with a weak reference to the module that is its first argument."""

    def __init__(self, hook: Any, module: Module | None = None) -> None:
        self.hook = hook
        self.module = None if module is None else weakref.ref(module)
        functools.update_wrapper(self, hook, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is None:
            return self.hook(*args, **kwargs)
        if (module := self.module()) is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __reduce__(self) -> Any:
        if self.module is None:
            return BoundHook, (self.hook,)
        return BoundHook.revive, (self.hook, self.module())

    @classmethod
    def revive(cls, hook: Any, module: Module) -> Any:
        if module is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        return cls(hook, module)


def add_hook(hook: Any, table: Any, *marks: Any, prepend: bool = False) -> Any:
    """Put a hook into a table, its id into the tables `marks`, and return a handle that removes them."""
    handle = RemovableHandle(table, extra_dict=list(marks))
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def run_registration_hooks(hooks: Any, module: Module, name: str, value: Tensor) -> Any:
    """Return the value to register; each hook may replace it."""
    for hook in tuple(hooks.values()):
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


# ── hooks on all modules ──────────────────────────────────────────────────────────────────────
def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer) -> None or buffer` whenever any module registers a buffer."""
    return add_hook(hook, _global_buffer_registration_hooks)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule) -> None or submodule` whenever any module registers a submodule."""
    return add_hook(hook, _global_module_registration_hooks)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter) -> None or parameter` whenever any module registers a parameter."""
    return add_hook(hook, _global_parameter_registration_hooks)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args) -> None or args` before the forward of every module."""
    return add_hook(hook, shared()._global_forward_pre_hooks)


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:
    """Call `hook(module, args, output) -> None or output` after the forward of every module."""
    tables = shared()
    marks = [tables._global_forward_hooks_with_kwargs] * with_kwargs
    marks += [tables._global_forward_hooks_always_called] * always_call
    return add_hook(hook, tables._global_forward_hooks, *marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output) -> None or grad_output` before the backward of every module."""
    return add_hook(hook, shared()._global_backward_pre_hooks)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` at the last node of every module (deprecated kind of hook)."""
    return _register_global_backward_hook(hook, full=False)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output) -> None or grad_input` in the backward of every module."""
    return _register_global_backward_hook(hook, full=True)


def _register_global_backward_hook(hook, full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is not None and _global_is_full_backward_hook is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them.")
    _global_is_full_backward_hook = full
    return add_hook(hook, shared()._global_backward_hooks)


# ── hooks on one module ───────────────────────────────────────────────────────────────────────
class HookMixin:
    """The part of `Module` that registers hooks. Each method returns a handle with a `remove()`."""

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Call `hook(module, args) -> None or args` before each forward.

        With `with_kwargs`, the hook is `hook(module, args, kwargs) -> None or (args, kwargs)`.

        >>> import tensorgrad as torch
        >>> double = torch.nn.Identity()
        >>> handle = double.register_forward_pre_hook(lambda module, args: args[0] * 2)
        >>> double(torch.ones(1))
        tensor([2.])
        """
        self._hooked = True
        marks = [self._forward_pre_hooks_with_kwargs] * with_kwargs
        return add_hook(hook, self._forward_pre_hooks, *marks, prepend=prepend)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call `hook(module, args, output) -> None or output` after each forward.

        With `with_kwargs`, the hook is `hook(module, args, kwargs, output)`; with `always_call` it runs even if
        forward raises.
        """
        self._hooked = True
        marks = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return add_hook(hook, self._forward_hooks, *marks, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output) -> None or grad_output` before each backward."""
        self._hooked = True
        return add_hook(hook, self._backward_pre_hooks, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output) -> None or grad_input` in each backward."""
        return self._register_backward_hook(hook, full=True, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like `register_full_backward_hook`, but it sees the module's last node only (deprecated)."""
        return self._register_backward_hook(hook, full=False)

    def _register_backward_hook(self, hook, full, prepend=False):
        if self._is_full_backward_hook is not None and self._is_full_backward_hook is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them.")
        self._is_full_backward_hook = full
        self._hooked = True
        return add_hook(hook, self._backward_hooks, prepend=prepend)

    def _backward_hooks_of_kind(self, full):
        """Return the hooks on all modules, followed by this one's."""
        everywhere = shared()._global_backward_hooks.values() if _global_is_full_backward_hook is full else ()
        here = self._backward_hooks.values() if self._is_full_backward_hook is full else ()
        return [*everywhere, *here]


# ── a call with hooks ─────────────────────────────────────────────────────────────────────────
def call_with_hooks(module: Module, args: Any, kwargs: Any) -> Any:
    """Call `module.forward(*args, **kwargs)` with the module's hooks, or its form from `compile()`."""
    compiled = module.__dict__.get("_compiled_call_impl")
    return hooked(module, *args, **kwargs) if compiled is None else compiled(args, kwargs)


def compiler(module: Module, args: Any, kwargs: Any) -> Any:
    """Return the function of (arguments, keyword arguments) that calls a module compiled."""
    return ABOVE["compiled_call"](functools.partial(hooked, module), *args, **kwargs)  # type: ignore[no-any-return]


def hooked(module: Module, /, *args: Any, **kwargs: Any) -> Any:
    """Call `module.forward(*args, **kwargs)` and the module's hooks."""
    tables = shared()
    if not (module._backward_hooks or module._backward_pre_hooks or module._forward_hooks or module._forward_pre_hooks
            or tables._global_backward_hooks or tables._global_backward_pre_hooks
            or tables._global_forward_hooks or tables._global_forward_pre_hooks):
        return module.forward(*args, **kwargs)      # all hooks have been removed
    call = HookedCall(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.run_what_always_runs()
        raise


class HookedCall:
    """A call of a module with hooks: its arguments and result so far, and the hooks that have run."""

    def __init__(self, module: Module, args: Any, kwargs: Any) -> None:
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result = None
        self.have_run = set()

    def run(self) -> Any:
        module = self.module
        self.run_pre_hooks()
        watcher = self.watch_gradients()
        self.result = module.forward(*self.args, **self.kwargs)
        self.run_forward_hooks()
        if watcher is not None:
            self.result = watcher.setup_output_hook(self.result)
        if last_node_hooks := module._backward_hooks_of_kind(full=False):
            hooks = [BoundHook(hook, module) for hook in last_node_hooks]
            watch_output_node(hooks, self.args, self.result)
        return self.result

    def run_pre_hooks(self) -> None:
        module = self.module
        for key, hook in (*shared()._global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                answer = hook(module, self.args, self.kwargs)
                if answer is None:
                    continue
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {answer}.")
                self.args, self.kwargs = answer
            elif (answer := hook(module, self.args)) is not None:
                self.args = answer if isinstance(answer, tuple) else (answer,)

    def watch_gradients(self) -> Any:
        """Pass the inputs through a gate, if there are full backward hooks."""
        hooks = self.module._backward_hooks_of_kind(full=True)
        pre_hooks = [*shared()._global_backward_pre_hooks.values(), *self.module._backward_pre_hooks.values()]
        if not (hooks or pre_hooks):
            return None
        watcher = BackwardHook(self.module, hooks, pre_hooks)
        self.args = watcher.setup_input_hook(self.args)
        return watcher

    def run_forward_hooks(self) -> None:
        for key, hook in (*shared()._global_forward_hooks.items(), *self.module._forward_hooks.items()):
            self.have_run.add(key)
            self.run_forward_hook(key, hook)

    def run_forward_hook(self, key: Any, hook: Any) -> None:
        module = self.module
        if key in module._forward_hooks_with_kwargs or key in shared()._global_forward_hooks_with_kwargs:
            answer = hook(module, self.args, self.kwargs, self.result)
        else:
            answer = hook(module, self.args, self.result)
        if answer is not None:
            self.result = answer

    def run_what_always_runs(self) -> None:
        """Run the hooks registered with `always_call` after an exception, unless they ran before it."""
        module = self.module
        everywhere = ((key, hook, "global module", shared()._global_forward_hooks_always_called)
                      for key, hook in tuple(shared()._global_forward_hooks.items()))
        here = ((key, hook, "module", module._forward_hooks_always_called)
                for key, hook in tuple(module._forward_hooks.items()))
        for key, hook, kind, always_called in chain(everywhere, here):
            if key not in always_called or key in self.have_run:
                continue
            try:
                self.run_forward_hook(key, hook)
            except Exception as error:
                warnings.warn(
                    f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}", stacklevel=4)
