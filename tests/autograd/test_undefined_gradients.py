"""Undefined gradients, steps that raise, saved tensors and forward mode, compared with PyTorch."""
import warnings
from importlib import import_module

import pytest
from side_by_side import attempt
from support import Programs, cpu_only

pytestmark = cpu_only
program = Programs()


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


def function(torch, backward, forward=lambda ctx, x: x * 2, **others):
    """A Function made of plain functions."""
    methods = {"forward": forward, "backward": backward, **others}
    return type("Made", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


# ── undefined gradients ───────────────────────────────────────────────────────────────────────────────────────────────


@program
def hooks_see_that_a_function_returned_none(torch):
    seen, x = [], leaf(torch, 1., 2.)
    y = x * 3
    for name, tensor in ("x", x), ("y", y):
        tensor.register_hook(lambda g, name=name: seen.append((name, g)))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("added", t.grad)))
    y.grad_fn.register_prehook(lambda g: seen.append(("before", g)))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(("after", inputs, outputs)))
    nothing = function(torch, lambda ctx, g: None)
    nothing.apply(y).sum().backward()
    asked = torch.autograd.grad(nothing.apply(x).sum(), x, allow_unused=True)
    other = leaf(torch, 5.)
    other.register_hook(lambda g: seen.append("not asked for"))
    torch.autograd.grad(nothing.apply(x * other).sum(), x, allow_unused=True)
    return seen, x.grad, asked


@program
def functions_behind_one_that_returned_none_get_zeros(torch):
    seen, x = [], leaf(torch, 1., 2.)
    listens = function(torch, lambda ctx, g: seen.append(g) or g)
    function(torch, lambda ctx, g: None).apply(listens.apply(x)).sum().backward()
    def silent(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2
    y = function(torch, lambda ctx, g: seen.append(g), silent).apply(x)
    function(torch, lambda ctx, g: None).apply(y).sum().backward()
    return seen, x.grad


@program
def a_gradient_from_elsewhere_counts_alone(torch):
    x = leaf(torch, 1., 2.)
    y = x * 3
    (function(torch, lambda ctx, g: None).apply(y) + y * torch.tensor([2., 5.])).sum().backward()
    return x.grad


@program
def hooks_that_make_a_gradient_of_none(torch):
    x = leaf(torch, 1., 2.)
    y, z = x * 3, x * 2
    y.register_hook(lambda g: torch.tensor([1., 10.]) if g is None else g)
    z.grad_fn.register_hook(lambda inputs, outputs: (torch.tensor([1., 10.]), None))
    none = function(torch, lambda ctx, g: None)
    return attempt(none.apply(y).sum().backward), attempt(none.apply(z).sum().backward), x.grad


@program
def hooks_behind_the_sum_see_the_memory_of_grad(torch):
    x = leaf(torch, 1., 2.)
    end = x.view_as(x).grad_fn.next_functions[0][0]
    end.register_prehook(lambda g: (g[0] / 5,))
    x.register_post_accumulate_grad_hook(lambda t: t.grad.add_(0.5))
    end.register_hook(lambda inputs, outputs: setattr(x, "grad", outputs[0] * 10))
    x.sum().backward()
    return x.grad


# ── steps that refuse ─────────────────────────────────────────────────────────────────────────────────────────────────

WITHOUT_DERIVATIVE = {
    "heaviside": lambda torch, x: torch.heaviside(x, x), "unique": lambda torch, x: torch.unique(x),
    "unique along a dim": lambda torch, x: torch.unique(x, dim=0, return_inverse=True)[0],
    "unique_consecutive": lambda torch, x: x.unique_consecutive(return_counts=True)[0],
    "bincount": lambda torch, x: torch.bincount(torch.tensor([0, 2, 2]), x),
    "histogram": lambda torch, x: torch.histogram(x, 2)[0], "geqrf": lambda torch, x: torch.geqrf(x[:, None])[0]}


@program
def functions_without_a_derivative(torch):
    found = []
    for call in WITHOUT_DERIVATIVE.values():
        out = call(torch, leaf(torch, 1., 2., 2.))
        found.append((out.grad_fn.name(), attempt(lambda out=out: out.sum().backward()),
                      call(torch, torch.tensor([1., 2., 2.])).requires_grad))
    return found


@program
def a_backward_that_can_be_run_once_makes_one_step(torch):
    once = torch.autograd.function.once_differentiable(lambda ctx, g: (g * 2, None, g * 3))
    x, y = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    out = function(torch, once, lambda ctx, x, n, y: x * n + y).apply(x, 2, y)
    first = torch.autograd.grad(out, (x, y), leaf(torch, 1., 5.), create_graph=True)
    step = first[0].grad_fn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x ** 3).sum().backward(create_graph=True)
    kept = x.grad.grad_fn
    return (step.name(), repr(first[1])[-8:], step is first[1].grad_fn,
            [f and f.name() for f, _ in step.next_functions], attempt(lambda: first[0].sum().backward()), kept.name(),
            [f and f.name() for f, _ in kept.next_functions])


@program
def names_of_views_whose_base_was_written_to(torch):
    y = torch.ones(2, 2, requires_grad=True) * 1
    turned = y.t()
    row, parts = turned[0], torch.view_as_real(torch.ones(2, dtype=torch.complex64, requires_grad=True) * 1)
    part, found = parts[0], [row.grad_fn.name()]
    for write in (turned.add_, row.mul_, parts.mul_, part.add_):
        write(1)
        found.append([t.grad_fn.name() for t in (y, turned, row, parts, part)])
    return found, "__cuda_array_interface__" in dir(y)


@program
def backward_inside_transforms(torch):
    x = leaf(torch, 1., 2.)
    run = [lambda: torch.vmap(lambda y: x.sum().backward() or y)(torch.ones(3)),
           lambda: torch.func.grad(lambda y: (y * y).backward() or y)(torch.tensor(2.)),
           lambda: torch.vmap(lambda y: torch.autograd.backward((x * y).sum()) or y)(torch.ones(3))]
    return [attempt(f) for f in run], x.grad


@program
def the_first_vmap_says_what_it_takes(torch):
    vmap = import_module(f"{torch.__name__}._vmap_internals")._vmap
    x = torch.ones(2, 3)
    calls = [lambda: vmap(lambda x: 3.14)(x), lambda: vmap(lambda x: (x, 3))(x), lambda: vmap(lambda x: [x])(x),
             lambda: vmap(lambda x: x, 0, (0, 0))(x), lambda: vmap(lambda x: x, 0, "0")(x),
             lambda: vmap(lambda x: x, (-1,))(x), lambda: vmap(torch.rand_like)(x),
             lambda: vmap(lambda x: (x, None), 0, (1, 0), allow_none_pass_through=True)(x),
             lambda: vmap(lambda y: x.sum().backward())(x)]
    return [attempt(call) for call in calls]


# ── saved tensors ─────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def hooks_on_what_a_function_saved(torch):
    def keeps(ctx, x):
        ctx.save_for_backward(x, None)
        return x * 1
    seen, x = [], leaf(torch, 1., 2.)
    y = function(torch, lambda ctx, g: g * ctx.saved_tensors[0], keeps).apply(x)
    kept, none = y.grad_fn._raw_saved_tensors
    refused = [attempt(lambda: none.register_hooks(abs, abs)), attempt(lambda: kept.register_hooks(abs)),
               attempt(lambda: kept.register_hooks(1, 1))]
    kept.register_hooks(lambda t: seen.append("packed") or t * 3, lambda t: seen.append("unpacked") or t)
    again = attempt(lambda: kept.register_hooks(abs, abs))
    y.sum().backward()
    return seen, type(kept).__name__, refused, again, x.grad, attempt(lambda: y.grad_fn._raw_saved_tensors)


@program
def attributes_that_are_set_and_deleted(torch):
    x, seen = leaf(torch, 1., 2.), []
    refused = [attempt(lambda name=name: delattr(x, name)) for name in ("data", "requires_grad", "_grad_fn",
                                                                       "_backward_hooks")]
    x._backward_hooks = {3: lambda g: seen.append(g)}
    y = x * 2
    y._grad_fn = None
    x.sum().backward()
    return refused, seen, y.requires_grad, attempt(lambda: setattr(y, "_grad_fn", 5)), x._backward_hooks is None


# ── forward mode ──────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def forward_mode(torch):
    """Keep this one program: PyTorch compiles formulas for the first dual tensor of a process."""
    warnings.simplefilter("ignore")
    ad, found = torch.autograd.forward_ad, []
    with ad.dual_level():
        for tensor, tangent in ((torch.ones(2, 3).t(), torch.ones(3, 2)), (torch.ones(2, 3), torch.ones(2, 3)),
                                (torch.ones(5)[1:], torch.arange(4.)), (torch.ones(1, 2), torch.ones(2, 1).t())):
            kept = ad.unpack_dual(ad.make_dual(tensor, tangent)).tangent
            found.append((kept is tangent, kept.stride(), kept.storage_offset(), kept))
        dual = ad.make_dual(torch.tensor([1., 2., 2.]), torch.ones(3))
        found += [attempt(lambda call=call: call(torch, dual)) for call in WITHOUT_DERIVATIVE.values()]
        found.append(attempt(lambda: torch.igamma(dual, dual)))
    for jvp in (lambda t: t.narrow(0, 0, 2), lambda t: t.narrow(0, 0, 2).clone(), lambda t: t[:2].clone().view(2)):
        made = function(torch, None, lambda ctx, x: x.narrow(0, 0, 2), jvp=lambda ctx, t, jvp=jvp: jvp(t))
        for view in False, True:
            with ad.dual_level():
                x = ad.make_dual(leaf(torch, 1., 2., 3.), torch.arange(3.))
                given = x.view_as(x) if view else x
                found.append(attempt(lambda made=made, given=given: ad.unpack_dual(made.apply(given)).tangent))

    def doubles(ctx, x):
        ctx.mark_dirty(x.mul_(2))
        return x
    for jvp in (lambda ctx, t: t), (lambda ctx, t: t.mul_(2)):
        with ad.dual_level():
            x = ad.make_dual(torch.ones(1), torch.ones(1))
            made = function(torch, None, doubles, jvp=jvp)
            found.append(attempt(lambda made=made, x=x: ad.unpack_dual(made.apply(x)).tangent))
    return found


@program
def rules_of_functions_for_vmap(torch):
    seen = []
    pair = function(torch, None, lambda x, y: None, setup_context=lambda ctx, inputs, output: None,
                    vmap=lambda info, in_dims, x, y: seen.append(in_dims) or ((x, y), in_dims))
    x = torch.arange(2.)
    named = function(torch, None, lambda x, *, y: x + y, setup_context=lambda ctx, inputs, output: None,
                     vmap=lambda info, in_dims, x, *, y: (x + y, 0))
    return torch.vmap(pair.apply)(x, [x, x]), seen, attempt(lambda: torch.vmap(named.apply)(x, y=x))


test_programs = program.test()


def test_copies_of_saved_tensors_are_made_by_the_first_write():
    """The numbers are PyTorch's; its context takes seconds to import."""
    import tensorgrad as torch
    x, counts = leaf(torch, 1., 2., 3.), []
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as kept:
        for write in (lambda y: y.mul_(3), lambda y: y.__setitem__(0, 9.), lambda y: torch.add(y, 1, out=y),
                      lambda y: torch.no_grad()(y.__iadd__)(1), lambda y: y.copy_(y * 2), lambda y: y[1:].zero_()):
            y = x.detach() * 2
            first, second = x * y, y * x
            before = len(kept.tid_to_weakhandle), len(kept.cloned)
            write(y)
            counts.append((*before, len(kept.cloned)))
            x.grad = None
            (first + second * 10).sum().backward()
            assert x.grad.tolist() == [22., 44., 66.]
            del first, second
            assert len(kept.cloned) == 0
        z = x.exp()                     # a saved result
        w = z * 1
        z.mul_(0)
        x.grad = None
        w.sum().backward()
        assert torch.allclose(x.grad, x.exp())
        late = (x * x).sum()
        with pytest.raises(RuntimeError, match="cannot be nested"):
            torch.autograd.graph.allow_mutation_on_saved_tensors().__enter__()
    assert counts == [(1, 0, 1)] * 6
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        late.backward()


def test_kept_results_are_written_to_in_the_second_run():
    """PyTorch's tools take seconds to import here, too: the expected gradient is a formula."""
    import tensorgrad as torch
    from tensorgrad.utils import checkpoint as tools

    def policy(ctx, op, *args, **kwargs):
        return (tools.CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.sin.default
                else tools.CheckpointPolicy.PREFER_RECOMPUTE)

    def keeps(ctx, x, y):
        ctx.save_for_backward(y)
        return x * 1
    x, given, seen = leaf(torch, 1., 2.), torch.tensor([3.]), []
    out = tools.checkpoint(lambda x: x.sin().mul_(2).cos(), x, use_reentrant=False, context_fn=lambda:
                           tools.create_selective_checkpoint_contexts(policy, allow_cache_entry_mutation=True))
    out.sum().backward()
    # as in PyTorch, the kept sine is the one that the first run has doubled
    assert torch.allclose(x.grad, -(4 * x.sin()).sin() * 2 * x.cos())
    made = function(torch, lambda ctx, g: seen.extend(ctx.saved_tensors) or (g, None), keeps)
    tools.checkpoint(made.apply, x, given, use_reentrant=False).sum().backward()
    assert seen[0] is given


def test_lazy_modules_are_not_scripted():
    import tensorgrad as torch
    assert torch.jit._wait(torch.jit._fork(max, 2, 3)) == 3
    with pytest.raises(RuntimeError, match="LazyLinear' has uninitialized parameters weight. Did you forget to run"):
        torch.jit.script(torch.nn.Sequential(torch.nn.LazyLinear(2)))
