"""PyTorch's CPU random numbers, bit for bit: the values, the words they take and the state they leave."""
import copy
import pickle
import warnings
from zlib import crc32

import numpy as np
import pytest

from tensorgrad.api.creation import axes_in_memory
from tensorgrad.dtype import bfloat16
from tensorgrad.generator import DEFAULT_SEED, MANY, Generator, default_generator
from tensorgrad.runtime.small_floats import convert

SIZES = (0, 1, 15, 16, 17, 31, 1000, 100003)
SEEDS = (0, 42, -5)
FLOATS = ("float32", "float64", "float16", "bfloat16")
WHOLE = ("int64", "int32", "int16", "int8", "uint8")
A, NAN, INF = np.array, float("nan"), float("inf")


def seeded(seed=0):
    return Generator().manual_seed(seed)


# ── without PyTorch: numbers that it gave for seed 0 ──────────────────────────────────────────────────────────────

WEIGHTS = A([0.1, 0.2, 0.3, 0.4], np.float32)
LITERALS = {
    "uniform": (lambda g: g.uniform(3), [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]),
    "uniform between": (lambda g: g.uniform(2, -0.1, 0.1), [-0.0007486820104531944, 0.05364435911178589]),
    "uniform doubles": (lambda g: g.uniform(2, dtype="f8"), [0.9700530018065531, 0.707819864399788]),
    "a few normals": (lambda g: g.normal(3), [1.5409960746765137, -0.293428897857666, -2.1787893772125244]),
    "17 normals": (lambda g: g.normal(17)[[0, 1, 16]], [-1.1258398294448853, -1.6959311962127686, 0.9318265914916992]),
    "normal doubles": (lambda g: g.normal(16, dtype="f8")[[0, 8]], [-2.310411800234176, -1.2956271403277857]),
    "integers": (lambda g: g.randint(0, 100, 5), [44, 39, 33, 60, 63]),
    "wide integers": (lambda g: g.randint(0, 1 << 40, 2), [741280623151, 506137267392]),
    "permutation": (lambda g: g.randperm(8), [4, 0, 7, 3, 2, 5, 1, 6]),
    "dropout": (lambda g: g.dropout(6, 0.5), [0, 0, 2, 0, 0, 0]),
    "exponential": (lambda g: g.exponential(2), [3.508326292037964, 1.2303847074508667]),
    "poisson": (lambda g: g.poisson(A([0.5, 3.0, 40.0])), [2, 4, 41]),
    "binomial": (lambda g: g.binomial(A([5.0, 100.0]), A([0.3, 0.6])), [3, 58]),
    "gamma": (lambda g: g.standard_gamma(A([0.3, 2.0], np.float32)), [5.906951628276147e-06, 0.6315405964851379]),
    "race": (lambda g: g.multinomial(WEIGHTS, 3), [2, 1, 3]),
    "lookup": (lambda g: g.multinomial(WEIGHTS, 6, True), [3, 3, 2, 3, 3, 3]),
}


@pytest.mark.parametrize("name", LITERALS)
def test_literals(name):
    draw, expected = LITERALS[name]
    assert draw(seeded()).tolist() == expected


def test_literal_states():
    generator = seeded(7)
    generator.uniform(700)
    generator.normal(3)  # one normal is held back
    assert crc32(generator._state().tobytes()) == 1461202977
    assert crc32(Generator()._state().tobytes()) == 3499555337


def test_seeds():
    generator = Generator()
    assert generator.initial_seed() == DEFAULT_SEED == 67280421310721 and isinstance(default_generator, Generator)
    assert generator.manual_seed(-1) is generator and generator.initial_seed() == 2 ** 64 - 1
    assert generator.seed() == generator.initial_seed() != Generator().seed()
    assert Generator(None).device == Generator("cpu:0").device == Generator().device


@pytest.mark.parametrize("n", [1, MANY - 1, MANY, 3 * MANY])
def test_long_words_are_two_short_ones_each(n):
    one, other = seeded(3), seeded(3)
    high, low = other._words(2 * n).reshape(n, 2).T
    assert (one._longs(n) == (high << np.uint64(32) | low)).all() and (one._state() == other._state()).all()


def test_a_new_seed_forgets_the_normal_held_back():
    generator = seeded(3)
    generator.normal(1)
    assert (generator.manual_seed(3)._state() == seeded(3)._state()).all()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_go_on_alike_and_apart(copied):
    generator = seeded(3)
    generator.normal(5)
    twin = copied(generator)
    expected = generator.normal(5), generator.uniform(3)
    assert twin.normal(5).tolist() == expected[0].tolist() and twin.uniform(3).tolist() == expected[1].tolist()


def test_empty_draws_take_nothing():
    generator = seeded(3)
    before = generator._state()
    for draw in (generator.uniform, generator.normal, generator.exponential, generator.log_normal, generator.randperm):
        assert draw(0).shape == (0,)
    assert generator.poisson(np.empty((0, 2))).shape == (0, 2)
    assert (generator._state() == before).all()


def test_shapes_and_dtypes():
    generator = seeded()
    for draw in (generator.uniform, generator.normal, generator.exponential):
        for dtype in (np.float32, np.float64, np.float16):
            for shape in (5, (), (2, 3), (40, 2)):
                out = draw(shape, dtype=dtype)
                assert type(out) is np.ndarray and out.dtype == dtype and out.flags.c_contiguous and out.flags.writeable
                assert out.shape == ((5,) if shape == 5 else shape)
    scalar = A(0.5, np.float32)
    for out in (generator.bernoulli(scalar), generator.normal_around(scalar, 1.0), generator.poisson(scalar)):
        assert type(out) is np.ndarray and out.shape == ()


# ── beside PyTorch ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def numpy_dtype(name):
    return bfloat16.numpy if name == "bfloat16" else np.dtype(name)


class Pair:
    """A generator of ours and one of PyTorch's, which must stay alike."""

    def __init__(self, torch, seed=0):
        self.torch, self.ours, self.theirs = torch, seeded(seed), torch.Generator().manual_seed(seed)

    def same(self, mine, tensor, *what):
        """Assert that both drew the same bits, and have the same state afterwards."""
        other = to_numpy(tensor)
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape), what
        different = np.flatnonzero(bits(mine) != bits(other))
        assert not different.size, (*what, mine.reshape(-1)[different][:4], other.reshape(-1)[different][:4])
        assert (self.ours._state() == self.theirs.get_state().numpy()).all(), (*what, "state")

    def empty(self, size, dtype):
        """A tensor to be filled, and NumPy's name for its dtype."""
        return self.torch.empty(size, dtype=getattr(self.torch, dtype)), numpy_dtype(dtype)

    def to_torch(self, array):
        if array.dtype == bfloat16.numpy:
            return self.torch.from_numpy(array.view(np.uint16)).view(self.torch.bfloat16)
        return self.torch.from_numpy(array)


def to_numpy(tensor):
    if str(tensor.dtype) == "torch.bfloat16":
        return tensor.view(pytest.importorskip("torch").int16).numpy().view(numpy_dtype("bfloat16"))
    return tensor.numpy()


def bits(array):
    return np.ascontiguousarray(array).reshape(-1).view(f"V{array.itemsize}")


IN_PLACE = {  # Tensor.name_(*args): the arguments and the dtypes
    "uniform": ([(), (-0.3, 0.77), (-0.1, 0.1), (0.1, 0.1), (1000, 1000.5)], (*FLOATS, "complex64", "complex128")),
    "normal": ([(), (0, 0.02), (0.3, 0.7), (3, 1), (3, 0)], (*FLOATS, "complex64", "complex128")),
    "log_normal": ([(), (0.3, 0.7)], FLOATS),
    "exponential": ([(), (0.7,)], FLOATS),
    "cauchy": ([(), (0.3, 0.7)], FLOATS),
    "geometric": ([(0.2,)], FLOATS + WHOLE),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_distributions(torch, name, seed):
    argument_lists, dtypes = IN_PLACE[name]
    pair = Pair(torch, seed)
    for dtype in dtypes:
        for size in SIZES:
            for args in argument_lists:
                tensor, target = pair.empty(size, dtype)
                mine = getattr(pair.ours, name)(size, *args, dtype=target)
                pair.same(mine, getattr(tensor, name + "_")(*args, generator=pair.theirs), size, dtype, args)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scattered_normals(torch, dtype):
    pair = Pair(torch)
    for size in (2, 15, 16, 33, 1001):
        tensor, target = pair.empty((size, 2), dtype)
        mine = pair.ours.normal(size, 0.3, 0.7, target, contiguous=False)
        pair.same(mine, tensor[:, 0].normal_(0.3, 0.7, generator=pair.theirs), size)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, "bool"])
def test_integers(torch, dtype, seed):
    pair = Pair(torch, seed)
    for size in SIZES:
        tensor, target = pair.empty(size, dtype)
        pair.same(pair.ours.random_(size, target), tensor.random_(generator=pair.theirs), size)
        pair.same(pair.ours.bernoulli(0.3, size, target), tensor.bernoulli_(0.3, generator=pair.theirs), size)
        if dtype != "bool":
            pair.same(pair.ours.random_(size, target, 3), tensor.random_(3, None, generator=pair.theirs), size)
            pair.same(pair.ours.randint(3, 100, size, target), tensor.random_(3, 100, generator=pair.theirs), size)
        if dtype in ("int64", "float32", "float64", "bfloat16"):
            pair.same(pair.ours.random_(size, target, -2 ** 63),
                      tensor.random_(-2 ** 63, None, generator=pair.theirs), size)


@pytest.mark.parametrize("seed", SEEDS)
def test_ranges_and_permutations(torch, seed):
    pair = Pair(torch, seed)
    for size in SIZES:
        for low, high in ((-10, 10), (0, 2 ** 28 - 1), (0, 2 ** 28), (0, 2 ** 32), (-2 ** 62, 2 ** 62),
                          (-2 ** 63, 2 ** 63 - 1), (5, 6)):
            theirs = torch.randint(low, high, (size,), generator=pair.theirs)
            pair.same(pair.ours.randint(low, high, size), theirs, low, high)
        for dtype in ("int64", "int32", "float32"):
            theirs = torch.randperm(size, dtype=getattr(torch, dtype), generator=pair.theirs)
            pair.same(pair.ours.randperm(size, dtype), theirs, size)


@pytest.mark.filterwarnings("ignore:.*Due to precision limitations:UserWarning")
@pytest.mark.parametrize("dtype", FLOATS)
def test_integers_keep_to_their_range_in_floating_point(torch, dtype):
    pair = Pair(torch)
    for low, high in ((0, 300), (-300, 5), (0, 3000), (-3000, 3000), (0, 2 ** 15), (0, 2 ** 24 + 1),
                      (-2 ** 25 - 1, 2 ** 25 + 1), (2 ** 24 + 1, 2 ** 24 + 2), (-2 ** 60, 2 ** 60)):
        tensor, target = pair.empty(100, dtype)
        expected = failure(tensor.random_, low, high, generator=pair.theirs)
        if expected[0]:
            assert failure(pair.ours.randint, low, high, 100, target) == expected
        else:
            pair.same(pair.ours.randint(low, high, 100, target), tensor, low, high)


@pytest.mark.parametrize("dtype", FLOATS)
def test_arrays_of_parameters(torch, dtype):
    pair, rng, target = Pair(torch), np.random.default_rng(0), numpy_dtype(dtype)
    ours, theirs = pair.ours, {"generator": pair.theirs}
    for shape in ((), (3,), (4, 5), (20, 1), (1000,)):
        p, mean = convert(A(rng.random(shape)), target), convert(A(rng.normal(size=shape)), target)
        tensor_p, tensor_mean = pair.to_torch(p), pair.to_torch(mean)
        pair.same(ours.bernoulli(p, dtype=target), torch.bernoulli(tensor_p, **theirs), shape)
        pair.same(ours.normal_around(mean, p), torch.normal(tensor_mean, tensor_p, **theirs), shape)
        pair.same(ours.normal_around(mean, 0.3), torch.normal(tensor_mean, 0.3, **theirs), shape)
        pair.same(ours.normal_around(1.5, p), torch.normal(1.5, tensor_p, **theirs), shape)
        for most in (0.5, 5, 30, 300):
            rate = convert(A(rng.random(shape) * most), target)
            pair.same(ours.poisson(rate), torch.poisson(pair.to_torch(rate), **theirs), shape, most)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rejection(torch, dtype):
    pair, rng, tensor = Pair(torch), np.random.default_rng(0), torch.from_numpy
    ours, theirs = pair.ours, {"generator": pair.theirs}
    for shape in ((), (3,), (4, 5), (1000,)):
        for most in (0, 1, 10, 30, 1000):
            count, p = A(np.round(rng.random(shape) * most), dtype), A(rng.random(shape), dtype)
            pair.same(ours.binomial(count, p), torch.binomial(tensor(count), tensor(p), **theirs), shape, most)
        for most in (0.1, 1, 5, 100):
            alpha = A(rng.random(shape) * most, dtype)
            pair.same(ours.standard_gamma(alpha), torch._standard_gamma(tensor(alpha), **theirs), shape, most)
    odd = A([0, -1, 1e-3, 1], dtype)
    pair.same(ours.standard_gamma(odd), torch._standard_gamma(tensor(odd), **theirs))


def test_dirichlet(torch):
    pair, alpha = Pair(torch), np.random.default_rng(0).random((40, 5))
    single = alpha.astype(np.float32)
    theirs = torch._sample_dirichlet(torch.from_numpy(single), generator=pair.theirs)
    pair.same(pair.ours.dirichlet(single), theirs)
    theirs = torch._sample_dirichlet(torch.from_numpy(alpha), generator=pair.theirs)
    np.testing.assert_allclose(pair.ours.dirichlet(alpha), theirs, rtol=1e-15)


@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial(torch, dtype):
    pair, rng, target = Pair(torch), np.random.default_rng(0), numpy_dtype(dtype)
    for shape in ((5,), (4, 5), (20, 100), (1000,), (0, 3), (70000,)):
        weights = rng.random(shape)
        weights[..., 1] = 0
        weights = convert(weights, target)
        for n, replacement in ((1, False), (1, True), (2, True), (50, True), (2000, True), (2, False), (50, False)):
            if n > 1 and not replacement and (target.itemsize == 2 or 2 * n > shape[-1]):
                continue  # equal contenders: PyTorch leaves their order open
            theirs = torch.multinomial(pair.to_torch(weights), n, replacement, generator=pair.theirs)
            pair.same(pair.ours.multinomial(weights, n, replacement), theirs, shape, n)


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout(torch, dtype):
    for p in (0.1, 0.5, 0.9, 0.3333):
        torch.manual_seed(5)
        theirs = torch.nn.functional.dropout(torch.ones(1001, dtype=getattr(torch, dtype)), p)
        assert (bits(seeded(5).dropout(1001, p, numpy_dtype(dtype))) == bits(to_numpy(theirs))).all()


def test_states_travel_both_ways(torch):
    pair = Pair(torch, 9)
    for size in np.random.default_rng(0).integers(1, 60, 200).tolist():  # several turns, normals held back
        pair.same(pair.ours.normal(size), torch.empty(size).normal_(generator=pair.theirs), size)
        other = Pair(torch)
        other.ours._set_state(pair.theirs.get_state().numpy())
        other.theirs.set_state(torch.from_numpy(pair.ours._state()))
        other.same(other.ours.normal(7), torch.empty(7).normal_(generator=other.theirs), "from the state")


VIEWS = {
    "transposed": lambda x: x.flatten(1).t(),
    "permuted": lambda x: x.permute(2, 0, 3, 1),
    "permuted and cut": lambda x: x.permute(3, 1, 0, 2)[1:, :, ::2],
    "channels last": lambda x: x.permute(0, 3, 1, 2),
    "scattered": lambda x: x.flatten(1).t()[::2, 1:],
    "an axis of one": lambda x: x[:, :1].transpose(0, 2),
}


@pytest.mark.parametrize("view", VIEWS)
def test_memory_order(torch, view):
    mine, theirs = (VIEWS[view](torch.zeros(2, 3, 4, 5)) for _ in range(2))
    array = mine.numpy()
    ordered = array.transpose(axes_in_memory(array))
    ordered[...] = seeded().uniform(ordered.shape)
    assert mine.equal(theirs.uniform_(generator=torch.Generator().manual_seed(0)))


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────


def failure(function, *args, **kwargs):
    """The error's type and first line, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function(*args, **kwargs)
            error = None
        except Exception as e:
            error = type(e), str(e).splitlines()[0]
    return error, [str(w.message).partition(" (Triggered")[0] for w in caught]


WRONG_IN_PLACE = [
    ("uniform", (2, 1)), ("uniform", (2.5, 1e-7)), ("uniform", (0, 1e39)), ("uniform", (-6e4, 6e4)),
    ("uniform", (-3e38, 3e38)), ("uniform", (NAN, 1)), ("normal", (0, -1)), ("normal", (0, NAN)),
    ("exponential", (0,)), ("exponential", (-1.5,)), ("geometric", (0,)), ("geometric", (1,)), ("cauchy", (0, 0)),
    ("log_normal", (0, 0)), ("uniform", ()), ("normal", ()), ("exponential", ()), ("cauchy", ()), ("log_normal", ()),
    ("geometric", (0.5,)),
]


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "bool"])
@pytest.mark.parametrize("name, args", WRONG_IN_PLACE)
def test_errors_of_distributions(torch, name, args, dtype):
    tensor, target = Pair(torch).empty(3, dtype)
    ours = failure(getattr(Generator(), name), 3, *args, dtype=target)
    assert ours == failure(getattr(tensor, name + "_"), *args)


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, "bool", "uint16", "uint32", "uint64", "complex64"])
def test_errors_of_integers(torch, dtype):
    tensor, target = Pair(torch).empty(3, dtype)
    ours = Generator()
    for low, high in ((5, 3), (3, 3), (0, 300), (-1, 3), (0, 3), (0, 2), (0, 70000), (0, 2 ** 15 + 1), (0, 2 ** 31 + 1),
                      (0, 3000), (-3000, 3000), (0, 2 ** 30), (-2 ** 40, 2 ** 60), (-2 ** 63, 2 ** 63 - 1),
                      (2 ** 24 + 1, 2 ** 24 + 2), (2 ** 62, 2 ** 63 - 1)):
        assert failure(ours.randint, low, high, 3, target) == failure(tensor.random_, low, high), (low, high)
    for low in (0, 3, 255, 256, -1, 2 ** 24 + 5, -2 ** 63, 2 ** 62, -2 ** 62):
        assert failure(ours.random_, 3, target, low) == failure(tensor.random_, low, None), low
    assert failure(ours.random_, 3, target) == failure(tensor.random_)
    for n in (-1, 3, 129, 257, 2050):
        assert failure(ours.randperm, n, target) == failure(torch.randperm, n, dtype=tensor.dtype), n


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("weights", [[1.0, 1, 1], [1.0, -2, 1], [1.0, NAN, 1], [1.0, INF, 1], [0.0, 0, 0], [1.0, 0, 0],
                                     [[1.0, 1, 1], [0, 0, 0]], [[[1.0]]], 1.0, [1, 2]], ids=repr)
def test_errors_of_multinomial(torch, weights, replacement):
    for n in (1, 2, 3, 4, 0, -1):
        ours = failure(Generator().multinomial, A(weights), n, replacement)
        assert ours == failure(torch.multinomial, torch.from_numpy(A(weights)), n, replacement), n


WRONG_ARRAYS = [  # ours, PyTorch's, and the arrays that both get
    ("bernoulli", "bernoulli", A([1.5])), ("bernoulli", "bernoulli", A([1])),
    ("normal_around", "normal", 0.0, A([-1.0])), ("normal_around", "normal", A([0.0]), -1.0),
    ("poisson", "poisson", A([-1.0])), ("poisson", "poisson", A([NAN])), ("poisson", "poisson", A([1])),
    ("binomial", "binomial", A([3], np.float32), A([0.5])), ("binomial", "binomial", A([3]), A([0.5])),
    ("binomial", "binomial", A([3.0]), A([5])), ("binomial", "binomial", A([3], np.float16), A([1], np.float16)),
    ("standard_gamma", "_standard_gamma", A([1])), ("dirichlet", "_sample_dirichlet", A([1], np.float16)),
]


@pytest.mark.parametrize("ours, theirs, args", [(ours, theirs, args) for ours, theirs, *args in WRONG_ARRAYS])
def test_errors_of_arrays(torch, ours, theirs, args):
    tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    expected = failure(getattr(torch, theirs), *tensors)
    assert expected[0] and failure(getattr(Generator(), ours), *args) == expected


@pytest.mark.parametrize("p", [1.5, -0.1, NAN])
def test_errors_of_bernoulli(torch, p):
    assert failure(Generator().bernoulli, p, 3) == failure(torch.empty(3).bernoulli_, p)


@pytest.mark.parametrize("seed", ["a", 1.5, True, None, 2 ** 64, -2 ** 63 - 1, np.int64(3), np.uint64(3)], ids=repr)
def test_errors_of_seeds(torch, seed):
    expected = failure(torch.Generator().manual_seed, seed)
    assert expected[0] and failure(Generator().manual_seed, seed) == expected


def test_errors_of_states(torch):
    good = seeded()._state()
    states = [np.zeros(5056, np.uint8), good[:5048], good[:5], good.astype(np.float32)]
    for byte, value in ((8, 0), (12, 0), (17, 100), (8, 255), (9, 200), (11, 255)):
        states.append(good.copy())
        states[-1][byte] = value
    for state in states:
        theirs = failure(torch.Generator().set_state, torch.from_numpy(state))
        assert failure(Generator()._set_state, state) == theirs


def test_errors_of_generators(torch):
    assert failure(Generator, "foo") == failure(torch.Generator, "foo")
    assert failure(Generator().get_offset) == failure(torch.Generator().get_offset)
    assert failure(Generator().set_offset, 1) == failure(torch.Generator().set_offset, 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_large_tensors_are_filled_in_pieces(monkeypatch, dtype):
    """The numbers, and the state they leave, are those of one draw."""
    import tensorgrad
    from tensorgrad.api import random
    for n in (2 ** 17, 3 * 2 ** 16 - 7):
        for fill in (lambda x: x.normal_(1, 2), lambda x: x.uniform_(), lambda x: x.uniform_(-0.3, 0.4)):
            found = []
            for piece in (2 ** 16, 2 ** 30):
                monkeypatch.setattr(random, "PIECE", piece)
                tensorgrad.manual_seed(3)
                x = tensorgrad.empty(n, dtype=getattr(tensorgrad, dtype))
                version = x._version
                fill(x)
                assert x._version == version + 1
                found.append((x.view(tensorgrad.uint8).numpy(), tensorgrad.rand(3).numpy()))
            np.testing.assert_array_equal(found[0][0], found[1][0])
            np.testing.assert_array_equal(found[0][1], found[1][1])
