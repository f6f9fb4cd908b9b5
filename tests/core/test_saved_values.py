"""Saved values of steps: writes to them are detected, hooks may keep them elsewhere, anomaly mode tells where a step
was made."""
import warnings

import pytest
from support import Programs

import tensorgrad

pytestmark = pytest.mark.usefixtures("device")
program = Programs()


def leaf(torch, *values, dtype=None):
    return torch.tensor(values, dtype=dtype or torch.float32, requires_grad=True)


# ── writes in place are noticed ───────────────────────────────────────────────────────────────────────────────────────


@program
def a_saved_input_was_written_to(torch):
    x = leaf(torch, 1., 2.) * 1
    y = x * x
    x.add_(1)
    y.sum().backward()


@program
def a_saved_result_was_written_to(torch):
    x = leaf(torch, 1., 2.)
    y = x.exp()
    y.mul_(2)
    y.sum().backward()


@program
def one_of_several_saved_results_was_written_to(torch):
    x = leaf(torch, 1., 2.)
    values, indices = x.sort()
    indices.add_(0)
    values.sum().backward()


@program
def a_saved_result_that_nobody_asks_for_was_written_to(torch):
    x = leaf(torch, 1., 2.)
    values, indices = x.sort()
    values.mul_(2)
    values.sum().backward()
    return x.grad


@program
def a_saved_leaf_was_written_to(torch):
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    y = x * w
    with torch.no_grad():
        w.add_(1)
    y.sum().backward()


@program
def what_was_written_to_was_not_saved(torch):
    x, w = leaf(torch, 1., 2.), torch.tensor([3., 4.])
    y = x * 2 + w
    w.add_(1)
    y.sum().backward()
    return x.grad


@program
def a_write_through_a_view_is_noticed(torch):
    x, w = leaf(torch, 1., 2.), torch.tensor([3., 4.])
    y = x * w
    w[0] = 7.
    y.sum().backward()


@program
def a_write_through_detached_memory_is_noticed(torch):
    x = leaf(torch, 1., 2.) * 1
    y = x * x
    x.detach().zero_()
    y.sum().backward()


@program
def a_write_through_data_is_not(torch):
    x = leaf(torch, 1., 2.)
    y = x * x
    x.data.mul_(10)
    y.sum().backward()
    return x.grad


@program
def a_write_is_noticed_by_create_graph(torch):
    x = leaf(torch, 1., 2.)
    y = x.exp()
    y.mul_(2)
    torch.autograd.grad(y.sum(), x, create_graph=True)


@program
def the_version_that_a_step_in_place_expects(torch):
    x = leaf(torch, 1., 2.) * 1
    x.exp_()
    x.mul_(2)
    x.sum().backward()


@program
def the_version_after_many_writes(torch):
    x = leaf(torch, 1., 2.) * 1
    x.add_(1)
    y = x * x
    for _ in range(5):
        x.add_(1)
    y.sum().backward()


@program
def a_saved_result_of_a_layer_was_written_to(torch):
    y = leaf(torch, 1., -2.).softmax(0)
    y.add_(1)
    y.sum().backward()


@program
def a_tensor_times_itself_in_place(torch):
    x = leaf(torch, 1., 2.) * 1
    x.mul_(x)
    x.sum().backward()


@program
def a_write_in_place_without_tape_is_noticed(torch):
    x = leaf(torch, 1., 2.) * 1
    y = x * x
    with torch.no_grad():
        x.copy_(torch.zeros(2))
    y.sum().backward()


@program
def data_that_points_elsewhere_is_used(torch):
    x = leaf(torch, 1., 2.)
    y = x * x
    x.data = torch.tensor([5., 6.])
    y.sum().backward()
    return x.grad


@program
def steps_in_place_one_after_the_other(torch):
    a = leaf(torch, 1., -2.)
    x = a * 1
    x.add_(x)
    x.relu_()
    y = x * x
    y[0] = y[1] * 2
    y.sum().backward()
    return a.grad


@program
def versions(torch):
    x = torch.zeros(3)
    found = [x._version]
    x.add_(1)
    x[0] = 2
    found += [x._version, x[1:]._version, x.detach()._version, x.data._version, (x * 1)._version]
    x.zero_()
    return [*found, x._version]


# ── watching the tape ─────────────────────────────────────────────────────────────────────────────────────────────────


@program
def saved_values_can_be_looked_at(torch):
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    y, z = x * w, x.exp()
    return (y.grad_fn._saved_self, y.grad_fn._saved_other, z.grad_fn._saved_result,
            z.grad_fn._saved_result.grad_fn is z.grad_fn)


@program
def saved_values_that_are_gone(torch):
    y = leaf(torch, 1., 2.).exp()
    y.sum().backward()
    return y.grad_fn._saved_result


@program
def values_that_are_not_saved(torch):
    return [hasattr((leaf(torch, 1.) + 1).grad_fn, name) for name in ("_saved_self", "_saved_result", "no_such_name")]


@program
def hooks_on_saved_values(torch):
    seen = []

    def pack(t):
        seen.append(("pack", t.detach().clone(), t.requires_grad))
        return len(seen) - 1, t

    def unpack(packed):
        seen.append(("unpack", packed[0]))
        return packed[1]
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * w
        z = y.exp()
    z.sum().backward()
    return sorted(str(s[0]) for s in seen), x.grad, w.grad


@program
def what_hooks_give_back_counts(torch):
    x = leaf(torch, 1., 2.)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t):
        y = (x * x).exp()
    torch.log(y).sum().backward()
    return x.grad


@program
def hooks_on_saved_values_and_higher_derivatives(torch):
    x = leaf(torch, 1., 2.)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x.exp()
    return torch.autograd.grad(y.sum(), x, create_graph=False)


@program
def hooks_on_the_saved_values_of_several_results(torch):
    count = []
    x = leaf(torch, 3., 1., 2.)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: count.append(1) or t, lambda t: count.append(10) or t):
        values = x.sort().values
    (values * torch.tensor([1., 2., 3.])).sum().backward()
    return sum(count), x.grad


@program
def the_innermost_hooks_count(torch):
    calls = []
    hooks = torch.autograd.graph.saved_tensors_hooks
    x = leaf(torch, 1., 2.)
    with hooks(lambda t: calls.append("outer") or t, lambda t: t):
        with hooks(lambda t: calls.append("inner") or t, lambda t: t):
            x.exp()
        x.exp()
    x.exp()
    return calls


@program
def saving_on_the_cpu(torch):
    x = leaf(torch, 1., 2.)
    with torch.autograd.graph.save_on_cpu():
        y = x * x * x
    y.sum().backward()
    return x.grad


@program
def a_write_behind_the_back_of_hooks(torch):
    x = leaf(torch, 1., 2.)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        h = x * 1
        y = h * h
        h.add_(1)
    y.sum().backward()
    return x.grad


@program
def anomaly_mode_names_the_step(torch):
    x = torch.tensor([0., 1.], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            (x.sqrt() * 0).sum().backward()


@program
def anomaly_mode_lets_nan_pass_if_told_to(torch):
    x = torch.tensor([0., 1.], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False):
            (x.sqrt() * 0).sum().backward()
    return x.grad


@program
def anomaly_mode_is_a_mode(torch):
    found = [torch.is_anomaly_enabled()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            found.append(torch.is_anomaly_enabled())
            with torch.autograd.set_detect_anomaly(False):
                found.append(torch.is_anomaly_enabled())
            found.append(torch.is_anomaly_enabled())
    return [*found, torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]


@pytest.mark.parametrize("several", [False, True], ids=["one result", "several results"])
def test_anomaly_mode_shows_the_line_of_the_forward_call(several):
    tg = tensorgrad
    x = tg.tensor([0., 1.], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with tg.autograd.detect_anomaly():
            y = (x * 0).log() if not several else (x.log() * 0).sort().values   # the line to be shown
            with pytest.raises(RuntimeError, match=r"Function '\w+Backward0' returned nan values in its 0th output."):
                (y * 0 if not several else y).sum().backward()
    text = str(caught[-1].message)
    assert "Error detected in" in text and "the line to be shown" in text and __file__ in text


def test_a_version_error_in_anomaly_mode_shows_the_line_too():
    x = leaf(tensorgrad, 1., 2.)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with tensorgrad.autograd.detect_anomaly():
            y = x.exp()       # whose result is written to
            y.mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
    assert "whose result is written to" in str(caught[-1].message)


test_programs = program.test()
