"""Functions and classes that pickles and packages import from torch._utils."""
from .nn.parallel._errors import ExceptionWrapper, KeyErrorMessage
from .nn.parameter import _rebuild_parameter, _rebuild_parameter_with_state
from .serialization._rebuild import _sparse as _rebuild_sparse_tensor
from .serialization._rebuild import _tensor as _rebuild_tensor
from .serialization._rebuild import _tensor_v2 as _rebuild_tensor_v2
from .serialization._rebuild import _tensor_v3 as _rebuild_tensor_v3

__all__ = ["ExceptionWrapper", "KeyErrorMessage", "_flatten_dense_tensors", "_rebuild_parameter",
           "_rebuild_parameter_with_state", "_rebuild_sparse_tensor", "_rebuild_tensor", "_rebuild_tensor_v2",
           "_rebuild_tensor_v3", "_unflatten_dense_tensors"]


def _flatten_dense_tensors(tensors):
    """Concatenate all elements to one vector."""
    from .api import FUNCTIONS
    return FUNCTIONS["cat"]([t.contiguous().view(-1) for t in tensors], dim=0)


def _unflatten_dense_tensors(flat, tensors):
    """Pieces of a vector in the shapes of tensors."""
    pieces, offset = [], 0
    for t in tensors:
        pieces.append(flat.narrow(0, offset, t.numel()).view(t.shape))
        offset += t.numel()
    return tuple(pieces)


def _is_privateuse1_backend_available():
    """Return False: no package has brought a backend for the device type that PyTorch leaves to others."""
    return False
