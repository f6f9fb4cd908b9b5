"""torch.fx.experimental: models for inference, constants, asserts, forms of arguments."""
import operator

import pytest

import tensorgrad as tg
from tensorgrad.fx import GraphModule, symbolic_trace
from tensorgrad.fx.experimental.const_fold import split_const_subgraphs
from tensorgrad.fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from tensorgrad.fx.experimental.optimization import extract_subgraph, fuse, remove_dropout
from tensorgrad.fx.experimental.rewriter import RewritingTracer
from tensorgrad.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from tensorgrad.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap


def test_fused_models():
    tg.manual_seed(0)
    model = tg.nn.Sequential(tg.nn.Conv2d(2, 3, 3), tg.nn.BatchNorm2d(3), tg.nn.Dropout(0.5), tg.nn.Flatten(),
                             tg.nn.Linear(12, 4), tg.nn.BatchNorm1d(4))
    for _ in range(3):
        model(tg.randn(4, 2, 4, 4))
    model.eval()
    x = tg.randn(2, 2, 4, 4)
    fused = remove_dropout(fuse(model))
    assert tg.allclose(fused(x), model(x), atol=1e-6)
    assert [type(layer).__name__ for layer in fused.children()] == ["Conv2d", "Flatten", "Linear"]
    assert type(model[1]) is tg.nn.BatchNorm2d


def test_extracted_parts():
    module = symbolic_trace(lambda x: (x + 1) * 2 - x)
    x, add, mul, sub, _ = module.graph.nodes
    assert extract_subgraph(module, [mul, sub], [add, x], [sub])(3, 1) == [5]


class Shifted(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = tg.nn.Parameter(tg.ones(2)), tg.nn.Parameter(tg.tensor([1., 2.]))

    def forward(self, x):
        c = self.a + self.b
        return x * c + (c - 1)


def test_folded_constants():
    folded, x = split_const_subgraphs(module := Shifted()), tg.tensor([3., 4.])
    assert tg.equal(folded(x), module(x))
    assert [node.name for node in folded.graph.nodes if node.target in (operator.add, operator.sub)] == ["add_1"]
    with pytest.raises(AssertionError, match="Folding has already been run"):
        folded.run_folding()
    assert not split_const_subgraphs(symbolic_trace(lambda x: x + 1)).const_subgraph_module


class Checked(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = tg.nn.Linear(2, 2)

    def forward(self, x, limit=1):
        assert x.shape[0] > limit, "rows"
        return self.linear(x)


def test_recorded_asserts():
    original = Checked()
    module = GraphModule(original, RewritingTracer().trace(original))
    assert "torch._assert(gt, 'rows')" in module.code and module(tg.ones(3, 2)).shape == (3, 2)
    with pytest.raises(AssertionError, match="rows"):
        module(tg.ones(1, 2))


def test_forms_of_arguments():
    traced = symbolic_trace(lambda x: tg.nn.functional.hardtanh(tg.add(x, 1), 0.))
    code = NormalizeArgs(traced).transform().code
    assert "hardtanh(input = add, min_val = 0.0, max_val = 1.0, inplace = False)" in code
    assert "add = x + 1" in NormalizeOperators(traced).transform().code


def test_equal_calls():
    def program(x):
        return tg.relu(x) + tg.relu(x) + x[0:1] + x[0:1] + tg.rand_like(x) + tg.rand_like(x) + x.add(1) + x.add(1.)
    result = CSEPass(get_CSE_banned_ops())(symbolic_trace(program))
    code = result.graph_module.code
    assert result.modified and [code.count(text) for text in ("relu(", "[slice", "rand_like(", ".add(")] == [1, 1, 2, 2]
    assert not CSEPass()(symbolic_trace(lambda x: x + 1)).modified


def test_named_nodes_of_patterns():
    def pattern(pair):
        total = pair[0] + pair[1]
        return tg.relu(total), {"total": total}
    traced = symbolic_trace(pattern, concrete_args={"pair": [tg.fx.PH, tg.fx.PH]})
    matcher = SubgraphMatcherWithNameNodeMap(traced)
    match, = matcher.match(symbolic_trace(lambda x, y: tg.relu(x + y) * 2).graph)
    assert match.name_node_map["total"].name == "add"
    with pytest.raises(AssertionError, match="gm._out_spec is None"):
        SubgraphMatcherWithNameNodeMap(symbolic_trace(lambda x: x))
