"""Internals of PyTorch that packages import: of utils.data, _utils, and the namespaces of the compiled module."""
import importlib

import pytest
from side_by_side import attempt
from support import Programs

import tensorgrad

program = Programs()


def module(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


@program
def parts_of_a_loader(torch):
    data, parts = module(torch, "utils.data"), module(torch, "utils.data._utils")
    kinds = data._DatasetKind
    fetchers = [kinds.create_fetcher(kinds.Map, [10, 20, 30], True, sum, False),
                kinds.create_fetcher(kinds.Iterable, [1, 2, 3], True, list, True),
                parts.fetch._MapDatasetFetcher([1, 2], False, str, False)]
    iterable = fetchers[1]
    fetched = [fetchers[0].fetch([0, 2]), iterable.fetch([0, 0]), fetchers[2].fetch(1),
               attempt(lambda: iterable.fetch([0, 0]))]
    pattern = parts.collate.np_str_obj_array_pattern
    endless = module(torch, "utils.data.dataloader")._InfiniteConstantSampler()
    return (fetched, [parts.worker._generate_state(2**40 + 3, 7), parts.worker._generate_state(5, 0)],
            [bool(pattern.search(text)) for text in ("<U3", "|S1", "|O", "<f4", "|b1")],
            next(iter(endless)), parts.MP_STATUS_CHECK_INTERVAL, parts.HAS_NUMPY,
            parts.pin_memory.pin_memory({"a": [1, "b"]}), parts.ExceptionWrapper.__name__)


@program
def helpers(torch):
    utils = module(torch, "_utils")
    mixed = [torch.ones(3), torch.ones(3, dtype=torch.int32), torch.ones(9), torch.ones(1), torch.ones(2)]
    chunks = [[t.shape[0] for t in chunk] for chunk in utils._take_tensors(mixed, 24)]
    order = [mixed[0], mixed[2], mixed[1]]
    devices = [attempt(lambda d=d, o=o, c=c: utils._get_device_index(d, optional=o, allow_cpu=c))
               for d in (torch.device("cpu"), "cpu", 1, "cuda:1") for o in (False, True) for c in (False, True)]

    class Named:
        @utils.classproperty
        def label(cls):
            return cls.__name__
    return (chunks, [str(t.dtype) for t in utils._reorder_tensors_as(order, mixed[:3])], devices,
            [utils._element_size(d) for d in (torch.complex64, torch.bool, torch.int16)],
            attempt(lambda: utils._element_size(3)), utils._handle_complex(torch.tensor([1 + 2j])), Named.label,
            utils._import_dotted_name("os.path.join").__name__,
            utils._get_device_module("cpu").__name__.rpartition(".")[2],
            attempt(lambda: utils._get_device_module("no"))[1],
            module(torch, "utils._mode_utils").all_same_mode([1, 1]))


@program
def places(torch):
    internal = module(torch, "_utils_internal")
    return (internal.get_file_path_2("a", "b"), internal.justknobs_check("x"), internal.justknobs_check("x", False),
            internal.justknobs_getval_int("x"), internal.is_fb_unit_test(), internal.TEST_MASTER_ADDR)


@program
def namespaces_of_the_compiled_module(torch):
    C = torch._C
    x = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    return (C._linalg.linalg_det(x), C._special.special_expit(x), C._fft.fft_rfft(x).shape, C._nn.gelu(x),
            C._VariableFunctions.add(x, 1), C._VariableFunctions.__and__(torch.tensor(6), 3),
            attempt(lambda: C._linalg.nothing)[0], hasattr(C._nn, "__nothing__"))


@program
def operators_that_a_mode_sees(torch):
    dispatch, log = module(torch, "utils._python_dispatch"), []

    class Names(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(str(func))
            out = func(*args, **(kwargs or {}))
            return dispatch.return_and_correct_aliasing(func, args, kwargs, out)

    class Doubling(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out * 2 if func is exp else out
    x, y, exp = torch.ones(2, 3), torch.ones(3, 2), module(torch, "_ops").ops.aten.exp.default
    linear, bias, wide, images = torch.nn.functional.linear, torch.ones(2), torch.ones(1, 2, 5), torch.ones(1, 2, 3, 3)
    calls = [lambda: x + 1, lambda: x * x, lambda: 2 * x, lambda: x.sum(), lambda: torch.exp(x), lambda: x @ y,
             lambda: torch.relu(x), lambda: x.shape, lambda: x.size(), lambda: x.add_(1) is x, lambda: x.view(3, 2),
             lambda: torch.zeros(2), lambda: torch.cat([x, x]), lambda: x[0], lambda: x.t(), lambda: x.mean(),
             lambda: x / 2, lambda: -x, lambda: x ** 2, lambda: 2 ** x, lambda: x ** x, lambda: x.sum(1),
             lambda: x == 1, lambda: torch.where(x > 1, x, x), lambda: x.max(1), lambda: x.tolist(),
             lambda: linear(x, x), lambda: linear(x, x, bias), lambda: torch.conv1d(wide, wide),
             lambda: torch.nn.functional.conv2d(images, images, stride=2)]
    seen = []
    for call in calls:
        log.clear()
        with Names():
            call()
        seen.append(list(log))
    with Doubling() as mode, Names() as inner:
        stack = dispatch._get_current_dispatch_mode_stack()
        facts = [stack == [mode, inner], dispatch._get_current_dispatch_mode() is inner, torch.exp(torch.zeros(1)),
                 dispatch.is_in_torch_dispatch_mode()]
        with dispatch._disable_current_modes():
            facts += [torch.exp(torch.zeros(1)), dispatch._get_current_dispatch_mode()]
    return seen, facts, dispatch._get_current_dispatch_mode()


@program
def classes_that_hold_tensors(torch):
    dispatch = module(torch, "utils._python_dispatch")

    class Two(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b):
            out = a.as_subclass(cls)
            out.a, out.b = a, b
            return out

        def __tensor_flatten__(self):
            return ["a", "b"], "context"

        @staticmethod
        def __tensor_unflatten__(parts, context, size, stride):
            seen.append((sorted(parts), context, tuple(size), tuple(stride)))
            return Two(parts["a"], parts["b"])
    seen = []
    two = Two(torch.ones(2), torch.zeros(3))
    changed = dispatch.transform_subclass(two, lambda name, part: part + (name == "b"))
    return (dispatch.is_traceable_wrapper_subclass(two), dispatch.is_traceable_wrapper_subclass(torch.ones(1)),
            dispatch.is_traceable_wrapper_subclass_type(Two), changed.a, changed.b, seen)


test_programs = program.test()


def test_file_paths_begin_beside_the_package():
    from tensorgrad._utils_internal import get_file_path, get_writable_path
    assert get_file_path("tensorgrad", "__init__.py") == tensorgrad.__file__
    with pytest.raises(FileNotFoundError):
        open(get_writable_path("/nowhere/there") + "/x")
