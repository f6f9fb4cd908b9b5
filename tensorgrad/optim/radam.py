"""RAdam: Adam that waits until its variance can be trusted."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import (
    UpdateRule,
    add_,
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

__all__ = ['RAdam']


class RAdam(UpdateRule):
    r"""Adam with rectified variance (PyTorch: ``torch.optim.RAdam``).

    With :math:`m` and :math:`v` of :class:`Adam` and :math:`\rho_\infty = 2 / (1 - \beta_2) - 1`,

    .. math::
        \rho_t &= \rho_\infty - 2 t \beta_2^t / (1 - \beta_2^t) \\
        \theta &\leftarrow \theta - \frac{\gamma}{1 - \beta_1^t} \cdot
            \begin{cases} \sqrt{\frac{(\rho_t - 4)(\rho_t - 2)\rho_\infty}{(\rho_\infty - 4)(\rho_\infty - 2)\rho_t}}
            \cdot \frac{\sqrt{1 - \beta_2^t}}{\sqrt v + \epsilon} \, m & \rho_t > 5 \\ m & \text{else} \end{cases}

    :math:`\gamma` is ``lr``. ``weight_decay`` is added to the gradient, or with ``decoupled_weight_decay`` shrinks
    :math:`\theta` itself. Raises ValueError for negative values and for betas outside of [0, 1).

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.RAdam([weight], lr=0.25)
    >>> weight.grad = torch.tensor([3.0])
    >>> optimizer.step()
    >>> round(weight.item(), 5)
    0.25
    """

    def __init__(self, params: Params, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        check_rate(lr)
        check(0.0 <= eps, f'Invalid epsilon value: {eps}')
        check_betas(betas)
        check(0.0 <= weight_decay, f'Invalid weight_decay value: {weight_decay}')
        super().__init__(params, {
            'lr': lr, 'betas': betas, 'eps': eps, 'weight_decay': weight_decay, 'maximize': maximize,
            'foreach': foreach, 'capturable': capturable, 'decoupled_weight_decay': decoupled_weight_decay,
            'differentiable': differentiable})

    def new_state(self, param: Any, options: Any) -> Any:
        return {'step': scalar(0), 'exp_avg': tg.zeros_like(param), 'exp_avg_sq': tg.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        step, (beta1, beta2) = count(state), o.betas
        mean, square = state['exp_avg'], state['exp_avg_sq']
        if o.weight_decay != 0 and o.decoupled_weight_decay:
            scale_(param, 1 - o.lr * o.weight_decay)
        else:
            grad = decayed(grad, param, o.weight_decay)
        mean.lerp_(grad, 1 - beta1)
        average_square_(square, grad, beta2)
        step_size = o.lr / (1 - beta1 ** step)
        rectification = rectify(step, beta2)
        if rectification is None:
            add_(param, mean, -step_size)
        else:
            addcdiv_(param, mean, root(square, o.eps), -step_size * rectification)


def rectify(step: float, beta2: float) -> float | None:
    """Return the rectification factor of √v, including its bias correction; None while its variance is too large."""
    correction = 1 - beta2 ** step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2 ** step / correction
    if length <= 5:
        return None
    return (correction * (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
