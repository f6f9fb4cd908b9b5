"""Modes of the tape: no_grad, enable_grad, set_grad_enabled and inference_mode, nested, as decorators, in threads."""
import threading

import pytest
from support import Programs

import tensorgrad
from tensorgrad.core import mode as modes

pytestmark = pytest.mark.usefixtures("device")
program = Programs()


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


@program
def nesting(torch):
    x, found = leaf(torch, 1.), []

    def look():
        found.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), (x * 2).requires_grad))
    look()
    with torch.no_grad():
        look()
        with torch.enable_grad():
            look()
            with torch.no_grad():
                look()
            look()
        with torch.no_grad():
            look()
        look()
        with torch.set_grad_enabled(True):
            look()
        look()
    with torch.inference_mode():
        look()
        with torch.enable_grad():
            look()
        with torch.inference_mode(False):
            look()
        with torch.no_grad():
            look()
        look()
    look()
    return found


@program
def the_same_object_twice(torch):
    off, found = torch.no_grad(), []
    for _ in range(2):
        with off:
            found.append(torch.is_grad_enabled())
        found.append(torch.is_grad_enabled())
    return found


@program
def tensors_made_without_tape(torch):
    x = leaf(torch, 1.)
    with torch.no_grad():
        made = [x * 2, torch.ones(1, requires_grad=True), x.detach(), x, torch.ones(1).requires_grad_(), x.view(1),
                x[0]]
    return [(t.requires_grad, t.is_leaf) for t in made]


@program
def results_written_without_tape(torch):
    p, found = leaf(torch, 1., 2., 3.), []
    with torch.no_grad():
        for made in (torch.add(p, 1, out=p), torch.mul(p, p, out=p), torch.matmul(torch.ones(3, 3), p.clone(), out=p),
                     torch.exp(torch.zeros(3), out=p)):
            found.append((made is p, p.requires_grad, p.is_leaf, p.tolist(), p._version))
    y = p * 2
    with torch.no_grad():
        torch.add(y, 1, out=y)
    y.sum().backward()
    return [*found, y, p.grad]


@program
def results_written_on_tape(torch):
    p = leaf(torch, 1.)
    torch.add(torch.ones(1), 1, out=p)


@program
def set_grad_enabled_works_at_once(torch):
    found = []
    torch.set_grad_enabled(False)
    found.append(torch.is_grad_enabled())
    torch.set_grad_enabled(True)
    found.append(torch.is_grad_enabled())
    with torch.set_grad_enabled(False):
        found.append(torch.is_grad_enabled())
    return [*found, torch.is_grad_enabled()]


@program
def decorated_functions(torch):
    @torch.no_grad()
    def off(x):
        "Says so."
        return torch.is_grad_enabled(), (x * 2).requires_grad

    @torch.no_grad
    def off_too(x):
        return torch.is_grad_enabled()

    @torch.enable_grad()
    def on(x):
        return torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def set_off(x):
        return torch.is_grad_enabled()

    @torch.inference_mode()
    def inference(x):
        return torch.is_inference_mode_enabled(), (x * 2).is_inference()

    @torch.inference_mode
    def inference_too(x):
        return torch.is_inference_mode_enabled()

    @torch.inference_mode(mode=False)
    def no_inference(x):
        return torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    x = leaf(torch, 1.)
    after_decoration = torch.is_grad_enabled()
    with torch.no_grad():
        inside = on(x), set_off(x), torch.is_grad_enabled()
    return (after_decoration, off(x), off_too(x), on(x), set_off(x), inference(x), inference_too(x), no_inference(x),
            inside, off.__name__,
            off.__doc__, torch.is_grad_enabled())


@program
def decorated_classes(torch):
    class Model:
        def __init__(self):
            self.grad = torch.is_grad_enabled()
    return torch.no_grad()(Model)().grad


@program
def decorated_recursion(torch):
    @torch.no_grad()
    def down(n):
        return [torch.is_grad_enabled()] + (down(n - 1) if n else [])
    return down(3), torch.is_grad_enabled()


@program
def decorated_generators(torch):
    seen = []

    @torch.no_grad()
    def numbers():
        try:
            for k in range(3):
                sent = yield k, torch.is_grad_enabled()
                seen.append((sent, torch.is_grad_enabled()))
        except KeyError as error:
            seen.append((repr(error), torch.is_grad_enabled()))
            yield "caught"
        finally:
            seen.append(("end", torch.is_grad_enabled()))
        return "returned"
    made = numbers()
    first = next(made), torch.is_grad_enabled(), made.send("x"), torch.is_grad_enabled()
    thrown = made.throw(KeyError("k"))
    try:
        next(made)
    except StopIteration as stop:
        last = stop.value
    other = numbers()
    next(other)
    other.close()
    return first, thrown, last, seen, list(numbers()), torch.is_grad_enabled()


@program
def exceptions_restore_the_mode(torch):
    for mode in (torch.no_grad, torch.inference_mode, lambda: torch.set_grad_enabled(False)):
        try:
            with mode():
                raise KeyError("inside")
        except KeyError:
            pass

    @torch.no_grad()
    def broken():
        raise KeyError("inside")
    try:
        broken()
    except KeyError:
        pass
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


@program
def backward_without_tape(torch):
    x = leaf(torch, 2.)
    y = (x * x).sum()
    with torch.no_grad():
        y.backward(retain_graph=True)
        g, = torch.autograd.grad(y, x, create_graph=True)
        inside = torch.is_grad_enabled()
    return x.grad, g, g.requires_grad, inside


@program
def writes_without_tape(torch):
    x = leaf(torch, 2., 3.)
    with torch.no_grad():
        x.add_(1)
        x[0] = 10.
        x.copy_(x * 2)
    return x, x.requires_grad, x.is_leaf


# ── inference mode ────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def inference_tensors(torch):
    x = leaf(torch, 1., 2.)
    with torch.inference_mode():
        y = x * 2
        made = [y, y[0], x[0], torch.ones(1), y.clone(), x.view(2), x]
        y.add_(1)
        y[0] = 5.
    later = [y * 2, y[0], y.clone()]
    return [t.is_inference() for t in made], [t.is_inference() for t in later], y, y.requires_grad


@program
def inference_tensors_may_not_be_saved(torch):
    x = leaf(torch, 1., 2.)
    with torch.inference_mode():
        w = torch.ones(2)
    return x * w


@program
def inference_tensors_may_be_used_where_nothing_is_saved(torch):
    x = leaf(torch, 1., 2.)
    with torch.inference_mode():
        w = torch.ones(2)
    y = x + w
    y.sum().backward()
    return x.grad, (x * w.clone()).requires_grad


@program
def inference_tensors_may_not_be_written_to(torch):
    with torch.inference_mode():
        w = torch.ones(2)
    w.add_(1)


@program
def inference_tensors_may_be_written_to_in_inference_mode(torch):
    with torch.inference_mode():
        w = torch.ones(2)
    with torch.inference_mode():
        w.add_(1)
    return w


@program
def inference_tensors_may_not_require_gradients(torch):
    with torch.inference_mode():
        w = torch.ones(2)
    w.requires_grad_()


@program
def inference_tensors_have_no_versions(torch):
    with torch.inference_mode():
        w = torch.ones(2)
    return w._version


@program
def views_of_ordinary_tensors_made_in_inference_mode(torch):
    x = leaf(torch, 1., 2.)
    h = x * 1
    with torch.inference_mode():
        v = h[0]
    return v.is_inference(), v.is_leaf


@program
def no_backward_in_inference_mode(torch):
    with torch.inference_mode():
        x = torch.ones(1, requires_grad=True)
        (x * 2).sum().backward()


test_programs = program.test()


def test_threads_have_modes_of_their_own():
    found, inside, done = [], threading.Event(), threading.Event()

    def work():
        assert inside.wait(60)
        found.append(tensorgrad.is_grad_enabled())
        with tensorgrad.no_grad():
            done.set()
    thread = threading.Thread(target=work)
    thread.start()
    with tensorgrad.no_grad():
        inside.set()
        thread.join(60)
    assert found == [True] and done.is_set() and tensorgrad.is_grad_enabled()


def test_anomaly_mode_and_hooks_are_a_threads_own():
    found = []
    with tensorgrad.autograd.set_detect_anomaly(True), \
            tensorgrad.autograd.graph.saved_tensors_hooks(lambda t: found.append("packed"), lambda t: t):
        thread = threading.Thread(target=lambda: found.append(tensorgrad.autograd.grad(leaf(tensorgrad, 2.).exp(),
                                                                                       leaf(tensorgrad, 1.),
                                                                                        allow_unused=True)))
        thread.start()
        thread.join(60)
    assert found == [(None,)]


def test_a_new_thread_shares_no_state_of_the_tape_with_others():
    """A new thread begins with the defaults and the registered writer, whatever the state of the thread that starts
    it.
    """
    found = []

    def states():
        mode = modes.mode
        watching, tangents = mode.watching, mode.tangents
        found.append((watching, tangents, mode.record, watching.watchers, watching.hooks, tangents.levels, tangents.on,
                      mode.quiet))
    with (tensorgrad.no_grad(), tensorgrad.autograd.set_detect_anomaly(True),
          tensorgrad.autograd.forward_ad.dual_level(),
          tensorgrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)):
        thread = threading.Thread(target=states)
        thread.start()
        thread.join(60)
        states()
    (watching, tangents, *others), (own_watching, own_tangents, *own) = found
    assert watching is not own_watching and tangents is not own_tangents
    assert others == [modes.writers.plain, (), (), (), True, None] and own[0] is modes.writers.watched and all(own[1:4])


def test_infinities_come_without_warnings_in_every_thread():
    found = []

    def work():
        found.append((tensorgrad.tensor([1.]) / tensorgrad.tensor([0.])).item())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    work()
    assert found == [float("inf")] * 2


