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


def test_methods_that_ask_for_overrides_are_copied_and_pickled_by_name():
    class Overriding(tensorgrad.Tensor):
        """Defining the first class that overrides functions replaces methods by forms that call overrides."""

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    for method in (tensorgrad.Tensor.__add__, tensorgrad.Tensor.exp):
        assert copy.deepcopy(method) is method
        assert pickle.loads(pickle.dumps(method)) == method
