"""Transforms of torch.distributions beside PyTorch, and against the determinants of their Jacobians."""
import copy
import pickle

import numpy as np
import pytest
from side_by_side import attempt, same
from support import Programs, needed

import tensorgrad

oracle = needed("torch")

# text that makes a transform, and the shape of an event that it takes
TRANSFORMS = {
    "AbsTransform()": (), "AffineTransform(1.5, -2.0)": (),
    "AffineTransform(torch.tensor([1., 2.]), torch.tensor([-1., 3.]))": (2,),
    "AffineTransform(0., torch.tensor([[2.], [3.]]), event_dim=2)": (2, 1),
    "AffineTransform(0, torch.tensor(3.), 1)": (4,),
    "CatTransform([ExpTransform(), AffineTransform(0., 2.)], dim=-1, lengths=[2, 3])": (5,),
    "CatTransform([ExpTransform(), TanhTransform()], dim=0)": (2,),
    "CatTransform([StickBreakingTransform().inv.inv, IndependentTransform(ExpTransform(), 1)], dim=0)": (2, 3),
    "ComposeTransform([ExpTransform(), StickBreakingTransform(), AffineTransform(0., 2.)])": (3,),
    "ComposeTransform([AffineTransform(1., 2.), ExpTransform()])": (),
    "ComposeTransform([])": (), "CorrCholeskyTransform()": (6,), "CumulativeDistributionTransform(Normal(0.5, 2.))": (),
    "ExpTransform()": (),
    "IndependentTransform(ExpTransform(), 1)": (3,),
    "IndependentTransform(AffineTransform(1., torch.tensor([2., -3.])), 2)": (3, 2),
    "LowerCholeskyTransform()": (3, 3), "PositiveDefiniteTransform()": (3, 3), "PowerTransform(2.5)": (),
    "PowerTransform(torch.tensor([-1., 0.5]))": (2,), "ReshapeTransform((2, 3), (6,))": (2, 3),
    "SigmoidTransform()": (), "SoftmaxTransform()": (4,),
    "SoftplusTransform()": (),
    "StackTransform([ExpTransform(), SigmoidTransform()], dim=-1)": (2,),
    "StackTransform([ExpTransform(), AffineTransform(0., 3.)], dim=1)": (2,),
    "StickBreakingTransform()": (4,), "TanhTransform()": (), "identity_transform": (), "ExpTransform().inv": (),
    "SigmoidTransform(cache_size=1)": (),
    "ComposeTransform([ExpTransform(), AffineTransform(0., 2.)], cache_size=1)": (),
    "ComposeTransform([AffineTransform(1., 2.), ExpTransform()]).inv": (),
}
ALL = pytest.mark.parametrize(("text", "shape"), TRANSFORMS.items())


def make(torch, text):
    return eval(text, {"torch": torch} | vars(torch.distributions.transforms) | vars(torch.distributions))


def points(text, shape, batch=3):
    """Values in the domain."""
    x = np.random.default_rng(2).normal(0, 1, (batch, *shape)).astype("float64")
    return np.abs(x) + 0.1 if "Power" in text or text.endswith(".inv") else x


@ALL
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients(text, shape, dtype):
    def program(torch):
        t = make(torch, text)
        x = torch.tensor(points(text, shape), dtype=getattr(torch, dtype), requires_grad=True)
        y = attempt(lambda: t(x))
        found = [y, attempt(lambda: t.inv(y)), attempt(lambda: t.log_abs_det_jacobian(x, y)),
                 attempt(lambda: t.inv.log_abs_det_jacobian(y, x))]
        slopes = []
        for value in found:
            if dtype == "float64" and isinstance(value, torch.Tensor) and value.requires_grad:
                weights = torch.linspace(0.5, 2.0, value.numel(), dtype=value.dtype).reshape(value.shape)
                slopes.append(torch.autograd.grad((value * weights).sum(), x, retain_graph=True))
        return found, slopes
    wide = dtype == "float64" and "Normal" not in text
    same(program, rtol=1e-8 if wide else 3e-4, atol=1e-10 if wide else 2e-6)


@ALL
def test_what_a_transform_is(text, shape):
    def program(torch):
        t, other = make(torch, text), make(torch, text)
        again = t if ".inv" in text else pickle.loads(pickle.dumps(t))       # PyTorch's inverses forget of what
        shapes = [(), (3,), (4,), (2, 2), (3, 2), (3, 3), (2, 3), (5, 6), (7, 2, 1), (2, 1, 5)]
        return [repr(t), repr(t.inv), attempt(lambda: repr(t.domain)), attempt(lambda: repr(t.codomain)),
                attempt(lambda: t.event_dim), t.bijective,
                attempt(lambda: t.sign), t == other, t.inv == other.inv, t == t.inv, t.inv.inv is t, t != other,
                attempt(lambda: t.inv.event_dim),
                repr(again), attempt(lambda: hash(t))[0],
                [(attempt(lambda s=s: t.forward_shape(torch.Size(s))),
                  attempt(lambda s=s: t.inverse_shape(torch.Size(s)))) for s in shapes],
                repr(t.with_cache(1)), t.with_cache(1)._cache_size, t.with_cache(1).with_cache(1)._cache_size,
                t.with_cache(0)._cache_size]
    same(program)


@ALL
def test_inverses_and_determinants(text, shape):
    """t.inv(t(x)) = x, and log_abs_det_jacobian is that of the Jacobian, found by differentiation."""
    t = make(tensorgrad, text)
    pieces = "Cat", "Stack(", "StackTransform", "torch.tensor(3.)", "ComposeTransform([ExpTransform(), Stick"
    # terms for each piece, a scale that counts once, a result that is not free
    if not t.bijective or any(part in text for part in pieces):
        return
    x = tensorgrad.tensor(points(text, shape)[0] if t.domain.event_dim else points(text, shape, 1)[0],
                          requires_grad=True)
    y = t(x)
    assert t.forward_shape(x.shape) == y.shape and t.inverse_shape(y.shape) == x.shape
    np.testing.assert_allclose(t.inv(y).detach().numpy(), x.detach().numpy(), rtol=1e-5, atol=1e-6)
    free = y.tril(-1) if "Corr" in text else y                # a factor has as many free numbers as x
    kept = [i for i, v in enumerate(free.flatten()) if v.requires_grad and ("Corr" not in text or v != 0)]
    rows = np.array([tensorgrad.autograd.grad(free.flatten()[i], x, retain_graph=True)[0].flatten().numpy()
                     for i in kept])
    rows = rows[:-1] if "StickBreaking" in text else rows     # the last part is what the others leave
    expected = np.linalg.slogdet(rows)[1]
    np.testing.assert_allclose(t.log_abs_det_jacobian(x, y).sum().item(), expected, rtol=1e-4, atol=1e-5)


program = Programs()


@program
def caches(torch):
    D = torch.distributions
    t = D.ExpTransform(cache_size=1)
    x = torch.tensor([0.3, -1.0])
    y = t(x)
    z = torch.tensor([2.0])
    return (t.inv(y) is x, t(x) is y, t.inv(z) is t.inv(z), D.ExpTransform()(x) is D.ExpTransform()(x),
            attempt(lambda: D.ExpTransform(cache_size=2)),
            t.inv(y + 0) is x, copy.deepcopy(t)(x),
            D.ComposeTransform([t, D.AffineTransform(1.0, 2.0)]).with_cache(1)._cache_size)


@program
def transforms_of_ones_own(torch):
    D = torch.distributions

    class Cube(D.Transform):
        domain = codomain = D.constraints.real
        bijective, sign = True, 1

        def _call(self, x):
            return x ** 3

        def _inverse(self, y):
            return y.sign() * y.abs().pow(1 / 3)

        def log_abs_det_jacobian(self, x, y):
            return (3 * x ** 2).log()

    class Shift(Cube):
        def __init__(self, by):
            super().__init__()
            self.by = by

    class Nothing(D.Transform):
        pass
    t = Cube()
    d = D.TransformedDistribution(D.Normal(torch.zeros(2), 1.0), [t, D.AffineTransform(1.0, 2.0)])
    x = d.sample()
    calls = [lambda: Shift(1.0).with_cache(), lambda: t.with_cache()._cache_size, lambda: Nothing()(x),
             lambda: Nothing().inv(x), lambda: Nothing().sign,
             lambda: Nothing().log_abs_det_jacobian(x, x), lambda: Nothing().domain]
    return repr(t), t == Cube(), t == t, x, d.log_prob(x), d.cdf(x), [attempt(call) for call in calls]


@program
def wrong_shapes_and_arguments(torch):
    D = torch.distributions
    x = torch.ones(2, 3)
    exp, reshape, corr = D.ExpTransform(), D.ReshapeTransform((2,), (2, 1)), D.CorrCholeskyTransform()
    calls = [lambda: D.CatTransform([exp], lengths=[1, 2]), lambda: D.CatTransform([3]),
             lambda: D.CatTransform([exp], dim=4)(x),
             lambda: D.CatTransform([exp])(x), lambda: D.CatTransform([exp]).log_abs_det_jacobian(x, x),
             lambda: D.StackTransform([3]), lambda: D.StackTransform([exp], 1)(x),
             lambda: D.StackTransform([exp], 1).inv(x), lambda: D.StackTransform([exp], 5)(x),
             lambda: D.ReshapeTransform((2,), (3,)),
             lambda: reshape.forward_shape((3,)), lambda: reshape.inverse_shape((2,)),
             lambda: D.IndependentTransform(exp, 3)(x),
             lambda: corr.forward_shape((4,)), lambda: corr.inverse_shape((2, 3)), lambda: corr.event_dim,
             lambda: D.SoftmaxTransform().forward_shape(()),
             lambda: D.StickBreakingTransform().event_dim, lambda: D.transforms.Transform()(x),
             lambda: D.ComposeTransform([D.AbsTransform()]).sign,
             lambda: D.SoftmaxTransform().sign]
    return [attempt(call) for call in calls]


@program
def extreme_values(torch):
    D, x = torch.distributions, torch.tensor([-1e4, -100.0, -20.0, 0.0, 20.0, 100.0, 1e4])
    found = []
    for t in (D.SigmoidTransform(), D.TanhTransform(), D.SoftplusTransform(), D.ExpTransform(),
              D.AffineTransform(0.0, 1e-3)):
        y = t(x)
        found += [y, t.inv(y), t.log_abs_det_jacobian(x, y)]
    sticks = D.StickBreakingTransform()
    y = sticks(torch.stack([x, -x, x * 0]))
    return found, y, y.sum(-1), sticks.inv(y), D.SoftmaxTransform()(x), D.CorrCholeskyTransform()(x[:6])


@program
def matrices_and_vectors(torch):
    utils = torch.distributions.utils
    m = torch.arange(18.0).reshape(2, 3, 3)
    calls = [lambda d=d: utils.tril_matrix_to_vec(m, d) for d in (-2, -1, 0, 1, 2, 3, -4)]
    calls += [lambda n=n, d=d: utils.vec_to_tril_matrix(torch.arange(1.0, n + 1), d)
              for n, d in ((6, 0), (3, -1), (4, 0), (1, 0), (8, 1), (2, -1))]
    calls += [lambda: utils.broadcast_all(1, torch.zeros(2), 3.0), lambda: utils.broadcast_all("a", 1),
              lambda: utils.broadcast_all(torch.zeros(2, 3), torch.zeros(4, 1)), lambda: utils.broadcast_all(1, True),
              lambda: utils.probs_to_logits(torch.tensor([0.0, 0.3, 1.0])),
              lambda: utils.probs_to_logits(torch.tensor([0.0, 0.3, 1.0]), True),
              lambda: utils.logits_to_probs(torch.tensor([0.0, 300.0])),
              lambda: utils.logits_to_probs(torch.tensor([0.0, 300.0]), is_binary=True),
              lambda: utils.clamp_probs(torch.tensor([0.0, 1.0], dtype=torch.float64))]
    return [attempt(call) for call in calls]


test_programs = program.test(rtol=2e-5, atol=1e-6)
