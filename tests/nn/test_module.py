"""The machinery of nn.Module, compared with PyTorch's program by program."""
import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest
from nn_oracle import agree, cases, names, net, raising

import tensorgrad


# ── parameters and buffers ────────────────────────────────────────────────────────────────────
@cases(
    lambda torch: repr(torch.nn.Parameter(torch.zeros(2))),
    lambda torch: repr(torch.nn.Parameter(torch.ones(1, 2), requires_grad=False)),
    lambda torch: repr(type("Own", (torch.nn.Parameter,), {})(torch.zeros(2))),
    lambda torch: torch.nn.Parameter(torch.zeros(2)) * 2,
    lambda torch: torch.nn.Parameter(torch.zeros(2)).detach(),
    lambda torch: torch.nn.Parameter(torch.zeros(2)).data,
    lambda torch: torch.nn.Parameter(torch.zeros(2))[0],
    lambda torch: torch.nn.Parameter(),
    lambda torch: torch.nn.Parameter(torch.zeros(2, dtype=torch.int64)),
    lambda torch: torch.nn.Parameter(torch.zeros(2, dtype=torch.int64), requires_grad=False),
    lambda torch: isinstance(torch.zeros(1), torch.nn.Parameter),
    lambda torch: isinstance(torch.nn.Parameter(torch.zeros(1)), torch.Tensor),
    lambda torch: torch.nn.Parameter(torch.nn.Parameter(torch.zeros(1))),
    lambda torch: torch.nn.Parameter(torch.ones(2, requires_grad=True) * 2).is_leaf,
    lambda torch: torch.nn.Buffer(torch.ones(2)),
    lambda torch: (repr(torch.nn.Buffer(torch.ones(2))), isinstance(torch.nn.Buffer(), torch.nn.Buffer)),
    lambda torch: (torch.nn.Buffer(torch.ones(2), persistent=False).persistent, torch.nn.Buffer().persistent),
    lambda torch: isinstance(torch.ones(1), torch.nn.Buffer),
    lambda torch: issubclass(torch.nn.UninitializedParameter, torch.nn.Parameter),
    lambda torch: copy.deepcopy(torch.nn.Parameter(torch.ones(2))),
    lambda torch: pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(2), requires_grad=False))),
)
def test_parameters(program):
    agree(program)


def test_parameter_shares_memory():
    data = tensorgrad.zeros(2)
    parameter = tensorgrad.nn.Parameter(data)
    data[0] = 5.0
    assert parameter.tolist() == [5.0, 0.0]
    with tensorgrad.no_grad():
        parameter[1] = 7.0
    assert data.tolist() == [5.0, 7.0]


def test_deepcopy_of_a_shared_parameter_is_shared():
    parameter = tensorgrad.nn.Parameter(tensorgrad.ones(1))
    first, second = copy.deepcopy([parameter, parameter])
    assert first is second and first is not parameter and type(first) is tensorgrad.nn.Parameter


def test_parameter_keeps_attributes_in_a_pickle():
    parameter = tensorgrad.nn.Parameter(tensorgrad.ones(1))
    parameter.label = "mine"
    assert pickle.loads(pickle.dumps(parameter)).label == "mine"


def test_parameter_of_a_tensor_subclass_keeps_the_class():
    class Special(tensorgrad.Tensor):
        def detach(self):
            return super().detach().as_subclass(Special)

    parameter = tensorgrad.nn.Parameter(tensorgrad.ones(2).as_subclass(Special))
    assert type(parameter) is Special and isinstance(parameter, tensorgrad.nn.Parameter) and parameter.requires_grad
    module = tensorgrad.nn.Module()
    module.weight = parameter
    assert names(module.named_parameters()) == ["weight"]


def test_parameter_of_a_subclass_whose_detach_changes_class():
    class Fleeting(tensorgrad.Tensor):
        def detach(self):
            return tensorgrad.zeros(2)

    with pytest.raises(RuntimeError, match="Creating a Parameter from an instance of type Fleeting"):
        tensorgrad.nn.Parameter(tensorgrad.ones(2).as_subclass(Fleeting))


@cases(
    lambda torch: repr(torch.nn.UninitializedParameter()),
    lambda torch: repr(torch.nn.UninitializedBuffer()),
    lambda torch: torch.nn.UninitializedParameter().shape,
    lambda torch: raising(lambda: torch.nn.UninitializedParameter() * 2)[0],
    lambda torch: raising(lambda: torch.add(1, torch.nn.UninitializedParameter()))[0],
    lambda torch: torch.nn.UninitializedParameter(dtype=torch.float64).dtype,
    lambda torch: torch.nn.UninitializedParameter().device.type,
    lambda torch: torch.nn.UninitializedParameter().is_floating_point(),
    lambda torch: torch.nn.UninitializedParameter().double().dtype,
    lambda torch: torch.nn.UninitializedParameter().share_memory_(),
    lambda torch: torch.nn.parameter.is_lazy(torch.nn.UninitializedBuffer()),
    lambda torch: torch.nn.parameter.is_lazy(torch.ones(1)),
    lambda torch: torch.nn.UninitializedBuffer().requires_grad,
    lambda torch: repr(copy.deepcopy(torch.nn.UninitializedParameter(dtype=torch.float64))),
    lambda torch: repr(pickle.loads(pickle.dumps(torch.nn.UninitializedParameter()))),
)
def test_uninitialized(program):
    agree(program)


def test_materialize():
    for cls, becomes in ((tensorgrad.nn.UninitializedParameter, tensorgrad.nn.Parameter),
                         (tensorgrad.nn.UninitializedBuffer, tensorgrad.Tensor)):
        tensor = cls(dtype=tensorgrad.float64)
        tensor.materialize((2, 3))
        assert type(tensor) is becomes
        assert tensor.shape == (2, 3) and tensor.dtype is tensorgrad.float64
        assert tensor.requires_grad is (becomes is tensorgrad.nn.Parameter)
        assert (tensor.detach().zero_() + 1).sum() == 6


# ── attributes ────────────────────────────────────────────────────────────────────────────────
def assigning(value):
    """A program: assign a value to a name that is a parameter, a buffer, a child, plain, or new."""
    def program(torch):
        def one(name):
            module = net(torch)
            module.plain = 1
            setattr(module, name, value(torch))
            return [names(module.named_parameters()), names(module.named_buffers()), names(module.named_children()),
                    list(module.state_dict()), name in vars(module)]
        return [raising(lambda name=name: one(name))
                for name in ("scale", "absent", "count", "scratch", "first", "later", "plain", "new")]
    return program


@pytest.mark.parametrize("value", [
    lambda torch: torch.nn.Parameter(torch.ones(1)), lambda torch: torch.ones(1),
    lambda torch: torch.nn.Buffer(torch.ones(1)), lambda torch: torch.nn.Buffer(torch.ones(1), persistent=False),
    lambda torch: torch.nn.ReLU(),
    lambda torch: None, lambda torch: 3])
def test_assignment(value):
    agree(assigning(value))


def bare(torch):
    """A module whose __init__ forgot super().__init__()."""
    class Bare(torch.nn.Module):
        def __init__(self):
            pass

        def forward(self):
            return 1
    return Bare()


@cases(
    lambda torch: setattr(bare(torch), "x", torch.nn.Parameter(torch.ones(1))),
    lambda torch: setattr(bare(torch), "x", torch.nn.ReLU()),
    lambda torch: setattr(bare(torch), "x", torch.nn.Buffer(torch.ones(1))),
    lambda torch: setattr(bare(torch), "x", 1),
    lambda torch: bare(torch).register_parameter("x", None),
    lambda torch: bare(torch).register_buffer("x", None),
    lambda torch: bare(torch).x,
    lambda torch: bare(torch)(),
    lambda torch: net(torch).missing,
    lambda torch: delattr(net(torch), "missing"),
    lambda torch: net(torch).register_parameter(1, None),
    lambda torch: net(torch).register_parameter("a.b", None),
    lambda torch: net(torch).register_parameter("", None),
    lambda torch: net(torch).register_parameter("forward", None),
    lambda torch: net(torch).register_parameter("x", torch.ones(1)),
    lambda torch: net(torch).register_parameter("x", [1]),
    lambda torch: net(torch).register_buffer(1, None),
    lambda torch: net(torch).register_buffer("a.b", None),
    lambda torch: net(torch).register_buffer("", None),
    lambda torch: net(torch).register_buffer("scale", None),
    lambda torch: net(torch).register_buffer("x", 3),
    lambda torch: net(torch).add_module(1, None),
    lambda torch: net(torch).add_module("a.b", None),
    lambda torch: net(torch).add_module("", None),
    lambda torch: net(torch).add_module("scale", None),
    lambda torch: net(torch).add_module("x", 3),
    lambda torch: net(torch).register_module("x", torch.nn.ReLU()),
    lambda torch: torch.nn.Module(3),
    lambda torch: torch.nn.Module(x=3),
    lambda torch: torch.nn.Module()(1),
    lambda torch: torch.nn.Module().forward(),
    lambda torch: [name for name in dir(net(torch)) if name in ("scale", "count", "first", "training", "_modules")],
    lambda torch: [name for name in dir(torch.nn.Sequential(torch.nn.ReLU())) if name.isdigit()],
)
def test_registration(program):
    agree(program)


@pytest.mark.parametrize("name", ["scale", "count", "scratch", "first", "later", "absent", "training"])
def test_deletion(name):
    def program(torch):
        module = net(torch)
        delattr(module, name)
        return [hasattr(module, name), names(module.named_parameters()), list(module.state_dict()),
                sorted(module._non_persistent_buffers_set)]
    agree(program)


def test_non_leaf_parameter_is_refused():
    def program(torch):
        parameter = torch.nn.Parameter(torch.ones(2))
        parameter.data = torch.ones(2)
        parameter.requires_grad_(False)
        parameter.mul_(torch.ones(2, requires_grad=True))
        torch.nn.Module().register_parameter("x", parameter)
    agree(program)


def test_call_super_init():
    def program(torch):
        class Other:
            def __init__(self, x, y=0):
                self.got = x, y

        class Both(torch.nn.Module, Other):
            call_super_init = True

            def __init__(self):
                super().__init__(1, y=2)
        return Both().got
    agree(program)


def test_register_buffer_of_an_old_subclass():
    def program(torch):
        class Old(torch.nn.Module):
            def register_buffer(self, name, tensor):
                super().register_buffer("my_" + name, tensor)
        module = Old()
        module.x = torch.nn.Buffer(torch.ones(1))
        return list(module.state_dict())
    agree(program)


def test_property_that_raises_is_reported_by_name():
    def program(torch):
        class Broken(torch.nn.Module):
            @property
            def ratio(self):
                return self.absent_attribute
        return raising(lambda: Broken().ratio)[0]
    agree(program)


# ── the tree ──────────────────────────────────────────────────────────────────────────────────
@cases(
    lambda torch: names(net(torch).named_modules()),
    lambda torch: names(net(torch).named_modules(prefix="p", remove_duplicate=False)),
    lambda torch: len(list(net(torch).modules())),
    lambda torch: names(net(torch).named_children()),
    lambda torch: len(list(net(torch).children())),
    lambda torch: names(net(torch).named_parameters()),
    lambda torch: names(net(torch).named_parameters("p", remove_duplicate=False)),
    lambda torch: names(net(torch).named_parameters(recurse=False)),
    lambda torch: names(net(torch).named_buffers()),
    lambda torch: names(net(torch).named_buffers("p", recurse=False)),
    lambda torch: list(net(torch).parameters()),
    lambda torch: list(net(torch).buffers(recurse=False)),
    lambda torch: net(torch).get_submodule(""),
    lambda torch: net(torch).get_submodule("second.0"),
    lambda torch: net(torch).get_submodule("second.7"),
    lambda torch: net(torch).get_submodule("scale"),
    lambda torch: net(torch).get_parameter("first.weight"),
    lambda torch: net(torch).get_parameter("first.in_features"),
    lambda torch: net(torch).get_parameter("first.nothing"),
    lambda torch: net(torch).get_buffer("count"),
    lambda torch: net(torch).get_buffer("scale"),
    lambda torch: net(torch).get_buffer("nothing.there"),
    lambda torch: net(torch).set_submodule("", torch.nn.ReLU()),
    lambda torch: net(torch).set_submodule("first", 3),
    lambda torch: net(torch).set_submodule("scale", torch.nn.ReLU()),
    lambda torch: net(torch).set_submodule("fresh", torch.nn.ReLU(), strict=True),
    lambda torch: net(torch).set_submodule("second.nowhere.x", torch.nn.ReLU()),
    lambda torch: net(torch).train(3),
    lambda torch: [module.training for module in net(torch).eval().modules()],
    lambda torch: [module.training for module in net(torch).eval().train().modules()],
    lambda torch: [parameter.requires_grad for parameter in net(torch).requires_grad_(False).parameters()],
)
def test_tree(program):
    agree(program)


def test_set_submodule():
    def program(torch):
        module = net(torch)
        module.set_submodule("second.1", torch.nn.Tanh(), strict=True)
        module.set_submodule("second.fresh", torch.nn.ReLU())
        return module
    agree(program)


def test_apply_goes_bottom_up():
    def program(torch):
        seen = []
        module = net(torch)
        return module.apply(lambda m: seen.append(type(m).__name__)) is module, seen
    agree(program)


def test_zero_grad():
    def program(torch):
        module, grads = net(torch), []
        for set_to_none in (False, True):
            module(torch.ones(1, 2)).sum().backward()
            module.zero_grad(set_to_none)
            grads.append([parameter.grad for parameter in module.parameters()])
        return grads
    agree(program)


def test_zero_grad_of_a_gradient_with_history():
    def program(torch):
        module = torch.nn.Linear(2, 1)
        module.weight.grad = torch.ones(1, 2, requires_grad=True) * 2
        module.zero_grad(set_to_none=False)
        return module.weight.grad
    agree(program)


# ── printing ──────────────────────────────────────────────────────────────────────────────────
def described(torch, text):
    class Described(torch.nn.Module):
        def extra_repr(self):
            return text
    return Described()


@cases(
    lambda torch: net(torch),
    lambda torch: torch.nn.Module(),
    lambda torch: described(torch, "one"),
    lambda torch: described(torch, "one\ntwo"),
    lambda torch: torch.nn.Sequential(described(torch, "one\n\ntwo"), torch.nn.Sequential()),
    lambda torch: torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.Tanh(), torch.nn.ReLU()]),
    lambda torch: torch.nn.ModuleList([described(torch, "one\ntwo") for _ in range(2)]),
    lambda torch: torch.nn.ModuleList(),
    lambda torch: torch.nn.ModuleDict({"b": torch.nn.ReLU(), "a": torch.nn.Sequential(torch.nn.Tanh())}),
    lambda torch: torch.nn.ParameterList([torch.ones(2, 3), torch.nn.Parameter(torch.ones(())), 3]),
    lambda torch: torch.nn.ParameterDict({"b": torch.ones(2), "a": "text"}),
    lambda torch: torch.nn.Sequential(torch.nn.ParameterList([torch.ones(2)])),
)
def test_repr(program):
    agree(program)


# ── state ─────────────────────────────────────────────────────────────────────────────────────
@cases(
    lambda torch: net(torch).state_dict(),
    lambda torch: net(torch).state_dict(prefix="p.", keep_vars=True),
    lambda torch: net(torch).state_dict()._metadata,
    lambda torch: type(net(torch).state_dict()).__name__,
    lambda torch: net(torch).state_dict({}, "p."),
    lambda torch: net(torch).state_dict(OrderedDict(), "", True),
    lambda torch: torch.nn.BatchNorm1d(2).state_dict()._metadata,
    lambda torch: raising(lambda: net(torch).get_extra_state())[1][:75],
    lambda torch: net(torch).load_state_dict(net(torch).state_dict()),
    lambda torch: repr(net(torch).load_state_dict(net(torch).state_dict())),
    lambda torch: repr(net(torch).load_state_dict({}, strict=False)),
    lambda torch: net(torch).load_state_dict({"x": torch.ones(1)}, strict=False).unexpected_keys,
    lambda torch: net(torch).load_state_dict([]),
    lambda torch: torch.nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1), "bias": 3}),
    lambda torch: torch.nn.BatchNorm1d(1).load_state_dict(
        {**torch.nn.BatchNorm1d(1).state_dict(), "num_batches_tracked": torch.tensor([7])}),
)
def test_state(program):
    agree(program)


def test_all_problems_of_a_state_are_named():
    def program(torch):
        state = net(torch).state_dict()
        del state["scale"], state["second.0.weight"]
        state["first.bias"] = torch.ones(3)
        state["first.weight"] = torch.ones(2, 2, 1)
        state.update({"x": torch.ones(1), "second.0.bias": torch.ones(1), "nobody.x": torch.ones(1)})
        module = net(torch)
        try:
            module.load_state_dict(state)
        except RuntimeError as error:
            return str(error)
    agree(program)


def test_load_copies_in_place():
    def program(torch):
        module, other = net(torch), net(torch).double()
        before = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        with torch.no_grad():
            other.scale.fill_(9)
            other.count.fill_(9)
        module.load_state_dict(other.state_dict())
        after = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return [after[name] is before[name] for name in after], module.scale, module.count
    agree(program)


def test_load_with_assign():
    def program(torch):
        module, state = net(torch), net(torch).double().state_dict()
        state["first.bias"] = torch.nn.Parameter(state["first.bias"], requires_grad=False)
        module.scale.requires_grad_(False)
        module.load_state_dict(state, assign=True)
        return ([*module.named_parameters(), *module.named_buffers()], module.count is state["count"],
                module.first.bias is state["first.bias"])
    agree(program)


def test_copying_error_is_reported():
    def program(torch):
        class Stubborn(torch.nn.Module):
            def __setattr__(self, name, value):
                if name == "weight" and hasattr(self, "weight"):
                    raise ValueError("no")
                super().__setattr__(name, value)
        module = Stubborn()
        module.weight = torch.nn.Parameter(torch.ones(1))
        try:
            module.load_state_dict({"weight": torch.zeros(1)}, assign=True)
        except RuntimeError as error:
            return str(error)
    agree(program)


def test_extra_state():
    def program(torch):
        class Extra(torch.nn.Module):
            note = "fresh"

            def get_extra_state(self):
                return self.note

            def set_extra_state(self, state):
                self.note = state
        source, target = torch.nn.Sequential(Extra()), torch.nn.Sequential(Extra())
        source[0].note = "old"
        state = source.state_dict()
        target.load_state_dict(state)
        return (state, target[0].note, raising(lambda: target.load_state_dict({})),
                raising(lambda: torch.nn.Sequential(torch.nn.ReLU()).load_state_dict(state)))
    agree(program)


def test_state_dict_hooks():
    def program(torch):
        module, seen = torch.nn.Sequential(torch.nn.Linear(1, 1)), []
        module.register_state_dict_pre_hook(lambda m, prefix, keep_vars: seen.append((m is module, prefix, keep_vars)))
        handle = module.register_state_dict_post_hook(lambda m, state, prefix, metadata: state.pop("0.bias") and None)
        module._register_state_dict_hook(lambda m, state, prefix, metadata: {**state, "version": metadata["version"]})
        first = module.state_dict()
        handle.remove()
        return first, module.state_dict(keep_vars=True), seen
    agree(program)


def test_state_dict_post_hook_must_return_none():
    def program(torch):
        module = torch.nn.Linear(1, 1)
        hook = lambda m, state, prefix, metadata: state
        module.register_state_dict_post_hook(hook)
        return raising(module.state_dict), raising(lambda: module._register_state_dict_hook(hook))
    agree(program)


def test_load_hooks():
    def program(torch):
        module, seen = torch.nn.Sequential(torch.nn.Linear(1, 1)), []

        def pre(m, state, prefix, metadata, strict, missing, unexpected, errors):
            state[prefix + "bias"] = state.pop(prefix + "offset")
            seen.append((m is module[0], prefix, metadata, strict, missing, unexpected, errors))

        def post(m, keys):
            keys.missing_keys.clear()

        module[0].register_load_state_dict_pre_hook(pre)
        module[0]._register_load_state_dict_pre_hook(lambda *args: seen.append(len(args)))
        module.register_load_state_dict_post_hook(post)
        state = {"0.offset": torch.ones(1), "0.stray": torch.ones(1)}
        return raising(lambda: module.load_state_dict(state)), sorted(state), module[0].bias, seen
    agree(program)


def test_load_post_hook_must_return_none():
    def program(torch):
        module = torch.nn.Linear(1, 1)
        module.register_load_state_dict_post_hook(lambda m, keys: keys)
        module.load_state_dict(module.state_dict())
    agree(program)


def test_own_versions_and_loading():
    def program(torch):
        class Renamed(torch.nn.Module):
            _version = 2

            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.zeros(1))

            def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
                if local_metadata.get("version", 1) < 2:
                    state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
                super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)
        module = torch.nn.Sequential(Renamed())
        module.load_state_dict({"0.w": torch.ones(1)})
        return module.state_dict(), module.state_dict()._metadata, module.load_state_dict(module.state_dict())
    agree(program)


# ── moving and casting ────────────────────────────────────────────────────────────────────────
@cases(
    lambda torch: net(torch).to(torch.float64).state_dict(),
    lambda torch: net(torch).to("cpu", torch.float16).state_dict(),
    lambda torch: net(torch).to(device="cpu", dtype=torch.float64).scale,
    lambda torch: net(torch).to(torch.ones(1, dtype=torch.float64)).scale,
    lambda torch: net(torch).to("cpu", non_blocking=True).scale,
    lambda torch: net(torch).to(torch.device("cpu")).scale,
    lambda torch: net(torch).to(torch.complex64).scale.dtype,
    lambda torch: net(torch).to(torch.int64),
    lambda torch: net(torch).to().scale,
    lambda torch: raising(lambda: net(torch).to("nowhere"))[0],
    lambda torch: net(torch).double().state_dict(),
    lambda torch: net(torch).half().scale,
    lambda torch: net(torch).bfloat16().scale.dtype,
    lambda torch: net(torch).half().float().scale,
    lambda torch: net(torch).type(torch.float64).count.dtype,
    lambda torch: net(torch).cpu().scale,
    lambda torch: [list(tensor.shape) for tensor in net(torch).to_empty(device="cpu").state_dict().values()],
    lambda torch: net(torch).to_empty(device="cpu", recurse=False).first.weight,
)
def test_conversion(program):
    agree(program)


def test_conversion_keeps_parameters_and_moves_gradients():
    def program(torch):
        module = net(torch)
        module(torch.ones(1, 2)).sum().backward()
        before = list(module.parameters())
        result = module.to(torch.float64)
        return (result is module, [new is old for new, old in zip(module.parameters(), before, strict=True)],
                [parameter.grad for parameter in module.parameters()])
    agree(program)


def test_optimizer_survives_a_conversion():
    module = net(tensorgrad)
    parameter = module.scale
    module.double()
    module(tensorgrad.ones(1, 2, dtype=tensorgrad.float64)).sum().backward()
    assert module.scale is parameter and parameter.grad.dtype is tensorgrad.float64


def test_compile_and_share_memory_do_no_harm():
    module = net(tensorgrad)
    expected = module(tensorgrad.ones(1, 2)).tolist()
    assert module.compile() is None
    assert module.share_memory() is module
    assert module(tensorgrad.ones(1, 2)).tolist() == expected


# ── copies and pickles ────────────────────────────────────────────────────────────────────────
def test_deepcopy():
    def program(torch):
        module = net(torch)
        module.first.register_forward_hook(lambda m, args, out: out + 1)
        twin = copy.deepcopy(module)
        with torch.no_grad():
            twin.scale.fill_(0.5)
        return (module(torch.ones(1, 2)), twin(torch.ones(1, 2)), twin.again is twin.first, twin.first is module.first,
                type(twin.scale).__name__, list(twin.state_dict()))
    agree(program)


def test_pickle():
    module = tensorgrad.nn.Sequential(tensorgrad.nn.Linear(2, 2), tensorgrad.nn.ReLU()).eval()
    twin = pickle.loads(pickle.dumps(module))
    assert repr(twin) == repr(module) and not twin.training
    assert twin(tensorgrad.ones(1, 2)).tolist() == module(tensorgrad.ones(1, 2)).tolist()
    assert type(twin[0].weight) is tensorgrad.nn.Parameter


def test_setstate_of_an_old_pickle():
    module = tensorgrad.nn.Linear(1, 1)
    old = {key: value for key, value in vars(module).items()
           if "hook" not in key and key != "_non_persistent_buffers_set"}
    twin = tensorgrad.nn.Linear.__new__(tensorgrad.nn.Linear)
    twin.__setstate__({**old, "_forward_hooks": OrderedDict({0: lambda m, args, out: out * 0})})
    assert twin(tensorgrad.ones(1, 1)).tolist() == [[0.0]]


def test_handle_survives_a_deepcopy():
    module = tensorgrad.nn.Identity()
    module.handle = module.register_forward_hook(lambda m, args, out: out * 2)
    twin = copy.deepcopy(module)
    twin.handle.remove()
    assert twin(3) == 3 and module(3) == 6


def test_modules_are_freed_without_the_garbage_collector():
    gc.disable()
    try:
        module = net(tensorgrad)
        module.register_forward_hook(lambda m, args, out: None)
        module.register_full_backward_hook(lambda m, grad_input, grad_output: None)
        module.register_load_state_dict_pre_hook(lambda *args: None)
        module(tensorgrad.ones(1, 2, requires_grad=True)).sum().backward()
        reference = weakref.ref(module)
        del module
        assert reference() is None
    finally:
        gc.enable()


# ── taking over a state from elsewhere ────────────────────────────────────────────────────────
class Foreign:
    """A tensor of some other library."""

    def __init__(self, values, dtype="float32"):
        self.values, self.dtype = values, dtype

    def detach(self):
        return self

    cpu = detach

    def float(self):
        return Foreign(self.values)

    def numpy(self):
        import numpy
        if self.dtype == "lib.bfloat16":
            raise TypeError("no bfloat16 in NumPy")
        return numpy.asarray(self.values, self.dtype)


class ForeignModule:
    def __init__(self, **state):
        self.state = state

    def state_dict(self):
        return self.state


def test_init_from_torch_with_any_library():
    layer = tensorgrad.nn.Linear(2, 1)
    weight = layer.weight
    source = ForeignModule(weight=Foreign([[1.0, 2.0]]), bias=Foreign([3.0], "lib.bfloat16"))
    assert layer.init_from_torch(source) is layer
    assert layer.weight is weight and weight.tolist() == [[1.0, 2.0]] and layer.bias.tolist() == [3.0]


def test_init_from_torch_names_all_problems():
    layer = tensorgrad.nn.Linear(2, 1)
    with pytest.raises(RuntimeError) as caught:
        layer.init_from_torch(ForeignModule(weight=Foreign([1.0]), stray=Foreign([1.0])))
    text = str(caught.value)
    assert "Linear" in text and '"bias"' in text and '"stray"' in text and "size mismatch for weight" in text


@pytest.mark.parametrize("build", [
    lambda torch: torch.nn.Linear(3, 2),
    lambda torch: torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)).double(),
    lambda torch: torch.nn.BatchNorm1d(3),
    lambda torch: torch.nn.Embedding(4, 3),
    lambda torch: torch.nn.LayerNorm(3),
    lambda torch: torch.nn.Linear(3, 2, bias=False).bfloat16(),
    lambda torch: torch.nn.ModuleDict({"a": torch.nn.ModuleList([torch.nn.PReLU()])}),
    lambda torch: net(torch)])
def test_init_from_torch(build):
    torch = pytest.importorskip("torch")
    source = build(torch)
    with torch.no_grad():
        for tensor in source.state_dict().values():
            tensor.copy_(torch.rand(tensor.shape).mul(7))
    module = build(tensorgrad)
    before = dict(module.named_parameters())
    assert module.init_from_torch(source) is module
    assert all(parameter is before[name] for name, parameter in module.named_parameters())
    state = source.state_dict()
    assert list(state) == list(module.state_dict())
    for name, tensor in module.state_dict().items():
        assert str(tensor.dtype) == str(state[name].dtype) and tensor.tolist() == state[name].tolist()


# ── the whole namespace ───────────────────────────────────────────────────────────────────────
def test_every_module_of_pytorch_is_there():
    torch = pytest.importorskip("torch")
    missing = [name for name in torch.nn.modules.__all__ if not hasattr(tensorgrad.nn, name)]
    assert set(missing) <= {"SyncBatchNorm", "NLLLoss2d"}


@cases(
    lambda torch: torch.nn.factory_kwargs(None),
    lambda torch: torch.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": 3}}),
    lambda torch: torch.nn.factory_kwargs({"x": 1}),
    lambda torch: torch.nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 3}}),
)
def test_factory_kwargs(program):
    agree(program)


# ── shortcuts to registered names ─────────────────────────────────────────────────────────────
def test_a_name_may_mean_different_things_in_instances_of_a_class():
    class Loose(tensorgrad.nn.Module):
        pass

    values = [tensorgrad.nn.Parameter(tensorgrad.ones(1)), tensorgrad.nn.ReLU(), tensorgrad.nn.Buffer(), 3]
    modules = [Loose() for _ in values]
    for _ in range(2):                              # the second time, the name is known to the class
        for module, value in zip(modules, values, strict=True):
            module.thing = value
            assert module.thing is value and module.thing is value
    with pytest.raises(AttributeError, match="'Loose' object has no attribute 'thing'"):
        print(Loose().thing)
    assert not hasattr(Loose, "thing")
    del modules[0].thing
    assert not hasattr(modules[0], "thing")


def test_a_known_name_hides_nothing():
    class First(tensorgrad.nn.Module):
        def __init__(self, has_head):
            super().__init__()
            if has_head:
                self.head = tensorgrad.nn.ReLU()

    class Second:
        head = "of the second base"

    class Both(First, Second):
        pass

    for _ in range(2):
        assert repr(First(True).head) == "ReLU()" and Both(False).head == Second.head


def test_own_getattr_sees_every_look_up():
    class Counting(tensorgrad.nn.Module):
        seen = ()

        def __getattr__(self, name):
            self.__dict__["seen"] = (*self.seen, name)
            return super().__getattr__(name)

    module = Counting()
    module.weight = tensorgrad.nn.Parameter(tensorgrad.ones(1))
    before = module.seen
    assert module.weight is module.weight
    assert module.seen == (*before, "weight", "weight")


def test_dictionaries_leave_no_names_on_their_class():
    values = tensorgrad.nn.ParameterDict({"unlikely": tensorgrad.ones(1)})
    assert values["unlikely"] is values.unlikely
    assert "unlikely" not in vars(tensorgrad.nn.ParameterDict)
