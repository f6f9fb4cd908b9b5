"""SparseAdam: Adam that changes only the rows with a gradient."""
from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from .. import api as tg
from ..core.dispatch import xp
from ..storage.sparse import pattern_of
from .rule import UpdateRule, add_, check, check_betas, check_rate

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['SparseAdam']


def values(x: Any) -> Any:
    """Return the values of a coalesced tensor."""
    return x._values()


def at_places(x: Any, values: Any) -> Any:
    """Return values at the places of a coalesced tensor."""
    return xp.sparse_tensor(values, pattern=pattern_of(x))


class SparseAdam(UpdateRule):
    r"""Adam for sparse gradients, as those of ``Embedding(sparse=True)`` (PyTorch: ``torch.optim.SparseAdam``).

    The formulas are Adam's, at the places where the gradient :math:`g` has values; elsewhere neither the parameter nor
    its averages change.

    .. math::
        m &\leftarrow m + (1 - \beta_1)(g - m) \qquad v \leftarrow v + (1 - \beta_2)(g^2 - v) \\
        \theta &\leftarrow \theta - \gamma\,\frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t}
                                       \cdot \frac{m}{\sqrt v + \epsilon}

    :math:`\gamma` is ``lr``, :math:`\beta` ``betas``, :math:`\epsilon` ``eps``. ``maximize`` goes uphill. Raises
    ValueError for values that are not positive, or sparse parameters, and RuntimeError for a dense gradient.

    >>> import tensorgrad as torch
    >>> table = torch.nn.Embedding(3, 1, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> table(torch.tensor([1])).sum().backward()
    >>> torch.optim.SparseAdam(table.parameters(), lr=0.5).step()
    >>> (before - table.weight.detach()).flatten()
    tensor([0.0000, 0.5000, 0.0000])
    """

    def __init__(self, params: Params, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, maximize: bool = False) -> None:
        check(not isinstance(lr, tg.Tensor) or lr.numel() == 1, 'Tensor lr must be 1-element')
        check(bool(lr > 0.0), f'Invalid learning rate: {lr}')
        check(0.0 < eps, f'Invalid epsilon value: {eps}')
        check_betas(betas)
        check_rate(lr)
        super().__init__(params, {'lr': lr, 'betas': betas, 'eps': eps, 'maximize': maximize})
        sparse = [[number, place] for number, group in enumerate(self.param_groups)
                  for place, param in enumerate(group['params']) if param.layout is not tg.strided]
        check(not sparse, f'Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors')

    def new_state(self, param: Any, options: Any) -> Any:
        return {'step': 0, 'exp_avg': tg.zeros_like(param), 'exp_avg_sq': tg.zeros_like(param)}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        for own in self.state.values():
            own['step'] = int(own['step'])          # a number, as PyTorch keeps it here

    def check_sparse(self, options: Any) -> None:
        """Do nothing: gradients are to be sparse."""

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        if grad.layout is tg.strided:
            raise RuntimeError('SparseAdam does not support dense gradients, please consider Adam instead')
        state['step'] += 1
        step, (beta1, beta2) = int(state['step']), o.betas
        grad = grad.coalesce()
        g = values(grad)
        mean, square = (values(state[name].sparse_mask(grad)) for name in ('exp_avg', 'exp_avg_sq'))
        to_mean, to_square = (g - mean) * (1 - beta1), (g * g - square) * (1 - beta2)
        state['exp_avg'].add_(at_places(grad, to_mean))
        state['exp_avg_sq'].add_(at_places(grad, to_square))
        moved = (mean + to_mean) / ((square + to_square).sqrt() + o.eps)
        add_(param, at_places(grad, moved), -o.lr * sqrt(1 - beta2 ** step) / (1 - beta1 ** step))
