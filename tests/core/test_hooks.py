"""Hooks on tensors, on leaves and on steps: when they run, what they see, and what they may change."""
import pytest
from support import Programs

import tensorgrad

pytestmark = pytest.mark.usefixtures("device")
program = Programs()


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


# ── on tensors ────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def a_hook_sees_the_gradient(torch):
    x, seen = leaf(torch, 1., 2.), []
    h = x * 3
    h.register_hook(lambda g: seen.append((g.clone(), g.requires_grad)))
    (h * h).sum().backward()
    return seen, x.grad


@program
def a_hook_sees_the_whole_gradient(torch):
    x, seen = leaf(torch, 1., 2.), []
    h = x * 3
    h.register_hook(lambda g: seen.append(g.clone()))
    (h * h + h).sum().backward()
    return seen


@program
def hooks_run_in_order_and_replace(torch):
    x, order = leaf(torch, 1., 2.), []
    h = x * 3
    h.register_hook(lambda g: order.append("a") or g * 2)
    h.register_hook(lambda g: order.append("b") or g + 1)
    h.register_hook(lambda g: order.append("c"))
    h.sum().backward()
    return order, x.grad


@program
def hooks_on_a_leaf(torch):
    x = leaf(torch, 1., 2.)
    x.register_hook(lambda g: g * 10)
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    return x.grad


@program
def a_hook_on_a_leaf_sees_the_sum_of_all_ways(torch):
    x, seen = leaf(torch, 1., 2.), []
    x.register_hook(lambda g: seen.append(g.clone()))
    (x * 3 + x * x).sum().backward()
    return seen


@program
def removed_hooks_do_not_run(torch):
    x, seen = leaf(torch, 1., 2.), []
    h = x * 3
    first = h.register_hook(lambda g: seen.append(1))
    h.register_hook(lambda g: seen.append(2))
    first.remove()
    first.remove()
    with h.register_hook(lambda g: seen.append(3)):
        pass
    h.sum().backward()
    return seen


@program
def a_hook_that_removes_itself(torch):
    x, seen, handles = leaf(torch, 1., 2.), [], []

    def once(g):
        seen.append(1)
        handles[0].remove()
    handles.append(x.register_hook(once))
    (x * 1).sum().backward()
    (x * 1).sum().backward()
    return seen


@program
def a_hook_that_removes_a_later_one(torch):
    x, seen, handles = leaf(torch, 1., 2.), [], []
    x.register_hook(lambda g: (seen.append("first"), handles[0].remove(), None)[2])
    handles.append(x.register_hook(lambda g: seen.append("second")))
    (x * 1).sum().backward()
    (x * 1).sum().backward()
    return seen[-1]


@program
def a_retained_gradient_is_what_the_hooks_made(torch):
    x = leaf(torch, 1., 2.)
    h = x * 3
    h.register_hook(lambda g: g * 2)
    h.retain_grad()
    h.register_hook(lambda g: g * 5)
    h.sum().backward()
    return h.grad, x.grad


@program
def a_retained_gradient_is_that_of_the_latest_values(torch):
    x = leaf(torch, 1., 2.)
    h, k = x * 2, x * 3
    h.retain_grad()
    k.retain_grad()
    h.mul_(3)
    k[0] = 5.
    (h + k).sum().backward()
    return h.grad, k.grad, x.grad


@program
def retained_gradients_add_up_out_of_place(torch):
    x = leaf(torch, 1., 2.)
    h = x * 3
    h.retain_grad()
    h.sum().backward(retain_graph=True)
    first = h.grad
    h.sum().backward()
    return first, h.grad


@program
def a_hook_may_change_a_gradient_in_place(torch):
    x = leaf(torch, 1., 2.)
    x.register_hook(lambda g: g.mul_(2))
    (x * 3).sum().backward()
    return x.grad


@program
def grad_captures_what_the_hooks_made(torch):
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    h = x * w
    h.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: g * 10)
    w.register_hook(lambda g: g * 100)
    return torch.autograd.grad(h.sum(), [h, x]), w.grad


@program
def hooks_that_are_not_on_the_way_do_not_run(torch):
    x, w, seen = leaf(torch, 1., 2.), leaf(torch, 3., 4.), []
    w.register_hook(lambda g: seen.append("w"))
    h = w * 2
    h.register_hook(lambda g: seen.append("h"))
    torch.autograd.grad((x * h).sum(), x)
    return seen


@program
def hooks_under_create_graph(torch):
    x, seen = leaf(torch, 1., 2.), []
    h = x * x
    h.register_hook(lambda g: seen.append((g.requires_grad, torch.is_grad_enabled())) or g * x)
    g, = torch.autograd.grad((h * h).sum(), x, create_graph=True)
    return seen, g, torch.autograd.grad(g.sum(), x)


@program
def grad_mode_inside_hooks(torch):
    x, seen = leaf(torch, 1., 2.), []
    x.register_hook(lambda g: seen.append(torch.is_grad_enabled()))
    (x * x).sum().backward()
    return seen


@program
def hooks_on_several_results(torch):
    x, seen = leaf(torch, 3., 1.), []
    a, b = (x * 1).unbind()
    a.register_hook(lambda g: seen.append(("a", g.clone())) or g * 2)
    b.register_hook(lambda g: seen.append(("b", g.clone())))
    (a * 5 + b).backward()
    return sorted(seen, key=lambda s: s[0]), x.grad


@program
def a_hook_on_an_unused_result_does_not_run(torch):
    x, seen = leaf(torch, 3., 1.), []
    a, b = (x * 1).unbind()
    b.register_hook(lambda g: seen.append(g is None))
    (a * 5).backward()
    return x.grad


@program
def hooks_before_a_write_in_place_stay_with_the_old_step(torch):
    x, seen = leaf(torch, 1., 2.), []
    h = x * 3
    h.register_hook(lambda g: seen.append(("old", g.clone())))
    h.mul_(2)
    h.register_hook(lambda g: seen.append(("new", g.clone())))
    h.sum().backward()
    return seen, x.grad


@program
def a_hook_that_gives_no_tensor(torch):
    h = leaf(torch, 1., 2.) * 3
    h.register_hook(lambda g: 3)
    h.sum().backward()


@program
def a_hook_that_changes_the_shape(torch):
    h = leaf(torch, 1., 2.) * 3
    h.register_hook(lambda g: g.sum())
    h.sum().backward()


@program
def a_hook_on_what_needs_no_gradient(torch):
    torch.ones(2).register_hook(print)


@program
def an_error_in_a_hook_gets_through(torch):
    x = leaf(torch, 1., 2.)

    def broken(g):
        raise ZeroDivisionError("inside the hook")
    h = x * 3
    h.register_hook(broken)
    try:
        h.sum().backward()
    except ZeroDivisionError as error:
        return str(error), x.grad, torch.is_grad_enabled()


# ── after a leaf's gradient was added ─────────────────────────────────────────────────────────────────────────────────


@program
def after_accumulation(torch):
    x, seen = leaf(torch, 1., 2.), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.clone())))
    (x * 3 + x).sum().backward()
    (x * 3).sum().backward()
    return seen


@program
def after_accumulation_the_gradient_may_be_taken_away(torch):
    x = leaf(torch, 1., 2.)

    def step(t):
        with torch.no_grad():
            t.sub_(t.grad * 0.1)
        t.grad = None
    x.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        (x * x).sum().backward()
    return x, x.grad


@program
def before_and_after_accumulation(torch):
    x, seen = leaf(torch, 1., 2.), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("post", t.grad.clone())))
    x.register_hook(lambda g: seen.append(("tensor", g.clone())) or g * 2)
    (x * 3).sum().backward()
    torch.autograd.grad((x * 3).sum(), x)
    return seen


@program
def removed_after_accumulation(torch):
    x, seen = leaf(torch, 1.), []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(1))
    (x * 3).sum().backward()
    handle.remove()
    (x * 3).sum().backward()
    return seen


@program
def after_accumulation_is_for_leaves(torch):
    (leaf(torch, 1.) * 2).register_post_accumulate_grad_hook(print)


@program
def after_accumulation_is_for_what_has_a_gradient(torch):
    torch.ones(1).register_post_accumulate_grad_hook(print)


def test_a_leafs_hook_runs_as_soon_as_its_gradient_is_complete():
    """An optimizer step inside backward frees each gradient before the next one is made."""
    layers = [leaf(tensorgrad, 1. + k) for k in range(4)]
    order, alive = [], []

    def step(t):
        order.append(next(k for k, w in enumerate(layers) if w is t))
        alive.append(sum(w.grad is not None for w in layers))
        t.grad = None
    for w in layers:
        w.register_post_accumulate_grad_hook(step)
    x = tensorgrad.ones(1)
    for w in layers:
        x = x * w + w
    x.sum().backward()
    assert order == [3, 2, 1, 0] and alive == [1, 1, 1, 1]


# ── on steps ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def hooks_after_a_step(torch):
    x, w, seen = leaf(torch, 1., 2.), leaf(torch, 3., 4.), []
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    y.sum().backward()
    return seen


@program
def hooks_after_a_step_replace(torch):
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1]))
    y.sum().backward()
    return x.grad, w.grad


@program
def hooks_after_a_step_whose_inputs_are_one_tensor(torch):
    x, seen = leaf(torch, 1., 2.), []
    y = x * x
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
    y.sum().backward()
    return seen, x.grad


@program
def hooks_after_a_step_whose_inputs_are_one_tensor_replace(torch):
    x = leaf(torch, 1., 2.)
    y = x * x
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1]))
    y.sum().backward()
    return x.grad


@program
def hooks_after_a_step_with_a_number(torch):
    x, seen = leaf(torch, 1., 2.), []
    y = x * 3
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    y.sum().backward()
    return seen


@program
def hooks_before_a_step(torch):
    x, seen = leaf(torch, 1., 2.), []
    y = x * 3
    y.grad_fn.register_prehook(lambda outputs: seen.append(outputs) or (outputs[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(outputs))
    y.sum().backward()
    return seen, x.grad


@program
def hooks_around_a_step_with_several_results(torch):
    x, seen = leaf(torch, 3., 1.), []
    a, b = (x * 1).unbind()
    fn = a.grad_fn
    fn.register_prehook(lambda outputs: seen.append(("before", outputs)) or tuple(g * 2 for g in outputs))
    fn.register_hook(lambda inputs, outputs: seen.append(("after", inputs, outputs)))
    (a * 5 + b).backward()
    return seen, x.grad


@program
def hooks_on_the_step_of_a_leaf(torch):
    x, seen = leaf(torch, 1., 2.), []
    y = x * 3
    end = y.grad_fn.next_functions[0][0]
    end.register_prehook(lambda outputs: seen.append(outputs) or (outputs[0] * 2,))
    end.register_hook(lambda inputs, outputs: seen.append((inputs, x.grad.clone())))
    y.sum().backward()
    return seen, x.grad


@program
def removed_hooks_of_steps(torch):
    x, seen = leaf(torch, 1., 2.), []
    y = x * 3
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append("after")).remove()
    y.grad_fn.register_prehook(lambda outputs: seen.append("before")).remove()
    y.sum().backward()
    return seen


@program
def hooks_on_tensors_run_before_those_on_steps(torch):
    x, seen = leaf(torch, 1., 2.), []
    y = x * 3
    y.grad_fn.register_prehook(lambda outputs: seen.append("step"))
    y.register_hook(lambda g: seen.append("tensor"))
    y.retain_grad()
    y.sum().backward()
    return seen


@program
def hooks_on_several_tensors(torch):
    x, w, seen = leaf(torch, 1., 2.), leaf(torch, 3., 4.), []
    torch.autograd.graph.register_multi_grad_hook([x, w], lambda grads: seen.append([g is None for g in grads]))
    (x * w).sum().backward()
    (x * 2).sum().backward()
    return seen


@program
def hooks_on_the_first_of_several_tensors(torch):
    x, w, seen = leaf(torch, 1., 2.), leaf(torch, 3., 4.), []
    torch.autograd.graph.register_multi_grad_hook([x, w], lambda g: seen.append(g.clone()), mode="any")
    (x * 2).sum().backward()
    return seen


test_programs = program.test()
