"""Adafactor: Adam whose second moment is kept as a row and a column."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import UpdateRule, check, check_rate, count, scalar

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['Adafactor']


class Adafactor(UpdateRule):
    r"""Adaptive steps in little memory (PyTorch: ``torch.optim.Adafactor``).

    The running mean of :math:`g^2` is kept by its means along the last two dimensions, :math:`r` and :math:`c`
    (vectors keep it whole), with the weight :math:`t^{\tau}` for the newest. With :math:`u = g / \sqrt{\hat v}`,
    :math:`\hat v = r c / \operatorname{mean}(r)`,

    .. math::
        \theta \leftarrow (1 - \gamma\lambda)\theta
            - \frac{\max(\epsilon_2, \operatorname{rms}(\theta)) \min(\gamma, 1 / \sqrt t)}
                   {\max(1, \operatorname{rms}(u) / d)} \, u

    :math:`\gamma` is ``lr``, :math:`\lambda` ``weight_decay``, :math:`\tau` ``beta2_decay``, :math:`d` a threshold for
    the size of the step; ``eps`` bounds :math:`\sqrt{\hat v}` (None: by the resolution of the dtype) and
    :math:`\operatorname{rms}(\theta)` from below.
    Raises ValueError for options out of range, RuntimeError for complex parameters.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.ones(2, 3))
    >>> optimizer = torch.optim.Adafactor([weight], lr=0.25)
    >>> weight.grad = torch.full((2, 3), 5.0)
    >>> optimizer.step()
    >>> round(weight.mean().item(), 5), optimizer.state[weight]['row_var'].shape
    (0.75, torch.Size([2, 1]))
    """

    def __init__(self, params: Params, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
                 foreach: bool | None = None, maximize: bool = False) -> None:
        check_rate(lr, 'Learning rate should be >= 0 but is: {}')
        check(0.0 >= beta2_decay, f'beta2_decay should be <= 0 but is: {beta2_decay}')
        check(eps[0] is None or 0.0 <= eps[0], f'epsilon1 should be >= 0 but is: {eps[0]}')
        check(0.0 <= eps[1], f'epsilon2 should be >= 0 but is: {eps[1]}')
        check(1.0 <= d, f'Clipping threshold d should be >= 1 but is: {d}')
        check(0.0 <= weight_decay, f'weight_decay should be >= 0 but is: {weight_decay}')
        super().__init__(params, {
            'lr': lr, 'beta2_decay': beta2_decay, 'eps': eps, 'd': d, 'weight_decay': weight_decay,
            'foreach': foreach, 'maximize': maximize})

    def new_state(self, param: Any, options: Any) -> Any:
        if param.is_complex():
            raise RuntimeError('Adafactor does not support complex parameters')
        grad, shape = param.grad, tuple(param.shape)
        if grad.dim() < 2:
            return {'step': scalar(0), 'variance': tg.zeros_like(grad)}
        return {'step': scalar(0), 'row_var': grad.new_zeros((*shape[:-1], 1)),
                'col_var': grad.new_zeros((*shape[:-2], 1, shape[-1]))}

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        step = count(state)
        smallest, smallest_scale = tg.finfo(param.dtype).eps if o.eps[0] is None else o.eps[0], o.eps[1]
        newest = step ** o.beta2_decay
        rate = max(smallest_scale, rms(param)) * min(o.lr, step ** -0.5)
        if o.weight_decay != 0:
            param.mul_(1 - o.lr * o.weight_decay)
        if 'row_var' in state:
            rows = state['row_var'].lerp_(mean_square(grad, -1), newest)
            columns = state['col_var'].lerp_(mean_square(grad, -2), newest)
            square = (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=smallest))
        else:
            square = state['variance'].lerp_(grad * grad, newest)
        update = square.clamp(min=smallest * smallest).rsqrt_().mul_(grad)
        param.add_(update, alpha=-rate / max(1.0, rms(update) / o.d))


def rms(x: Tensor) -> float:
    """The root mean square of all elements."""
    return x.norm(2).item() / x.numel() ** 0.5


def mean_square(x: Tensor, dim: int) -> Any:
    return tg.norm(x, dim=dim, keepdim=True).square_().div_(x.size(dim))
