"""nn.init and nn.utils, compared with PyTorch's program by program."""
import copy
import math
import pickle
from collections import OrderedDict

import pytest
from nn_oracle import agree, cases, names, raising
from support import cpu_only

import tensorgrad


# ── sequences ─────────────────────────────────────────────────────────────────────────────────
def grid(torch, *shape):
    return torch.arange(1.0, 1.0 + torch.ones(shape).numel()).reshape(shape)


def pack(torch, lengths, shape=(4, 3, 2), **options):
    return torch.nn.utils.rnn.pack_padded_sequence(grid(torch, *shape), lengths, **options)


@cases(
    lambda torch: pack(torch, [4, 2, 1]),
    lambda torch: pack(torch, [3, 2, 2]),
    lambda torch: pack(torch, [4, 2, 1], (4, 3)),
    lambda torch: pack(torch, [3, 2, 2, 1], (4, 3, 2, 2), batch_first=True),
    lambda torch: pack(torch, [1, 4, 2], enforce_sorted=False),
    lambda torch: pack(torch, [1, 3, 2, 3], (4, 3, 2), batch_first=True, enforce_sorted=False),
    lambda torch: pack(torch, torch.tensor([4, 2, 1])),
    lambda torch: pack(torch, torch.tensor([4.0, 2.0, 1.0])),
    lambda torch: pack(torch, [4, 2, 0]),
    lambda torch: pack(torch, [2, 4, 1]),
    lambda torch: pack(torch, [4, 2]),
    lambda torch: pack(torch, []),
    lambda torch: pack(torch, torch.tensor([[4, 2, 1]])),
    lambda torch: pack(torch, 4),
    lambda torch: pack(torch, [1, 1, 1], (0, 3, 2)),
    lambda torch: repr(pack(torch, [2, 1, 1], (2, 3))),
)
def test_packing(program):
    agree(program)


def test_too_long_a_sequence_is_refused():
    with pytest.raises(RuntimeError, match="4 steps"):
        pack(tensorgrad, [6, 2, 1])


def unpacked(torch, lengths, shape=(4, 3, 2), enforce_sorted=True, **options):
    packed = pack(torch, lengths, shape, enforce_sorted=enforce_sorted)
    return torch.nn.utils.rnn.pad_packed_sequence(packed, **options)


@cases(
    lambda torch: unpacked(torch, [4, 2, 1]),
    lambda torch: unpacked(torch, [2, 2, 1], batch_first=True),
    lambda torch: unpacked(torch, [4, 2, 1], (4, 3), padding_value=-1.0),
    lambda torch: unpacked(torch, [1, 4, 2], enforce_sorted=False),
    lambda torch: unpacked(torch, [1, 4, 2], enforce_sorted=False, batch_first=True, padding_value=7, total_length=6),
    lambda torch: unpacked(torch, [4, 2, 1], total_length=3),
    lambda torch: unpacked(torch, [3, 3, 3], total_length=4),
)
def test_unpacking(program):
    agree(program)


@cases(
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2), torch.zeros(3)]),
    lambda torch, rnn: rnn.pad_sequence([grid(torch, 2, 2), grid(torch, 4, 2), grid(torch, 1, 2)], True, -1.0),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2), torch.zeros(3)], padding_side="left"),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(3, 2), torch.zeros(1, 2)], True, padding_side="left"),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2), torch.zeros(3)], padding_side="top"),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2, dtype=torch.int64), torch.ones(3)], padding_value=2.5),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2), torch.ones(2, dtype=torch.float64)]),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2, 3), torch.ones(3, 1)]),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2, 3), torch.ones(3, 2)]),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2, 0), torch.ones(3, 0)]),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(0, 2), torch.ones(1, 2)]),
    lambda torch, rnn: rnn.pad_sequence(torch.ones(2, 3)),
    lambda torch, rnn: rnn.pad_sequence(iter([torch.ones(2), torch.zeros(3)])),
    lambda torch, rnn: rnn.pad_sequence([]),
    lambda torch, rnn: rnn.pad_sequence(3),
    lambda torch, rnn: rnn.pad_sequence([torch.ones(2), [1, 2]]),
    lambda torch, rnn: rnn.unpad_sequence(grid(torch, 2, 3), torch.tensor([1, 3]), batch_first=True),
    lambda torch, rnn: rnn.unpad_sequence(grid(torch, 3, 2, 2), torch.tensor([0, 2])),
    lambda torch, rnn: rnn.unpad_sequence(grid(torch, 2, 3), torch.tensor([1]), batch_first=True),
    lambda torch, rnn: rnn.pack_sequence([torch.ones(3), torch.zeros(2)]),
    lambda torch, rnn: rnn.pack_sequence([torch.ones(2), torch.zeros(3)]),
    lambda torch, rnn: rnn.pack_sequence([torch.ones(2, 1), torch.zeros(3, 1)], enforce_sorted=False),
    lambda torch, rnn: rnn.unpack_sequence(rnn.pack_sequence([grid(torch, 2), grid(torch, 4)], enforce_sorted=False)),
    lambda torch, rnn: rnn.invert_permutation(torch.tensor([2, 0, 3, 1])),
    lambda torch, rnn: rnn.invert_permutation(None),
    lambda torch, rnn: rnn.PackedSequence(torch.ones(3)),
    lambda torch, rnn: rnn.PackedSequence((torch.ones(3), torch.tensor([2, 1]))),
    lambda torch, rnn: rnn.PackedSequence(torch.ones(3), torch.tensor([2, 1]), torch.tensor([1, 0])),
)
def test_sequences(program):
    agree(lambda torch: program(torch, torch.nn.utils.rnn))


@cases(
    lambda packed, torch: packed.to(torch.float64),
    lambda packed, torch: packed.to(torch.float32) is packed,
    lambda packed, torch: packed.cpu() is packed,
    lambda packed, torch: [getattr(packed, name)().data.dtype for name in ("double", "float", "half")],
    lambda packed, torch: [getattr(packed, name)().data.dtype for name in ("long", "int", "short", "char", "byte")],
    lambda packed, torch: (packed.is_cuda, packed.is_pinned()),
    lambda packed, torch: copy.deepcopy(packed),
    lambda packed, torch: pickle.loads(pickle.dumps(packed)),
    lambda packed, torch: packed._fields,
)
def test_packed_sequence(program):
    agree(lambda torch: program(pack(torch, [1, 4, 2], enforce_sorted=False), torch))


def test_gradients_pass_through_packing_and_padding():
    def program(torch):
        x = grid(torch, 4, 3, 2).requires_grad_()
        rnn = torch.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
        padded, _ = rnn.pad_packed_sequence(packed._replace(data=packed.data ** 2), batch_first=True)
        (padded * torch.arange(24.0).reshape(3, 4, 2)).sum().backward()
        y = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
        (rnn.pad_sequence(y) * torch.arange(6.0).reshape(3, 2)).sum().backward()
        z = torch.ones(2, 3, requires_grad=True)
        (rnn.unpad_sequence(z, torch.tensor([1, 2]), True)[1] * torch.tensor([3.0, 4.0])).sum().backward()
        return x.grad, [one.grad for one in y], z.grad
    agree(program)


def test_unpadding_copies_and_leaves_its_input():
    padded = tensorgrad.ones(3, 2)
    first, _ = tensorgrad.nn.utils.rnn.unpad_sequence(padded, tensorgrad.tensor([1, 2]))
    first.zero_()
    assert padded.tolist() == [[1, 1]] * 3


# ── clipping ──────────────────────────────────────────────────────────────────────────────────
def with_gradients(torch, *gradients):
    parameters = [torch.nn.Parameter(torch.zeros(len(gradient))) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = torch.tensor(gradient) if gradient else None
    return parameters


def clipped(torch, function, *args, gradients=([3.0, -4.0], [], [12.0]), **kwargs):
    parameters = with_gradients(torch, *gradients)
    result = getattr(torch.nn.utils, function)(parameters, *args, **kwargs)
    return result, [parameter.grad for parameter in parameters]


@cases(
    lambda torch: clipped(torch, "clip_grad_norm_", 1.0),
    lambda torch: clipped(torch, "clip_grad_norm_", 100.0),
    lambda torch: clipped(torch, "clip_grad_norm_", 1.0, norm_type=float("inf")),
    lambda torch: clipped(torch, "clip_grad_norm_", 1, 1),
    lambda torch: clipped(torch, "clip_grad_norm_", 2.0, 3.0, foreach=False),
    lambda torch: clipped(torch, "clip_grad_norm_", 2.0, 0.5, foreach=True),
    lambda torch: clipped(torch, "clip_grad_norm_", 1.0, gradients=([float("inf")], [1.0])),
    lambda torch: clipped(torch, "clip_grad_norm_", 1.0, gradients=([float("nan")],), error_if_nonfinite=True),
    lambda torch: clipped(torch, "clip_grad_norm_", 1.0, gradients=()),
    lambda torch: clipped(torch, "clip_grad_norm", 1.0),
    lambda torch: clipped(torch, "clip_grad_value_", 3.5),
    lambda torch: clipped(torch, "clip_grad_value_", 0, foreach=False),
    lambda torch: clipped(torch, "clip_grads_with_norm_", 1.0, torch.tensor(2.0)),
    lambda torch: clipped(torch, "clip_grads_with_norm_", 1.0, torch.tensor(2.0), gradients=()),
    lambda torch: torch.nn.utils.clip_grad_norm_(iter([]), 1.0),
    lambda torch: torch.nn.utils.clip_grad_norm_((parameter for parameter in []), 1.0),
    lambda torch: torch.nn.utils.clip_grad_norm_(with_gradients(torch, [3.0, 4.0])[0], 1.0),
    lambda torch: torch.nn.utils.get_total_norm([torch.ones(2), torch.ones(2, 3)], 3.0),
    lambda torch: torch.nn.utils.get_total_norm(torch.ones(4)),
    lambda torch: torch.nn.utils.get_total_norm([]),
    lambda torch: torch.nn.utils.get_total_norm([torch.ones(2), torch.ones(2, dtype=torch.float64)]),
    lambda torch: torch.nn.utils.get_total_norm([torch.ones(2, requires_grad=True)]),
)
def test_clipping(program):
    agree(program)


@cases(
    lambda torch: torch.nn.utils.parameters_to_vector([torch.ones(2, 2), torch.zeros(1)]),
    lambda torch: torch.nn.utils.parameters_to_vector(torch.nn.Linear(2, 1).parameters()).shape[0],
    lambda torch: torch.nn.utils.vector_to_parameters([1.0], []),
    lambda torch: raising(lambda: torch.nn.utils.vector_to_parameters(torch.ones(3), [torch.ones(4)]))[0],
)
def test_vectors(program):
    agree(program)


def test_vector_to_parameters():
    def program(torch):
        module = torch.nn.Linear(2, 1)
        before = list(module.parameters())
        torch.nn.utils.vector_to_parameters(torch.arange(3.0), module.parameters())
        return list(module.parameters()), [new is old for new, old in zip(module.parameters(), before, strict=True)]
    agree(program)


# ── weight and spectral normalization ─────────────────────────────────────────────────────────
def layer(torch, kind="Linear", *args):
    """A layer with parameters that do not depend on its initialization."""
    module = getattr(torch.nn, kind)(*(args or (3, 2)))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_((torch.arange(parameter.numel()) * 7 % 23 * 0.2 - 1.73).reshape(parameter.shape))
    return module


def trained_once(torch, module):
    """State, output and gradients after one pass, to compare everything."""
    shape = {"Linear": (2, 3), "Bilinear": (2, 3)}.get(type(module).__name__.removeprefix("Parametrized"), (2, 2, 4, 4))
    out = module(torch.ones(shape) * 0.5)
    (out * torch.arange(out.numel()).reshape(out.shape)).sum().backward()
    return (out, module.state_dict(), {name: parameter.grad for name, parameter in module.named_parameters()},
            type(module).__name__)


@pytest.mark.parametrize("options", [{}, {"dim": 1}, {"dim": None}, {"dim": -1}, {"name": "bias"}])
@pytest.mark.parametrize("where", ["utils", "parametrizations"])
def test_weight_norm(where, options):
    def program(torch):
        home = torch.nn.utils if where == "utils" else torch.nn.utils.parametrizations
        return trained_once(torch, home.weight_norm(layer(torch), **options))
    agree(program)


@pytest.mark.parametrize("where", ["utils", "parametrizations"])
def test_weight_norm_of_a_convolution(where):
    def program(torch):
        home = torch.nn.utils if where == "utils" else torch.nn.utils.parametrizations
        return trained_once(torch, home.weight_norm(layer(torch, "Conv2d", 2, 3, 2), dim=1))
    agree(program)


def test_weight_norm_and_back():
    def program(torch):
        module = layer(torch)
        torch.nn.utils.weight_norm(module)
        twice = raising(lambda: torch.nn.utils.weight_norm(module, "weight"))
        with torch.no_grad():
            module.weight_g.mul_(2)
        torch.nn.utils.remove_weight_norm(module)
        return (module.weight, list(module.state_dict()), len(module._forward_pre_hooks), twice,
                raising(lambda: torch.nn.utils.remove_weight_norm(module)))
    agree(program)


def test_weight_norm_loads_the_old_state():
    def program(torch):
        state = torch.nn.utils.weight_norm(layer(torch)).state_dict()
        module = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        return module.load_state_dict(state), module.state_dict()
    agree(program)


@pytest.mark.parametrize("where", ["utils", "parametrizations"])
@pytest.mark.parametrize("options", [{}, {"dim": 1}, {"n_power_iterations": 3}, {"n_power_iterations": 0}])
def test_spectral_norm(where, options):
    def program(torch):
        home = torch.nn.utils if where == "utils" else torch.nn.utils.parametrizations
        module = home.spectral_norm(layer(torch), **options)
        return trained_once(torch, module), trained_once(torch, module), trained_once(torch, module.eval())
    agree(program)


@cases(
    lambda torch: torch.nn.utils.spectral_norm(layer(torch, "ConvTranspose2d", 2, 3, 2)).weight_u.shape[0],
    lambda torch: torch.nn.utils.spectral_norm(layer(torch), "nothing"),
    lambda torch: torch.nn.utils.remove_spectral_norm(layer(torch)),
    lambda torch: torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2, bias=False), "bias"),
    lambda torch: torch.nn.utils.spectral_norm(layer(torch)).state_dict()._metadata,
    lambda torch: torch.nn.utils.spectral_norm(torch.nn.utils.spectral_norm(layer(torch))),
    lambda torch: torch.nn.utils.weight_norm(torch.nn.LazyLinear(2)),
    lambda torch: torch.nn.utils.spectral_norm(torch.nn.LazyLinear(2)),
    lambda torch: torch.nn.utils.parametrizations.spectral_norm(layer(torch), "nothing"),
    lambda torch: torch.nn.utils.parametrizations.spectral_norm(layer(torch), dim=2),
    lambda torch: torch.nn.utils.parametrizations.spectral_norm(layer(torch), "bias").bias,
    lambda torch: torch.nn.utils.parametrizations.spectral_norm(layer(torch, "ConvTranspose2d", 2, 3, 2)),
)
def test_more_of_normalization(program):
    agree(program)


def test_spectral_norm_and_back():
    def program(torch):
        module = torch.nn.utils.spectral_norm(layer(torch))
        module(torch.ones(1, 3))
        expected = module.weight.detach().clone()
        torch.nn.utils.remove_spectral_norm(module)
        return torch.allclose(module.weight, expected), list(module.state_dict()), len(module._state_dict_hooks)
    agree(program)


def test_spectral_norm_loads_an_old_state():
    def program(torch):
        source, target = (torch.nn.utils.spectral_norm(layer(torch, "Linear", 2, 3)) for _ in range(2))
        for _ in range(30):
            source(torch.ones(1, 2))
        state = source.state_dict()
        expected = state.pop("weight_v")
        state["weight"] = source.weight.detach().clone()
        state._metadata[""].pop("spectral_norm")
        missing = raising(lambda: target.load_state_dict({"bias": state["bias"]}))
        target.load_state_dict(state)
        return torch.allclose(target.weight_v, expected, atol=1e-3), missing
    agree(program)


# ── orthogonal ────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("size", [(3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("use_trivialization", [True, False])
def test_orthogonal(size, orthogonal_map, use_trivialization):
    def program(torch):
        module = torch.nn.Linear(*size).double()
        with torch.no_grad():
            module.weight.copy_(torch.randn(size[::-1]))
        torch.nn.utils.parametrizations.orthogonal(
            module, orthogonal_map=orthogonal_map, use_trivialization=use_trivialization)
        original = module.parametrizations.weight.original
        with torch.no_grad():
            original.add_(torch.arange(original.numel()).reshape(original.shape) * 0.1 * (original == 0))
        (module.weight * torch.arange(original.numel()).reshape(original.shape)).sum().backward()
        assigned = raising(lambda: setattr(module, "weight", torch.eye(*size[::-1]).double()))
        return module.weight, original.grad, assigned
    agree(program)


@cases(
    lambda torch, orthogonal: orthogonal(layer(torch), "nothing"),
    lambda torch, orthogonal: orthogonal(layer(torch), "bias"),
    lambda torch, orthogonal: orthogonal(layer(torch), orthogonal_map="fourier"),
    lambda torch, orthogonal: orthogonal(layer(torch)),
    lambda torch, orthogonal: setattr(orthogonal(layer(torch)), "weight", torch.ones(3)),
    lambda torch, orthogonal: orthogonal(torch.nn.Linear(2, 2).to(torch.complex64), orthogonal_map="householder"),
    lambda torch, orthogonal: orthogonal(layer(torch)).state_dict().keys(),
)
def test_more_of_orthogonal(program):
    agree(lambda torch: program(torch, torch.nn.utils.parametrizations.orthogonal))


# ── parametrize ───────────────────────────────────────────────────────────────────────────────
def double(torch, **methods):
    """A parametrization: times two, with what else is asked for."""
    class Double(torch.nn.Module):
        def forward(self, x):
            return x * 2
    for name, method in methods.items():
        setattr(Double, name, method)
    return Double()


def parametrized(torch, *parametrizations, module=None, name="weight", **options):
    module = layer(torch) if module is None else module
    for parametrization in parametrizations or [double(torch)]:
        torch.nn.utils.parametrize.register_parametrization(module, name, parametrization, **options)
    return module


HALF = {"right_inverse": lambda self, x: x / 2}
SPLIT = {"forward": lambda self, a, b: a + b, "right_inverse": lambda self, x: (x / 2, x / 2)}


@cases(
    lambda torch: parametrized(torch),
    lambda torch: type(parametrized(torch)).__name__,
    lambda torch: trained_once(torch, parametrized(torch)),
    lambda torch: trained_once(torch, parametrized(torch, double(torch), double(torch, **HALF))),
    lambda torch: trained_once(torch, parametrized(torch, double(torch, **SPLIT))),
    lambda torch: parametrized(torch, name="nothing"),
    lambda torch: setattr(parametrized(torch), "weight", torch.ones(2, 3)),
    lambda torch: parametrized(torch, double(torch, forward=lambda self, x: [x])),
    lambda torch: parametrized(torch, double(torch, forward=lambda self, x: x[0])),
    lambda torch: parametrized(torch, double(torch, forward=lambda self, x: x.double())),
    lambda torch: parametrized(torch, double(torch, forward=lambda self, x: x[0]), unsafe=True).weight,
    lambda torch: parametrized(torch, double(torch, right_inverse=lambda self, x: 3)),
    lambda torch: parametrized(torch, double(torch, right_inverse=lambda self, x: [3])),
    lambda torch: parametrized(torch, double(torch, right_inverse=lambda self, x: x.double())),
    lambda torch: parametrized(torch, double(torch), double(torch, forward=lambda self, x: 3)),
    lambda torch: parametrized(torch, double(torch), double(torch, forward=lambda self, x: x[0])),
    lambda torch: parametrized(torch, double(torch), double(torch, right_inverse=lambda self, x: 3)),
    lambda torch: parametrized(torch, double(torch), double(torch, right_inverse=lambda self, x: x[0])),
    lambda torch: torch.nn.utils.parametrize.ParametrizationList([], torch.ones(1)),
    lambda torch: parametrized(torch, module=torch.nn.BatchNorm1d(2), name="running_mean").state_dict(),
    lambda torch: pickle.dumps(parametrized(torch)),
    lambda torch: torch.nn.utils.parametrize.is_parametrized(layer(torch)),
    lambda torch: torch.nn.utils.parametrize.is_parametrized(parametrized(torch)),
    lambda torch: torch.nn.utils.parametrize.is_parametrized(parametrized(torch), "bias"),
    lambda torch: torch.nn.utils.parametrize.type_before_parametrizations(parametrized(torch)).__name__,
    lambda torch: torch.nn.utils.parametrize.type_before_parametrizations(layer(torch)).__name__,
    lambda torch: torch.nn.utils.parametrize.remove_parametrizations(layer(torch), "weight"),
    lambda torch: parametrized(torch, double(torch)).eval().parametrizations.training,
)
def test_parametrize(program):
    agree(program)


def test_assignment_goes_through_right_inverse():
    def program(torch):
        module = parametrized(torch, double(torch, **HALF))
        original = module.parametrizations.weight.original
        module.weight = torch.full((2, 3), 6.0)
        split = parametrized(torch, double(torch, **SPLIT))
        split.weight = torch.full((2, 3), 6.0)
        return (module.weight, original, module.parametrizations.weight.original is original, split.state_dict(),
                raising(lambda: setattr(split.parametrizations.weight[0], "right_inverse", lambda x: [x])),
                raising(lambda: setattr(split, "weight", torch.ones(2, 3))))
    agree(program)


@pytest.mark.parametrize("leave_parametrized", [True, False])
@pytest.mark.parametrize("methods", [{}, SPLIT], ids=["one", "several"])
def test_removing_parametrizations(methods, leave_parametrized):
    def program(torch):
        module = layer(torch)
        weight = module.weight
        parametrized(torch, double(torch, **methods), module=module)
        parametrized(torch, module=module, name="bias")
        remove = torch.nn.utils.parametrize.remove_parametrizations
        first = raising(lambda: remove(module, "weight", leave_parametrized))
        remove(module, "bias")
        return (first, module, type(module).__name__, names(module.named_parameters()), module.weight,
                module.weight is weight)
    agree(program)


def test_cached():
    def program(torch):
        calls = []
        module = parametrized(torch, double(torch, forward=lambda self, x: calls.append(1) or x * 2), unsafe=True)
        calls.clear()
        with torch.nn.utils.parametrize.cached():
            same = module.weight is module.weight
            with torch.nn.utils.parametrize.cached():
                module.weight.sum()
            module.weight.sum()
        return same, len(calls), module.weight is module.weight
    agree(program)


def test_copies_of_parametrized_modules():
    def program(torch):
        module = parametrized(torch, double(torch))
        twin = copy.deepcopy(module)
        with torch.no_grad():
            twin.parametrizations.weight.original.zero_()
        return module.weight, twin.weight, type(twin) is type(module)
    agree(program)


def test_transferring_parametrizations():
    def program(torch):
        source = parametrized(torch, double(torch), double(torch, **HALF))
        split = parametrized(torch, double(torch, **SPLIT))
        transfer = torch.nn.utils.parametrize.transfer_parametrizations_and_params
        target, bare = torch.nn.Linear(3, 2), torch.nn.Module()
        same = transfer(source, target) is target
        transfer(split, bare, "weight")
        return (same, target.weight, target.parametrizations.weight.original is source.parametrizations.weight.original,
                bare.state_dict(), transfer(layer(torch), bare) is bare)
    agree(program)


# ── pruning ───────────────────────────────────────────────────────────────────────────────────
def pruned(torch, *steps, kind="Linear", args=()):
    module = layer(torch, kind, *args)
    for name, *rest in steps:
        result = getattr(torch.nn.utils.prune, name)(module, "weight", *rest)
        assert result is module
    return module.weight, module.state_dict(), names(module.named_parameters()), torch.rand(2)


@cases(
    lambda torch: pruned(torch, ("identity",)),
    lambda torch: pruned(torch, ("random_unstructured", 2)),
    lambda torch: pruned(torch, ("random_unstructured", 0.5)),
    lambda torch: pruned(torch, ("l1_unstructured", 3)),
    lambda torch: pruned(torch, ("l1_unstructured", 0.34)),
    lambda torch: pruned(torch, ("l1_unstructured", 0)),
    lambda torch: pruned(torch, ("l1_unstructured", 2), ("l1_unstructured", 2)),
    lambda torch: pruned(torch, ("l1_unstructured", 2), ("l1_unstructured", 2), ("random_unstructured", 1)),
    lambda torch: pruned(torch, ("l1_unstructured", 2, torch.arange(6.0).reshape(2, 3))),
    lambda torch: pruned(torch, ("l1_unstructured", 2, torch.ones(3))),
    lambda torch: pruned(torch, ("random_structured", 1, 0)),
    lambda torch: pruned(torch, ("random_structured", 0.67, -1)),
    lambda torch: pruned(torch, ("ln_structured", 1, 2, 0)),
    lambda torch: pruned(torch, ("ln_structured", 2, 1, 1)),
    lambda torch: pruned(torch, ("ln_structured", 0.5, float("inf"), -2)),
    lambda torch: pruned(torch, ("ln_structured", 1, 2, 0), kind="Conv2d", args=(2, 3, 2)),
    lambda torch: pruned(torch, ("ln_structured", 1, 2, 1), ("ln_structured", 1, 2, 1)),
    lambda torch: pruned(torch, ("random_structured", 1, 1), ("l1_unstructured", 2)),
    lambda torch: pruned(torch, ("l1_unstructured", 2), ("ln_structured", 1, 2, 0)),
    lambda torch: pruned(torch, ("custom_from_mask", torch.tensor([[1.0, 0, 1], [0, 1, 1]]))),
    lambda torch: pruned(torch, ("l1_unstructured", 2), ("custom_from_mask", torch.tensor([[1, 0, 1], [0, 1, 1]]))),
    lambda torch: pruned(torch, ("custom_from_mask", torch.ones(3))),
    lambda torch: pruned(torch, ("l1_unstructured", 7)),
    lambda torch: pruned(torch, ("l1_unstructured", -1)),
    lambda torch: pruned(torch, ("l1_unstructured", 1.5)),
    lambda torch: pruned(torch, ("l1_unstructured", -0.5)),
    lambda torch: pruned(torch, ("l1_unstructured", "x")),
    lambda torch: pruned(torch, ("random_structured", 1, 2)),
    lambda torch: torch.nn.utils.prune.random_structured(layer(torch), "bias", 1, 0),
    lambda torch: torch.nn.utils.prune.l1_unstructured(layer(torch), "nothing", 1),
    lambda torch: torch.nn.utils.prune.remove(layer(torch), "weight"),
    lambda torch: torch.nn.utils.prune.is_pruned(torch.nn.Sequential(layer(torch))),
    lambda torch: torch.nn.utils.prune.is_pruned(
        torch.nn.Sequential(torch.nn.utils.prune.identity(layer(torch), "bias"))),
    lambda torch: trained_once(torch, torch.nn.utils.prune.l1_unstructured(layer(torch), "weight", 2)),
    lambda torch: torch.nn.utils.prune.L1Unstructured(2).prune(torch.tensor([3.0, 1.0, -0.5])),
    lambda torch: torch.nn.utils.prune.L1Unstructured(1).prune(torch.ones(3), importance_scores=torch.arange(3.0)),
    lambda torch: torch.nn.utils.prune.L1Unstructured(1).prune(torch.ones(3), importance_scores=torch.arange(2.0)),
    lambda torch: torch.nn.utils.prune.BasePruningMethod(),
)
def test_pruning(program):
    agree(program)


def test_failed_pruning_leaves_the_parameter():
    def program(torch):
        module = layer(torch)
        weight = module.weight
        error = raising(lambda: torch.nn.utils.prune.custom_from_mask(module, "weight", torch.ones(3)))
        return error, module.weight is weight, sorted(module.state_dict()), len(module._forward_pre_hooks)
    agree(program)


def test_pruning_and_back():
    def program(torch):
        module = torch.nn.utils.prune.l1_unstructured(layer(torch), "weight", 3)
        original = module.weight_orig
        torch.nn.utils.prune.remove(module, "weight")
        return (module.weight, module.weight is original, names(module.named_parameters()),
                torch.nn.utils.prune.is_pruned(module))
    agree(program)


def test_global_pruning():
    def program(torch):
        prune = torch.nn.utils.prune
        first, second = layer(torch), layer(torch, "Linear", 4, 2)
        pairs = [(first, "weight"), (second, "weight")]
        prune.l1_unstructured(first, "weight", 1)
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
        masks = first.weight_mask, second.weight_mask
        third = layer(torch)
        prune.global_unstructured([(third, "weight")], prune.L1Unstructured, amount=2,
                                  importance_scores={(third, "weight"): torch.arange(6.0).reshape(2, 3)})
        errors = [raising(lambda bad=bad: prune.global_unstructured(*bad, amount=1)) for bad in (
            (3, prune.L1Unstructured), (pairs, prune.RandomStructured), (pairs, prune.L1Unstructured, [1]))]
        return masks, third.weight_mask, errors
    agree(program)


def test_containers_of_pruning_methods():
    def program(torch):
        prune = torch.nn.utils.prune
        first, second = prune.L1Unstructured(1), prune.RandomUnstructured(1)
        first._tensor_name, second._tensor_name = "weight", "bias"
        container = prune.PruningContainer(first)
        return (len(container), container[0] is first, list(container) == [first],
                raising(lambda: container.add_pruning_method(second))[0],
                raising(lambda: container.add_pruning_method(3)))
    agree(program)


def test_own_pruning_methods():
    def program(torch):
        class EveryOther(torch.nn.utils.prune.BasePruningMethod):
            PRUNING_TYPE = "unstructured"

            def compute_mask(self, t, default_mask):
                mask = default_mask.clone()
                mask.view(-1)[::2] = 0
                return mask

        class Odd(EveryOther):
            PRUNING_TYPE = "odd"
        module = layer(torch)
        EveryOther.apply(module, "weight")
        return module.weight, raising(lambda: Odd.apply(module, "weight"))
    agree(program)


# ── fusing with batch normalization ───────────────────────────────────────────────────────────
def batch_norm(torch, kind, size, **options):
    bn = getattr(torch.nn, kind)(size, **options).eval()
    for i, tensor in enumerate(bn.state_dict().values()):
        if tensor.is_floating_point():
            tensor.copy_(torch.arange(1.0, 1.0 + tensor.numel()) / (i + 1))
    return bn


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("kind, args, transpose", [
    ("Conv2d", (2, 3, 2), False), ("Conv2d", (2, 3, 2, 1, 0, 1, 1, False), False),
    ("ConvTranspose2d", (2, 3, 2), True)])
def test_fusing_convolutions(kind, args, transpose, affine):
    def program(torch):
        conv, bn = layer(torch, kind, *args).eval(), batch_norm(torch, "BatchNorm2d", 3, affine=affine)
        fused = torch.nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
        x = torch.arange(32.0).reshape(1, 2, 4, 4) / 10
        return fused, fused.state_dict(), torch.allclose(fused(x), bn(conv(x)), atol=1e-4), fused is conv
    agree(program)


def test_fusing_linear_layers():
    def program(torch):
        linear, bn = layer(torch).eval(), batch_norm(torch, "BatchNorm1d", 2)
        fused = torch.nn.utils.fuse_linear_bn_eval(linear, bn)
        return (fused.state_dict(), raising(lambda: torch.nn.utils.fuse_linear_bn_eval(linear.train(), bn)),
                raising(lambda: torch.nn.utils.fuse_linear_bn_eval(
                    linear.eval(), batch_norm(torch, "BatchNorm1d", 3))))
    agree(program)


def test_fusing_without_statistics():
    def program(torch):
        bn = torch.nn.BatchNorm2d(3, track_running_stats=False).eval()
        torch.nn.utils.fuse_conv_bn_eval(layer(torch, "Conv2d", 2, 3, 2).eval(), bn)
    agree(program)


# ── calling with other tensors ────────────────────────────────────────────────────────────────
def tied(torch):
    module = torch.nn.Sequential(layer(torch, "Linear", 2, 2), torch.nn.ReLU(), layer(torch, "Linear", 2, 2))
    module[2].weight = module[0].weight
    return module


def called(torch, tensors, module=None, **options):
    module = tied(torch) if module is None else module
    before = {name: parameter.clone() for name, parameter in module.named_parameters()}
    call = torch.nn.utils.stateless.functional_call
    result = raising(lambda: call(module, tensors, torch.ones(1, 2), **options))
    return result, [torch.equal(parameter, before[name]) for name, parameter in module.named_parameters()], tensors


@cases(
    lambda torch: called(torch, {"0.weight": torch.ones(2, 2)}),
    lambda torch: called(torch, {"0.weight": torch.ones(2, 2)}, tie_weights=False),
    lambda torch: called(torch, {"0.weight": torch.ones(2, 2), "2.weight": torch.zeros(2, 2)}),
    lambda torch: called(torch, {"0.weight": torch.ones(2, 2), "2.weight": torch.zeros(2, 2)}, tie_weights=False),
    lambda torch: called(torch, {"0.weight": torch.ones(2, 2)}, strict=True),
    lambda torch: called(torch, {"stray": torch.ones(2, 2)}, strict=True),
    lambda torch: called(torch, {"stray": torch.ones(2, 2)})[0],
    lambda torch: called(torch, {"0.weight": 3})[0],
    lambda torch: called(torch, {"0.in_features": torch.ones(1)})[0],
    lambda torch: raising(lambda: called(torch, {"9.weight": torch.ones(1)}))[0],
    lambda torch: called(torch, {"weight": torch.full((3, 2), 2.0)}, torch.nn.Linear(2, 3), kwargs={}),
)
def test_functional_call(program):
    agree(program)


@pytest.mark.parametrize("kind", [tensorgrad.ones, lambda n: tensorgrad.nn.Parameter(tensorgrad.ones(n))])
def test_functional_call_leaves_no_trace_of_tensors_that_it_adds(kind):
    module, tensors = tensorgrad.nn.Linear(1, 1), {"extra": kind(1)}
    added = tensors["extra"]
    tensorgrad.func.functional_call(module, tensors, tensorgrad.ones(1, 1))
    assert list(module.state_dict()) == ["weight", "bias"] and not hasattr(module, "extra")
    assert tensors["extra"] is added


def test_functional_call_writes_buffers_back():
    def program(torch):
        module = torch.nn.BatchNorm1d(2)
        tensors = OrderedDict((name, tensor.clone()) for name, tensor in module.state_dict().items())
        torch.nn.utils.stateless.functional_call(module, tensors, torch.arange(6.0).reshape(3, 2))
        return module.state_dict(), tensors
    agree(program)


def test_functional_call_gives_gradients():
    def program(torch):
        weight = torch.ones(2, 2, requires_grad=True)
        call = torch.nn.utils.stateless.functional_call
        call(tied(torch), {"0.weight": weight}, (torch.ones(1, 2),)).sum().backward()
        return weight.grad
    agree(program)


def test_memory_formats_change_nothing():
    module = tensorgrad.nn.Conv2d(1, 1, 1)
    utils = tensorgrad.nn.utils
    assert utils.convert_conv2d_weight_memory_format(module, tensorgrad.channels_last) is module
    assert utils.convert_conv3d_weight_memory_format(module, tensorgrad.channels_last_3d) is module


def test_every_name_of_pytorch_is_there():
    torch = pytest.importorskip("torch")
    for path in ("utils", "utils.rnn", "utils.parametrize", "utils.parametrizations", "init", "utils.stateless"):
        ours, theirs = tensorgrad.nn, torch.nn
        for name in path.split("."):
            ours, theirs = getattr(ours, name), getattr(theirs, name)
        missing = [name for name in theirs.__all__ if not hasattr(ours, name)]
        assert not missing, (path, missing)


@cpu_only
@pytest.mark.parametrize("layer, shape", [("Linear(3, 2)", (4, 5, 3)), ("Conv1d(3, 2, 2, padding='same')", (4, 3, 5)),
                                          ("GroupNorm(1, 3)", (4, 3, 5)), ("LayerNorm(3)", (4, 2, 3)),
                                          ("InstanceNorm1d(3, affine=True)", (4, 3, 5)), ("Embedding(9, 2)", (4, 3)),
                                          ("BatchNorm1d(3)", (4, 3)), ("Linear(3, 2)", (3,)),
                                          ("Conv2d(3, 2, 1)", (3, 4, 4)), ("GRU(3, 2)", (4, 2, 3))])
def test_gradients_of_each_example(layer, shape):
    pytest.importorskip("torch")

    def found(lib):
        from importlib import import_module
        call = import_module(f"{lib.__name__}.nn.utils._per_sample_grad").call_for_per_sample_grads
        module, count = eval(f"lib.nn.{layer}", {"lib": lib}), math.prod(shape)
        for weight in module.parameters():
            weight.data = lib.sin(lib.arange(float(weight.numel()))).reshape(weight.shape)
        x = (lib.arange(count) % 9 if "Embedding" in layer else lib.cos(lib.arange(float(count)))).reshape(shape)
        try:
            out = call(module, loss_reduction="mean", batch_first="GRU" not in layer)(x)
            ((out[0] if "GRU" in layer else out).sin() * 3).mean().backward()
        except RuntimeError as error:
            return str(error).split(",")[0]
        assert all(weight.grad is None for weight in module.parameters())
        return [(tuple(w.grad_sample.shape), w.grad_sample.flatten().tolist()) for w in module.parameters()]
    import torch
    ours, theirs = found(tensorgrad), found(torch)
    if isinstance(theirs, list):
        ours = [(size, pytest.approx(values, abs=1e-5)) for size, values in ours]
    assert ours == theirs
