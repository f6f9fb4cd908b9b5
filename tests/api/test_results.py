"""Results, dtypes, memory and errors in corner cases, beside PyTorch: functions used in unusual ways."""
import pytest
from side_by_side import same

X = [[3., 3.], [3., 4.], [0., 4.], [0., 8.]]
LENGTHS = [0, 2, 2]


@pytest.mark.parametrize("initial", [None, 2])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce, initial):
    def program(torch):
        x = (torch.tensor(X) + 1).requires_grad_()
        y = torch.segment_reduce(x, reduce, lengths=torch.tensor(LENGTHS), initial=initial)
        y[1:].backward(torch.arange(1., 5).reshape(2, 2))
        rows = torch.segment_reduce(x.T, reduce, offsets=torch.tensor([[0, 1, 4], [1, 2, 4]]), axis=1, initial=initial)
        return y, x.grad, rows
    same(program)


@pytest.mark.parametrize("arguments", [
    {}, {"lengths": [1, 2]}, {"lengths": [-1, 5]}, {"lengths": [[1, 3]]}, {"lengths": [1., 3.]}, {"offsets": [0, 3]},
    {"lengths": [4], "axis": 2},
    {"lengths": [4], "reduce": "median"}, {"lengths": [1, 2], "unsafe": True}])
def test_segments_that_do_not_fit(arguments):
    def program(torch):
        given = {k: torch.tensor(v) if k in ("lengths", "offsets") else v for k, v in arguments.items()}
        return torch.segment_reduce(torch.tensor(X), given.pop("reduce", "sum"), **given)
    same(program)


@pytest.mark.parametrize("padding_idx", [None, 1])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_all_results_of_embedding_bag(mode, last, padding_idx):
    def program(torch):
        table, index = torch.arange(12.).reshape(6, 2), torch.tensor([1, 2, 4, 5, 4, 3])
        bags = [torch.embedding_bag(t, index, torch.tensor([0, 2, 6] if last else [0, 2, 2]), False, mode, False, None,
                                    last, padding_idx)
                for t in (table, table.double(), table.clone().requires_grad_())]
        return [part for bag in bags for part in bag]
    same(program)


def test_grid_samplers():
    for mode in (0, 1, 2):
        for padding in (0, 1, 2):
            same(lambda torch, m=mode, p=padding: torch.grid_sampler_2d(
                torch.arange(16.).reshape(1, 1, 4, 4), torch.linspace(-1.4, 1.2, 12).reshape(1, 2, 3, 2), m, p, False))
    same(lambda torch: torch.grid_sampler_3d(torch.arange(8.).reshape(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3), 0, 0,
                                             True))
    same(lambda torch: torch.grid_sampler_3d(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, True))


SEQUENCES = {
    "whole numbers of floats": lambda torch: torch.arange(0., -8.000001, -4., dtype=torch.int64),
    "int32": lambda torch: torch.arange(0, 3.5, 1.5, dtype=torch.int32),
    "no step": lambda torch: torch.arange(0, 3, 0),
    "no whole step": lambda torch: torch.arange(0, 3, .5, dtype=torch.int64),
    "wrong way": lambda torch: torch.arange(0, -3),
    "bools": lambda torch: torch.arange(3, dtype=torch.bool),
    "linspace": lambda torch: torch.linspace(4.3, 1, 50, dtype=torch.int64),
    "linspace of bytes": lambda torch: torch.linspace(-3, 3, 4, dtype=torch.uint8),
    "logspace": lambda torch: torch.logspace(2, 1.2, 3, dtype=torch.int64),
    "nothing said": lambda torch: torch.arange(),
}
OUT = {
    "dtype of out": lambda torch, x: torch.zeros(3, out=torch.empty(0, dtype=torch.int64)),
    "sum": lambda torch, x: torch.sum(x, 0, out=torch.empty(2, dtype=torch.int64)),
    "cumsum": lambda torch, x: torch.cumsum(x, 0, out=torch.empty(4, 2, dtype=torch.int32)),
    "two dtypes": lambda torch, x: torch.ones(3, dtype=torch.int32, out=torch.empty(3)),
    "take": lambda torch, x: torch.take(x, torch.tensor([0]), out=torch.empty(1, dtype=torch.float64)),
    "select": lambda torch, x: torch.index_select(x, 0, torch.tensor([0]), out=torch.empty(1, 2, dtype=torch.float64)),
    "masked": lambda torch, x: torch.masked_select(x, x > 1, out=torch.empty(1, dtype=torch.int64)),
    "overlap": lambda torch, x: torch.gather(x[:2], 0, torch.zeros(2, 2, dtype=torch.int64), out=x[1:3]),
    "itself": lambda torch, x: torch.cat([x], out=x),
    "one memory": lambda torch, x: torch.cat([x], out=torch.empty(1, 2).expand(4, 2)),
    "places": lambda torch, x: torch.nonzero(x, out=torch.empty(1, 1)),
    "drawn": lambda torch, x: torch.multinomial(x, 1, out=torch.empty(4, 1)),
    "empty index": lambda torch, x: torch.gather(x, 0, torch.empty(2, 0, dtype=torch.uint8)),
}
BY_NAME = {
    "expand": lambda torch, x: x.expand(size=(2, 4, 2)), "repeat": lambda torch, x: x.repeat(repeats=(1, 2)),
    "tile": lambda torch, x: x.tile(dims=(2,)),
    "view": lambda torch, x: x.view(size=(2, 4)), "permute": lambda torch, x: x.permute(dims=(1, 0)),
    "reshape": lambda torch, x: torch.reshape(x, shape=(8,)),
    "sum_to_size": lambda torch, x: x.sum_to_size(size=(1, 2)),
}
DTYPES = {
    "bools summed": lambda torch, x: torch.tensor(True).sum_to_size(()),
    "bools in windows": lambda torch, x: torch.nn.functional.unfold(x[None, None] > 3, 2),
    "whole numbers in windows": lambda torch, x: torch.nn.functional.unfold(x[None, None].long(), 2),
    "neighbours": lambda torch, x: torch.nn.functional.local_response_norm(x[None].long(), 3),
    "complex root mean square": lambda torch, x: torch.nn.functional.rms_norm(torch.complex(x, x + 1), (2,)),
    "half root mean square": lambda torch, x: torch.nn.functional.rms_norm((x * 1e-3).half(), (2,)),
    "dtype of the target": lambda torch, x: torch.binary_cross_entropy_with_logits(x.double(), x),
    "two bools": lambda torch, x: (
        torch.binary_cross_entropy_with_logits(x, x > 1)),
    "bytes in another size": lambda torch, x: torch.nn.functional.interpolate((x * 30).byte()[None, None], (3, 5),
                                                                              mode="bicubic"),
    "margins of bytes": lambda torch, x: torch.nn.functional.margin_ranking_loss(*(x.byte() * n for n in (1, 2, 3)),
                                                                                 reduction="sum"),
    "coordinates": lambda torch, x: torch.unravel_index(torch.tensor([5], dtype=torch.int32), (2, 3)),
    "bfloat16 rounded before it is cut": lambda torch, x: torch.div(
        torch.tensor([5.1875]).bfloat16(), torch.tensor([0.4004]).bfloat16(), rounding_mode="trunc").float(),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(name):
    same(SEQUENCES[name])


@pytest.mark.parametrize("name", [*OUT, *BY_NAME, *DTYPES])
def test_edges(name):
    program = {**OUT, **BY_NAME, **DTYPES}[name]
    same(lambda torch: program(torch, torch.tensor(X)), rtol=1e-5)


@pytest.mark.parametrize("program", [lambda torch, x: torch.cross(x.repeat(1, 2)[:, :3], x.repeat(1, 2)[:, 1:]),
                                     lambda torch, x: torch.chain_matmul(x, x.T),
                                     lambda torch, x: x.sum().T, lambda torch, x: x[0].mT, lambda torch, x: x[0].H])
def test_deprecations(program):
    same(lambda torch: program(torch, torch.tensor(X)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name, arguments",
                         [("zeros", (2,)), ("rand", (2,)), ("eye", (2,)), ("arange", (2,)), ("full", ((2,), 1.)),
                          ("ones", (2,)), ("randn", (2,)), ("linspace", (0, 1, 3))])
def test_new_sparse_tensors_have_no_values(name, arguments):
    def program(torch):
        try:
            return repr(getattr(torch, name)(*arguments, layout=torch.sparse_coo))
        except RuntimeError as error:
            return type(error).__name__, str(error).split("\n")[0].split(". This could")[0]
    import tensorgrad
    assert program(tensorgrad) == program(pytest.importorskip("torch"))


def test_values_at_the_edges():
    """Empty, infinite, narrow or wrongly bounded: what PyTorch makes of these."""
    def program(torch):
        nan, inf = float("nan"), float("inf")
        empty, x = torch.zeros(0, 3, requires_grad=True), torch.tensor([.2, 3., nan])
        found = [torch.median(empty), torch.nanmedian(torch.zeros(0, dtype=torch.int64)), torch.logit(x, eps=1.),
                 torch.logit(x, eps=.1)]
        found += [torch.trapezoid(torch.zeros(shape, dtype=torch.int16), dim=0) for shape in (0, 1, (0, 3))]
        found += [f(torch.tensor([inf, -inf, 0.])) for f in (torch.sinc, torch.i0, torch.special.i1, torch.special.i0e)]
        found += [f(x[:2], torch.tensor(2**63 - 1))
                  for f in (torch.special.hermite_polynomial_he, torch.special.shifted_chebyshev_polynomial_w)]
        narrow, byte = torch.tensor([1.7, 3.3]).bfloat16(), torch.tensor([201, 77], dtype=torch.uint8)
        found += [torch.addcmul(torch.ones(2).double(), byte, narrow),
                  torch.addcdiv(torch.ones(2).double(), narrow, byte, value=.5)]
        found += [torch.cosine_similarity(narrow[None], torch.tensor([[2.3, -1.1]])),
                  torch.lu_unpack(torch.eye(3).expand(1, 3, 3), torch.ones(3).int()).P]
        kept = torch.ones(4, 3).T
        return found, kept.resize_(3, 4).stride(), torch.multinomial(torch.tensor([[.2, .7], [.8, .3], [.5, .5]]).T, 2)
    same(program, rtol=1e-5)


def test_gradients_at_the_edges():
    """A comparison in place has a zero gradient, so has a Poisson number; NaN lets a gradient through relu's cell."""
    def program(torch):
        a, b = (torch.tensor(v, requires_grad=True) for v in ([1., 2.], [1., 3.]))
        found = [f(a * 1, b) for f in (torch.Tensor.eq_, torch.Tensor.lt_, torch.Tensor.ge_)]
        found += [torch.tensor([1., 5.]).ne_(b), torch.poisson(a)]
        gradients = [torch.autograd.grad(f.sum(), (a, b), allow_unused=True) for f in found]
        x = torch.tensor([float("nan"), .5], requires_grad=True)
        gradients += [torch.autograd.grad(torch.special.i1(x).sum(), x)]
        h = torch.ones(1, 2, requires_grad=True)
        cell = torch.rnn_relu_cell(x.detach()[None], h, torch.eye(2), torch.eye(2) * 2)
        solved = torch.triangular_solve(h.mT, torch.eye(2))
        base, power = (torch.tensor([-1.3, .7], requires_grad=True),
                       torch.tensor([1 + 2j, -.4 + .3j], requires_grad=True))
        gradients += [torch.autograd.grad(torch.pow(base, power).sum().real, (base, power))]
        return found, gradients, torch.autograd.grad(cell.sum(), h), [s.requires_grad for s in solved]
    same(program)


def test_losses_and_dtypes_at_the_edges():
    """Operands of several dtypes, integers among them: which dtype is computed in, and which comes out."""
    def program(torch):
        F, inf = torch.nn.functional, float("inf")
        one, two, x = torch.ones(2), torch.ones(2).double(), torch.tensor([[inf, -1., 0.], [1., 2., 3.]])
        narrow, target = torch.tensor([1.5, -.3, .77]).bfloat16(), torch.tensor([.123, .456, .789])
        found = [F.soft_margin_loss(one, two, reduction="none"), F.soft_margin_loss(narrow, target)]
        found += [F.binary_cross_entropy_with_logits(narrow, target, **given)
                  for given in ({}, {"weight": target}, {"pos_weight": target})]
        found += [F.hinge_embedding_loss(torch.tensor([0, 1, -5]), torch.tensor([-1, -1, 1]), margin=m,
                                         reduction="none") for m in (1.5, -1.2)]
        found += [F.threshold(torch.tensor([0, 1, -1]), -.5, 1), torch.logit(one / 3, torch.tensor(0)),
                  torch.logit(one / 3, float("nan"))]
        found += [*torch.var_mean(x, 1), *torch.std_mean(x),
                  torch.addcmul(one.half(), one.half(), one.half() * 0, value=1e9)]
        return found
    same(program, rtol=1e-3)


def test_bags_that_are_refused_leave_the_table_as_it_was():
    import tensorgrad
    table = tensorgrad.full((5, 3), 7.0)
    with pytest.raises(RuntimeError, match="offsets must not decrease"):
        tensorgrad.nn.functional.embedding_bag(tensorgrad.arange(4), table, tensorgrad.tensor([0, 3, 2, 4]),
                                               max_norm=1.0)
    assert (table == 7).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_numbers_divided_by_tensors_are_rounded_twice(dtype):
    def program(torch):
        x = torch.arange(1, 60).to(getattr(torch, dtype))
        found = [a / x for a in (1, 3, 2.5, True)]
        if dtype != "int64":
            found += [x.__rtruediv__(x.flip(0)), (3 / x.requires_grad_()).grad_fn.name()]
        return found
    same(program, rtol=0, atol=0)
