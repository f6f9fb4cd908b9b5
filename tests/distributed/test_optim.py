"""ZeroRedundancyOptimizer and PostLocalSGDOptimizer, on ranks that are threads."""
import pytest
from ranks import as_threads
from side_by_side import attempt
from support import cpu_only

import tensorgrad as torch
from tensorgrad.distributed import optim
from tensorgrad.distributed.algorithms.join import Join
from tensorgrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from tensorgrad.distributed.checkpoint.staging import staged
from tensorgrad.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer

pytestmark = cpu_only
CLASSES = [(torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
           (torch.optim.Adagrad, {"lr": 0.1})]


def model():
    made = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3), torch.nn.LayerNorm(3))
    with torch.no_grad():
        for param in made.parameters():                 # the random stream is one for all threads
            param.copy_(torch.arange(param.numel()).sin().view_as(param))
    return made


def groups(made):
    params = list(made.parameters())
    return [{"params": params[:2], "lr": 0.02}, {"params": params[2:4]}]


def train(made, optimizer, begin=0, end=4):
    for i in range(begin, end):
        optimizer.zero_grad()
        (made(torch.arange(10.).reshape(2, 5).sin() * (i + 1)) * torch.arange(6.).reshape(2, 3)).sum().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.9          # as a scheduler does
    return [param.detach().clone() for param in made.parameters()]


def equal(one, other):
    """Return True if nested values are equal, bit by bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


@pytest.mark.parametrize("cls, options", CLASSES, ids=[cls.__name__ for cls, _ in CLASSES])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_it_does_what_the_plain_optimizer_does(size, cls, options):
    plain_model = model()
    plain = cls(groups(plain_model), **options)
    half = train(plain_model, plain, 0, 2)
    half_state = staged(plain.state_dict())
    plain.add_param_group({"params": list(plain_model[3].parameters())})
    whole = train(plain_model, plain, 2, 5)

    def program(rank, group):
        made = model()
        zero = ZeroRedundancyOptimizer(groups(made), cls, parameters_as_bucket_view=size == 2, **options)
        assert equal(train(made, zero, 0, 2), half)
        zero.consolidate_state_dict(to=size - 1)
        assert rank < size - 1 or equal(zero.state_dict(), half_state)
        zero.add_param_group({"params": list(made[3].parameters())})
        assert equal(train(made, zero, 2, 5), whole)
        return len(zero.state)
    counts = as_threads(size, program)
    assert sum(counts) == 6 and (size < 7 or max(counts) == 1)       # each state is kept once


def test_a_state_of_some_ranks_goes_on_with_others():
    plain_model = model()
    plain = torch.optim.Adam(plain_model.parameters(), lr=0.01)
    train(plain_model, plain, 0, 2)
    weights, state = plain_model.state_dict(), plain.state_dict()
    saved = staged((weights, state))
    whole = train(plain_model, plain, 2, 4)

    def program(rank, group):
        made = model()
        made.load_state_dict(saved[0])
        zero = ZeroRedundancyOptimizer(made.parameters(), torch.optim.Adam, lr=0.5)
        zero.load_state_dict(saved[1])
        own = len(zero.state)
        assert equal(train(made, zero, 2, 4), whole)
        return own
    assert as_threads(3, program) == [1, 1, 4] and list(saved[1]["state"]) == list(range(6))


def test_losses_of_closures_and_parameters_of_several_kinds():
    def program(rank, group):
        params = [torch.ones(3, requires_grad=True), torch.ones(2, dtype=torch.float64, requires_grad=True),
                  torch.ones(0, requires_grad=True),
                  torch.ones(700, 500, requires_grad=True), torch.ones(3, 2).t().requires_grad_()]

        def closure():
            zero.zero_grad()
            total = sum(((i + 1) * param).sum().double() for i, param in enumerate(params))
            total.backward()
            return total
        zero = ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=0.5)
        assert closure().item() == zero.step(closure).item()
        return [param.flatten()[:1].tolist() for param in params]
    assert as_threads(2, program) == [[[0.5], [0.], [], [-1.], [-1.5]]] * 2


def test_ranks_with_unlike_numbers_of_batches():
    def program(rank, group):
        made = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.ones_(made.weight)
        parallel = torch.nn.parallel.DistributedDataParallel(made, process_group=group)
        zero = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.SGD, lr=1.)
        with Join([parallel, zero]):
            for _ in range(1 + rank):          # rank 0 owns the weight, and is done first
                zero.zero_grad()
                parallel(torch.ones(1, 2)).sum().backward()
                zero.step()
        return made.weight.tolist()
    assert as_threads(2, program) == [[[-0.5, -0.5]]] * 2


def test_a_state_that_was_not_consolidated():
    def program(rank, group):
        zero = ZeroRedundancyOptimizer([torch.ones(2, requires_grad=True)], torch.optim.Adam)
        return attempt(zero.state_dict)
    kind, said = as_threads(2, program)[1]
    assert (kind == "RuntimeError"
            and said.startswith("Optimizer state has not been consolidated on this rank. Please call "
                                "`consolidate_state_dict(to=1)`"))


def test_averages_instead_of_gradients():
    def program(rank, group):
        weight, seen = torch.nn.Parameter(torch.tensor([float(rank)])), []
        optimizer = PostLocalSGDOptimizer(torch.optim.SGD([weight], lr=0.5),
                                          PeriodicModelAverager(period=2, warmup_steps=1))
        for _ in range(2):
            optimizer.zero_grad()
            (weight * (1 + rank)).sum().backward()
            optimizer.step()
            seen.append(weight.item())
        state = optimizer.state_dict()
        optimizer.averager.step = 0
        optimizer.load_state_dict(state)
        with pytest.warns(UserWarning, match="does not contain a step counter"):
            optimizer.load_state_dict({key: value for key, value in state.items() if key != "step"})
        return seen, state["step"], optimizer.averager.step, repr(optimizer)[:3]
    assert as_threads(2, program) == [([-0.5, -1.], 2, 0, "SGD"), ([0., -1.], 2, 0, "SGD")]


@pytest.mark.parametrize("given, error", [
    (torch.ones(2), "TypeError: `params` argument should be an iterable of Tensors, but got torch.FloatTensor"),
    (3, "TypeError: `params` argument should be an iterable of Tensors or dicts, but got int"),
    ([], "ValueError: ZeroRedundancyOptimizer got an empty parameter list"),
    ([3], "TypeError: `params` argument should be an iterable of Tensors or dicts"),
    ([torch.ones(2), {"params": torch.ones(2)}],
     "TypeError: `params` argument should be an iterable of Tensors or dicts"),
    ([{"param": torch.ones(2)}],
     "ValueError: Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters in "
     "the group"),
    ([torch.ones(2, requires_grad=True) * 2], "ValueError: can't optimize a non-leaf Tensor"),
])
def test_what_is_refused(given, error):
    def program(rank, group):
        return ": ".join(attempt(lambda: ZeroRedundancyOptimizer(given, torch.optim.SGD)))
    assert as_threads(1, program) == [error]


def test_names():
    assert set(optim.__all__) <= set(dir(optim))
    with pytest.raises(NotImplementedError, match="overlap_with_ddp=True: DistributedDataParallel reduces gradients "
                                                  "while backward"):
        ZeroRedundancyOptimizer([torch.ones(1)], torch.optim.SGD, overlap_with_ddp=True)
