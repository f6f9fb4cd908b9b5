"""Collectives with gradients, on ranks that are threads: against central differences over all ranks, and beside
PyTorch.
"""
import importlib
import threading
import warnings
from functools import partial

import numpy as np
import pytest
from ranks import as_threads
from side_by_side import attempt
from support import cpu_only

import tensorgrad
from tensorgrad.distributed import _functional_collectives as collectives
from tensorgrad.distributed.device_mesh import init_device_mesh
from tensorgrad.distributed.nn import functional

pytestmark = cpu_only
SIZE = 3


def empty(torch, *shape):
    return torch.empty(shape, dtype=torch.float64)


def split(x):
    return list(x.reshape(SIZE, -1).unbind())


# name: what is done with a tensor x on rank r, by the functions f and the reductions op of torch
COLLECTIVES = {
    "broadcast": lambda torch, f, op, x, r: f.broadcast(x, 1),
    "gather": lambda torch, f, op, x, r: f.gather(x, 2),
    "scatter": lambda torch, f, op, x, r: f.scatter(split(x), 1),
    "reduce": lambda torch, f, op, x, r: f.reduce(x, 1) * (r == 1),
    "reduce_avg": lambda torch, f, op, x, r: f.reduce(x, 1, op.AVG) * (r == 1),
    "reduce_max": lambda torch, f, op, x, r: f.reduce(x, 0, op.MAX),
    "reduce_scatter": lambda torch, f, op, x, r: f.reduce_scatter(empty(torch, 2), split(x)),
    "reduce_scatter_avg": lambda torch, f, op, x, r: f.reduce_scatter(empty(torch, 2), split(x), op.AVG),
    "reduce_scatter_min": lambda torch, f, op, x, r: f.reduce_scatter(empty(torch, 2), split(x), op.MIN),
    "all_gather": lambda torch, f, op, x, r: f.all_gather(x),
    "all_gather_base": lambda torch, f, op, x, r: f._all_gather_base(empty(torch, 18), x),
    "all_to_all": lambda torch, f, op, x, r: f.all_to_all([empty(torch, 2) for _ in range(SIZE)], split(x)),
    "all_to_all_single": lambda torch, f, op, x, r: f.all_to_all_single(empty(torch, 6), x),
    "all_to_all_uneven": lambda torch, f, op, x, r: f.all_to_all_single(empty(torch, 3 * (r + 1)), x, [r + 1] * SIZE,
                                                                        [1, 2, 3]),
    "all_reduce": lambda torch, f, op, x, r: f.all_reduce(x),
    "all_reduce_avg": lambda torch, f, op, x, r: f.all_reduce(x, op.AVG),
    "all_reduce_min": lambda torch, f, op, x, r: f.all_reduce(x, op.MIN),
    "all_reduce_max": lambda torch, f, op, x, r: f.all_reduce(x, op.MAX),
    "all_reduce_product": lambda torch, f, op, x, r: f.all_reduce(x, op.PRODUCT),
    "twice": lambda torch, f, op, x, r: f.all_reduce(f.all_gather(x)[r] * f.broadcast(x, 0)),
}
# PyTorch's test backend of threads lacks reduce and what needs it; its reductions but SUM have gradients of other
# functions
BESIDE = "gather scatter reduce_scatter all_gather all_to_all all_to_all_single all_reduce".split()


def of_rank(torch, rank):
    return torch.arange(6, dtype=torch.float64).mul(1.7).add(rank).sin().add(0.1 * rank)


class OverWorld:
    """The functions with the default group of the thread: PyTorch's have that of the thread which imported them."""

    def __init__(self, torch):
        self.module, self.group = (importlib.import_module(torch.__name__ + ".distributed.nn.functional"),
                                   torch.distributed.group.WORLD)

    def __getattr__(self, name):
        return partial(getattr(self.module, name), group=self.group)


def loss(torch, name, x, rank):
    """Return a weighted sum of a collective's results, with a different weight for each value."""
    given = COLLECTIVES[name](torch, OverWorld(torch), torch.distributed.ReduceOp, x * x, rank)
    values = torch.cat([part.reshape(-1) for part in (given if isinstance(given, tuple) else (given,))])
    return (values.sin() * torch.arange(1., len(values) + 1, dtype=torch.float64).cos() * (rank + 1)).sum()


def gradient(torch, name, rank):
    x = of_rank(torch, rank).requires_grad_()
    total = loss(torch, name, x, rank)
    total.backward()
    return total.item(), x.grad.numpy()


def test_gradients_are_those_of_the_sum_of_all_losses():
    """Along directions that move the tensors of all ranks at a time."""
    step, count = 1e-6, 3

    def program(rank, group):
        found = {}
        directions = tensorgrad.arange(6. * count, dtype=tensorgrad.float64).mul(2.3).add(5 * rank).cos().reshape(count,
                                                                                                                  6)
        for name in COLLECTIVES:
            with tensorgrad.no_grad():
                here = of_rank(tensorgrad, rank)
                moved = [loss(tensorgrad, name, here + sign * step * direction, rank).item() for direction in directions
                         for sign in (1, -1)]
            found[name] = (directions.numpy() @ gradient(tensorgrad, name, rank)[1],
                           np.subtract(moved[::2], moved[1::2]) / (2 * step))
        return found
    found = as_threads(SIZE, program)
    for name in COLLECTIVES:
        by_gradients, by_differences = (sum(of[name][i] for of in found) for i in (0, 1))
        np.testing.assert_allclose(by_gradients, by_differences, rtol=1e-6, atol=1e-8, err_msg=name)


def oracle_as_threads(oracle, size, program):
    """Return what `program(rank)` gives on each rank of PyTorch's test backend, whose ranks are threads."""
    threaded = pytest.importorskip("torch.testing._internal.distributed.multi_threaded_pg")
    oracle.backends.__allow_nonbracketed_mutation_flag = True       # the import forbids what later tests do
    isolate = oracle._C._distributed_c10d._set_thread_isolation_mode
    store, results = oracle.distributed.HashStore(), {}

    def run(rank):
        oracle.distributed.init_process_group("threaded", rank=rank, world_size=size, store=store)
        try:
            results[rank] = program(rank)
        except BaseException as error:
            threaded.ProcessLocalGroup.exception_handle(error)
            raise
        finally:
            oracle.distributed.destroy_process_group()
    threaded._install_threaded_pg()
    isolate(True)
    try:
        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        isolate(False)
        threaded.ProcessLocalGroup.reset()
        threaded._uninstall_threaded_pg()
    return results


def test_gradients_beside_pytorch():
    oracle = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)          # PyTorch's, of some of the functions
        theirs = oracle_as_threads(oracle, SIZE, lambda rank: {name: gradient(oracle, name, rank) for name in BESIDE})
    ours = as_threads(SIZE, lambda rank, _: {name: gradient(tensorgrad, name, rank) for name in BESIDE})
    assert sorted(theirs) == list(range(SIZE))
    for rank, found in theirs.items():
        for name, (total, grad) in found.items():
            assert ours[rank][name][0] == pytest.approx(total, rel=1e-12), name
            assert ours[rank][name][1] == pytest.approx(grad, rel=1e-12), name


def test_gradients_of_gradients_cross_ranks():
    torch = tensorgrad

    def program(rank, group):
        x = of_rank(torch, rank).requires_grad_()
        g, = torch.autograd.grad(functional.all_reduce(x ** 3).sum() * (rank + 1), x, create_graph=True)
        h, = torch.autograd.grad((g * torch.arange(6.)).sum(), x)
        return g.detach(), h, x.detach()
    for g, h, x in as_threads(2, program):                # the weights of the two losses sum to 3
        torch.testing.assert_close(g, 3 * 3 * x ** 2)
        torch.testing.assert_close(h, 3 * 6 * x * torch.arange(6., dtype=torch.float64))


def test_the_memory_that_was_given_is_filled():
    torch = tensorgrad

    def program(rank, group):
        x, out, outs = of_rank(torch, rank).requires_grad_(), empty(torch, 12), [empty(torch, 3), empty(torch, 3)]
        functional._all_gather_base(out, x)
        functional.all_to_all(outs, list(x.split(3)))
        return out, outs
    whole = torch.cat([of_rank(torch, 0), of_rank(torch, 1)])
    for rank, (out, outs) in enumerate(as_threads(2, program)):
        assert torch.equal(out, whole) and torch.equal(torch.stack(outs), whole.reshape(2, 2, 3)[:, rank])


def test_functions_that_give_new_tensors():
    torch = tensorgrad

    def program(rank, group):
        x = (torch.arange(4.) + 10 * rank).reshape(2, 2).requires_grad_()
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        pair, everyone = (mesh, 1), [0, 1, 2, 3]
        found = [collectives.broadcast(x, 3, group), collectives.all_reduce(x, "sum", everyone),
                 collectives.all_reduce(x, "max", [[0, 1], [2, 3]]), collectives.all_gather_tensor(x, 1, pair),
                 collectives.reduce_scatter_tensor(x, "avg", 1, mesh["b"]),
                 collectives.all_to_all_single(x, None, None, mesh.get_group("b").group_name),
                 collectives.permute_tensor(x, [1, 0], pair),
                 *collectives.all_reduce_coalesced([x, x * 2], "SUM", group),
                 *collectives.all_gather_into_tensor_coalesced([x[:1]], pair),
                 *collectives.reduce_scatter_tensor_coalesced([x, x], "sum", [0, 1], pair)]
        sum((i + 1 + rank) * part.sum() for i, part in enumerate(found)).backward()
        assert (collectives.wait_tensor(found[0]) is found[0]
                and not isinstance(found[0], collectives.AsyncCollectiveTensor))
        refused = [attempt(lambda group=group: collectives.all_reduce(x, "sum", group))
                   for group in (mesh, 5, (mesh, mesh))]
        refused += [attempt(lambda: collectives.all_reduce(x, "first", group)),
                    attempt(lambda: collectives.reduce_scatter_tensor(x, "sum", 0, group))]
        return [part.detach() for part in found], x.grad, refused
    x = [(torch.arange(4.) + 10 * rank).reshape(2, 2) for rank in range(4)]
    for rank, (found, grad, refused) in enumerate(as_threads(4, program)):
        one, other = x[rank // 2 * 2], x[rank // 2 * 2 + 1]
        half, mine = rank % 2, slice(rank % 2, rank % 2 + 1)
        assert [*map(torch.equal, found, [
            x[3], sum(x), other, torch.cat([one, other], 1), (one + other)[:, mine] / 2,
            torch.cat([one[mine], other[mine]]), (other, one)[half], sum(x),
            2 * sum(x), torch.cat([one[:1], other[:1]]), (one + other)[mine],
            (one + other)[:, mine]])] == [True] * 12, rank
        assert grad.ne(0).all()
        assert [kind for kind, _ in refused] == ["AssertionError", "ValueError", "ValueError", "ValueError",
                                                 "AssertionError"]


def test_reductions_without_a_gradient():
    def program(rank, group):
        with pytest.raises(RuntimeError, match="RedOpType.BAND has no gradient"):
            functional.all_reduce(tensorgrad.ones(2), tensorgrad.distributed.ReduceOp.BAND)
    as_threads(1, program)
