"""Comparison of all that two tensors are but for their values, under PyTorch's names."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["assert_eq", "assert_metadata_eq", "safe_grad", "safe_is_leaf"]


def assert_eq(a: Any, b: Any) -> None:
    """AssertionError unless a and b are equal."""
    if a != b:
        raise AssertionError(f"{a} != {b}")


def safe_is_leaf(t: Any) -> bool:
    """Return True if the tensor is a leaf."""
    return bool(t.is_leaf)


def safe_grad(t: Any) -> Any:
    """Return the gradient; there is no warning where the tensor is no leaf."""
    return t._grad


def assert_metadata_eq(assert_eq: Callable[[Any, Any], None], m1: Any, m2: Any, *, skip_symbolic: bool = False,
                       skip_leaf: bool = False) -> None:
    """Compare dtypes, shapes, strides, flags, bases and gradients of two tensors, each by `assert_eq(a, b)`.

    `skip_symbolic` leaves out shapes, strides and offsets, `skip_leaf` whether the tensors are leaves.
    """
    assert_eq(m1.dtype, m2.dtype)
    if not skip_symbolic:
        assert_eq(m1.shape, m2.shape)
    assert_eq(m1.requires_grad, m2.requires_grad)
    if not skip_leaf:
        assert_eq(m1.is_leaf, m2.is_leaf)
    assert_eq(m1.is_inference(), m2.is_inference())
    assert_eq(m1.is_conj(), m2.is_conj())
    assert_eq(m1.is_neg(), m2.is_neg())
    assert_eq(m1.layout, m2.layout)
    _same_memory(assert_eq, m1, m2, skip_symbolic)
    pairs = [(safe_grad(m1), safe_grad(m2)), (m1._base, m2._base)]
    for a, b in pairs:
        assert_eq(a is None, b is None)
        if a is not None:
            assert_metadata_eq(assert_eq, a, b, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)


def _same_memory(assert_eq: Callable[[Any, Any], None], m1: Any, m2: Any, skip_symbolic: bool) -> None:
    """Compare how the elements are kept: by strides, or by sparse and dense dimensions."""
    if m1._storage.dense is not None:
        assert_eq((m1.sparse_dim(), m1.dense_dim()), (m2.sparse_dim(), m2.dense_dim()))
    elif not skip_symbolic:
        assert_eq((m1.stride(), m1.storage_offset()), (m2.stride(), m2.storage_offset()))
