"""A rank that measures: `python -m benchmarks.ranks KIND ADDRESS`, two of which are started for each kind; they wait
for requests, and time what they say.

Kinds: mpi4py (NumPy's arrays over MPI), mpi and gloo (tensorgrad's backends), torch (PyTorch's gloo).
"""
from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Client, Connection
from typing import Any

import numpy as np

from . import nets

KINDS = ("mpi4py", "mpi", "gloo", "torch")
# a network, its optimizer, and the batch of a rank
TRAINED: dict[str, tuple[Callable[..., nets.Net], Callable[..., Any], int]] = {
    "char-GPT, 4 layers of 128, batch 12": (nets.chargpt, lambda optim, p: optim.AdamW(p), 12),
    "ResNet-18 on 32 × 32, batch 32": (nets.resnet, lambda optim, p: optim.SGD(p, 0.01, momentum=0.9), 32),
    "ResNet-18 of a quarter of the width on 32 × 32, batch 64": (partial(nets.resnet, width=16),
                                                                 lambda optim, p: optim.SGD(p, 0.01, momentum=0.9), 64)}


class Rank:
    """Requests to one rank: each public method answers one.

    A method that prepares a case stores it under the name it is given.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.cases: dict[str, Callable[[], object]] = {}
        if kind == "mpi4py":
            from tensorgrad.distributed.transport import mpi_library
            mpi_library.load()
            from mpi4py import MPI
            self.world, self.rank = MPI.COMM_WORLD, MPI.COMM_WORLD.Get_rank()
        else:
            import importlib
            self.engine = importlib.import_module("torch" if kind == "torch" else "tensorgrad")
            self.engine.set_num_threads(1)
            self.dist = importlib.import_module(f"{self.engine.__name__}.distributed")
            self.dist.init_process_group("mpi" if kind == "mpi" else "gloo")
            self.rank = self.dist.get_rank()
        if "BENCHMARK_BIND" in os.environ:
            processors = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {processors[self.rank % len(processors)]})

    def barrier(self) -> None:
        self.world.Barrier() if self.kind == "mpi4py" else self.dist.barrier()

    # ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def all_reduce(self, name: str, nbytes: int) -> float:
        """Get ready to sum so many bytes of float32. Returns what the first element is after one time: 3 = 1 + 2."""
        if self.kind == "mpi4py":
            from mpi4py import MPI
            array = np.full(nbytes // 4, self.rank + 1, np.float32)
            self.cases[name] = lambda: self.world.Allreduce(MPI.IN_PLACE, array)
        else:
            array = self.engine.full((nbytes // 4,), float(self.rank + 1))
            self.cases[name] = lambda: self.dist.all_reduce(array)
        self.cases[name]()
        first = float(array[0])
        array *= 0                                  # so that nothing overflows in thousands of sums
        return first

    def ping_pong(self, name: str, nbytes: int) -> float:
        """Get ready to send so many bytes to the other rank and back. Returns what came."""
        other = 1 - self.rank
        if self.kind == "mpi4py":
            array = np.full(nbytes // 4, self.rank, np.float32)
            send, receive = lambda: self.world.Send(array, other), lambda: self.world.Recv(array, other)
        else:
            array = self.engine.full((nbytes // 4,), float(self.rank))
            send, receive = lambda: self.dist.send(array, other), lambda: self.dist.recv(array, other)
        first, second = (send, receive) if self.rank == 0 else (receive, send)

        def there_and_back() -> None:
            first()
            second()
        self.cases[name] = there_and_back
        there_and_back()
        return float(array[0])

    def train(self, name: str, row: str, together: bool) -> int:
        """Get ready for steps of training, with gradients averaged over both ranks or by itself.

        Returns how many examples a step has.
        """
        make, optimizer, batch = TRAINED[row]
        self.engine.manual_seed(0)
        model, draw, classes = make(self.engine, False)
        self.engine.manual_seed(1 + self.rank)
        step = self.step_of(self.wrapped(model) if together else model, optimizer, classes)
        x = draw(batch)
        y = self.targets(x, classes)
        self.cases[name] = lambda: step(x, y)
        for _ in range(2):                          # buckets are laid out anew after the first
            step(x, y)
        return batch

    def losses(self, row: str, together: bool, steps: int, dtype: str, tiny: bool = False) -> list[float]:
        """The losses of some steps: of this rank's half of each batch, or, not together, of the whole batch in this
        process.
        """
        engine = self.engine
        make, optimizer, batch = TRAINED[row]
        engine.set_default_dtype(getattr(engine, dtype))
        try:
            engine.manual_seed(0)
            model, draw, classes = make(engine, tiny)
            x = [draw(2 * batch) for _ in range(steps)]
            y = [self.targets(one, classes).reshape(2 * batch, -1) for one in x]
            if together:
                if any(isinstance(module, engine.nn.BatchNorm2d) for module in model.modules()):
                    model = engine.nn.SyncBatchNorm.convert_sync_batchnorm(model)
                model = self.wrapped(model)
            step = self.step_of(model, optimizer, classes)
            mine = slice(self.rank * batch, (self.rank + 1) * batch) if together else slice(None)
            return [step(a[mine], b[mine].reshape(-1)).item() for a, b in zip(x, y)]
        finally:
            engine.set_default_dtype(engine.float32)

    def wrapped(self, model: Any) -> Any:
        return self.engine.nn.parallel.DistributedDataParallel(model)

    def targets(self, x: Any, classes: int) -> Any:
        return self.engine.randint(0, classes, x.shape[:1] if x.is_floating_point() else x.shape).reshape(-1)

    def step_of(self, model: Any, optimizer: Callable[..., Any], classes: int) -> Callable[[Any, Any], Any]:
        """A step of training, which gives its loss."""
        updates, cross_entropy = (optimizer(self.engine.optim, model.parameters()),
                                  self.engine.nn.functional.cross_entropy)

        def step(x: Any, y: Any) -> Any:
            updates.zero_grad()
            out = model(x)
            out = out[0] if isinstance(out, tuple) else out
            loss = cross_entropy(out.reshape(-1, classes), y)
            loss.backward()
            updates.step()
            return loss.detach()
        return step

    # ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def block(self, name: str, runs: int) -> float:
        """The time of one run in a block of them, which both ranks begin together."""
        run = self.cases[name]
        gc.disable()
        try:
            self.barrier()
            start = time.perf_counter()
            for _ in range(runs):
                run()
            return (time.perf_counter() - start) / runs
        finally:
            gc.enable()

    def drop(self, name: str) -> None:
        del self.cases[name]
        gc.collect()

    def about(self) -> str:
        if self.kind == "mpi4py":
            import mpi4py
            from mpi4py import MPI
            return f"mpi4py {mpi4py.__version__} over {MPI.Get_library_version().splitlines()[0].strip()}"
        return f"{self.engine.__name__} {self.engine.__version__}"


def serve(rank: Rank, requests: Connection) -> None:
    """Answer requests until the other side is gone."""
    requests.send((rank.rank, rank.about()))
    while True:
        try:
            request, *arguments = requests.recv()
        except EOFError:
            return
        try:
            requests.send((getattr(rank, request)(*arguments), ""))
        except Exception as error:
            requests.send((None, f"{type(error).__name__}: {error}"))


def main() -> None:
    kind, port = sys.argv[1], int(sys.argv[2])
    with Client(("127.0.0.1", port), authkey=bytes.fromhex(os.environ["BENCHMARK_KEY"])) as requests:
        rank = Rank(kind)
        serve(rank, requests)
        if kind != "mpi4py":
            rank.dist.destroy_process_group()


if __name__ == "__main__":
    main()
