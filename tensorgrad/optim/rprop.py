"""Rprop: steps by the sign of the gradient alone."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import UpdateRule, check, check_rate, count, plain, scalar

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['Rprop']


class Rprop(UpdateRule):
    r"""Resilient backpropagation (PyTorch: ``torch.optim.Rprop``).

    Every element has its own step size :math:`\Delta`, ``lr`` at first. The step size is multiplied by ``etas[1]``
    where the gradient has kept its sign and by ``etas[0]`` where it has changed it, within ``step_sizes``; where it has
    changed, the gradient :math:`g` counts as zero this once.

    .. math::
        \theta \leftarrow \theta - \operatorname{sign}(g) \Delta

    Raises ValueError unless 0 < ``etas[0]`` < 1 < ``etas[1]``, and for a negative ``lr``.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
    >>> optimizer = torch.optim.Rprop([weight], lr=0.25, etas=(0.5, 2.0))
    >>> for gradient in ([3.0, -0.1], [2.0, 0.1]):
    ...     weight.grad = torch.tensor(gradient)
    ...     optimizer.step()
    >>> weight.tolist()  # 1 - 0.25 - 0.5 and 1 + 0.25
    [0.25, 1.25]
    """

    def __init__(self, params: Params, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_rate(lr)
        check(0.0 < etas[0] < 1.0 < etas[1], f'Invalid eta values: {etas[0]}, {etas[1]}')
        super().__init__(params, {
            'lr': lr, 'etas': etas, 'step_sizes': step_sizes, 'foreach': foreach, 'maximize': maximize,
            'differentiable': differentiable, 'capturable': capturable})

    def new_state(self, param: Any, options: Any) -> Any:
        lr = float(plain(options.lr))
        return {'step': scalar(0), 'prev': tg.zeros_like(param),
                'step_size': tg.full_like(param.grad, complex(lr, lr) if param.is_complex() else lr)}

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        count(state)
        (minus, plus), (smallest, largest) = o.etas, o.step_sizes
        previous, size = state['prev'], state['step_size']
        agreement = (grad * (previous.clone() if o.differentiable else previous)).sign()
        changed = agreement < 0
        factor = agreement.masked_fill(agreement > 0, plus).masked_fill_(changed, minus)
        size.mul_(factor.masked_fill_(agreement == 0, 1)).clamp_(smallest, largest)
        grad = grad.masked_fill(changed, 0)
        param.addcmul_(grad.sign(), size, value=-1)
        previous.copy_(grad)
