"""A single reading of the tape feeds every picture and text: its contents, and the layers of viz's modules."""
import ast
import sys
from itertools import pairwise

import pytest
from support import ROOT

import tensorgrad as torch
from tensorgrad import viz
from tensorgrad.utils.checkpoint import checkpoint
from tensorgrad.viz.tape import Tape, read

VIZ = ROOT / "tensorgrad" / "viz"

# From the ground up. A module may import from those before it.
ORDER = ("text mathml torch_names inplace_writes layout reading notation textbook_gradients formulas notes modules "
         "naming model tape fold scene svg plots matplotlib_export dot html drawing step_texts statements report "
         "explained_graph animation expansion tracing expression_trees decomposition inferred_values program explain "
         "nan graph render watch last_loss nan_search __init__ __main__").split()
READER = "tape"         # the module that looks into steps


def values(model):
    return {node.title: node.value for node in model.nodes}


# ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_results_of_writes_in_place_are_drawn_with_their_values():
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    y = (x * 2).exp_()
    model = read(y.sum())
    assert values(model)["exp"].tolist() == y.tolist()
    with torch.no_grad():
        y.zero_()
    assert values(read(y.sum()))["exp"] is None         # no longer the value that the step made


def test_inputs_that_were_left_out_are_not_saved():
    q, k, v = (torch.ones(1, 1, 2, 2, requires_grad=True) for _ in range(3))
    model = read(torch.nn.functional.scaled_dot_product_attention(q, k, v))
    step = next(node for node in model.nodes if node.title == "scaled_dot_product_attention")
    assert step.saved == ("query", "key", "value")


@pytest.mark.parametrize("kept", ["hooks", "checkpoint"])
def test_hooks_keep_an_input_that_needs_no_gradient(kept):
    x, w = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([1.0, 4.0])
    calls = []

    def program(x):
        calls.append(x)
        return x * w
    if kept == "hooks":
        def unpack(array):
            calls.append(array)
            return torch.tensor(array)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), unpack):
            y = program(x).sum()
    else:
        y = checkpoint(program, x, use_reentrant=False).sum()
    count = len(calls)
    assert viz.graph(y).steps == 2 and len(calls) == count           # a picture of the forward runs no hook
    step = viz.explain(y)[1]
    assert [(told.rule, told.value.text()) for told in step.gives] == [("g · b", "[1, 4]")]
    assert [value.text() for _, value in step.rows] == ["[1, 4]"]
    assert len(calls) > count


def test_a_step_that_fails_leaves_what_was_known_before():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = (x * 2).exp()
    z = (y * w).sum()
    with torch.no_grad():
        y.zero_()
    model = read(z, gradients=True)
    found = {node.title: node.gradient for node in model.nodes}
    assert found["sum"] == 1 and found["exp"] is None and found["tensor"] is None


def test_a_reading_changes_nothing_and_keeps_nothing():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    tape = Tape([y.grad_fn], [(y, y.grad_fn)], {y.grad_fn: torch.ones(()).numpy()}, again=True)
    assert [step.node.name() for step in tape.back] == ["SumBackward0", "MulBackward0"] and len(tape.values) == 3
    assert tape.arrived[tape.nodes[0]].tolist() == [2, 4] and x.grad is None and torch.is_grad_enabled()
    y.backward()
    assert x.grad.tolist() == [2, 4]


def test_names_come_from_the_program_and_a_module_names_its_parameters():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
    scale = torch.tensor(2.0, requires_grad=True)
    for p in net.parameters():
        assert p.is_leaf
    for layer in net:
        layer.train()
    loss = (net(torch.ones(1, 2)) * scale).sum()
    assert p is net[2].bias and layer is net[2]
    expected = {"net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias", "scale"}
    assert {leaf.name for leaf in torch.viz.explain(loss).leaves} == expected
    drawn = torch.viz.graph(loss).model.nodes
    assert {node.title for node in drawn if node.kind == "leaf" and node.tape is not None} == expected
    assert [node.title for node in drawn if node.kind == "value"] == ["loss"]
    assert "weight" in {node.title for node in torch.viz.graph(loss, module=net[2]).model.nodes}
    assert {node.title for node in torch.viz.graph(loss, names={}).model.nodes if node.kind == "leaf"} == \
        {"0.weight", "0.bias", "2.weight", "2.bias", "tensor", "input"}         # of the module that ran


# ── how it is built ───────────────────────────────────────────────────────────────────────────────────────────────────


def imports(module):
    """(level, module, names) of each import of a module of viz."""
    tree = ast.parse((VIZ / f"{module}.py").read_text(encoding="utf-8"))
    return [(node.level, node.module or "", [alias.name for alias in node.names])
            for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_every_module_of_viz_has_a_place():
    assert sorted(ORDER) == sorted(path.stem for path in VIZ.glob("*.py"))


@pytest.mark.parametrize("module", ORDER)
def test_modules_of_viz_build_on_those_before(module):
    used = [name for level, base, names in imports(module) if level == 1 for name in ([base] if base else names)]
    above = [name for name in used if name in ORDER and ORDER.index(name) >= ORDER.index(module)]
    assert not above or module == "__main__"


@pytest.mark.parametrize("module", ORDER)
def test_viz_uses_public_names_of_the_engine_and_reads_steps_in_one_place(module):
    for level, base, names in imports(module):
        if level == 2 and base.split(".")[0] in ("core", "autograd", "ops"):
            assert not [name for name in names if name.startswith("_")]
    nodes = list(ast.walk(ast.parse((VIZ / f"{module}.py").read_text(encoding="utf-8"))))
    inside = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr in ("plan", "saved_tensors", "residual")]
    readings = [node for node in nodes if isinstance(node, ast.keyword) and node.arg == "unpack"]
    ways_back = [node for node in nodes if isinstance(node, ast.Name) and node.id in ("steps_back", "sweep")]
    assert not inside and bool(readings or ways_back) == (module == READER)


def test_explaining_goes_through_the_modules_one_after_the_other():
    """The tape is read, then named, put into numbers, put into words and laid out: each of these is one pass."""
    def program():
        a, b = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([1.0, 4.0], requires_grad=True)
        return (a * b).sum()
    files = []

    def note(frame, event, arg):
        if event == "call" and str(VIZ) in frame.f_code.co_filename:
            files.append(frame.f_code.co_filename)
    for _ in range(2):
        files.clear()
        loss = program()
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            str(viz.explain(loss))
        finally:
            sys.setprofile(before)
    assert 10 < sum(a != b for a, b in pairwise(files)) <= 66
