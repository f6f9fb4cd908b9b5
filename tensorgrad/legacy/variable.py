"""Variables and modules of the first PyTorch: volatile inputs, `creator`, `retain_variables`, hooks that have names.

>>> import tensorgrad as torch
>>> from tensorgrad.legacy import Variable
>>> x = Variable(torch.ones(2), requires_grad=True)
>>> y = (x * 3).sum()
>>> y.backward(retain_variables=True)
>>> y.backward()
>>> x.grad, y.creator is y.grad_fn
(tensor([6., 6.]), True)
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import api as tg
from .. import nn

__all__ = ["Container", "Variable"]


class Variable(tg.Tensor):
    """A tensor with a history, as it was spelled in 2016: `Variable(data, requires_grad=False, volatile=False)`.

    Values computed from a volatile Variable are volatile, too, and keep no history; today `torch.no_grad()` does that.
    """

    volatile = False

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        if not isinstance(data, tg.Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if requires_grad and volatile:
            raise ValueError("Variable can't be volatile and require_grad at the same time!")
        made = data.detach().as_subclass(cls).requires_grad_(requires_grad)
        if volatile:
            made.volatile = True
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._named: dict[str, Any] = {}

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        volatile = any(a.volatile for a in _variables((args, kwargs or {})))
        with tg.set_grad_enabled(tg.is_grad_enabled() and not volatile):
            out = super().__torch_function__(func, types, args, kwargs or {})
        if volatile:
            for made in _variables(out):
                made.volatile = True
        return out

    @property
    def creator(self) -> Any:
        """The step that computed it: today's `grad_fn`."""
        return self.grad_fn

    def backward(self, gradient: Any = None, retain_variables: bool = False, **options: Any) -> None:
        """Today's `backward`, with `retain_graph` under its old name. Errors: RuntimeError for a volatile Variable."""
        if self.volatile:
            raise RuntimeError("calling backward on a volatile variable")
        super().backward(gradient, retain_graph=options.pop("retain_graph", None) or retain_variables, **options)

    def register_hook(self, name: Any, hook: Callable[[Any], Any] | None = None) -> Any:
        """Call `hook(gradient)` in each backward; with a name, `remove_hook(name)` undoes it."""
        if hook is None:
            return super().register_hook(name)
        _taken(self._hooks_by_name(), name, super().register_hook(hook))
        return None

    def remove_hook(self, name: str) -> None:
        """Remove a named hook."""
        _removed(self._hooks_by_name(), name)

    def _hooks_by_name(self) -> dict[str, Any]:
        return vars(self).setdefault("_named", {})  # type: ignore[no-any-return]

    def share(self) -> Any:
        """Move the tensor to shared memory: today's `share_memory_()`."""
        return self.share_memory_()


def _variables(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [v for item in value for v in _variables(item)]
    if isinstance(value, dict):
        return _variables(list(value.values()))
    return [value] if type(value) is Variable else []


def _taken(hooks: dict[str, Any], name: str, handle: Any) -> None:
    if name in hooks:
        handle.remove()
        raise RuntimeError(f"there is a hook named {name!r} already")
    hooks[name] = handle


def _removed(hooks: dict[str, Any], name: str) -> None:
    if name not in hooks:
        raise RuntimeError(f"there is no hook named {name!r}: {', '.join(hooks) or 'there are none'}")
    hooks.pop(name).remove()


class Container(nn.Module):
    """A module whose keyword arguments are modules, with hooks that have names, as the first PyTorch had it.

    Today any `nn.Module` can have children.

    >>> from tensorgrad import legacy, nn
    >>> net = legacy.Container(hidden=nn.Linear(2, 3), out=nn.Linear(3, 1))
    >>> net.hidden, len(list(net.parameters()))
    (Linear(in_features=2, out_features=3, bias=True), 4)
    """

    def __init__(self, **modules: Any) -> None:
        super().__init__()
        self._named_hooks: dict[str, Any] = {}
        for name, module in modules.items():
            self.add_module(name, module)

    def register_forward_hook(self, name: Any, hook: Any = None, **options: Any) -> Any:
        """Call `hook(module, input, output)` after each forward; with a name, `remove_forward_hook(name)` undoes it."""
        if hook is None:
            return super().register_forward_hook(name, **options)
        return _taken(self._named_hooks, f"forward {name}", super().register_forward_hook(hook, **options))

    def register_backward_hook(self, name: Any, hook: Any = None) -> Any:
        """Call `hook(module, grad_input, grad_output)` in each backward; with a name, `remove_backward_hook(name)`
        undoes it.
        """
        if hook is None:
            return super().register_full_backward_hook(name)
        return _taken(self._named_hooks, f"backward {name}", super().register_full_backward_hook(hook))

    def remove_forward_hook(self, name: str) -> None:
        """Remove a named hook."""
        _removed(self._named_hooks, f"forward {name}")

    def remove_backward_hook(self, name: str) -> None:
        """Remove a named hook."""
        _removed(self._named_hooks, f"backward {name}")
