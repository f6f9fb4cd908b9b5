"""torch.sparse: tensors are strided. https://pytorch.org/docs/stable/sparse.html"""
from contextlib import ContextDecorator

from .messages.unsupported import unsupported

_NAMES = ("addmm as_sparse_gradcheck log_softmax mm sampled_addmm softmax spdiags "
          "spsolve sum to_sparse_semi_structured")
globals().update(unsupported(_NAMES, "torch.sparse", "tensors are strided"))
__all__ = [*_NAMES.split(), "check_sparse_tensor_invariants"]


class check_sparse_tensor_invariants(ContextDecorator):
    """Switch on, or off, checks of the indices of sparse tensors: as a function, a `with` block or a decorator.

    https://pytorch.org/docs → torch.sparse.check_sparse_tensor_invariants
    """

    enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.wanted, self.before = enable, []           # type: ignore[var-annotated]

    @classmethod
    def is_enabled(cls) -> bool:
        """Return True if the indices of new sparse tensors are checked."""
        return check_sparse_tensor_invariants.enabled

    @classmethod
    def enable(cls) -> None:
        """Check the indices of new sparse tensors from now on."""
        check_sparse_tensor_invariants.enabled = True

    @classmethod
    def disable(cls) -> None:
        """Do not check the indices of new sparse tensors from now on."""
        check_sparse_tensor_invariants.enabled = False

    def __enter__(self) -> None:
        self.before.append(check_sparse_tensor_invariants.enabled)
        check_sparse_tensor_invariants.enabled = self.wanted

    def __exit__(self, *exception: object) -> None:
        check_sparse_tensor_invariants.enabled = self.before.pop()
