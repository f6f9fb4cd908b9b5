"""No call of a compiled kernel accesses memory outside of its arrays: native/check.c verifies calls by
native/kernels.rows."""
import sys

import numpy as np
import pytest
from support import ROOT, cpu_only

from tensorgrad.runtime.native import native

pytestmark = [cpu_only, pytest.mark.skipif(native is None, reason="the kernels are not built")]
sys.path.insert(0, str(ROOT / "native"))
import rows  # noqa: E402


def floats(*shape):
    return np.ones(shape, np.float32)


def lstm(**changed):
    """A call of the LSTM's kernel: 6 rows of 3 steps, a batch of 2, width 4."""
    order = np.array([[0, 2], [2, 2], [4, 2]])
    given = {"z": floats(6, 16), "weight": floats(16, 4), "h": floats(2, 2, 4), "c": floats(2, 4), "y": floats(6, 4),
             "before": floats(6, 4), "cells": floats(6, 4), "tanhs": floats(6, 4), "order": order} | changed
    return native.lstm(*given.values())


def test_a_call_that_fits_is_made():
    assert lstm() is None


@pytest.mark.parametrize("name, shape", [("weight", (12, 4)), ("weight", (16, 5)), ("h", (1, 2, 4)), ("c", (3, 4)),
                                         ("y", (5, 4)), ("tanhs", (6, 3))])
def test_a_shape_that_does_not_fit_names_the_argument(name, shape):
    with pytest.raises(ValueError, match=rf"lstm: {name} has the shape \({shape[0]}, .*which is not .* with .*width = "
                                         rf"4"):
        lstm(**{name: floats(*shape)})


@pytest.mark.parametrize("order", [[[0, 3], [2, 2]], [[-1, 2]], [[5, 2]], [[0, -1]], [[2 ** 62, 2]], [[-2 ** 63, 2]]])
def test_values_that_a_kernel_goes_by_are_looked_at(order):
    with pytest.raises(ValueError, match="lstm: this does not hold: all_steps_within"):
        lstm(order=np.array(order))


@pytest.mark.parametrize("name, value", [
    ("z", np.ones((6, 16))), ("h", np.asfortranarray(floats(2, 2, 4))), ("c", floats(0, 4)),
    ("order", np.ones((3, 2), np.int32)), ("y", np.broadcast_to(np.float32(1), (6, 4))), ("weight", None),
    ("cells", "text"),
    ("z", floats(6, 16).astype(">f4"))])
def test_what_is_not_served_is_refused(name, value):
    assert lstm(**{name: value}) is NotImplemented


def test_memory_that_is_written_is_nobody_elses():
    y = floats(7, 4)
    assert lstm(y=y[:6], before=y[1:]) is NotImplemented
    x = floats(8)
    assert native.map_relu(x, x) is None and native.map_relu(x[:7], x[1:]) is NotImplemented


def test_unaligned_memory_is_refused():
    memory = np.zeros(33, np.uint8)
    assert native.map_relu(memory[1:33].view(np.float32), floats(8)) is NotImplemented


@pytest.mark.parametrize("steps, fits", [((4, 1), True), ((5, 1), False), ((4, 2), False), ((0, 1), True),
                                         ((-4, 1), False), ((2 ** 39, 1), False)])
def test_steps_stay_within_the_array(steps, fits):
    call = (floats(3, 4), floats(4, 5), floats(3, 5), None, None, 3, 5, 4, 1, 1, 0, 0, *steps, 0, 0, 5, 1, 0)
    if fits:
        assert native.matmul(*call) is None
    else:
        with pytest.raises(ValueError, match="matmul: a has the shape"):
            native.matmul(*call)


def test_steps_backwards():
    a, b, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.eye(4, dtype=np.float32), floats(3, 4)
    assert native.matmul(a[::-1], b, out, None, None, 3, 4, 4, 1, 1, 0, 0, -4, 1, 0, 0, 4, 1, 0) is None
    assert (out == a[::-1]).all()


@pytest.mark.parametrize("number", [0, -1, 2 ** 40, 2 ** 63, -2 ** 200])
def test_numbers_out_of_range_are_refused(number):
    x = floats(4)
    assert native.softmax(x, floats(4), 1, number, 1, 0) is NotImplemented
    assert native.softmax(x, floats(4), 1, 4, 1, 2) is NotImplemented


@pytest.mark.parametrize("call", [(), (1,), (1, 2, 3), ("x",) * 6, (None,) * 40])
def test_other_arguments(call):
    with pytest.raises((TypeError, ValueError)):
        native.softmax(*call)


def test_kernels_that_would_write_nothing_or_read_what_is_not_there():
    x = floats(6, 4)
    with pytest.raises(ValueError, match=r"gx \|\| gw"):
        native.row_norm_back(x, x, floats(6), floats(6), None, None, None, None, 6, 4)
    with pytest.raises(ValueError, match="kind != 1"):
        native.reduce(x, None, floats(4), 1, 6, 4, 1, 1.0)
    with pytest.raises(ValueError, match="this does not hold"):
        native.window_sum(x, floats(6, 4), 1, 6, 4, 2 ** 39, 1, 6, 4, 1, 1, 0, 0, 1, 1, 1.0)
    with pytest.raises(ValueError, match="copy: x has the shape"):                   # steps that come to 0 in 64 bits
        native.copy(x, floats(24), *(2 ** 39,) * 4, 1, *(2 ** 23,) * 4, 1, *(0,) * 5)


def test_what_takes_numpys_own_objects_looks_at_them():
    for wrong in (1, True, native.lstm.__self__, np._core._multiarray_umath._ARRAY_API):
        assert native.leave_region(wrong) is None            # of no region: nothing to put back
    assert native.use_arrays() is None and native.use_memory() in (True, False)


class Odd:
    """A number that empties a list while it is read."""

    def __init__(self, rows):
        self.rows = rows

    def __float__(self):
        self.rows.clear()
        return 0.5


def test_rows_that_go_away_while_a_number_is_read():
    rows = [(floats(4), None, floats(4))]
    assert native.sgd(rows, 0, Odd(rows), 0.5, 0.0, 1.0) == []


def test_random_numbers_of_another_engine():
    for other in (np.random.PCG64(0), np.random.MT19937(0).capsule, None):
        with pytest.raises(TypeError, match="the engine is no MT19937"):
            native.twister(other)
    state = np.frombuffer(native.twister(np.random.MT19937(0)), np.uint8).copy()      # its generator is gone
    for place in (-1, 625, 2 ** 31 - 1):
        state.view(np.int32)[624] = place
        out = floats(1000)
        assert native.random_uniform(state, out, 1000) is None and (out < 1).all()
    assert native.random_integers(state, np.empty(4, np.int64), 4, 0, 7, 0) is None
    with pytest.raises(ValueError, match="this does not hold"):
        native.random_integers(state, np.empty(4, np.int64), 4, 0, 2 ** 32, 0)


def test_a_map_is_made_of_functions_of_each_element_alone():
    for name in ("lstm", "pull_relu", "sgd"):
        with pytest.raises(ValueError, match=f"{name} is no function of each element"):
            native.map(name, None, 1)


def test_every_kernel_has_a_row():
    names = [name for row in rows.parse(rows.ROWS.read_text()) for name in row.kernels]
    assert len(names) == len(set(names)) and all(hasattr(native, name) for name in names)


@pytest.mark.parametrize("text, problem", [
    ("f\n    x : n\n    n = size\n    n = size", "two things have one name"),
    ("f\n    n = size\n    x : n", "arrays first"),
    ("f\n    x : a*b*c*d*e", "more than 4 sizes"), ("f\n    n = number", "no class of numbers")])
def test_a_row_that_says_nonsense_is_refused(text, problem):
    with pytest.raises(SyntaxError, match=problem):
        rows.parse(text)
