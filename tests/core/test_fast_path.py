"""Operators of Tensor, which the compiled fast path calls, are objects like Python's functions."""
import copy
import pickle

import pytest

import tensorgrad


@pytest.mark.parametrize("name", ["__add__", "__mul__", "__neg__", "__matmul__"])
def test_operators_are_copied_and_pickled_by_name(name):
    operator = getattr(tensorgrad.Tensor, name)
    assert copy.copy(operator) is operator
    assert copy.deepcopy({"op": operator})["op"] is operator
    assert pickle.loads(pickle.dumps(operator)) is operator
