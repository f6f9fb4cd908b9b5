"""Averaged stochastic gradient descent."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import UpdateRule, check, check_rate, count, decayed, scalar

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['ASGD']


class ASGD(UpdateRule):
    r"""Stochastic gradient descent with averaged iterates (PyTorch: ``torch.optim.ASGD``).

    .. math::
        \theta &\leftarrow (1 - \lambda\eta_t)\theta - \eta_t g, &
            \eta_{t+1} &= \gamma / (1 + \lambda\gamma t)^\alpha \\
        a &\leftarrow a + \mu_t (\theta - a), & \mu_{t+1} &= 1 / \max(1, t - t_0)

    :math:`g` is the gradient plus ``weight_decay`` times :math:`\theta`, :math:`\gamma` is ``lr``, :math:`\lambda`
    ``lambd``. The average :math:`a` is ``state[param]['ax']``. Raises ValueError for a negative ``lr`` or
    ``weight_decay``.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.ASGD([weight], lr=0.25, lambd=0.0, t0=0)
    >>> for _ in range(3):
    ...     weight.grad = torch.tensor([1.0])
    ...     optimizer.step()
    >>> weight.item(), optimizer.state[weight]['ax'].item()
    (0.25, 0.375)
    """

    captured = 'params, mus, etas, and state_steps'

    def __init__(self, params: Params, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_rate(lr)
        check(0.0 <= weight_decay, f'Invalid weight_decay value: {weight_decay}')
        super().__init__(params, {
            'lr': lr, 'lambd': lambd, 'alpha': alpha, 't0': t0, 'weight_decay': weight_decay, 'foreach': foreach,
            'maximize': maximize, 'differentiable': differentiable, 'capturable': capturable})

    def new_state(self, param: Any, options: Any) -> Any:
        return {'step': scalar(0), 'eta': scalar(options.lr), 'mu': scalar(1), 'ax': tg.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        step, eta, mu, average = count(state), state['eta'].item(), state['mu'].item(), state['ax']
        grad = decayed(grad, param, o.weight_decay)
        param.mul_(1 - o.lambd * eta).add_(grad, alpha=-eta)
        if mu == 1:
            average.copy_(param)
        else:
            average.add_(param - average, alpha=mu)
        state['eta'].copy_(scalar(o.lr / (1 + o.lambd * o.lr * step) ** o.alpha))
        state['mu'].copy_(scalar(1 / max(1, step - o.t0)))
