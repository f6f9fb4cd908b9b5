"""Muon: momentum, orthogonalised."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import UpdateRule, add_, check, check_rate, scale_

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['Muon']


class Muon(UpdateRule):
    r"""Momentum orthogonalised by Newton-Schulz iteration, for matrices (PyTorch: ``torch.optim.Muon``).

    .. math::
        b &\leftarrow \mu b + (1 - \mu) g \\
        \theta &\leftarrow (1 - \gamma\lambda)\theta - \gamma' \operatorname{orthogonal}(b)

    With ``nesterov``, :math:`\mu b + (1 - \mu) g` takes the place of :math:`b` in the second line. :math:`\gamma` is
    ``lr``, :math:`\mu` ``momentum``, :math:`\lambda` ``weight_decay``. For :math:`\theta` of the shape :math:`(A, B)`,
    :math:`\gamma'` is :math:`\gamma \sqrt{\max(1, A / B)}` (``adjust_lr_fn='original'``) or
    :math:`0.2 \gamma \sqrt{\max(A, B)}` (``'match_rms_adamw'``).
    Raises ValueError for parameters that are no matrices and options out of range, RuntimeError for complex ones.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.zeros(2, 2))
    >>> optimizer = torch.optim.Muon([weight], lr=1.0)
    >>> weight.grad = torch.tensor([[0.0, 3.0], [5.0, 0.0]])
    >>> optimizer.step()
    >>> (weight.abs() > 0.5).tolist()  # both directions count alike
    [[False, True], [True, False]]
    """

    takes_complex = True

    def __init__(self, params: Params, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:
        check_rate(lr, 'Learning rate should be >= 0 but is: {}')
        check(0.0 <= momentum, f'momentum should be >= 0 but is: {momentum}')
        check(0.0 <= weight_decay, f'weight decay should be >= 0 but is: {weight_decay}')
        check(adjust_lr_fn in (None, 'original', 'match_rms_adamw'),
              f'Adjust learning rate function {adjust_lr_fn} is not supported')
        super().__init__(params, {
            'lr': lr, 'weight_decay': weight_decay, 'momentum': momentum, 'nesterov': nesterov,
            'ns_coefficients': ns_coefficients, 'eps': eps, 'ns_steps': ns_steps, 'adjust_lr_fn': adjust_lr_fn})
        for group in self.param_groups:
            for param in group['params']:
                check(param.ndim == 2, 'Muon only supports 2D parameters whereas we found a parameter with '
                                       f'size: {param.size()}')

    def new_state(self, param: Any, options: Any) -> Any:
        if param.is_complex():
            raise RuntimeError('Muon does not support complex parameters')
        return {'momentum_buffer': tg.zeros_like(param.grad)}

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        buffer = state['momentum_buffer'].lerp_(grad, 1 - o.momentum)
        direction = grad.lerp(buffer, o.momentum) if o.nesterov else buffer
        direction = orthogonal(direction, o.ns_coefficients, o.ns_steps, o.eps)
        scale_(param, 1 - o.lr * o.weight_decay)
        add_(param, direction, -o.lr * size_factor(param.shape, o.adjust_lr_fn))


def orthogonal(matrix: Any, coefficients: Any, steps: int, eps: float) -> Any:
    r"""A matrix with the singular vectors of ``matrix`` and singular values near 1, in the precision of bfloat16.

    Each Newton-Schulz step applies :math:`x \mapsto a x + b x^3 + c x^5` to the singular values.
    """
    check(steps < 100, 'Number of steps must be less than 100 for computational efficiency')
    check(matrix.dim() == 2, 'Input tensor gradient must be a 2D matrix')
    check(len(coefficients) == 3, 'Coefficients must be a tuple of exactly 3 values')
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = rounded(matrix.T if tall else matrix)
    x = rounded(x / rounded(x.norm()).clamp(min=eps))  # no singular value is larger than 1
    for _ in range(steps):
        gram = rounded(x @ x.T)
        polynomial = rounded(tg.addmm(gram, gram, gram, beta=b, alpha=c))
        x = rounded(tg.addmm(x, polynomial, x, beta=a))
    return x.T if tall else x


def rounded(x: Tensor) -> Any:
    """Round to the precision of bfloat16, but keep float32, which computes faster."""
    return x.bfloat16().float()


def size_factor(shape: Any, adjust_lr_fn: str | None) -> float:
    """Return the factor of the learning rate for a matrix of this shape."""
    rows, columns = shape
    if adjust_lr_fn == 'match_rms_adamw':
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
