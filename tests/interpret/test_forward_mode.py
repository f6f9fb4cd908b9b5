"""Forward mode: dual tensors, func.jvp and what is built on it, and how they compose with backward."""
import gc
import warnings
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from support import Programs, cpu_only

import tensorgrad
from tensorgrad.autograd import forward_ad, grad
from tensorgrad.core.mode import mode
from tests.ops.test_op_table import (
    agrees,
    cases,
    dot,
    host,
    is_array,
    is_complex_function,
    is_wavy,
    learnt,
    loss,
    on_test_device,
    run,
    slope,
    some_direction,
    unequal,
)


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    """PyTorch compiles scripts when it first sees a dual tensor, for a few formulas of gradients' tangents: that takes
    long, and is not needed here.
    """
    if find_spec("torch"):
        import_module("torch")
    monkeypatch.setenv("PYTORCH_JIT", "0")


pytestmark = pytest.mark.usefixtures("device")
program = Programs()


# ── every op of the table ─────────────────────────────────────────────────────────────────────────────────────────────


def pushed(op, sample, arrays, tangents):
    """The results of one application along tangents ({position: array}), and their tangents."""
    inputs = [on_test_device(a) if is_array(a) else a for a in arrays]
    with forward_ad.dual_level():
        for i, t in tangents.items():
            inputs[i] = forward_ad.make_dual(inputs[i], on_test_device(t))
        pairs = [forward_ad.unpack_dual(out) for out in run(op, sample, inputs)]
    return [(host(value), None if t is None else host(t)) for value, t in pairs]


@cases("gradient", where=learnt)
def test_push_against_central_differences(op, sample):
    arrays, rng = sample.draw(), np.random.default_rng(3)
    tangents = {i: np.asarray(some_direction(arrays[i], rng)) for i in learnt(op, sample)}
    pairs = [(value, t) for value, t in pushed(op, sample, arrays, tangents) if is_wavy(value)]
    upstream = [unequal(value) for value, _ in pairs]
    found = sum(dot(g, t) for g, (_, t) in zip(upstream, pairs, strict=True) if t is not None)

    def moved(by):
        return loss(op, sample, [np.asarray(a + by[0] * tangents[i]) if i in tangents else a
                                 for i, a in enumerate(arrays)], upstream)
    agrees(found, slope(moved, [np.zeros(())], 0, np.ones(())), "push")
    assert all(t is None or t.shape == value.shape and t.dtype == value.dtype for value, t in pairs)


@cases("gradient", "complex", where=is_complex_function)
def test_push_is_the_adjoint_of_pull_for_complex_numbers(op, sample):
    arrays, rng = sample.draw("complex128"), np.random.default_rng(3)
    tangents = {i: np.asarray(some_direction(arrays[i], rng)) for i in learnt(op, sample)}
    inputs = [on_test_device(a) if is_array(a) else a for a in arrays]
    for i in tangents:
        inputs[i].requires_grad_()
    outputs = [out for out in run(op, sample, inputs) if out.requires_grad]
    upstream = [unequal(host(out)) for out in outputs]
    pulled = (grad(outputs, [inputs[i] for i in tangents], list(map(on_test_device, upstream)), allow_unused=True)
              if outputs else [])
    expected = sum(dot(host(g), t) for g, t in zip(pulled, tangents.values(), strict=False) if g is not None)
    wavy = [t for value, t in pushed(op, sample, arrays, tangents) if t is not None]
    agrees(sum(dot(g, t) for g, t in zip(upstream, wavy, strict=False)), expected, "push")


# ── dual tensors ──────────────────────────────────────────────────────────────────────────────────────────────────────


def xv(torch, **options):
    return torch.tensor([1., 2., 0.5], **options), torch.tensor([0.5, -1., 3.])


def duals(torch, compute, **options):
    """Return the unpacked results of `compute(dual, torch.autograd.forward_ad)`."""
    ad = torch.autograd.forward_ad
    x, v = xv(torch, **options)
    with ad.dual_level():
        result = compute(ad.make_dual(x, v), ad)
        return [ad.unpack_dual(r) for r in (result if isinstance(result, (tuple, list)) else [result])]


@program
def functions_of_a_dual(torch):
    return duals(torch, lambda d, _: (d * 2, d.exp().sum(), d[1:], d.flip(0), torch.cat([d, d * d]), d.max(0).values,
                                      d.sort().values, d.clone()))


@program
def what_has_no_tangent(torch):
    return duals(torch, lambda d, _: (d > 1, d.argmax(), torch.zeros_like(d), d.detach(), d.data, torch.ones(2),
                                      d.round(), d.floor()))


@program
def flags_of_a_dual(torch):
    ad = torch.autograd.forward_ad
    x, v = xv(torch)
    with ad.dual_level():
        d = ad.make_dual(x, v)
        y = d * 2
        inside = [d.requires_grad, d.grad_fn, d.is_leaf, y.requires_grad, y.grad_fn, y.is_leaf]
    return inside, y.requires_grad, ad.unpack_dual(y), (y * 2).requires_grad, d.data_ptr() == x.data_ptr()


@cpu_only
def test_a_dual_is_printed_with_its_tangent():
    x, v = xv(tensorgrad)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x[:2], v[:2])
        assert repr(d) == "tensor([1., 2.], tangent=tensor([ 0.5000, -1.0000]))" and d.numpy().tolist() == [1, 2]
    assert repr(d) == "tensor([1., 2.])"


@program
def a_dual_of_a_leaf(torch):
    ad = torch.autograd.forward_ad
    x, v = xv(torch, requires_grad=True)
    with ad.dual_level():
        d = ad.make_dual(x, v)
        y = (d ** 3).sum()
        value, t = ad.unpack_dual(y)
        g, = torch.autograd.grad(t, x, retain_graph=True)
        h, = torch.autograd.grad(value, x, retain_graph=True)
        y.backward()
        return value, t, g, h, x.grad.clone(), d.requires_grad, d.is_leaf, t.requires_grad


@program
def tangents_of_gradients(torch):
    ad = torch.autograd.forward_ad
    x, v = xv(torch, requires_grad=True)
    with ad.dual_level():
        d = ad.make_dual(x, v)
        y = (d.sin() * d.sum()).sum()
        once, = torch.autograd.grad(y, d, create_graph=True)
        twice, = torch.autograd.grad(once.sum(), d)
        return ad.unpack_dual(once), ad.unpack_dual(twice)


@program
def a_tangent_that_requires_grad(torch):
    ad = torch.autograd.forward_ad
    x, v = xv(torch)
    v.requires_grad_()
    with ad.dual_level():
        y = torch.tanh(ad.make_dual(x, v)) * 3
        flags = y.requires_grad, ad.unpack_dual(y).tangent.requires_grad
        return flags, torch.autograd.grad(ad.unpack_dual(y).tangent.sum(), v)


@program
def no_grad(torch):
    def compute(d, ad):
        with torch.no_grad():
            y = d.exp() * d
            z = y.view(3, 1).clone()
            z.mul_(2)
            return y, z, y.requires_grad
    found = duals(torch, lambda d, ad: compute(d, ad)[:2])
    return (found, duals(torch, lambda d, ad: compute(d, ad)[:2], requires_grad=True),
            duals(torch, lambda d, ad: d.sin()))


@program
def a_level_within_no_grad(torch):
    with torch.no_grad():
        return duals(torch, lambda d, _: (d.sin().sum(), torch.softmax(d, 0)))


@program
def inference_mode(torch):
    def compute(d, ad):
        with torch.inference_mode():
            return [d * 2]
    return [pair.tangent for pair in duals(torch, compute)]


@program
def leaves_written_to_in_no_grad(torch):
    ad = torch.autograd.forward_ad
    x, v = xv(torch)
    w, u = torch.ones(3, requires_grad=True), torch.zeros(3)
    with ad.dual_level(), torch.no_grad():
        w.add_(ad.make_dual(x, v))
        u.copy_(w)
        u[0] = 0.
        w2 = ad.unpack_dual(w).tangent.clone()
        w.copy_(torch.ones(3))
        return (w.requires_grad, w.is_leaf, w2, ad.unpack_dual(w).tangent if ad.unpack_dual(w).tangent is not None
                else torch.zeros(3), ad.unpack_dual(u))


@program
def forward_mode_turned_off(torch):
    def compute(d, ad):
        with ad._set_fwd_grad_enabled(False):
            return d * 2, d.exp()
    return [pair.tangent for pair in duals(torch, compute)], torch.autograd.forward_ad._is_fwd_grad_enabled()


@program
def writes_in_place(torch):
    def compute(d, ad):
        plain, parts, scaled, cleared = torch.zeros(3), torch.zeros(2, 3), d.clone(), d * 1
        plain.copy_(d)
        parts[0] = d
        parts[:, 1:].mul_(d[1:])
        parts += d
        view = scaled.view(3, 1)
        view.mul_(2)
        scaled[0] = 7.
        cleared.zero_()
        total = torch.ones(3)
        total.addcmul_(d, d, value=0.5)
        return plain, parts, scaled, view, cleared, total
    return duals(torch, compute)


@program
def hidden_memory_goes_stale_without_harm(torch):
    """Saved values may be overwritten after a step, because its tangent is computed already."""
    def compute(d, ad):
        w = torch.tensor([3., 4., 5.])
        y = d * w
        w.zero_()
        return y, (d.exp() + 0).mul_(d)
    return duals(torch, compute)


@program
def a_dual_asked_to_require_grad(torch):
    ad = torch.autograd.forward_ad
    x, v = xv(torch)
    with ad.dual_level():
        y = ad.make_dual(x, v) * 2
        y.requires_grad_()
        z = y ** 2
        return y.requires_grad, y.is_leaf, ad.unpack_dual(z), torch.autograd.grad(z.sum(), y)


@program
def parameters_as_duals(torch):
    torch.manual_seed(3)
    ad, model = torch.autograd.forward_ad, torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(),
                                                               torch.nn.Linear(4, 2))
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    named = {name: p for name, p in model.named_parameters()}
    with ad.dual_level():
        for name, p in named.items():
            place, _, last = name.rpartition(".")
            module = model.get_submodule(place)
            delattr(module, last)
            setattr(module, last, ad.make_dual(p, torch.full_like(p, 0.3) + p.detach().cumsum(-1)))
        out = model(x)
        value, t = ad.unpack_dual(out)
        gradients = torch.autograd.grad(t.sum(), list(named.values()), allow_unused=True)
    return value, t, [g for g in gradients if g is not None]


@program
def through_functional_call(torch):
    torch.manual_seed(3)
    ad, model = torch.autograd.forward_ad, torch.nn.Sequential(torch.nn.Conv1d(2, 3, 2), torch.nn.BatchNorm1d(3),
                                                               torch.nn.GELU()).double()
    x = torch.linspace(-1, 1, 16, dtype=torch.float64).reshape(2, 2, 4)
    with ad.dual_level():
        moving = {name: ad.make_dual(p, p.detach() * 0.5 + 1) for name, p in model.named_parameters()}
        return (ad.unpack_dual(torch.func.functional_call(model, moving, x)),
                ad.unpack_dual(model[1].running_mean).tangent is None)


def error(torch, call):
    try:
        call()
    except Exception as e:
        return type(e).__name__, str(e).split("\n")[0]
    return "no error"


@program
def errors(torch):
    ad = torch.autograd.forward_ad
    x, v = xv(torch)
    found = [error(torch, lambda: ad.make_dual(x, v)), error(torch, ad.exit_dual_level), ad.unpack_dual(x)]
    with ad.dual_level():
        d = ad.make_dual(x, v)
        found += [error(torch, call) for call in (
            lambda: ad.enter_dual_level(), lambda: ad.make_dual(x, v[:2]), lambda: ad.make_dual(x, v[:1]),
            lambda: ad.make_dual(x.long(), v),
            lambda: ad.make_dual(x, v.long()), lambda: ad.make_dual(2., v), lambda: ad.make_dual(d, v),
            lambda: ad.make_dual(x, d),
            lambda: ad.make_dual(x, v, level=3), lambda: ad.unpack_dual(d, level=3), lambda: (d * 2).sum().backward(),
            lambda: torch.add(d, 1, out=torch.empty(3)), lambda: ad.exit_dual_level(level=4))]
    return found


# ── Functions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def function(torch, **rules):
    return type("F", (torch.autograd.Function,), {name: staticmethod(rule) for name, rule in rules.items()})


def twofold(ctx, x, y, n):
    ctx.save_for_forward(x, y)
    ctx.save_for_backward(x, y)
    return x * y, x * n


def twofold_back(ctx, g, h):
    x, y = ctx.saved_tensors
    return g * y + h, g * x, None


def twofold_forth(ctx, a, b, n):
    x, y = ctx.saved_tensors
    return a * y + x * b, a * 3.


@program
def functions_with_a_jvp(torch):
    F = function(torch, forward=twofold, backward=twofold_back, jvp=twofold_forth)
    other = torch.tensor([3., 1., 2.], requires_grad=True)

    def compute(d, ad):
        first, second = F.apply(d, other, 3)
        g, = torch.autograd.grad(first.sum(), other)
        return first, second, g
    return duals(torch, compute), duals(torch, lambda d, ad: F.apply(d, d * d, 3))

@program
def functions_in_func(torch):
    G = function(torch, forward=lambda x: x ** 3,
                 setup_context=lambda ctx, inputs, output: ctx.save_for_forward(inputs[0]),
                 jvp=lambda ctx, t: 3 * ctx.saved_tensors[0] ** 2 * t)
    x, v = xv(torch)
    return torch.func.jvp(G.apply, (x,), (v,))


@program
def functions_that_see_their_tangents(torch):
    seen = []

    def forward(ctx, x, y, n):
        seen.append(ctx.needs_input_grad)
        ctx.set_materialize_grads(n)
        return x + y

    def jvp(ctx, a, b, n):
        seen.append([a, b, n])
        return a
    F = function(torch, forward=forward, jvp=jvp)
    return duals(torch, lambda d, _: (F.apply(d, d.detach(), True), F.apply(d, d.detach(), False))), seen


@program
def functions_in_place(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)
    F = function(torch, forward=forward, jvp=lambda ctx, t: t.mul_(2))
    return duals(torch, lambda d, _: F.apply(d * 1))


@program
def functions_without_a_jvp(torch):
    F = function(torch, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2)
    return duals(torch, lambda d, _: F.apply(d))


@program
def functions_with_too_many_tangents(torch):
    F = function(torch, forward=lambda ctx, x: x * 2, jvp=lambda ctx, t: (t, t))
    return duals(torch, lambda d, _: F.apply(d))


@program
def functions_with_tangents_of_another_size(torch):
    F = function(torch, forward=lambda ctx, x: x * 2, jvp=lambda ctx, t: t[:1])
    return duals(torch, lambda d, _: F.apply(d))


# ── func ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def f(torch):
    return lambda x: torch.sin(x) * x.sum()


@program
def jvp(torch):
    func, (x, v) = torch.func, xv(torch)
    return (func.jvp(f(torch), (x,), (v,)), func.jvp(lambda a, b: (a * b, a), (x, v), (v, x)),
            func.jvp(lambda y: (f(torch)(y), y * 2), (x,), (v,), has_aux=True),
            func.jvp(lambda t: {"out": t["a"] * t["b"][0]}, ({"a": x, "b": [v]},), ({"a": v, "b": [x]},)),
            func.jvp(lambda y: x * 2, (x,), (v,)),
            func.jvp(torch.no_grad()(f(torch)), (x,), (v,)))


@program
def compositions(torch):
    func, (x, v), F = torch.func, xv(torch, dtype=torch.float64), f(torch)
    v = v.double()
    return (func.jvp(lambda y: func.jvp(F, (y,), (v,))[1], (x,), (v,)),
            func.jvp(lambda y: func.jvp(lambda z: z * y * y.exp(), (y,), (y * y,))[1], (x,), (v,)),
            func.jvp(func.grad(lambda y: (F(y) ** 3).sum()), (x,), (v,)),
            func.grad(lambda y: func.jvp(F, (y,), (v,))[1].sum())(x),
            func.grad(lambda t: func.jvp(F, (x,), (t * t,))[1].sum())(v),
            func.jvp(lambda y: func.vjp(F, y)[1](v)[0], (x,), (v,)),
            func.jacfwd(func.jacfwd(F))(x), func.jacrev(func.jacfwd(F))(x), func.jacfwd(func.jacrev(F))(x),
            func.jvp(lambda y: func.vmap(func.grad(lambda z: (z ** 2 * y).sum()))(y.repeat(2, 1)), (x,), (v,)),
            func.jvp(lambda y: func.grad(lambda z: func.jvp(F, (z,), (v,))[1].sum())(y), (x,), (v,)),
            func.jacfwd(func.hessian(lambda y: (y.sin() * y.prod()).sum()))(x))


@program
def jacobians(torch):
    func, (x, v) = torch.func, xv(torch)
    m = torch.arange(6.).reshape(2, 3)
    return (func.jacfwd(f(torch))(x), func.jacfwd(lambda a, b: torch.softmax(a @ b, 0).cumsum(0), argnums=(0, 1))(m, x),
            func.jacfwd(lambda y: (y * v, y.sum()))(x),
            func.jacfwd(lambda y: (f(torch)(y), y * 2), has_aux=True)(x),
            func.jacfwd(lambda p: p["w"] @ x + p["b"])({"w": m, "b": v[:2]}),
            func.vmap(func.jacfwd(f(torch)))(torch.stack([x, v])), func.jacfwd(lambda a, b: a * b, argnums=1)(x, v))


@program
def hessians(torch):
    func, x, v = torch.func, *(t.double() for t in xv(torch))
    return (func.hessian(lambda y: (f(torch)(y) ** 2).sum())(x),
            func.hessian(lambda a, b: (a * b).prod() + (a @ b) ** 2, argnums=(0, 1))(x, v),
            func.vmap(func.hessian(lambda y: f(torch)(y).logsumexp(0)))(torch.stack([x, v])))


@program
def modes_around(torch):
    func, (x, v), found = torch.func, xv(torch), []
    for around in (torch.no_grad(), torch.inference_mode()):
        with around:
            found += [func.jvp(f(torch), (x,), (v,)), func.jacfwd(f(torch))(x)]
    with torch.no_grad():
        return found, func.hessian(lambda y: (f(torch)(y) ** 2).sum())(x)


@program
def parameters_from_outside(torch):
    func, (x, v) = torch.func, xv(torch)
    w = torch.tensor([1., 1., 2.], requires_grad=True)
    out, t = func.jvp(lambda y: f(torch)(y) * w, (x,), (v,))
    other = func.jvp(f(torch), (w,), (v,))
    plain = func.jvp(func.grad(lambda y: f(torch)(y).sum()), (x,), (v,))
    return ([z.requires_grad for z in (out, t, *other, *plain)], torch.autograd.grad(t.sum(), w),
            torch.autograd.grad(sum(z.sum() for z in other), w))


def written(y):
    z = y.clone()
    z[0] = z[1] * 2
    z.mul_(y)
    u = z.exp()
    z.zero_()
    return u


@program
def writes_in_place_in_a_function(torch):
    func, (x, v) = torch.func, xv(torch)
    rows = torch.stack([x, v]), torch.stack([v, x])
    return (func.jvp(written, (x,), (v,)), func.jacfwd(written)(x),
            func.vmap(lambda a, b: func.jvp(written, (a,), (b,)))(*rows))


@program
def linearize(torch):
    func, (x, v) = torch.func, xv(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out, push = func.linearize(f(torch), x)
        pair, push_pair = func.linearize(lambda d, y: (d["a"] * y, d["a"].sum()), {"a": x}, v)
        return out, push(v), push(x), func.vmap(push)(torch.stack([x, v])), pair, push_pair({"a": v}, x)


@pytest.mark.parametrize("arguments", [(torch_v,) for torch_v in ("short", "double", "two")])
def test_tangents_that_linearize_refuses(arguments):
    x, v = xv(tensorgrad)
    _, push = tensorgrad.func.linearize(f(tensorgrad), x)
    given, message = {"short": ((v[:2],),
                                r"tangent:0 with shape torch.Size\(\[2\]\) in flattened pytree doesn't match the shape "
                                r"torch.Size\(\[3\]\)"),
                      "double": ((v.double(),),
                                 "tangent:0 with dtype torch.float64 in flattened pytree doesn't match the dtype "
                                 "torch.float32"),
                      "two": ((v, v), "to have the same argspec as the primals")}[arguments[0]]
    with pytest.raises(RuntimeError, match=message):
        push(*given)


def test_what_linearize_gives_can_be_differentiated():
    w, v = (t.double() for t in xv(tensorgrad))
    w.requires_grad_(), v.requires_grad_()
    out, push = tensorgrad.func.linearize(f(tensorgrad), w)
    expected, t = tensorgrad.func.jvp(f(tensorgrad), (w,), (v,))
    for a, b in ((out, expected), (push(v), t)):
        assert tensorgrad.allclose(a, b)
        inputs = [w] if a is out else [w, v]
        found, known = grad(a.sum(), inputs, retain_graph=True), grad(b.sum(), inputs, retain_graph=True)
        assert all(tensorgrad.allclose(g, h) for g, h in zip(found, known, strict=True))


def test_linearize_composes():
    """PyTorch nests it in no other transform."""
    func, (x, v), F = tensorgrad.func, (t.double() for t in xv(tensorgrad)), f(tensorgrad)
    rows, ways = tensorgrad.stack([x, v]), tensorgrad.stack([v, x])

    def along(y):
        return func.jvp(F, (y,), (y * y,))[1]
    for found, expected in (
            (func.jvp(lambda y: func.linearize(F, y)[1](y * y), (x,), (v,))[1], func.jvp(along, (x,), (v,))[1]),
            (func.linearize(along, x)[1](v), func.jvp(along, (x,), (v,))[1]),
            (func.grad(lambda y: func.linearize(F, y)[1](y * y).sum())(x), func.grad(lambda y: along(y).sum())(x)),
            (func.vmap(lambda y, u: func.linearize(F, y)[1](u))(rows, ways),
             func.vmap(lambda y, u: func.jvp(F, (y,), (u,))[1])(rows, ways))):
        assert tensorgrad.allclose(found, expected)


def test_chunks_of_columns():
    x, _ = xv(tensorgrad)
    whole = tensorgrad.func.jacfwd(f(tensorgrad))(x)
    for size in (1, 2, 5):
        assert tensorgrad.allclose(tensorgrad.func.jacfwd(f(tensorgrad), chunk_size=size)(x), whole)


@program
def errors_of_func(torch):
    func, (x, v), F = torch.func, xv(torch), f(torch)
    return [error(torch, call) for call in (
        lambda: func.jvp(F, x, v), lambda: func.jvp(F, (x,), (v, v)), lambda: func.jvp(F, (x,), (v[:2],)),
        lambda: func.jvp(F, (3.,), (2.,)),
        lambda: func.jvp(F, (), ()), lambda: func.jvp(lambda y: None, (x,), (v,)),
        lambda: func.jvp(lambda y: 3, (x,), (v,)),
        lambda: func.jvp(lambda y: x * 2, (x,), (v,), strict=True), lambda: func.jvp(F, (x.long(),), (v,)),
        lambda: func.jvp(F, (x,), (v,), has_aux=True),
        lambda: func.jacfwd(F, argnums=3)(x), lambda: func.jacfwd(F)(x + 0j), lambda: func.jacfwd(lambda y: y * 1j)(x))]


test_programs = program.test(rtol=2e-5, atol=1e-6)


# ── what is left afterwards ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_level_leaves_nothing_behind():
    x, v = xv(tensorgrad)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, v)
        y = (d * 2).view(3, 1)
        assert mode.tangents.levels and mode.tangents.see is not None
    assert (not mode.tangents.levels and mode.tangents.see is None and mode.tangents.passing == frozenset()
            and not mode.tangents.keep)
    assert d.node is None and y.node is None and (y + d).node is None


def test_a_failing_function_leaves_the_modes_as_they_were():
    x, v = xv(tensorgrad)

    def fails(y):
        raise ZeroDivisionError(y.sum().item())
    with pytest.raises(ZeroDivisionError):
        tensorgrad.func.jvp(lambda y: tensorgrad.func.jvp(fails, (y,), (y,))[1], (x,), (v,))
    assert not mode.tangents.levels and mode.tangents.see is None and mode.grad and mode.tangents.on
    assert (x.requires_grad_() * 2).requires_grad


def test_tangents_keep_no_tape():
    """A long computation with duals leads to no longer chain of steps, forward or among the tangents."""
    x, v = xv(tensorgrad)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, v)
        for _ in range(100):
            d = tensorgrad.softmax(d.sin() + d.exp().cumsum(0), 0)
        assert d.node.edges == () and forward_ad.unpack_dual(d).tangent.node is None


def test_no_cycles_are_left():
    x, v = xv(tensorgrad)
    tensorgrad.func.hessian(lambda y: f(tensorgrad)(y).sum())(x)
    gc.collect()
    gc.disable()
    try:
        tensorgrad.func.jvp(f(tensorgrad), (x,), (v,))
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_results_written_to_a_dual():
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="add_out that does not support it"):
        tensorgrad.add(tensorgrad.ones(2), 1, out=forward_ad.make_dual(tensorgrad.ones(2), tensorgrad.ones(2)))
