"""Shapes by arithmetic, beside those of the real functions; unknown sizes."""
import itertools
import random

import numpy as np
import pytest

import tensorgrad as torch
from tensorgrad.layers import shapes
from tensorgrad.layers.shapes import (
    ShapeSlice,
    get_dim,
    get_dim_from_shape,
    get_shape,
    is_sequence_shape,
    is_simple_shape,
    is_valid_shape,
    numel,
    print_shape,
    shape_convnd,
    shape_equals,
    shape_poolnd,
    shape_slice,
    shape_transpose_convnd,
    shape_view,
)

try:
    import torch as real  # what shapes are compared with
except ImportError:
    real = torch
nn = real.nn
oracle = pytest.mark.skipif(real is torch, reason="PyTorch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")


def test_what_is_a_shape():
    simple = [(2, 3), [2, 3], (None, 3), [None], (1,), torch.Size([4, 5]), (), (np.int64(3),)]
    sequences = [[(2, 3)], ((2, 3), (4,)), [[(2,), [3]], (None,)], [{"a": (2,)}]]
    mappings = [{"a": (2, 3)}, {"a": [(2,), {"b": (None,)}]}]
    wrong = [(2, 0), (2, -1), (2.0,), (True,), 3, None, "23", [(2,), 3], [(2, 0)], {"a": 3}, {}, {"a": {}}]
    for shape in simple:
        assert is_simple_shape(shape) and is_valid_shape(shape)
    for shape in sequences:
        assert is_sequence_shape(shape) and not is_simple_shape(shape) and is_valid_shape(shape)
    for shape in mappings:
        assert is_valid_shape(shape) and not is_sequence_shape(shape) and not is_simple_shape(shape)
    for shape in wrong:
        assert not is_simple_shape(shape) and not is_sequence_shape(shape) and not is_valid_shape(shape)


def test_questions(capsys):
    nest = {"a": torch.ones(2, 3), "b": [torch.ones(4), (torch.tensor(1.), None)]}
    assert get_shape(nest) == {"a": (2, 3), "b": [(4,), ((), None)]}
    assert get_dim(nest) == {"a": 2, "b": [1, (0, None)]} and get_dim(torch.ones(2, 3)) == 2
    assert get_dim_from_shape((None, 3)) == 2 and get_dim_from_shape({"x": [(2,), (3, 4)]}) == {"x": [1, 2]}
    assert (numel(torch.ones(2, 3)) == 6 and numel(nest) == 11 and numel((2, None)) is None
            and numel([(2, 3), {"a": (5,)}]) == 11)
    print_shape(nest, torch.ones(2))
    assert capsys.readouterr().out == "{'a': (2, 3), 'b': [(4,), ((), None)]} (2,)\n"
    with pytest.raises(TypeError, match=r"structure\['a'\] is neither"):
        get_shape({"a": 3})


def test_equal_shapes():
    assert shape_equals((2, 3), [2, 3]) and shape_equals((None, 3), (None, 3)) and not shape_equals((None, 3), (2, 3))
    assert (not shape_equals((2, 3), (2, 3, 1)) and not shape_equals((2, 3), [(2, 3)])
            and not shape_equals({"a": (2,)}, {"b": (2,)}))
    assert (shape_equals((2, 3), (None, 3), ignore_batch_dim=True)
            and not shape_equals((2, 3), (2, 4), ignore_batch_dim=True))
    assert shape_equals([(2, 3), {"x": (4,)}], [(5, 3), {"x": (6,)}], ignore_batch_dim=True)
    assert not shape_equals((2, 3), (2, 3, 1), ignore_batch_dim=True)


# ── slices ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SLICES = [
    0, -1, slice(None), slice(2, None), slice(None, -2), slice(0, 0), slice(5, 2), slice(None, None, 3),
    slice(-3, None, 2), None, ..., True, False, (slice(None), 1), (0, ..., 0), (..., slice(1, 3)), (slice(0, 0), ...),
    (None, ..., None), (slice(1, None, 2), None, slice(None), -1), [0, 2], ([0, 2],), ([0, 1], [1, 2]),
    (slice(None), [1, 1, 0]), ([0, 1], slice(None), [1, 2]), (0, slice(None), [1, 2]), (slice(None), 0, [1, 2]),
    (slice(None), None, [1, 2]), ([[0], [1]], [1, 2]), (slice(None), [0, 1], None, [1, 0]), (..., [0, 1]), ([], ),
    (1, [0, 1], 2), (..., ...),
    (..., 0, ...),
]


def same_slice(shape, index):
    try:
        expected = tuple(real.empty(shape)[index].shape)
    except (IndexError, ValueError) as error:
        with pytest.raises(type(error)):
            shape_slice(shape, index)
    else:
        assert shape_slice(shape, index) == expected == ShapeSlice(shape)[index], (shape, index)


@pytest.mark.parametrize("shape", [(4, 5, 6), (3, 3, 3), (7, 3, 4, 5), (3,), ()], ids=str)
def test_slices_are_those_of_tensors(shape):
    for index in SLICES:
        same_slice(shape, index)


def test_random_slices():
    rng = random.Random(0)

    def some():
        bound = lambda: rng.choice([None, rng.randint(-6, 6)])
        return rng.choice([rng.randint(-5, 5), slice(bound(), bound(), rng.choice([None, 1, 2, 3])),
                           slice(bound(), bound()), slice(None), None, ...])
    for _ in range(400):
        index = [some() for _ in range(rng.randint(1, 4))]
        if index.count(...) < 2:
            same_slice(tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 4))), tuple(index))


def test_tensors_as_indices():
    shape = (4, 5, 6)
    x = torch.empty(shape)
    mask = torch.zeros(4, 5, dtype=torch.bool)
    mask[1, 2] = mask[3, 3] = mask[0, 0] = True
    for index in [torch.tensor([1, 3]), torch.tensor(2), torch.tensor([[0, 1], [2, 3]]), mask, (mask, slice(1, 3)),
                  mask[:, 0],
                  (slice(None), mask[0]), (torch.tensor([0, 2]), ..., np.array([1, 5]))]:
        assert shape_slice(shape, index) == tuple(x[index].shape)
    for index in [mask[:3], torch.tensor([9]), torch.tensor([0.5]), ([0, 1], [0, 1, 2])]:
        with pytest.raises(IndexError):
            shape_slice(shape, index)


def test_slices_of_sizes_that_are_not_known():
    s = ShapeSlice((None, 3))
    assert s[:, :2] == (None, 2) and s[0] == (3,) and s[5] == (3,) and s[None] == (1, None, 3) and s[..., 0] == (None,)
    assert (s[:] == (None, 3) and s[:0] == (0, 3) and s[1:] == (None, 3) and s[:2] == (None, 3) and s[-1:] == (1, 3)
            and s[::2] == (None, 3))
    assert s[[0, 1, 1]] == (3, 3) and s[:, [0, 1, 1, 2]] == (None, 4) and s[torch.tensor([True, False, True])] == (2, 3)
    for sizes in itertools.product([1, 2, 7], repeat=2):                # what is known is so for every size
        x = torch.empty(sizes[0], 3, sizes[1])
        for index in [i for i in SLICES if i is ... or i is None or isinstance(i, slice)]:
            found = shape_slice((None, 3, None), index)
            assert (len(found) == x[index].dim() and all(n is None or n == m
                                                         for n, m in zip(found, x[index].shape, strict=True)))


def test_slices_that_cannot_be():
    for shape, index, kind in [((3, 4), (0, 0, 0), IndexError), ((3, 4), 3, IndexError),
                               ((3, 4, 5), (..., 0, ..., 0), IndexError), ((3,), "a", IndexError),
                               ((3,), slice(None, None, -1), ValueError), ((3,), slice(None, None, 0), ValueError),
                               ((), 0, IndexError)]:
        with pytest.raises(kind):
            shape_slice(shape, index)


# ── views ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@oracle
def test_views_are_those_of_tensors():
    sizes = [1, 2, 3, 4, 5, 6, 8, 10, 12, 24, -1, 0, -2]
    x = real.empty(4, 3, 2)
    for target in itertools.chain(itertools.product(sizes, repeat=1), itertools.product(sizes, repeat=2),
                                  itertools.product(sizes[:6] + [-1], repeat=3)):
        try:
            expected = tuple(x.view(target).shape)
        except RuntimeError:
            with pytest.raises(AssertionError, match=r"a tensor of shape \(4, 3, 2\) cannot be viewed as"):
                shape_view((4, 3, 2), *target)
        else:
            assert shape_view((4, 3, 2), *target) == shape_view((4, 3, 2), target) == expected
    assert shape_view([111, 40, 50], 8, 37, -1) == (8, 37, 750) and shape_view((), 1, -1) == (1, 1)


def test_views_of_sizes_that_are_not_known():
    assert shape_view((None, 3, 4), -1, 12) == (None, 12) and shape_view((None, 3, 4), None, -1) == (None, 12)
    assert (shape_view((None, 3, 4), (None, 2, -1)) == (None, 2, 6) and shape_view((None, 3, None), None, -1)
            == (None, None))
    assert shape_view((None, 3), 2, -1) == (2, None) and shape_view((None, 3), 6) == (6,)
    for shape, target in [((None, 3, 4), (None, 5, -1)), ((None, 3, 4), (None, 13)), ((3, 4), (None, 4)),
                          ((None, 3), (7,)), ((None, 3), (-1, -1))]:
        with pytest.raises(AssertionError, match="cannot be viewed"):
            shape_view(shape, *target)


# ── convolutions and pooling ──────────────────────────────────────────────────────────────────────────────────────────

FOR = {n: f"{n}d" for n in (1, 2, 3)}


def options(rng, dim, **choices):
    """Random arguments: a number for all axes, or one for each."""
    pick = lambda values: rng.choice(values) if rng.random() < 0.5 else tuple(rng.choice(values) for _ in range(dim))
    return {name: pick(values) for name, values in choices.items()}


def compare(dim, function, layer, channels, sizes, *, of=real, **kwargs):
    """The shape with and without batch, or that there is none."""
    try:
        expected = tuple(layer(of.empty(2, channels, *sizes)).shape)
    except (RuntimeError, ValueError):
        expected = ()
    # nothing is left after it: no shape of a layer
    has_none = 0 in expected or not expected
    for leading, has_batch in (((channels,), False), ((2, channels), True)):
        if has_none:
            with pytest.raises(AssertionError):
                function((*leading, *sizes), has_batch=has_batch, **kwargs)
        else:
            assert (function((*leading, *sizes), has_batch=has_batch, **kwargs)
                    == expected[0 if has_batch else 1:]), (sizes, kwargs)
    if has_none:
        return 0
    # sizes that are known do not depend on the others
    hidden = tuple(None if i % 2 else n for i, n in enumerate(sizes))
    found = function((None, channels, *hidden), has_batch=True, **kwargs)
    assert found == (None, expected[1], *(None if i % 2 else n for i, n in enumerate(expected[2:])))
    return 1


@oracle
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_convolutions(dim):
    rng = random.Random(dim)
    conv, valid = getattr(nn, f"Conv{dim}d"), 0
    for _ in range(60):
        kwargs = options(rng, dim, kernel_size=[1, 2, 3, 5], stride=[1, 2, 3], padding=[0, 1, 2], dilation=[1, 2])
        kwargs["padding"] = rng.choice([kwargs["padding"], "same", "valid"])
        kwargs["stride"] = 1 if kwargs["padding"] == "same" else kwargs["stride"]
        kwargs["groups"] = rng.choice([1, 2])
        kwargs |= {"out_channels": 4, "bias": False, "padding_mode": "zeros"}
        sizes = [rng.randint(1, 9) for _ in range(dim)]
        valid += compare(dim, getattr(shapes, f"shape_conv{dim}d"), conv(2, **kwargs), 2, sizes, **kwargs)
    assert 20 < valid < 60
    assert (getattr(shapes, f"shape_conv{dim}d")((2, *[5] * dim), 3, 3) == shape_convnd(dim, (2, *[5] * dim), 3, 3)
            == (3, *[3] * dim))


@oracle
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_transposed_convolutions(dim):
    rng = random.Random(dim)
    conv, valid = getattr(nn, f"ConvTranspose{dim}d"), 0
    for _ in range(60):
        kwargs = options(rng, dim, kernel_size=[1, 2, 3, 5], stride=[1, 2, 3], padding=[0, 1, 2], dilation=[1, 2],
                         output_padding=[0, 0, 1])
        kwargs |= {"groups": rng.choice([1, 2]), "out_channels": 4}
        sizes = [rng.randint(1, 5) for _ in range(dim)]
        valid += compare(dim, getattr(shapes, f"shape_transpose_conv{dim}d"), conv(2, **kwargs), 2, sizes, **kwargs)
    assert 20 < valid < 60


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Max", "Avg"])
def test_pooling(dim, kind):
    rng = random.Random(dim)
    pool, valid = getattr(torch.nn, f"{kind}Pool{dim}d"), 0
    function = getattr(shapes, f"shape_{kind.lower()}pool{dim}d")
    for _ in range(100):
        kwargs = options(rng, dim, kernel_size=[1, 2, 3, 5], stride=[1, 2, 3], padding=[0, 1])
        kwargs |= {"ceil_mode": rng.random() < 0.5}
        if rng.random() < 0.3:
            del kwargs["stride"]
        kwargs |= options(rng, dim, dilation=[1, 2]) if kind == "Max" else {"count_include_pad": False}
        valid += compare(dim, function, pool(**kwargs), 2, [rng.randint(1, 9) for _ in range(dim)], of=torch, **kwargs)
    assert 20 < valid < 100


def test_a_pooling_with_everything():
    pool = nn.MaxPool2d(13, stride=(1, 3), dilation=2, padding=(5, 6), return_indices=True)
    out, indices = pool(real.empty(2, 3, 40, 50))
    assert shapes.shape_maxpool2d((2, 3, 40, 50), 13, stride=(1, 3), dilation=2, padding=(5, 6), return_indices=True,
                                  has_batch=True) == (
        tuple(out.shape), tuple(indices.shape))
    assert shape_poolnd(2, (3, 40, 50), 13, stride=(1, 3), dilation=2, padding=(5, 6)) == tuple(out.shape[1:])


@pytest.mark.parametrize("make, message", [
    (lambda: shape_convnd(2, (3, 4, 4), 8, 5), "shape after convolution is invalid"),
    (lambda: shape_convnd(2, (3, 4), 8, 3), "must have 3 sizes"),
    (lambda: shape_convnd(2, (3, 4, 4), 8, 3, has_batch=True), "must have 4 sizes"),
    (lambda: shape_convnd(2, (3, 4, 4), 8, (3, 3, 3)), "but got 4-dimensional input"),
    (lambda: shape_convnd(1, (3, 4), 8, 3, padding="full"), "Invalid padding string 'full'"),
    (lambda: shape_convnd(1, (3, 4), 8, 3, stride=2, padding="same"), "not supported for strided"),
    (lambda: shape_convnd(1, (3, 4), 8, 3, groups=2), "in_channels must be divisible by groups"),
    (lambda: shape_transpose_convnd(1, (3, 4), 8, 3, padding=9), "shape after convolution is invalid"),
    (lambda: shape_transpose_convnd(1, (3, 4), 8, 3, stride=2, output_padding=2),
     "must be smaller than either stride or dilation"),
    (lambda: shape_poolnd(1, (3, 4), 5), "shape after pooling is invalid"),
    (lambda: shape_poolnd(1, (3, 4), 2, padding=2), "at most half of kernel size"),
])
def test_what_cannot_be(make, message):
    with pytest.raises(AssertionError, match=message):
        make()


def test_unknown_sizes_are_large_enough_and_divisible():
    assert shape_convnd(3, (None,) * 5, 8, 100, stride=100, dilation=4, has_batch=True) == (None, 8, None, None, None)
    assert shape_convnd(1, (None, 4), 12, 3, padding=1, groups=3) == (12, 4)
    assert shape_transpose_convnd(1, (6, None), 12, 2, padding=2) == (12, None)
    assert shape_slice((None, None), (slice(None, 1 << 62), 10**6)) == (None,)
    assert shape_slice((None, 4), (slice(None), [True, False, True, True])) == (None, 3)
    # nothing is read: any index is fine, as in PyTorch
    assert shape_slice((None, 4), (slice(0, 0), [9])) == (0, 1)


@pytest.mark.parametrize("make", [
    lambda: shape_poolnd(2, (3, 4, None), (2, 1), padding=2, dilation=3),
    lambda: shapes.shape_maxpool1d((3, 9), 3, padding=2, dilation=3),
    lambda: shape_slice((None, 4), (slice(None), [True, False, True])),
    lambda: shape_view((None, 3), 0, -1)])
def test_unknown_sizes_hide_no_error(make):
    with pytest.raises((AssertionError, IndexError)):
        make()
