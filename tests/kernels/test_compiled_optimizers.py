"""Compiled steps of optimizers (native/optimizers.c, native/optim.inc) beside those on NumPy: many parameters in one
call.
"""
import numpy as np
import pytest
from support import cpu_only

from tensorgrad.kernels import optimizer_compiled, optimizer_numpy
from tensorgrad.runtime.native import native

pytestmark = [cpu_only, pytest.mark.skipif(native is None, reason="the compiled kernels are not there")]

SIZES = [(1,), (15,), (16,), (17,), (), (3, 5), (0,), (100_003,), (300, 70)]
STEPS = {
    "sgd": [dict(lr=0.1, momentum=momentum, dampening=dampening, weight_decay=decay, nesterov=nesterov)
            for momentum, dampening, decay, nesterov in ((0.0, 0.0, 0.0, False), (0.9, 0.5, 0.1, False),
                                                         (0.9, 0.0, 0.1, True))],
    "adam": [dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=decay, decoupled=apart)
             for decay, apart in ((0.0, False), (0.1, False), (0.1, True))]}


def rows(name, dtype="float32", **numbers):
    """A row of arrays for each size: some have no buffer, or no largest square."""
    rng = np.random.default_rng(0)
    made = []
    for i, size in enumerate(SIZES):
        def some(size=size):
            return rng.random(size).astype(dtype)
        if name == "sgd":
            made.append((some(), some() if numbers["momentum"] else None, some()))
        else:
            made.append((some(), some(), some(), some() if i % 2 else None,
                         np.array(i, "float32" if i % 3 else "float64"), some()))
    return made


def copied(rows):
    return [tuple(None if a is None else a.copy() for a in row) for row in rows]


@pytest.mark.parametrize("name, numbers",
                         [(name, numbers) for name, all_numbers in STEPS.items() for numbers in all_numbers])
def test_many_at_once_as_on_numpy(name, numbers):
    given = rows(name, **numbers) + rows(name, "float64", **numbers)
    expected = copied(given)
    assert (getattr(optimizer_compiled, name)(given, **numbers) == getattr(optimizer_numpy, name)(expected, **numbers)
            == [])
    for row, other in zip(given, expected, strict=True):
        for a, b in zip(row, other, strict=True):
            assert a is b is None or a.dtype == b.dtype
            np.testing.assert_allclose(a, b, 2e-6, 1e-7) if a is not None else None


def test_rows_that_do_not_fit_are_left_as_they_are():
    good, numbers = rows("adam")[3], STEPS["adam"][0]
    changes = {0: good[0].astype("float16"), 1: good[1][:-1], 2: np.repeat(good[2], 2)[::2],
               3: good[3].astype("float64"), 4: np.array([3.0]), 5: None}
    bad = [(*good[:i], a, *good[i + 1:]) for i, a in changes.items()]
    frozen = copied([good])[0]
    frozen[1].flags.writeable = False
    given = [*bad, frozen, *copied([good])]
    before = copied(given)
    assert optimizer_compiled.adam(given, **numbers) == list(range(len(bad) + 1))
    for row, other in zip(given[:-1], before, strict=False):
        for a, b in zip(row, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert given[-1][4] == before[-1][4] + 1 and (given[-1][0] != before[-1][0]).all()


@pytest.mark.parametrize("start, left", [(0, [0, 1]), (63, [0, 1]), (64, [])])
def test_what_lies_in_memory_of_another_is_left(start, left):
    memory, numbers = np.ones(128, "float32"), STEPS["sgd"][0]
    grad = np.ones(64, "float32")                                           # read twice, which does no harm
    assert (optimizer_compiled.sgd([(memory[:64], None, grad), (memory[start:start + 64], None, grad)], **numbers)
            == left)
    assert (memory == 1).all() == bool(left)
    assert optimizer_compiled.sgd([(grad, None, grad)], **numbers) == [0]


def test_arguments():
    numbers = (0, 0.0, 0.1, 0.0, 1.0)
    row = (np.ones(2, "float32"), None, np.ones(2, "float32"))
    for wrong in [(), ([row],), ((row,), *numbers), ([row[:2]], *numbers), ([list(row)], *numbers),
                  ([row], 0, 0.0, "a", 0.0, 1.0), ([row], *numbers, 1.0)]:
        with pytest.raises(TypeError):
            native.sgd(*wrong)
    assert native.sgd([], *numbers) == [] and (row[0] == 1).all()
