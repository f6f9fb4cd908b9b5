"""torch.sparse.as_sparse_gradcheck: gradients of functions of sparse tensors, checked."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ..api._sparse import rules
from ..api.sparse_methods import table
from ..core.dispatch import xp
from ..storage.sparse import Coo, pattern_of

Function = TypeVar("Function", bound=Callable[..., Any])


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """Extend a gradcheck to functions that take or return sparse tensors.

    The values of a sparse input vary, with masked=True; without it the zeros do, too. A sparse result counts as the
    dense one. https://pytorch.org/docs → torch.sparse.as_sparse_gradcheck

    >>> import tensorgrad as torch
    >>> check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    >>> check(lambda x: x * x, torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_())
    True
    """
    @wraps(gradcheck)
    def checked(func: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        masked = kwargs.pop("masked", False)
        inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        patterns = [_pattern(x, masked) for x in inputs]
        flat = tuple(x if p is None else _varied(x, p) for x, p in zip(inputs, patterns, strict=True))

        def of_values(*given: Any) -> Any:
            made = [x if p is None else xp.sparse_tensor(x, pattern=p) for x, p in zip(given, patterns, strict=True)]
            found = func(*made)
            return tuple(map(_dense, found)) if isinstance(found, (list, tuple)) else _dense(found)
        return gradcheck(of_values, flat, *args, **kwargs)
    return checked


def takes_sparse(gradcheck: Function) -> Function:
    """Decorate a gradcheck such that it is one of sparse tensors, too, where an input is sparse."""
    of_sparse = as_sparse_gradcheck(gradcheck)

    @wraps(gradcheck)
    def checked(func: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        given = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        check = gradcheck if all(pattern_of(x) is None for x in given) else of_sparse
        return check(func, inputs, *args, **kwargs)
    return checked  # type: ignore[return-value]


def _pattern(x: Any, masked: bool) -> Any:
    """Return the pattern of the values to vary: the input's own, or one of all places in its layout."""
    from ..storage.sparse_patterns import converted
    own = pattern_of(x)
    if own is None or masked:
        return own
    module, sizes = own.backend.module, own.shape[:own.sparse_dim]
    everywhere = module.indices(sizes, dtype="int64").reshape(len(sizes), -1)
    return converted(Coo(everywhere, own.shape, own.backend, True), own.layout, getattr(own, "blocksize", None))


def _varied(x: Any, pattern: Any) -> Any:
    at = rules().at(table(x), x.detach(), pattern)
    return xp.sparse_values(at, pattern=pattern, own=pattern).requires_grad_(x.requires_grad)


def _dense(x: Any) -> Any:
    return x.to_dense() if pattern_of(x) is not None else x
