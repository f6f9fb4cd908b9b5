"""Adam with decoupled weight decay."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .adam import Adam

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .optimizer import Params

__all__ = ['AdamW']


class AdamW(Adam):
    r"""Adam whose weight decay stays out of the running means (PyTorch: ``torch.optim.AdamW``).

    .. math::
        \theta \leftarrow (1 - \gamma\lambda)\theta, \qquad \text{then the step of Adam with } \lambda = 0

    :math:`\gamma` is ``lr``, :math:`\lambda` ``weight_decay``; the other options and errors are those of :class:`Adam`.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.Parameter(torch.tensor([8.0]))
    >>> optimizer = torch.optim.AdamW([weight], lr=0.5, weight_decay=0.5)
    >>> weight.grad = torch.tensor([0.0])
    >>> optimizer.step()
    >>> weight.item()
    6.0
    """

    def __init__(self, params: Params, lr: float | Tensor = 1e-3,
                 betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # for checkpoints of Adam, or older than this option
            group['decoupled_weight_decay'] = True
