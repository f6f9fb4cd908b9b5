"""Helpers of training programs: arguments, names, numbers, timers, nested structures and shapes."""
from __future__ import annotations

from .. import shapes as _shapes
from .. import structures as _structures
from ..shapes import *
from ..structures import *
from . import arguments as _arguments
from . import general as _general
from . import numeric as _numeric
from . import trackers as _trackers
from .arguments import *
from .general import *
from .numeric import *
from .trackers import *

__all__ = [name for part in (_structures, _shapes, _arguments, _general, _numeric, _trackers) for name in part.__all__]
