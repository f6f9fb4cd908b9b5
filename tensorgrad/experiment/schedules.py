"""Optimizers and learning rate schedules from specs `{name, args}`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import optim
from ..optim import Optimizer, lr_scheduler
from .registry import Registry

optimizers = Registry("optimizer")
schedulers = Registry("scheduler")
lr_lambdas = Registry("lr_lambda")

for _name in optim.__all__:
    if isinstance(_class := getattr(optim, _name), type) and _class is not Optimizer:
        optimizers.register(_name)(_class)
for _name in lr_scheduler.__all__:
    if _name != "LRScheduler":
        schedulers.register(_name)(getattr(lr_scheduler, _name))


@lr_lambdas.register("warmup_lr")
def warmup_lr(start: float, end: float = 1.0, total_iters: int = 5, exp_gamma: float = 1.0) -> Callable[[int], float]:
    """A factor of the learning rate for LambdaLR: linear from `start` in epoch 0 to `end` in the last of `total_iters`
    epochs, then end · exp_gamma^k in the k-th epoch after.

    ValueError unless total_iters is at least 1.

    >>> factor = warmup_lr(0.1, total_iters=5, exp_gamma=0.5)
    >>> [round(factor(epoch), 3) for epoch in range(7)]
    [0.1, 0.325, 0.55, 0.775, 1.0, 0.5, 0.25]
    """
    if total_iters < 1:
        raise ValueError(f"warmup_lr: total_iters is at least 1, not {total_iters}")
    last = total_iters - 1

    def factor(epoch: int) -> float:
        return start + (end - start) * epoch / last if epoch < last else end * exp_gamma ** (epoch - last)

    return factor


def make_optimizer(params: Iterable[Any], spec: Mapping[str, Any], load_sd: bool = False) -> Optimizer:
    """The optimizer of `tensorgrad.optim` that a spec names, of these parameters.

    load_sd loads the spec's state `sd`. UnknownName (a KeyError) for another name; what the optimizer refuses is its
    own error.

    >>> import tensorgrad as torch
    >>> make_optimizer([torch.ones(1, requires_grad=True)], {"name": "SGD", "args": {"lr": 0.5}}).defaults["lr"]
    0.5
    """
    return optimizers.make(spec, load_sd=load_sd, given=(params,))


def make_lr_scheduler(optimizer: Optimizer, spec: Mapping[str, Any] | None) -> Any:
    """The learning rate schedule that a spec names, of an optimizer; None for None.

    `lr_lambda` of LambdaLR and MultiplicativeLR is a spec, too (`{name: warmup_lr, args}`), or a list of specs, one for
    each group of parameters; so are the `schedulers` of SequentialLR and ChainedScheduler.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> spec = {"name": "LambdaLR", "args": {"lr_lambda": {"name": "warmup_lr", "args": {"start": 0.1}}}}
    >>> make_lr_scheduler(optimizer, spec).get_last_lr()
    [0.1]
    """
    if spec is None:
        return None
    args, made = (spec.get("args") if isinstance(spec, Mapping) else None) or {}, {}
    if isinstance(args, Mapping):
        if "lr_lambda" in args:
            made["lr_lambda"] = _each(args["lr_lambda"], lr_lambdas.make)
        if "schedulers" in args:
            made["schedulers"] = [make_lr_scheduler(optimizer, part) for part in args["schedulers"]]
    if isinstance(spec, Mapping) and spec.get("name") == "ChainedScheduler":
        return schedulers.make(spec, {**made, "optimizer": optimizer})
    return schedulers.make(spec, made, given=(optimizer,))


def _each(specs: Any, make: Callable[[Any], Any]) -> Any:
    """Make the object of a spec, or of each spec in a list; callables pass through."""
    if isinstance(specs, (list, tuple)):
        return [_each(spec, make) for spec in specs]
    return specs if callable(specs) else make(specs)
