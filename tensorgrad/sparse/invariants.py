"""torch.sparse.check_sparse_tensor_invariants: how thoroughly new sparse tensors are checked."""
from __future__ import annotations

from functools import wraps
from typing import Any

from ..api.sparse import checks


class check_sparse_tensor_invariants:
    """Check new sparse tensors for all that their layout promises: a context manager, a decorator, or for good.

    Indices out of range are errors in any case; this asks for those of a row to be in order and distinct, too.
    https://pytorch.org/docs → torch.sparse.check_sparse_tensor_invariants

    >>> import tensorgrad as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse_csr_tensor([0, 2], [1, 0], [1., 2.], (1, 2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: `col_indices[...] for all i = 1, ..., nrows are sorted and distinct ...` is not satisfied.
    """

    def __init__(self, enable: bool = True) -> None:
        self.state, self.saved = enable, None

    saved: bool | None

    @staticmethod
    def is_enabled() -> bool:
        """Return True if new sparse tensors are checked for all."""
        return checks["on"]

    @staticmethod
    def enable() -> None:
        """Check them from now on."""
        checks["on"] = True

    @staticmethod
    def disable() -> None:
        """Check only what makes them safe to use."""
        checks["on"] = False

    def __enter__(self) -> None:
        if self.saved is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager "
                               "instance for context nesting.")
        self.saved = checks["on"]
        checks["on"] = self.state

    def __exit__(self, *exception: object) -> None:
        assert self.saved is not None
        checks["on"], self.saved = self.saved, None

    def __call__(self, function: Any) -> Any:
        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)
        return checked
