"""A program for PyTorch: what torch.distributed does over MPI.

Run by mpiexec, with any number of ranks, as `python -m tensorgrad public.py`.
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def collectives(rank, size):
    ranks = range(size)
    for dtype in torch.float32, torch.bfloat16, torch.int64, torch.complex64:
        x = torch.arange(12).reshape(3, 4).to(dtype) + rank
        whole = sum(torch.arange(12).reshape(3, 4).to(dtype) + other for other in ranks)
        strided = x.clone().t()
        dist.all_reduce(strided)                                                # not contiguous
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        assert torch.equal(x, whole) and torch.equal(strided, whole.t()) and work.is_completed(), dtype
        found = [torch.zeros(2, dtype=dtype) for _ in ranks]
        dist.all_gather(found, torch.full((2,), rank, dtype=dtype))
        assert torch.equal(torch.stack(found), torch.arange(size).to(dtype)[:, None].expand(size, 2))
    mean = torch.tensor([float(rank)])
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert mean.item() == (size - 1) / 2
    future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    assert torch.equal(future.wait(), torch.full((3,), 2. * size))
    out = torch.zeros(size, dtype=torch.int32)
    dist.all_to_all_single(out, torch.arange(size, dtype=torch.int32) + 10 * rank)
    assert out.tolist() == [10 * other + rank for other in ranks]
    part = torch.zeros(2)
    dist.scatter(part, [torch.full((2,), other + 0.5) for other in ranks] if rank == size - 1 else None, src=size - 1)
    assert part.tolist() == [rank + 0.5] * 2
    dist.reduce_scatter(part, [torch.full((2,), 1. + other) for other in ranks])
    assert part.tolist() == [size * (1. + rank)] * 2


def objects(rank, size):
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert [one["rank"] for one in found] == list(range(size))
    found = [None] * size if rank == 0 else None
    dist.gather_object((rank, "y"), found)
    assert found is None or found == [(other, "y") for other in range(size)]
    given = [{"a": 1}, None] if rank == 0 else [None, None]
    dist.broadcast_object_list(given)
    assert given == [{"a": 1}, None]
    got = [None]
    dist.scatter_object_list(got, [f"for {other}" for other in range(size)] if rank == 0 else None)
    assert got == [f"for {rank}"]


def messages(rank, size):
    if size == 1:
        return
    if rank == 0:
        place, sources = torch.zeros(2, 3).t(), []
        for _ in range(size - 1):
            source = dist.recv(place)                                           # from whoever comes first
            sources.append(source)
            assert (place == source).all()
        assert sorted(sources) == list(range(1, size))
    else:
        dist.send(torch.full((3, 2), float(rank)), 0)
    own, other = torch.tensor([rank]), torch.zeros(1, dtype=torch.int64)
    batch = [dist.P2POp(dist.isend, own, (rank + 1) % size, tag=1),
             dist.P2POp(dist.irecv, other, (rank - 1) % size, tag=1)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    assert other.item() == (rank - 1) % size


def some_ranks(rank, size):
    if size < 4:
        return
    odd, even = dist.new_group([1, 3]), dist.new_group([0, 2])
    group = odd if rank % 2 else even
    total = torch.tensor(rank)
    dist.all_reduce(total, group=group)
    assert total.item() == (4 if rank % 2 else 2) and dist.get_rank(group) == rank // 2
    dist.broadcast(total, src=2 + rank % 2, group=group)
    dist.destroy_process_group(group)


def disagreement(rank, size):
    """With checks, ranks that differ all get an error that names both sides, and the group goes on."""
    if size == 1:
        return
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        dist.all_reduce(torch.ones(2 + (rank == size - 1)))
    except RuntimeError as error:
        text = str(error)
    assert ("Detected mismatch between collectives on ranks. Rank" in text
            and f"{size - 1} is running collective: CollectiveFingerPrint" in text), text
    assert "TensorShape: [2] vs [3]" in text or "TensorShape=[2]" in text and "TensorShape=[3]" in text, text
    try:
        dist.all_reduce(torch.ones(1)) if rank else dist.broadcast(torch.ones(1), 0)
    except RuntimeError as error:
        text = str(error)
    assert ("ank 0 is running collective: CollectiveFingerPrint" in text and "OpType=BROADCAST" in text
            and "OpType=ALLREDUCE" in text), text
    dist.set_debug_level(dist.DebugLevel.OFF)


def model(rank, size):
    """A step on parts of a batch equals a step on the whole; the parts come from workers, which are forks of this
    process."""
    data = torch.utils.data.TensorDataset(torch.arange(24.).reshape(8, 3).sin())
    sampler = torch.utils.data.DistributedSampler(data, shuffle=False)
    part, = next(iter(torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler, num_workers=1)))
    assert torch.equal(part, data.tensors[0][rank::size])
    torch.manual_seed(rank)
    net = DistributedDataParallel(torch.nn.Linear(3, 1))
    net(part).pow(2).mean().backward()
    torch.manual_seed(0)
    alone = torch.nn.Linear(3, 1)
    alone(data.tensors[0]).pow(2).mean().backward()
    assert torch.equal(net.module.weight, alone.weight)
    torch.testing.assert_close(net.module.weight.grad, alone.weight.grad)


if __name__ == "__main__":
    for name in None, "mpi":
        dist.init_process_group(name)
        rank, size = dist.get_rank(), dist.get_world_size()
        assert dist.is_mpi_available() and (size == 1 or dist.get_backend() == "mpi"), dist.get_backend()
        for check in (collectives, objects, messages, some_ranks, model) if name else (collectives, disagreement):
            check(rank, size)
        dist.barrier()
        dist.destroy_process_group()
    if size > 1:
        from transport import main  # below PyTorch's interface
        main()
    print("rank", rank, "of", size, "agrees\n", end="", flush=True)
