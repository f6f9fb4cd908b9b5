"""PyTorch's import path of the functions of torch.masked."""
from ._masks import axes as _canonical_dim  # noqa: F401
from ._reductions import *  # noqa: F403
from ._reductions import __all__ as _reductions
from ._scans import *  # noqa: F403
from ._scans import __all__ as _scans

__all__ = [*_reductions, *_scans]
