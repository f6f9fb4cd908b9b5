"""The old tensor types, `torch.Tensor(…)`, `x.new(…)` and `x.type(…)`, beside PyTorch where it is installed."""
import copy
import pickle

import numpy as np
import pytest
from support import Programs, cpu_only, fresh_process

import tensorgrad as tg

NAMES = ["FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor", "ShortTensor",
         "IntTensor", "LongTensor", "BoolTensor"]
program = Programs()


# ── what they are ─────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def names_and_attributes(torch):
    types = [getattr(place, name) for place in (torch, torch.cuda) for name in NAMES]
    return [(repr(t), t.__name__, t.__module__, t.__doc__, str(t.dtype), str(t.layout), t.is_cuda, t.is_sparse,
             repr(type(t)), torch.typename(t))
            for t in types]


@program
def instances(torch):
    values = [torch.ones(1), torch.ones(1).double(), torch.nn.Parameter(torch.ones(1)), torch.tensor(1),
              torch.tensor(True), torch.ones(1).bfloat16(), 3]
    return [[isinstance(value, getattr(place, name)) for value in values] for place in (torch, torch.cuda)
            for name in NAMES]


@program
def classes(torch):
    F = torch.FloatTensor
    return (issubclass(F, torch.Tensor), issubclass(torch.Tensor, F), issubclass(F, F), isinstance(F, type),
            F == torch.FloatTensor, F == torch.DoubleTensor, F is torch.FloatTensor, bool(F), torch.is_tensor(F(2)),
            type(F(2)) is torch.Tensor, F.add(torch.ones(2), 1),
            F.size(torch.ones(2, 3)))


def test_types_cannot_be_changed_or_inherited_from():
    with pytest.raises(TypeError, match="cannot set 'x' attribute of immutable type 'torch.FloatTensor'"):
        tg.FloatTensor.x = 3
    with pytest.raises(TypeError, match="cannot set 'dtype' attribute of immutable type 'torch.cuda.LongTensor'"):
        del tg.cuda.LongTensor.dtype
    with pytest.raises(TypeError, match="type 'torch.FloatTensor' is not an acceptable base type"):
        class Mine(tg.FloatTensor):
            pass
    with pytest.raises(AttributeError, match="type object 'torch.FloatTensor' has no attribute 'from_numpy'"):
        tg.FloatTensor.from_numpy
    assert not hasattr(tg, "FooTensor") and not hasattr(tg.cuda, "FooTensor") and not hasattr(tg, "ComplexFloatTensor")


@pytest.mark.parametrize("name", NAMES)
def test_types_are_pickled_and_copied_by_name(name):
    for kind in getattr(tg, name), getattr(tg.cuda, name):
        assert pickle.loads(pickle.dumps(kind)) is kind is copy.deepcopy(kind) is copy.copy(kind)


# ── what they make ────────────────────────────────────────────────────────────────────────────────────────────────────

MAKE = {
    "nothing": lambda torch, make: make(),
    "size 0": lambda torch, make: make(0),
    "sizes": lambda torch, make: make(2, 3).zero_(),
    "a Size": lambda torch, make: make(torch.Size([2, 3])).zero_(),
    "size=": lambda torch, make: make(size=(2, 1)).zero_(),
    "NumPy sizes": lambda torch, make: make(np.int64(2), np.int32(3)).zero_(),
    "tensor sizes": lambda torch, make: make(torch.tensor(2), torch.tensor(3)).zero_(),
    "list": lambda torch, make: make([[0, 1], [1, 0]]),
    "tuple": lambda torch, make: make((2, 3)),
    "empty list": lambda torch, make: make([[]]),
    "range": lambda torch, make: make(range(3)),
    "bytearray": lambda torch, make: make(bytearray(2)),
    "data=": lambda torch, make: make(data=[1]),
    "bools": lambda torch, make: make([True, False]),
    "fractions": lambda torch, make: make([1.5, 0.]),
    "tensors": lambda torch, make: make([torch.tensor(1), torch.tensor(0)]),
    "float64 array": lambda torch, make: make(np.array([1., 2.5])),
    "int32 array": lambda torch, make: make(np.array([1, 2], dtype="int32")),
    "on the CPU": lambda torch, make: make([1], device="cpu"),
    "on CUDA": lambda torch, make: make([1], device="cuda"),
    "float": lambda torch, make: make(3.5),
    "bool": lambda torch, make: make(True),
    "None": lambda torch, make: make(None),
    "str": lambda torch, make: make("ab"),
    "bytes": lambda torch, make: make(b"ab"),
    "dict": lambda torch, make: make({1: 2}),
    "generator": lambda torch, make: make(x for x in [1]),
    "NumPy number": lambda torch, make: make(np.float32(3)),
    "object": lambda torch, make: make(object()),
    "negative": lambda torch, make: make(2, -1),
    "size and str": lambda torch, make: make(2, "a"),
    "size and float": lambda torch, make: make(2, 3.5),
    "size and tuple": lambda torch, make: make(2, (3,)),
    "two tuples": lambda torch, make: make((1, 2), (3,)),
    "dtype=": lambda torch, make: make([1], dtype=torch.float64),
    "requires_grad=": lambda torch, make: make([1], requires_grad=True),
    "unknown keyword": lambda torch, make: make(foo=1),
    "ragged": lambda torch, make: make([[1, 2], [3]]),
    "tensor and device": lambda torch, make: make(torch.ones(2), device="cpu"),
    "another dtype": lambda torch, make: make(torch.ones(2).cfloat()),
    "same dtype": lambda torch, make: make(make([0, 1])),
    "0-d tensor": lambda torch, make: make(make([1])[0]),
}


def beside(make_of):
    """Each way to call a constructor, with both libraries."""
    from side_by_side import compare, outcome
    oracle = pytest.importorskip("torch")
    for name, call in MAKE.items():
        ours, theirs = (outcome(lambda torch, call=call: call(torch, make_of(torch)), library)
                        for library in (tg, oracle))
        compare(ours, theirs, 0, 0, name)


@pytest.mark.parametrize("name", NAMES)
def test_types_make_what_pytorchs_make(name):
    beside(lambda torch: getattr(torch, name))


def test_the_old_constructor():
    beside(lambda torch: torch.Tensor)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_new(dtype):
    beside(lambda torch: torch.ones(2, dtype=getattr(torch, dtype)).new)


@cpu_only
def test_arrays_of_that_dtype_are_shared():
    for kind, dtype in (tg.DoubleTensor, "float64"), (tg.Tensor, "float32"), (tg.LongTensor, "int64"):
        values = np.zeros(2, dtype)
        x = kind(values)
        x[0] = 5
        values[1] = 7
        assert values.tolist() == x.tolist() == [5, 7]
    values = np.zeros(2)
    tg.FloatTensor(values)[0] = 5
    assert values.tolist() == [0, 0]


def test_storages_are_shared():
    """Any object with the protocol of `set_` is accepted as a storage."""
    class Held:
        dtype = tg.float32

        def _as_tensor(self, like):
            assert like.dtype is tg.float32
            return values
    values = tg.zeros(3)
    x = tg.FloatTensor(Held())
    x[1] = 5
    assert values.tolist() == [0, 5, 0] and tg.FloatTensor(storage=Held()).shape == (3,)
    with pytest.raises(RuntimeError, match="Expected a Storage of type Double or an UntypedStorage, but got type Float "
                                           "for argument 1 'storage'"):
        tg.DoubleTensor(Held())


@program
def tensors_are_shared_and_recorded(torch):
    x = torch.ones(2, requires_grad=True)
    y = torch.FloatTensor(x)
    (y * torch.tensor([2., 3.])).sum().backward()
    z = torch.ones(2)
    torch.Tensor(z)[0] = 5
    return x.grad, y.is_leaf, y.requires_grad, z, torch.LongTensor(torch.tensor([1, 2]))._base is not None


# ── x.type(…) ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def type_names(torch):
    dtypes = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16,
              torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128, torch.uint16]
    return [torch.ones(1, dtype=d).type() for d in dtypes], torch.nn.Parameter(torch.ones(1)).type()


@program
def casts(torch):
    x = torch.tensor([0., 1.5])
    targets = [*(getattr(torch, name) for name in NAMES), *(f"torch.{name}" for name in NAMES),
               "torch.ComplexFloatTensor", "torch.UInt16Tensor",
               torch.Tensor, "torch.Tensor", torch.float64]
    return [x.type(t) for t in targets], [x.type(t) is x
                                          for t in (torch.FloatTensor, "torch.FloatTensor", torch.float32)], x.type(
                                              None)


for wrong in ("torch.FooTensor", "float64", "LongTensor", "torch.float64", "", int, float, 3, [1]):
    program(eval("lambda torch: torch.ones(2).type(wrong)", {"wrong": wrong}))
    program[-1].__name__ = f"cast to {wrong!r}"


@program
def modules_are_cast(torch):
    return [torch.nn.Linear(1, 1).type(t).weight.dtype is torch.float64
            for t in (torch.DoubleTensor, "torch.DoubleTensor", torch.float64)]


# ── the default type ──────────────────────────────────────────────────────────────────────────────────────────────────


@program
def default_type(torch):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = []
        for kind in (torch.DoubleTensor, "torch.HalfTensor", "torch.FloatTensor"):
            torch.set_default_tensor_type(kind)
            found += [torch.tensor(1.), torch.Tensor([1]), torch.zeros(2), torch.Tensor(1).zero_()]
    return found


for wrong in ("LongTensor", "'torch.LongTensor'", "'torch.FooTensor'", "float32", "Tensor", "int"):
    program(eval(f"lambda torch: torch.set_default_tensor_type({'torch.' * (wrong.isidentifier() and wrong != 'int')}"
                 f"{wrong})"))
    program[-1].__name__ = f"default type {wrong}"


def test_set_default_tensor_type_warns_once():
    run = """
import sys, warnings
import tensorgrad as t
print("tensorgrad.api.tensor_types" in sys.modules)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    t.set_default_tensor_type("torch.DoubleTensor")
    t.set_default_tensor_type(t.FloatTensor)
print(len(seen), seen[0].message)
"""
    assert fresh_process(run).startswith("False\n1 torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, "
                                         "please use")


# ── CUDA twins ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_twins_allocate_on_the_current_device(two_devices, name):
    kind = getattr(tg.cuda, name)
    with tg.cuda.device(1):
        x = kind(10)
        assert x.get_device() == 1 and x.shape == (10,) and x.dtype is kind.dtype
        assert (isinstance(x, kind) and not isinstance(x, getattr(tg, name)) and not isinstance(x.cpu(), kind)
                and x.type() == f"torch.cuda.{name}")
    assert (kind([1, 0]).device == "cuda:0" and kind([1, 0], device="cuda:1").device == "cuda:1"
            and kind([1, 0]).tolist() == [1, 0])
    assert kind(x).device == "cuda:1", "a tensor stays where it is"
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cuda but device type: cpu was "
                                           "passed"):
        kind([1], device="cpu")


def test_casts_to_and_from_twins(two_devices):
    x = tg.tensor([1.5])
    assert x.type("torch.cuda.LongTensor").device == "cuda:0" and x.type(tg.cuda.LongTensor).tolist() == [1]
    y = x.cuda(1)
    assert (y.type("torch.cuda.DoubleTensor").device == "cuda:1" and y.type(tg.LongTensor).device == "cpu"
            and y.type("torch.cuda.FloatTensor") is y)
    with pytest.raises(TypeError, match=r"expected TensorOptions\(dtype=float, device=cpu, .*got "
                                        r"TensorOptions\(dtype=float, device=cuda:1, "):
        tg.FloatTensor(y)


def test_a_twin_as_default_type(two_devices):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tg.set_default_tensor_type("torch.cuda.DoubleTensor")
            made = [tg.zeros(1), tg.tensor(1.), tg.Tensor(1), tg.Tensor([1])]
        finally:
            tg.set_default_tensor_type(tg.FloatTensor)
    assert ({(str(t.device), t.dtype) for t in made} == {("cuda:0", tg.float64)}
            and tg.Tensor(1).device == tg.zeros(1).device == "cpu")


def test_the_old_constructor_ignores_the_default_device(two_devices):
    """As in PyTorch: only the default type moves it."""
    with tg.device("cuda:1"):
        assert tg.Tensor(2).device == tg.FloatTensor([1]).device == "cpu" and tg.zeros(2).device == "cuda:1"
        assert tg.ones(2, device="cuda:0").new(3).device == "cuda:0"


def test_twins_without_a_device_say_what_is_missing():
    run = """
import sys, warnings
sys.modules["cupy"] = None
warnings.simplefilter("ignore")
import tensorgrad as t
for use in (lambda: t.cuda.FloatTensor(2), lambda: t.set_default_tensor_type("torch.cuda.FloatTensor")):
    try: use()
    except TypeError as error: print(error)
print(t.cuda.FloatTensor, isinstance(t.ones(1), t.cuda.FloatTensor))
"""
    *errors, last = fresh_process(run).splitlines()
    assert len(errors) == 2 and all(line.startswith("type torch.cuda.FloatTensor not available. CUDA tensors need CuPy")
                                    for line in errors)
    assert last == "<class 'torch.cuda.FloatTensor'> False"


test_programs = program.test()
