"""Adam with decoupled weight decay."""
from .adam import Adam

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

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None, capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:  # for checkpoints of Adam, or older than this option
            group['decoupled_weight_decay'] = True
