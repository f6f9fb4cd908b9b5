"""Update rules: optimizers that change each parameter by its own gradient and state alone.

The file also has the operations that rules consist of. They work in place, on plain numbers. To differentiate a step
itself (``differentiable=True``), they preserve tensors that the tape needs, and accept hyperparameters that require
gradients.
"""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .. import api as tg
from ..core.optimizer_kernels import at_once  # noqa: F401 - for the rules
from .optimizer import Optimizer

# Values of options that are missing in checkpoints older than the option.
FORMER_OPTIONS = {
    'foreach': None, 'fused': None, 'maximize': False, 'differentiable': False, 'capturable': False,
    'nesterov': False, 'amsgrad': False, 'decoupled_weight_decay': False, 'momentum': 0, 'centered': False}

FUSED = ['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone']  # devices of PyTorch with `fused` kernels
CAPTURING = 'cuda', 'xpu', 'hpu', 'privateuseone', 'xla'  # devices of PyTorch whose graphs `capturable` is for

COUNTERS = ('step', 'mu_product', 'eta', 'mu')  # scalars of the state that old checkpoints hold as numbers


class UpdateRule(Optimizer):
    """An optimizer that is given by what happens to a single parameter.

    A subclass defines ``new_state(param, options)``, the state of a parameter before its first step, and
    ``update(param, grad, state, options)``, the step itself. ``options`` has the options of the parameter group as
    attributes. Complex parameters are presented as pairs of real numbers.
    """

    takes_complex = False  # True: the rule is linear, so it applies to complex numbers directly
    captured = 'params and state_steps'  # what `capturable` keeps on the GPU
    _doubtful: Any = ()  # parameters whose loaded state may have another shape

    def step(self, closure: Callable | None = None):
        with tg.set_grad_enabled(self.defaults.get('differentiable', False)):
            loss = evaluate(closure)
            if self._doubtful:
                self._rehearse()
            for group in self.param_groups:
                options = read_options(group)
                self.update_all([self._update_of(param, -grad if options.maximize else grad, options)
                                 for param in group['params'] if (grad := param.grad) is not None], options)
        return loss

    def _update_of(self, param, grad, options) -> tuple[Any, Any, dict[str, Any]]:
        """Return the parameter, its gradient and its state as `update` takes them."""
        if grad._storage.dense is not None:
            self.check_sparse(options)
        if options.capturable and not param.is_cuda:
            raise AssertionError(f'If capturable=True, {self.captured} must be on supported devices: '
                                 f'{list(CAPTURING)}.')
        state = self.state.get(param)
        if not state:
            state = self.new_state(param, options)
            if state:
                self.state[param] = state
        if options.differentiable:
            state.update({key: value.clone() for key, value in state.items() if isinstance(value, tg.Tensor)})
        if param.dtype.is_complex and not self.takes_complex:
            param, grad = tg.view_as_real(param), tg.view_as_real(grad)
            state = {key: tg.view_as_real(value) if value.is_complex() else value for key, value in state.items()}
        return param, grad, state

    def check_sparse(self, options) -> None:
        """Raise RuntimeError for a sparse gradient, unless the rule has a form for it."""
        raise RuntimeError(f'{type(self).__name__} does not support sparse gradients')

    def _rehearse(self) -> None:
        """Step on copies of parameters whose loaded state may not fit, so that an error leaves parameters and states
        unchanged."""
        for group in self.param_groups:
            options = read_options(group)
            for param in group['params']:
                if param in self._doubtful and (grad := param.grad) is not None:
                    copied, grad, state = self._update_of(param, -grad if options.maximize else grad, options)
                    copies = {key: value.clone() if isinstance(value, tg.Tensor) else value
                              for key, value in state.items()}
                    self.update(copied.detach().clone(), grad, copies, options)
        self._doubtful = ()

    def update_all(self, updates: list[tuple[Any, Any, dict[str, Any]]], options) -> None:
        """Change all parameters of a group and their state in place: one by one, unless a rule has a kernel for many
        (`at_once`).
        """
        for param, grad, state in updates:
            self.update(param, grad, state, options)

    def new_state(self, param, options) -> dict[str, Any]:
        """Return the state of a parameter before its first step."""
        raise NotImplementedError(f'{type(self).__name__} does not define new_state')

    def update(self, param, grad, state: dict[str, Any], options) -> None:
        """Change ``param`` and ``state`` in place, by the formula."""
        raise NotImplementedError(f'{type(self).__name__} does not define update')

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in self.defaults:
                if name in FORMER_OPTIONS:
                    group.setdefault(name, FORMER_OPTIONS[name])
            for param in group['params']:
                own = self.state.get(param, {})
                for name in COUNTERS:
                    if isinstance(own.get(name), (int, float)):
                        own[name] = scalar(own[name])
        states = {param: own for param, own in self.state.items() if isinstance(param, tg.Tensor)}
        known = set().union(*states.values())
        self._doubtful = {param for param, own in states.items() if known != set(own) or not _fits(own, param)}


def _fits(state: Any, param: Any) -> bool:
    """Return True if the state of a parameter consists of tensors of its shape and counters."""
    return all(isinstance(value, tg.Tensor) and (value.numel() == 1 and not value.is_complex() if key in COUNTERS
                                                 else value.shape == param.shape)
               for key, value in state.items())


def evaluate(closure: Callable | None):
    """Call the closure with gradients enabled, and return the loss."""
    if closure is None:
        return None
    with tg.enable_grad():
        return closure()


def read_options(group: dict[str, Any]) -> SimpleNamespace:
    """Return the options of a group as attributes; tensors become numbers unless they require gradients."""
    return SimpleNamespace(**({'maximize': False, 'differentiable': False, 'capturable': False}
                              | {name: plain(value) for name, value in group.items()}))


def plain(value):
    """Return a tensor of one element as a number, unless the step is differentiated with respect to it."""
    if isinstance(value, tg.Tensor):
        return value.squeeze() if value.requires_grad and tg.is_grad_enabled() else value.item()
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value


# state

def scalar(value):
    """Return a counter for the state: a tensor, so that it is saved, loaded and moved with the other state."""
    number = value.item() if isinstance(value, tg.Tensor) else float(value)
    return tg.tensor(number, dtype=tg.float64 if tg.get_default_dtype() == tg.float64 else tg.float32)


def count(state: dict[str, Any]) -> float:
    """Increment the counter, and return the number of this step, from 1."""
    state['step'].add_(1)
    return state['step'].item()


# steps

def add_(x, y, scale) -> None:
    """x += scale · y"""
    if isinstance(scale, tg.Tensor):
        x.add_(y * scale)
    else:
        x.add_(y, alpha=scale)


def addcdiv_(x, a, b, scale) -> None:
    """x += scale · a / b"""
    if isinstance(scale, tg.Tensor):
        x.add_(a / b * scale)
    else:
        x.addcdiv_(a, b, value=scale)


def scale_(x, factor) -> None:
    """x *= factor"""
    if isinstance(factor, tg.Tensor):
        x.copy_(x.clone() * factor)
    else:
        x.mul_(factor)


def decayed(grad, param, weight_decay):
    """g + λθ, the gradient of the loss plus λ/2 |θ|²."""
    if isinstance(weight_decay, tg.Tensor):
        return grad + param.clone() * weight_decay
    return grad.add(param, alpha=weight_decay) if weight_decay != 0 else grad


def average_square_(average, grad, beta) -> None:
    """v ← βv + (1 - β)g²"""
    if isinstance(beta, tg.Tensor):
        average.lerp_(grad * grad, 1 - beta)
    else:
        average.mul_(beta).addcmul_(grad, grad, value=1 - beta)


def maximum_(x, y) -> None:
    """x ← max(x, y)"""
    if tg.is_grad_enabled():  # the gradient of the maximum compares both
        x.copy_(tg.maximum(x.clone(), y))
    else:
        tg.maximum(x, y, out=x)


def root(x, eps):
    """√x + ε"""
    result = x.sqrt()
    return result + eps if tg.is_grad_enabled() else result.add_(eps)  # the gradient of √x reads √x


# arguments

def check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def check_rate(lr, message: str = 'Invalid learning rate: {}') -> None:
    """Raise ValueError unless a learning rate is a number or a tensor of one element, and not negative."""
    check(not isinstance(lr, tg.Tensor) or lr.numel() == 1, 'Tensor lr must be 1-element')
    check(bool(lr >= 0.0), message.format(lr))


def check_betas(betas) -> None:
    for index, beta in enumerate(betas[:2]):
        check(0.0 <= beta < 1.0, f'Invalid beta parameter at index {index}: {beta}')


def check_implementation(fused, foreach, differentiable, groups=()) -> None:
    """Raise RuntimeError if flags that select PyTorch's implementations contradict each other, or if there are tensors
    in the parameter groups without a fused kernel; the flags have no other effect."""
    if fused and differentiable:
        raise RuntimeError('`fused` does not support `differentiable`')
    if fused and foreach:
        raise RuntimeError('`fused` and `foreach` cannot be `True` together.')
    for param in [param for group in groups for param in group['params']] if fused else ():
        if not param.is_floating_point() or param.device.type not in FUSED:
            raise RuntimeError('`fused=True` requires all the params to be floating point Tensors of supported '
                               f'devices: {FUSED} but {param.dtype} and {param.device.type}')
