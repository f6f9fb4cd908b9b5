"""Optimizers, learning rate schedules and weight averaging (PyTorch: ``torch.optim``).

>>> import tensorgrad as torch
>>> weight = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
>>> optimizer = torch.optim.SGD([weight], lr=0.25)
>>> loss = (weight ** 2).sum()
>>> loss.backward()
>>> optimizer.step()
>>> weight.tolist()
[1.5, -1.0]
"""
from ..messages.missing_names import missing as _missing
from . import lr_scheduler, swa_utils
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    'ASGD', 'Adadelta', 'Adafactor', 'Adagrad', 'Adam', 'AdamW', 'Adamax', 'LBFGS', 'Muon', 'NAdam', 'Optimizer',
    'RAdam', 'RMSprop', 'Rprop', 'SGD', 'SparseAdam', 'lr_scheduler', 'swa_utils']
__getattr__ = _missing(__name__)
