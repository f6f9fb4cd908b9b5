"""`__torch_function__`: subclasses, classes of a program's own, and modes, beside PyTorch."""
import importlib
import warnings

import numpy as np
import pytest
from side_by_side import attempt
from support import Programs

import tensorgrad as tg

program = Programs()


def logging_class(torch, log):
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((torch.overrides.resolve_name(func).rpartition(".")[2], [t.__name__ for t in types]))
            return super().__torch_function__(func, types, args, kwargs)
    return Logged


@program
def results_are_of_the_subclass(torch):
    class Sub(torch.Tensor):
        pass
    x = torch.ones(2, 2).as_subclass(Sub)
    plain = torch.ones(2, 2)
    results = [x + 1, 1 - x, plain * x, x @ x, x.sum(), torch.relu(x), torch.cat([plain, x]), x.data, x.detach(), x[0],
               x.T, torch.ones_like(x), x.unbind()[0], torch.max(x, 0).values, torch.nn.functional.softmax(x, 0),
               torch.nn.Linear(2, 2)(x),
               Sub([1., 2.]), x.clone().add_(1)]
    return ([type(r).__name__ for r in results], repr(x), repr(x.shape), type(x.shape).__name__,
            type(x.tolist()).__name__)


@program
def plain_results_of_a_disabled_class(torch):
    class Sub(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl
    x = torch.ones(2).as_subclass(Sub)
    return type(x + 1).__name__, type(x.sum()).__name__, type(torch.nn.Parameter(torch.ones(1)) * 2).__name__


@program
def every_way_to_call_is_seen(torch):
    log = []
    x = torch.ones(2, 2).as_subclass(logging_class(torch, log))
    i = torch.ones(2, dtype=torch.int64).as_subclass(type(x))
    _ = (x + 1, 1 + x, 1 - x, 2 / x, x / 2, x // 2, x % 2, x ** 2, 2 ** x, x == 1, x != 1, x < 2, -x, abs(x), x @ x,
         i & 1, 1 | i, ~i, i << 1)
    _ = (x.shape, x.dtype, x.device, x.ndim, x.T, x.mean(dim=0), x.to("cpu"), x.requires_grad, x.is_cuda, len(x),
         bool(x[0, 0]), float(x[0, 0]))
    _ = (torch.relu(x), torch.nn.functional.relu(x), torch.stack([x, x]), torch.linalg.norm(x), torch.fft.fft(x),
         torch.special.erf(x))
    y = x.clone()
    y += 1
    y *= 2
    y[0] = 3
    y.requires_grad = True
    return log


@program
def a_class_of_its_own(torch):
    handled = {}

    class Diagonal:
        def __init__(self, n, value):
            self.n, self.value = n, value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(t, (torch.Tensor, Diagonal)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    def implements(*functions):
        return lambda f: [handled.setdefault(function, f) for function in functions]

    @implements(torch.mean)
    def mean(input):
        return float(input.value) / input.n

    @implements(torch.add, torch.Tensor.add)
    def add(input, other):
        return "sum", type(input).__name__, type(other).__name__

    @implements(torch.nn.functional.mse_loss)
    def loss(input, target, reduction="mean", **kwargs):
        return "loss", reduction

    d = Diagonal(4, 2)
    return (torch.mean(d), torch.add(d, torch.ones(1)), torch.ones(1) + d,
            torch.nn.functional.mse_loss(d, d, reduction="sum"), torch.is_tensor(d),
            torch.overrides.is_tensor_like(d), torch.overrides.has_torch_function((d,)),
            torch.overrides.has_torch_function((torch.ones(1), 2)))


@program
def nobody_knows(torch):
    class Silent:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented
    refusals = []
    for call in (lambda: torch.exp(Silent()), lambda: torch.ones(1) + Silent(),
                 lambda: torch.cat([torch.ones(1), Silent()])):
        try:
            call()
            raise AssertionError
        except TypeError as error:
            refusals.append(str(error).split("\n")[0])
    return refusals


@program
def subclasses_go_first(torch):
    order = []

    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append((cls.__name__, sorted(t.__name__ for t in types)))
            return (NotImplemented if cls.__name__ == "B"
                    else super().__torch_function__(func, (cls,), args, kwargs or {}))

    class B(A):
        pass
    a, b = torch.ones(1).as_subclass(A), torch.ones(1).as_subclass(B)
    result = torch.add(a, b)
    return order, type(result).__name__


@program
def a_mode_sees_plain_tensors(torch):
    class Log(torch.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(torch.overrides.resolve_name(func))
            return func(*args, **(kwargs or {}))
    with Log() as outer:
        x = torch.zeros(2)
        with Log() as inner:
            y = torch.exp(x) + 1
        y.sum()
    torch.exp(x)
    return outer.seen, inner.seen, y


@program
def a_mode_replaces_results(torch):
    class Ones(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) if func is not torch.zeros else torch.ones(*args, **(kwargs or {}))
    with Ones():
        x = torch.zeros(3)
    return x, torch.zeros(3)


@program
def functions_of_a_library(torch):
    def relevant(a, b=None):
        return a, b

    @torch.overrides.wrap_torch_function(relevant)
    def twice(a, b=None):
        return a * 2

    class Answer:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args), sorted(kwargs or {})
    return twice(torch.ones(1)), twice(Answer()), twice(torch.ones(1), b=Answer())


@program
def switched_off(torch):
    class Sub(torch.Tensor):
        pass
    x = torch.ones(2).as_subclass(Sub)
    with torch._C.DisableTorchFunctionSubclass():
        y = x + 1
    return type(y).__name__, type(x + 1).__name__


@program
def gradients_flow_through(torch):
    class Sub(torch.Tensor):
        pass
    x = torch.tensor([1., 2.], requires_grad=True)
    y = (x.as_subclass(Sub) ** 2).sum()
    y.backward()
    return x.grad, type(y).__name__, y.requires_grad


@program
def attributes_of_subclasses(torch):
    class Tagged(torch.Tensor):
        @staticmethod
        def __new__(cls, data, tag):
            return torch.Tensor._make_subclass(cls, data)

        def __init__(self, data, tag):
            self.tag = tag

        def clone(self, *args, **kwargs):
            return Tagged(super().clone(*args, **kwargs), self.tag)
    t = Tagged(torch.ones(2), "a")
    return t.tag, t.clone().tag, hasattr(t + 1, "tag"), type(t.clone()).__name__


@program
def units(torch):
    """A class that wraps a tensor and keeps a unit with it."""
    class Quantity:
        def __init__(self, value, unit):
            self.value, self.unit = value, unit

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            unit = next(a.unit for a in args if isinstance(a, cls))
            return cls(func(*[a.value if isinstance(a, cls) else a for a in args], **(kwargs or {})), unit)
    q = torch.add(Quantity(torch.ones(2), "m"), Quantity(torch.ones(2), "m"))
    r = torch.ones(2) * q
    return q.value, q.unit, r.value, torch.sum(r).value


@program
def new_tensors_and_layouts_of_a_subclass(torch):
    log = []
    x = logging_class(torch, log)([[1.0, 2.0]])
    log.clear()
    made = [x.new(2), x.new_empty(2), x.new_full((2,), 1.0), x.new_ones(2), x.new_tensor([1.0]), x.new_zeros(2),
            x.new_empty_strided((2,), (1,)), x.unflatten(1, (2, 1))]
    return [type(one).__name__ for one in made], x.stride(), log


@program
def overrides_that_are_no_class_methods(torch):
    class Mode(torch.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Own:
        def __torch_function__(self, *args, **kwargs):
            return 3

    class Refusing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append([kind.__name__ for kind in types])
            return NotImplemented if types else func(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        pass

    def bar(a):
        return (torch.overrides.handle_torch_function(bar, (a,), a)
                if torch.overrides.has_torch_function((a,)) else a)
    out, seen = [], []
    for call in (lambda: torch.overrides.has_torch_function(object()), lambda: torch.exp(Own()),
                 lambda: torch.nn.functional.dropout(Own())):
        try:
            out.append(call())
        except TypeError as error:
            out.append(str(error))
    with torch._C.DisableTorchFunction(), torch.overrides._enable_torch_function():
        out.append(type(torch.ones(1).as_subclass(Sub) + 1).__name__)
    with Refusing():
        out.append(type(bar(torch.ones(1).as_subclass(Sub))).__name__)
    modes = torch.overrides._get_current_function_mode, torch.overrides._get_current_function_mode_stack
    with torch.overrides.BaseTorchFunctionMode() as outer, torch.overrides.BaseTorchFunctionMode() as inner:
        out += [modes[0]() is inner, modes[1]() == [outer, inner]]
    try:
        with Mode():
            torch.ones(1) + 1
    except RuntimeError as error:
        out.append(str(error))
    return out, seen, modes[0](), torch._C._is_torch_function_all_disabled()


@program
def distributions_of_another_class(torch):
    class Wrapper:
        def __init__(self, data):
            self.data = data

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            args = [a.data if isinstance(a, Wrapper) else a for a in args]
            return [Wrapper(out) for out in func(*args, **(kwargs or {}))]
    utils = importlib.import_module(f"{torch.__name__}.distributions.utils")
    parts = utils.broadcast_all(Wrapper(torch.ones(2)), torch.tensor(5.0))
    return [(type(part).__name__, part.data) for part in parts]


@program
def attributes_under_names_of_slots(torch):
    """Compute with classes that have a property `array`, a method, values: PyTorch leaves these names free."""
    class Meta:
        @property
        def array(self):
            return self.detach().numpy()

        @array.setter
        def array(self, value):
            self.copy_(torch.as_tensor(value))

    class Image(Meta, torch.Tensor):
        origin = (0.0, 0.0)

    class Method(torch.Tensor):
        def array(self, factor):
            return factor * self.sum().item()

    class Further(Image):
        @property
        def array(self):
            return 2 * super().array
    image = torch.tensor([[1.0, 2.0]]).as_subclass(Image)
    before = image.array.tolist(), image.origin
    image.array = [[3.0, 4.0]]
    image.origin = "moved"
    leaf = torch.ones(2).as_subclass(Method).requires_grad_()
    (leaf * torch.tensor([2.0, 3.0])).sum().backward()
    further = torch.tensor([5.0]).as_subclass(Further)
    return (before, image.array.tolist(), image.origin, (image @ image.T).array.tolist(), Image.origin,
            type(image + 1).__name__, leaf.grad, leaf.array(10), further.array.tolist(), (further * 2).array.tolist(),
            repr(image), image[0].clone().tolist(), type(Image.array).__name__)


@program
def functions_that_a_program_puts_on_tensor(torch):
    """Call functions that a program puts on Tensor on a subclass: only functions that they call are dispatched."""
    import functools
    log, plain = [], torch.Tensor.sub

    @functools.wraps(plain)
    def sub(self, other):
        return plain(self, other)
    names = {"twice": lambda self: self * 2, "size_and_one": property(lambda self: self.numel() + 1), "sub": sub}
    for name, value in names.items():
        setattr(torch.Tensor, name, value)
    try:
        x = logging_class(torch, log)([1.0, 2.0])
        log.clear()
        return x.twice().tolist(), x.size_and_one, x.sub(1).tolist(), log
    finally:
        torch.Tensor.sub = plain
        del torch.Tensor.twice, torch.Tensor.size_and_one


@program
def batches_of_a_subclass(torch):
    class Sub(torch.Tensor):
        pass
    x = torch.ones(2).as_subclass(Sub)
    data = importlib.import_module(f"{torch.__name__}.utils.data")
    batches = [data.default_collate([x, x]), data.default_collate([torch.ones(2), x]),
               data.default_collate([{"a": (x, 1)}] * 2)["a"][0],
               *data.DataLoader(data.TensorDataset(torch.stack([x, x])), batch_size=2, collate_fn=lambda b: b[0][0]),
               next(iter(data.DataLoader(data.TensorDataset(torch.stack([x, x])), batch_size=2)))[0]]
    return [(type(batch).__name__, batch.tolist()) for batch in batches]


@program
def names_of_functions(torch):
    """Name aliases, functions that load late, and functions that PyTorch has in other modules."""
    names, seen = torch.overrides.resolve_name, []

    class Log(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(names(func))
            return func(*args, **(kwargs or {}))
    x, handled = torch.ones(2, 2), {torch.Tensor.abs: 1, torch.Tensor.absolute: 2, torch.Tensor.negative: 3}
    with Log():
        found = [x.absolute(), x.negative(), x.__div__(2), x.__radd__(1), torch.split(x, 1)[0], torch.Tensor.fix(x)]
        torch.nn.init.constant_(x, 3.)
    functions = (torch.split, torch.lstm, torch.lobpcg, torch.pca_lowrank, torch.convolution, torch._sym_cos)
    listed = torch.overrides.get_testing_overrides()
    return [found, x, seen, [names(f) for f in functions], [f.__module__.partition(".")[2] for f in functions[:4]],
            len(handled), handled[torch.Tensor.absolute],
            [f in listed for f in (*functions, torch.nn.init.normal_, torch.distributed.all_reduce, torch.hash_tensor)]]


@program
def operators_beneath_functions(torch):
    x, theta = torch.arange(1., 7).reshape(2, 3), torch.ones(1, 2, 3)
    mean, grad = torch.zeros(3), torch.tensor([-1.5, -0.26, 0.05, 0.15, 9., float("nan")], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(grad, 0.1, 3, 0, 15)
    y.backward(torch.arange(1., 7))
    with warnings.catch_warnings(action="ignore"):          # that they are new in PyTorch
        zero, sparse = torch.tensor([0, 1], dtype=torch.int32), x.to_sparse_csr()
    return [torch._fused_rms_norm(x, [3], None, None), torch._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5),
            torch.batch_norm_update_stats(x, mean, None, 0.25), mean,
            torch.affine_grid_generator(theta, [1, 1, 2, 2], True),
            torch.crow_indices_copy(sparse), torch.values_copy(sparse), torch._sym_sqrt(9), y.detach(), grad.grad,
            torch.fake_quantize_per_channel_affine(x, torch.tensor([.5, 2.]), zero, 0, -2, 2), x.int().dequantize(),
            str(x.hash_tensor().dtype), x._grad_fn, x.is_xla, x._cdata == x._cdata,
            *(attempt(f) for f in (lambda: torch.affine_grid_generator(theta, [1, 2], True), x.xpu,
                                   lambda: x.__cuda_array_interface__,
                                   lambda: torch.fake_quantize_per_tensor_affine(x, 0.1, 99, 0, 15),
                                   lambda: torch.fake_quantize_per_channel_affine(x, zero.float(), zero, 1, 0, 9),
                                   lambda: torch.fake_quantize_per_channel_affine(1, zero.float(), zero, 1, 0, 9),
                                   lambda: torch.fake_quantize_per_channel_affine(x, 1, zero, 1, 0, 9),
                                   lambda: torch.batch_norm_update_stats(1, None, None, .1),
                                   lambda: torch._fused_rms_norm(1, [2], None, None)))]


test_programs = program.test()


def test_names_of_functions_in_namespaces():
    torch = pytest.importorskip("torch")
    for namespace, name in (("linalg", "inv"), ("fft", "rfft"), ("special", "expit")):
        theirs, ours = (getattr(getattr(lib, namespace), name) for lib in (torch, tg))
        assert ours.__name__ == theirs.__name__
        assert tg.overrides.resolve_name(ours) == torch.overrides.resolve_name(theirs)


def test_lists_of_functions():
    functions = tg.overrides.get_overridable_functions()
    assert tg.add in functions[tg] and tg.nn.functional.relu in functions[tg.nn.functional]
    assert tg.Tensor.add in functions[tg.Tensor] and tg.Tensor.shape.__get__ in functions[tg.Tensor]
    assert tg.tensor in tg.overrides.get_ignored_functions()
    assert set(tg.overrides.get_testing_overrides()) >= set(functions[tg])
    assert (tg.overrides.is_tensor_method_or_property(tg.Tensor.add)
            and not tg.overrides.is_tensor_method_or_property(tg.add))


@pytest.mark.parametrize("name", ["add", "nn.functional.relu", "linalg.norm", "fft.fft", "special.erf"])
def test_functions_pickle_by_name(name):
    import operator
    import pickle
    function = operator.attrgetter(name)(tg)
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__wrapped__ is not None


def test_numpy_arrays_need_no_override():
    class Sub(tg.Tensor):
        pass
    x = tg.ones(2) + np.ones(2, np.float32)
    assert type(x) is tg.Tensor and type(tg.ones(2).as_subclass(Sub)) is Sub
