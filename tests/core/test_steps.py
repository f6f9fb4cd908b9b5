"""Steps of the tape: their capabilities, and their descriptions."""
import gc
import sys
from pathlib import Path

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.autograd import Function, grad
from tensorgrad.autograd.function import FunctionNode
from tensorgrad.core.composed import ComposedStep
from tensorgrad.core.dispatch import xp
from tensorgrad.core.engine import starts
from tensorgrad.core.fast_path import compiled
from tensorgrad.core.fused import FusedStep
from tensorgrad.core.node import Node
from tensorgrad.core.plan import KINDS, step_type
from tensorgrad.core.step import PlainStep, Step
from tensorgrad.core.sweep import steps_back
from tensorgrad.ops.base import OPS, Pair
from tensorgrad.storage.cpu import NumpyStorage

F = tg.nn.functional
pytestmark = cpu_only


def leaf(*shape):
    return tg.arange(float(np.prod(shape)), requires_grad=False).reshape(shape).add(0.5).requires_grad_()


class Twice(Function):
    @staticmethod
    def forward(ctx, x, factor, y):
        out = x * factor + y
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None, g


# ── what all have in common ───────────────────────────────────────────────────────────────────────────────────────────


def test_steps_of_every_kind_have_one_layout():
    assert set(KINDS) == {"plain", "fused", "composed"}
    for kind, cls in KINDS.items():
        made = [step_type(op, kind) for op in OPS.values()]
        assert all(issubclass(t, (cls, op)) and t.op is op for t, op in zip(made, OPS.values()))
        assert {t.__basicsize__ for t in made} == {Node.__basicsize__} and not any(t.__dictoffset__ for t in made)
    assert FunctionNode.__basicsize__ == Node.__basicsize__ and issubclass(FunctionNode, Step)
    y = leaf(2) * 2
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute 'note'"):
        y.grad_fn.note = 1


def test_a_step_without_a_gradient_says_so():
    step = Step()
    step.edges, step.dtype = (), np.dtype(float)
    assert step.read() == (None, (), {}, (step,))
    for pull in (step.pull, step.pull_tensors):
        with pytest.raises(NotImplementedError, match="Step has no gradient"):
            pull(None, None)


# ── readings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plain_step():
    a, b = leaf(2, 3), leaf(3)
    y = a * b
    op, inputs, asked, results = y.grad_fn.read()
    assert op is OPS["multiply"] and results == (y.grad_fn,)
    assert [(o.name, o.position, o.edge) for o in inputs] == [("a", 0, a._node), ("b", 1, b._node)]
    assert inputs[0].value is a and inputs[1].value is b and not any(o.stale for o in inputs)
    assert list(asked) == ["b", "a"] and asked["a"] == inputs[0] and asked["b"] == inputs[1]


def test_what_a_plain_step_does_not_keep():
    a = leaf(2, 3)
    read = (a * 3.0).grad_fn.read()
    assert [o.value for o in read.inputs] == [None, 3.0] and read.inputs[1].edge is None and list(read.asked) == ["b"]
    read = a.exp().grad_fn.read()
    assert (read.inputs[0].value is None and read.asked["out"].position == 1
            and read.asked["out"].edge is read.results[0])
    assert np.array_equal(read.asked["out"].value, a.exp().array) and [o.name for o in read.kept()] == ["out"]
    read = a.sum(1).grad_fn.read()
    assert read.asked["x_shape"][1:] == (-1, None, (2, 3), False) and read.asked["axis"].value == (1,)


def test_inputs_that_share_a_name_are_counted():
    a, b = leaf(2, 3), leaf(1, 3)
    read = tg.cat([a, b]).grad_fn.read()
    assert [(o.name, o.edge) for o in read.inputs] == [("xs[0]", a._node), ("xs[1]", b._node)]


def test_a_step_with_several_results():
    a = leaf(2, 3)
    values, _ = a.max(1)
    read = values.grad_fn.read()
    assert read.op is OPS[values.grad_fn.opname] and read.results[0] is values._node and len(read.results) == 2
    step = values.grad_fn
    del values, read
    gc.collect()
    assert step.read().results[0] is None


@pytest.mark.parametrize("function, cls", [(lambda x: F.softmax(x, 1), FusedStep),
                                           (lambda x: F.layer_norm(x, (3,)), ComposedStep)])
def test_a_step_of_a_kernel_pair(function, cls):
    x = leaf(2, 3)
    y = function(x)
    read = y.grad_fn.read()
    assert isinstance(y.grad_fn, cls) and read.inputs[0][:3] == ("x", 0, x._node) and read.results == (y.grad_fn,)
    if cls is FusedStep:
        assert (list(read.asked) == ["out", "axis"] and read.asked["out"].value is y.array
                and read.inputs[0].value is None)
    else:
        assert list(read.asked) == ["x", "ndim", "eps"] and read.asked["x"].value is x and read.inputs[1].value is None
    grad((y ** 2).sum(), x, create_graph=True)
    assert isinstance(y.grad_fn, cls) == (cls is ComposedStep)
    again = y.grad_fn.read()
    assert again.inputs == read.inputs and list(again.asked) == list(read.asked)


def test_values_that_were_written_to_are_stale():
    a, b = leaf(2), leaf(2)
    y = a * b
    with tg.no_grad():
        a.mul_(2)
    assert [o.stale for o in y.grad_fn.read().inputs] == [True, False] and y.grad_fn.read().asked["a"].stale
    y = (a * 1).exp_()          # the write that made it is no harm
    assert not y.grad_fn.read().asked["out"].stale
    y.mul_(2)
    assert y.grad_fn.next_functions[0][0].read().asked["out"].stale


@pytest.mark.parametrize("function", [lambda x: x * x, lambda x: F.softmax(x, 0), lambda x: F.layer_norm(x, (3,)),
                                      lambda x: Twice.apply(x, 2.0, x)])
def test_steps_that_were_freed_keep_nothing(function):
    x = leaf(3)
    y = function(x)
    step = y.grad_fn
    asked, memory = list(step.read().asked), step.memory
    step.free()
    read = step.read()
    assert step.freed and not list(read.kept()) and all(o.value is None for o in read.asked.values() if o.position >= 0)
    assert ([o.edge for o in read.inputs][0] is x._node
            and (isinstance(step, FunctionNode) or list(read.asked) == asked or isinstance(step, ComposedStep)))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()
    step.memory = memory
    y.sum().backward()
    assert x.grad is not None


def test_what_hooks_keep_is_unpacked_only_if_asked_for():
    x, unpacked = leaf(3), []
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: unpacked.append(1) or t):
        y, z = x * x, Twice.apply(x, 2.0, x)
    for step in (y.grad_fn, z.grad_fn):
        assert step.read(unpack=False).inputs[0].value is None and not unpacked
        assert np.array_equal(step.read().inputs[0].value.array, x.array) and unpacked
        unpacked.clear()


def test_a_step_of_a_function():
    x, y = leaf(2), leaf(2)
    z = Twice.apply(x, 3.0, y)
    read = z.grad_fn.read()
    assert read.op is None and [(o.name, o.edge) for o in read.inputs] == [("input 0", x._node), ("input 2", y._node)]
    assert read.inputs[0].value is x and read.inputs[1].value is None and read.results == (z._node,)
    assert (list(read.asked) == ["saved 0", "saved 1"] and read.asked["saved 1"].edge is z._node
            and read.asked["saved 1"].value.array is z.array)
    assert [o.position for o in read.asked.values()] == [0, 2] and not read.asked["saved 1"].stale
    with tg.no_grad():
        z.mul_(2)
    assert z.grad_fn is not None and read.results[0].node.read().asked["saved 1"].stale


def test_saved_values_of_a_kernel_pair_have_pytorchs_names():
    x = leaf(2, 3)
    y = F.softmax(x, 1)
    assert np.array_equal(y.grad_fn._saved_result.array, y.array) and y.grad_fn._saved_dim == 1
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 1, lambda t: t)
    expected = F.softmax(x, 1)
    (y * x).sum().backward()
    assert np.allclose(x.grad.array, grad((expected * x).sum(), x)[0].array)


# ── a backward that only looks ────────────────────────────────────────────────────────────────────────────────────────


def test_steps_back_are_those_of_the_engine():
    x, w = leaf(2, 3), leaf(3)
    y = (F.softmax(x * w, 1) * w).sum()
    called = []
    y.grad_fn.register_hook(lambda *g: called.append(g))
    grads = starts((y,), None, False)
    back = list(steps_back(grads))
    assert ([type(step.node).__name__ for step in back] == ["SumBackward0", "MulBackward0", "SoftmaxBackward0",
                                                            "MulBackward0"] and not called)
    assert (not any(step.node.freed for step in back) and x.grad is None
            and [step.reading.op for step in back] == [step.node.op for step in back])
    share = back[-1].shares[1]
    assert share.edge is w._node and share.position == 1 and np.allclose(share.before + share.gradient, share.total)
    y.backward()
    assert (np.array_equal(grads[x._node], x.grad.array) and np.array_equal(grads[w._node], w.grad.array)
            and len(called) == 1)


# ── kernel pairs on fast paths ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(compiled is None, reason="the compiled fast path is not in use")
def test_few_calls_lead_to_a_kernel_pair():
    x, calls = leaf(3, 4), []
    package = str(Path(tg.__file__).parent)
    tg.softmax(x, 1)

    def note(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(package):
            calls.append(frame.f_code.co_filename)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        tg.softmax(x, 1)
    finally:
        sys.setprofile(before)
    assert len(calls) <= 10 and len(set(calls)) <= 5


def test_one_pair_is_asked_after_the_other():
    op, asked = OPS["tanh"], []

    def pair(name, serves):
        def forward(x):
            asked.append(name)
            return (x * 2, (x,)) if serves else NotImplemented
        return Pair(forward, lambda g, kept, needs: [g * (2 if kept[0] is x.array else 100)])
    kernels = [pair("first", True), pair("second", False)]
    for kernel in kernels:
        op.kernels.register(NumpyStorage, kernel)
    try:
        x = leaf(2, 2)
        y = tg.tanh(x)
        assert (asked == ["second", "first"] and isinstance(y.grad_fn, FusedStep)
                and np.array_equal(y.array, x.array * 2))
        y.sum().backward()
        assert np.array_equal(x.grad.array, np.full((2, 2), 2))
    finally:
        for kernel in kernels:
            op.kernels.unregister(NumpyStorage, kernel)


@pytest.mark.parametrize("name", ["sgn", "tanh"])
def test_the_definition_serves_what_no_pair_does(name):
    """Also where the definition is a function of the backend's module, which has the op's own name."""
    op, kernel, x = OPS[name], Pair(lambda x: NotImplemented, None), leaf(2, 2)
    op.kernels.register(NumpyStorage, kernel)
    try:
        y = getattr(xp, name)(x)
    finally:
        op.kernels.unregister(NumpyStorage, kernel)
    assert (type(y.grad_fn) is step_type(op, "plain") and np.allclose(y.array,
                                                                      {"sgn": np.sign, "tanh": np.tanh}[name](x.array)))


def test_a_pair_promises_rows():
    x = leaf(3, 4)
    kernel = Pair(lambda x, *, axis: (np.asfortranarray(x), x), lambda g, kept, needs: [g])
    OPS["softmax"].kernels.register(NumpyStorage, kernel)
    try:
        y = tg.softmax(x, 1)
        assert y.array.flags.c_contiguous and np.array_equal(y.array, x.array)
        y.sum().backward()
        assert np.array_equal(x.grad.array, np.ones((3, 4)))
    finally:
        OPS["softmax"].kernels.unregister(NumpyStorage, kernel)


def test_fused_steps_notice_writes_and_other_memory():
    x = leaf(2, 3)
    h = x * 1
    y = F.layer_norm(h, (3,))
    with tg.no_grad():
        h.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*output 0 of Mul,"):
        y.sum().backward()
    y = tg.softmax(x, 1)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*output 0 of Softmax,"):
        y.sum().backward()
    h = tg.Tensor(np.ones((2, 3), np.float32)).requires_grad_()
    y = F.layer_norm(h, (3,))
    h.data = tg.arange(6.0).reshape(2, 3)
    y.backward(tg.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 1.0]]))
    assert h.grad.shape == (2, 3)


def test_pulling_pairs_is_pythons_engine_in_c(monkeypatch):
    from tensorgrad.core import sweep

    def gradients():
        tg.manual_seed(0)
        x, w, b = tg.randn(3, 4, requires_grad=True), tg.randn(4, requires_grad=True), tg.randn(4, requires_grad=True)
        h = F.layer_norm(x * 2, (4,), w, b)
        loss = F.cross_entropy(h + F.softmax(h, 1), tg.tensor([1, 0, 2]))
        loss.backward(retain_graph=True)
        loss.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            loss.backward()
        return [t.grad.array for t in (x, w, b)]
    ours = gradients()
    monkeypatch.setattr(sweep, "compiled", None)
    assert all(map(np.array_equal, ours, gradients()))


def test_a_backward_kernel_that_fails_leaves_its_gradient_to_be_explained():
    x = leaf(2)
    kernel = Pair(lambda x: (x * 1, x), lambda g, kept, needs: np.ones(3).reshape(2))
    OPS["tanh"].kernels.register(NumpyStorage, kernel)
    try:
        y = tg.tanh(x)
        with pytest.raises(ValueError, match="cannot reshape"):
            y.sum().backward()
        assert x.grad is None and isinstance(y.grad_fn, PlainStep)
    finally:
        OPS["tanh"].kernels.unregister(NumpyStorage, kernel)


@pytest.mark.parametrize("watched", [[1], [(1,)], [(0, 5)], [("a", None)], 5])
def test_a_residual_that_is_none_is_refused(watched):
    x = leaf(2, 2)
    y = tg.softmax(x, 1)
    pair, kept, _ = y.grad_fn.residual
    y.grad_fn.residual = (pair, kept, watched)
    with pytest.raises((TypeError, ValueError, AttributeError)):
        y.sum().backward()


def test_gradients_of_a_result_that_is_given_twice_add_up_in_16_bits():
    x = tg.ones(2, dtype=tg.bfloat16, requires_grad=True)
    y = x * 2
    gradient = tg.tensor([1.5, 2.0], dtype=tg.bfloat16)
    tg.autograd.backward([y, y], [gradient, gradient])
    assert x.grad.dtype is tg.bfloat16 and x.grad.tolist() == [6.0, 8.0]
