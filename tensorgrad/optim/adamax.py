"""Adamax: Adam in the infinity norm."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import UpdateRule, addcdiv_, check, check_betas, check_rate, count, decayed, maximum_, scalar

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['Adamax']


class Adamax(UpdateRule):
    r"""Adam with a decaying maximum in place of the root mean square (PyTorch: ``torch.optim.Adamax``).

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        u &\leftarrow \max(\beta_2 u, |g| + \epsilon) \\
        \theta &\leftarrow \theta - \frac{\gamma}{1 - \beta_1^t} \cdot \frac{m}{u}

    :math:`g` is the gradient plus ``weight_decay`` times :math:`\theta`, :math:`\gamma` is ``lr``.
    Raises ValueError for negative values and for betas outside of [0, 1).

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adamax([weight], lr=0.25)
    >>> weight.grad = torch.tensor([3.0])
    >>> optimizer.step()
    >>> round(weight.item(), 5)
    0.75
    """

    def __init__(self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_rate(lr)
        check(0.0 <= eps, f'Invalid epsilon value: {eps}')
        check_betas(betas)
        check(0.0 <= weight_decay, f'Invalid weight_decay value: {weight_decay}')
        super().__init__(params, {
            'lr': lr, 'betas': betas, 'eps': eps, 'weight_decay': weight_decay, 'foreach': foreach,
            'maximize': maximize, 'differentiable': differentiable, 'capturable': capturable})

    def new_state(self, param: Any, options: Any) -> Any:
        return {'step': scalar(0), 'exp_avg': tg.zeros_like(param), 'exp_inf': tg.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        step, (beta1, beta2) = count(state), o.betas
        mean, largest = state['exp_avg'], state['exp_inf']
        grad = decayed(grad, param, o.weight_decay)
        mean.lerp_(grad, 1 - beta1)
        maximum_(largest.mul_(beta2), grad.abs().add_(o.eps))
        addcdiv_(param, mean, largest, -o.lr / (1 - beta1 ** step))
