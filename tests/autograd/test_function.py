"""`autograd.Function`: steps with a forward and a backward of the program's own."""
import pytest
from side_by_side import outcome, same
from support import Programs

import tensorgrad

pytestmark = pytest.mark.usefixtures("device")
program = Programs()


def leaf(torch, *values, dtype=None):
    return torch.tensor(values, dtype=dtype or torch.float32, requires_grad=True)


def function(torch, forward, backward=None, **others):
    """A Function `F` of these rules."""
    rules = {"forward": forward, **({"backward": backward} if backward else {}), **others}
    return type("F", (torch.autograd.Function,), {name: staticmethod(rule) for name, rule in rules.items()})


def square(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g
    return function(torch, forward, backward)


def exponential(torch):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * y
    return function(torch, forward, backward)


def first(ctx, *gradients):
    return gradients[0]


def seen_by(backward, into):
    """A backward that notes the gradients it is given."""
    def noting(ctx, *gradients):
        into.append(gradients)
        return backward(ctx, *gradients)
    return noting


# ── forward and backward ──────────────────────────────────────────────────────────────────────────────────────────────


@program
def a_function(torch):
    x = leaf(torch, 1., 2.)
    y = square(torch).apply(x)
    y.sum().backward()
    return y, x.grad, y.grad_fn.name(), type(y.grad_fn).__name__, y.is_leaf


@program
def higher_derivatives_through_inputs(torch):
    x = leaf(torch, 1., 2.)
    g, = torch.autograd.grad(square(torch).apply(x).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@program
def higher_derivatives_through_results(torch):
    x = leaf(torch, 1., 2.)
    y, found = exponential(torch).apply(x), []
    for _ in range(3):
        y, = torch.autograd.grad(y.sum(), x, create_graph=True)
        found.append(y)
    return found


@program
def gradients_without_a_way_on(torch):
    x = leaf(torch, 1., 2.)
    y = function(torch, lambda ctx, x: x * 1, lambda ctx, g: torch.ones_like(g) * 7).apply(x)
    g, = torch.autograd.grad(y.sum(), x, create_graph=True)
    return g, g.requires_grad


@program
def other_arguments(torch):
    x = leaf(torch, 1., 2.)
    y = function(torch, lambda ctx, k, x, name, none: x * k, lambda ctx, g: (None, g * 5, None, None)).apply(3, x,
                                                                                                             "name",
                                                                                                             None)
    y.sum().backward()
    return x.grad, len(y.grad_fn.next_functions)


@program
def keyword_arguments(torch):
    x = leaf(torch, 1., 2.)
    return function(torch, lambda ctx, x, k=1: x * k, lambda ctx, g: g).apply(x, k=3)


@program
def inputs_without_gradient(torch):
    x, w = leaf(torch, 1., 2.), torch.tensor([3., 4.])
    y = function(torch, lambda ctx, x, w: x * w, lambda ctx, g: (g * 2, g * 3)).apply(x, w)
    y.sum().backward()
    return x.grad, w.grad, y.grad_fn.next_functions[1]


@program
def no_inputs_with_gradient(torch):
    y = function(torch, lambda ctx, x: x * 2, None).apply(torch.ones(2))
    return y.requires_grad, y.grad_fn


@program
def without_tape(torch):
    with torch.no_grad():
        y = square(torch).apply(leaf(torch, 1.))
    return y.requires_grad


@program
def no_gradient_at_all(torch):
    x = leaf(torch, 1., 2.)
    function(torch, lambda ctx, x: x * 2, lambda ctx, g: None).apply(x).sum().backward()
    return x.grad


@program
def modes_inside(torch):
    seen = []

    def forward(ctx, x):
        seen.append((torch.is_grad_enabled(), x.requires_grad, x.is_leaf, (x * 2).requires_grad))
        return x * 1

    def backward(ctx, g):
        seen.append((torch.is_grad_enabled(), g.requires_grad))
        return g
    x = leaf(torch, 1.)
    function(torch, forward, backward).apply(x * 2).backward()
    torch.autograd.grad(function(torch, forward, backward).apply(x * 2), x, create_graph=True)
    return seen, torch.is_grad_enabled()


@program
def needs_input_grad(torch):
    seen = []

    def forward(ctx, *inputs):
        seen.append(ctx.needs_input_grad)
        return inputs[0] * inputs[1]

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, None, None
    f = function(torch, forward, backward)
    f.apply(leaf(torch, 1.), torch.ones(1), 3).backward()
    f.apply(torch.ones(1), torch.ones(1), 3)
    with torch.no_grad():
        f.apply(leaf(torch, 1.), torch.ones(1), 3)
    return seen


@program
def a_context_takes_any_attribute(torch):
    """`shape`, `dtype` and the like too, though steps of the tape have such attributes."""
    names = ("shape", "dtype", "time", "edges", "_storage", "saved", "plan", "hooks", "params", "function", "trace",
             "several", "node", "index")
    seen = []

    def forward(ctx, x):
        for i, name in enumerate(names):
            setattr(ctx, name, i)
        return x * 1

    def backward(ctx, g):
        seen.append([getattr(ctx, name) for name in names])
        return g
    x = leaf(torch, 1.)
    y = function(torch, forward, backward).apply(x)
    y.sum().backward()
    return seen, x.grad


@program
def a_step_shows_what_its_context_holds(torch):
    def forward(ctx, x):
        ctx.note = 3
        ctx.save_for_backward(x)
        return x * 1
    y = function(torch, forward, first).apply(leaf(torch, 1., 2.))
    return y.grad_fn.note, y.grad_fn.saved_tensors, y.grad_fn.needs_input_grad


@program
def set_up_apart(torch):
    seen = []

    def setup(ctx, inputs, output):
        seen.append((inputs, output))
        ctx.save_for_backward(inputs[0], output)
        ctx.k = inputs[1]

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x * ctx.k, None
    f = function(torch, lambda x, k=2: x * k, backward, setup_context=setup)
    x = leaf(torch, 1., 2.)
    f.apply(x, 3).sum().backward()
    f.apply(x).sum().backward()
    f.apply(x, k=5).sum().backward()
    return x.grad, [inputs[1] for inputs, _ in seen]


@program
def the_other_name_of_backward(torch):
    x = leaf(torch, 1.)
    function(torch, lambda ctx, x: x * 1, vjp=lambda ctx, g: g * 2).apply(x).backward()
    return x.grad


@program
def gradients_are_made_to_fit(torch):
    x, h = leaf(torch, 1., 2.), leaf(torch, 1., dtype=torch.float64)
    function(torch, lambda ctx, x: x * 1, lambda ctx, g: g.double()).apply(x).sum().backward()
    function(torch, lambda ctx, x: x * torch.ones(3, 1, dtype=torch.float64),
             lambda ctx, g: g).apply(h).sum().backward()
    return x.grad, h.grad


@program
def complex_gradients(torch):
    z = torch.tensor([1 + 2j], requires_grad=True)
    function(torch, lambda ctx, z: z * 1j, lambda ctx, g: g * -1j).apply(z).backward(torch.tensor([3 + 1j]))
    return z.grad


# ── several results ───────────────────────────────────────────────────────────────────────────────────────────────────


@program
def several_results(torch):
    x, seen = leaf(torch, 1., 2.), []
    a, b = function(torch, lambda ctx, x: (x * 2, x * 3), seen_by(lambda ctx, g, h: g * 2 + h * 3, seen)).apply(x)
    (a * b).sum().backward(retain_graph=True)
    a.sum().backward()
    return x.grad, seen, a.grad_fn is b.grad_fn, b.output_nr


@program
def unused_results_as_none(torch):
    x, seen = leaf(torch, 1., 2.), []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3
    function(torch, forward, seen_by(first, seen)).apply(x)[0].sum().backward()
    return x.grad, seen


@program
def results_that_are_no_tensors(torch):
    x, seen = leaf(torch, 1., 2.), []
    results = function(torch, lambda ctx, x: (x * 2, "text", None, 5), seen_by(first, seen)).apply(x)
    results[0].sum().backward()
    return results, x.grad, seen


@program
def results_of_integers(torch):
    x, seen = leaf(torch, 1., 2.), []
    y, n = function(torch, lambda ctx, x: (x * 2, x.long()), seen_by(first, seen)).apply(x)
    y.sum().backward()
    return n.requires_grad, x.grad, seen


@program
def results_marked_as_without_gradient(torch):
    x, seen = leaf(torch, 1., 2.), []

    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        return a, b
    a, b = function(torch, forward, seen_by(first, seen)).apply(x)
    (a * b).sum().backward()
    return b.requires_grad, b.grad_fn, x.grad, seen


@program
def a_list_is_one_result_and_no_tensor(torch):
    made = function(torch, lambda ctx, x: [x * 1, x * 2], first).apply(leaf(torch, 1.))
    return made, [t.requires_grad for t in made]


@program
def one_tensor_as_two_results(torch):
    x, seen = leaf(torch, 1.), []

    def forward(ctx, x):
        y = x * 2
        return y, y
    a, b = function(torch, forward, seen_by(lambda ctx, g, h: g + h, seen)).apply(x)
    (a + b).sum().backward()
    return a is b, seen, x.grad


# ── inputs returned, views, writes ────────────────────────────────────────────────────────────────────────────────────


@program
def an_input_returned_as_it_is(torch):
    x = leaf(torch, 1., 2.)
    y = function(torch, lambda ctx, x: x, lambda ctx, g: g * 3).apply(x)
    y.sum().backward()
    return y is x, y.data_ptr() == x.data_ptr(), y.requires_grad, y.is_leaf, x.grad, x.is_leaf


@program
def an_input_returned_and_written_to(torch):
    function(torch, lambda ctx, x: x, lambda ctx, g: g * 3).apply(leaf(torch, 1., 2.) * 1).add_(1)


@program
def an_input_returned_and_then_written_to_itself(torch):
    x = leaf(torch, 1., 2.) * 1
    y = function(torch, lambda ctx, x: x, lambda ctx, g: g * 3).apply(x)
    x.add_(1)
    return y * 2


@program
def a_view_returned(torch):
    x = leaf(torch, 1., 2.)
    y = function(torch, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2) * 3).apply(x)
    y.sum().backward()
    return y._is_view(), y.data_ptr() == x.data_ptr(), x.grad


@program
def a_view_returned_and_written_to(torch):
    function(torch, lambda ctx, x: x.view(-1), lambda ctx, g: g * 3).apply(leaf(torch, 1., 2.) * 1).add_(1)


@program
def a_view_returned_whose_base_is_written_to(torch):
    x = leaf(torch, 1., 2.) * 1
    y = function(torch, lambda ctx, x: x.view(-1), lambda ctx, g: g * 3).apply(x)
    x.add_(1)
    return y * 2


@program
def two_views_returned_and_written_to(torch):
    f = function(torch, lambda ctx, x: (x.view(-1), x.view(-1)), lambda ctx, g, h: g)
    f.apply(leaf(torch, 1., 2.) * 1)[0].add_(1)


@program
def fresh_results_may_be_written_to(torch):
    x = leaf(torch, 1., 2.)
    y = function(torch, lambda ctx, x: x * 1, lambda ctx, g: g * 3).apply(x)
    y.mul_(5)
    y.sum().backward()
    return y, x.grad


def doubled_in_place(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


@program
def an_input_changed_in_place(torch):
    x = leaf(torch, 1., 2.)
    h = x * 1
    y = function(torch, doubled_in_place, lambda ctx, g: g * 2).apply(h)
    (h * h).sum().backward()
    return y is h, y, x.grad, h.grad_fn.name()


@program
def an_input_without_gradient_changed_in_place(torch):
    def forward(ctx, x, w):
        ctx.mark_dirty(x)
        return x.mul_(w)
    x, w = torch.tensor([1., 2.]), leaf(torch, 3., 4.)
    function(torch, forward, lambda ctx, g: (g, g * 7)).apply(x, w)
    x.sum().backward()
    return x, x.requires_grad, w.grad


@program
def a_view_changed_in_place(torch):
    a = leaf(torch, 1., 2.)
    x = a * 1
    v = x[:1]
    y = function(torch, doubled_in_place, lambda ctx, g: g * 2).apply(v)
    (x * x).sum().backward()
    return y is v, x, v, a.grad


@program
def a_saved_input_changed_in_place_is_noticed(torch):
    x = leaf(torch, 1., 2.)
    h = x * 1
    y = h * h
    function(torch, doubled_in_place, lambda ctx, g: g * 2).apply(h)
    y.sum().backward()


# ── what is saved ─────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def a_saved_input_is_the_input(torch):
    x, seen = leaf(torch, 1., 2.), []

    def forward(ctx, x, w):
        ctx.save_for_backward(x, None, w)
        seen.append(ctx.saved_tensors)
        return x * w

    def backward(ctx, g):
        saved = ctx.saved_tensors
        seen.append((saved[0] is x, saved[1], saved[2] is w, saved[0].requires_grad))
        return g, None
    w = torch.ones(2)
    function(torch, forward, backward).apply(x, w).sum().backward()
    return seen


@program
def a_saved_input_was_written_to(torch):
    x = leaf(torch, 1., 2.) * 1
    y = square(torch).apply(x)
    x.add_(1)
    y.sum().backward()


@program
def a_saved_leaf_was_written_to(torch):
    x = leaf(torch, 1., 2.)
    y = square(torch).apply(x)
    with torch.no_grad():
        x.add_(1)
    y.sum().backward()


@program
def a_saved_result_was_written_to(torch):
    y = exponential(torch).apply(leaf(torch, 1., 2.))
    y.mul_(2)
    y.sum().backward()


@program
def the_second_time(torch):
    y = square(torch).apply(leaf(torch, 1., 2.)).sum()
    y.backward()
    y.backward()


@program
def the_second_time_without_anything_saved(torch):
    x = leaf(torch, 1., 2.)
    y = function(torch, lambda ctx, x: x * 1, lambda ctx, g: g).apply(x)
    y.sum().backward()
    y.sum().backward()
    return x.grad


@program
def what_was_saved_is_gone_after_backward(torch):
    y = square(torch).apply(leaf(torch, 1., 2.))
    y.sum().backward()
    return y.grad_fn.saved_tensors


@program
def saved_values_go_through_hooks(torch):
    x, seen = leaf(torch, 1., 2.), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.requires_grad) or t * 10, lambda t: t):
        y = square(torch).apply(x)
    y.sum().backward()
    return x.grad, seen


@program
def saved_inference_tensors(torch):
    with torch.inference_mode():
        w = torch.ones(2)

    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w
    function(torch, forward, first).apply(leaf(torch, 1., 2.), w)


@program
def differentiable_once(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
    x, v = leaf(torch, 1., 2.), leaf(torch, 1., 1.)
    y = function(torch, forward, backward).apply(x)
    g, = torch.autograd.grad(y, x, v, create_graph=True)
    assert g.tolist() == [2., 4.]
    g.sum().backward()


@program
def hooks_around_a_function(torch):
    x, seen = leaf(torch, 1., 2.), []
    a, b = function(torch, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x)
    a.grad_fn.register_prehook(lambda outputs: seen.append(("before", outputs)))
    a.grad_fn.register_hook(lambda inputs, outputs: seen.append(("after", inputs, outputs)) or (inputs[0] * 10,))
    (a + b).sum().backward()
    return seen, x.grad


test_programs = program.test()


def apply(torch, forward, backward=None, *others):
    return function(torch, forward, backward).apply(leaf(torch, 1., 2.), *others).sum().backward()


ERRORS = {
    "no forward": lambda torch: type("G", (torch.autograd.Function,), {}).apply(leaf(torch, 1.)),
    "no backward": lambda torch: apply(torch, lambda ctx, x: x * 1),
    "backward twice": lambda torch: function(torch, lambda ctx, x: x * 1, first,
                                             vjp=first).apply(leaf(torch, 1.)).backward(),
    "too few gradients": lambda torch: apply(torch, lambda ctx, x, k: x * k, lambda ctx, g: g, 3),
    "too many gradients": lambda torch: apply(torch, lambda ctx, x: x * 1, lambda ctx, g: (g, g)),
    "a gradient for a number": lambda torch: apply(torch, lambda ctx, x, k: x * k, lambda ctx, g: (g, g), 3),
    "a gradient of another shape": lambda torch: apply(torch, lambda ctx, x: x * 1, lambda ctx, g: torch.ones(3)),
    "a gradient with fewer axes": lambda torch: apply(torch, lambda ctx, x: x * 1, lambda ctx, g: torch.ones(())),
    "a number as gradient": lambda torch: apply(torch, lambda ctx, x: x * 1, lambda ctx, g: 3),
    "a list of gradients": lambda torch: apply(torch, lambda ctx, x: x * 1, lambda ctx, g: [g]),
    "a number saved": lambda torch: apply(torch, lambda ctx, x: ctx.save_for_backward(x, 3) or x * 1, first),
    "a changed input not returned": lambda torch: apply(torch, lambda ctx, x: ctx.mark_dirty(x) or x * 1, first),
    "a leaf changed": lambda torch: apply(torch, doubled_in_place, first),
}


@pytest.mark.parametrize("mistake", ERRORS.values(), ids=ERRORS.keys())
def test_mistakes_are_named_as_pytorch_names_them(mistake):
    assert isinstance(outcome(mistake, tensorgrad)[0], tuple), "no error was raised"
    same(mistake)


def test_a_function_has_no_instances():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        tensorgrad.autograd.Function()


def test_a_function_may_cross_devices(device):
    class Move(tensorgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.cpu() * 2, x.to(device) * 3

        @staticmethod
        def backward(ctx, g, h):
            assert g.device == "cpu" and h.device.type == device.type
            return (g.to(device) * 2 + h * 3).cpu()
    x = tensorgrad.tensor([1., 2.], device="cpu", requires_grad=True)
    a, b = Move.apply(x)
    (a.sum() + b.cpu().sum()).backward()
    assert x.grad.tolist() == [5., 5.] and x.grad.device == "cpu"
    x.grad = None
    a.sum().backward()
    assert x.grad.tolist() == [2., 2.]
