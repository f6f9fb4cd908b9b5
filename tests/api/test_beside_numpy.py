"""Tensors beside NumPy's arrays and numbers: whose dtype a result has, and whose memory may be resized."""
import itertools
import warnings

import numpy as np
import pytest
from side_by_side import same

import tensorgrad

OPERATORS = "+ - * / // % ** @ & | ^ << >>".split()
ARRAYS = "bool uint8 int64 float16 float32 complex64".split()
TENSORS = "bool uint8 int16 int64 uint16 float16 float32 float64 complex64".split()


def raising_is_ours(torch, a, b, sign):
    """The result's dtype and values; None where PyTorch raises, which is where this package may go on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")         # NumPy's about PyTorch's __array_wrap__
            found = eval(f"a {sign} b", {"a": a, "b": b})
    except (TypeError, RuntimeError, NotImplementedError):
        return None
    return str(found.dtype), found.tolist()


@pytest.mark.parametrize("sign", OPERATORS)
def test_an_operator_with_an_array_is_numpys(sign):
    oracle = pytest.importorskip("torch")
    for kind, other in itertools.product(ARRAYS, TENSORS):
        array = np.array([2, 1]).astype(kind)
        for torch in (oracle, tensorgrad):
            tensor = torch.tensor([1, 3]).to(getattr(torch, other))
            found = [raising_is_ours(torch, tensor, array, sign)]
            if sign == "/":
                found.append(raising_is_ours(torch, array, tensor, sign))
            if torch is oracle:
                expected = found
        for ours, theirs in zip(found, expected, strict=True):
            assert theirs is None or ours == theirs, (sign, kind, other)


def test_an_array_beside_a_tensor_that_requires_grad():
    x = tensorgrad.tensor([1., 2.], requires_grad=True)
    (x * np.array([3, 4])).sum().backward()
    assert x.grad.tolist() == [3., 4.] and (x + np.array([1, 2])).dtype is tensorgrad.float32


def test_numpys_bools_and_long_numbers_are_floats():
    def program(torch):
        x, true = torch.tensor([1, 2]), np.bool_(True)
        return (x + true, true - x, torch.add(x, true), x.clamp(max=true), x == true, str(torch.result_type(x, true)),
                x + np.longdouble(1), torch.ones(2) == np.longdouble(1))
    same(program)
    for wrong in (lambda torch: torch.tensor([1, 2]).add_(np.bool_(True)), lambda torch: torch.ones(2) + np.str_("a"),
                  lambda torch: torch.tensor([True]) & np.bool_(True)):
        same(wrong)


def test_an_assignment_with_an_array_makes_a_new_tensor():
    def program(torch):
        x = y = torch.ones(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x += np.ones(2)
        return x, y
    same(program)


@pytest.mark.parametrize("memory", [lambda torch: torch.from_numpy(np.ones(6)), lambda torch: lent(torch),
                                    lambda torch: torch.frombuffer(bytearray(48), dtype=torch.float64)],
                         ids=["from_numpy", "numpy", "frombuffer"])
def test_foreign_memory_does_not_grow(memory):
    same(lambda torch: memory(torch).resize_(7))
    same(lambda torch: memory(torch).resize_(2, 3))


def lent(torch):
    x = torch.ones(6, dtype=torch.float64)
    x.numpy()
    return x


def test_resize():
    def program(torch):
        x = torch.arange(48.)
        view = torch.arange(6.)[2:]
        whole = torch.arange(6.)
        like = torch.ones(2, 3, 2, 4).contiguous(memory_format=torch.channels_last)
        return [x.clone().resize_(2, 3, 2, 4, memory_format=torch.channels_last),
                x.clone().resize_as_(like).stride(),
                x.clone().resize_as_(like, memory_format=torch.preserve_format).stride(),
                view.resize_(6).storage_offset(), view[:4], whole.resize_(2).untyped_storage().nbytes()]
    same(program)
    for sizes in ([-1], [2, 4, 2**29, 2**29], [8, 8, 2**29, 2**29], [0, 4, 2**61]):
        same(lambda torch, sizes=sizes: torch.empty((), dtype=torch.float64).resize_(sizes))
    same(lambda torch: torch.arange(6.).resize_(2, 3, memory_format=torch.preserve_format))
    same(lambda torch: torch.arange(6.).resize_(2, 3, memory_format=torch.channels_last))
