"""Collectives with gradients: against central differences over all ranks, as threads, and beside PyTorch, as two processes."""
import pytest
from ranks import as_threads
from support import cpu_only

import tensorgrad as torch
from tensorgrad.distributed import ReduceOp
from tensorgrad.distributed.nn import functional as together

pytestmark = cpu_only
SIZE = 3


def empty(*shape):
    return torch.empty(shape, dtype=torch.float64)


def split(x, group):
    return list(x.reshape(SIZE, -1).unbind())


COLLECTIVES = {
    "broadcast": lambda x, r, g: together.broadcast(x, 1, g),
    "gather": lambda x, r, g: together.gather(x, 2, g),
    "scatter": lambda x, r, g: together.scatter(split(x, g), 1, g),
    "reduce": lambda x, r, g: together.reduce(x, 1, group=g) if r == 1 else 0 * together.reduce(x, 1, group=g),
    "reduce_avg": lambda x, r, g: together.reduce(x, 1, ReduceOp.AVG, g) if r == 1 else 0 * together.reduce(x, 1, ReduceOp.AVG, g),
    "reduce_max": lambda x, r, g: together.reduce(x, 0, ReduceOp.MAX, g),
    "reduce_scatter": lambda x, r, g: together.reduce_scatter(empty(2), split(x, g), group=g),
    "reduce_scatter_avg": lambda x, r, g: together.reduce_scatter(empty(2), split(x, g), ReduceOp.AVG, g),
    "reduce_scatter_min": lambda x, r, g: together.reduce_scatter(empty(2), split(x, g), ReduceOp.MIN, g),
    "all_gather": lambda x, r, g: together.all_gather(x, g),
    "all_gather_base": lambda x, r, g: together._all_gather_base(empty(18), x, g),
    "all_to_all": lambda x, r, g: together.all_to_all([empty(2) for _ in range(SIZE)], split(x, g), g),
    "all_to_all_single": lambda x, r, g: together.all_to_all_single(empty(6), x, group=g),
    "all_to_all_uneven": lambda x, r, g: together.all_to_all_single(empty(3 * (r + 1)), x, [r + 1] * SIZE, [1, 2, 3], g),
    "all_reduce": lambda x, r, g: together.all_reduce(x, group=g),
    "all_reduce_avg": lambda x, r, g: together.all_reduce(x, ReduceOp.AVG, g),
    "all_reduce_min": lambda x, r, g: together.all_reduce(x, ReduceOp.MIN, g),
    "all_reduce_max": lambda x, r, g: together.all_reduce(x, ReduceOp.MAX, g),
    "all_reduce_product": lambda x, r, g: together.all_reduce(x, ReduceOp.PRODUCT, g),
    "twice": lambda x, r, g: together.all_reduce(together.all_gather(x, g)[r] * together.broadcast(x, 0, g), group=g),
}


def of_rank(rank):
    return torch.arange(6, dtype=torch.float64).mul(1.7).add(rank).sin().add(0.1 * rank)


def loss(collective, x, rank, group):
    """A number made of all that a collective gives, each value with a weight of its own."""
    given = collective(x * x, rank, group)
    values = torch.cat([part.reshape(-1) for part in (given if isinstance(given, tuple) else (given,))])
    return (values.sin() * torch.arange(1., len(values) + 1, dtype=torch.float64).cos() * (rank + 1)).sum()


@pytest.mark.parametrize("name", COLLECTIVES)
def test_gradients_are_those_of_the_sum_of_all_losses(name):
    collective, step = COLLECTIVES[name], 1e-6

    def program(rank, group):
        x = of_rank(rank).requires_grad_()
        loss(collective, x, rank, group).backward()
        moved = []
        with torch.no_grad():
            for other in range(SIZE):                       # all ranks compute again for each element of each rank
                for i in range(6):
                    for sign in (step, -step):
                        y = of_rank(rank)
                        if rank == other:
                            y[i] += sign
                        moved.append(loss(collective, y, rank, group).item())
        return x.grad, torch.tensor(moved, dtype=torch.float64)
    found = as_threads(SIZE, program)
    total = sum(moved for _, moved in found).reshape(SIZE, 6, 2)
    numeric = (total[..., 0] - total[..., 1]) / (2 * step)
    for rank, (grad, _) in enumerate(found):
        torch.testing.assert_close(grad, numeric[rank], rtol=1e-6, atol=1e-8)


def test_gradients_of_gradients_cross_ranks():
    def program(rank, group):
        x = of_rank(rank).requires_grad_()
        g, = torch.autograd.grad(together.all_reduce(x ** 3, group=group).sum() * (rank + 1), x, create_graph=True)
        h, = torch.autograd.grad((g * torch.arange(6.)).sum(), x)
        return g.detach(), h, x.detach()
    for g, h, x in as_threads(2, program):                # the weights of the two losses sum to 3
        torch.testing.assert_close(g, 3 * 3 * x ** 2)
        torch.testing.assert_close(h, 3 * 6 * x * torch.arange(6., dtype=torch.float64))


def test_the_memory_that_was_given_is_filled():
    def program(rank, group):
        x, out, outs = of_rank(rank).requires_grad_(), empty(12), [empty(3), empty(3)]
        together._all_gather_base(out, x, group)
        together.all_to_all(outs, list(x.split(3)), group)
        return out, outs
    whole = torch.cat([of_rank(0), of_rank(1)])
    for rank, (out, outs) in enumerate(as_threads(2, program)):
        assert torch.equal(out, whole) and torch.equal(torch.stack(outs), whole.reshape(2, 2, 3)[:, rank])


def test_reductions_without_a_gradient():
    def program(rank, group):
        with pytest.raises(RuntimeError, match="RedOpType.BAND has no gradient"):
            together.all_reduce(torch.ones(2), ReduceOp.BAND, group)
    as_threads(1, program)
