"""`Module`: an owner of parameters, buffers and other modules that can be called.

Parts of it are in other files: the tree of submodules (_tree), the state (_state), moving and casting (_convert), hooks
(_hooks). This file has registration of attributes, calling and printing.
"""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ... import api as tg
from ..._tensor.torch_function import CONTAINERS, NODES
from ...core.module_calls import ended
from ...storage.base import clock
from ..parameter import Buffer, Parameter
from . import _hooks, _tracing
from ._convert import ConvertMixin
from ._hooks import (
    HookMixin,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,  # noqa: F401  looked up here, where programs replace them
    _global_forward_hooks_with_kwargs,  # noqa: F401
    _global_forward_pre_hooks,
    call_with_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    run_registration_hooks,
)
from ._shortcut import leave_shortcut
from ._state import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401  other packages import it from here
from ._state import StateMixin, _IncompatibleKeys  # noqa: F401
from ._tree import TreeMixin

__all__ = [
    "Module",
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Tensor = tg.Tensor


def _forward_unimplemented(self, *input):
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(TreeMixin, StateMixin, ConvertMixin, HookMixin):
    """The base of all layers and models. See PyTorch's `torch.nn.Module`.

    Parameters, buffers and modules assigned as attributes are registered: the module finds them again to train, move,
    save, load and print them. A subclass calls `super().__init__()` first, and defines `forward`.

    >>> import tensorgrad as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.full((1,), 3.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(torch.ones(2)).tolist()
    [3.0, 3.0]
    """

    call_super_init = False
    _hooked = True                                  # until an instance's __init__ has set it
    _keeps_names = False                            # True for dictionaries: their names are data

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            self._reject(args, kwargs)
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_modules"] = {}
        own["_is_full_backward_hook"] = None
        own["_hooked"] = False
        for table in _hooks.MODULE_TABLES:
            own[table] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _reject(self, args, kwargs):
        name = type(self).__name__
        if kwargs:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if args:
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")

    # ── calling ───────────────────────────────────────────────────────────────────────────────
    forward = _forward_unimplemented

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (NODES and (kwargs or len(args) != 1 or type(args[0]) in CONTAINERS or _tracing.ACTIVE)
                and (answer := _tracing.joined(self, Module.__call__, args, kwargs)) is not NotImplemented):
            return answer
        start = next(clock)
        if (self._hooked or _global_forward_pre_hooks or _global_forward_hooks
                or _global_backward_hooks or _global_backward_pre_hooks):
            result = call_with_hooks(self, args, kwargs)
        else:
            result = self.forward(*args, **kwargs)
        ended(self, start, result)
        return result

    _compiled_call_impl = None      # type: Any  # `typing.get_type_hints` finds no annotation's names as torch.nn

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the module's calls in place, with the arguments of `torch.compile`.

        https://pytorch.org/docs → torch.nn.Module.compile

        >>> import tensorgrad as torch
        >>> double = torch.nn.Linear(2, 2, bias=False).requires_grad_(False)
        >>> double.compile()
        >>> double(torch.zeros(2))
        tensor([0., 0.])
        """
        self._compiled_call_impl = _hooks.compiler(self, args, kwargs)
        self._hooked = True                                     # calls go through `call_with_hooks`

    # ── registration ──────────────────────────────────────────────────────────────────────────
    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make a parameter (or None, to reserve the name) an attribute."""
        _check_initialized(self, "parameter")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(f"cannot assign '{tg.typename(param)}' object to parameter '{name}' "
                                "(torch.nn.Parameter or None required)")
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method.")
            param = run_registration_hooks(_hooks._global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make a tensor (or None) an attribute that moves with the module and, if `persistent`, is saved with it.

        >>> import tensorgrad as torch
        >>> module = torch.nn.Module()
        >>> module.register_buffer("mean", torch.zeros(1))
        >>> [name for name, buffer in module.named_buffers()]
        ['mean']
        """
        _check_initialized(self, "buffer")
        self._check_name("buffer", name, self._buffers)
        if not (tensor is None or isinstance(tensor, Tensor)):
            raise TypeError(f"cannot assign '{tg.typename(tensor)}' object to buffer '{name}' "
                            "(torch Tensor or None required)")
        self._buffers[name] = run_registration_hooks(_hooks._global_buffer_registration_hooks, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make a module (or None) a child."""
        if not (module is None or isinstance(module, Module)):
            raise TypeError(f"{tg.typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._set_child(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Make a module (or None) a child: an alias of `add_module`."""
        self.add_module(name, module)

    def _set_child(self, name, module):
        self._modules[name] = run_registration_hooks(_hooks._global_module_registration_hooks, self, name, module)

    def _check_name(self, kind, name, taken):
        """Raise unless the name is a string without dots that hides no other attribute."""
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {tg.typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in taken:
            raise KeyError(f"attribute '{name}' already exists")

    # ── attributes ────────────────────────────────────────────────────────────────────────────
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if table in own and name in own[table]:
                if _tracing.ACTIVE:
                    return _tracing.found(self, name, own[table][name])
                if type(self).__getattr__ is Module.__getattr__:
                    leave_shortcut(type(self), name, table)
                return own[table][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        is_tensor = isinstance(value, Tensor)
        if is_tensor and isinstance(value, Parameter):
            _check_initialized(self, "parameters")
            self._make_room(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            _only_none(name, value, "parameter", "torch.nn.Parameter or None expected")
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            _check_initialized(self, "module")
            self._make_room(name, "_parameters", "_buffers")
            self._set_child(name, value)
        elif name in own.get("_modules", ()):
            _only_none(name, value, "child module", "torch.nn.Module or None expected")
            self._set_child(name, None)
        elif name in own.get("_buffers", ()) or is_tensor and isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_buffer(self, name, value):
        if not (value is None or isinstance(value, Tensor)):
            _only_none(name, value, "buffer", "torch.nn.Buffer, torch.Tensor or None expected")
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if persistent:                              # a subclass's register_buffer may not take `persistent`
            self.register_buffer(name, value)
        else:
            self.register_buffer(name, value, persistent=False)

    def _make_room(self, name, *tables):
        """Remove the name from the instance and these tables, before another attribute takes it."""
        own = self.__dict__
        own.pop(name, None)
        for table in tables:
            own[table].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self) -> Any:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled_call_impl"}

    def __setstate__(self, state: Any) -> None:
        """Restore from a pickle; add tables that a pickle of an older version lacks."""
        self.__dict__.update(state)
        for table in _hooks.MODULE_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self):
        """Return a shallow copy with separate tables for buffers and children, and no parameters yet."""
        replica = self.__new__(type(self))
        replica.__dict__ = {**self.__dict__, "_parameters": {}, "_buffers": dict(self._buffers),
                            "_modules": dict(self._modules), "_is_replica": True}
        return replica

    # ── printing ──────────────────────────────────────────────────────────────────────────────
    def _get_name(self):
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of `repr`; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({extra})"
        lines += [f"({name}): {_addindent(repr(child), 2)}" for name, child in self._modules.items()]
        return in_parentheses(self._get_name(), lines)


def in_parentheses(name: str, lines: Any) -> Any:
    """`name(...)` with one line per item."""
    return name + "(" + "".join(f"\n  {line}" for line in lines) + ("\n" if lines else "") + ")"


def _addindent(text, spaces):
    """Indent all lines but the first; blank lines remain empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


def _check_initialized(module, what):
    if "_parameters" not in module.__dict__:
        raise AttributeError(f"cannot assign {what} before Module.__init__() call")


def _only_none(name, value, what, expected):
    """Raise TypeError unless the value is None, because the name is registered for another kind."""
    if value is not None:
        raise TypeError(f"cannot assign '{tg.typename(value)}' as {what} '{name}' ({expected})")
