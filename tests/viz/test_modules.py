"""Steps by the modules that made them, without being asked to watch: in graphs, explanations and pages."""
import copy
import gc
import pickle
import threading
import weakref

import pytest

import tensorgrad as torch
from tensorgrad import nn, viz
from tensorgrad.core.module_calls import calls_at
from tensorgrad.utils.checkpoint import checkpoint
from tensorgrad.viz.fold import Group, inside
from tensorgrad.viz.modules import paths


def told(explanation):
    """(module, op) of each step forward."""
    return [(".".join(step.group), step.op) for step in explanation.forward]


def layers(*sizes):
    return nn.Sequential(*[layer for n, m in zip(sizes, sizes[1:]) for layer in (nn.Linear(n, m), nn.Tanh())])


class Residual(nn.Module):
    """A module with a list of modules, a part that runs twice, a loss on the side, and operations of its own."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.shared = nn.Tanh()
        self.aside = nn.Linear(2, 1)

    def forward(self, x):
        for block in self.blocks:
            x = x + self.shared(block(x))
        self.extra = self.aside(x).mean()
        return x


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_losses_of_a_gan_are_outside_of_its_networks():
    G, D, criterion = layers(2, 3), layers(3, 1), nn.MSELoss()
    real, fake = torch.rand(4, 3), G(torch.rand(4, 2))
    loss = criterion(D(real), torch.ones(4, 1)) + (D(fake) ** 2).mean()
    found = viz.explain(loss)
    assert told(found) == [("G.0", "linear"), ("G.1", "tanh"), ("D.0", "linear"), ("D.1", "tanh"),
                           ("criterion", "mse_loss"), ("D.0", "linear"), ("D.1", "tanh"), ("", "pow"), ("", "mean"),
                           ("", "add")]
    forward = {step.node: step.group for step in found.forward}
    assert all(step.group == forward[step.node] for step in found.steps)
    tree = viz.graph(loss).tree
    groups = [g for g in tree.groups if g.title in ("G", "D")]
    assert [g.title for g in groups] == ["G", "D", "D"]
    assert [[n.title for n in inside(g) if n.kind == "step"] for g in groups] == [["linear", "tanh"]] * 3
    assert {"G", "D"} <= {n.partition(".")[0] for n in [node.title for node in tree.model.nodes if node.kind == "leaf"]}


def test_a_part_is_called_as_the_outermost_variable_calls_it():
    net = layers(2, 3, 1)
    first = net[0]
    assert told(viz.explain(net(torch.rand(1, 2)).sum()))[0] == ("net.0", "linear")
    assert told(viz.explain(first(torch.rand(1, 2)).sum())) == [("net.0", "linear"), ("", "sum")]
    assert told(viz.explain(net(torch.rand(1, 2)).sum(), module=net))[0] == ("0", "linear")
    assert paths({"net": net, "first": first, "x": torch.ones(1)}, first)[id(first)] == ()


def test_modules_without_a_variable_are_called_by_their_class():
    def program():
        return layers(2, 3)(torch.rand(1, 2)).sum(), nn.Linear(2, 2)(torch.rand(1, 2)).sum()
    gone, _ = program()                         # the modules are no more
    assert told(viz.explain(gone)) == [("Sequential.Linear", "linear"), ("Sequential.Tanh", "tanh"), ("", "sum")]
    kept = [layers(2, 3)]
    assert (told(viz.explain(kept[0](torch.rand(1, 2)).sum()))[:2]
            == [("Sequential.0", "linear"), ("Sequential.1", "tanh")])


def test_lists_shared_parts_and_losses_on_the_side():
    net = Residual()
    out = net(torch.rand(3, 2))
    found = viz.explain(out.sum() + net.extra)
    assert told(found) == [("net.blocks.0", "linear"), ("net.shared", "tanh"), ("net", "add"),
                           ("net.blocks.1", "linear"), ("net.shared", "tanh"), ("net", "add"), ("net.aside", "linear"),
                           ("net", "mean"), ("", "sum"), ("", "add")]
    calls = [node.calls for node in viz.graph(out).model.nodes if node.kind == "step"
             and node.group[-1:] == ("shared",)]
    # one call of net, two of its part
    assert len(calls) == 2 and calls[0][0] == calls[1][0] and calls[0][1] != calls[1][1]


@pytest.mark.parametrize("make, group", [
    (lambda: nn.LSTM(2, 3), "net"), (lambda: nn.GRU(2, 3, bidirectional=True), "net"),
    (lambda: nn.MultiheadAttention(2, 1), "net"),
    (lambda: nn.TransformerEncoderLayer(2, 1, 4, dropout=0.0), "net.linear2")],
                         ids=["LSTM", "GRU", "attention", "encoder"])
def test_modules_with_several_results_and_parts(make, group):
    net = make()
    x = torch.rand(3, 1, 2)
    out = net(x, x, x) if isinstance(net, nn.MultiheadAttention) else net(x)
    loss = (sum(part.sum() for part in (out[1] if isinstance(out[1], tuple) else out[:1])) if isinstance(out, tuple)
            else out.sum())
    found = viz.explain(loss)
    groups = {".".join(step.group) for step in found.forward}
    assert group in groups and all(step.group[:1] == ("net",) for step in found.forward
                                   if step.op not in ("sum", "add", "rsub", "select", "unbind"))


# ── when there is a note, and when not ────────────────────────────────────────────────────────────────────────────────


def test_what_a_module_passes_on_is_not_its_own():
    net, x = nn.Sequential(nn.Identity(), nn.Dropout(0.5), nn.ReLU()).eval(), torch.rand(2, requires_grad=True)
    y = x * 2
    assert told(viz.explain(net(y).sum())) == [("", "multiply"), ("net.2", "relu"), ("", "sum")]
    assert net[0](x) is x and not calls_at(x.grad_fn or y.grad_fn)
    with torch.no_grad():
        assert nn.Linear(2, 2)(x).grad_fn is None


def test_hooks_and_writes_in_place_belong_to_the_module():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True), nn.Linear(2, 2))
    net.register_forward_hook(lambda module, args, result: result * 3)
    net[2].register_full_backward_hook(lambda module, grads, given: None)
    found = told(viz.explain(net(torch.rand(1, 2, requires_grad=True)).sum()))
    assert ([group for group, op in found if op in ("linear", "relu", "multiply", "sum")]
            == ["net.0", "net.1", "net.2", "net", ""])
    # the gates of the backward hook
    assert {group for group, op in found if op not in ("linear", "relu", "multiply", "sum")} == {"net.2"}


def test_a_failed_call_leaves_no_note():
    class Sometimes(nn.Module):
        def forward(self, x):
            if x.numel() > 2:
                raise ValueError("too many")
            return x * 2
    net, x = Sometimes(), torch.rand(2, requires_grad=True)
    y = net(x)
    with pytest.raises(ValueError):
        net(torch.cat([y, y]))
    assert told(viz.explain((y + net(x)).sum())) == [("net", "multiply"), ("net", "multiply"), ("", "add"), ("", "sum")]


def test_modules_within_checkpoints_and_transforms():
    net = layers(2, 2)
    y = checkpoint(net, torch.rand(1, 2, requires_grad=True), use_reentrant=False)
    assert told(viz.explain(y.sum()))[:2] == [("net.0", "linear"), ("net.1", "tanh")]
    state = dict(net.named_parameters())
    out = torch.func.functional_call(net, state, (torch.rand(1, 2),))
    assert told(viz.explain(out.sum()))[:2] == [("net.0", "linear"), ("net.1", "tanh")]
    assert len(torch.func.grad(lambda s: torch.func.functional_call(net, s, (torch.rand(1, 2),)).sum())(state)) == 2


def test_each_thread_has_its_own_calls():
    nets, results, both = [layers(2, 2, 2) for _ in range(2)], [None, None], threading.Barrier(2, timeout=60)
    left, right = nets

    def waiting(module, args):
        both.wait()                              # the steps of the two take turns
    for net in nets:
        for part in net:
            part.register_forward_pre_hook(waiting)

    def run(k):
        results[k] = nets[k](torch.rand(1, 2))
    threads = [threading.Thread(target=run, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = viz.explain((results[0] * results[1]).sum())
    for name, result in (("left", results[0]), ("right", results[1])):
        own = {step.node for step in viz.explain(result.sum()).forward} - {None}
        groups = [".".join(step.group) for step in found.forward if step.node in own]
        assert groups == [f"{name}.{k}" for k in range(4)]
    assert told(found)[-2:] == [("", "multiply"), ("", "sum")]


# ── what is drawn ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_watching_a_module_names_its_parts_without_its_own_name():
    net = layers(2, 2)
    with viz.watch(net):
        watched = net(torch.rand(1, 2)).sum()
    with viz.watch():
        other = net(torch.rand(1, 2)).sum()
    assert told(viz.explain(watched)) == [("0", "linear"), ("1", "tanh"), ("", "sum")]
    assert told(viz.explain(other)) == [("net.0", "linear"), ("net.1", "tanh"), ("", "sum")]
    assert viz.explain(other).forward[0].source is not None


def test_the_list_of_steps_on_the_page_is_folded_by_module():
    net = layers(2, 3, 3, 1)
    page = viz.explain(net(torch.rand(1, 2)).sum()).html()
    assert "<summary>net " in page
    tree = viz.graph(net(torch.rand(1, 2)).sum()).tree
    assert [m.title for m in tree.root.members if isinstance(m, Group)] == ["net"]


# ── what stays alive ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_graph_keeps_no_module_alive_nor_the_other_way_round():
    net = Residual()                            # it keeps a result of its own
    y = net(torch.rand(1, 2))
    node, module = weakref.ref(y.grad_fn), weakref.ref(net)
    assert [call.module() for call in calls_at(y.grad_fn)] == [net]
    gc.collect()
    gc.disable()
    try:
        del y
        assert node() is not None               # net.extra came from it
        del net
        assert module() is None and node() is None
    finally:
        gc.enable()


def test_modules_that_ran_are_copied_and_saved_as_before():
    net = layers(2, 2)
    y = net(torch.rand(1, 2)).sum()
    other = copy.deepcopy(net)
    third = pickle.loads(pickle.dumps(net))
    y.backward()
    for module in (other, third):
        assert (told(viz.explain(module(torch.rand(1, 2)).sum()))[0]
                == ("other.0" if module is other else "third.0", "linear"))


# ── names of tensors without a variable ───────────────────────────────────────────────────────────────────────────────


class Trainer:
    """A program in a class: its modules and tensors are attributes."""

    def __init__(self):
        self.G, self.D = layers(2, 3), layers(3, 1)
        self.scale = torch.tensor(2.0, requires_grad=True)

    def step(self):
        loss = (self.D(self.G(torch.rand(4, 2))) * self.scale).mean()
        return viz.explain(loss), viz.graph(loss)


def test_attributes_of_self_are_names():
    found, graph = Trainer().step()
    names = {"G.0.weight", "G.0.bias", "D.0.weight", "D.0.bias", "scale"}
    assert {leaf.name for leaf in found.leaves} == names and told(found)[0] == ("G.0", "linear")
    assert {node.title for node in graph.model.nodes if node.kind == "leaf" and node.tape is not None} == names


def test_parameters_of_modules_without_a_variable():
    class Other(nn.Sequential):
        pass

    def program(*nets):
        return viz.explain(sum(net(torch.rand(4, 2)).sum() for net in nets), names={})
    first, second, third = layers(2, 1), Other(nn.Linear(2, 1)), Other(nn.Linear(2, 1))
    assert {leaf.name for leaf in program(first).leaves} == {"0.weight", "0.bias"}
    assert ({leaf.name for leaf in program(first, second).leaves}
            == {"Sequential.0.weight", "Sequential.0.bias", "Other.0.weight", "Other.0.bias"})
    # nothing tells them apart
    assert {leaf.name for leaf in program(second, third).leaves} == {"leaf1", "leaf2", "leaf3", "leaf4"}


def test_inputs_without_a_variable_are_called_by_their_role():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))

    def program():
        input = torch.rand(2)
        return nn.functional.mse_loss(net(torch.rand(2, 3)), torch.rand(2, 3)) * input.sum(), net(torch.rand(2, 3))
    loss, _ = program()
    found = viz.explain(loss)
    assert ([step.expression for step in found.forward[:2]]
            == ["input @ net.0.weightᵀ + net.0.bias", "batch_norm(v1, net.1.weight, net.1.bias)"])
    assert found.forward[1].result == "v2" and "target" in found.forward[2].expression
    drawn = next(node for node in viz.graph(loss).model.nodes if node.title == "batch_norm")
    # its mean and deviation are nothing that the program sees
    assert drawn.shape == (2, 3) == drawn.value.shape and drawn.dtype == "float32"
    assert any(name == "input" and value.shape == (2, 3) for name, value in found.steps[-1].rows)
    input = torch.rand(3)                       # another tensor of this name
    assert viz.explain(loss + input.sum()).forward[0].expression.startswith("input1 @ ")


def test_a_command_draws_both_networks_by_their_names(tmp_path):
    from tensorgrad.viz.__main__ import Wanted, draw
    from tensorgrad.viz.last_loss import Last
    with Last() as last:
        G, D = layers(2, 3), layers(3, 1)
        D(G(torch.rand(4, 2))).mean().backward()
    assert {"G", "D"} <= set(last.scope) and last.module() is None
    draw(last, Wanted(tmp_path / "gan.svg", False, ["gan.py"], False))
    assert all(f">{name}<" in (tmp_path / "gan.svg").read_text() for name in ("G", "D"))


def test_masks_and_what_is_left_out():
    net = nn.Dropout(0.5)
    x, target = torch.rand(3, 4, requires_grad=True), torch.tensor([0, 3, 1])
    torch.manual_seed(1)
    found = viz.explain(nn.functional.cross_entropy(net(x) * torch.rand(3, 4), target))
    assert [step.expression for step in found.forward] == ["x · mask", "v1 · other", "cross_entropy(v2, target)"]
    assert (viz.explain(torch.where(torch.rand(3, 4) > 0.5, x, x * 2).sum()).forward[1].expression
            == "x where mask, else v1")


def test_results_that_hold_themselves_and_large_ones_are_handed_on():
    """A note must not fail where the forward did not: not for cycles, deep nesting, or containers with methods of their
    own.
    """
    class Own(dict):
        def values(self):
            raise AssertionError("a method of the program was called")

    class Returning(nn.Module):
        def __init__(self, wrapped):
            super().__init__()
            self.wrapped = wrapped

        def forward(self, x):
            return self.wrapped(x * 2)

    def cycle(y):
        found = [y]
        found.append(found)
        return found

    def deep(y):
        for _ in range(5000):
            y = [y]
        return y
    x = torch.ones(2, requires_grad=True)
    assert Returning(cycle)(x)[1][1][0].grad_fn.calls[1] is Returning
    assert type(Returning(deep)(x)) is list and len(Returning(lambda y: [y] * 100_000)(x)) == 100_000
    assert Returning(lambda y: Own(y=y))(x)["y"].grad_fn.calls[1] is Returning
