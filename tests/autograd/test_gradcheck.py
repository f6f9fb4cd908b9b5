"""gradcheck and gradgradcheck: right gradients pass, each kind of wrong one is detected, as in PyTorch."""
import sys
import warnings
from operator import attrgetter

import pytest

import tensorgrad
from tensorgrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

NAMES = gradcheck.__wrapped__.__globals__


def real(t, values, **options):
    return t.tensor(values, **{"dtype": t.float64, "requires_grad": True, **options})


def vector(t):
    return real(t, [0.5, -1.25, 2.0])


def matrix(t):
    return real(t, [[0.5, -1.25, 2.0], [1.5, 0.75, -0.25]])


def complex_vector(t):
    return real(t, [0.5 - 1j, -1.25 + 0.5j], dtype=t.complex128)


# ── functions with a gradient of their own ─────────────────────────────────────────────────────
def custom(t, forward, backward):
    """An autograd.Function of one input from two formulas: forward(x) and backward(x, g)."""

    class Custom(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return backward(x, g)

    return Custom.apply


def wrong_slope(t):
    return custom(t, lambda x: x * x, lambda x, g: g * x * 2.1)


def wrong_second_slope(t):
    return custom(t, lambda x: x**3, lambda x, g: g * 3 * x * x.detach())


def with_a_constant(t):
    return custom(t, lambda x: x * 3, lambda x, g: g * 3 + 1e-7)


def unconjugated(t):
    return custom(t, lambda x: x * (2 + 3j), lambda x, g: g * (2 + 3j))


def nondeterministic(t):
    calls = []

    def backward(x, g):
        calls.append(x)
        return g * (3 + 1e-9 * len(calls))

    return custom(t, lambda x: x * 3, backward)


def two_outputs(t, backward):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 3, x * 2

    Two.backward = staticmethod(backward)
    return Two.apply


def copes_with_missing_gradients(t):
    def backward(ctx, g, h):
        present = [slope * gradient for slope, gradient in ((3, g), (2, h)) if gradient is not None]
        return sum(present) if present else None

    return two_outputs(t, backward)


def makes_something_of_nothing(t):
    def backward(ctx, g, h):
        present = [slope * gradient for slope, gradient in ((3, g), (2, h)) if gradient is not None]
        if len(present) == 1 and present[0].eq(0).all():
            return t.ones(3, dtype=t.float64)
        return sum(present) if present else None

    return two_outputs(t, backward)


def changes_shape(t):
    calls = []

    def func(x):
        calls.append(x)
        return x[: 1 + len(calls) % 2]

    return func


# ── cases: (namespace -> function, inputs), and the first line of the error ────────────────────
RIGHT = {
    "sin": lambda t: (t.sin, (vector(t),)),
    "one tensor, no tuple": lambda t: (t.exp, vector(t)),
    "a list of inputs": lambda t: (t.mul, [vector(t), vector(t)]),
    "0-d": lambda t: (t.exp, (real(t, 0.5),)),
    "empty": lambda t: (t.exp, (t.empty((0, 3), dtype=t.float64, requires_grad=True),)),
    "broadcasting": lambda t: (t.mul, (matrix(t), vector(t))),
    "matmul": lambda t: (lambda a, b: a @ b.t(), (matrix(t), matrix(t))),
    "several outputs": lambda t: (lambda x, y: [x * y, x.sum() + y], (vector(t), vector(t))),
    "an unused input": lambda t: (lambda x, y: x * 2, (vector(t), matrix(t))),
    "an input without gradient": lambda t: (lambda x, y: x * y, (vector(t), vector(t).detach())),
    "an argument that is no tensor": lambda t: (lambda x, n: x**n, (vector(t), 3)),
    "an integer output": lambda t: (lambda x: (x * 2, x.argmax()), (vector(t),)),
    "views of the input": lambda t: (lambda x: (x.t(), x[0], x.reshape(-1)), (matrix(t),)),
    "the input itself": lambda t: (lambda x: x, (vector(t),)),
    "a non-contiguous input": lambda t: (t.exp, (matrix(t).detach().t().requires_grad_(),)),
    "the same input twice": lambda t: (t.mul, (lambda x: (x, x))(vector(t))),
    "missing gradients": lambda t: (copes_with_missing_gradients(t), (vector(t),)),
    "complex to complex": lambda t: (lambda z: z * z, (complex_vector(t),)),
    "complex to real": lambda t: (t.abs, (complex_vector(t),)),
    "conjugate": lambda t: (lambda z: z.conj() * 2, (complex_vector(t),)),
    "real to complex": lambda t: (lambda x: t.complex(x, x * x), (vector(t),)),
    "complex and real": lambda t: (lambda z, x: (z * x[:2], x.exp(), z.real), (complex_vector(t), vector(t))),
}
WRONG = {
    "a wrong slope": (
        lambda t: (wrong_slope(t), (vector(t),)), "Jacobian mismatch for output 0 with respect to input 0,"),
    "in the second output": (
        lambda t: (lambda x, y: (x * y, wrong_slope(t)(y)), (vector(t), vector(t))),
        "Jacobian mismatch for output 1 with respect to input 1,"),
    "a complex slope not conjugated": (
        lambda t: (unconjugated(t), (complex_vector(t),)),
        "While considering the imaginary part of complex outputs only, "
        "Jacobian mismatch for output 0 with respect to input 0,"),
    "no gradient where there is a slope": (
        lambda t: (lambda x: x.detach() * 2, (vector(t),)), "Numerical gradient for function expected to be zero"),
    "not multiplied by the gradient": (
        lambda t: (with_a_constant(t), (vector(t),)), "backward not multiplied by grad_output"),
}


def outcome(check, func, inputs, **options):
    """True, False or the type of an error and the first line of its message."""
    try:
        return check(func, inputs, **options)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]


@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name, fast_mode):
    func, inputs = RIGHT[name](tensorgrad)
    assert gradcheck(func, inputs, fast_mode=fast_mode) is True


@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_found(name, fast_mode):
    case, message = WRONG[name]
    assert outcome(gradcheck, *case(tensorgrad), fast_mode=fast_mode) == ("GradcheckError", message)
    assert gradcheck(*case(tensorgrad), fast_mode=fast_mode, raise_exception=False) is False


@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("name", [*RIGHT, *WRONG])
def test_pytorch_says_the_same(name, fast_mode):
    torch = pytest.importorskip("torch")
    case, expected = WRONG[name] if name in WRONG else (RIGHT[name], True)
    said = outcome(torch.autograd.gradcheck, *case(torch), fast_mode=fast_mode)
    assert said == (expected if expected is True else ("GradcheckError", expected))


def test_the_message_shows_both_jacobians():
    with pytest.raises(GradcheckError) as caught:
        gradcheck(wrong_slope(tensorgrad), (real(tensorgrad, [1.0, 2.0]),))
    numerical, analytical = str(caught.value).split("numerical:")[1].split("analytical:")
    assert "2.0000" in numerical and "4.0000" in numerical
    assert "2.1000" in analytical and "4.2000" in analytical


def test_the_fast_message_shows_them_too():
    with pytest.raises(GradcheckError) as caught:
        gradcheck(wrong_slope(tensorgrad), (real(tensorgrad, [1.0, 2.0]),), fast_mode=True)
    assert "2.1000" in str(caught.value) and "4.2000" in str(caught.value)
    assert "largest difference of two elements is 0.2" in str(caught.value)


def test_errors_are_runtime_errors():
    assert issubclass(GradcheckError, RuntimeError)


def test_the_package_offers_the_functions_by_name():
    assert tensorgrad.autograd.gradcheck(tensorgrad.sin, (vector(tensorgrad),)) is True
    assert tensorgrad.autograd.gradgradcheck(tensorgrad.sin, (vector(tensorgrad),)) is True


def test_the_module_can_be_called_like_the_function():
    module = sys.modules[gradcheck.__module__]
    assert module(tensorgrad.sin, (vector(tensorgrad),), fast_mode=True) is True


# ── the other checks ───────────────────────────────────────────────────────────────────────────
def test_nondeterminism_has_a_tolerance_of_its_own():
    inputs = (vector(tensorgrad),)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(nondeterministic(tensorgrad), inputs)
    assert gradcheck(nondeterministic(tensorgrad), inputs, nondet_tol=1e-6) is True


def test_undefined_gradients_count_as_zero():
    inputs = (vector(tensorgrad),)
    message = "Expected all input grads to be undefined or zero when all output grads are undefined or zero"
    with pytest.warns(UserWarning, match="undefined gradient support"), pytest.raises(GradcheckError, match=message):
        gradcheck(makes_something_of_nothing(tensorgrad), inputs)
    assert gradcheck(makes_something_of_nothing(tensorgrad), inputs, check_undefined_grad=False) is True


@pytest.mark.parametrize("kind, message", [
    ({"size": (5,)}, "Analytical gradient has incorrect size"),
    ({"size": (3,), "dtype": tensorgrad.float32}, "Gradient has dtype mismatch"),
], ids=["size", "dtype"])
def test_an_engine_that_gives_gradients_of_another_kind_is_found_out(monkeypatch, kind, message):
    def grad(outputs, inputs, *args, **kwargs):
        return [x.new_zeros(**kind) for x in inputs]

    monkeypatch.setattr(tensorgrad.autograd, "grad", grad)
    with pytest.raises(GradcheckError, match=message):
        gradcheck(tensorgrad.sin, (vector(tensorgrad),), check_grad_dtypes=True)


def test_a_function_may_not_change_its_outputs_shape():
    message = "Expected `func` to return outputs with the same shape when inputs are perturbed on index"
    with pytest.raises(AssertionError, match=message):
        gradcheck(changes_shape(tensorgrad), (vector(tensorgrad),))


def test_tolerances():
    func, x = custom(tensorgrad, lambda x: x * 2, lambda x, g: g * 2.01), (vector(tensorgrad),)
    assert gradcheck(func, x, raise_exception=False) is False
    assert gradcheck(func, x, atol=0.02) is gradcheck(func, x, rtol=0.02) is True
    assert gradcheck(func, x, atol=0.02, fast_mode=True) is True


def test_the_fast_mode_adds_up_tolerances():
    func = custom(tensorgrad, lambda x: x * 2, lambda x, g: g * 2.1)
    x = (real(tensorgrad, [1.0] * 10),)
    assert gradcheck(func, x, atol=0.02, rtol=0, raise_exception=False) is False
    assert gradcheck(func, x, atol=0.02, rtol=0, fast_mode=True) is True


INPUT_ERRORS = {
    "no input needs a gradient": (
        lambda t: (vector(t).detach(),), {}, ValueError,
        "gradcheck expects at least one input tensor to require gradient, "
        "but none of them have requires_grad=True."),
    "overlapping memory": (
        lambda t: (t.ones(1, dtype=t.float64).expand(3).requires_grad_(),), {}, RuntimeError,
        "The 0th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be "
        "able to compute the numerical gradients correctly. You should call .contiguous on the input before passing "
        "it to gradcheck."),
    "nothing to check": (
        lambda t: (vector(t),), {"check_backward_ad": False}, AssertionError,
        "Expected at least one of check_forward_ad or check_backward_ad to be True"),
    "batched, without backward": (
        lambda t: (vector(t),), {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
        AssertionError, "Setting check_batched_grad=True requires check_backward_ad to be True"),
    "batched forward, without forward": (
        lambda t: (vector(t),), {"check_batched_forward_grad": True}, AssertionError,
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True"),
}


@pytest.mark.parametrize("name", INPUT_ERRORS)
def test_bad_input(name):
    inputs, options, error, message = INPUT_ERRORS[name]
    with pytest.raises(error) as caught:
        gradcheck(tensorgrad.exp, inputs(tensorgrad), **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", INPUT_ERRORS)
def test_bad_input_is_the_same_for_pytorch(name):
    torch = pytest.importorskip("torch")
    inputs, options, error, message = INPUT_ERRORS[name]
    assert outcome(torch.autograd.gradcheck, torch.exp, inputs(torch), **options) == (error.__name__, message)


def test_single_precision_is_warned_about():
    x = real(tensorgrad, [1.0, 2.0], dtype=tensorgrad.float32)
    with pytest.warns(UserWarning, match="Input #1 requires gradient and is not a double precision"):
        gradcheck(tensorgrad.mul, (vector(tensorgrad)[:2].detach(), x), eps=1e-2, atol=1e-2)


def test_what_is_not_available_is_named():
    with pytest.raises(RuntimeError, match="check_x=True needs torch.autograd.nothing, which is not available"):
        NAMES["_feature"]("autograd.nothing", "check_x")


# ── what a check leaves behind ─────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
def test_nothing_is_left_behind(fast_mode):
    x, z = matrix(tensorgrad), complex_vector(tensorgrad)
    before, state = (x.detach().clone(), z.detach().clone()), tensorgrad.get_rng_state()
    assert gradcheck(lambda x, z: (x.exp(), z * z), (x, z), fast_mode=fast_mode)
    assert tensorgrad.equal(x, before[0]) and tensorgrad.equal(z, before[1])
    assert x.grad is None and z.grad is None
    assert tensorgrad.equal(tensorgrad.get_rng_state(), state)


def test_the_input_is_restored_when_the_function_fails():
    x, calls = vector(tensorgrad), []

    def func(x):
        calls.append(x)
        if len(calls) == 3:
            raise ZeroDivisionError
        return x * 2

    with pytest.raises(ZeroDivisionError):
        gradcheck(func, (x,))
    assert x.tolist() == vector(tensorgrad).tolist()


def test_inputs_may_be_captured_rather_than_passed():
    weight, x = matrix(tensorgrad), vector(tensorgrad).detach()
    assert gradcheck(lambda *_: weight @ x, (weight,)) is True
    assert gradcheck(lambda *_: weight @ x, (weight,), fast_mode=True) is True


# ── second derivatives ─────────────────────────────────────────────────────────────────────────
SECOND = ["sin", "0-d", "broadcasting", "matmul", "an unused input", "views of the input", "complex to complex",
          "complex to real", "real to complex", "complex and real"]


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"gen_non_contig_grad_outputs": True}], ids=str)
@pytest.mark.parametrize("name", SECOND)
def test_right_second_derivatives_pass(name, options):
    func, inputs = RIGHT[name](tensorgrad)
    assert gradgradcheck(func, inputs, **options) is True


@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
def test_wrong_second_derivatives_are_found(fast_mode):
    func, x = wrong_second_slope(tensorgrad), (vector(tensorgrad),)
    assert gradcheck(func, x) is True
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(func, x, fast_mode=fast_mode)
    assert gradgradcheck(func, x, fast_mode=fast_mode, raise_exception=False) is False


def test_upstream_gradients_may_be_given():
    x, seen = vector(tensorgrad), []

    def func(x):
        y = x.exp()
        y.register_hook(seen.append)
        return y

    upstream = real(tensorgrad, [3.0, 5.0, 7.0], requires_grad=False)
    assert gradgradcheck(func, (x,), upstream) is True
    assert seen[0].tolist() == [3.0, 5.0, 7.0]


def test_upstream_gradients_may_be_made_non_contiguous():
    x, seen = vector(tensorgrad), []

    def func(x):
        y = x * 2
        y.register_hook(seen.append)
        return y

    assert gradgradcheck(func, (x,), gen_non_contig_grad_outputs=True) is True
    assert not seen[0].is_contiguous() and -1 <= seen[0].min() and seen[0].max() <= 1


def test_what_gradgradcheck_does_not_take():
    x = (vector(tensorgrad),)
    for options, message in {
        ("check_rev_over_rev",): "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
        ("check_rev_over_rev", "check_fwd_over_rev"):
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
    }.items():
        with pytest.raises(AssertionError, match=message):
            gradgradcheck(tensorgrad.exp, x, **{name: name == "check_fwd_over_rev" for name in options})


# ── batches ────────────────────────────────────────────────────────────────────────────────────
def one_by_one(func):
    return lambda batch: [tensorgrad.stack(results) for results in zip(*map(func, batch))]


def twice_too_much(func):
    return lambda batch: [2 * result for result in one_by_one(func)(batch)]


def not_at_all(func):
    raise RuntimeError("no rule")


@pytest.mark.parametrize("vmap, expected", [
    (one_by_one, True),
    (twice_too_much, ("GradcheckError", "For output 0 and input 0:")),
    (not_at_all, ("GradcheckError", "While computing batched gradients, got: no rule")),
])
def test_batched_gradients_are_compared(monkeypatch, vmap, expected):
    monkeypatch.setitem(NAMES, "_feature", lambda path, option: vmap)
    func, inputs = RIGHT["an unused input"](tensorgrad)
    assert outcome(gradcheck, func, inputs, check_batched_grad=True) == expected


# ── forward mode and vmap, where they are available ────────────────────────────────────────────
def available(path):
    try:
        return bool(attrgetter(path)(tensorgrad))
    except (AttributeError, ImportError):
        return False


@pytest.mark.skipif(not available("autograd.forward_ad"), reason="no forward mode")
@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("name", [name for name in RIGHT if name != "missing gradients"])
def test_forward_mode(name, fast_mode):
    func, inputs = RIGHT[name](tensorgrad)
    assert gradcheck(func, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode) is True


def test_batched_gradients_of_a_function_without_setup_context():
    double = custom(tensorgrad, lambda x: 2 * x, lambda x, g: 2 * g)
    square = custom(tensorgrad, lambda x: x * x, lambda x, g: double(g) * x)
    assert gradcheck(square, vector(tensorgrad), check_batched_grad=True) is True
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        tensorgrad.vmap(square)(vector(tensorgrad))


@pytest.mark.skipif(not available("vmap"), reason="no vmap")
@pytest.mark.parametrize("name", ["sin", "broadcasting", "matmul", "an unused input", "complex to complex"])
def test_batched_gradients(name):
    func, inputs = RIGHT[name](tensorgrad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert gradcheck(func, inputs, check_batched_grad=True) is True
