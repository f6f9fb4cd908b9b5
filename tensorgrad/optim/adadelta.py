"""Adadelta: steps in the units of the parameters."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import UpdateRule, add_, average_square_, check, check_rate, count, decayed, scalar

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['Adadelta']


class Adadelta(UpdateRule):
    r"""Adaptive steps without a learning rate (PyTorch: ``torch.optim.Adadelta``).

    .. math::
        v &\leftarrow \rho v + (1 - \rho) g^2 \\
        \Delta &= \frac{\sqrt{u + \epsilon}}{\sqrt{v + \epsilon}} \, g \\
        u &\leftarrow \rho u + (1 - \rho) \Delta^2 \\
        \theta &\leftarrow \theta - \gamma \Delta

    :math:`g` is the gradient plus ``weight_decay`` times :math:`\theta`, :math:`\gamma` is ``lr``.
    Raises ValueError for negative values and for ``rho`` outside of [0, 1].

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adadelta([weight], lr=100.0)
    >>> weight.grad = torch.tensor([3.0])
    >>> optimizer.step()
    >>> round(weight.item(), 4)
    0.6838
    """

    def __init__(self, params: Params, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
                 maximize: bool = False, differentiable: bool = False) -> None:
        check_rate(lr)
        check(0.0 <= rho <= 1.0, f'Invalid rho value: {rho}')
        check(0.0 <= eps, f'Invalid epsilon value: {eps}')
        check(0.0 <= weight_decay, f'Invalid weight_decay value: {weight_decay}')
        super().__init__(params, {
            'lr': lr, 'rho': rho, 'eps': eps, 'weight_decay': weight_decay, 'maximize': maximize,
            'capturable': capturable, 'foreach': foreach, 'differentiable': differentiable})

    def new_state(self, param: Any, options: Any) -> Any:
        return {'step': scalar(0), 'square_avg': tg.zeros_like(param), 'acc_delta': tg.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        count(state)
        squares, deltas = state['square_avg'], state['acc_delta']
        grad = decayed(grad, param, o.weight_decay)
        average_square_(squares, grad, o.rho)
        delta = (deltas + o.eps).sqrt_() / (squares + o.eps).sqrt_() * grad
        average_square_(deltas, delta, o.rho)
        add_(param, delta, -o.lr)
