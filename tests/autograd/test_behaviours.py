"""Corner cases of autograd, views and creation, beside PyTorch: hooks, steps called by hand, saved values, layouts."""
import copy
import pickle
import warnings

import numpy as np
import pytest
from side_by_side import attempt
from support import Programs, cpu_only

pytestmark = cpu_only
program = Programs()


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


def function(torch, forward, backward):
    """A Function made of two plain functions."""
    return type("Made", (torch.autograd.Function,),
                {"forward": staticmethod(forward), "backward": staticmethod(backward)})


# ── hooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def the_order_of_all_hooks(torch):
    seen, x = [], leaf(torch, 1., 2.)
    y, end = x * 3, torch.autograd.graph.get_gradient_edge(x).node
    y.register_hook(lambda g: seen.append("tensor"))
    y.retain_grad()
    y.register_hook(lambda g: seen.append("tensor, later") or g * 2)
    y.grad_fn.register_prehook(lambda g: seen.append(("before", g)))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(("after", inputs, outputs)))
    end.register_prehook(lambda g: seen.append(("before the end", g)))
    end.register_hook(lambda inputs, outputs: seen.append(("after the end", inputs, outputs)))
    x.register_hook(lambda g: seen.append("leaf") or g * 10)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", t.grad.clone())))
    y.sum().backward()
    return seen, x.grad, y.grad


@program
def hooks_of_leaves_that_are_named_as_inputs(torch):
    seen, x, other = [], leaf(torch, 2.), leaf(torch, 3.)
    end = torch.autograd.graph.get_gradient_edge(x).node
    end.register_prehook(lambda g: seen.append("before") or (g[0] * 10,))
    end.register_hook(lambda inputs, outputs: seen.append("after"))
    for t in (x, other):
        t.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", t.grad.clone())))
    found = torch.autograd.grad(x * other, [x, other])
    seen.append("grad is done")
    (x * other).backward(inputs=[x])
    return seen, found, x.grad, other.grad


STEP_HOOKS = {
    "a number": lambda torch, g: 3, "one for two": lambda torch, g: (g[0],), "no tuple": lambda torch, g: g[0],
    "a list": lambda torch, g: list(g),
    "three for two": lambda torch, g: (*g, g[0]), "nothing for two": lambda torch, g: (),
    "another size": lambda torch, g: (torch.ones(3), None),
    "none at all": lambda torch, g: (None, None), "text": lambda torch, g: ("a", None),
    "another dtype": lambda torch, g: (g[0].double(), None),
    "twice": lambda torch, g: (g[0] * 2, None), "nothing": lambda torch, g: None,
}


@program
def what_hooks_after_a_step_return(torch):
    found = {}
    for name, returned in STEP_HOOKS.items():
        x = leaf(torch, 1., 2.)
        y = x * torch.tensor([3., 4.])
        y.grad_fn.register_hook(lambda inputs, outputs, returned=returned: returned(torch, inputs))
        found[name] = attempt(y.sum().backward), x.grad
    return found


@program
def what_hooks_before_a_step_return(torch):
    found = {}
    for name, returned in {**STEP_HOOKS, "one": lambda torch, g: (g[0] * 5,),
                           "no gradient": lambda torch, g: (None,)}.items():
        x = leaf(torch, 1., 2.)
        y = x.exp()
        y.grad_fn.register_prehook(lambda outputs, returned=returned: returned(torch, outputs))
        found[name] = attempt(y.sum().backward), x.grad
    return found


@program
def hooks_of_results_that_nobody_used(torch):
    seen, x = [], leaf(torch, 1., 2., 3.)
    parts = (x * 2).unbind()
    for i, part in enumerate(parts):
        part.register_hook(lambda g, i=i: seen.append((i, g)))
    parts[0].grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    (parts[0] + parts[2] * 3).backward()
    return seen, x.grad


@program
def hooks_stay_while_a_leaf_is_frozen(torch):
    seen, x = [], leaf(torch, 1., 2.)
    handle = x.register_hook(lambda g: seen.append(g.clone()) or g * 2)
    x.requires_grad_(False)
    x.requires_grad = True
    (x * x).sum().backward()
    handle.remove()
    (x * x).sum().backward()
    return seen, x.grad, type(x._backward_hooks).__name__, len(x._backward_hooks)


@program
def a_hook_after_accumulation_returns_nothing(torch):
    x = leaf(torch, 1.)
    x.register_post_accumulate_grad_hook(lambda t: 5)
    return attempt(lambda: x.sin().backward())


@program
def callbacks_at_the_end_of_a_backward(torch):
    seen, x = [], leaf(torch, 2.)
    engine = torch.autograd.Variable._execution_engine
    x.register_hook(lambda g: engine.queue_callback(lambda: seen.append(x.grad.clone())))
    x.exp().backward()
    return seen, attempt(lambda: engine.queue_callback(print))


@program
def hooks_are_not_pickled(torch):
    x = leaf(torch, 1.)
    x.register_hook(len)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = pickle.loads(pickle.dumps(x))
    return [str(w.message) for w in caught], loaded.requires_grad, bool(loaded._backward_hooks)


# ── steps and what they save ──────────────────────────────────────────────────────────────────────────────────────────


@program
def a_step_called_by_hand(torch):
    x, y = leaf(torch, 2., 3.), leaf(torch, 5., 7.)
    power, product, g = (x ** 3).grad_fn, (x * y).grad_fn, torch.tensor([1., 10.])
    return power(g), product(g), power(None), [attempt(call)
                                               for call in (power, lambda: power(g, g), lambda: power(gradient=g))]


@program
def saved_values(torch):
    x, y = leaf(torch, 2., 3.), leaf(torch, 5., 7.)
    product, power, root, total = x * y, x ** y, x.sqrt(), x.view(1, 2).sum(1, keepdim=True)
    found = [product.grad_fn._saved_self is x, product.grad_fn._saved_other is y, power.grad_fn._saved_exponent,
             root.grad_fn._saved_result, root.grad_fn._saved_result.grad_fn is root.grad_fn,
             total.grad_fn._saved_keepdim,
             attempt(lambda: product.grad_fn._saved_nothing)]
    product.sum().backward()
    return (found, attempt(lambda: product.grad_fn._saved_self),
            (x * 2 * 3).grad_fn._sequence_nr() > product.grad_fn._sequence_nr())


@program
def hooks_on_one_saved_value(torch):
    seen, x = [], leaf(torch, 2., 3.)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    saved.register_hooks(lambda t: seen.append("packed") or t * 2, lambda t: seen.append("unpacked") or t)
    again = attempt(lambda: saved.register_hooks(abs, abs))
    y.sum().backward()
    return seen, again, attempt(lambda: saved.register_hooks(abs, abs)), x.grad


@program
def writes_that_are_not_counted(torch):
    x = leaf(torch, 2., 3.)
    y = x * 1
    z = y * y
    with torch.autograd._unsafe_preserve_version_counter(y), torch.no_grad():
        y.mul_(2)
    z.sum().backward()
    return x.grad, y._version


@program
def hooks_that_cannot_be_called(torch):
    return attempt(torch.autograd.graph.saved_tensors_hooks(3, 4).__enter__)[0], (leaf(torch, 2.) ** 2).requires_grad


# ── functions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def an_input_returned_where_nothing_is_recorded(torch):
    same, x = function(torch, lambda ctx, x: x, lambda ctx, g: g), leaf(torch, 1.)
    with torch.no_grad():
        y = same.apply(x)
    return y is x, y.requires_grad, y.data_ptr() == x.data_ptr()


@program
def a_view_written_to_by_a_function_with_two_results(torch):
    def twice(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2), x + 1
    written, base = function(torch, twice, lambda ctx, g, h: g + h), leaf(torch, 1., 2.) * 1
    return attempt(lambda: written.apply(base[:1])), attempt(lambda: written.apply(base * 1))


@program
def what_a_function_marks_and_returns(torch):
    def made(ctx, x):
        out = x * 2
        ctx.mark_dirty(out)
        return out
    wrong = function(torch, made, lambda ctx, g: g * 1j)
    x = leaf(torch, 1.)
    return attempt(lambda: wrong.apply(x).sum().backward()), x.grad


@program
def old_names_of_functions(torch):
    def kept(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    square, x = function(torch, kept, lambda ctx, g: 2 * g * ctx.saved_variables[0]), leaf(torch, 3.)
    y = square.apply(x)
    y.backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        called = attempt(lambda: square()(x))
    return x.grad, called, type(y.grad_fn) is square._backward_cls


# ── views and modes ───────────────────────────────────────────────────────────────────────────────────────────────────


@program
def views_made_where_nothing_is_recorded(torch):
    x, found = leaf(torch, 1., 2., 3., 4.), []
    with torch.no_grad():
        view = x[:2]
        view.mul_(5)
    found += [x, view.requires_grad, repr(view), attempt(lambda: view.mul_(2)), attempt(lambda: view * 2)]
    with torch.inference_mode():
        view = x[:2]
        found += [view.requires_grad, view.is_inference()]
    return found, attempt(lambda: view.add_(1))


@program
def parts_that_a_write_would_record(torch):
    parts = torch.ones(4).split(2)
    whole = leaf(torch, 1., 2.) * 1
    stale = whole.split(1)
    whole.mul_(2)
    return attempt(lambda: parts[1].mul_(leaf(torch, 1., 2.))), repr(stale[0]), attempt(lambda: stale[0] + 1)


@program
def a_view_that_is_older_than_the_wish_for_a_gradient(torch):
    x = torch.ones(3)
    view = x[:2]
    x.requires_grad_()
    return attempt(lambda: view.add_(1)), attempt(lambda: x.add_(1)), view.requires_grad


@program
def numbers_and_arrays_of_what_requires_grad(torch):
    x = leaf(torch, 1., 2.)
    with torch.no_grad():
        array = x.numpy()
    return array, attempt(x.numpy), float(x[0]), int(x[1]), x[0].item()


@program
def flags_that_must_be_bools(torch):
    x = torch.ones(2)
    return ([attempt(call) for call in (lambda: torch.set_grad_enabled(1), lambda: torch.set_grad_enabled("no"),
                                        lambda: x.requires_grad_("yes"),
                                        lambda: setattr(x, "requires_grad",
                                                        3))], torch.is_grad_enabled(), x.requires_grad)


@program
def versions_outlive_their_memory(torch):
    x = torch.ones(2)
    x.add_(1)
    found = [x._version]
    x.data = torch.zeros(3)
    found.append(x._version)
    x.resize_(5)
    return [*found, x._version]


@program
def threads_switched_off(torch):
    found = [torch.autograd.is_multithreading_enabled()]
    with torch.autograd.set_multithreading_enabled(False):
        found.append(torch.autograd.is_multithreading_enabled())
    return [*found, torch.autograd.is_multithreading_enabled()]


@program
def inputs_that_are_no_tensors(torch):
    x = leaf(torch, 1., 2.)
    return [attempt(lambda: torch.autograd.grad((x * 2).sum(), "x")),
            attempt(lambda: (x * 2).sum().backward(inputs=["x"]))[0],
            attempt(lambda: torch.autograd.grad(x * 2, x, torch.ones(3, 3), is_grads_batched=True))]


# ── layouts and creation ──────────────────────────────────────────────────────────────────────────────────────────────


@program
def gradients_lie_in_memory_as_their_tensors_do(torch):
    found = []
    for make in (lambda: torch.ones(2, 3).t(), lambda: torch.ones(2, 3, 4).permute(2, 0, 1),
                 lambda: torch.ones(4, 4)[::2], lambda: torch.ones(2, 3)):
        x = make().requires_grad_()
        (x * torch.arange(float(x.numel())).reshape(x.shape)).sum().backward()
        found += [x.grad, x.grad.stride()]
    x = torch.ones(2, 3).requires_grad_()
    (x * torch.ones(3, 2).t()).sum().backward()
    return [*found, x.grad.stride()]


@program
def leaves_with_other_memory(torch):
    x, found = leaf(torch, 1., 2., 3.), []
    y = x * 2
    with torch.no_grad():
        x.set_(x[1:])
    found.append(attempt(lambda: torch.autograd.grad(y.sum(), x))[0])
    (x * 3).sum().backward()
    return [*found, x.grad]


@program
def inference_tensors_outside(torch):
    with torch.inference_mode():
        x = torch.ones(2, 3)
        z = torch.ones(2, 3, requires_grad=True).resize_(1, 2)
    return [attempt(lambda: x.transpose_(0, 1))[0], attempt(lambda: x.resize_(1, 2))[0], x.data.is_inference(),
            z.requires_grad, z.shape]


@program
def gathered_number_with_a_sparse_gradient(torch):
    x = torch.tensor(2.0, requires_grad=True)
    torch.gather(x, 0, torch.tensor([0]), sparse_grad=True).backward(torch.tensor([3.0]))
    return x.grad.to_dense()



@program
def tensors_like_others_lie_in_memory_as_they_do(torch):
    sources = [torch.ones(2, 3).t(), torch.ones(2, 3, 4).permute(2, 0, 1), torch.ones(4, 4)[::2, ::2],
               torch.ones(3, 2).t().expand(2, 2, 3),
               torch.ones(2, 1, 3)]
    makers = [torch.zeros_like, torch.ones_like, torch.empty_like, lambda x: torch.full_like(x, 2),
              lambda x: torch.clone(x, memory_format=torch.contiguous_format),
              lambda x: torch.zeros_like(x, memory_format=torch.contiguous_format)]
    return [make(x).stride() for x in sources for make in makers], torch.ones_like(
        torch.ones(2, 3, 4, 5), memory_format=torch.channels_last).stride(), \
        attempt(lambda: torch.ones_like(torch.ones(2), memory_format=torch.channels_last))


@program
def tensors_of_one_element_in_a_list_are_numbers(torch):
    t = torch.tensor
    return (t([t([1]), t([2])]), t([t([[1.5]]), 2]), t([[t([1]), t([2])]]), t([t(1.), t(2)]),
            torch.full((2,), np.int64(3)), torch.full((2,), np.float64(3)))


@program
def mistakes(torch):
    x = torch.ones(2, 3)
    return [attempt(call) for call in (
        lambda: torch.normal(0., 1.), lambda: x.view(torch.int64), lambda: torch.tensor(1.).view(torch.half),
        lambda: x.t().view(torch.half),
        lambda: x.split([4, -1], 1), lambda: x.dsplit(2), lambda: torch.block_diag(x[0], torch.ones(2, 2, 2)),
        lambda: x.roll((), ()),
        lambda: x.index_add(0, torch.tensor([2, 0]), x), lambda: x.index_fill(0, torch.tensor([5]), 1.),
        lambda: x.index_fill(0, torch.tensor([0.]), 1.),
        lambda: torch.ones(2, 2, 2).H, lambda: x.masked_scatter(x > 0, torch.ones(6).long()),
        lambda: x.clone().copy_(3), lambda: x.clone().copy_("a"))]


@program
def results_that_are_contiguous(torch):
    """Reductions, joins and scans return contiguous tensors, whatever the strides of their inputs: `view` accepts
    them.
    """
    F, along = torch.nn.functional, {"softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "cummax", "sum",
                                     "mean", "std", "amax", "logsumexp", "max"}
    inputs = torch.arange(24.).reshape(2, 3, 4).permute(2, 0, 1), torch.arange(6.).reshape(2, 3).t()
    found = []
    for x in inputs:
        results = [getattr(x, name)(axis) for name in sorted(along) for axis in (0, -1)]
        results = [r if isinstance(r, torch.Tensor) else r[0] for r in results]
        results += [torch.cat([x, x]), torch.stack([x, x], 1), x.repeat(*(1,) * x.ndim), x.tile(2), x.roll(1, 0),
                    x.masked_fill(x > 3, 0), F.logsigmoid(x), x.tril(), F.softmin(x, 0), x.prod(0), x.median(0)[0],
                    (x > 2).any(0)]
        found += [(r.stride(), r.view(-1)) for r in results]
        found += [(r.stride(), attempt(lambda r=r: r.view(-1)))
                  for r in (x.relu(), x.exp(), x * 2, x + x, x.clone(), F.gelu(x))]
    return found


@program
def random_numbers_follow_memory(torch):
    found, F = [], torch.nn.functional
    for x in (torch.ones(4, 6).t(), torch.ones(2, 3, 4, 5).permute(0, 2, 3, 1), torch.ones(40, 6).t()[::2],
              torch.ones(4, 1).expand(4, 6)):
        found += [torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 10),
                  torch.rand_like(x, memory_format=torch.contiguous_format), torch.randn_like(x).stride(),
                  torch.randn_like(x, requires_grad=True).requires_grad,
                  F.dropout(x, 0.5), F.dropout(x.softmax(0), 0.5)]
    wide = torch.zeros(8, 40)
    for x in (torch.zeros(6, 4).t(), wide[:, ::2], wide[:, :10]):
        found += [x.normal_().clone(), torch.nn.init.xavier_normal_(x).clone(), x.uniform_().clone()]
    return found, torch.randn_like(torch.ones(2, 3, 4, 4), memory_format=torch.channels_last)


test_programs = program.test()


def test_a_copy_keeps_its_own_hooks():
    """A deep copy of a leaf at rest does not bring hooks back that belong to the original alone."""
    import tensorgrad as torch
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: pytest.fail("the hook of the original ran"))
    y = copy.deepcopy(x)
    y.sum().backward()
    assert y.grad.tolist() == [1., 1.]
