"""Functions of tensors beside PyTorch's: results and gradients.

    python -m unittest -v tests/test_ops.py
    DEVICE=cuda SHOW_DIFF=1 python -m unittest discover -s tests -p "test_ops.py"
"""
import os
import sys
import tracemalloc
import unittest
import warnings
from itertools import permutations, product

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "common"))

import numpy as np
from parameterized import parameterized
from parity import DEVICE, alike, close, needs_torch, normal, ours, theirs, uniform, values

import tensorgrad

SHAPES = [(128,), (32, 128), (8, 16, 32), (4, 8, 16, 32)]
ARITHMETIC = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
              "div": lambda a, b: a / b}
BROADCAST = [((3, 4), (4,)), ((4,), (3, 4)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((1,), (2, 3)), ((), (2, 3)),
             ((2, 1, 4), (5, 1, 3, 1)),
             ((0, 3), (1, 3))]
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")


def named(function, number, parameters):
    """A test's name, with its parameters."""
    text = "_".join(str(p) for p in parameters.args)
    return f"{function.__name__}_{number}_{parameterized.to_safe_name(text)}"


def each(*lists):
    """A test for every combination."""
    return parameterized.expand(list(product(*lists)), name_func=named)


@needs_torch
class TestArithmetic(unittest.TestCase):
    @each(ARITHMETIC, SHAPES)
    def test_same_shapes(self, name, shape):
        alike(lambda _, a, b: ARITHMETIC[name](a, b), normal(*shape), uniform(*shape, low=0.5, high=2, seed=1))

    @each(ARITHMETIC, BROADCAST)
    def test_broadcasting(self, name, shapes):
        a, b = normal(*shapes[0]), uniform(*shapes[1], low=0.5, high=2, seed=1)
        alike(lambda _, a, b: ARITHMETIC[name](a, b), a, b)

    @each(ARITHMETIC, (2, 2.5))
    def test_numbers_on_either_side(self, name, number):
        alike(lambda _, a: (ARITHMETIC[name](a, number), ARITHMETIC[name](number, a)), uniform(5, low=0.5, high=2))

    @each(ARITHMETIC, DTYPES, DTYPES)
    def test_promotion(self, name, one, other):
        a, b = np.array([1, 0, 1]).astype(one), np.array([1, 1, 1]).astype(other)
        if name == "sub" and "bool" in (one, other):
            with self.assertRaisesRegex(RuntimeError, "Subtraction, the `-` operator, with"):
                ours(a) - ours(b)
        else:
            alike(lambda _, a, b: ARITHMETIC[name](a, b).float(), a, b)
            self.assertEqual(str(ARITHMETIC[name](ours(a), ours(b)).dtype),
                             str(ARITHMETIC[name](theirs(a), theirs(b)).dtype))

    @each(ARITHMETIC, DTYPES, (2, 1.5, True))
    def test_promotion_with_numbers(self, name, dtype, number):
        a = np.array([1, 0, 1]).astype(dtype)
        if name == "sub" and (dtype == "bool" or number is True):
            with self.assertRaisesRegex(RuntimeError, "Subtraction, the `-` operator, with"):
                ours(a) - number
        else:
            self.assertEqual(str(ARITHMETIC[name](ours(a), number).dtype),
                             str(ARITHMETIC[name](theirs(a), number).dtype))
            close(ARITHMETIC[name](ours(a), number), ARITHMETIC[name](theirs(a), number), 1e-3)

    def test_plus_equals_writes_in_place(self):
        x = ours([1.0, 2.0])
        y = x
        y += 1
        self.assertEqual(x.tolist(), [2.0, 3.0])

    @each((2.7, 0.5, 0, 2, 3, -1, -0.5, 1), SHAPES[:3])
    def test_powers(self, exponent, shape):
        alike(lambda _, a: a ** exponent, uniform(*shape, low=0.1, high=2))

    def test_powers_of_tensors(self):
        alike(lambda _, a, b: a ** b, uniform(3, 4, low=0.1, high=2), normal(4, seed=1))
        alike(lambda _, b: 2 ** b, normal(3, 4))
        alike(lambda _, b: 0 ** b, np.array([0.0, 1.0, 2.0], "float32"))
        alike(lambda _, a, b: a ** b, np.array([0.0, 0.0, 2.0], "float32"), np.array([0.0, 1.0, 0.0], "float32"))

    def test_power_zero_has_no_slope(self):
        x = ours([0.0, 2.0], True)
        (x ** 0).sum().backward()
        self.assertEqual(x.grad.tolist(), [0.0, 0.0])

    @each(SHAPES)
    def test_negation(self, shape):
        alike(lambda _, a: -a, normal(*shape))

    def test_inversion(self):
        self.assertEqual((~ours([True, False])).tolist(), [False, True])
        self.assertEqual((~ours([0, 5, -3])).tolist(), [-1, -6, 2])
        with self.assertRaises(TypeError):
            ~ours([1.0])


@needs_torch
class TestElementwise(unittest.TestCase):
    @each(("sqrt", "exp", "log", "relu", "sigmoid", "tanh", "abs", "sin", "cos", "rsqrt", "reciprocal", "square"),
          SHAPES)
    def test_functions(self, name, shape):
        alike(lambda _, a: getattr(a, name)(), uniform(*shape, low=0.1))
        alike(lambda engine, a: getattr(engine, name)(a), uniform(*shape, low=0.1))

    def test_relu_at_its_bend(self):
        alike(lambda _, a: a.relu(), np.array([-1.0, -0.0, 0.0, 2.0, np.nan, np.inf, -np.inf], "float32"))

    def test_sigmoid_of_large_numbers(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(ours([-1000.0, 1000.0]).sigmoid().tolist(), [0.0, 1.0])

    @each(range(1, 5), range(-4, 4))
    def test_softmax(self, ndim, dim):
        shape = SHAPES[ndim - 1]
        if -ndim <= dim < ndim:
            alike(lambda _, a: a.softmax(dim), normal(*shape))
            alike(lambda _, a: a.log_softmax(dim), normal(*shape))
        else:
            with self.assertRaisesRegex(IndexError, "Dimension out of range"):
                ours(normal(*shape)).softmax(dim)

    def test_softmax_of_large_numbers(self):
        self.assertEqual(ours([1000.0, 1000.0]).softmax(0).tolist(), [0.5, 0.5])

    @unittest.skipIf(DEVICE != "cpu", "main memory is what is measured")
    def test_softmax_gradient_needs_little_memory(self):
        x = ours(normal(1024, 512), True)
        y, g = x.softmax(1), ours(normal(1024, 512, seed=1))
        tracemalloc.start()
        y.backward(g)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertLess(peak, 8 * x.nbytes)


REDUCED = [(shape, dim) for shape in SHAPES
           for dim in (None, *range(-len(shape), len(shape)), *((0, -1), tuple(range(len(shape))))[len(shape) < 2:])]


@needs_torch
class TestReductions(unittest.TestCase):
    @each(("sum", "mean", "amax", "amin", "std", "var"), REDUCED, (False, True))
    def test_reductions(self, name, reduced, keepdim):
        shape, dim = reduced
        if dim is None and keepdim:
            dim = tuple(range(len(shape)))
        arguments = {} if dim is None else {"dim": dim, "keepdim": keepdim}
        alike(lambda _, a: getattr(a, name)(**arguments), normal(*shape), tolerance=1e-4)

    @each(("max", "min"), REDUCED, (False, True))
    def test_extremes(self, name, reduced, keepdim):
        shape, dim = reduced
        if isinstance(dim, tuple):
            with self.assertRaises(TypeError):
                getattr(ours(normal(*shape)), name)(dim)
        elif dim is None:
            alike(lambda _, a: getattr(a, name)(), normal(*shape))
        else:
            alike(lambda _, a: getattr(a, name)(dim, keepdim), normal(*shape))
            found = getattr(ours(normal(*shape)), name)(dim=dim, keepdim=keepdim)
            self.assertIs(found.values, found[0])
            self.assertIs(found.indices, found[1])

    @each(("max", "min"))
    def test_extremes_out_of_range(self, name):
        for dim in (2, -3):
            with self.assertRaisesRegex(IndexError, "Dimension out of range"):
                getattr(ours(normal(3, 4)), name)(dim)

    @each(("max", "min", "amax", "amin"))
    def test_ties(self, name):
        tied = np.array([[1, 3, 3, 1], [2, 2, 2, 2]], "float32")
        alike(lambda _, a: getattr(a, name)(), tied)
        alike(lambda _, a: getattr(a, name)(1), tied)

    @each(("sum", "mean", "max", "argmax", "prod", "any", "all"), DTYPES)
    def test_dtypes(self, name, dtype):
        if name == "mean" and np.dtype(dtype).kind != "f" or (name, dtype) == ("argmax", "bool"):
            with self.assertRaisesRegex(RuntimeError, name):
                getattr(ours(np.ones(3, dtype)), name)()
        else:
            close(getattr(ours(np.ones(3, dtype)), name)(), getattr(theirs(np.ones(3, dtype)), name)(), 0)


PRODUCTS = [((4, 5), (5, 6)), ((16, 32), (32, 8)), ((2, 4, 5), (2, 5, 6)), ((2, 4, 5), (5, 6)), ((4, 5), (2, 5, 6)),
            ((3, 2, 4, 5), (3, 2, 5, 6)), ((3, 2, 4, 5), (2, 5, 6)), ((3, 2, 4, 5), (5, 6)), ((4, 5), (3, 2, 5, 6)),
            ((2, 4, 5), (3, 2, 5, 6)), ((2, 3, 2, 4, 5), (2, 3, 2, 5, 6)), ((2, 3, 2, 4, 5), (5, 6)),
            ((4, 5), (2, 3, 2, 5, 6)), ((2, 3, 2, 4, 5), (3, 2, 5, 6)), ((2, 4, 5), (2, 3, 2, 5, 6)),
            ((1, 2, 3, 4), (5, 1, 4, 6)), ((5,), (5,)), ((5,), (5, 6)), ((4, 5), (5,)), ((5,), (2, 5, 6)),
            ((2, 4, 5), (5,)), ((3, 2, 4, 5), (5,)),
            ((5,), (3, 2, 5, 6)), ((0, 5), (5, 6))]


@needs_torch
class TestProducts(unittest.TestCase):
    @each(PRODUCTS)
    def test_matmul(self, shapes):
        a, b = normal(*shapes[0]), normal(*shapes[1], seed=1)
        alike(lambda _, a, b: a.matmul(b), a, b, tolerance=1e-4)
        alike(lambda engine, a, b: (a @ b, engine.matmul(a, b)), a, b, tolerance=1e-4)

    @each([((4, 5), (4, 5)), ((5,), (4,)), ((), (5,)), ((2, 4, 5), (3, 5, 6))])
    def test_shapes_that_do_not_fit(self, shapes):
        a, b = normal(*shapes[0]), normal(*shapes[1])
        with self.assertRaises(RuntimeError) as expected:
            theirs(a) @ theirs(b)
        with self.assertRaises(RuntimeError) as found:
            ours(a) @ ours(b)
        self.assertEqual(str(found.exception).split("\n")[0], str(expected.exception).split("\n")[0])


JOINED = [([(3,), (2,)], 0), ([(2, 3), (1, 3)], 0), ([(2, 3), (2, 1)], 1), ([(2, 3), (2, 1)], -1), ([(2, 3)], 0),
          ([(2, 3), (0, 3), (1, 3)], 0), ([(2, 3, 4), (2, 5, 4)], 1), ([(2, 3, 4), (2, 3, 1), (2, 3, 2)], 2),
          ([(2, 3, 4), (1, 3, 4)], -3),
          ([(1, 2, 3, 4), (1, 2, 3, 1)], 3),
          ([(1, 2, 3, 4), (1, 2, 5, 4)], -2)]


@needs_torch
class TestShapes(unittest.TestCase):
    @each([((12,), (3, 4)), ((3, 4), (12,)), ((3, 4), (-1,)), ((3, 4), (2, -1)), ((2, 3, 4), (6, 4)),
           ((2, 3, 4), (2, 2, -1)), ((2, 3, 4), (4, 3, 2)),
           ((1,), ()), ((), (1, 1))])
    def test_reshape(self, shapes):
        alike(lambda _, a: a.reshape(*shapes[1] or [()]), normal(*shapes[0]))
        alike(lambda _, a: a.reshape(shapes[1]), normal(*shapes[0]))

    @each(list(permutations(range(4))))
    def test_permute(self, dims):
        alike(lambda _, a: a.permute(*dims), normal(2, 3, 4, 5))
        alike(lambda _, a: a.permute([d - 4 for d in dims]), normal(2, 3, 4, 5))

    @each([((2, 3), 1, 0), ((2, 3, 4), 0, 1), ((2, 3, 4), -1, 0), ((2, 3, 4, 5), 1, -2), ((3,), 0, -1), ((), 0, -1)])
    def test_transpose(self, case):
        shape, one, other = case
        alike(lambda _, a: a.transpose(one, other), normal(*shape))

    @each([((1, 3), 0), ((1, 3), 1), ((2, 1, 3, 1), 1), ((2, 1, 3, 1), -1), ((2, 1, 3, 1), 0), ((2, 1, 3, 1), None),
           ((1,), 0), ((2, 1, 1), (1, 2))])
    def test_squeeze(self, case):
        shape, dim = case
        alike(lambda _, a: a.squeeze() if dim is None else a.squeeze(dim), normal(*shape))

    @each([(shape, dim) for shape in [(), (3,), (2, 3), (2, 3, 4)] for dim in range(-len(shape) - 1, len(shape) + 1)])
    def test_unsqueeze(self, case):
        shape, dim = case
        alike(lambda _, a: a.unsqueeze(dim), normal(*shape))

    def test_dims_out_of_range(self):
        x = ours(normal(2, 3))
        for action in (lambda: x.unsqueeze(3), lambda: x.unsqueeze(-4), lambda: x.squeeze(2),
                       lambda: x.transpose(0, 2)):
            with self.assertRaisesRegex(IndexError, "Dimension out of range"):
                action()

    @each(JOINED)
    def test_concatenation(self, case):
        shapes, dim = case
        arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
        for name in ("cat", "concat", "concatenate"):
            alike(lambda engine, *xs, name=name: getattr(engine, name)(xs, dim), *arrays)


ALL = slice(None)
INDICES = [2, -1, (1, 2), slice(1, 3), slice(None, None, 2), (ALL, 1), (slice(1, None), slice(0, 2)), [0, 2],
           ([0, 2], [1, 3]), (ALL, [2, 0, 2]), (None, 1), (..., 0), (0, ..., None), (ALL, None, 1), range(2),
           ([[0], [1]], [2, 3])]


@needs_torch
class TestIndexing(unittest.TestCase):
    @each(INDICES)
    def test_reading(self, index):
        alike(lambda _, a: a[index], normal(3, 4, 5))

    @each(INDICES)
    def test_writing(self, index):
        def write(engine, a, v):
            b = a * 1
            b[index] = v
            return b
        alike(write, normal(3, 4, 5), np.float32(7))
        alike(write, normal(3, 4, 5), values(theirs(normal(3, 4, 5, seed=1))[index]))

    def test_tensors_as_indices(self):
        alike(lambda _, a, i: a[i], normal(3, 4), np.array([[2, 0], [1, 1]]))
        alike(lambda _, a, i, j: a[i, j], normal(3, 4), np.array([2, 0]), np.array([[1], [3]]))
        alike(lambda _, a, mask: a[mask], normal(3, 4), normal(3, 4, seed=1) > 0)
        alike(lambda _, a, mask: a[:, mask], normal(3, 4), np.array([True, False, False, True]))
        alike(lambda _, a, i: a[i], normal(3, 4), np.array(1))

    def test_repeated_indices_add_their_gradients(self):
        x = ours([1.0, 2.0, 3.0], True)
        x[[0, 0, 1]].sum().backward()
        self.assertEqual(x.grad.tolist(), [2.0, 1.0, 0.0])

    def test_out_of_range(self):
        x = ours(normal(3, 4))
        for index in (3, -4, (0, 4), (0, 0, 0), [3], slice(None, None, -1)):
            with self.assertRaises((IndexError, ValueError)) as expected:
                theirs(normal(3, 4))[index]
            with self.assertRaises(type(expected.exception)) as found:
                x[index]
            self.assertEqual(str(found.exception), str(expected.exception))

    @each(((5,), (3, 4), (2, 3, 4)), (0.0, float("-inf"), 2.5))
    def test_masked_fill(self, shape, number):
        mask = normal(*shape, seed=1) > 0
        alike(lambda _, a, mask: (a * 2).masked_fill_(mask, number), normal(*shape), mask)
        alike(lambda _, a, mask: a.masked_fill(mask, number), normal(*shape), mask)
        alike(lambda _, a, mask: a.masked_fill(mask, number), normal(*shape), mask[..., :1])

    def test_masked_fill_of_a_leaf(self):
        with self.assertRaisesRegex(RuntimeError,
                                    "a leaf Variable that requires grad is being used in an in-place operation"):
            ours([1.0, 2.0], True).masked_fill_(ours([True, False]), 0.0)

    @each([(4,), (2, 3), (2, 1, 3), ()])
    def test_embedding(self, shape):
        index = np.random.default_rng(0).integers(0, 5, shape)
        alike(lambda engine, table, i: engine.nn.functional.embedding(i, table), normal(5, 3), index)

    @unittest.skipIf(DEVICE != "cpu", "on a device, to look at the indices would be to wait for them")
    def test_embedding_out_of_range(self):
        for index in (-1, 5):
            with self.assertRaisesRegex(IndexError, "index out of range in self"):
                tensorgrad.nn.functional.embedding(ours([index]), ours(normal(5, 3)))


CONVOLUTIONS = [  # input, kernel, arguments
    ((1, 1, 5, 5), (1, 1, 3, 3), {}), ((2, 3, 8, 8), (4, 3, 3, 3), {}), ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": 1}),
    ((2, 3, 8, 8), (4, 3, 3, 3), {"stride": 2}), ((2, 3, 8, 8), (4, 3, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 3, 9, 7), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0)}),
    ((2, 3, 9, 7), (4, 3, 2, 4), {"stride": (3, 2), "padding": (0, 2)}),
    ((2, 3, 6, 6), (4, 3, 1, 1), {}), ((2, 3, 6, 6), (4, 3, 6, 6), {}), ((2, 3, 8, 8), (4, 3, 3, 3), {"dilation": 2}),
    ((2, 4, 8, 8), (6, 2, 3, 3), {"groups": 2}), ((2, 4, 8, 8), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
    ((2, 4, 9, 9), (6, 2, 3, 2), {"groups": 2, "stride": 2, "padding": 1, "dilation": (1, 2)}),
    ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": "same"}), ((2, 3, 8, 8), (4, 3, 4, 2), {"padding": "same"}),
    ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": "valid"}), ((3, 8, 8), (4, 3, 3, 3), {}),
]
POOLS = [  # input, kernel, arguments
    ((2, 3, 8, 8), 2, {}), ((2, 3, 8, 8), (2, 4), {}), ((2, 3, 9, 7), 2, {}), ((2, 3, 8, 8), 3, {"stride": 1}),
    ((2, 3, 8, 8), 3, {"stride": 2, "padding": 1}), ((2, 3, 8, 8), 8, {}),
    ((2, 3, 9, 10), (4, 4), {"stride": (2, 1), "padding": (1, 2)}),
    ((2, 3, 9, 7), 3, {"ceil_mode": True}), ((3, 8, 8), 2, {}),
]


@needs_torch
class TestWindows(unittest.TestCase):
    @each(CONVOLUTIONS, (False, True))
    def test_conv2d(self, case, has_bias):
        shape, kernel, arguments = case
        biases = [normal(kernel[0], seed=2)] if has_bias else []
        with warnings.catch_warnings():          # PyTorch: even kernels with padding='same' cost a copy
            warnings.simplefilter("ignore")
            alike(lambda engine, x, w, *b: engine.nn.functional.conv2d(x, w, *b, **arguments),
                  normal(*shape), normal(*kernel, seed=1), *biases, tolerance=1e-3)

    @each(POOLS)
    def test_max_pool2d(self, case):
        shape, kernel, arguments = case
        alike(lambda engine, x: engine.nn.functional.max_pool2d(x, kernel, **arguments), normal(*shape), tolerance=1e-4)
        alike(lambda engine, x: engine.nn.functional.max_pool2d(x, kernel, return_indices=True, **arguments),
              normal(*shape), tolerance=1e-4)

    def test_max_pool2d_gives_ties_to_the_first(self):
        alike(lambda engine, x: engine.nn.functional.max_pool2d(x, 2), np.ones((1, 1, 4, 4), "float32"))

    @each([*POOLS, ((2, 3, 8, 8), 3, {"stride": 2, "padding": 1, "count_include_pad": False}),
           ((2, 3, 8, 8), 2, {"divisor_override": 3})])
    def test_avg_pool2d(self, case):
        shape, kernel, arguments = case
        alike(lambda engine, x: engine.nn.functional.avg_pool2d(x, kernel, **arguments), normal(*shape), tolerance=1e-4)


if __name__ == "__main__":
    unittest.main()
