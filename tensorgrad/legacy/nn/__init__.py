"""The modules of Lua Torch and of the first PyTorch: `torch.legacy.nn`.

A module keeps its last output and gradInput, and its weights beside their gradients; a program calls forward, backward
and updateParameters itself:

>>> import tensorgrad as torch
>>> from tensorgrad.legacy import nn
>>> model, loss = nn.Sequential().add(nn.Linear(2, 1)), nn.MSECriterion()
>>> x, y = torch.tensor([[0., 1.], [1., 0.]]), torch.tensor([[1.], [-1.]])
>>> for _ in range(200):
...     value = loss.forward(model.forward(x), y)
...     model.zeroGradParameters()
...     _ = model.backward(x, loss.backward(model.output, y))
...     model.updateParameters(0.3)
>>> value < 1e-4
True

Every class is a container, or a row of a table: a present function, with arguments in Lua's order. Autograd replaces
their backward methods.
"""
from . import containers as _containers
from . import criterions as _criterions
from .containers import *
from .criterions import *
from .module import Criterion, Module
from .table import *
from .table import __all__ as _plain
from .weighted import *
from .weighted import __all__ as _weighted

__all__ = sorted(["Criterion", "Module", *_containers.__all__, *_criterions.__all__, *_plain, *_weighted])
