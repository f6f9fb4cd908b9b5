"""Gradients of parameters that another thread computes during backward: equal to those without, and not deferred
where a program could notice."""
import sys
import threading

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.core import aside, sweep
from tensorgrad.core.plan import plans_of
from tensorgrad.core.step import PlainStep
from tensorgrad.ops.convolution import Convolution
from tensorgrad.runtime import thread_pool
from tensorgrad.runtime import threads as thread_counts

pytestmark = cpu_only


@pytest.fixture
def begun(monkeypatch, threads):
    """A list of the jobs that are put aside, in a process without compiled kernels."""
    found = []
    monkeypatch.setattr(sweep, "lanes", None)
    monkeypatch.setattr(aside, "WORTH", 1)
    monkeypatch.setattr(thread_pool, "can_start", lambda: True)
    monkeypatch.setattr(aside, "aside", lambda job: found.append(job) or thread_pool.aside(job))
    return found


def net():
    tg.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Tanh(), nn.ConvTranspose2d(3, 2, 2, stride=2), nn.Tanh(), nn.Conv2d(2, 2, 3, groups=2, bias=False))


def gradients(model, x, times=1):
    model.zero_grad()
    for _ in range(times):
        model(x).square().sum().backward()
    return [p.grad.numpy().copy() for p in model.parameters()]


def alone(monkeypatch, *args, **kwargs):
    """The gradients with nothing put aside."""
    with monkeypatch.context() as patch:
        patch.setattr(aside, "WORTH", sys.maxsize)
        return gradients(*args, **kwargs)


@pytest.mark.parametrize("times", [1, 3])
def test_gradients_are_those_of_one_thread(monkeypatch, begun, times):
    model, x = net(), tg.randn(2, 2, 5, 5)
    expected = alone(monkeypatch, model, x, times)
    assert not begun
    for ours, theirs in zip(gradients(model, x, times), expected, strict=True):
        assert np.array_equal(ours, theirs)
    assert len(begun) == 3 * times


def step_of(loss, name):
    """The latest step of a name before a loss."""
    node = loss.grad_fn
    while type(node).__name__ != name:
        node = node.next_functions[0][0]
    return node


def test_another_thread_computes_them_while_backward_goes_on(monkeypatch, begun):
    began, went_on, ran_on = threading.Event(), threading.Event(), []

    def slow(xp, *args, **kwargs):
        ran_on.append(threading.get_ident())
        began.set()
        assert went_on.wait(10)
        return formula(xp, *args, **kwargs)

    def pull(node, *args):
        assert began.wait(10)
        went_on.set()
        return PlainStep.pull(node, *args)
    conv = nn.Conv2d(2, 3, 3)
    loss = conv(tg.exp(tg.randn(1, 2, 4, 4, requires_grad=True))).sum()
    plan = step_of(loss, "ConvolutionBackward0").plan
    formula = next(f for i, f, _ in plan.steps if i == 1)
    monkeypatch.setattr(plan, "steps", tuple((i, slow if i == 1 else f, w) for i, f, w in plan.steps))
    monkeypatch.setattr(type(step_of(loss, "ExpBackward0")), "pull", pull)
    loss.backward()
    assert ran_on != [threading.get_ident()] and conv.weight.grad is not None


def test_hooks_see_every_gradient_in_its_place(begun):
    model, x, seen = net(), tg.randn(2, 2, 5, 5), []
    handle = model[4].weight.register_hook(lambda g: seen.append("hook") or g * 2)
    model[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
    first = gradients(model, x)
    assert not begun and seen[0] == "hook" and len(seen) == 2
    handle.remove()
    assert np.allclose(gradients(model, x)[4] * 2, first[4])


def test_a_parameter_that_is_reached_twice_is_summed_up(begun):
    conv, x = nn.Conv2d(2, 2, 3, padding=1, bias=False), tg.randn(1, 2, 4, 4)
    conv(conv(x)).sum().backward()
    assert not begun
    total = sum(tg.autograd.grad((conv(y) if last else tg.conv2d(conv(x), conv.weight.detach(), padding=1)).sum(), conv.weight)[0]
                for last, y in ((True, conv(x).detach()), (False, None)))
    assert np.allclose(conv.weight.grad.numpy(), total.numpy(), atol=1e-5)


@pytest.mark.parametrize("how", ["grad", "inputs", "create_graph", "anomaly", "saved", "small", "one thread"])
def test_nothing_is_put_aside_where_somebody_could_tell(monkeypatch, begun, how):
    model, x = net(), tg.randn(2, 2, 5, 5)
    weights = list(model.parameters())
    if how == "saved":
        with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            loss = model(x).square().sum()
    else:
        loss = model(x).square().sum()
    if how == "grad":
        tg.autograd.grad(loss, weights)
    elif how == "inputs":
        loss.backward(inputs=weights)
    elif how == "create_graph":
        tg.autograd.grad(sum(g.sum() for g in tg.autograd.grad(loss, weights, create_graph=True)), weights, allow_unused=True)
    elif how == "anomaly":
        with pytest.warns(UserWarning, match="Anomaly"), tg.autograd.detect_anomaly():
            loss.backward()
    else:
        if how == "small":
            monkeypatch.setattr(aside, "WORTH", 1 << 20)
        if how == "one thread":
            tg.set_num_threads(1)
        loss.backward()
    assert not begun


def test_an_error_is_raised_and_leaves_nothing_behind(monkeypatch, begun):
    model, x = net(), tg.randn(2, 2, 5, 5)
    count = thread_counts.get_num_threads()

    def fails(xp, *args, **kwargs):
        raise ArithmeticError("no gradient today")
    loss = model(x).square().sum()
    plan = step_of(loss, "ConvolutionBackward0").plan
    with monkeypatch.context() as patch:
        patch.setattr(plan, "steps", tuple((i, fails if i == 1 else f, w) for i, f, w in plan.steps))
        with pytest.raises(ArithmeticError, match="no gradient today"):
            loss.backward()
    assert thread_counts.get_num_threads() == count and not thread_counts.single_blas.blocks
    assert all(np.isfinite(g).all() for g in gradients(model, x))


def test_a_graph_that_is_kept_gives_the_same_again(begun):
    model, x = net(), tg.randn(2, 2, 5, 5)
    loss = model(x).square().sum()
    loss.backward(retain_graph=True)
    once = [p.grad.numpy().copy() for p in model.parameters()]
    loss.backward()
    assert all(np.allclose(p.grad.numpy(), 2 * g) for p, g in zip(model.parameters(), once, strict=True)) and len(begun) == 6
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_backward_in_several_threads_at_once(begun):
    x = tg.randn(2, 2, 5, 5)
    expected, found = gradients(net(), x), {}
    models = [net() for _ in range(4)]

    def run(i):
        for _ in range(5):
            found[i] = gradients(models[i], x)
    runners = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    assert all(np.array_equal(a, b) for i in range(4) for a, b in zip(found[i], expected, strict=True))
    assert not thread_counts.single_blas.blocks


def test_what_waits_for_a_thread_is_bounded(monkeypatch, begun):
    """If all threads are busy, this one computes what has waited longest."""
    monkeypatch.setattr(thread_pool.Work, "offer", lambda self, helpers: None)
    monkeypatch.setattr(aside, "WAITING", 1)
    deep = nn.Sequential(*(nn.Conv2d(2, 2, 3, padding=1, bias=False) for _ in range(8)))
    most, begin = [], aside.Aside.begin
    monkeypatch.setattr(aside.Aside, "begin", lambda self, *args: (begin(self, *args), most.append(sum(bool(later.work.parts) for later in self.begun))))
    deep(tg.randn(1, 2, 4, 4)).sum().backward()
    assert len(begun) == 8 and max(most) == thread_counts.get_num_threads()
    assert all(p.grad is not None for p in deep.parameters())


def test_bfloat16_is_summed_in_its_own_way(begun):
    model = net().to(tg.bfloat16)
    model(tg.randn(2, 2, 5, 5, dtype=tg.bfloat16)).sum().backward()
    assert not begun and all(p.grad.dtype == tg.bfloat16 for p in model.parameters())


def test_ops_say_what_may_be_put_aside():
    assert Convolution.aside == "w" and issubclass(plans_of(Convolution)[7].node_type, aside.AsideStep)
