"""NAdam: Adam with Nesterov momentum."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import (
    UpdateRule,
    addcdiv_,
    average_square_,
    check,
    check_betas,
    check_rate,
    count,
    decayed,
    root,
    scalar,
    scale_,
)

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['NAdam']


class NAdam(UpdateRule):
    r"""Adam with Nesterov momentum (PyTorch: ``torch.optim.NAdam``).

    With :math:`m` and :math:`v` of :class:`Adam` and a momentum that grows with the step :math:`t`,

    .. math::
        \mu_t &= \beta_1 \left(1 - \tfrac12 \, 0.96^{t \psi}\right) \\
        \theta &\leftarrow \theta - \gamma
            \frac{\frac{1 - \mu_t}{1 - \prod_{i \le t} \mu_i} g + \frac{\mu_{t+1}}{1 - \prod_{i \le t+1} \mu_i} m}
                 {\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    :math:`\gamma` is ``lr``, :math:`\psi` ``momentum_decay``. ``weight_decay`` is added to the gradient, or with
    ``decoupled_weight_decay`` shrinks :math:`\theta` itself.
    Raises ValueError for negative values and for betas outside of [0, 1).

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.NAdam([weight], lr=0.25)
    >>> weight.grad = torch.tensor([3.0])
    >>> optimizer.step()
    >>> round(weight.item(), 4)
    0.7359
    """

    captured = 'params, mu_products and state_steps'

    def __init__(self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False) -> None:
        check_rate(lr)
        check(0.0 <= eps, f'Invalid epsilon value: {eps}')
        check_betas(betas)
        check(0.0 <= weight_decay, f'Invalid weight_decay value: {weight_decay}')
        check(0.0 <= momentum_decay, f'Invalid momentum_decay value: {momentum_decay}')
        super().__init__(params, {
            'lr': lr, 'betas': betas, 'eps': eps, 'weight_decay': weight_decay, 'momentum_decay': momentum_decay,
            'decoupled_weight_decay': decoupled_weight_decay, 'maximize': maximize, 'foreach': foreach,
            'capturable': capturable, 'differentiable': differentiable})

    def new_state(self, param: Any, options: Any) -> Any:
        return {'step': scalar(0), 'mu_product': scalar(1), 'exp_avg': tg.zeros_like(param),
                'exp_avg_sq': tg.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        step, (beta1, beta2) = count(state), o.betas
        mean, square = state['exp_avg'], state['exp_avg_sq']
        if o.weight_decay != 0 and o.decoupled_weight_decay:
            scale_(param, 1 - o.lr * o.weight_decay)
        else:
            grad = decayed(grad, param, o.weight_decay)
        mu, next_mu = (beta1 * (1 - 0.5 * 0.96 ** (t * o.momentum_decay)) for t in (step, step + 1))
        product = state['mu_product'].mul_(mu)
        product = product if o.differentiable else product.item()
        mean.lerp_(grad, 1 - beta1)
        average_square_(square, grad, beta2)
        bias = (1 - beta2 ** step) ** 0.5  # the root of v's bias correction, outside of the fraction
        denominator, rate = root(square, o.eps * bias), -o.lr * bias
        addcdiv_(param, grad, denominator, rate * (1 - mu) / (1 - product))
        addcdiv_(param, mean, denominator, rate * next_mu / (1 - product * next_mu))
