"""Adagrad: steps scaled by all squared gradients so far."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import UpdateRule, add_, addcdiv_, check, check_implementation, check_rate, count, decayed, root, scalar
from .sparse_adam import at_places, values

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['Adagrad']


class Adagrad(UpdateRule):
    r"""Adaptive gradients (PyTorch: ``torch.optim.Adagrad``).

    .. math::
        s &\leftarrow s + g^2 \\
        \theta &\leftarrow \theta - \frac{\gamma}{1 + (t - 1)\eta} \cdot \frac{g}{\sqrt s + \epsilon}

    :math:`g` is the gradient plus ``weight_decay`` times :math:`\theta`, :math:`\gamma` is ``lr``, :math:`\eta`
    ``lr_decay``; :math:`s` starts from ``initial_accumulator_value``. Raises ValueError for negative values.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adagrad([weight], lr=0.25)
    >>> weight.grad = torch.tensor([3.0])
    >>> optimizer.step()
    >>> weight.item()
    0.75
    """

    def __init__(self, params: Params, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:
        check_rate(lr)
        check(0.0 <= lr_decay, f'Invalid lr_decay value: {lr_decay}')
        check(0.0 <= weight_decay, f'Invalid weight_decay value: {weight_decay}')
        check(0.0 <= initial_accumulator_value,
              f'Invalid initial_accumulator_value value: {initial_accumulator_value}')
        check(0.0 <= eps, f'Invalid epsilon value: {eps}')
        super().__init__(params, {
            'lr': lr, 'lr_decay': lr_decay, 'eps': eps, 'weight_decay': weight_decay,
            'initial_accumulator_value': initial_accumulator_value, 'foreach': foreach, 'maximize': maximize,
            'differentiable': differentiable, 'fused': fused})
        check_implementation(fused, foreach, differentiable, self.param_groups)
        for group in self.param_groups:
            for param in group['params']:
                self.state[param] = self.new_state(param, None)

    def new_state(self, param: Any, options: Any) -> Any:
        start = self.defaults['initial_accumulator_value']
        with tg.no_grad():
            return {'step': scalar(0),
                    'sum': tg.full_like(param, complex(start, start) if param.is_complex() else start)}

    def share_memory(self) -> None:
        """Move the sums to shared memory (PyTorch: ``Tensor.share_memory_``)."""
        for state in self.state.values():
            state['sum'].share_memory_()

    def check_sparse(self, options: Any) -> None:
        if options.weight_decay != 0:
            raise RuntimeError('weight_decay option is not compatible with sparse gradients')

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        step, total = count(state), state['sum']
        if grad._storage.dense is not None:
            grad = grad.coalesce()
            total.add_(grad * grad)
            moved = values(grad) / root(values(total.sparse_mask(grad)), o.eps)
            add_(param, at_places(grad, moved), -o.lr / (1 + (step - 1) * o.lr_decay))
            return
        grad = decayed(grad, param, o.weight_decay)
        total.addcmul_(grad, grad)
        addcdiv_(param, grad, root(total, o.eps), -o.lr / (1 + (step - 1) * o.lr_decay))
