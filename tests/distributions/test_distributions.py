"""torch.distributions beside PyTorch: a table of distributions and parameters drives all checks."""
import pickle
import re
import sys
import warnings

import numpy as np
import pytest
import side_by_side
from side_by_side import attempt
from support import Programs, fresh_process, needed

import tensorgrad

oracle = needed("torch")

SPD = [[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 1.1]]
@pytest.fixture(autouse=True)
def validating():
    """PyTorch's compiler, once imported, turns its checks off for good."""
    if "torch" in sys.modules:
        sys.modules["torch"].distributions.Distribution.set_default_validate_args(True)


TRIL = [[1.2, 0.0, 0.0], [0.4, 0.9, 0.0], [-0.3, 0.5, 1.4]]
ROWS = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
LOGITS = [[0.3, -1.2, 0.8], [2.0, 0.1, -0.4]]
W, D = [[0.5, 0.2], [-0.3, 1.0], [0.7, -0.6]], [0.8, 1.1, 0.6]


def both(**lists):
    """Parameters as lists, and the first numbers of the lists."""
    return [lists, {name: values[0] for name, values in lists.items()}]


TABLE = {     # lists become tensors that require gradients
    "Bernoulli": [*both(probs=[0.1, 0.5, 0.9]), {"logits": [-2.0, 0.0, 30.0]}, {"probs": [0.0, 1.0]}],
    "Beta": [*both(concentration1=[0.4, 3.0, 40.0], concentration0=[0.6, 0.9, 25.0]),
             {"concentration1": [[0.3], [2.0]], "concentration0": 1.5}],
    "Binomial": [{"total_count": 5, "probs": [0.1, 0.5, 0.9]}, {"total_count": 40, "logits": [-2.0, 0.3]},
                 {"total_count": 3, "probs": 0.25},
                 {"total_count": [2.0, 7.0], "probs": [0.3, 0.6]}, {"total_count": 4, "probs": [0.0, 1.0]}],
    "Categorical": [{"probs": [0.1, 0.6, 0.3]}, {"probs": [[1.0, 2.0, 0.0], [0.5, 0.5, 4.0]]}, {"logits": LOGITS}],
    "Cauchy": both(loc=[0.5, -2.0], scale=[1.2, 0.3]),
    "Chi2": both(df=[0.7, 3.0, 20.0]),
    "ContinuousBernoulli": [*both(probs=[0.1, 0.5, 0.9]), {"logits": [-2.0, 0.001, 3.0]},
                            {"probs": [0.4995, 0.3], "lims": (0.2, 0.7)}],
    "Dirichlet": [{"concentration": [0.5, 2.0, 7.0]}, {"concentration": [[0.3, 0.4], [20.0, 30.0]]}],
    "Exponential": both(rate=[0.5, 3.0]),
    "FisherSnedecor": both(df1=[1.0, 3.0, 8.0], df2=[2.0, 5.0, 11.0]),
    "Gamma": [*both(concentration=[0.3, 2.0, 50.0], rate=[0.5, 3.0, 0.1]),
              {"concentration": [[1.0], [9.0]], "rate": [0.5, 2.0]}],
    "GeneralizedPareto": [{"loc": [0.5, -1.0, 0.0], "scale": [1.0, 2.0, 0.4], "concentration": [0.3, -0.4, 0.0]},
                          {"loc": 0.0, "scale": 1.0, "concentration": 0.7}],
    "Geometric": [*both(probs=[0.1, 0.5, 0.9]), {"logits": [-1.0, 2.0]}, {"probs": [1.0, 0.3]}],
    "Gumbel": both(loc=[0.5, -2.0], scale=[1.2, 0.3]),
    "HalfCauchy": both(scale=[0.5, 2.0]),
    "HalfNormal": both(scale=[0.5, 2.0]),
    "InverseGamma": both(concentration=[0.7, 2.5, 6.0], rate=[0.5, 3.0, 1.0]),
    "Kumaraswamy": both(concentration1=[0.6, 2.0, 3.0], concentration0=[0.8, 0.5, 4.0]),
    "LKJCholesky": [{"dim": 3, "concentration": [0.5, 1.0, 4.0]}, {"dim": 2}, {"dim": 5, "concentration": 2.0}],
    "Laplace": both(loc=[0.5, -2.0], scale=[1.2, 0.3]),
    "LogNormal": both(loc=[0.5, -2.0], scale=[1.2, 0.3]),
    "LogisticNormal": [{"loc": [0.5, -0.2, 1.0], "scale": [1.2, 0.3, 0.7]}, {"loc": LOGITS, "scale": 0.5}],
    "LowRankMultivariateNormal": [{"loc": [0.1, 0.2, 0.3], "cov_factor": W, "cov_diag": D},
                                  {"loc": LOGITS, "cov_factor": W, "cov_diag": ROWS}],
    "Multinomial": [{"total_count": 4, "probs": [0.1, 0.6, 0.3]}, {"total_count": 9, "logits": LOGITS},
                    {"total_count": 3, "probs": [[0.5, 0.5, 0.0]]}],
    "MultivariateNormal": [{"loc": [0.1, 0.2, 0.3], "covariance_matrix": SPD}, {"loc": LOGITS, "precision_matrix": SPD},
                           {"loc": LOGITS, "scale_tril": TRIL},
                           {"loc": [0.1, 0.2, 0.3], "scale_tril": [[TRIL], [TRIL]]}],
    "NegativeBinomial": [{"total_count": [2.0, 5.0], "probs": [0.1, 0.6]}, {"total_count": 3.0, "logits": [-1.0, 0.4]},
                         {"total_count": 0, "probs": [0.2]}],
    "Normal": [*both(loc=[0.5, -2.0], scale=[1.2, 0.3]), {"loc": [[0.5], [1.0]], "scale": [1.0, 2.0, 30.0]},
               {"loc": [0.1] * 20, "scale": 2.0}],
    "OneHotCategorical": [{"probs": [0.1, 0.6, 0.3]}, {"logits": LOGITS}],
    "OneHotCategoricalStraightThrough": [{"probs": ROWS}, {"logits": [0.3, -1.2, 0.8]}],
    "Pareto": both(scale=[0.5, 2.0, 1.0], alpha=[0.6, 1.5, 3.0]),
    "Poisson": both(rate=[0.0, 0.5, 7.0, 60.0]),
    "RelaxedBernoulli": [{"temperature": [0.7], "probs": [0.1, 0.5, 0.9]},
                         {"temperature": [2.2], "logits": [-2.0, 0.3]}],
    "RelaxedOneHotCategorical": [{"temperature": [0.7], "probs": [0.1, 0.6, 0.3]},
                                 {"temperature": [2.2], "logits": LOGITS}],
    "StudentT": [*both(df=[0.8, 1.5, 9.0], loc=[0.5, -2.0, 1.0], scale=[1.2, 0.3, 2.0]), {"df": [3.0]}],
    "Uniform": both(low=[-1.0, 0.5], high=[0.3, 4.0]),
    "VonMises": both(loc=[0.5, -2.0, 3.0], concentration=[0.4, 3.0, 50.0]),
    "Weibull": both(scale=[0.5, 2.0, 1.0], concentration=[0.6, 1.5, 3.0]),
    "Wishart": [{"df": [5.0], "covariance_matrix": SPD}, {"df": [3.5, 7.0], "scale_tril": TRIL},
                {"df": 4.0, "precision_matrix": SPD}],
}
CASES = [pytest.param(name, params, id=f"{name}-{i}") for name, rows in TABLE.items() for i, params in enumerate(rows)]

EDGES = {     # where densities end, jump or overflow; values that would not be valid are not validated
    "Bernoulli": [0.0, 1.0, 0.5], "Beta": [0.0, 1.0, 1e-300, 0.5], "Binomial": [0.0, 3.0, 5.0],
    "Cauchy": [1e200, -1e30, 0.5], "Chi2": [0.0, 1e-300, 1e4], "ContinuousBernoulli": [0.0, 1.0, 0.4],
    "Exponential": [0.0, 1e4, -1.0], "FisherSnedecor": [0.0, 1e-300, 1e12],
    "Gamma": [0.0, 1e-300, 1e4], "GeneralizedPareto": [0.5, -1.0, 1e9], "Geometric": [0.0, 1.0, 1e5],
    "Gumbel": [-800.0, 1e3, 0.0], "HalfCauchy": [0.0, -1.0, 1e200], "HalfNormal": [0.0, -1.0, 1e3],
    "InverseGamma": [0.0, 1e-300, 1e12], "Kumaraswamy": [0.0, 1.0, 1e-300], "Laplace": [0.5, -2.0, 1e4],
    "LogNormal": [0.0, 1e-300, 1e300], "NegativeBinomial": [0.0, 1e5], "Normal": [0.5, 1e3, -1e200],
    "Pareto": [0.5, 0.1, 1e200], "Poisson": [0.0, 1e4], "RelaxedBernoulli": [0.0, 1.0, 1e-300],
    "StudentT": [0.5, 1e200], "Uniform": [-1.0, 0.3, 0.5, 4.0, 9.0],
    "VonMises": [0.5, 100.0, -3.2],
    "Weibull": [0.0, 1e-300, 1e4],
}


def same(program, dtype="float64", **tolerances):
    """Side by side, with numbers as parameters in the dtype."""
    def with_default(torch):
        before = torch.get_default_dtype()
        torch.set_default_dtype(getattr(torch, dtype))
        try:
            return program(torch)
        finally:
            torch.set_default_dtype(before)
    side_by_side.same(with_default, **tolerances)


def build(torch, name, params, dtype="float64", **options):
    """Return the distribution and its tensor parameters. Elements above the diagonal of a triangle get no gradient."""
    leaves = {key: torch.tensor(value, dtype=getattr(torch, dtype), requires_grad=True)
              for key, value in params.items() if isinstance(value, list)}
    given = {key: value.tril() if key == "scale_tril" else value for key, value in leaves.items()}
    return getattr(torch.distributions, name)(**params | given, **options), list(leaves.values())


def drawn(name, params):
    """Values for log_prob: PyTorch's draws."""
    oracle.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(oracle, name, params)[0].sample((4,)).double().numpy()


def of_each(torch, d, values):
    """Everything that follows from a distribution and values."""
    x, u = torch.tensor(values), torch.tensor(np.linspace(0.05, 0.95, 4)).reshape((4,) + (1,) * len(d.batch_shape))
    calls = {"log_prob": lambda: d.log_prob(x), "cdf": lambda: d.cdf(x), "icdf": lambda: d.icdf(u),
             "mean": lambda: d.mean, "mode": lambda: d.mode,
             "variance": lambda: d.variance, "stddev": lambda: d.stddev, "entropy": d.entropy,
             "perplexity": d.perplexity}
    return {name: attempt(call) for name, call in calls.items()}


def slopes(torch, results, params):
    """Gradients of each of the results."""
    found = {}
    for name, value in results.items():
        if isinstance(value, torch.Tensor) and value.requires_grad:
            weights = torch.arange(1.0, value.numel() + 1, dtype=value.dtype).reshape(value.shape) / value.numel()
            loss = (value * weights).sum()
            found[name] = attempt(lambda loss=loss: list(torch.autograd.grad(loss, params, retain_graph=True,
                                                                             allow_unused=True)))
    return found


# ── all of the table ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_distribution_is_in_the_table():
    classes = {name for name, kind in vars(oracle.distributions).items()
               if isinstance(kind, type) and issubclass(kind, oracle.distributions.Distribution)}
    of_others = {"Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily", "TransformedDistribution"}
    assert classes - of_others == set(TABLE)
    assert set(oracle.distributions.__all__) == set(tensorgrad.distributions.__all__)


@pytest.mark.parametrize(("name", "params"), CASES)
def test_what_a_distribution_is(name, params):
    def program(torch):
        d, _ = build(torch, name, params)
        wider = d.expand((2, *d.batch_shape))
        again = pickle.loads(pickle.dumps(d))
        return [repr(d), repr(wider), repr(again), repr(d.support), d.support.event_dim, d.support.is_discrete,
                repr(d.arg_constraints), d.batch_shape, d.event_shape, wider.batch_shape, wider.event_shape,
                d.has_rsample, d.has_enumerate_support, type(d).__name__,
                [base.__name__ for base in type(d).__mro__ if re.search(r"[.]distributions[.][^_]\w*$", base.__module__)
                 and base.__name__[0] != "_"],
                attempt(d.enumerate_support), attempt(lambda: d.enumerate_support(expand=False))]
    same(program)


@pytest.mark.parametrize(("name", "params"), CASES)
def test_probabilities_and_moments(name, params):
    values = drawn(name, params)

    def program(torch):
        d, leaves = build(torch, name, params)
        results = of_each(torch, d, values)
        wider = of_each(torch, d.expand((2, *d.batch_shape)), values[:, None])
        if name == "Multinomial":           # PyTorch forgets what the entropy needs
            wider = {key: value for key, value in wider.items() if key not in ("entropy", "perplexity")}
        return results, slopes(torch, results, leaves), wider
    same(program, rtol=1e-7)


@pytest.mark.parametrize(("name", "params"), [case for case in CASES if case.values[0] in EDGES])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges(name, params, dtype):
    def program(torch):
        d, leaves = build(torch, name, params, dtype, validate_args=False)
        x = torch.tensor(EDGES[name], dtype=getattr(torch, dtype)).reshape((-1,) + (1,) * len(d.batch_shape))
        u = torch.tensor([0.0, 1.0], dtype=x.dtype).reshape((-1,) + (1,) * len(d.batch_shape))
        results = {"log_prob": attempt(lambda: d.log_prob(x)), "cdf": attempt(lambda: d.cdf(x)),
                   "icdf": attempt(lambda: d.icdf(u))}
        return results, slopes(torch, {"log_prob": results["log_prob"]}, leaves)
    same(program, dtype, rtol=2e-5 if dtype == "float32" else 1e-7, atol=5e-5 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize(("name", "params"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_samples_are_those_of_the_same_seed(name, params, dtype):
    def program(torch):
        d, leaves = build(torch, name, params, dtype)
        samples = [d.sample((3,)), d.sample(), d.expand((2, *d.batch_shape)).sample((2,)), d.sample((2, 5))]
        # PyTorch's cannot be differentiated once it has drawn anew
        draw = d._bartlett_sampling if name == "Wishart" else d.rsample
        results = {"rsample": attempt(lambda: draw(torch.Size([3])))} if d.has_rsample else {}
        return samples, results, slopes(torch, results, leaves), torch.rand(2)
    same(program, dtype, rtol=3e-5 if dtype == "float32" else 1e-9, atol=1e-6 if dtype == "float32" else 1e-12)


# ── draws with gradients, against the definition ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("alpha", [0.05, 0.6, 1.7, 5.0, 12.0, 300.0])
def test_gradients_of_gamma_numbers(alpha):
    """P(α, x(α)) does not change with α. PyTorch's approximations, which are ours, are good to three digits."""
    tensorgrad.manual_seed(5)
    a = tensorgrad.full((200,), alpha, dtype=tensorgrad.float64, requires_grad=True)
    x = tensorgrad._standard_gamma(a)
    x.sum().backward()
    x, h = x.detach(), 1e-4 * alpha
    kept = (x > 1e-6).numpy()
    change = (tensorgrad.igamma(a.detach() + h, x) - tensorgrad.igamma(a.detach() - h, x)) / (2 * h)
    density = tensorgrad.distributions.Gamma(a.detach(), 1.0).log_prob(x).exp()
    np.testing.assert_allclose(a.grad.numpy()[kept], (-change / density).numpy()[kept], rtol=5e-3, atol=1e-4)


@pytest.mark.parametrize("pair", [(0.3, 0.4), (0.5, 3.0), (2.0, 2.5), (8.0, 9.0), (40.0, 3.0), (200.0, 300.0)])
def test_gradients_of_dirichlet_and_beta_numbers(pair):
    def program(torch):
        a = torch.tensor([pair] * 40, dtype=torch.float64, requires_grad=True)
        x = torch.distributions.Dirichlet(a).rsample()
        weights = torch.linspace(-1, 1, 80, dtype=torch.float64).reshape(40, 2)
        return x, torch.autograd.grad((x * weights).sum(), a), type(x.grad_fn).__name__
    same(program, rtol=1e-7)


def test_gradients_of_gamma_numbers_have_no_gradients():
    def program(torch):
        a = torch.tensor([2.0, 3.0], requires_grad=True)
        first, = torch.autograd.grad(torch._standard_gamma(a).sum(), a, create_graph=True)
        first.sum().backward()
    same(program)


# ── divergences ───────────────────────────────────────────────────────────────────────────────────────────────────────

# two sets of parameters a family; where supports end, each of the two reaches beyond the other, or touches its end
PAIRS = {
    "Bernoulli": ({"probs": [0.1, 0.5, 0.0, 1.0]}, {"probs": [0.3, 0.5, 0.2, 1.0]}),
    "Poisson": ({"rate": [0.5, 7.0, 1.0, 2.0]}, {"rate": [1.5, 2.0, 1.0, 3.0]}),
    "Binomial": ({"total_count": [5.0, 7.0, 1.0, 1.0], "probs": [0.3, 0.6, 0.4, 0.2]},
                 {"total_count": [5.0, 4.0, 1.0, 1.0], "probs": [0.5, 0.6, 0.4, 0.1]}),
    "Beta": ({"concentration1": [0.4, 3.0, 1.0], "concentration0": [0.6, 2.0, 1.0]},
             {"concentration1": [1.4, 3.0, 2.0], "concentration0": [0.6, 0.2, 5.0]}),
    "ContinuousBernoulli": ({"probs": [0.1, 0.5, 0.8]}, {"probs": [0.3, 0.4, 0.9]}),
    "Exponential": ({"rate": [0.5, 3.0, 1.0]}, {"rate": [1.5, 2.0, 0.2]}),
    "Gamma": ({"concentration": [0.3, 2.0, 7.0], "rate": [0.5, 3.0, 1.0]},
              {"concentration": [1.3, 2.0, 5.0], "rate": [0.7, 1.0, 2.0]}),
    "Gumbel": ({"loc": [0.5, -2.0, 1.0], "scale": [1.2, 0.3, 1.0]},
               {"loc": [0.1, -1.0, 0.0], "scale": [1.0, 0.6, 3.0]}),
    "Laplace": ({"loc": [0.5, -2.0, 1.0], "scale": [1.2, 0.3, 1.0]},
                {"loc": [0.1, -1.0, 0.0], "scale": [1.0, 0.6, 3.0]}),
    "Normal": ({"loc": [0.5, -2.0, 1.0], "scale": [1.2, 0.3, 1.0]},
               {"loc": [0.1, -1.0, 0.0], "scale": [1.0, 0.6, 3.0]}),
    "Pareto": ({"scale": [0.5, 2.0, 1.0], "alpha": [0.9, 2.5, 1.5]},
               {"scale": [0.4, 3.0, 1.0], "alpha": [0.5, 2.5, 4.0]}),
    "Uniform": ({"low": [-1.0, 0.2, 0.0], "high": [0.3, 0.9, 1.0]},
                {"low": [-2.0, 0.4, -0.5], "high": [0.9, 0.7, 2.0]}),
    "Categorical": ({"probs": ROWS}, {"logits": LOGITS}), "OneHotCategorical": ({"probs": ROWS}, {"logits": LOGITS}),
    "Cauchy": ({"loc": [0.5, 1.0], "scale": [1.0, 2.0]}, {"loc": [0.1, 1.0], "scale": [0.3, 2.0]}),
    "Geometric": ({"probs": [0.2, 0.5]}, {"probs": [0.4, 0.5]}),
    "Chi2": ({"df": [1.0, 4.0, 9.0]}, {"df": [2.0, 3.0, 1.0]}),
    "Dirichlet": ({"concentration": ROWS}, {"concentration": [[2.0, 3.0, 4.0]]}),
    "HalfNormal": ({"scale": [0.5, 3.0]}, {"scale": [1.5, 2.0]}),
    "LogNormal": ({"loc": [0.5], "scale": [1.2]}, {"loc": [0.1], "scale": [1.0]}),
    "LowRankMultivariateNormal": ({"loc": [0.1, 0.2, 0.3], "cov_factor": W, "cov_diag": D},
                                  {"loc": [0.5, 0.0, -1.0], "cov_factor": W[::-1], "cov_diag": D}),
    "MultivariateNormal": ({"loc": [0.1, 0.2, 0.3], "covariance_matrix": SPD}, {"loc": LOGITS, "scale_tril": TRIL}),
    "StudentT": ({"df": [3.0]},) * 2,
    "Wishart": ({"df": [5.0], "covariance_matrix": SPD},
                {"df": [6.0], "covariance_matrix": [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.5]]}),
}


def test_pairs_are_those_of_pytorch():
    """Those of the libraries' own classes: examples and programs in the same process register more."""
    def pairs(distributions):
        return {(p.__name__, q.__name__) for p, q in distributions.kl._KL_REGISTRY
                if hasattr(distributions, p.__name__) or p.__name__ == "ExponentialFamily"}
    ours, theirs = pairs(tensorgrad.distributions), pairs(oracle.distributions)
    assert ours == theirs and len(ours) > 80


@pytest.mark.parametrize("first", PAIRS)
def test_divergences(first):
    def program(torch):
        found = {}
        for second in PAIRS:
            for i, j in ((0, 1), (1, 0)):
                p, ours = build(torch, first, PAIRS[first][i])
                q, theirs = build(torch, second, PAIRS[second][j])
                found[f"{second} {i}"] = kl = attempt(lambda p=p, q=q: torch.distributions.kl_divergence(p, q))
                found |= {f"{second} {i} gradients": slopes(torch, {"kl": kl}, ours + theirs)}
        return found
    same(program, rtol=1e-6)


program = Programs()


@program
def divergences_of_composed_distributions(torch):
    D = torch.distributions
    p, q = D.Normal(torch.zeros(2, 3), 1.0), D.Normal(torch.ones(3), torch.tensor([1.0, 2.0, 3.0]))
    exp, affine = D.ExpTransform(), D.AffineTransform(1.0, 2.0)
    both, again = (D.TransformedDistribution(p, [exp, affine]),
                   D.TransformedDistribution(q.expand((2, 3)), [D.ExpTransform(), D.AffineTransform(1.0, 2.0)]))
    pairs = [(D.Independent(p, 1), D.Independent(q, 1)), (D.Independent(p, 1), D.Independent(q, 0)),
             (D.Independent(p, 1), q), (both, again),
             (D.TransformedDistribution(p, [exp]), D.TransformedDistribution(q, [affine])),
             (D.LogNormal(0.0, 1.0), D.LogNormal(0.5, 2.0)),
             (D.Beta(2.0, 3.0), D.Gamma(2.0, 1.0)), (D.VonMises(0.0, 1.0), D.VonMises(0.0, 1.0)),
             (D.Gamma(1.0, 1.0), D.Dirichlet(torch.ones(3))),
             (D.Binomial(3, torch.tensor(0.5)), D.Binomial(4, torch.tensor(0.5))),
             (D.MultivariateNormal(torch.zeros(2), torch.eye(2)), D.MultivariateNormal(torch.zeros(3), torch.eye(3)))]
    return [attempt(lambda pair=pair: D.kl_divergence(*pair)) for pair in pairs]


@program
def divergences_of_subclasses(torch):
    D = torch.distributions
    kept = dict(D.kl._KL_REGISTRY)

    class A(D.Normal):
        pass

    class B(D.Normal):
        pass

    class C(A):
        pass
    try:
        before = [D.kl_divergence(A(0.0, 1.0), B(1.0, 1.0)),
                  attempt(lambda: D.kl_divergence(A(0.0, 1.0), D.Beta(1.0, 1.0)))]
        D.register_kl(A, D.Normal)(lambda p, q: "A, Normal")
        D.register_kl(D.Normal, B)(lambda p, q: "Normal, B")
        D.register_kl(C, C)(lambda p, q: "C, C")
        return before, [[D.kl_divergence(p(0.0, 1.0), q(0.0, 1.0)) for q in (D.Normal, A, B, C)]
                        for p in (D.Normal, A, B, C)]
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(kept)
        getattr(D.kl, "_KL_MEMOIZE", {}).clear()
        D.register_kl(D.Normal, D.Normal)(kept[D.Normal, D.Normal])


# ── validation ────────────────────────────────────────────────────────────────────────────────────────────────────────

NAN = float("nan")
INVALID = {     # parameters that are not valid
    "Bernoulli": [{"probs": [0.1, 1.2]}, {"probs": 0.5, "logits": 0.0}, {}, {"logits": [NAN]}],
    "Beta": [{"concentration1": 0.0, "concentration0": 1.0}],
    "Binomial": [{"total_count": -1, "probs": 0.5}, {"total_count": 2, "probs": [-0.1]},
                 {"total_count": 2.5, "probs": 0.5}, {"total_count": 2}],
    "Categorical": [{"probs": [-1.0, 2.0]}, {"logits": [NAN, 1.0]}, {}], "Cauchy": [{"loc": 0.0, "scale": [0.0, 1.0]}],
    "ContinuousBernoulli": [{"probs": [1.1]}], "Dirichlet": [{"concentration": [[1.0, -1.0]]}],
    "Exponential": [{"rate": [-1.0]}, {"rate": "fast"}],
    "Gamma": [{"concentration": 1.0, "rate": [0.0]}, {"concentration": None, "rate": 1.0}],
    "GeneralizedPareto": [{"loc": 0.0, "scale": -1.0, "concentration": 1.0}],
    "Geometric": [{"probs": [0.0, 0.5]}, {"probs": 1.5}],
    "Gumbel": [{"loc": 0.0, "scale": -1.0}], "HalfNormal": [{"scale": -1.0}],
    "LKJCholesky": [{"dim": 1}, {"dim": 3, "concentration": -1.0}],
    "LogNormal": [{"loc": 0.0, "scale": -1.0}],
    "LowRankMultivariateNormal": [
        {"loc": [0.0, 1.0], "cov_factor": W, "cov_diag": D},
        {"loc": [0.0] * 3, "cov_factor": W, "cov_diag": [1.0, 2.0]},
        {"loc": LOGITS, "cov_factor": [W] * 3, "cov_diag": D}, {"loc": [0.0] * 3, "cov_factor": D, "cov_diag": D}],
    "Multinomial": [{"total_count": 2.0, "probs": [0.5, 0.5]}, {"total_count": 2, "probs": [-0.5, 0.5]}],
    "MultivariateNormal": [
        {"loc": [0.0] * 3}, {"loc": [0.0] * 3, "scale_tril": SPD, "covariance_matrix": SPD},
        {"loc": [0.0] * 3, "covariance_matrix": D},
        {"loc": [0.0] * 2, "covariance_matrix": [[1.0, 2.0], [0.0, 1.0]]},
        {"loc": [0.0] * 2, "covariance_matrix": [[1.0, 2.0], [2.0, 1.0]]},
        {"loc": [0.0] * 2, "scale_tril": [[-1.0, 0.0], [2.0, 1.0]]}],
    "NegativeBinomial": [{"total_count": -1.0, "probs": 0.5}, {"total_count": 1.0, "probs": 1.0}],
    "Normal": [{"loc": 0.0, "scale": -1.0}, {"loc": [NAN] * 2, "scale": 1.0}],
    "Pareto": [{"scale": -1.0, "alpha": 1.0}], "Poisson": [{"rate": -1.0}],
    "StudentT": [{"df": 0.0}], "Uniform": [{"low": 1.0, "high": [0.5]}],
    "VonMises": [{"loc": 0.0, "concentration": 0.0}],
    "Weibull": [{"scale": 1.0, "concentration": -2.0}],
    "Wishart": [{"df": 1.0, "covariance_matrix": SPD}, {"df": 5.0}, {"df": 5.0, "covariance_matrix": D}],
}


def whole_message(function):
    return attempt(function, whole=True)


@pytest.mark.parametrize("name", INVALID)
def test_invalid_parameters(name):
    def program(torch):
        return [whole_message(lambda p=params, o=options: repr(build(torch, name, p, "float32", **o)[0]))
                for params in INVALID[name] for options in ({}, {"validate_args": False})]
    same(program)


@pytest.mark.parametrize("name", TABLE)
def test_invalid_values(name):
    params = TABLE[name][0]
    values = drawn(name, params)

    def program(torch):
        d = build(torch, name, params)[0]
        quiet = build(torch, name, params, validate_args=False)[0]
        x = torch.tensor(values)
        wrong = [3.5, x * float("nan"), x - 100.5, x[..., :1].repeat((1,) * (x.dim() - 1) + (7,)),
                 torch.cat([x, x * 0 + 0.37], 0)]
        unchecked = type(attempt(lambda: quiet.log_prob(wrong[2]))).__name__
        return ([whole_message(lambda v=v: d.log_prob(v)) for v in wrong], whole_message(lambda: d.cdf(wrong[2])),
                unchecked)
    same(program)


@program
def defaults_of_validation(torch):
    D = torch.distributions
    first = D.Normal(0.0, 1.0)._validate_args
    D.Distribution.set_default_validate_args(False)
    try:
        off = D.Normal(0.0, -1.0)
        on = whole_message(lambda: D.Normal(0.0, -1.0, validate_args=True))
        return (first, repr(off), on, off._validate_args,
                whole_message(lambda: D.Distribution.set_default_validate_args(None)))
    finally:
        D.Distribution.set_default_validate_args(True)


@program
def a_bare_distribution(torch):
    D = torch.distributions

    class Bare(D.Distribution):
        pass

    class Half(D.Distribution):
        arg_constraints = {}
    d, h = Bare(), Half(torch.Size([2]), torch.Size([3]))
    calls = [d.sample, d.rsample, lambda: d.log_prob(0), lambda: d.cdf(0), lambda: d.icdf(0), d.entropy, d.perplexity,
             d.enumerate_support,
             lambda: d.expand((2,)), lambda: d.support, lambda: d.arg_constraints, lambda: d.mean, lambda: d.variance,
             lambda: d.stddev,
             lambda: h._validate_sample(torch.zeros(3))]
    return ([type(attempt(call)).__name__ for call in calls], repr(h), h._extended_shape((4,)), h.batch_shape,
            h.event_shape)


@program
def subclasses_and_expansion(torch):
    D = torch.distributions

    class Plain(D.Normal):
        pass

    class Scaled(D.Normal):
        def __init__(self, loc):
            super().__init__(loc, 2.0)

    class Whole(Scaled):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Whole, _instance)
            return super().expand(batch_shape, _instance=new)
    wide = Whole(0.0).expand((3,))
    return [repr(Plain(0.0, 1.0).expand((2,))), attempt(lambda: Scaled(0.0).expand((2,))), repr(wide),
            type(wide).__name__, wide.sample()]


@program
def lazy_attributes(torch):
    D, calls = torch.distributions, []
    logits = torch.tensor([0.2, -1.0], requires_grad=True)
    d = D.Bernoulli(logits=logits)
    with torch.no_grad():
        before = "probs" in vars(d)
        probs = d.probs
    calls += [before, "probs" in vars(d), probs.requires_grad, d.probs is probs,
              isinstance(D.Bernoulli.probs, D.utils.lazy_property)]
    mvn = D.MultivariateNormal(torch.zeros(2), torch.eye(2))
    return (calls, sorted(k for k in vars(mvn) if k[0] != "_"), mvn.precision_matrix,
            sorted(k for k in vars(mvn) if k[0] != "_"))


@program
def deprecated_sample_n(torch):
    return torch.distributions.Normal(0.0, 1.0).sample_n(3)


# ── compositions ──────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def independent(torch):
    D = torch.distributions
    d = D.Independent(D.Normal(torch.zeros(2, 3, 4), 1.0), 2)
    e = D.Independent(D.Bernoulli(torch.tensor([0.3, 0.6])), 0)
    wide = d.expand((5, 2))
    return [repr(d), d.sample((2,)), d.rsample(), d.log_prob(torch.ones(3, 4)), d.entropy(), d.mean, d.mode, d.variance,
            d.stddev, repr(d.support), d.has_rsample, d.has_enumerate_support, attempt(d.enumerate_support),
            e.enumerate_support(), repr(e.support), wide.batch_shape,
            wide.event_shape, attempt(lambda: D.Independent(D.Normal(0.0, 1.0), 1)),
            whole_message(lambda: d.log_prob(torch.full((3, 4), NAN)))]


@program
def mixtures(torch):
    D, found = torch.distributions, []
    logits = torch.tensor([[0.3, -1.0, 0.5]], requires_grad=True)
    loc = torch.tensor([[-2.0, 0.5, 3.0], [1.0, 1.5, 2.0]], requires_grad=True)
    for component in (D.Normal(loc, 0.7), D.Independent(D.Normal(loc.unsqueeze(-1).expand(2, 3, 4), 0.7), 1),
                      D.Poisson(loc.exp())):
        d = D.MixtureSameFamily(D.Categorical(logits=logits), component)
        x = d.sample((3,))
        log_prob = d.log_prob(x)
        wide = d.expand((4, 2))
        found += [repr(d), x, log_prob, d.mean, d.variance, d.batch_shape, d.event_shape, repr(d.support),
                  attempt(lambda d=d, x=x: d.cdf(x)), d.has_rsample,
                  torch.autograd.grad(log_prob.sum() + d.variance.sum(), [logits, loc]), wide.sample().shape,
                  wide.log_prob(x[0]), attempt(d.rsample)]
    weights, normal = D.Categorical(torch.ones(3)), D.Normal(torch.zeros(3), 1.0)
    wrong = [(normal, normal), (weights, weights.probs), (D.Categorical(torch.ones(2)), normal),
             (D.Categorical(torch.ones(2, 3)), D.Normal(torch.zeros(4, 3), 1.0))]
    return (found, [attempt(lambda pair=pair: D.MixtureSameFamily(*pair)) for pair in wrong],
            D.MixtureSameFamily(weights, normal).log_prob(torch.tensor(0.5)))


@program
def transformed(torch):
    D = torch.distributions
    base = D.Normal(torch.zeros(3), torch.ones(3))
    loc = torch.tensor([[1.0], [2.0]], requires_grad=True)
    found = []
    for transforms in ([], D.ExpTransform(), [D.AffineTransform(loc, 2.0), D.SigmoidTransform()],
                       [D.StickBreakingTransform()], [D.AffineTransform(0.0, -2.0)],
                       [D.TanhTransform(cache_size=1), D.AffineTransform(1.0, torch.tensor([1.0, -2.0, 3.0]))],
                       [D.ReshapeTransform((3,), (3, 1))],
                       [D.AbsTransform()], [D.transforms.CumulativeDistributionTransform(D.Normal(0.0, 1.0))]):
        d = D.TransformedDistribution(base, transforms)
        x = d.rsample((2,))
        log_prob = attempt(lambda d=d, x=x: d.log_prob(x.detach()))
        u = torch.full(d.batch_shape, 0.3)
        found += [d.batch_shape, d.event_shape, repr(d.base_dist), repr(d.support), d.has_rsample, x, d.sample(),
                  log_prob, attempt(lambda d=d, x=x: d.cdf(x)),
                  attempt(lambda d=d, u=u: d.icdf(u)), d.expand((4, *d.batch_shape)).sample().shape, repr(d)]
    x = D.TransformedDistribution(base, [D.AffineTransform(loc, 2.0), D.ExpTransform()]).rsample()
    wrong = [lambda: D.TransformedDistribution(base, 3), lambda: D.TransformedDistribution(base, [3]),
             lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.SoftmaxTransform())]
    return found, torch.autograd.grad(x.sum(), loc), [attempt(call) for call in wrong]


@program
def beyond_the_cpu_stream_of_one_call(torch):
    """Draws of one distribution after another use one generator."""
    D = torch.distributions
    order = [D.Normal(0.0, 1.0), D.Gamma(0.5, 1.0), D.Bernoulli(0.3), D.Categorical(torch.ones(3)), D.Poisson(4.0),
             D.Uniform(0.0, 1.0), D.VonMises(0.0, 2.0)]
    return [d.sample((n,)) for n in (1, 3, 17) for d in order]


# ── programs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@program
def reinforce(torch):
    """A policy for a bandit with three arms, by the score function's gradient."""
    net = torch.nn.Linear(2, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    rewards = []
    for _ in range(12):
        state = torch.randn(8, 2)
        policy = torch.distributions.Categorical(logits=net(state))
        action = policy.sample()
        reward = (action == (state[:, 0] > 0).long()).float()
        loss = -(policy.log_prob(action) * (reward - reward.mean())).mean() - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rewards += [action, loss.detach()]
    return rewards, [p.detach() for p in net.parameters()]


@program
def variational_autoencoder(torch):
    D = torch.distributions
    encoder, decoder = torch.nn.Linear(6, 4), torch.nn.Linear(2, 6)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.05)
    x, losses = (torch.rand(16, 6) > 0.5).float(), []
    for _ in range(8):
        loc, log_scale = encoder(x).chunk(2, -1)
        q = D.Independent(D.Normal(loc, log_scale.exp()), 1)
        p = D.Independent(D.Normal(torch.zeros(2), torch.ones(2)), 1)
        z = q.rsample()
        loss = (D.kl_divergence(q, p.expand((16,))) - D.Independent(D.Bernoulli(logits=decoder(z)),
                                                                    1).log_prob(x)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@program
def normalizing_flow_and_actor_critic(torch):
    D = torch.distributions
    loc, log_scale = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(2))
    tril, mean = torch.nn.Parameter(torch.eye(2)), torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam([loc, log_scale, tril, *mean.parameters()], lr=0.05)
    data, states = torch.randn(32, 2).exp() * 2, torch.randn(10, 3)
    losses = []
    for _ in range(8):
        base = D.Independent(D.Normal(torch.zeros(2), 1.0), 1)
        flow = D.TransformedDistribution(base, [D.AffineTransform(loc, log_scale.exp(), event_dim=1), D.ExpTransform()])
        actor = D.MultivariateNormal(mean(states), scale_tril=D.transform_to(D.constraints.lower_cholesky)(tril))
        action = actor.sample()
        loss = (-flow.log_prob(data).mean() - (actor.log_prob(action) * -action.pow(2).sum(-1)).mean() - 0.1
                * actor.entropy().mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, flow.sample((3,))


test_programs = program.test(rtol=2e-5, atol=2e-6)


# ── what has no stream to compare ─────────────────────────────────────────────────────────────────────────────────────


def test_modules_have_pytorchs_names():
    program = """
from tensorgrad.distributions import constraints, transforms
from tensorgrad.distributions.normal import Normal
from tensorgrad.distributions.kl import kl_divergence, register_kl
from tensorgrad.distributions.studentT import StudentT
from tensorgrad.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
from tensorgrad.distributions.relaxed_categorical import ExpRelaxedCategorical
from tensorgrad.distributions.constraint_registry import ConstraintRegistry, biject_to
from tensorgrad.distributions.utils import broadcast_all, lazy_property
from tensorgrad.distributions.exp_family import ExponentialFamily
from tensorgrad import distributions
print(distributions.normal.Normal is Normal is distributions.Normal, distributions.kl.kl_divergence is distributions.kl_divergence)
"""  # noqa: E501
    assert fresh_process(program).split() == ["True", "True"]
    modules = [name for name, value in vars(oracle.distributions).items()
               if type(value) is type(oracle) and value.__name__.startswith("torch.distributions.")]
    assert len(modules) > 40 and not [name for name in modules if not hasattr(tensorgrad.distributions, name)]


def test_examples_of_each_class_run():
    import doctest
    import pkgutil
    package = tensorgrad.distributions
    for module in pkgutil.iter_modules(package.__path__):
        name = f"{package.__name__}.{module.name}"
        failed, _ = doctest.testmod(__import__(name, fromlist=["x"]))
        assert not failed, name
    public = [getattr(package, name) for name in package.__all__]
    assert all(getattr(each, "__doc__", "") for each in public)
