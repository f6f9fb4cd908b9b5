"""Ops that programs write out become ops of the table; programs that only look similar stay unchanged."""
import math

import numpy as np
import pytest
from graph_passes import after, names
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.compiler.passes.constants import fold_constants
from tensorgrad.compiler.passes.dead import drop_unused
from tensorgrad.compiler.passes.idioms import write_idioms
from tensorgrad.compiler.passes.products import as_linear, over_leading_axes
from tensorgrad.compiler.passes.shapes import simplify_views
from tensorgrad.graph import lower

pytestmark = cpu_only
F = nn.functional
HALF, ROOT = torch.tensor(0.5), torch.tensor(math.sqrt(2))
SLOPE = math.sqrt(2 / math.pi)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(2)


def found(program, *inputs):
    return names(after(program, inputs, fold_constants, write_idioms, simplify_views, drop_unused))


@pytest.mark.parametrize(("program", "left"), [
    (lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))), "gelu"),
    (lambda x: x * ((torch.erf(x / ROOT) + 1) * HALF), "gelu"),
    (lambda x: (x * (torch.erf(x * math.sqrt(0.5)) + 1)) / 2, "gelu"),
    (lambda x: 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5000019))), "multiply multiply erf add multiply"),
    (lambda x: 0.5 * x * (1 + torch.erf(x.exp() / math.sqrt(2))), "multiply exp divide erf add multiply"),
    (lambda x: 0.5 * x * (1 + torch.tanh(SLOPE * (x + 0.044715 * x ** 3))), "gelu_tanh"),
    (lambda x: 0.5 * x * (1 + torch.tanh(SLOPE * (x + 0.044715 * x * x * x))), "gelu_tanh"),
    (lambda x: 0.5 * x * (1 + torch.tanh(x * SLOPE * (1 + 0.044715 * x * x))), "gelu_tanh"),
    (lambda x: 0.5 * x * (1 + torch.tanh(SLOPE * (x + 0.0447 * x ** 3))),
     "multiply power multiply add multiply tanh add multiply"),
    (lambda x: x.sigmoid() * x, "silu"),
    (lambda x: x[:1].sigmoid() * x, "get_slice sigmoid multiply"),
    (lambda x: x * F.hardsigmoid(x), "hardswish"),
    (lambda x: x * F.hardtanh(x + 3, 0, 6) / 6, "hardswish"),
    (lambda x: x * (x + 3).clamp(0, 6) / 6, "hardswish"),
    (lambda x: x * (x + 3).clamp(0, 6) / 3, "add clamp multiply divide"),
    (lambda x: (y := 0.5 * x, y * (1 + torch.erf(x / math.sqrt(2)))), "multiply divide erf add multiply"),
])
def test_activations(program, left):
    assert found(program, torch.linspace(-8, 8, 33).reshape(3, 11)) == left


Q = torch.randn(2, 3, 5, 4)
SEEN = torch.ones(5, 5, dtype=torch.bool).tril()
OTHER = torch.randn(3, 1, 5)
NONE = SEEN & (torch.arange(5) != 0)[:, None]


@pytest.mark.parametrize(("program", "left"), [
    (lambda q: torch.softmax(q @ q.mT / 2, -1) @ q, "swapaxes permute_dims attention"),
    (lambda q: torch.softmax(q / 2 @ (q.transpose(2, 3) * 0.3), 3) @ q, "swapaxes permute_dims attention"),
    (lambda q: torch.softmax(torch.where(SEEN, q @ q.mT, -math.inf), -1) @ q, "causal"),
    (lambda q: torch.softmax(torch.where(SEEN, q @ q.mT * 0.5, torch.finfo(q.dtype).min), -1) @ q, "causal"),
    (lambda q: torch.softmax(q @ q.mT + torch.where(SEEN.flip(1), 0, -math.inf), -1) @ q, "mask"),
    (lambda q: torch.softmax(q @ q.mT + OTHER, -1) @ q, "mask"),
    (lambda q: torch.softmax(torch.where(NONE, q @ q.mT, -math.inf), -1) @ q, "swapaxes matmul where softmax matmul"),
    (lambda q: torch.softmax(q @ q.mT + q.sum(), -1) @ q, "swapaxes matmul sum add softmax matmul"),
    (lambda q: torch.softmax(q @ q.mT, -2) @ q, "swapaxes matmul softmax matmul"),
    (lambda q: (p := torch.softmax(q @ q.mT, -1), p @ q), "swapaxes matmul softmax matmul"),
    (lambda q: torch.softmax(q @ q[:1].mT, -1) @ q, "get_slice swapaxes matmul softmax matmul"),
    (lambda q: torch.softmax((q := q[0]) @ q.mT, -1) @ q, "get_item swapaxes matmul softmax matmul"),
])
def test_attention(program, left):
    graph = after(program, Q, fold_constants, write_idioms, drop_unused)
    if left not in ("causal", "mask"):
        assert names(graph) == left
        return
    call, = (node for node in graph.nodes if node.name.startswith("attention"))
    assert call.kwargs["causal"] == (left == "causal") and (call.args[3] is None) == (left == "causal")


def test_linear_layers_over_leading_axes():
    linear, x = nn.Linear(4, 6), torch.randn(2, 3, 4)
    passes = as_linear, over_leading_axes, simplify_views, drop_unused
    assert names(after(lambda x: linear(x.view(6, 4)).view(2, 3, 6), x, *passes)) == "linear"
    assert names(after(lambda x: (x.view(6, 4) @ linear.weight.mT).view(2, 3, 6), x, *passes)) == "linear_without_bias"
    assert names(after(lambda x: linear(x.mT.reshape(6, 4)).view(2, 3, 6), x, *passes)) \
        == "permute_dims reshape linear"
    assert names(after(lambda x: linear(x.view(6, 4)).view(2, 18), x, *passes)) == "reshape linear reshape"
    assert names(after(lambda x: linear(x.view(6, 4)).view(6, 2, 3), x, *passes)) == "reshape linear reshape"


def test_constants_of_a_module_are_not_its_state():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor(2.0), persistent=False)
            self.register_buffer("shift", torch.tensor(1.0))
            self._constant_tensors = {"scale"}

        def forward(self, x):
            return x * self.scale + self.shift
    graph = lower(Net(), torch.ones(3))
    assert [node.target for node in graph.nodes if node.op == "get_attr" and node.meta.get("state")] == ["shift"]
    assert np.array_equal(graph(torch.ones(3)).array, [3, 3, 3])
