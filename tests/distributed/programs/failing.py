"""Programs for PyTorch in which one rank fails while the others wait for it: `mpiexec … python -m tensorgrad failing.py
HOW`.
"""
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

from tensorgrad.distributed.transport import mpi_guard

how = sys.argv[1]
dist.init_process_group("mpi", timeout=timedelta(seconds=60))
mpi_guard.PATIENCE, mpi_guard.GRACE = 0.5, 60
rank, last = dist.get_rank(), dist.get_world_size() - 1
dist.all_reduce(torch.ones(3))
if rank == last:
    if how == "raises":
        if os.path.exists("/proc/self/maps"):
            with open("/proc/self/maps") as maps:
                print(*{line.split()[-1] for line in maps if " /dev/shm/" in line}, flush=True)
        raise ValueError("no such thing")
    if how == "leaves":
        sys.exit(1)
    time.sleep(60)                      # late
if how == "late":
    dist.GroupMember.WORLD.transport().timeout = timedelta(seconds=1)
dist.broadcast(torch.ones(2, 2), last)
print("never")
