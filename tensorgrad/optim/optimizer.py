"""The base class of all optimizers: parameter groups, state, hooks and checkpoints."""
from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from .. import api as tg
from ..core.mode import timed
from ..core.node import HookDict, RemovableHandle

_global_hooks = {'step_pre': HookDict(), 'step_post': HookDict()}

# attributes of an optimizer; wrappers of other packages set the first two by themselves
HOOKS = tuple(f'_optimizer_{kind}_hooks' for kind in ('step_pre', 'step_post', 'state_dict_pre', 'state_dict_post',
                                                      'load_state_dict_pre', 'load_state_dict_post'))


class _Required:
    def __repr__(self) -> str:
        return '<required parameter>'


required = _Required()  # the default of an option that every parameter group must give


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer.

    A pair that it returns replaces ``args, kwargs``.
    """
    return _global_hooks['step_pre'].add(hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return _global_hooks['step_post'].add(hook)


def _with_hooks(step: Callable) -> Callable:
    """Wrap the step function of a class so that it calls the hooks, and is an entry of profiles."""
    @functools.wraps(step)
    def hooked_step(*args, **kwargs):
        self = args[0]
        if type(self).step is not hooked_step:  # called as super().step(): the outer step calls the hooks
            return step(*args, **kwargs)
        with timed('Optimizer.step#{}.step', self):
            for hook in chain(_global_hooks['step_pre'].values(), self._optimizer_step_pre_hooks.values()):
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(f'{step} must return None or a tuple of (new_args, new_kwargs), '
                                           f'but got {changed}.')
                    args, kwargs = changed
            result = step(*args, **kwargs)
            for hook in chain(self._optimizer_step_post_hooks.values(), _global_hooks['step_post'].values()):
                hook(self, args, kwargs)
        return result

    hooked_step.hooked = True
    return hooked_step


class Optimizer:
    """Base class of all optimizers (PyTorch: ``torch.optim.Optimizer``).

    ``params`` is an iterable of tensors, of ``(name, tensor)`` pairs or of dicts, one for each parameter group, with
    the tensors under ``'params'`` and options of this group under their names. ``defaults`` holds the options of groups
    that do not give their own.

    A subclass defines ``step(closure=None)`` and keeps the state of a tensor in ``self.state[tensor]``.

    Raises TypeError for a single tensor or for things that are no tensors, ValueError for an empty list, for tensors
    that are no leaves of the graph and for tensors that are in two groups.

    >>> import tensorgrad as torch
    >>> class SignDescent(torch.optim.Optimizer):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {'lr': lr})
    ...
    ...     @torch.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group['params']:
    ...                 p.sub_(p.grad.sign(), alpha=group['lr'])
    >>> weight = torch.tensor([1.0, -1.0], requires_grad=True)
    >>> optimizer = SignDescent([weight], lr=0.5)
    >>> weight.square().sum().backward()
    >>> optimizer.step()
    >>> weight.tolist()
    [0.5, -0.5]
    """

    def __init__(self, params: Iterable, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._prepare_hooks()
        if isinstance(params, tg.Tensor):
            raise TypeError('params argument given to the optimizer should be an iterable of Tensors or dicts, '
                            f'but got {tg.typename(params)}')
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError('optimizer got an empty parameter list')
        if not isinstance(groups[0], dict):
            groups = [{'params': groups}]
        for group in groups:
            self.add_param_group(group)

    def _prepare_hooks(self) -> None:
        for name in HOOKS:
            setattr(self, name, HookDict())
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        """Let the class's `step` call the hooks, and be an entry of profiles."""
        cls = type(self)
        if not hasattr(cls.step, 'hooked'):
            cls.step = _with_hooks(cls.step)

    def step(self, closure: Callable | None = None) -> float | None:
        """Update the parameters once. ``closure`` computes the loss and the gradients anew; its result is returned."""
        raise NotImplementedError(f'{type(self).__name__} does not define step')

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or with ``set_to_none=False`` fill them with zeros.

        >>> import tensorgrad as torch
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = torch.optim.SGD([weight])
        >>> weight.sum().backward()
        >>> optimizer.zero_grad(set_to_none=False)
        >>> weight.grad.tolist()
        [0.0, 0.0]
        """
        with timed('Optimizer.zero_grad#{}.zero_grad', self):
            for group in self.param_groups:
                for param in group['params']:
                    grad = param.grad
                    if grad is None:
                        continue
                    if set_to_none:
                        param.grad = None
                        continue
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    # parameter groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dict with tensors under ``'params'`` and options; missing options are taken from ``defaults``."""
        if not isinstance(param_group, dict):
            raise TypeError(f'param_group must be a dict, but got {type(param_group)}')
        self._collect_params(param_group)
        for param in param_group['params']:
            self._check_param(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_unique(param_group)
        self.param_groups.append(param_group)

    @staticmethod
    def _collect_params(group: dict[str, Any]) -> None:
        """Make a list of ``group['params']``, and one of their names if they come as ``(name, tensor)``."""
        params = group['params']
        if isinstance(params, set):
            raise TypeError('optimizer parameters need to be organized in ordered collections, but '
                            'the ordering of tensors in sets will change between runs. Please use a list instead.')
        params = [params] if isinstance(params, tg.Tensor) else list(params)
        names = [param[0] for param in params if isinstance(param, tuple)]
        if names and len(names) < len(params):
            raise ValueError('all optimizer params should be with/without names. Some param names are missing')
        group['params'] = [param[1] for param in params] if names else params
        if names:
            group['param_names'] = names

    def _check_param(self, param) -> None:
        if not isinstance(param, tg.Tensor):
            raise TypeError(f'optimizer can only optimize Tensors, but one of the params is {tg.typename(param)}')
        if not self.defaults.get('differentiable') and not (param.is_leaf or param.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_unique(self, group: dict[str, Any]) -> None:
        params = set(group['params'])
        if len(params) < len(group['params']):
            warnings.warn('optimizer contains a parameter group with duplicate parameters; in future, this will cause '
                          'an error; see github.com/pytorch/pytorch/issues/40967 for more information', stacklevel=4)
        for other in self.param_groups:
            if ('param_names' in group) != ('param_names' in other):
                kind = 'with' if 'param_names' in group else 'without'
                raise ValueError('all optimizer param groups should be with/without names. '
                                 f'cannot add param group {kind} names to the optimizer')
        if not all(params.isdisjoint(other['params']) for other in self.param_groups):
            raise ValueError('some parameters appear in more than one parameter group')

    # checkpoints

    def state_dict(self) -> dict[str, Any]:
        """The state and the options, with numbers instead of the tensors that are optimized.

        >>> import tensorgrad as torch
        >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.5)
        >>> optimizer.state_dict()['param_groups'][0]['params']
        [0]
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        everything = chain.from_iterable(group['params'] for group in self.param_groups)
        numbers: dict[int, int] = {}
        for number, param in enumerate(everything):
            numbers.setdefault(id(param), number)
        groups = [{**{key: value for key, value in group.items() if key != 'params'},
                   'params': [numbers[id(param)] for param in group['params']]} for group in self.param_groups]
        state = {numbers[id(key)] if isinstance(key, tg.Tensor) else key: value for key, value in self.state.items()}
        state_dict = {'state': state, 'param_groups': groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the ``state_dict`` of an optimizer with groups of the same sizes.

        Tensors are copied to the device and the floating point type of their parameter.
        Raises ValueError if the groups do not match.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups = _copied(state_dict['param_groups'], {})
        self._check_groups(groups)
        state: defaultdict[Any, Any] = defaultdict(dict)
        owners = {number: (param, saved) for mine, saved in zip(self.param_groups, groups, strict=True)
                  for number, param in zip(saved['params'], mine['params'], strict=True)}
        for key, value in state_dict['state'].items():
            if key in owners:
                param, group = owners[key]
                state[param] = _adopt(value, param, group)
            else:
                state[key] = value
        for mine, saved in zip(self.param_groups, groups, strict=True):
            saved['params'] = mine['params']
            if 'param_names' in mine:
                saved.setdefault('param_names', mine['param_names'])
        self.__setstate__({'state': state, 'param_groups': groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _check_groups(self, saved: list[dict[str, Any]]) -> None:
        if len(saved) != len(self.param_groups):
            raise ValueError('loaded state dict has a different number of parameter groups')
        if any(len(mine['params']) != len(other['params'])
               for mine, other in zip(self.param_groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of "
                             "optimizer's group")

    def __getstate__(self) -> dict[str, Any]:
        return {'defaults': self.defaults, 'state': self.state, 'param_groups': self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if HOOKS[0] not in self.__dict__:
            self._prepare_hooks()

    # hooks

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; a pair that it returns replaces both."""
        return HookDict.add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return HookDict.add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict``; ``prepend``: before the other hooks."""
        return self._optimizer_state_dict_pre_hooks.add(hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; a dict that it returns replaces the result."""
        return self._optimizer_state_dict_post_hooks.add(hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; a dict that it returns is loaded instead."""
        return self._optimizer_load_state_dict_pre_hooks.add(hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after ``load_state_dict``."""
        return self._optimizer_load_state_dict_post_hooks.add(hook, prepend)

    def __repr__(self) -> str:
        groups = ''.join(
            f'\nParameter Group {number}\n' + ''.join(f'    {key}: {group[key]}\n' for key in sorted(group)
                                                      if key != 'params')
            for number, group in enumerate(self.param_groups))
        return f'{type(self).__name__} ({groups})'


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    """Return a deep copy that visits each shared object once.

    ``copy.deepcopy`` looks at a tuple of numbers once for each way to it, and to the middle of 60 pairs of one pair, as
    a file may hold, lead 2 ** 60 ways.
    """
    if id(value) in copies:
        return copies[id(value)]
    if type(value) in (dict, OrderedDict):
        copy = copies[id(value)] = type(value)()
        copy.update((key, _copied(item, copies)) for key, item in value.items())
    elif type(value) is list:
        copy = copies[id(value)] = []
        copy.extend(_copied(item, copies) for item in value)
    else:
        copy = copies[id(value)] = (tuple([_copied(item, copies) for item in value]) if type(value) is tuple
                                    else deepcopy(value))
    return copy


def _adopt(value, param, group: dict[str, Any], key=None, made: dict[int, Any] | None = None):
    """Return a copy of loaded state whose tensors have the device of ``param`` and, if it is real, its dtype.

    Step counters are not moved unless a kernel reads them on the parameter's device. A container that occurs several
    times is copied once: lists of one list twice, at many levels, would take forever. ``made`` has the copies.
    """
    if isinstance(value, tg.Tensor):
        if key == 'step':
            on_device = group.get('capturable') or group.get('fused')
            return value.to(dtype=tg.float32, device=param.device) if on_device else value
        return value.to(dtype=param.dtype if param.is_floating_point() else value.dtype, device=param.device)
    if hasattr(value, '__array__'):  # an array of another library
        return _adopt(tg.as_tensor(value), param, group, key)
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        return value
    made = {} if made is None else made
    if id(value) not in made:
        if isinstance(value, dict):
            copied: Any = {name: _adopt(part, param, group, name, made) for name, part in value.items()}
        else:
            copied = type(value)(_adopt(part, param, group, None, made) for part in value)
        made[id(value)] = value, copied             # the value is kept, so that its number stays its own
    return made[id(value)][1]
