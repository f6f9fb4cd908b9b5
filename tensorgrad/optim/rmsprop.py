"""RMSprop: steps scaled by the root mean square of the gradient."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import UpdateRule, add_, addcdiv_, average_square_, check, check_rate, count, decayed, root, scalar

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['RMSprop']


class RMSprop(UpdateRule):
    r"""Root mean square propagation (PyTorch: ``torch.optim.RMSprop``).

    .. math::
        v &\leftarrow \alpha v + (1 - \alpha) g^2 \\
        b &\leftarrow \mu b + \frac{g}{\sqrt v + \epsilon} \\
        \theta &\leftarrow \theta - \gamma b

    :math:`g` is the gradient plus ``weight_decay`` times :math:`\theta`, :math:`\gamma` is ``lr``, :math:`\mu`
    ``momentum``. ``centered`` subtracts the square of the gradient's running mean from :math:`v`, which makes it the
    variance. Raises ValueError for negative values.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.RMSprop([weight], lr=0.25, alpha=0.75)
    >>> weight.grad = torch.tensor([3.0])
    >>> optimizer.step()
    >>> round(weight.item(), 5)
    0.5
    """

    def __init__(self, params: Params, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0, momentum: float = 0, centered: bool = False, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_rate(lr)
        check(0.0 <= eps, f'Invalid epsilon value: {eps}')
        check(0.0 <= momentum, f'Invalid momentum value: {momentum}')
        check(0.0 <= weight_decay, f'Invalid weight_decay value: {weight_decay}')
        check(0.0 <= alpha, f'Invalid alpha value: {alpha}')
        super().__init__(params, {
            'lr': lr, 'momentum': momentum, 'alpha': alpha, 'eps': eps, 'centered': centered,
            'weight_decay': weight_decay, 'capturable': capturable, 'foreach': foreach, 'maximize': maximize,
            'differentiable': differentiable})

    def new_state(self, param: Any, options: Any) -> Any:
        state = {'step': scalar(0), 'square_avg': tg.zeros_like(param)}
        if options.momentum > 0:
            state['momentum_buffer'] = tg.zeros_like(param)
        if options.centered:
            state['grad_avg'] = tg.zeros_like(param)
        return state

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        count(state)
        square = state['square_avg']
        grad = decayed(grad, param, o.weight_decay)
        average_square_(square, grad, o.alpha)
        if o.centered:
            mean = state['grad_avg'].lerp_(grad, 1 - o.alpha)
            square = square.addcmul(mean, mean, value=-1)
        deviation = root(square, o.eps)
        if o.momentum > 0:
            buffer = state['momentum_buffer'].mul_(o.momentum).addcdiv_(grad, deviation)
            add_(param, buffer, -o.lr)
        else:
            addcdiv_(param, grad, deviation, -o.lr)
