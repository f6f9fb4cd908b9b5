"""The generated source of models, and random graphs whose results are equal in every form."""
import ast
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steady import steady
from symbolic_forms import check, equal, forms

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.nn import functional as F
from tensorgrad.symbolic import CustomInput, Input, SymbolicModel, SymbolicTensor, add_to_graph, config


def source(inputs, outputs):
    return SymbolicModel(inputs, outputs)._generated_forward_source


def chain(x, count):
    for _ in range(count):
        x = nn.Linear(4, 4)(x)
    return x


@pytest.fixture
def shortest(request, monkeypatch):
    """Loops from so many layers on."""
    monkeypatch.setattr(config, "CODEGEN_MIN_LOOP_LENGTH", request.param)
    return request.param


def loops(inputs, outputs):
    """How many layers each loop of the source runs through."""
    tree = ast.parse(source(inputs, outputs))
    return [node.iter.slice.upper.value - node.iter.slice.lower.value for node in ast.walk(tree)
            if isinstance(node, ast.For)]


class TestSource:
    def test_one_line_for_each_step(self):
        x, y = Input((4,)), Input((4,))
        h = nn.Linear(4, 4)(x) + y
        expected = ["def forward(self, i0, i1):", "    layers = callables(self)", "    x0 = layers[0](i0)",
                    "    x0 = x0 + i1", "    x1 = torch.cat((x0, i0), dim=1)", "    x1 = F.relu(x1)",
                    "    return (x0, x1)"]
        assert source((x, y), (h, F.relu(torch.cat((h, x), dim=1)))).splitlines() == expected

    def test_steps_of_all_kinds(self):
        x, n = Input(batch_shape=(4, 4)), CustomInput(2)
        y = abs(-x[1:, None, ..., ::2][0]) ** 2
        y = y.clamp(min=float("-inf"), max=3.5).to(torch.float64)
        lines = source((x, n), (y, x[n], ~(x > 1), x.max(1).values)).splitlines()
        assert [line.strip() for line in lines[1:]] == [
            "x00 = i0[1:, None, ..., ::2]", "x00 = x00[0]", "x00 = -x00", "x00 = abs(x00)", "x00 = x00 ** 2",
            'x00 = x00.clamp(min=float("-inf"), max=3.5)', "x00 = x00.to(torch.float64)", "x01 = i0[i1]",
            "x02 = i0 > 1", "x02 = ~x02", "x03 = i0.max(1)",
            "x03 = x03.values", "return (x00, x01, x02, x03)"]

    def test_values_are_deleted_when_nobody_needs_them(self):
        x = Input((4,))
        a, b = x * 2, x * 3
        lines = source(x, a * b + x).splitlines()
        assert lines[1:] == ["    x0 = i0 * 2", "    x1 = i0 * 3", "    x0 = x0 * x1", "    del x1",
                             "    return x0 + i0"]

    def test_unpacking(self):
        lstm, x = nn.LSTM(4, 3), Input((5, 4))
        out, (h, _) = lstm(x)
        assert "    x0, x1 = x0\n    x1, _ = x1\n" in source(x, (out, h))
        _, second, *_ = CustomInput([1, 2, 3, 4])
        data = second.parents[0].parents[0]
        assert source(data, second) == "def forward(self, i0):\n    _, x0, _, _ = i0\n    return x0\n"
        only, = CustomInput([1])
        assert "x0, = i0" in source(only.parents[0].parents[0], only)

    def test_places_have_leading_zeros(self):
        inputs = [Input((4,)) for _ in range(11)]
        text = source(inputs, sum(inputs))
        assert "def forward(self, i00, i01, " in text and "x00 = 0 + i00" in text

    def test_functions_and_constants_of_a_program(self):
        def add(a, b):
            return a + b
        x, things = Input((4,)), object()
        model = SymbolicModel(x, add_to_graph(add, add_to_graph(lambda a, b: a, x, things), torch.ones(4)))
        assert ("x0 = constant(i0, object_2)" in model._generated_forward_source
                and "return add(x0, self.constant_1)" in model._generated_forward_source)
        assert model(torch.ones(1, 4)).tolist() == [[2.] * 4]

    def test_names_of_inputs_that_programs_use_themselves(self):
        for name in ("torch", "F", "layers", "abs", "x0", "i1", "forward", "constant", "input", "add", "tuple", "None"):
            x, y = Input((4,), custom_name=name), Input((4,))
            out = abs(nn.Linear(4, 4)(x)) + add_to_graph(lambda v: v * 2, y) + F.relu(y) * torch.sigmoid(x)
            data = torch.randn(2, 4), torch.randn(2, 4)
            layer = out.parents[0].parents[0].parents[0].layer
            check((x, y), out, data, abs(layer(data[0])) + data[1] * 2 + F.relu(data[1]) * torch.sigmoid(data[0]),
                  picklable=False)

    def test_without_source(self):
        x = Input((4,))
        model = SymbolicModel(x, chain(x, 3), enable_forward_codegen=False)
        assert model._generated_forward_source is None and model(torch.ones(1, 4)).shape == (1, 4)

    def test_the_default_is_a_setting(self, monkeypatch):
        monkeypatch.setattr(config, "CODEGEN_BY_DEFAULT", False)
        x = Input((4,))
        assert SymbolicModel(x, x + 1)._generated_forward_source is None
        assert SymbolicModel(x, x + 1, enable_forward_codegen=True)._generated_forward_source is not None


def towers():
    x = Input((4,))
    return x, chain(x, 12) + chain(x, 5)


class TestLoops:
    @pytest.mark.parametrize(("shortest", "expected"),
                             [(2, [12, 5]), (5, [12, 5]), (6, [12]), (10, [12]), (13, []), (50, [])],
                             indirect=["shortest"])
    def test_of_two_towers(self, shortest, expected):
        assert loops(*towers()) == expected
        text = source(*towers())
        assert (text.count("for layer in layers[0:12]:") == (12 in expected)
                and text.count("layers[16](") == (5 not in expected))

    @pytest.mark.parametrize("shortest", [2], indirect=True)
    def test_end_where_a_value_is_needed_elsewhere(self, shortest):
        x = Input((4,))
        a = chain(x, 4)
        b = chain(a, 3)
        assert loops(x, (b, a)) == [4, 3] and loops(x, b) == [7] and loops(x, b + a.relu()) == [4, 3]
        data = torch.randn(2, 4)
        model = SymbolicModel(x, (b, a))
        kept = data.clone()
        assert equal(model(data)[0], nn.Sequential(*model.children())(data)) and equal(data, kept)

    @pytest.mark.parametrize("shortest", [2], indirect=True)
    def test_layers_that_are_used_twice(self, shortest):
        x, layer = Input((4,)), nn.Linear(4, 4)
        y = layer(nn.ReLU()(layer(layer(x))))
        data = torch.randn(2, 4)
        check(x, y, (data,), layer(layer(layer(data)).relu()), lengths=(2, 3))

    @pytest.mark.parametrize("shortest", [2], indirect=True)
    def test_steps_that_are_no_plain_layers_end_them(self, shortest):
        x = Input((4,))
        y = chain(chain(chain(x, 2).relu(), 3) + x, 2)
        assert loops(x, y) == [2, 3, 2]

    @pytest.mark.parametrize("shortest", [1, 0, -3], indirect=True)
    def test_of_one_layer_there_are_none(self, shortest):
        x = Input((4,))
        with pytest.raises(AssertionError, match="CODEGEN_MIN_LOOP_LENGTH must be 2 or more"):
            SymbolicModel(x, chain(x, 2))


# ── random graphs ─────────────────────────────────────────────────────────────────────────────────────────────────────

LAYERS = [lambda: nn.Linear(4, 4), lambda: nn.LayerNorm(4),
          lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 4)), nn.Identity, nn.Sigmoid]
ONE = [
    lambda m, x: x.tanh(), lambda m, x: x * 2 - 1, lambda m, x: 1 / (x * x + 1), lambda m, x: F.softmax(x, dim=1),
    lambda m, x: x[:, [1, 0, 3, 2]],
    lambda m, x: torch.cat(x.chunk(2, dim=1)[::-1], 1), lambda m, x: x.flip(1), lambda m, x: -x,
    lambda m, x: x.sort(1).values, lambda m, x: x - x.mean(dim=1, keepdim=True),
    lambda m, x: m["lstm"](x.unsqueeze(1))[0].squeeze(1),
    lambda m, x: m["lstm"](x.unsqueeze(1))[1][0][0], lambda m, x: torch.stack(x.unbind(1), dim=1),
    lambda m, x: x.masked_fill(x > 0.5, 0.25),
    lambda m, x: x + torch.arange(4.), lambda m, x: (x.reshape(x.size(0), 2, 2) @ torch.ones(2, 2)).flatten(1),
    lambda m, x: x.double().float(),
]
TWO = [
    lambda m, x, y: x + y, lambda m, x, y: x * y, lambda m, x, y: torch.maximum(x, y),
    lambda m, x, y: torch.where(x > y, x, -y),
    lambda m, x, y: m["bilinear"](x, y), lambda m, x, y: F.linear(torch.cat([x, y], dim=1), m["wide"].weight),
    lambda m, x, y: torch.lerp(x, y, weight=0.25),
    lambda m, x, y: called(nested, {"parts": [(x, 1.5), {"deep": y}]}, scale=(0.5,)),
]


def nested(tree, scale):
    return tree["parts"][0][0] * tree["parts"][0][1] + tree["parts"][1]["deep"] * scale[0]


def called(function, tree, scale):
    """As a step of a graph, or at once."""
    return (add_to_graph(function, tree, scale=scale) if isinstance(tree["parts"][0][0], SymbolicTensor)
            else function(tree, scale))


class RandomProgram:
    """Steps that run on nodes as on tensors."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        dice = random.Random(seed)
        self.modules = {"lstm": nn.LSTM(4, 4, batch_first=True), "bilinear": nn.Bilinear(4, 4, 4),
                        "wide": nn.Linear(8, 4)}
        layers = [dice.choice(LAYERS)() for _ in range(8)]
        self.steps, count = [], 2
        while count < 2 + dice.randint(1, 25):
            kind = dice.random()
            if kind < 0.15:                                              # a run of layers
                for k in range(dice.randint(2, 12)):
                    layer = dice.choice(layers)
                    self.steps.append((lambda m, x, layer=layer: layer(x),
                                       (count - 1 if k else dice.randrange(count),)))
                    count += 1
                continue
            if kind < 0.4:
                layer = dice.choice(layers)
                self.steps.append((lambda m, x, layer=layer: layer(x), (dice.randrange(count),)))
            elif kind < 0.7:
                self.steps.append((dice.choice(ONE), (dice.randrange(count),)))
            else:
                self.steps.append((dice.choice(TWO), (dice.randrange(count), dice.randrange(count))))
            count += 1
        self.outputs = [count - 1, *[dice.randrange(count) for _ in range(dice.randint(0, 3))]]

    def run(self, *values):
        values = list(values)
        for step, operands in self.steps:
            values.append(step(self.modules, *[values[k] for k in operands]))
        return tuple(values[k] for k in self.outputs)


@steady(max_examples=150)
@given(st.integers(0, 2**31), st.integers(1, 3))
def test_random_graphs(seed, batch):
    program = RandomProgram(seed)
    data = torch.randn(batch, 4), torch.randn(batch, 4)
    with torch.no_grad():
        expected = program.run(*data)
        expected = expected if len(expected) > 1 else expected[0]
        inputs = Input((4,)), Input((4,))
        outputs = program.run(*inputs)
        assert [tuple(node.shape) for node in outputs] == [(None, 4)] * len(outputs)
        for name, model in forms(inputs, outputs, lengths=(2, 10, 50)):
            assert equal(model(*data), expected), f"{name}\n{getattr(model, '_generated_forward_source', '')}"


@steady(max_examples=15)
@given(st.integers(0, 2**31))
def test_gradients_of_random_graphs(seed):
    program = RandomProgram(seed)
    data = torch.randn(3, 4), torch.randn(3, 4)
    inputs = Input((4,)), Input((4,))
    outputs = program.run(*inputs)
    model = SymbolicModel(inputs, outputs)
    parameters = [p for p in model.parameters()]
    grads = []
    found = model(*data)
    for results in (program.run(*data), found if isinstance(found, tuple) else (found,)):
        leaves = [out for out in results if out.requires_grad]
        total = sum((out * (k + 1)).sum() for k, out in enumerate(leaves))
        grads.append(torch.autograd.grad(total, parameters, allow_unused=True) if parameters and leaves else ())
    for a, b in zip(*grads, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b)
