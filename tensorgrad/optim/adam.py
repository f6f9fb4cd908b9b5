"""Adam: steps scaled by running means of the gradient and its square."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .rule import (
    UpdateRule,
    addcdiv_,
    at_once,
    average_square_,
    check,
    check_betas,
    check_implementation,
    check_rate,
    count,
    decayed,
    maximum_,
    root,
    scalar,
    scale_,
)

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['Adam']


class Adam(UpdateRule):
    r"""Adaptive moment estimation (PyTorch: ``torch.optim.Adam``).

    .. math::
        g &\leftarrow \nabla f(\theta) + \lambda\theta \\
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        \theta &\leftarrow \theta - \gamma \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    :math:`\gamma` is ``lr``, :math:`\lambda` ``weight_decay``. ``amsgrad`` divides by the largest :math:`v` so far;
    ``decoupled_weight_decay`` shrinks :math:`\theta` by :math:`1 - \gamma\lambda` instead of changing :math:`g`
    (see :class:`AdamW`). ``foreach``, ``fused`` and ``capturable`` change nothing.
    Raises ValueError for negative values and for betas outside of [0, 1).

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
    >>> optimizer = torch.optim.Adam([weight], lr=0.25)
    >>> weight.grad = torch.tensor([100.0, -0.01])
    >>> optimizer.step()
    >>> [round(value, 4) for value in weight.tolist()]  # a first step of the length lr, whatever the gradient's
    [0.75, 1.25]
    """

    def __init__(self, params: Params, lr: float | Tensor = 1e-3,
                 betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        tensors_wanted = capturable or not foreach
        check(not isinstance(lr, tg.Tensor) or tensors_wanted,
              'lr as a Tensor is not supported for capturable=False and foreach=True')
        check_rate(lr)
        check(0.0 <= eps, f'Invalid epsilon value: {eps}')
        check_betas(betas)
        check(bool(0.0 <= weight_decay), f'Invalid weight_decay value: {weight_decay}')
        check_kinds_of_betas(betas, tensors_wanted)
        super().__init__(params, {
            'lr': lr, 'betas': tuple(beta.squeeze() if isinstance(beta, tg.Tensor) else beta for beta in betas),
            'eps': eps, 'weight_decay': weight_decay, 'amsgrad': amsgrad, 'maximize': maximize, 'foreach': foreach,
            'capturable': capturable, 'differentiable': differentiable, 'fused': fused,
            'decoupled_weight_decay': decoupled_weight_decay})
        check_implementation(fused, foreach, differentiable, self.param_groups)

    def check_sparse(self, options: Any) -> None:
        raise RuntimeError('Adam does not support sparse gradients, please consider SparseAdam instead')

    def new_state(self, param: Any, options: Any) -> Any:
        state = {'step': scalar(0), 'exp_avg': tg.zeros_like(param), 'exp_avg_sq': tg.zeros_like(param)}
        if options.amsgrad:
            state['max_exp_avg_sq'] = tg.zeros_like(param)
        return state

    def update_all(self, updates: Any, o: Any) -> None:
        rows = [(param, state['exp_avg'], state['exp_avg_sq'], state['max_exp_avg_sq'] if o.amsgrad else None,
                 state['step'], grad)
                for param, grad, state in updates]
        left = at_once('adam', rows, 3, lr=o.lr, beta1=o.betas[0], beta2=o.betas[1], eps=o.eps,
                       weight_decay=o.weight_decay,
                       decoupled=o.decoupled_weight_decay)
        super().update_all([updates[place] for place in left], o)

    def update(self, param: Any, grad: Any, state: Any, o: Any) -> None:
        step, (beta1, beta2) = count(state), o.betas
        mean, square = state['exp_avg'], state['exp_avg_sq']
        bias = (1 - beta2 ** step) ** 0.5  # the root of v's bias correction, outside of the fraction
        if o.weight_decay != 0 and o.decoupled_weight_decay:
            scale_(param, 1 - o.lr * o.weight_decay)
        else:
            grad = decayed(grad, param, o.weight_decay)
        mean.lerp_(grad, 1 - beta1)
        average_square_(square, grad, beta2)
        if o.amsgrad:
            maximum_(state['max_exp_avg_sq'], square)
            square = state['max_exp_avg_sq']
        addcdiv_(param, mean, root(square, o.eps * bias), -o.lr * bias / (1 - beta1 ** step))


def check_kinds_of_betas(betas: Any, tensors_wanted: Any) -> None:
    """Raise ValueError unless both betas are floats, or both are tensors of one element."""
    kinds = [tg.Tensor if isinstance(beta, tg.Tensor) else type(beta) for beta in betas[:2]]
    check(kinds in ([float, float], [tg.Tensor, tg.Tensor]), 'betas must be either both floats or both Tensors')
    if kinds[0] is tg.Tensor:
        for index, beta in enumerate(betas[:2]):
            check(tensors_wanted,
                  f'betas[{index}] as a Tensor is not supported for capturable=False and foreach=True')
            check(beta.numel() == 1, f'Tensor betas[{index}] must be 1-element')
