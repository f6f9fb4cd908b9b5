"""The text of repr(tensor) and of repr(size): by the letter, and letter by letter as PyTorch writes it."""
import copy
import pickle
from math import inf, nan

import numpy as np
import pytest

from tensorgrad._tensor import printing
from tensorgrad._tensor.printing import get_printoptions, printoptions, set_printoptions, shown, tensor_repr
from tensorgrad.size import Size


@pytest.fixture(autouse=True)
def default_options():
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


def text(values, dtype="float32", *, name=None, **notes):
    return tensor_repr(np.array(values, dtype=dtype), dtype_name=name or dtype, **notes)


# ── by the letter ──────────────────────────────────────────────────────────────────────────────
NUMBERS = [
    (1.5, "float32", "tensor(1.5000)"),
    ([1, -2, 30], "float32", "tensor([ 1., -2., 30.])"),
    ([1, nan, -inf], "float32", "tensor([1., nan, -inf])"),
    ([0, nan, -0.0], "float32", "tensor([0., nan, -0.])"),
    ([0.1, -12.34567, inf], "float32", "tensor([  0.1000, -12.3457,      inf])"),
    ([1e-5, 1, -1e9], "float32", "tensor([ 1.0000e-05,  1.0000e+00, -1.0000e+09])"),
    ([1, 2e9], "float32", "tensor([1.0000e+00, 2.0000e+09])"),
    ([1.5], "float16", "tensor([1.5000], dtype=torch.float16)"),
    ([2], "float64", "tensor([2.], dtype=torch.float64)"),
    ([[1, -20], [300, 4]], "int64", "tensor([[  1, -20],\n        [300,   4]])"),
    ([True, False], "bool", "tensor([ True, False])"),
    ([1, 255], "uint8", "tensor([  1, 255], dtype=torch.uint8)"),
    ([1 + 2j, -3.5 - 0.25j], "complex64", "tensor([ 1.0000+2.0000j, -3.5000-0.2500j])"),
    (complex(0, -0.0), "complex128", "tensor(0.-0.j, dtype=torch.complex128)"),
    ([], "float32", "tensor([])"),
    (np.empty((0, 3)), "float32", "tensor([], size=(0, 3))"),
    (np.empty((2, 0)), "int64", "tensor([], size=(2, 0), dtype=torch.int64)"),
    (np.arange(8).reshape(2, 2, 2), "int64",
     "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])"),
    (np.arange(1001), "int64", "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (np.arange(20) / 8, "float32",
     "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,\n"
     "        1.1250, 1.2500, 1.3750, 1.5000, 1.6250, 1.7500, 1.8750, 2.0000, 2.1250,\n"
     "        2.2500, 2.3750])"),
]


@pytest.mark.parametrize("values, dtype, expected", NUMBERS, ids=range(len(NUMBERS)))
def test_numbers(values, dtype, expected):
    assert text(values, dtype) == expected


def test_notes_and_their_order():
    assert text([1.5], requires_grad=True) == "tensor([1.5000], requires_grad=True)"
    assert text([1.5], requires_grad=True, grad_fn_name="MulBackward0") == "tensor([1.5000], grad_fn=<MulBackward0>)"
    assert text([1.5], name="bfloat16", device_text="cuda:0", requires_grad=True) == (
        "tensor([1.5000], device='cuda:0', dtype=torch.bfloat16, requires_grad=True)")
    assert text([1.5], notes=["tangent=tensor([1.])"]) == "tensor([1.5000], tangent=tensor([1.]))"
    assert text([[1.5], [2]], prefix="Mine") == "Mine([[1.5000],\n      [2.0000]])"


def test_notes_go_to_a_new_line_when_the_last_is_full():
    row = "1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000"
    assert text([1.5] * 9, requires_grad=True) == f"tensor([{row}],\n       requires_grad=True)"
    assert text([1.5] * 9, "float64", grad_fn_name="MulBackward0", device_text="cuda:1") == (
        f"tensor([{row}],\n       device='cuda:1', dtype=torch.float64, grad_fn=<MulBackward0>)")


def test_the_default_dtype_is_not_worth_a_word():
    double = {"default_dtype_name": "float64"}
    assert text([1.5], "float64", **double) == "tensor([1.5000])"
    assert text([1.5], "float32", **double) == "tensor([1.5000], dtype=torch.float32)"
    assert text([1j], "complex128", **double) == "tensor([0.+1.j])"
    assert text([], "float64", **double) == "tensor([])"


def test_a_tensor_without_data():
    bare = tensor_repr(None, shape=(2, 3), dtype_name="int64", device_text="meta")
    assert bare == "tensor(..., device='meta', size=(2, 3), dtype=torch.int64)"


# ── options ────────────────────────────────────────────────────────────────────────────────────
def test_options_are_set_read_and_restored():
    before = get_printoptions()
    assert before == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    with pytest.raises(ZeroDivisionError), printoptions(precision=1, sci_mode=True):
        assert text([1.25, 2]) == "tensor([1.2e+00, 2.0e+00])"
        raise ZeroDivisionError
    assert get_printoptions() == before


def test_profiles():
    set_printoptions(profile="short")
    assert text([1.125]) == "tensor([1.12])"
    set_printoptions(profile="full", precision=1)
    assert text([1.25] * 2000).count("1.2") == 2000
    set_printoptions(sci_mode=False)
    assert text([1e-6, 1]) == "tensor([0.0, 1.0])"
    set_printoptions(profile="default")
    assert text([1e-6, 1]) == "tensor([1.0000e-06, 1.0000e+00])"


def test_edge_items():
    set_printoptions(threshold=5, edgeitems=1)
    grid = np.arange(16).reshape(4, 4)
    assert text(grid, "int64") == "tensor([[ 0,  ...,  3],\n        ...,\n        [12,  ..., 15]])"
    set_printoptions(threshold=5, edgeitems=0)
    assert text(grid, "int64") == "tensor([...], size=(4, 4))"
    assert text([1, 2], "int64") == "tensor([1, 2], size=(2,))"


def test_shown_takes_the_edges_of_large_arrays_only():
    small, large = np.arange(1000.0), np.arange(48 * 1000.0).reshape(4, 12, 1000)
    assert shown(small) is small
    assert shown(large).shape == (4, 6, 6)
    assert shown(large)[3, 5, 5] == large[-1, -1, -1]
    assert text(large) == tensor_repr(shown(large), shape=large.shape, dtype_name="float32")


def test_a_huge_array_is_not_read():
    huge = np.broadcast_to(np.float32(0.5), (10**6, 10**6))
    assert tensor_repr(huge, dtype_name="float32").count("0.5000") == 36


# ── against PyTorch ────────────────────────────────────────────────────────────────────────────
DTYPES = ["float16", "float32", "float64", "bfloat16", "complex64", "complex128", "bool", "int8", "int16", "int32",
          "int64", "uint8", "uint16", "uint32", "uint64"]
SPECIAL = [0.0, -0.0, nan, inf, -inf]


def floats(rng, n):
    """Floats that call for every notation: plain, whole, tiny, huge, of mixed size, not finite."""
    kinds = [
        lambda: rng.standard_normal(n),
        lambda: np.round(rng.standard_normal(n) * 10.0 ** rng.integers(0, 5)),
        lambda: rng.standard_normal(n) * 10.0 ** rng.integers(-6, 12),
        lambda: rng.standard_normal(n) * 10.0 ** rng.integers(-6, 12, size=n),
        lambda: rng.choice(SPECIAL, size=n),
        lambda: rng.choice([*SPECIAL, 1.0, -2.5, 3.0, 1e9], size=n),
        lambda: rng.choice([*SPECIAL, 1.0, -2.0], size=n),
        lambda: rng.random(n) + 1,
    ]
    return kinds[rng.integers(len(kinds))]()


def random_tensor(torch, rng):
    longest = (None, (40, 1500), (9, 50), (5, 15), (4, 8))
    ndim = rng.integers(len(longest))
    limit = longest[ndim][int(rng.random() < 0.3)] if ndim else 0
    shape = tuple(int(rng.integers(0 if rng.random() < 0.1 else 1, limit)) for _ in range(ndim))
    n = int(np.prod(shape))
    dtype = getattr(torch, rng.choice(DTYPES))
    if dtype.is_complex:
        values = np.empty(n, "complex128")
        values.real, values.imag = floats(rng, n), floats(rng, n)
    elif dtype.is_floating_point:
        values = floats(rng, n)
    else:
        largest = 2 if dtype is torch.bool else 10 ** rng.integers(1, 10)
        values = rng.integers(0 if dtype is torch.bool else -largest, largest, n).astype(str(dtype)[6:])
    return torch.from_numpy(np.asarray(values)).to(dtype).reshape(shape)


def random_options(rng):
    ranges = {
        "precision": range(9), "threshold": [0, 5, 20, 100], "edgeitems": range(5), "linewidth": range(1, 200),
        "profile": ["default", "short", "full"], "sci_mode": [False, True],
    }
    if rng.random() < 0.5:
        return {}
    return {name: choices[rng.integers(len(choices))] for name, choices in ranges.items() if rng.random() < 0.5}


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    yield torch
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("seed", range(4))
def test_random_tensors_print_as_in_pytorch(torch, seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        x, options = random_tensor(torch, rng), random_options(rng)
        default = [torch.float32, torch.float64, torch.float16][rng.integers(3)]
        differentiable = x.dtype.is_floating_point or x.dtype.is_complex
        leaf, result = differentiable and rng.random() < 0.2, differentiable and rng.random() < 0.2
        x = x.requires_grad_(leaf or result)
        x = x * 1 if result else x
        for module in (torch, printing):
            module.set_printoptions(profile="default")
            module.set_printoptions(**options)
        torch.set_default_dtype(default)
        array = (x.float() if x.dtype is torch.bfloat16 else x).detach().numpy()
        ours = tensor_repr(
            shown(array), shape=array.shape, dtype_name=str(x.dtype)[6:], requires_grad=x.requires_grad,
            grad_fn_name="MulBackward0" if result else None, default_dtype_name=str(default)[6:])
        assert ours == repr(x), (x.dtype, tuple(x.shape), options)


def test_options_default_as_in_pytorch(torch):
    assert get_printoptions() == torch._tensor_str.get_printoptions()


# ── Size ───────────────────────────────────────────────────────────────────────────────────────
def test_size_is_a_tuple_with_a_name():
    size = Size([2, 3, 4])
    assert size == (2, 3, 4) and hash(size) == hash((2, 3, 4)) and isinstance(size, tuple)
    assert repr(size) == str(size) == "torch.Size([2, 3, 4])" and repr(Size()) == "torch.Size([])"
    assert size.numel() == 24 and Size([]).numel() == 1 and Size([0, 3]).numel() == 0
    assert size.count(3) == 1 and size.index(4) == 2


def test_size_stays_a_size():
    size = Size([2, 3])
    results = [size[:1], size[::-1], size + (1,), (1,) + size, size + size, size * 2, 2 * size,
               tuple.__new__(Size, (2, 3)), pickle.loads(pickle.dumps(size)), copy.copy(size), copy.deepcopy(size)]
    assert [type(result) for result in results] == [Size] * len(results)
    assert results[:7] == [(2,), (3, 2), (2, 3, 1), (1, 2, 3), (2, 3, 2, 3), (2, 3, 2, 3), (2, 3, 2, 3)]
    assert results[7:] == [(2, 3)] * 4
    assert type(size[0]) is int


def test_size_takes_integers_of_any_kind():
    size = Size([np.int64(3), True, np.array(2)])
    assert size == (3, 1, 2) and {type(item) for item in size} == {int}


def test_arrays_treat_a_size_as_numbers():
    assert (Size([1, 2]) + np.array([1, 2])).tolist() == [2, 4]
    assert (Size([1, 2]) * np.array([1, 2])).tolist() == [1, 4]


SIZE_ERRORS = {
    "Size([1, 2.0])": "torch.Size() takes an iterable of 'int' (item 1 is 'float')",
    "Size('ab')": "torch.Size() takes an iterable of 'int' (item 0 is 'str')",
    "Size(5)": "'int' object is not iterable",
    "Size([2]) + ('a',)": "torch.Size() takes an iterable of 'int' (item 1 is 'str')",
    "('a',) + Size([2])": "torch.Size() takes an iterable of 'int' (item 0 is 'str')",
    "Size([2]) + [1]": "can only concatenate tuple (not list) to torch.Size",
    "Size([2]) + 5": "can only concatenate tuple (not int) to torch.Size",
    "Size([2]) * 1.5": "can't multiply sequence by non-int of type 'float'",
}


@pytest.mark.parametrize("expression", SIZE_ERRORS)
def test_size_errors(expression):
    with pytest.raises(TypeError) as caught:
        eval(expression)
    assert str(caught.value) == SIZE_ERRORS[expression]


@pytest.mark.parametrize("expression", SIZE_ERRORS)
def test_size_errors_are_those_of_pytorch(torch, expression):
    with pytest.raises(TypeError) as caught:
        eval(expression, {"Size": torch.Size})
    assert str(caught.value) == SIZE_ERRORS[expression]
