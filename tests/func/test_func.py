"""Derivatives of functions: grad, vjp, jacrev and what goes with them, beside PyTorch."""
import warnings
from collections import OrderedDict, namedtuple
from functools import wraps

import numpy as np
import pytest
from side_by_side import attempt
from support import DEVICE, Programs, cpu_only

import tensorgrad
from tensorgrad import func
from tensorgrad.utils import _pytree as pytree

program = Programs()


def unwarned(function):
    """A program for which PyTorch warns about its speed and its prototype status."""
    @wraps(function)
    def run(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(torch)
    return run


Pair = namedtuple("Pair", "one two")


def table(torch, *shape):
    n = int(np.prod(shape))
    return (torch.arange(n).float() * 0.37 % 1.9 - 0.8).reshape(*shape)


# ── beside PyTorch ────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def gradients(torch):
    F, x, y = torch.func, table(torch, 3), table(torch, 3) * 2
    f = lambda a, b: (a.sin() * b).sum()  # noqa: E731
    return (F.grad(f)(x, y), F.grad(f, 1)(x, y), F.grad(f, (0, -1))(x, y), F.grad(f, (1,))(x, y),
            F.grad_and_value(f)(x, y),
            F.grad(lambda a: (a.sum(), {"more": a * 2}), has_aux=True)(x),
            F.grad_and_value(lambda a: (a.sum(), a * 2), has_aux=True)(x),
            F.grad(F.grad(lambda a: a.sin() * a))(x[0]), F.grad(lambda a, *, n: (a ** n).sum())(x, n=3),
            F.grad(lambda a: torch.zeros(()))(x),
            F.grad(lambda a: (a.detach() * a).sum())(x),
            F.grad(lambda d: (d["w"][0] * d["b"]).sum())({"w": (x,), "b": y}))


@program
def gradients_of_complex_functions(torch):
    z = torch.complex(table(torch, 3), table(torch, 3) * 2)
    return torch.func.grad(lambda z: (z * z.conj()).real.sum())(z), torch.func.vjp(lambda z: z ** 2, z)[1](z)


@program
def modes_around_and_inside(torch):
    F, x = torch.func, torch.tensor([2., 3.])

    def inside(x):
        with torch.no_grad():
            fixed = x ** 2
        return (x * fixed).sum()
    with torch.no_grad():
        out = (F.grad(lambda x: (x ** 2).sum())(x), F.grad(inside)(x), F.vjp(torch.sin, x)[1](x)[0],
               F.jacrev(torch.sin)(x))
    with torch.inference_mode():
        made = torch.tensor([1., 2.])
        out += (F.grad(lambda x: (x ** 3).sum())(made), F.grad(lambda x: (x ** 3).sum())(x))
    return out


@program
def histories(torch):
    F, x = torch.func, torch.tensor([2., 3.])
    w = torch.tensor([1., 4.], requires_grad=True)
    with torch.no_grad():
        quiet = F.grad(lambda v: (v * w).sum())(x)
    results = (F.grad(lambda v: (v * v).sum())(x), F.grad(lambda v: (v * v * w).sum())(x),
               F.grad(lambda v: (v * v).sum() + w.sum())(x), quiet,
               F.grad(lambda v: (v ** 3).sum())(w), F.vjp(lambda v: v * w, x)[0], F.vjp(torch.sin, x)[0],
               F.jacrev(lambda v: v * w)(x),
               F.grad(lambda v: (v.sum(), v * 2), has_aux=True)(x)[1], F.grad_and_value(lambda v: (v * w).sum())(x)[1],
               F.vmap(lambda v: v * w.sum())(x))
    found = torch.autograd.grad(sum(r.sum() for r in results if r.requires_grad), w)
    return [r.requires_grad for r in results], found, x.grad, w.grad


@program
def products_with_jacobians(torch):
    F, x = torch.func, table(torch, 4)
    out, pull = F.vjp(lambda a, b: {"s": a.sin() * b, "t": (a + b).sum()}, x, x * 2)
    both, more, aux = F.vjp(lambda a: (a ** 2, a.sum()), x, has_aux=True)[0:3]
    unused = F.vjp(lambda a, b: a * 1, x, x)[1](x)
    return (out, pull({"s": x, "t": torch.tensor(2.)}), both, more(x), aux, unused,
            F.vmap(lambda v: F.vjp(torch.exp, x)[1](v)[0])(torch.eye(4)),
            F.grad(lambda v: F.vjp(torch.exp, x)[1](v)[0].pow(2).sum())(x))


@program
def jacobians(torch):
    F, x, y = torch.func, table(torch, 3), table(torch, 2, 2)
    f = lambda a, b: (a.outer(b.sum(0)), {"k": b @ b})  # noqa: E731
    return (F.jacrev(torch.sin)(x), F.jacrev(f)(x, y), F.jacrev(f, 1)(x, y), F.jacrev(f, (0, 1))(x, y),
            F.jacrev(f, chunk_size=1)(x, y),
            F.jacrev(f, chunk_size=3)(x, y), F.jacrev(lambda a: (a ** 2, a.sum()), has_aux=True)(x),
            F.jacrev(lambda a: (a ** 3).sum())(x),
            F.jacrev(lambda d: d["a"] * d["b"])({"a": x, "b": x * 2}), F.jacrev(lambda a: a.sum(), 0)(x[0]),
            F.jacrev(lambda a, n: a * n)(x, 2))


@program
@unwarned
def one_in_the_other(torch):
    F, x = torch.func, table(torch, 4, 3)
    g = lambda v: (v.exp() * v.prod()).sum()  # noqa: E731
    return (F.jacrev(F.jacrev(g))(x[0]), F.jacrev(F.jacrev(F.jacrev(g)))(x[0]), F.vmap(F.jacrev(F.grad(g)))(x),
            F.jacrev(F.vmap(g))(x),
            F.jacrev(lambda v: F.vmap(lambda u: u.sin() * v.sum())(x))(x[0]),
            F.grad(lambda w: F.vmap(F.grad(lambda v: (v * w).sin().sum()))(x).pow(2).sum())(x[0]),
            F.vmap(lambda w: F.jacrev(lambda v: F.vmap(lambda u: u * v.sum() * w)(v))(w))(x),
            F.hessian(lambda w: F.vmap(lambda v: (v * w).cos())(x).sum())(x[0]),
            F.jacrev(F.grad(lambda w: F.vmap(lambda v: (v * w).sin().sum())(x).pow(2).sum()))(x[0]),
            F.vmap(F.hessian(g))(x))


@program
def gradients_of_a_batch_of_gradients(torch):
    x = table(torch, 4, 3).requires_grad_()
    y = torch.func.vmap(lambda v: v.sin().cumsum(0))(x)
    plain, = torch.autograd.grad(y.sum(1), x, torch.eye(4), is_grads_batched=True, retain_graph=True)
    g, = torch.autograd.grad(y.sum(1), x, torch.eye(4), is_grads_batched=True, create_graph=True)
    return (plain, torch.autograd.grad((g * g).sum(), x),
            torch.autograd.grad(x.relu().sum(), [x], torch.ones(2), is_grads_batched=True))


def networks(torch):
    nn = torch.nn
    torch.manual_seed(0)
    return {"mlp": (nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)), (6, 4)),
            "convolutions": (nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                           nn.Conv2d(4, 4, 3, groups=2), nn.Flatten()),
                             (3, 2, 6, 6)),
            "norms": (nn.Sequential(nn.Conv1d(2, 4, 2), nn.BatchNorm1d(4).eval(), nn.GroupNorm(2, 4), nn.LayerNorm(5),
                                    nn.Flatten()), (3, 2, 6)),
            "attention": (nn.TransformerEncoderLayer(4, 2, 8, dropout=0., batch_first=True), (3, 5, 4)),
            "lstm": (nn.LSTM(4, 3, batch_first=True), (3, 5, 4)),
            "words": (nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 2)), None)}


def per_sample(name):
    def gradients_per_sample(torch):
        """Of all parameters; of captured ones; of an ensemble."""
        F = torch.func
        module, shape = networks(torch)[name]
        x = torch.arange(9).reshape(3, 3) % 7 if shape is None else table(torch, *shape)
        params, buffers = {k: v.detach() for k, v in module.named_parameters()}, dict(module.named_buffers())

        def out(params, x):
            y = F.functional_call(module, (params, buffers), (x.unsqueeze(0),))
            return y[0] if isinstance(y, tuple) else y
        each = F.vmap(F.grad(lambda p, x: out(p, x).cos().sum()), in_dims=(None, 0))(params, x)
        last = list(params)[-1]
        second = F.jacrev(F.jacrev(lambda w: out(params | {last: w}, x[0]).sin().sum()))(params[last])
        if name == "lstm":
            return each, second
        F.vmap(lambda x: out(dict(module.named_parameters()), x))(x).sin().sum().backward()
        models = [networks(torch)[name][0] for _ in range(2)]
        stacked, rest = F.stack_module_state(models)
        many = F.vmap(lambda p, b: F.functional_call(models[0], (p, b), (x,)))(stacked, rest)
        many.cos().sum().backward()
        return each, second, [p.grad for p in module.parameters()], many, [p.grad for p in stacked.values()]
    gradients_per_sample.__name__ = f"gradients_per_sample_{name}"
    program(unwarned(gradients_per_sample))


for _name in ("mlp", "convolutions", "norms", "attention", "lstm", "words"):
    per_sample(_name)


@program
def modules_as_functions(torch):
    F, nn = torch.func, torch.nn
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    kept = F.replace_all_batch_norm_modules_(net)
    x = table(torch, 4, 3)
    params = {k: torch.ones_like(v) for k, v in net.named_parameters()}
    outs = [F.functional_call(net, params, x), F.functional_call(net, [params, {}], (x,)), kept is net,
            net[1].running_mean, net[1].track_running_stats]
    for wrong in (3, [params, params], [params, 3], {"nothing": x}):
        try:
            outs.append(F.functional_call(net, wrong, x, strict=True))
        except (ValueError, RuntimeError) as error:
            outs.append((type(error).__name__, str(error).split("\n")[0]))
    for models in ([], [nn.Linear(2, 2), nn.ReLU()], [nn.ReLU(), nn.ReLU().eval()],
                   [nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False)]):
        try:
            F.stack_module_state(models)
        except RuntimeError as error:
            outs.append(str(error))
    return outs


@program
def functions_with_rules_of_their_own(torch):
    class Rule(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, n):
            return x ** n

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.n = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return ctx.n * ctx.saved_tensors[0] ** (ctx.n - 1) * g, None

    class Own(Rule):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x, n):
            seen.append((info.batch_size, info.randomness, in_dims))
            return Rule.apply(x, n), in_dims[0]

    class Neither(Rule):
        generate_vmap_rule = False

    class Both(Own):
        generate_vmap_rule = True
    F, x, seen = torch.func, table(torch, 3, 2), []
    outs = [F.vmap(lambda v: Rule.apply(v, 3))(x), F.vmap(F.grad(lambda v: Rule.apply(v, 3).sum()))(x),
            F.vmap(lambda v: Own.apply(v, 2))(x),
            F.jacrev(lambda v: Rule.apply(v, 3))(x[0])]
    for wrong in (Neither, Both):
        try:
            F.vmap(wrong.apply, (0, None))(x, 2)
        except RuntimeError as error:
            outs.append(str(error))
    return outs, seen


@program
def rearranged(torch):
    x, r = torch.arange(24.).reshape(2, 3, 4), torch.func.rearrange
    return (r(x, "a b c -> c (a b)"), r(x, "a b (c d) -> a c b d", d=2), r(x, "... c -> c ..."),
            r(x, "a ... -> (...) a"), r(x, "a b c -> a 1 (b c) 1"), r([x, x], "n a b c -> b (n a) c"),
            r(x, " (p q) ... -> q ... p", p=1), r(torch.ones(1, 2), "1 a -> a"),
            r(x, "a b c -> a (b c) ()"))


@program
def higher_order_operators(torch):
    """A kernel for autograd is called, also inside of transforms; Functions want a setup_context in `functionalize`."""
    class Summed(torch._ops.HigherOrderOperator):
        def __init__(self):
            super().__init__("summed")

        def __call__(self, *args):
            return super().__call__(*args)

    class Sin(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sin()
    summed = Summed()
    summed.py_impl(torch._C.DispatchKey.AutogradCPU)(lambda x, dim: x.sum(dim))
    return summed(table(torch, 2, 3), 1), attempt(lambda: torch.func.functionalize(Sin.apply)(table(torch, 2)))


@program
def debug_and_functionalize(torch):
    seen, F, x = [], torch.func, table(torch, 2, 3)
    F.vmap(lambda row: F.vmap(lambda v: seen.extend([F.debug_unwrap(v).shape, F.debug_unwrap(v, recurse=False).shape])
                              or v)(row))(x)
    outs = (F.functionalize(lambda x: x.add_(1) * 2)(x), x,
            F.functionalize(lambda x: x.view(-1).mul_(2), remove="mutations_and_views")(x), x)
    return seen, outs, F.debug_unwrap(x) is x


REFUSED = """
    F.grad(torch.sin)(x)  F.grad(lambda v: 3.)(x)  F.grad(torch.sum)(x.long())  F.grad(torch.sum)(3.)  F.grad(torch.sum, 1)(x)  F.grad(torch.sum, (0, 0))(x)
    F.grad(torch.sum, ())(x)  F.grad(torch.sum, [0])(x)  F.grad(torch.sum, has_aux=True)(x)  F.grad(lambda v: v.add_(1).sum())(x)
    F.vjp(torch.sin, x, has_aux=True)  F.vjp(lambda v: v.long(), x)  F.vjp(lambda v: None, x)  F.vjp(lambda v: 3, x)  F.vjp(torch.sin, x)[1]((x, x))
    F.vjp(torch.sin, x)[1](x[:2])  F.jacrev(torch.sin)(x * 1j)  F.jacrev(lambda v: v * 1j)(x)  F.jacrev(torch.sin, chunk_size=0)
    F.functionalize(torch.sin, remove='all')  F.rearrange(x, 'a -> a b')  F.rearrange(x, 'a b')  F.rearrange(x, 'a b -> b a')
    F.rearrange(x, '(a (b)) -> a b')  F.rearrange(x, 'a -> a', c=3)  F.rearrange(x, 'a -> ... a')  F.rearrange(x, 'a a -> a')  F.rearrange(x, '(a -> a')
"""  # noqa: E501


def refusal(text):
    """A program that must raise PyTorch's error."""
    def refused(torch):
        return eval(text, {"torch": torch, "F": torch.func, "x": table(torch, 3)})
    refused.__name__ = text
    return program(refused)


for _text in REFUSED.split("  "):
    if _text.strip():
        refusal(_text.strip())
test_programs = cpu_only(program.test(rtol=5e-5, atol=1e-5))


# ── alone ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_name_of_pytorch_is_there():
    torch = pytest.importorskip("torch")
    assert set(torch.func.__all__) <= set(func.__all__) and tensorgrad.vmap is func.vmap


def test_nothing_is_left_of_a_function_that_raises():
    from tensorgrad.core.mode import mode

    def fails(x):
        raise ZeroDivisionError
    x = tensorgrad.ones(3, device=DEVICE)
    for transform in (func.vmap, func.grad, func.jacrev, lambda f: lambda x: func.vjp(f, x)):
        with tensorgrad.no_grad(), pytest.raises(ZeroDivisionError):
            transform(fails)(x)
    assert not mode.batches and mode.grad


def test_arguments_get_no_grad():
    x = tensorgrad.ones(3, device=DEVICE, requires_grad=True)
    func.grad(lambda v: (v * x).sum())(x)
    func.jacrev(lambda v: v * x)(x)
    assert x.grad is None and x.is_leaf


@pytest.mark.parametrize("nest", [3, (1, [2]), {"b": 1, "a": (2,)}, Pair(1, [2]), OrderedDict(x=1), [], (None, {})])
def test_nests(nest):
    leaves, spec = pytree.tree_flatten(nest)
    assert (pytree.tree_unflatten(leaves, spec) == nest and spec.num_leaves == len(leaves)
            and spec == pytree.tree_structure(nest))
    assert type(pytree.tree_map(lambda leaf: leaf, nest)) is type(nest)
    theirs = pytest.importorskip("torch").utils._pytree
    assert (repr(spec) == repr(theirs.tree_flatten(nest)[1]) and pytree.treespec_pprint(spec)
            == theirs.treespec_pprint(theirs.tree_structure(nest)))
    assert leaves == theirs.tree_leaves(nest)


def test_nests_that_do_not_fit():
    assert pytree.tree_map(lambda a, b: a + b, (1, [2]), (3, [4])) == (4, [6])
    assert pytree.broadcast_prefix((0, None), pytree.tree_structure((1, [2, 3]))) == [0, None, None]
    assert pytree.broadcast_prefix((0,), pytree.tree_structure((1, 2))) is None
    with pytest.raises(ValueError, match="Node type mismatch"):
        pytree.tree_map(lambda a, b: a, (1, [2]), (3, (4,)))
    with pytest.raises(ValueError, match="Node arity mismatch"):
        pytree.tree_map(lambda a, b: a, [1, 2], [1])
    with pytest.raises(ValueError, match="has length 1 but the spec refers to a pytree that holds 2 items"):
        pytree.tree_unflatten([1], pytree.tree_structure((1, 2)))
