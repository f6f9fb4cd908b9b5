"""Learning rate schedules (PyTorch: ``torch.optim.lr_scheduler``).

A schedule sets the learning rates of an optimizer's parameter groups; call its ``step`` after the optimizer's. Most
compute the new rates from the present ones, so that schedules can be chained.
"""
from .base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .base import LRScheduler
from .composite import ChainedScheduler, SequentialLR
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cyclic import CyclicLR, OneCycleLR
from .decay import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler  # its former name

__all__ = [
    'ChainedScheduler', 'ConstantLR', 'CosineAnnealingLR', 'CosineAnnealingWarmRestarts', 'CyclicLR', 'ExponentialLR',
    'LRScheduler', 'LambdaLR', 'LinearLR', 'MultiStepLR', 'MultiplicativeLR', 'OneCycleLR', 'PolynomialLR',
    'ReduceLROnPlateau', 'SequentialLR', 'StepLR']
