"""Constraints of torch.distributions, and the transforms onto them, beside PyTorch."""
import numpy as np
import pytest
from side_by_side import attempt, same
from support import needed

oracle = needed("torch")

NUMBERS = [-2.5, -1.0, 0.0, 0.3, 1.0, 1.5, 2.0, 7.0, float("inf"), float("nan")]
VECTORS = [[0.2, 0.3, 0.5], [0.2, 0.3, 0.4], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [-0.5, 0.5, 1.0], [2.0, 0.0, 3.0],
           [0.0, float("nan"), 1.0]]
MATRICES = [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.2], [0.2, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [3.0, 1.0]],
            [[2.0, 0.0], [0.0, 0.0]],
            [[1.0, 0.5], [0.4, 1.0]]]
OF_NUMBERS = """boolean ; real ; positive ; nonnegative ; unit_interval ; nonnegative_integer ; positive_integer ; greater_than(0.3) ; greater_than_eq(0.3)
    less_than(1.5) ; interval(-1, 1.5) ; half_open_interval(0, 2) ; integer_interval(0, 2) ; interval(torch.tensor(0.), torch.tensor(1.5))
    interval(lower_bound=0, upper_bound=1) ; _IntegerLessThan(2) ; MixtureSameFamilyConstraint(positive) ; independent(positive, 0)
    independent(positive, 1) ; cat([positive, real], 0, [4, 6]) ; stack([positive, boolean], 0) ; real_vector"""  # noqa: E501
OF_VECTORS = """simplex ; one_hot ; multinomial(5) ; independent(unit_interval, 1) ; cat([simplex, one_hot], 0, [3, 4]) ; stack([real, positive, boolean], -1)
    stack([positive, real], dim=1) ; MixtureSameFamilyConstraint(simplex) ; cat([positive, real], -1, [1, 2]) ; independent(simplex, 1)"""  # noqa: E501
OF_MATRICES = """lower_triangular ; lower_cholesky ; corr_cholesky ; square ; symmetric ; positive_semidefinite ; positive_definite
    independent(real, 2) ; independent(lower_cholesky, 1) ; independent(real_vector, 1)"""  # noqa: E501
BROKEN = """cat([3]) ; cat([real], lengths=[1, 2]) ; stack([3]) ; independent(3, 1) ; independent(real, 1.5) ; independent(real, -1)
    MixtureSameFamilyConstraint(3) ; cat([real, real], dim=2).check(torch.zeros(2)) ; stack([real], dim=-2).check(torch.zeros(2))
    dependent.check(torch.zeros(2)) ; dependent.is_discrete ; dependent.event_dim ; dependent(event_dim=1).event_dim
    dependent(is_discrete=True)(event_dim=2).is_discrete ; Constraint().check(1) ; independent(real, 3).check(torch.zeros(2)) ; is_dependent(dependent)
    is_dependent(torch.distributions.Uniform.support) ; is_dependent(real) ; repr(dependent) ; torch.distributions.Uniform.support.event_dim
    torch.distributions.Independent.support.is_discrete ; repr(dependent_property())"""  # noqa: E501


def listed(text):
    return [each.strip() for line in text.splitlines() for each in line.split(" ; ")]


CONSTRAINTS = {each: values for text, values in ((OF_NUMBERS, NUMBERS), (OF_VECTORS, VECTORS), (OF_MATRICES, MATRICES))
               for each in listed(text)}


def evaluate(torch, text):
    return eval(text, {"torch": torch} | vars(torch.distributions.constraints))


@pytest.mark.parametrize(("text", "values"), CONSTRAINTS.items())
def test_checks(text, values):
    def program(torch):
        c = evaluate(torch, text)
        x = torch.tensor(values)
        checks = [attempt(lambda: c.check(x)), attempt(lambda: c.check(x.double()[:1]))]
        return repr(c), type(c).__name__, c.is_discrete, attempt(lambda: c.event_dim), checks
    same(program)


@pytest.mark.parametrize("text", listed(BROKEN))
def test_errors(text):
    same(lambda torch: attempt(lambda: evaluate(torch, text)))


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("text", CONSTRAINTS)
def test_transforms_onto_constraints(text, registry):
    """From unconstrained numbers, into the region."""
    x = np.random.default_rng(0).normal(0, 1, (3, 3)).astype("float32")

    def program(torch):
        c = evaluate(torch, text)
        t = attempt(lambda: getattr(torch.distributions, registry)(c))
        if isinstance(t, tuple):
            return t
        found = [repr(t), attempt(lambda: t.domain.event_dim), t.bijective]
        value = attempt(lambda: t(torch.tensor(x)))
        if isinstance(value, torch.Tensor):
            found += [value, attempt(lambda: c.check(value)), attempt(lambda: t.inv(value))]
        return found, value if isinstance(value, tuple) else None
    same(program, rtol=1e-5, atol=2e-6)


def test_registries():
    def program(torch):
        D = torch.distributions
        registry = D.constraint_registry.ConstraintRegistry()

        class Even(D.constraints.Constraint):
            pass

        @registry.register(Even)
        def to_even(constraint):
            return D.AffineTransform(0.0, 2.0)
        registry.register(D.constraints.real, lambda constraint: D.identity_transform)
        wrong = [lambda: registry.register(3, to_even), lambda: registry.register(dict, to_even),
                 lambda: registry(D.constraints.simplex)]
        return (repr(registry(Even())), repr(registry(D.constraints.real)), repr(Even()),
                [attempt(call) for call in wrong], to_even(0)(torch.ones(1)))
    same(program)


def test_names():
    import tensorgrad
    names = oracle.distributions.constraints.__all__
    assert set(names) == set(tensorgrad.distributions.constraints.__all__)
    assert all(type(getattr(tensorgrad.distributions.constraints, n)).__name__
               == type(getattr(oracle.distributions.constraints, n)).__name__ for n in names)
