"""torch.sparse: tensors are strided. https://pytorch.org/docs/stable/sparse.html"""
from .messages.unsupported import unsupported

_NAMES = ("addmm as_sparse_gradcheck check_sparse_tensor_invariants log_softmax mm sampled_addmm softmax spdiags "
          "spsolve sum to_sparse_semi_structured")
globals().update(unsupported(_NAMES, "torch.sparse", "tensors are strided"))
__all__ = _NAMES.split()
