"""Checkpointed parts of models beside PyTorch: the same gradients, random numbers, errors, and how often each part runs."""
import pytest
from nn_oracle import raising
from support import DEVICE, Programs, cpu_only

import tensorgrad

program = Programs()


def model(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 5), nn.Sigmoid(), nn.Linear(5, 3), nn.GELU(), nn.Linear(3, 2))


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
            out = torch.utils.checkpoint.checkpoint(lambda x: torch.nn.functional.dropout(x * x, 0.5), x, use_reentrant=reentrant,
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
        return checkpoint(inner, checkpoint(inner, x.tanh(), "first", use_reentrant=False), "second", use_reentrant=False).sin()
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
        results.append((out.dtype == torch.bfloat16, h.dtype == torch.float32, net[2].weight.grad.dtype == torch.float32,
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
    out = torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False, context_fn=lambda: (noted("forward"), noted("again")))
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
        return raising(lambda: checkpoint(lambda x: waiting.pop(0)(x), x, use_reentrant=False, **settings).sum().backward())
    fewer, more, other = (lambda x: x.sin()), (lambda x: x.sin().cos().exp()), (lambda x: torch.cat((x, x)).sin())
    return [tried(fewer, more, early_stop=False), tried(more, fewer), tried(fewer, other), tried(fewer, fewer, determinism_check="none"),
            tried(more, fewer, debug=True), tried(fewer, fewer)]


test_programs = program.test(rtol=1e-5, atol=1e-6)


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
        out = tensorgrad.utils.checkpoint.checkpoint(lambda x: tensorgrad.nn.functional.dropout(x * x, 0.5), x, use_reentrant=reentrant)
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
        return ([raising(lambda names=names: with_kernels(*names)) for names in (["MATH"], ["FLASH_ATTENTION", "MATH"], ["CUDNN_ATTENTION"], [])],
                raising(lambda: attention.sdpa_kernel((kind.MATH,)).__enter__()),
                inside, list(map(repr, attention._cur_sdpa_kernel_backends())), int(kind.CUDNN_ATTENTION), kind.MATH.name,
                [attend(q, k, k, make(3, 5)) for make in (bias.causal_upper_left, bias.causal_lower_right)],
                attend(k, q, q, bias.causal_lower_right(5, 3)), repr(bias.causal_lower_right(2, 4)), repr(bias.causal_upper_left(4, 2)),
                raising(lambda: bias.causal_upper_left(2)), raising(lambda: bias.CausalBias(1, 2, 3)))
    same(backends)
