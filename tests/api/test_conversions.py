"""To NumPy, Python, other dtypes, other libraries, text and bytes, and back."""
import copy
import itertools
import math
import operator
import pickle
import warnings

import numpy as np
import pytest
from side_by_side import outcome, same
from support import Programs, cpu_only, not_numpy_2_0

import tensorgrad

pytestmark = cpu_only
program = Programs()

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64",
          "complex64", "complex128"]
USUAL = [d for d in DTYPES if d not in ("uint16", "uint32", "uint64")]


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


# ── NumPy ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def numpy_shares_memory(torch):
    x = torch.tensor([1., 2.])
    a = x.numpy()
    a[0] = 9.
    x[1] = 7.
    return x, a.tolist(), a.flags.writeable, x.t().numpy().base is not None


@program
def from_numpy_shares_memory(torch):
    a = np.arange(6.).reshape(2, 3)
    x = torch.from_numpy(a)
    x[0, 0] = 9.
    a[1, 1] = 7.
    return (x, a.tolist(), torch.from_numpy(a.T).stride(), torch.from_numpy(a[:, 1]).storage_offset(), x.requires_grad,
            x.is_leaf)


@program
def writes_to_numpy_arrays_go_unnoticed(torch):
    x = leaf(torch, 1., 2.)
    y = x * x
    x.detach().numpy()[:] = 5.
    y.sum().backward()
    return x.grad


@program
def tensor_copies(torch):
    a = np.ones(2)
    x = torch.tensor(a)
    x[0] = 5.
    return a.tolist()


@program
def asarray_shares_where_it_can(torch):
    a = np.ones(2)
    found = [torch.asarray(a).data_ptr() == a.ctypes.data, torch.as_tensor(a).data_ptr() == a.ctypes.data]
    return [*found, torch.asarray(a, dtype=torch.float32), torch.asarray(a, copy=True).data_ptr() == a.ctypes.data,
            torch.as_tensor([1, 2.])]


@program
def dtypes_from_numpy(torch):
    return [str(torch.from_numpy(np.ones(1, dtype=d)).dtype) for d in DTYPES if d != "bfloat16"]


@program
def dtypes_to_numpy(torch):
    return [str(torch.ones(1, dtype=getattr(torch, d)).numpy().dtype) for d in DTYPES if d != "bfloat16"]


@program
def arrays_for_numpys_functions(torch):
    x = torch.tensor([[1., 4.], [9., 16.]])
    return (np.asarray(x).tolist(), np.asarray(x, dtype=np.int32).tolist(), np.asarray(x).dtype.name,
            np.concatenate([x, x]).tolist(),
            np.ones(1)[np.asarray(torch.tensor([0, 0]))].tolist(), np.shares_memory(np.asarray(x), x.numpy()))


@program
def numpy_scalars_as_operands(torch):
    x = torch.tensor([1., 2.])
    return (x * np.float64(2), x + np.float32(1), x / np.int64(2), (x > np.float64(1)),
            torch.tensor([1, 2]) * np.float64(1.5))


@program
def forced(torch):
    return [leaf(torch, 1., 2.).numpy(force=True).tolist(), (leaf(torch, 1.) * 2).numpy(force=True).tolist()]


ERRORS = {
    "numpy of a leaf": lambda torch: leaf(torch, 1.).numpy(),
    "asarray of a leaf": lambda torch: np.asarray(leaf(torch, 1.)),
    "from_numpy of strings": lambda torch: torch.from_numpy(np.array(["a"])),
    "from_numpy of a list": lambda torch: torch.from_numpy([1]),
    "from_numpy of a reversed array": lambda torch: torch.from_numpy(np.ones(3)[::-1]),
    "from_numpy of a field between others": lambda torch: torch.from_numpy(np.zeros(3, "f4, u1")["f0"]),
    "tensor of a reversed array": lambda torch: torch.tensor(np.ones(3)[::-1]),
    "tensor of a reversed field": lambda torch: torch.tensor(np.zeros(3, "f4, u1")["f0"][::-1]),
    "tensor of a field between others": lambda torch: torch.tensor(np.zeros(3, "f4, u1")["f0"]),
    "numpy of bfloat16": lambda torch: torch.ones(1, dtype=torch.bfloat16).numpy(),
    "dlpack of a leaf": lambda torch: leaf(torch, 1.).__dlpack__(),
    "item of two": lambda torch: torch.ones(2).item(),
    "truth of two": lambda torch: bool(torch.ones(2)),
    "truth of none": lambda torch: bool(torch.ones(0)),
    "float of two": lambda torch: float(torch.ones(2)),
    "int of two": lambda torch: int(torch.ones(2)),
    "complex of two": lambda torch: complex(torch.ones(2)),
    "float of a complex number": lambda torch: float(torch.tensor(1 + 1j)),
    "int of a complex number": lambda torch: int(torch.tensor(1j)),
    "int of NaN": lambda torch: int(torch.tensor(math.nan)),
    "an index of floats": lambda torch: [1, 2][torch.tensor(1.)],
    "an index of two": lambda torch: [1, 2][torch.tensor([1, 1])],
    "length of a number": lambda torch: len(torch.tensor(1.)),
    "elements of a number": lambda torch: list(torch.tensor(1.)),
    "a string among numbers": lambda torch: "a" in torch.ones(1),
    "a format of two": lambda torch: f"{torch.ones(2):.2f}",
    "rounding by Python": lambda torch: round(torch.tensor(2.5), 1),
    "finfo of integers": lambda torch: torch.finfo(torch.int32),
    "iinfo of floats": lambda torch: torch.iinfo(torch.float32),
    "iinfo of bools": lambda torch: torch.iinfo(torch.bool),
    "a size of floats": lambda torch: torch.Size([2.5]),
    "a size of a number": lambda torch: torch.Size(3),
    "a size and a list": lambda torch: torch.Size([2]) + [1],
    "a step copied deeply": lambda torch: copy.deepcopy(leaf(torch, 1.) * 2),
    "bare unsigned integers with others": lambda torch: torch.promote_types(torch.uint16, torch.int8),
    "truth of two, by name": lambda torch: torch.is_nonzero(torch.ones(2)),
}


@pytest.mark.parametrize("mistake", ERRORS.values(), ids=ERRORS.keys())
def test_mistakes_are_named_as_pytorch_names_them(mistake):
    assert isinstance(outcome(mistake, tensorgrad)[0], tuple), "no error was raised"
    same(mistake)


def test_read_only_arrays_are_told_of():
    a = np.ones(2)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        x = tensorgrad.from_numpy(a)
    assert x.tolist() == [1., 1.]


# ── other libraries ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_dlpack_with_numpy():
    x = tensorgrad.arange(6.).reshape(2, 3)
    a = np.from_dlpack(x)
    assert np.shares_memory(a, x.numpy()) and a.tolist() == x.tolist()
    y = tensorgrad.from_dlpack(np.arange(3))
    assert y.dtype is tensorgrad.int64 and y.tolist() == [0, 1, 2]
    assert tuple(x.__dlpack_device__()) == (1, 0)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bfloat16"])
def test_dlpack_with_pytorch(dtype):
    oracle = pytest.importorskip("torch")
    x = tensorgrad.ones(2, 3, dtype=getattr(tensorgrad, dtype)).t()
    theirs = oracle.from_dlpack(x)
    assert str(theirs.dtype) == f"torch.{dtype}" and tuple(theirs.shape) == (3, 2) and theirs.data_ptr() == x.data_ptr()
    ours = tensorgrad.from_dlpack(theirs)
    assert ours.dtype is x.dtype and ours.data_ptr() == x.data_ptr() and ours.stride() == (1, 3)
    capsule = tensorgrad.utils.dlpack.from_dlpack(tensorgrad.utils.dlpack.to_dlpack(x))
    assert capsule.data_ptr() == x.data_ptr()


@not_numpy_2_0
def test_dlpack_copies_when_asked():
    x = tensorgrad.ones(2)
    assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())


def test_tensors_from_pytorch_by_any_way():
    oracle = pytest.importorskip("torch")
    theirs = oracle.tensor([[1., 2.]])
    for ours in (tensorgrad.tensor(theirs.numpy()), tensorgrad.from_numpy(theirs.numpy()),
                 tensorgrad.asarray(theirs.numpy())):
        assert ours.tolist() == [[1., 2.]] and ours.dtype is tensorgrad.float32


# ── Python ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def python_numbers_and_lists(torch):
    return (torch.tensor([[1, 2], [3, 4]]).tolist(), torch.tensor(3).tolist(), torch.tensor([True]).tolist(),
            torch.tensor([1j]).tolist(), torch.ones(0, 2).tolist(), torch.ones(2, 0).tolist(),
            torch.tensor([2.5]).item(), type(torch.tensor(True).item()).__name__, torch.tensor([[7]]).item(),
            torch.tensor(1.1).item(),
            torch.tensor([1.1], dtype=torch.float16).tolist())


@program
def python_protocols(torch):
    t = torch.tensor
    return (range(5)[t(3)], [0, 1, 2][t(1)], format(t(3), "d"), f"{t(3.14159):.2f}", f"{t([1.])}", int(t(3.7)),
            bool(t(0.)), complex(t(2.)), hex(t(255)), math.floor(t(2.5)), math.sqrt(t(4.)), [1, 2][t(True)],
            [1, 2][t([1])], float(t([[2.]])), operator.index(t(7)), len(t([[1], [2]])),
            [row.tolist() for row in t([[1, 2], [3, 4]])], t(1) in [t(1)], 2 in t([1, 2]), 5 in t([1, 2]),
            len({t(1), t(1)}), f"{leaf(torch, 1.)[0]:.1f}",
            str(t(2)), -t(1) == t(-1), int(t(True)), divmod(7, 2), math.isnan(t(math.nan)))


@program
def iteration_is_recorded(torch):
    x = leaf(torch, 1., 2.)
    a, b = x
    (a * b).backward()
    return x.grad


@program
def old_constructors(torch):
    return (torch.Tensor([1, 2]), torch.Tensor(2, 0), torch.Tensor(torch.tensor([1.])),
            torch.tensor([1.]).new_tensor([1, 2]), torch.tensor([1]).new_zeros(2), torch.Tensor().shape)


# ── dtypes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def casts(torch):
    t = torch.tensor
    return (t([1.9, -1.9]).to(torch.int32), t([0., -0., 0.5, math.nan]).bool(), t([300, -200]).to(torch.int8),
            t([1, 0]).double(), t([1e5]).half(), t([1.5]).to(torch.complex64), t([True]).float(),
            t([1, 2]).to(t([1.]).dtype), t([1.5]).type(torch.int64), t([1.5]).type_as(t([1])), t([1.5]).to(float),
            t([3]).to(torch.float32, copy=True), t([1.]).type(),
            t([1]).type(),
            t([1.]).type("torch.DoubleTensor"))


@program
def casts_that_change_nothing(torch):
    x = torch.tensor([1.])
    return [x.to(torch.float32) is x, x.float() is x, x.to("cpu") is x, x.to(x) is x,
            x.to(torch.float32, copy=True) is x, x.cpu() is x, x.type(torch.float32) is x,
            x.to("cpu", torch.float32) is x, x.double() is x]


@program
def complex_numbers_lose_their_imaginary_part(torch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = torch.tensor([1 + 2j]).float()
    return x, [(str(w.message)[:58], w.category.__name__) for w in caught]


@program
def sizes_of_elements(torch):
    return [(torch.ones(3, dtype=getattr(torch, d)).element_size(), torch.ones(3, dtype=getattr(torch, d)).nbytes)
            for d in DTYPES]


@program
def properties_of_dtypes(torch):
    kinds = [getattr(torch, d) for d in DTYPES]
    return [(str(d), d.is_floating_point, d.is_complex, d.is_signed, d.itemsize, str(d.to_real()), repr(d))
            for d in kinds]


@program
def names_of_dtypes(torch):
    pairs = ("half float16", "float float32", "double float64", "short int16", "int int32", "long int64",
             "cfloat complex64", "cdouble complex128")
    return [getattr(torch, a) is getattr(torch, b) for a, b in map(str.split, pairs)]


@program
def default_dtypes(torch):
    before, found = torch.get_default_dtype(), []
    try:
        for d in (torch.float64, torch.float16, torch.float32):
            torch.set_default_dtype(d)
            found.append((str(torch.get_default_dtype()), torch.tensor([1.5]), torch.ones(1), torch.tensor([1]) / 2,
                          torch.tensor([1]) * 2.5, torch.arange(2.), torch.finfo().bits))
    finally:
        torch.set_default_dtype(before)
    return found


@program
def limits_of_floats(torch):
    names = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")
    return [[getattr(torch.finfo(getattr(torch, d)), name) for name in names] + [repr(torch.finfo(getattr(torch, d)))]
            for d in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")]


@program
def limits_of_integers(torch):
    return [[getattr(torch.iinfo(getattr(torch, d)), name) for name in ("bits", "max", "min", "dtype")]
            for d in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")]


def answer(function, *args):
    """The dtype that comes out, or the error."""
    try:
        return str(function(*args))
    except (RuntimeError, TypeError) as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]


@program
def promotion_of_all_pairs_of_dtypes(torch):
    return {(a, b): answer(torch.promote_types, getattr(torch, a), getattr(torch, b))
            for a, b in itertools.product(DTYPES, repeat=2)}


@program
def casts_that_keep_the_kind(torch):
    return {(a, b): torch.can_cast(getattr(torch, a), getattr(torch, b))
            for a, b in itertools.product(DTYPES, repeat=2)}


def operands(torch, dtypes=DTYPES):
    """Tensors with axes, tensors without, and Python numbers."""
    for d in dtypes:
        yield f"{d}[1]", torch.ones(1, dtype=getattr(torch, d))
        yield f"{d}[]", torch.ones((), dtype=getattr(torch, d))
    yield from (("True", True), ("2", 2), ("2.5", 2.5), ("1j", 1j))


def pairs(torch, dtypes=DTYPES):
    """All pairs of them, less two numbers, and less those that would make complex numbers of half precision, which
    NumPy lacks.
    """
    for (na, a), (nb, b) in itertools.product(operands(torch, dtypes), repeat=2):
        halves = "float16[" in na + nb and {"complex64[]", "complex128[]", "1j"} & {na, nb}
        if not halves and (isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor)):
            yield (na, nb), a, b


@program
def result_types_of_all_pairs_of_operands(torch):
    return {names: answer(torch.result_type, a, b) for names, a, b in pairs(torch)}


@program
def dtypes_of_sums_of_all_pairs_of_operands(torch):
    return {names: answer(lambda a, b: (a + b).dtype, a, b) for names, a, b in pairs(torch, USUAL)}


@program
def dtypes_of_quotients_of_all_pairs_of_operands(torch):
    return {names: answer(lambda a, b: (a / b).dtype, a, b) for names, a, b in pairs(torch, USUAL)}


@program
def dtypes_of_reductions(torch):
    return {d: [str(f(torch.ones(2, dtype=getattr(torch, d))).dtype)
                for f in (torch.sum, torch.prod, lambda x: torch.cumsum(x, 0), torch.all)]
            for d in USUAL}


@program
def bfloat16(torch):
    b = torch.tensor([1.1, 2.7, -3.3], dtype=torch.bfloat16)
    return (b.tolist(), b[0].item(), repr(b), float(b[1]), (b + b).float(), (b * 3).float(), b.exp().float(),
            b.sum().float(), (b @ b).float(), b.double(), torch.tensor([1.1]).bfloat16().float(), (b > 1),
            b.float().to(torch.bfloat16).equal(b), str((b * torch.ones(3)).dtype), str((b * torch.tensor(2.)).dtype),
            b.sort().values.float(), b.max().item(),
            b.clone().zero_().float(),
            b.long())


@program
def gradients_in_bfloat16(torch):
    x = torch.tensor([1.1, 2.7], dtype=torch.bfloat16, requires_grad=True)
    w = torch.tensor([0.3, 0.7], requires_grad=True)
    ((x * x).float() * w).sum().backward()
    return x.grad.float(), str(x.grad.dtype), w.grad


# ── sizes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def sizes(torch):
    s = torch.Size([2, 3])
    return (repr(s + (1,)), repr(s * 2), repr(s[0:1]), s.numel(), torch.Size([]).numel(), s == (2, 3),
            hash(s) == hash((2, 3)), repr((1,) + s), repr(copy.copy(s)), repr(copy.deepcopy(s)),
            repr(pickle.loads(pickle.dumps(s))), repr(torch.ones(2, 3).shape), repr(torch.ones(2, 3).size()),
            torch.ones(2, 3).size(-1), torch.ones(2, 3).shape[1], isinstance(s, tuple), s.index(3), len(s), list(s),
            repr(torch.Size(torch.ones(2).shape)))


# ── copies of tensors ─────────────────────────────────────────────────────────────────────────────────────────────────


@program
def shallow_copies(torch):
    x = leaf(torch, 1., 2.)
    y = copy.copy(x)
    return y is x, y.data_ptr() == x.data_ptr(), y.requires_grad, y.is_leaf


@program
def deep_copies(torch):
    x = leaf(torch, 1., 2.)
    (x * 2).sum().backward()
    x.note = [3]
    y = copy.deepcopy(x)
    x.note.append(4)
    with torch.no_grad():
        x.zero_()
    return y, y.grad, y.note, y.requires_grad, y.is_leaf, y.grad is x.grad


@program
def deep_copies_keep_strides_and_objects(torch):
    x = torch.arange(6.).reshape(2, 3)
    a, b, c = copy.deepcopy([x.t(), x, x])
    return a.stride(), b is c, a


@program
def deep_copies_keep_what_is_shared(torch):
    x = torch.arange(6.).reshape(2, 3)
    a, b, c, d = copy.deepcopy([x, x.t(), x[1], x.detach()])
    a[1, 0] = 90.
    return b[0, 1], c[0], d[1, 0], b.stride(), c.storage_offset(), x[1, 0], c._is_view()


@program
def pickled(torch):
    x = leaf(torch, 1., 2.)
    (x * 2).sum().backward()
    x.note = 3
    y = pickle.loads(pickle.dumps(x))
    tensors = [torch.ones(2, dtype=getattr(torch, d)) for d in USUAL if d != "bfloat16"]
    tensors += [torch.tensor(1.), torch.ones(0, 3), torch.arange(6).reshape(2, 3).t()]
    again = pickle.loads(pickle.dumps(tensors))
    return y, y.grad, y.note, y.requires_grad, again, [t.stride() for t in again]


@program
def pickled_bfloat16(torch):
    x = torch.tensor([1.1, 2.2], dtype=torch.bfloat16)
    y = pickle.loads(pickle.dumps(x))
    return str(y.dtype), y.float()


@program
def pickled_subclasses(torch):
    p = torch.nn.Parameter(torch.ones(2))
    for q in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        assert type(q) is torch.nn.Parameter and q.requires_grad
    return pickle.loads(pickle.dumps(p)), repr(copy.deepcopy(p))


@pytest.mark.parametrize("thing", [tensorgrad.float32, tensorgrad.bool, tensorgrad.strided, tensorgrad.channels_last,
                                   tensorgrad.device("cuda", 1),
                                   tensorgrad.Size([2, 3])], ids=repr)
def test_small_things_survive_copies_and_pickling(thing):
    for again in (pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)):
        assert again == thing and type(again) is type(thing)
        if not isinstance(thing, (tensorgrad.device, tensorgrad.Size)):
            assert again is thing


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def text(torch):
    x = leaf(torch, 1., 2.)
    shown = [x, x * 2, x.double(), x.detach(), x.unbind()[1], x.sum(), torch.ones(0, 3), torch.tensor(3),
             torch.tensor(1 + 2j), torch.tensor([True]), x.sort().values, torch.ones(2, dtype=torch.int32),
             x.max(0).values, torch.nn.Parameter(torch.ones(1)),
             x.half() * 1]
    return [repr(t) for t in shown] + [str(x), f"{x}", f"{x * x!r}"]


test_programs = program.test(rtol=1e-6, atol=1e-8)


def test_a_functions_name_is_printed():
    class Twice(tensorgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
    assert repr(Twice.apply(leaf(tensorgrad, 1.))) == "tensor([2.], grad_fn=<TwiceBackward>)"


def test_no_warning_comes_from_casting_what_fits():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensorgrad.tensor([1e30, math.nan, math.inf]).to(tensorgrad.float16)
        tensorgrad.tensor([math.nan]).to(tensorgrad.int32)
