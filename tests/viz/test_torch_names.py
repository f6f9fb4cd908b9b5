"""Names and indices as people write them: PyTorch's functions, `x[0, :, 1:3]`, and no name that only the op table
has.
"""
import pytest

import tensorgrad as torch
from tensorgrad.ops.base import OPS
from tensorgrad.viz import explain, graph
from tensorgrad.viz.torch_names import PUBLIC, SLIDING, public, title


def spoken(name):
    """Return True if PyTorch has a function or method of this name."""
    pytorch = pytest.importorskip("torch")
    places = (pytorch, pytorch.Tensor, pytorch.nn.functional, pytorch.linalg, pytorch.special, pytorch.fft,
              pytorch.nn.grad, pytorch.ops.aten)
    return any(hasattr(place, name) for place in places)


def test_every_public_name_is_one_of_pytorch():
    assert {name for name in PUBLIC.values() if not spoken(name) and not spoken(f"{name}2d")} == set()
    assert ({name for op, (_, parameter) in SLIDING.items() if not spoken(name := title(op, {parameter: (1, 1)}))}
            == set())


def test_every_op_has_a_public_name_or_is_mathematics():
    """An op whose name PyTorch does not have is one that only a double backward records, or a formula's own."""
    assert ({name for name in OPS.keys() - SLIDING if not spoken(public(name)) and not spoken(f"{public(name)}2d")}
            == {"cofactors", "one_zero", "recurrence"})


def told(loss, **names):
    found = explain(loss, names=names)
    return ([step.expression for step in found.forward],
            {f"{give.target}: {give.named}" for step in found.steps for give in step.gives})


def test_an_index_is_what_the_program_wrote():
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()
    i = torch.tensor([0, 2])
    a, b, c, d, e = x[0], x[:, 1:3], x[i], x[..., None, ::2], x[1, i]
    forward, rules = told(a.sum() + b.sum() + c.sum() + d.sum() + e.sum(), x=x, i=i)
    assert {"x[0]", "x[:, 1:3]", "x[i]", "x[:, None, ::2]", "x[1]"} <= set(forward)
    assert {"x: g at [0], 0 elsewhere", "x: g at [:, 1:3], 0 elsewhere", "x: g added at [i], 0 elsewhere"} <= rules
    titles = [node.title for node in graph(a.sum() + b.sum() + c.sum()).model.nodes if node.kind == "step"]
    assert {"select", "slice", "index"} <= set(titles)


def test_parts_of_a_concatenation_get_their_part_of_the_gradient():
    x, y = torch.ones(2, 2, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    _, rules = told((torch.cat([x, y], 1) * 2).sum() + torch.stack([x, x]).sum(), x=x, y=y)
    assert {"x: g[:, 0:2]", "y: g[:, 2:5]", "x: g[0]", "x: g[1]"} <= rules


def test_boxes_say_their_arguments_as_a_program_gives_them():
    x = torch.ones(2, 3, requires_grad=True)
    page = graph((x[:, 1:].sum(1, keepdim=True) * x.t()[0]).sum()).svg()
    assert "slice([:, 1:])" in page and "sum(dim=(1,), keepdim=True)" in page
    assert "slice(None" not in page and "place_slice" not in page
