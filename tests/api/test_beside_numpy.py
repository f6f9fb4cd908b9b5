"""Operations of tensors with NumPy's arrays and numbers: dtypes of results, and memory that may be resized."""
import itertools
import warnings

import numpy as np
import pytest
from side_by_side import same

import tensorgrad

OPERATORS = "+ - * / // % ** @ & | ^ << >> == != < >=".split()
ARRAYS = "bool int64 float32 complex64 object".split()
TENSORS = "bool uint8 int16 uint16 float16 float64 complex64 bfloat16".split()


def outcome(a, b, sign):
    """Return the result's type, dtype and values, or the error's type and text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")         # NumPy's about PyTorch's __array_wrap__
            found = eval(f"a {sign} b", {"a": a, "b": b})
    except (TypeError, RuntimeError, NotImplementedError) as error:
        return type(error), str(error)
    return found if isinstance(found, bool) else (str(found.dtype), found.tolist(), found.requires_grad)


@pytest.mark.parametrize("sign", OPERATORS)
def test_an_operator_with_an_array_is_numpys(sign):
    oracle = pytest.importorskip("torch")
    for kind, other in itertools.product(ARRAYS, TENSORS):
        array = np.array([2, 1]).astype(kind)
        for torch in (oracle, tensorgrad):
            tensor = torch.tensor([1, 3]).to(getattr(torch, other))
            pairs = [(tensor, array), (array, tensor)]
            if other == "float64":
                pairs += [(tensor.requires_grad_(), array), (array, tensor)]
            if sign != "==":
                pairs += [(torch.ones(1, device="meta"), array)]
            found = [outcome(a, b, sign) for a, b in pairs]
            if torch is oracle:
                expected = found
        assert found == expected, (sign, kind, other)


def test_an_array_beside_tensors_of_other_kinds():
    def program(torch):
        class Own(torch.Tensor):
            pass
        array, seen = np.array([1., 2.]), []
        for sign in "+ - / * == <".split():
            for other in (array, "a", None, [1]):
                x = torch.ones(2).as_subclass(Own)
                seen += [outcome(x, other, sign), outcome(other, x, sign)]
        with torch.autocast("cpu"):
            seen.append(outcome(torch.ones(2), array, "+"))
        return seen
    same(program)


def test_an_array_loses_no_tangent():
    func, one = tensorgrad.func, tensorgrad.ones(2)
    for call in (lambda f: func.jvp(f, (one,), (one,)), lambda f: func.vmap(f)(one[None]),
                 lambda f: func.jacfwd(f)(one)):
        with pytest.raises(RuntimeError, match="^Cannot access data pointer of Tensor that doesn't have storage$"):
            call(lambda x: x * np.ones(2, "float32"))
        call(lambda x: x * tensorgrad.tensor(np.ones(2)))


def test_a_function_of_numpy_wraps_what_it_returns():
    def program(torch):
        x, one = torch.tensor([1., 2.]), torch.tensor(2.)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.add(np.ones(2), x), np.less(np.float64(1), one), np.exp(x), np.maximum(x, np.float32(1.5))
    same(program)


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
        same_matrix = z = torch.ones(2, 2)
        z @= torch.ones(2, 2)
        return x, y, z, same_matrix
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
