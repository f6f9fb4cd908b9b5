"""`autograd.functional` beside PyTorch: products, Jacobians, Hessians, what strict refuses, and the errors."""
from functools import partial
from itertools import product

import pytest
from side_by_side import attempt
from support import Programs

import tensorgrad
from tests.interpret.test_forward_mode import no_compiler  # noqa: F401

pytestmark = pytest.mark.usefixtures("device", "no_compiler")
program = Programs()

VECTORS = {
    "curved": lambda torch: lambda x: torch.sin(x) * x.sum(),
    "two outputs": lambda torch: lambda x: (x * 2, (x ** 3).sum()),
    "linear": lambda torch: lambda x: x * 3,
    "constant": lambda torch: lambda x: torch.ones(3),
    "cut off": lambda torch: lambda x: x.detach() * 2,
    "one constant output": lambda torch: lambda x: (x ** 3, torch.ones(2)),
    "a list": lambda torch: lambda x: [x * 2],
    "a number": lambda torch: lambda x: 3,
}
NUMBERS = {
    "cubic": lambda torch: lambda x: (x ** 3).sum(),
    "curved": lambda torch: lambda x: (x.exp() * x).sum().reshape(1, 1),
    "linear": lambda torch: lambda x: (x * 2).sum(),
    "constant": lambda torch: lambda x: torch.tensor(3.),
    "a vector": lambda torch: lambda x: x ** 3,
    "a tuple": lambda torch: lambda x: ((x ** 3).sum(),),
}
PAIRS = {"product": lambda a, b: a * b, "one unused": lambda a, b: a * 2,
         "mixed": lambda a, b: (a.sum() * b.exp(), a.cumsum(0))}
NUMBERS_OF_PAIRS = {"mixed": lambda a, b: (a ** 3 * b.sin()).sum(), "one unused": lambda a, b: (a ** 3).sum(),
                    "bilinear": lambda a, b: (a * b).sum()}


def outcome(call, *arguments, **options):
    try:
        return call(*arguments, **options)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]


def tensors(torch, **options):
    return torch.tensor([1., 2., 3.], **options), torch.tensor([.5, -1., 2.])


def settings():
    return [dict(zip(("create_graph", "strict"), chosen, strict=True)) for chosen in product((False, True), repeat=2)]


def everything(torch, call):
    """Return the outcomes of a call with all settings, for inputs that require grad or not; and which results
    require grad."""
    found = []
    for options in settings():
        for requires_grad in (False, True):
            x, v = tensors(torch, requires_grad=requires_grad)
            result = outcome(call, x, v, options)
            flat = result
            while isinstance(flat, (tuple, list)):
                flat = flat[-1]
            found.append((result, flat.requires_grad if isinstance(flat, torch.Tensor) else None))
    return found


def fitting(torch, name, v):
    """A vector for the outputs of one of VECTORS."""
    return ((v, torch.tensor(2.)) if name == "two outputs" else (v, torch.ones(2)) if name == "one constant output"
            else v)


def programs():
    def add(name, run):
        run.__name__ = name.replace(" ", "_")
        program(run)
    for name, made in VECTORS.items():
        add(f"jacobian_{name}", lambda torch, f=made: everything(torch,
                                                                 lambda x, v, o: torch.autograd.functional.jacobian(
                                                                     f(torch), x, **o)))
        add(f"jvp_{name}", lambda torch, f=made: everything(torch,
                                                            lambda x, v, o: torch.autograd.functional.jvp(f(torch), x,
                                                                                                          v, **o)))
        add(f"vjp_{name}", lambda torch, f=made, n=name: everything(
            torch, lambda x, v, o: torch.autograd.functional.vjp(f(torch), x, fitting(torch, n, v), **o)))
    for name, made in NUMBERS.items():
        for function in ("hvp", "vhp"):
            add(f"{function}_{name}", lambda torch, f=made, g=function: everything(
                torch, lambda x, v, o: getattr(torch.autograd.functional, g)(f(torch), x, v, **o)))
        add(f"hessian_{name}", lambda torch, f=made: everything(torch,
                                                                lambda x, v, o: torch.autograd.functional.hessian(
                                                                    f(torch), x, **o)))
    for name, f in PAIRS.items():
        add(f"jacobian_of_two_{name}", lambda torch, f=f: everything(torch,
                                                                     lambda x, v, o: torch.autograd.functional.jacobian(
                                                                         f, (x, v), **o)))
        add(f"jvp_of_two_{name}", lambda torch, f=f: everything(torch,
                                                                lambda x, v, o: torch.autograd.functional.jvp(f, (x, v),
                                                                                                              (v, x),
                                                                                                              **o)))
    for name, f in NUMBERS_OF_PAIRS.items():
        for function in ("hvp", "vhp"):
            add(f"{function}_of_two_{name}", lambda torch, f=f, g=function: everything(
                torch, lambda x, v, o: getattr(torch.autograd.functional, g)(f, (x, v), (v, x), **o)))
        add(f"hessian_of_two_{name}", lambda torch, f=f: everything(torch,
                                                                    lambda x, v, o: torch.autograd.functional.hessian(f, (x, v), **o)))  # noqa: E501


programs()


def vectorized(torch, strategies=("reverse-mode", "forward-mode")):
    functional, (x, v), found = torch.autograd.functional, tensors(torch), []
    for strategy, options in product(strategies, settings()):
        for make in VECTORS.values():
            found.append(outcome(functional.jacobian, make(torch), x, vectorize=True, strategy=strategy, **options))
        for make in NUMBERS.values():
            found.append(outcome(functional.hessian, make(torch), x, vectorize=True, outer_jacobian_strategy=strategy,
                                 **options))
        for f in PAIRS.values():
            found.append(outcome(functional.jacobian, f, (x, v), vectorize=True, strategy=strategy, **options))
        for f in NUMBERS_OF_PAIRS.values():
            found.append(outcome(functional.hessian, f, (x, v), vectorize=True, outer_jacobian_strategy=strategy,
                                 **options))
    return found


@program
def all_rows_at_once(torch):
    return vectorized(torch, ["reverse-mode"])


@program
def all_columns_at_once(torch):
    return vectorized(torch, ["forward-mode"])


@program
def derivatives_by_a_number(torch):
    x, functional, func, found = torch.tensor(2.), torch.autograd.functional, torch.func, []
    for f in (lambda x: x ** 2, lambda x: torch.stack([x, x ** 3]), lambda x: x * torch.ones(2, 3)):
        for options in ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
            found.append(functional.jacobian(f, x, **options))
        found += [func.jacrev(f)(x), func.jacfwd(f)(x), func.hessian(f)(x)]
    for options in ({}, {"vectorize": True}):
        found.append(functional.hessian(lambda x: x ** 3, x, **options))
    return found


@program
def one_number_needs_no_vector(torch):
    x, functional = torch.tensor(2.), torch.autograd.functional
    return [getattr(functional, name)(lambda x: x ** 3, x) for name in ("vjp", "jvp", "vhp", "hvp")]


@program
def bad_arguments(torch):
    functional, (x, v), found = torch.autograd.functional, tensors(torch), []
    for name in ("vjp", "jvp", "hvp", "vhp"):
        call, number = getattr(functional, name), "h" in name

        def one(x, number=number):
            return (x ** 3).sum() if number else x ** 3

        def two(x, y, number=number):
            return (x ** 3 * y).sum() if number else (x ** 3, y)
        for given in ((one, x), (one, x, v[:2]), (one, x, (v, v)), (two, (x, x), (v,)), (two, (x, x), (v, v[:1])),
                        (one, 3., v), (two, (x, 3.), v),
                        (one, [x], v), (one, x, 2.), (one, x.long(), v)):
            found.append(outcome(call, *given))
    f, g = VECTORS["curved"](torch), NUMBERS["cubic"](torch)
    for given in (3., (x, 3.)):
        found += [outcome(functional.jacobian, f, given), outcome(functional.hessian, g, given)]
    for strategy in ("sideways", "forward-mode"):
        found += [outcome(functional.jacobian, f, x, strategy=strategy),
                  outcome(functional.hessian, g, x, outer_jacobian_strategy=strategy)]
    return found


@program
def in_no_grad(torch):
    functional, (x, v) = torch.autograd.functional, tensors(torch, requires_grad=True)
    f, g = VECTORS["curved"](torch), NUMBERS["cubic"](torch)
    with torch.no_grad():
        return (functional.jacobian(f, x), functional.hessian(g, x), functional.jvp(f, x, v),
                functional.vjp(f, x, v, create_graph=True), functional.hvp(g, x, v),
                functional.jvp(f, x, v, create_graph=True)[1].requires_grad,
                functional.jacobian(f, x, create_graph=True).requires_grad)


@program
def results_that_are_differentiated_again(torch):
    functional, (x, v) = torch.autograd.functional, tensors(torch, requires_grad=True)
    f, g = VECTORS["curved"](torch), NUMBERS["curved"](torch)
    v.requires_grad_()
    found = [functional.jacobian(f, x, create_graph=True), functional.jacobian(f, x, create_graph=True, vectorize=True),
             functional.hessian(g, x, create_graph=True), functional.jvp(f, x, v, create_graph=True)[1],
             functional.vjp(f, x, v, create_graph=True)[1],
             functional.hvp(g, x, v, create_graph=True)[1]]
    return [torch.autograd.grad(result.sum(), (x, v), allow_unused=True) for result in found]


@program
def complex_numbers(torch):
    z = torch.tensor([1. + 2.j, 0.5 - 1.j])
    return (torch.autograd.functional.jacobian(lambda z: (z * z.conj()).real, z),
            torch.autograd.functional.vjp(lambda z: z ** 2, z, z))


@program
def refused_inside_transforms(torch):
    F, T = torch.autograd.functional, torch.func

    def number(x):
        return x.sin().sum()
    calls = [lambda x: F.jacobian(number, x), lambda x: F.hessian(number, x), lambda x: F.vjp(number, x),
             lambda x: F.hvp(number, x, x)]
    x = torch.tensor([1., 2.])
    runs = [lambda f: T.vmap(f)(x.reshape(2, 1)), lambda f: T.grad(f)(x), lambda f: T.jvp(f, (x,), (x,))]
    found = [attempt(partial(run, call)) for call in calls for run in runs]
    return found, F.hessian(number, x, outer_jacobian_strategy="forward-mode", vectorize=True)


test_programs = program.test(rtol=2e-5, atol=1e-5)


def test_an_output_without_elements():
    """PyTorch stacks no rows, and fails."""
    x, _ = tensors(tensorgrad)
    for vectorize in (False, True):
        assert tensorgrad.autograd.functional.jacobian(lambda x: x[:0] * 2, x, vectorize=vectorize).shape == (0, 3)
