"""Checkpointed parts of models beside PyTorch: the same gradients, random numbers, errors, and how often each part
runs.
"""
import importlib
from functools import partial

import pytest
from nn_oracle import raising
from support import DEVICE, Programs, cpu_only

import tensorgrad

program = Programs()


def model(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 5), nn.Sigmoid(), nn.Linear(5, 3),
                         nn.GELU(), nn.Linear(3, 2))


def gradients(module, *tensors):
    return [t.grad for t in (*module.parameters(), *tensors)]


def weighted(out, torch):
    return (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum()


@program
def a_part_of_a_model(torch):
    results = []
    for reentrant in (True, False):
        net = model(torch)
        x = torch.randn(3, 4, requires_grad=True)
        h = torch.utils.checkpoint.checkpoint(net[:4], x, use_reentrant=reentrant)
        out = torch.utils.checkpoint.checkpoint(net[4:], h, use_reentrant=reentrant)
        weighted(out, torch).backward()
        results.append((out, gradients(net, x), torch.rand(1)))
    return results


@program
def segments(torch):
    results = []
    for count in (1, 2, 3, 8):
        for reentrant in (True, False):
            net = model(torch)
            x = torch.randn(3, 4, requires_grad=True)
            out = torch.utils.checkpoint.checkpoint_sequential(net, count, x, use_reentrant=reentrant)
            weighted(out, torch).backward()
            results.append((out, gradients(net, x)))
    return results


@program
def random_numbers_are_not_kept_when_told_so(torch):
    results = []
    for preserve in (True, False):
        for reentrant in (True, False):
            x = torch.ones(20, requires_grad=True)
            out = torch.utils.checkpoint.checkpoint(lambda x: torch.nn.functional.dropout(x * x, 0.5), x,
                                                    use_reentrant=reentrant,
                                                    preserve_rng_state=preserve)
            out.sum().backward()
            results.append((out, x.grad, torch.rand(2)))
    return results


@program
def nested(torch):
    calls = []
    checkpoint = torch.utils.checkpoint.checkpoint

    def inner(x, name):
        calls.append(name)
        return (x.sin() * x).exp().cos()

    def middle(x):
        calls.append("middle")
        return checkpoint(inner, checkpoint(inner, x.tanh(), "first", use_reentrant=False), "second",
                          use_reentrant=False).sin()
    x = torch.tensor([0.3, -0.7], requires_grad=True)
    out = checkpoint(middle, x, use_reentrant=False)
    out.backward(torch.tensor([1.0, 3.0]))
    return calls, out, x.grad


@program
def how_far_the_second_run_goes(torch):
    counts = []
    utils = torch.utils.checkpoint
    for early in (True, False):
        for setting in (None, True, False):
            seen = []

            def run(x, seen=seen):
                y = x.exp()
                seen.append("exp")
                z = y * 2
                seen.append("times")
                return z
            x = torch.tensor(0.5, requires_grad=True)
            if setting is None:
                out = utils.checkpoint(run, x, use_reentrant=False, early_stop=early)
            else:
                with utils.set_checkpoint_early_stop(setting):
                    out = utils.checkpoint(run, x, use_reentrant=False, early_stop=early)
            out.backward()
            counts.append((seen, x.grad))
    return counts


@program
def several_backwards(torch):
    calls = []

    def run(x, scale=1.0):
        calls.append(1)
        return (x.exp() * scale).sin()
    x = torch.tensor([0.2, 0.4], requires_grad=True)
    out = torch.utils.checkpoint.checkpoint(run, x, use_reentrant=False, scale=3.0)
    first, = torch.autograd.grad(out.sum(), x, retain_graph=True)
    second, = torch.autograd.grad(out.sum(), x, create_graph=True)
    third, = torch.autograd.grad(second.sum(), x)
    return len(calls), first, second, third


@program
def backward_inside(torch):
    def run(x):
        y = x.sin()
        z = y.cos()
        g, = torch.autograd.grad(z, x, retain_graph=True)
        return g * z
    results = []
    for early in (True, False):
        x = torch.tensor(0.8, requires_grad=True)
        torch.utils.checkpoint.checkpoint(run, x, use_reentrant=False, early_stop=early).backward()
        results.append(x.grad)
    return results


@program
def precision(torch):
    """Backward runs outside of the autocast that the part ran in, and inside of another."""
    results = []
    for reentrant in (True, False):
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        x = torch.randn(3, 4, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            with torch.autocast("cpu", enabled=False):
                h = torch.utils.checkpoint.checkpoint(net[:2], x, use_reentrant=reentrant)
            out = torch.utils.checkpoint.checkpoint(net[2], h, use_reentrant=reentrant)
        out.float().square().sum().backward()
        results.append((out.dtype == torch.bfloat16, h.dtype == torch.float32,
                        net[2].weight.grad.dtype == torch.float32,
                        [round(float(g.double().abs().sum()), 1) for g in gradients(net, x)]))
    return results


@program
def contexts(torch):
    import contextlib
    log = []

    @contextlib.contextmanager
    def noted(name):
        log.append(name)
        yield
        log.append(f"after {name}")
    x = torch.tensor(0.8, requires_grad=True)
    out = torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False,
                                            context_fn=lambda: (noted("forward"), noted("again")))
    out.sin().backward()
    return log, x.grad


@program
def structures_and_no_grad(torch):
    checkpoint = torch.utils.checkpoint.checkpoint
    x = torch.tensor([0.8, 0.1], requires_grad=True)
    out = checkpoint(lambda d, flag: {"a": d["x"].exp(), "b": [flag]}, {"x": x}, True, use_reentrant=False)
    out["a"].sum().backward()
    with torch.no_grad():
        silent = checkpoint(torch.exp, x, use_reentrant=False)
    several = checkpoint(lambda x, y: (x.exp(), y, 3, x.detach()), x, 5, use_reentrant=True)
    several[0].sum().backward()
    return out["b"], x.grad, silent.requires_grad, [getattr(s, "requires_grad", s) for s in several]


@program
def what_is_refused(torch):
    utils = torch.utils.checkpoint
    checkpoint = utils.checkpoint
    x = torch.ones(2, requires_grad=True)

    def grad_through_reentrant():
        return torch.autograd.grad(checkpoint(torch.exp, x, use_reentrant=True).sum(), x)

    def no_gradient_inside():
        checkpoint(lambda x: x.detach() * 2, x, use_reentrant=True).sum().backward()

    def written_to():
        y = torch.ones(2, requires_grad=True) * 1
        out = checkpoint(torch.exp, y, use_reentrant=False)
        y.add_(1)
        out.sum().backward()
    return [raising(action) for action in (
        lambda: checkpoint(torch.exp, x),
        lambda: utils.checkpoint_sequential([torch.exp], 1, x),
        lambda: checkpoint(torch.exp, torch.ones(2), use_reentrant=True).requires_grad,
        lambda: checkpoint(torch.exp, x, use_reentrant=True, scale=1),
        lambda: checkpoint(torch.exp, x, use_reentrant=True, debug=True),
        lambda: checkpoint(torch.exp, x, use_reentrant=False, determinism_check="all"),
        lambda: checkpoint(torch.exp, x, use_reentrant=False, debug=True, context_fn=lambda: None),
        lambda: checkpoint(torch.exp, x, use_reentrant=False, nothing=1),
        lambda: utils.checkpoint_sequential([torch.exp], 1, x, use_reentrant=False, more=1),
        lambda: utils.detach_variable([x]), grad_through_reentrant, no_gradient_inside)]


@program
def runs_that_differ(torch):
    checkpoint = torch.utils.checkpoint.checkpoint

    def tried(*functions, **settings):
        waiting = list(functions)
        x = torch.rand(2, requires_grad=True)
        return raising(lambda: checkpoint(lambda x: waiting.pop(0)(x), x, use_reentrant=False,
                                          **settings).sum().backward())
    fewer, more, other = (lambda x: x.sin()), (lambda x: x.sin().cos().exp()), (lambda x: torch.cat((x, x)).sin())
    return [tried(fewer, more, early_stop=False), tried(more, fewer), tried(fewer, other),
            tried(fewer, fewer, determinism_check="none"),
            tried(more, fewer, debug=True), tried(fewer, fewer)]


def both_ways(program):
    """The results of `program(torch, checkpoint)` with reentrance and without."""
    def both(torch):
        return [program(torch, partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant))
                for reentrant in (True, False)]
    both.__name__ = program.__name__
    return both


@program
@both_ways
def each_within_the_other(torch, outer):
    def run(reentrant):
        inner, calls = partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant), []
        x = torch.tensor([0.3, 0.5], requires_grad=True)
        out = outer(lambda x: inner(lambda y: (calls.append(1), y.sin().exp())[1], x * x).cos(), x)
        out.sum().backward(retain_graph=True)
        return len(calls), x.grad, raising(lambda: (out * 1).sum().backward()), len(calls)
    return run(True), run(False)


@program
@both_ways
def what_goes_wrong_inside(torch, checkpoint):
    """In the first run, in the second run; afterwards all works as before."""
    def run(failing):
        x, calls = torch.ones(2, requires_grad=True), []

        def part(x):
            y = x.exp()
            calls.append(1)
            if len(calls) == failing:
                raise KeyError("inside")
            return y.sin()
        error = raising(lambda: checkpoint(part, x).sum().backward())
        (x.exp() * 2).sum().backward()
        return error, x.grad, torch.rand(2), torch.is_grad_enabled()
    return run(1), run(2)


@program
@both_ways
def results_of_all_kinds(torch, checkpoint):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    out = checkpoint(lambda x: (x.exp(), x > 1, x.sin(), None, "a", x.detach() * 2), x)
    out[2].sum().backward()

    def kind(make):
        return raising(lambda: type(checkpoint(lambda x: make(x.exp()), x)).__name__)
    return (x.grad, out[1], [getattr(part, "requires_grad", part) for part in out], kind(lambda x: {"a": x}),
            kind(lambda x: [x]), kind(lambda x: None))


@program
@both_ways
def steps_inside(torch, checkpoint):
    """Writes in place, views, hooks, blocks without gradients, modules with buffers."""
    called = []

    def part(x):
        y = x * 3
        y.mul_(2)
        y[0] = 3.0
        z = y.view(2, 2)
        z += 1
        if z.requires_grad:
            z.register_hook(lambda g: (called.append("hook"), g * 2)[1])
        with torch.no_grad():
            total = x.sum()
        return (y * y * total).sin() + z.flatten()
    base = torch.arange(6.0, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        checkpoint(part, base.view(2, 3)[:, 1:].flatten() / 7).backward(torch.arange(1.0, 5))
    norm = torch.nn.BatchNorm1d(3)
    x = torch.arange(12.0).reshape(4, 3).square().requires_grad_()
    weighted(checkpoint(lambda x: norm(x).tanh(), x), torch).backward()
    return base.grad, called, norm.bias.grad, list(norm.buffers())


@program
def parameters_alone(torch):
    net, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
    checkpoint = torch.utils.checkpoint.checkpoint
    out = checkpoint(net, x, use_reentrant=False)
    out.square().sum().backward()
    return out.grad_fn.name(), net.weight.grad, checkpoint(net, x, use_reentrant=True).requires_grad


@program
@both_ways
def saved_by_a_function_of_ones_own(torch, checkpoint):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[1]

    class Twice(Once):
        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[1] * ctx.saved_tensors[1]
    def run(function):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        return raising(lambda: checkpoint(lambda x: function.apply(x).sin(), x).sum().backward()), x.grad
    return run(Once), run(Twice)


@program
def modes_around(torch):
    """The second run is made in the modes of backward, with the hooks of the first run."""
    names, hooks = [], []

    class Names(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen = torch.autograd.graph.saved_tensors_hooks(lambda t: (hooks.append("pack"), t)[1],
                                                    lambda t: (hooks.append("unpack"), t)[1])
    with Names(), seen:
        out = torch.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
    out.sum().backward()
    with torch.autograd.graph.disable_saved_tensors_hooks("none of those"):
        refused = raising(lambda: torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False))
    return [name for name in names if name in ("exp", "sin")], hooks, refused


@program
def wrong_contexts(torch):
    import contextlib
    x = torch.ones(2, requires_grad=True)

    def fails(x):
        raise ValueError("inside")

    def tried(run, *contexts):
        return raising(lambda: torch.utils.checkpoint.checkpoint(run, x, use_reentrant=False,
                                                                 context_fn=lambda: contexts))
    return (tried(fails, contextlib.suppress(ValueError), contextlib.nullcontext()), tried(torch.exp),
            tried(torch.exp, 1, 2))


@program
def groups_of_backwards(torch):
    utils = torch.utils.checkpoint
    calls, x = [], torch.tensor([0.1, 0.2], requires_grad=True)
    a, b = utils.checkpoint(lambda x: (calls.append(1), x.sin().exp(), x.cos().exp())[1:], x, use_reentrant=False)
    with utils.GraphExecGroup():
        a.sum().backward(retain_graph=True)
        b.sum().backward(retain_graph=True)
        inside = (len(calls), raising(lambda: a.sum().backward()),
                  raising(lambda: utils.GraphExecGroup().__enter__())[1][:51])
    a.sum().backward()
    return inside, len(calls), x.grad


@program
def names(torch):
    utils = torch.utils.checkpoint
    return (sorted(utils.__all__), [(policy.name, policy.value) for policy in utils.CheckpointPolicy],
            utils.get_device_states(torch.ones(2), [3]),
            utils.set_device_states([], []),
            utils.SelectiveCheckpointContext(is_recompute=False, op_output=3).op_output)


# ── some functions are not run again ──────────────────────────────────────────────────────────────────────────────────


def aten(torch):
    return importlib.import_module(f"{torch.__name__}._ops").ops.aten


def selecting(torch, run, *args, which, mutation=False, **settings):
    contexts = lambda: torch.utils.checkpoint.create_selective_checkpoint_contexts(which, mutation)
    return torch.utils.checkpoint.checkpoint(run, *args, use_reentrant=False, context_fn=contexts, **settings)


@program
def selected_functions(torch):
    ops, policy = aten(torch), torch.utils.checkpoint.CheckpointPolicy
    x, w, net = torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True), torch.nn.Linear(4, 4)

    def run(x):
        return torch.sigmoid(net((x @ w).tanh() @ w).relu()).exp() * x + x.sort(1)[0]
    results = []
    for which in ([ops.mm.default], [ops.sigmoid.default, ops.addmm.default],
                  [ops.exp.default, ops.sort.default, ops.mul.Tensor], [],
                  lambda context, op, *args, **kwargs: True, lambda context, op, *args, **kwargs: policy.MUST_RECOMPUTE,
                  lambda context, op, *args, **kwargs: policy.PREFER_SAVE
                  if op is ops.mm.default and not context.is_recompute else policy.PREFER_RECOMPUTE):
        for early in (True, False):
            x.grad = w.grad = net.weight.grad = None
            out = selecting(torch, run, x, which=which, early_stop=early)
            weighted(out, torch).backward()
            results.append((out, x.grad, w.grad, net.weight.grad))
    return results


@program
def selected_inside_others(torch):
    x = torch.randn(3, 3, requires_grad=True)
    dropout, checkpoint = torch.nn.functional.dropout, torch.utils.checkpoint.checkpoint
    inner = lambda x: dropout((x @ x).sin(), 0.4).exp()
    out = selecting(torch, lambda x: dropout(checkpoint(inner, (x @ x).tanh(), use_reentrant=False).cos(), 0.3) * x, x,
                    which=[aten(torch).mm.default])
    out.sum().backward()
    return out, x.grad


@program
def selected_wrongly(torch):
    def refused(which):
        return raising(lambda: torch.utils.checkpoint.create_selective_checkpoint_contexts(which))

    def written(mutation):
        kept, x = [], torch.randn(3, 3, requires_grad=True)
        out = selecting(torch, lambda x: (kept.append(x @ x), kept[-1].sin().exp())[1], x,
                        which=[aten(torch).mm.default], mutation=mutation)
        kept[0].detach().mul_(2)
        return raising(lambda: out.sum().backward(retain_graph=True)), x.grad, raising(lambda: out.sum().backward())
    return refused(3), refused([3]), refused([aten(torch).mm])[0], refused(None), written(False), written(True)


@cpu_only
@pytest.mark.parametrize("kept", [False, True])
def test_a_selected_function_is_not_computed_again(kept):
    from tensorgrad.core.mode import mode
    steps = []
    watch = lambda node: steps.append(node.name())
    x = tensorgrad.ones(3, 3, requires_grad=True)
    out = selecting(tensorgrad, lambda x: (x @ x).exp().sin(), x, which=[tensorgrad.matmul, aten(tensorgrad).mm.default]
                    if kept else []).sum()
    mode.watch(watch)
    try:
        out.backward()
    finally:
        mode.watch(watch, False)
    assert steps.count("MmBackward0") == (not kept) and "ExpBackward0" in steps


test_programs = program.test(rtol=1e-5, atol=1e-6)


def held(tensor):
    """The arrays that the tape behind a tensor keeps for backward, by their memory."""
    todo, seen, arrays = [tensor.grad_fn], set(), {}
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [e for e, _ in node.next_functions]
        saved = getattr(node, "saved", ())
        for value in saved if isinstance(saved, tuple) else getattr(saved, "needed", ()):
            value = getattr(value, "tensor", value)
            array = getattr(value, "array", value)
            if hasattr(array, "nbytes"):
                arrays[array.__array_interface__["data"][0]] = array.nbytes
    return arrays


@cpu_only
def test_less_is_kept():
    """Of twelve layers, a checkpoint keeps its argument alone; all that a backward at a time needs is one of its
    segments.
    """
    nn = tensorgrad.nn
    net = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(16, 16), nn.Tanh())))
    weights = {p.data_ptr() for p in net.parameters()}
    x = tensorgrad.ones(50, 16, requires_grad=True)
    size = x.nbytes

    def activations(out):
        return sum(nbytes for address, nbytes in held(out).items() if address not in weights) // size
    plain, parted = net(x), tensorgrad.utils.checkpoint.checkpoint_sequential(net, 4, x, use_reentrant=False)
    whole = tensorgrad.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
    assert (activations(plain), activations(parted), activations(whole)) == (13, 4, 0)
    assert (plain == whole).all() and (plain == parted).all()


@cpu_only
def test_memory_is_let_go():
    """Between the runs nothing of the part is kept; after backward nothing of the second run either."""
    import weakref
    alive = []

    def run(x):
        y = x * 2
        alive.append(weakref.ref(y))
        return y.exp().sin()
    x = tensorgrad.ones(3, requires_grad=True)
    out = tensorgrad.utils.checkpoint.checkpoint(run, x, use_reentrant=False)
    assert alive[0]() is None
    out.sum().backward(retain_graph=True)
    assert [r() for r in alive] == [None, None]


def test_random_numbers_of_the_device():
    x = tensorgrad.ones(50, requires_grad=True, device=DEVICE)
    for reentrant in (False, True):
        x.grad = None
        out = tensorgrad.utils.checkpoint.checkpoint(lambda x: tensorgrad.nn.functional.dropout(x * x, 0.5), x,
                                                     use_reentrant=reentrant)
        out.sum().backward()
        assert (x.grad == 2 * out).all()


def test_attention_backends():
    pytest.importorskip("torch")
    from side_by_side import same

    def backends(torch):
        from importlib import import_module
        attention, bias = (import_module(f"{torch.__name__}.nn.attention{part}") for part in ("", ".bias"))
        q, k = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
        F, kind = torch.nn.functional, attention.SDPBackend
        attend = F.scaled_dot_product_attention

        def with_kernels(*names):
            with attention.sdpa_kernel([kind.__members__[name] for name in names]):
                return attend(q, k, k)
        with attention.sdpa_kernel([kind.MATH, kind.CUDNN_ATTENTION], set_priority=True):
            inside = list(map(repr, attention._cur_sdpa_kernel_backends(True)))
        return ([raising(lambda names=names: with_kernels(*names))
                 for names in (["MATH"], ["FLASH_ATTENTION", "MATH"], ["CUDNN_ATTENTION"], [])],
                raising(lambda: attention.sdpa_kernel((kind.MATH,)).__enter__()),
                inside, list(map(repr, attention._cur_sdpa_kernel_backends())), int(kind.CUDNN_ATTENTION),
                kind.MATH.name,
                [attend(q, k, k, make(3, 5)) for make in (bias.causal_upper_left, bias.causal_lower_right)],
                attend(k, q, q, bias.causal_lower_right(5, 3)), repr(bias.causal_lower_right(2, 4)),
                repr(bias.causal_upper_left(4, 2)),
                raising(lambda: bias.causal_upper_left(2)), raising(lambda: bias.CausalBias(1, 2, 3)))
    same(backends)
