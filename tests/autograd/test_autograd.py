"""The tape and the engine: what backward and grad compute, when they refuse, and what they leave behind."""
import warnings

import pytest
from support import Programs

pytestmark = pytest.mark.usefixtures("device")
program = Programs()


def leaf(torch, *values, dtype=None):
    return torch.tensor(values, dtype=dtype or torch.float32, requires_grad=True)


# ── backward and grad ─────────────────────────────────────────────────────────────────────────────────────────────────


@program
def backward_of_a_scalar(torch):
    x = leaf(torch, 1., 2., 3.)
    (x * x * 2).sum().backward()
    return x.grad, x.grad.requires_grad, x.grad.is_leaf, x.grad.grad_fn


@program
def backward_of_a_vector(torch):
    x = leaf(torch, 1., 2., 3.)
    (x * x).backward(torch.tensor([1., -2., 5.]))
    return x.grad


@program
def backward_of_a_matrix_of_one_element(torch):
    x = leaf(torch, 3.)
    (x * x).reshape(1, 1).backward()
    return x.grad


@program
def backward_of_a_leaf(torch):
    x = leaf(torch, 3.)
    x.backward()
    x.backward(torch.tensor([5.]))
    return x.grad


@program
def gradients_add_up(torch):
    x = leaf(torch, 1., 2.)
    (x * 2).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    return first, x.grad, first is x.grad


@program
def gradients_add_up_in_place(torch):
    x = leaf(torch, 1., 2.)
    (x * 2).sum().backward()
    seen = x.grad.detach()
    (x * x).sum().backward()
    return seen


@program
def a_gradient_that_was_set_is_added_to(torch):
    x = leaf(torch, 1., 2.)
    x.grad = torch.tensor([10., 20.])
    (x * 2).sum().backward()
    return x.grad


@program
def a_gradient_that_requires_grad_goes_on_doing_so(torch):
    x = leaf(torch, 1., 2.)
    x.grad = torch.zeros(2, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad, x.grad.requires_grad


@program
def a_gradient_set_as_a_view(torch):
    x = torch.ones(2, 3, requires_grad=True)
    x.grad = torch.ones(2, 6)[:, ::2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * 2).sum().backward()
    return x.grad


@program
def the_same_input_twice(torch):
    x = leaf(torch, 1., 2.)
    y = (x * x).sum()
    y.backward(inputs=[x, x], retain_graph=True)
    return torch.autograd.grad(y, [x, x]), x.grad


@program
def several_roots(torch):
    x = leaf(torch, 1., 2.)
    a, b = x * 2, x * x
    torch.autograd.backward([a.sum(), b], [None, torch.tensor([1., 10.])])
    return x.grad


@program
def the_same_root_twice(torch):
    x = leaf(torch, 1., 2.)
    y = (x * x).sum()
    torch.autograd.backward([y, y])
    return x.grad


@program
def a_root_inside_another_ones_graph(torch):
    x = leaf(torch, 1., 2.)
    h = x * 3
    torch.autograd.backward([h, (h * h).sum()], [torch.tensor([1., 1.]), None])
    return x.grad


@program
def a_leaf_among_the_roots(torch):
    x = leaf(torch, 1., 2.)
    torch.autograd.backward([x, (x * x).sum()], [torch.tensor([5., 7.]), None])
    return x.grad


@program
def backward_towards_chosen_inputs(torch):
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    h = x * w
    (h * h).sum().backward(inputs=[w])
    return x.grad, w.grad


@program
def backward_towards_one_input_and_a_step(torch):
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    h = x * w
    h.retain_grad()
    (h * h).sum().backward(inputs=(h, x))
    return x.grad, w.grad, h.grad


@program
def grad_of_several(torch):
    x, w = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    return torch.autograd.grad([(x * w).sum(), (x * x).sum()], [x, w]), x.grad


@program
def grad_with_upstream_gradients(torch):
    x = leaf(torch, 1., 2.)
    return torch.autograd.grad([x * 2, x * x], x, grad_outputs=[torch.tensor([1., 2.]), torch.tensor([10., 20.])])


@program
def grad_of_itself(torch):
    x = leaf(torch, 3.)
    y = x * x
    return torch.autograd.grad(x, x), torch.autograd.grad(y, y), torch.autograd.grad(y, [y, x])


@program
def grad_towards_a_step_leaves_what_lies_before_it(torch):
    x = leaf(torch, 3.)
    h = x * x
    g = torch.autograd.grad(h * h, h)
    h.backward()
    return g, x.grad


@program
def grad_towards_a_step_and_what_it_came_from(torch):
    x = leaf(torch, 3.)
    h = x * x
    return torch.autograd.grad(h * h * h, [x, h])


@program
def the_old_name_of_upstream_gradients(torch):
    x = leaf(torch, 1., 2.)
    torch.autograd.backward(x * 2, grad_variables=torch.tensor([1., 3.]))
    return x.grad


@program
def variables(torch):
    x = torch.ones(2)
    v = torch.autograd.Variable(x, requires_grad=True)
    (v * 2).sum().backward()
    return (v, v.grad, x.requires_grad, v.data_ptr() == x.data_ptr(), isinstance(x, torch.autograd.Variable),
            isinstance(3, torch.autograd.Variable),
            torch.autograd.Variable(v * 2), torch.autograd.Variable().shape)


@program
def unused_inputs(torch):
    x, w, v = leaf(torch, 1.), leaf(torch, 2., 3.), leaf(torch, 2., dtype=torch.float64)
    y = (x * x).sum()
    return (torch.autograd.grad(y, [x, w], allow_unused=True, retain_graph=True),
            torch.autograd.grad(y, [w, x, v], materialize_grads=True))


@program
def an_unused_input_is_an_error(torch):
    x, w = leaf(torch, 1.), leaf(torch, 2.)
    return torch.autograd.grad((x * x).sum(), [x, w])


@program
def batched_upstream_gradients(torch):
    x = leaf(torch, 1., 2., 3.)
    y = x * x
    return torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)


@program
def batched_upstream_gradients_of_several(torch):
    x, w, u = leaf(torch, 1., 2.), leaf(torch, 3., 4.), leaf(torch, 5.)
    g = torch.tensor([[1., 0.], [0., 1.], [1., 1.]])
    return torch.autograd.grad([x * w, x * x], [x, w, u], [g, 10 * g], is_grads_batched=True, allow_unused=True)


@program
def edges_in_place_of_tensors(torch):
    x = leaf(torch, 1., 2.)
    a, b = (x * x).unbind()
    edge = torch.autograd.graph.get_gradient_edge
    return (torch.autograd.grad(a * b, edge(b), retain_graph=True),
            torch.autograd.grad(edge(a * b), x, retain_graph=True),
            edge(b).output_nr, edge(b).node is b.grad_fn, edge(x).output_nr, len(edge(x)))


@program
def nothing_saved_means_nothing_to_free(torch):
    x = leaf(torch, 1.)
    y = (x + x).sum()
    y.backward()
    y.backward()
    return x.grad


@program
def the_graph_may_be_kept(torch):
    x = leaf(torch, 2.)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def the_second_time(torch):
    x = leaf(torch, 2.)
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def the_second_time_through_a_shared_part(torch):
    x = leaf(torch, 2.)
    h = x * x
    h.sum().backward()
    (h * 2).sum().backward()


@program
def parts_not_on_the_way_are_not_freed(torch):
    x, w = leaf(torch, 2.), leaf(torch, 3.)
    h = x * x
    torch.autograd.grad((h * w).sum(), w)
    h.sum().backward()
    return x.grad


@program
def no_backward_through_what_was_freed_with_create_graph(torch):
    x = leaf(torch, 2.)
    y = (x * x).sum()
    torch.autograd.grad(y, x)
    torch.autograd.grad(y, x, create_graph=True)


# ── higher derivatives ────────────────────────────────────────────────────────────────────────────────────────────────


@program
def three_derivatives(torch):
    x = leaf(torch, 0.5, 2., dtype=torch.float64)
    y = (torch.sin(x) * torch.exp(x) / x).sum()
    found = []
    for _ in range(3):
        g, = torch.autograd.grad(y, x, create_graph=True)
        found.append(g)
        y = g.sum()
    return found, [g.requires_grad for g in found]


@program
def backward_with_create_graph(torch):
    x = leaf(torch, 2.)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x ** 3).sum().backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.sum().backward()
    return g, x.grad


@program
def a_gradient_penalty(torch):
    x, w = leaf(torch, 1., 2., dtype=torch.float64), leaf(torch, 0.5, -1., dtype=torch.float64)
    y = torch.tanh(x * w).sum()
    g, = torch.autograd.grad(y, x, create_graph=True)
    (y + (g * g).sum()).backward()
    return x.grad, w.grad


@program
def derivatives_through_matrix_products(torch):
    a = torch.tensor([[1., 2.], [3., 4.]], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([[0.5], [-1.]], dtype=torch.float64, requires_grad=True)
    g, = torch.autograd.grad(((a @ b) ** 3).sum(), a, create_graph=True)
    return torch.autograd.grad((g * g).sum(), [a, b])


@program
def derivatives_with_upstream_gradients_that_need_some(torch):
    x, v = leaf(torch, 1., 2.), leaf(torch, 3., 4.)
    g, = torch.autograd.grad(x ** 3, x, v, create_graph=True)
    return torch.autograd.grad(g.sum(), [x, v])


@program
def hessian_vector_product(torch):
    x = leaf(torch, 1., 2., dtype=torch.float64)
    g, = torch.autograd.grad((x ** 3).sum() + x[0] * x[1], x, create_graph=True)
    return torch.autograd.grad(g, x, torch.tensor([1., -1.], dtype=torch.float64))


@program
def derivatives_through_several_results(torch):
    x = leaf(torch, 3., 1., 2.)
    values, indices = (x * x).sort()
    g, = torch.autograd.grad((values * torch.tensor([1., 2., 3.]) * values).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x), indices


# ── the shape of the graph ────────────────────────────────────────────────────────────────────────────────────────────


@program
def diamonds(torch):
    x = leaf(torch, 1.5)
    a = x * 2
    b, c = a * a, a + 1
    d = b * c
    (d * a).sum().backward()
    return x.grad


@program
def a_leaf_used_many_times(torch):
    x = leaf(torch, 1.5, 2.)
    y = x * x * x + x - x / x + x.exp()
    y.sum().backward()
    return x.grad


@program
def many_diamonds_one_after_the_other(torch):
    x = leaf(torch, 1.)
    y = x
    for _ in range(30):    # 2³⁰ ways, 60 steps
        y = y * 0.5 + y * 0.5
    y.sum().backward()
    return x.grad


@program
def names_and_edges_of_steps(torch):
    """The digit at the end of PyTorch's names counts overloads, which are not ours."""
    def names(fn, depth=3):
        return fn.name().rstrip("0123456789"), [(names(f, depth - 1), i) for f, i in fn.next_functions if depth and f]
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    made = [x + x, x - 1, x * w.t(), x / 2, x @ w, x ** 2, 2 ** x, -x, x.exp(), x.log(), x.sqrt(), x.abs(), x.sin(),
            x.tanh(), x.sigmoid(), x.relu(), x.sum(), x.sum(0), x.mean(), x.mean(1), x.max(), x.max(0).values,
            x.min(1).values, x.prod(), x.reshape(3, 2), x.t(), x.transpose(0, 1), x.permute(1, 0), x.unsqueeze(0),
            x.squeeze(), x[0], x[0:1], x[[0, 1]], x.expand(4, 2, 3), x.clone(), torch.cat([x, x]), torch.stack([x, x]),
            x.unbind()[1], x.chunk(2)[0], x.split(1)[1], torch.where(x > 0, x, x), x.clamp(0, 1), x.clamp(min=0),
            x.softmax(1), x.log_softmax(1), x.double(), x.var(), x.std(0), x.norm(), x.cumsum(0), x.sort().values,
            x.gather(0, torch.zeros(1, 3, dtype=torch.int64)), x.masked_fill(x > 0, 1.),
            torch.maximum(x, x), x.flip(0), x.rsqrt(), x.cos(), x.log1p(), x.expm1(), x.reciprocal(), x.diagonal(),
            x.tril(), x.roll(1, 0), x.logsumexp(0), x.amax(0), x.T, x.square(), x.detach() * x, x * 2., 1. - x,
            x.floor(), torch.atan2(x, x)]
    return [names(t.grad_fn) for t in made]


@program
def operands_without_gradient(torch):
    x, w = leaf(torch, 1., 2.), torch.ones(2)
    return [[f is None for f, _ in y.grad_fn.next_functions]
            for y in (x * 2, x + w, w - x, x / w, x.exp(), x @ w, torch.cat([w, x]))]


@program
def numbers_of_results(torch):
    x = leaf(torch, 1., 2.)
    a, b = x.unbind()
    return a.output_nr, b.output_nr, a.grad_fn is b.grad_fn, (a * b).grad_fn.next_functions[1][1], x.output_nr


@program
def the_end_of_the_tape(torch):
    x = leaf(torch, 1., 2.)
    end = (x * 2).grad_fn.next_functions[0][0]
    return end.name(), end.variable is x, end.next_functions, (x * 2).grad_fn.next_functions[1], x.grad_fn


@program
def notes_on_a_step(torch):
    y = leaf(torch, 1.) * 2
    y.grad_fn.metadata["seen"] = 3
    return y.grad_fn.metadata, y.grad_fn == y.grad_fn, hash(y.grad_fn) == hash(y.grad_fn), y.grad_fn is y.grad_fn


# ── dtypes and broadcasting ───────────────────────────────────────────────────────────────────────────────────────────


@program
def unlike_dtypes(torch):
    x, d = leaf(torch, 1., 2.), leaf(torch, 3., 4., dtype=torch.float64)
    n, s = torch.tensor([5, 6]), torch.tensor(7., dtype=torch.float64, requires_grad=True)
    y = x * n * d + x * s + torch.tensor([True, False]) * d
    y.sum().backward()
    return y, (x * s), x.grad, d.grad, s.grad


@program
def half_precision(torch):
    x, h = leaf(torch, 1., 2.), leaf(torch, 3., 4., dtype=torch.float16)
    y = (x * h).half() * h
    y.backward(torch.tensor([1., 0.5], dtype=torch.float16))
    return y, x.grad, h.grad


@program
def casts_in_the_graph(torch):
    x = leaf(torch, 1.5, 2.5)
    y = x.double() * 2
    z = y.float() + x.half().float()
    z.sum().backward()
    return x.grad, y, z


@program
def integers_are_off_the_tape(torch):
    x = leaf(torch, 1.5, 2.5)
    return (x.long().requires_grad, (x > 1).requires_grad, x.argmax().requires_grad, x.sort().indices.requires_grad,
            x.long())


@program
def an_upstream_gradient_of_another_dtype(torch):
    x = leaf(torch, 1., 2.)
    (x * 3).backward(torch.tensor([1, 2]), retain_graph=True)
    (x * 3).backward(torch.tensor([1., 2.], dtype=torch.float64))
    return x.grad


@program
def broadcast_operands(torch):
    a = torch.tensor([[1.], [2.]], requires_grad=True)
    b = torch.tensor([3., 4., 5.], requires_grad=True)
    c = torch.tensor(2., requires_grad=True)
    y = (a * b + c) * torch.ones(2, 2, 3)
    (y * torch.arange(12.).reshape(2, 2, 3)).sum().backward()
    return a.grad, b.grad, c.grad


@program
def operands_of_length_one_and_none(torch):
    a, b, e = (torch.ones(1, 1, requires_grad=True), torch.ones((), requires_grad=True),
               torch.ones(0, 3, requires_grad=True))
    (a * b + a).sum().backward()
    (e * a).sum().backward()
    return a.grad, b.grad, e.grad


# ── complex numbers ───────────────────────────────────────────────────────────────────────────────────────────────────


@program
def the_convention_for_complex_numbers(torch):
    z = torch.tensor([1 + 2j, -3j], requires_grad=True)
    y = z * z * (2 - 1j) + z.conj() * 1j
    y.backward(torch.tensor([1 + 1j, 2.]))
    return z.grad


@program
def real_functions_of_complex_numbers(torch):
    z = torch.tensor([1 + 2j, -3j + 1], requires_grad=True)
    (z.abs().sum() + (z * z.conj()).real.sum() + z.imag.sum() + z.angle().sum()).backward()
    return z.grad


@program
def holomorphic_functions(torch):
    z = torch.tensor([1 + 2j, -3j + 1], dtype=torch.complex128, requires_grad=True)
    for f in (torch.exp, torch.sin, torch.log, torch.sqrt, torch.tanh, torch.reciprocal, lambda z: z ** 3,
              lambda z: 1j / z):
        f(z).backward(torch.tensor([1 - 1j, 2j], dtype=torch.complex128))
    return z.grad


@program
def real_operands_among_complex_ones(torch):
    x, z = leaf(torch, 1., 2.), torch.tensor([1 + 2j, -3j], requires_grad=True)
    (x * z * 1j + x).backward(torch.tensor([1 + 1j, 2.]))
    return x.grad, z.grad


@program
def second_derivatives_of_complex_functions(torch):
    z = torch.tensor([1 + 2j, -3j + 1], dtype=torch.complex128, requires_grad=True)
    g, = torch.autograd.grad((z * z * z).abs().sum(), z, create_graph=True)
    return g, torch.autograd.grad(g, z, torch.tensor([1 + 1j, 2.], dtype=torch.complex128))


# ── detach and requires_grad ──────────────────────────────────────────────────────────────────────────────────────────


@program
def detach(torch):
    x = leaf(torch, 1., 2.)
    d = (x * 2).detach()
    y = d * x
    y.sum().backward()
    return d.requires_grad, d.is_leaf, x.grad, x.detach().data_ptr() == x.data_ptr()


@program
def detach_in_place(torch):
    x = leaf(torch, 1., 2.)
    h = x * 2
    same = h.detach_() is h
    return same, h.requires_grad, h.is_leaf, h.grad_fn


@program
def detach_a_leaf_in_place(torch):
    x = leaf(torch, 1., 2.)
    return x.detach_().requires_grad


@program
def switching_requires_grad(torch):
    x = torch.ones(2)
    found = [x.requires_grad, x.requires_grad_() is x, x.requires_grad]
    x.requires_grad = False
    found += [x.requires_grad, x.requires_grad_(False).requires_grad, x.requires_grad_(True).requires_grad]
    y = x * 2
    return [*found, y.requires_grad, y.requires_grad_().requires_grad, y.is_leaf,
            torch.ones(1, dtype=torch.int64).requires_grad_(False)]


@program
def a_leaf_that_no_longer_wants_gradients(torch):
    x = leaf(torch, 1., 2.)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    found = [x.grad]
    x.requires_grad_(True)
    (x * 3).sum().backward()
    return [*found, x.grad]


@program
def is_leaf(torch):
    x = leaf(torch, 1.)
    return [t.is_leaf for t in (x, x * 2, x.detach(), torch.ones(1), torch.ones(1) * 2, x.data, x.clone(), x.view(1),
                                x.detach() * 2)]


@program
def retain_grad(torch):
    x = leaf(torch, 1., 2.)
    h = x * 3
    h.retain_grad()
    h.retain_grad()
    x.retain_grad()
    (h * h).sum().backward(retain_graph=True)
    first = h.grad
    (h * h).sum().backward()
    return h.retains_grad, x.retains_grad, first, h.grad, x.grad, (h * 2).retains_grad


@program
def the_gradient_of_a_step_is_not_kept(torch):
    h = leaf(torch, 1., 2.) * 3
    h.sum().backward()
    return h.grad


@program
def data_points_elsewhere(torch):
    x = leaf(torch, 1., 2.)
    x.data = torch.tensor([5., 6., 7.])
    (x * x).sum().backward()
    return x, x.grad, x.data.requires_grad, x.is_leaf
