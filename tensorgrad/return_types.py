"""The named tuples that functions with several results return. https://pytorch.org/docs → torch.return_types"""
from .api.return_types import *  # noqa: F403
from .api.return_types import __all__
