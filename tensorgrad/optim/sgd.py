"""Stochastic gradient descent with momentum."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .rule import UpdateRule, add_, at_once, check, check_implementation, check_rate, decayed

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['SGD']


class SGD(UpdateRule):
    r"""Stochastic gradient descent, with momentum if wanted (PyTorch: ``torch.optim.SGD``).

    .. math::
        g &\leftarrow \nabla f(\theta) + \lambda\theta \\
        b &\leftarrow \mu b + (1 - \tau) g \qquad (b = g \text{ in the first step}) \\
        \theta &\leftarrow \theta - \gamma b \qquad (\text{Nesterov: } \theta - \gamma (g + \mu b))

    :math:`\gamma` is ``lr``, :math:`\mu` ``momentum`` (None is 0), :math:`\tau` ``dampening``, :math:`\lambda`
    ``weight_decay``. ``maximize`` goes uphill. ``foreach`` and ``fused`` change nothing.
    Raises ValueError for negative values, and for ``nesterov`` without momentum or with dampening.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.5)
    >>> for _ in range(2):
    ...     weight.grad = torch.tensor([1.0])
    ...     optimizer.step()
    >>> weight.item()  # 1 - 0.5 - 0.5 * 1.5
    -0.25
    """

    takes_complex = True

    def __init__(self, params: Params, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None) -> None:
        momentum = 0 if momentum is None else momentum
        check_rate(lr)
        check(not momentum < 0.0, f'Invalid momentum value: {momentum}')
        check(not weight_decay < 0.0, f'Invalid weight_decay value: {weight_decay}')
        check(not nesterov or (momentum > 0 and dampening == 0),
              'Nesterov momentum requires a momentum and zero dampening')
        super().__init__(params, {
            'lr': lr, 'momentum': momentum, 'dampening': dampening, 'weight_decay': weight_decay,
            'nesterov': nesterov, 'maximize': maximize, 'foreach': foreach, 'differentiable': differentiable,
            'fused': fused})
        check_implementation(fused, foreach, differentiable, self.param_groups)

    def new_state(self, param: Any, options: Any) -> Any:
        return {'momentum_buffer': None} if options.momentum != 0 else {}

    def check_sparse(self, options: Any) -> None:
        """Do nothing: sparse gradients are added where they have values."""

    def update_all(self, updates: Any, o: Any) -> Any:
        def row(param, grad, state):
            if grad._storage.dense is not None:
                return None
            if o.momentum == 0:
                return param, None, grad
            return (param, buffer, grad) if (buffer := state['momentum_buffer']) is not None else None
        left = at_once('sgd', [row(*update) for update in updates], 1, lr=o.lr, momentum=o.momentum,
                       dampening=o.dampening,
                       weight_decay=o.weight_decay, nesterov=o.nesterov)
        super().update_all([updates[place] for place in left], o)

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        buffer = state.get('momentum_buffer')
        grad = decayed(grad, param, o.weight_decay)
        if o.momentum != 0:
            if buffer is None:
                buffer = state['momentum_buffer'] = grad.detach().clone()
            else:
                buffer.mul_(o.momentum).add_(grad, alpha=1 - o.dampening)
            grad = grad.add(buffer, alpha=o.momentum) if o.nesterov else buffer
        add_(param, grad, -o.lr)
