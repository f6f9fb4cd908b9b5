"""Each collective once, with numbers that tell whose they are: rank r begins with 10ʳ.

    python -m tensorgrad.distributed.run --standalone --nproc-per-node 3 examples/distributed/collectives.py
    mpiexec -n 3 python -m tensorgrad examples/distributed/collectives.py
    torchrun --standalone --nproc-per-node 3 examples/distributed/collectives.py        (PyTorch)
"""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = torch.tensor([10 ** rank])
    each = torch.tensor([10 ** rank * (part + 1) for part in range(ranks)])  # a part for every rank

    told = {}
    x = mine.clone()
    dist.broadcast(x, src=0)
    told["broadcast"] = x.tolist()
    x = mine.clone()
    dist.all_reduce(x)
    told["all_reduce"] = x.tolist()
    x = mine.clone()
    dist.reduce(x, dst=0, op=dist.ReduceOp.MAX)
    told["reduce (max)"] = x.tolist() if rank == 0 else None
    gathered = [torch.zeros_like(mine) for _ in range(ranks)]
    dist.all_gather(gathered, mine)
    told["all_gather"] = torch.cat(gathered).tolist()
    x = torch.zeros_like(mine)
    dist.scatter(x, list(each.split(1)) if rank == 0 else None, src=0)
    told["scatter"] = x.tolist()
    x = torch.zeros_like(mine)
    dist.reduce_scatter(x, list(each.split(1)))
    told["reduce_scatter"] = x.tolist()
    x = torch.zeros_like(each)
    dist.all_to_all_single(x, each)
    told["all_to_all"] = x.tolist()
    x = torch.zeros_like(mine)
    work = dist.isend(mine, dst=(rank + 1) % ranks)  # around a ring
    dist.recv(x, src=(rank - 1) % ranks)
    work.wait()
    told["send and recv"] = x.tolist()
    objects = [None] * ranks
    dist.all_gather_object(objects, {"rank": rank})
    told["objects"] = objects

    lines: list = [None] * ranks
    dist.all_gather_object(lines, told)
    if rank == 0:
        for name in told:
            print(f"{name:15}", *(line[name] for line in lines), sep="  ")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
