"""The functions of layers. https://pytorch.org/docs/stable/nn.functional.html

>>> import tensorgrad as torch
>>> torch.nn.functional.relu(torch.tensor([-1., 2.]))
tensor([0., 2.])
"""
from .._tensor.torch_function import namespaced as _namespaced
from ..api import conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d  # noqa: F401
from ..api._register import _with_out
from ..core.step_names import naming as _naming
from ..messages.missing_names import missing as _missing
from ..overrides import (  # noqa: F401
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from . import _functions
from . import grad as grad
from ._functions.activation import *  # noqa: F403
from ._functions.attention import *  # noqa: F403
from ._functions.attention import _canonical_mask, _in_projection, _in_projection_packed, _none_or_dtype  # noqa: F401
from ._functions.distance import *  # noqa: F403
from ._functions.dropout import *  # noqa: F403
from ._functions.embedding import *  # noqa: F403
from ._functions.folding import *  # noqa: F403
from ._functions.interpolation import *  # noqa: F403
from ._functions.loss import *  # noqa: F403
from ._functions.normalization import *  # noqa: F403
from ._functions.padding import *  # noqa: F403
from ._functions.pooling import *  # noqa: F403
from ._functions.recurrent import _rnn, _rnn_cell  # noqa: F401
from ._functions.sampling import *  # noqa: F403

_FAMILIES = (_functions.activation, _functions.attention, _functions.distance, _functions.dropout, _functions.embedding,
             _functions.folding, _functions.interpolation, _functions.loss, _functions.normalization,
             _functions.padding,
             _functions.pooling, _functions.sampling)

__all__ = sorted({"conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
                 | {name for family in _FAMILIES for name in family.__all__ if not name.startswith("_")})

_TAKE_OUT = "avg_pool2d avg_pool3d gelu linear logsigmoid softplus softshrink".split()
_FORMS = {_name: _naming(globals()[_name], f"F.{_name}") for _name in [*__all__, "_rnn"]}
_FORMS |= {_name: _with_out(_FORMS[_name]) for _name in _TAKE_OUT}
globals().update(_namespaced(_FORMS, __name__))
_threshold = globals()["threshold"]
_threshold.__name__ = "_threshold"          # as PyTorch's function says
__getattr__ = _missing(__name__)
