"""Answers of a running backward, views of views that may not be written to, Functions' tangents: beside PyTorch."""
import warnings
from functools import partial

from side_by_side import attempt
from support import Programs, cpu_only

pytestmark = cpu_only
program = Programs()


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


@program
def a_running_backward_tells_what_it_does(torch):
    ask, seen, x, other = torch._C, [], leaf(torch, 1.), leaf(torch, 2.)
    y = x * other
    z = y.exp()
    unrelated = y.cos()
    end = torch.autograd.graph.get_gradient_edge(other).node

    def hook(g):
        seen.append((ask._current_autograd_node().name() if ask._current_autograd_node() else None,
                     [node.name() for node in ask._current_graph_task_execution_order()] if not seen else None,
                     [ask._will_engine_execute_node(node) for node in (y.grad_fn, z.grad_fn, unrelated.grad_fn, end)],
                     ask._autograd._get_current_graph_task_keep_graph(), ask._current_graph_task_id() >= 0))
    out = z.sum()
    out.register_hook(hook)
    with torch.autograd.set_multithreading_enabled(False):
        out.backward(retain_graph=True)
        out.backward(inputs=[x])
    return ([part[1:] for part in seen], ask._current_graph_task_id(), attempt(ask._current_graph_task_execution_order),
            *(attempt(partial(ask._will_engine_execute_node, node)) for node in (z, z.grad_fn)))


@program
def steps_describe_the_gradients_they_take(torch):
    x = torch.rand(3, 2, dtype=torch.float64, requires_grad=True)
    found = [(x * 2).grad_fn._input_metadata, x.max(0).values.grad_fn._input_metadata]
    return [[(tuple(m.shape), str(m.dtype), str(m.device), m.is_nested_tensor) for m in each] for each in found]


@program
def named_inner_tensors_run_their_hooks(torch):
    seen, x = [], leaf(torch, 2.)
    y = x * 3
    y.register_hook(lambda g: seen.append("tensor") or g * 2)
    y.grad_fn.register_prehook(lambda g: seen.append("before") or (g[0] * 5,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append("after"))
    y.exp().backward(inputs=[y])
    return seen, y.grad, x.grad


@program
def hooks_entered_in_a_backward_end_with_it(torch):
    graph, seen, x = torch.autograd.graph, [], leaf(torch, 2.)
    inner = graph.saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: inner.__enter__() or t):
        x.sin().backward()
    y = x.cos()
    return seen, torch._C._autograd._saved_tensors_hooks_is_enabled(), y


@program
def zeros_for_unused_inputs_are_differentiable(torch):
    x = leaf(torch, 2.)
    first, = torch.autograd.grad(x * 3, x, create_graph=True)
    second, = torch.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    edge = torch.autograd.graph.get_gradient_edge(leaf(torch, 1.))
    return second, second.requires_grad, attempt(
        lambda: torch.autograd.grad(x * 2, (x, edge), allow_unused=True, materialize_grads=True))


@program
def writes_to_views_of_views(torch):
    def made_in(block, needs):
        x = torch.zeros(2)
        with block:
            y = x.view(2)
        return y.requires_grad_().view(2) if needs else y
    unbound = leaf(torch, 1., 2.).clone().unbind()[0]
    value = leaf(torch, 1.)
    return [attempt(write) for write in (
        lambda: made_in(torch.no_grad(), True).mul_(2), lambda: made_in(torch.inference_mode(), True).mul_(2),
        lambda: unbound.view_as(unbound).mul_(2), lambda: made_in(torch.no_grad(), False).mul_(value),
        lambda: made_in(torch.no_grad(), False).mul_(2))]


@program
def views_of_inference_mode_are_not_derived_again(torch):
    x = leaf(torch, 1., 2.).clone()
    with torch.inference_mode():
        view = x.view(-1)
    x.add_(2)
    return attempt(lambda: view.grad_fn)


@program
def hooks_of_a_view_that_is_written_to(torch):
    seen, base = [], leaf(torch, 1.).clone()
    view, other = base[:], base[:]
    view.retain_grad()
    other.retain_grad()
    view.register_hook(lambda g: seen.append("view"))
    other.register_hook(lambda g: seen.append("other"))
    view.mul_(2)
    (view + other).sum().backward()
    return seen, view.grad, other.grad


@program
def views_that_functions_return_without_a_gradient(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g
    return [attempt(partial(Same.apply(torch.ones(1)).mul_, value)) for value in (leaf(torch, 2.), 2)]


@program
def results_beside_a_detached_leaf(torch):
    """Let a detached alias of a Function's result require grad: this is not a write."""
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x, x * 2

        @staticmethod
        def backward(ctx, g, other):
            return g + 2 * other
    x = leaf(torch, 1., 3.)
    first, second = Two.apply(x)
    x.detach().requires_grad_()
    (first * second).sum().backward()
    return x.grad, first.grad_fn.name()


@program
def tangents_that_functions_may_not_return(torch):
    forward_ad = torch.autograd.forward_ad

    def applied(forward, jvp):
        made = type("Made", (torch.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})
        return lambda: made.apply(forward_ad.make_dual(torch.ones(2), torch.ones(2)))

    def marked(ctx, x):
        out = x * 2
        ctx.mark_non_differentiable(out)
        return x.clone(), out

    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore")
        level = forward_ad._current_level
        found = [attempt(run) for run in (
            applied(marked, lambda ctx, t: (t, t.clone())), applied(lambda ctx, x: x.view_as(x), lambda ctx, t: t + 0),
            applied(lambda ctx, x: x.view_as(x), lambda ctx, t: t.view_as(t)),
            applied(lambda ctx, x: (x.clone(), torch.ones(2, dtype=torch.int64)), lambda ctx, t: (t, t)))]
    return found, level, forward_ad._current_level


@program
def results_without_a_gradient_get_none(torch):
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx._materialize_non_diff_grads = False
            out = x.clone()
            ctx.mark_non_differentiable(out)
            return x.clone(), out

        @staticmethod
        def backward(ctx, g, other):
            seen.append(other)
            return g
    x = leaf(torch, 1.)
    Two.apply(x)[0].backward()
    return seen, x.grad


@program
def jacobians_within_no_grad(torch):
    with torch.no_grad():
        found = torch.autograd.functional.jacobian(lambda x: x.exp(), torch.ones(2), create_graph=True)
    return found, found.requires_grad


@program
def operators_without_a_rule_for_autograd(torch):
    with torch.library._scoped_library("tape_test", "DEF") as library:
        library.define("double(Tensor a) -> Tensor")
        library.define("cut(Tensor a) -> Tensor")
        library.impl("double", lambda a: a * 2, "CPU")
        library.impl("cut", lambda a: a.detach() * 2, "CPU")
        again = attempt(lambda: library.define("cut(Tensor a) -> Tensor"))[0]
        x = leaf(torch, 1.)
        torch._ops.ops.tape_test.double(x).backward()
        torch._ops.ops.tape_test.cut(x).backward()
        library.define("silent(Tensor a) -> Tensor")
        library.impl("silent", lambda a: a * 3, "CPU")
        library.impl("silent", torch.library.fallthrough_kernel, "Autograd")
        torch._ops.ops.tape_test.silent(x).backward()
        torch._C._set_autograd_fallback_mode("nothing")
        try:
            plain = torch._ops.ops.tape_test.cut(x).requires_grad
        finally:
            torch._C._set_autograd_fallback_mode("warn")
    return x.grad, plain, again, hasattr(torch._ops.ops.tape_test, "cut")


@program
def steps_are_nodes(torch):
    node, seen = torch.autograd.graph.Node, []

    class Seen(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(isinstance(ctx, node))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g
    x = leaf(torch, 2.)
    steps = [x.exp().grad_fn, Seen.apply(x).grad_fn, x.exp().grad_fn.next_functions[0][0]]
    return (seen, [isinstance(step, node) for step in steps], [node in type(step).mro() for step in steps],
            [isinstance(each, node) for each in (None, 1, node)], issubclass(node, node), attempt(node)[0])


@program
def anomaly_mode_notes_the_forward_call(torch):
    x = leaf(torch, 2.)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            y = x.exp()
    return "in anomaly_mode_notes" in "".join(y.grad_fn.metadata["traceback_"]), dict(x.exp().grad_fn.metadata)


@program
def modules_of_inference_mode(torch):
    """Parameters made in it are inference tensors; none of them is a view."""
    with torch.inference_mode():
        layer, ones = torch.nn.Linear(2, 2), torch.ones(2)
    x = torch.ones(1, 2, requires_grad=True)
    return (layer.weight.is_inference(), layer.weight.requires_grad, ones.view(1, 2)._is_view(),
            ones.view(1, 2)._base is None, torch.nn.Parameter(ones, requires_grad=False).is_inference(),
            attempt(lambda: torch.nn.Parameter(ones)), attempt(lambda: layer(x)),
            torch.nn.Linear(2, 2).weight.is_inference())


@program
def hooks_from_saved_values_run(torch):
    """A hook that a step gets while its saved values are unpacked."""
    x = leaf(torch, 2., 3.)

    def unpack(kept):
        torch._C._current_autograd_node().register_hook(lambda after, before: tuple(g / 2 for g in after))
        return kept
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp().sum()
    y.backward()
    return x.grad


test_programs = program.test()
