"""torchrun: start the workers of a job on this machine. https://pytorch.org/docs/stable/elastic/run.html

    python -m tensorgrad.distributed.run --standalone --nproc-per-node 4 train.py --lr 0.1

Each worker runs `python -m tensorgrad train.py --lr 0.1`, so that a program may import torch or tensorgrad, and finds
RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and the other variables of torchrun in its environment, which
`init_process_group()` reads. The workers' output comes line by line, with "[rank0]: " in front. If a worker fails, the
others are ended, and all start again, --max-restarts times: a program that saves checkpoints then goes on from the
    last. Nothing that workers have started outlives the launcher. Several machines are for MPI: with --nnodes over 1,
    the command for it is printed.
"""
from __future__ import annotations

import argparse
import os
import shlex
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from string import Template
from typing import Any

from ..messages.extras import install
from .elastic.agent import SIGNALS, Agent, Job, Stopped
from .elastic.multiprocessing.errors import ChildFailedError, record

__all__ = ["get_args_parser", "main", "parse_args", "run"]

THREADS = """
*****************************************
Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded, please further tune the \
variable for optimal performance in your application as needed. \n*****************************************"""  # noqa: E501
RUN_PATH = """import runpy, sys
from tensorgrad.distributed.elastic.multiprocessing.errors import record
sys.argv[:] = sys.argv[1:]
record(runpy.run_path)(sys.argv[0], run_name="__main__")"""
SHUTDOWN = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"


def get_args_parser() -> argparse.ArgumentParser:
    """The options of torchrun that have a meaning on one machine.

    A variable PET_NPROC_PER_NODE is the default of --nproc-per-node, and so on.
    """
    parser = argparse.ArgumentParser("python -m tensorgrad.distributed.run",
                                     description="Start the workers of a job on this machine.")

    def add(name: str, default: Any, what: str, *others: str, **options: Any) -> None:
        dashed, plain = f"--{name}", name.replace("-", "_")
        names = [*others, dashed, *([f"--{plain}"] if plain != name else [])]
        given = os.environ.get(f"PET_{plain.upper()}")
        if default is False:
            parser.add_argument(*names, action="store_true", default=bool(int(given or "0")), help=what)
        else:
            parser.add_argument(*names, default=default if given is None else given, help=what, **options)
    add("nnodes", "1:1", "number of machines; over 1, the command for MPI is printed")
    add("nproc-per-node", "1", "number of workers: a number, cpu (one for each core), gpu (one for each GPU), or auto")
    add("node-rank", 0, "number of this machine: 0", type=int)
    add("standalone", False, "this machine alone; the workers meet at a free port of it")
    add("rdzv-backend", "static", "how workers meet: static or c10d, which are one here", choices=["static", "c10d"])
    add("rdzv-endpoint", "", "where workers meet: host, or host:port, of this machine")
    add("rdzv-id", "none", "name of the job")
    add("rdzv-conf", "", "accepted, without effect: there is one machine")
    add("master-addr", "127.0.0.1", "address of this machine at which workers meet")
    add("master-port", None, "port at which they meet (default: a free one)", type=int)
    add("local-addr", None, "address of this machine")
    add("max-restarts", 0, "how often all workers are started again after one has failed", type=int)
    add("monitor-interval", 0.1, "seconds between two looks at the workers", type=float)
    add("shutdown-timeout", None, f"seconds between a signal to the workers and SIGKILL (default: {SHUTDOWN}, or 30)",
        type=float)
    add("signals-to-handle", SIGNALS, "signals that are passed on to the workers and end the job")
    add("start-method", "spawn", "accepted, without effect: each worker is a new interpreter",
        choices=["spawn", "fork", "forkserver"])
    add("role", "default", "name of the workers' role")
    add("module", False, "the program is a module, as under python -m", "-m")
    add("no-python", False, "the program is a command, not a Python program")
    add("run-path", False, "run the program by runpy.run_path, with its exception recorded for the summary")
    add("log-dir", None, "directory for the files of --redirects and --tee, in a new folder for each run")
    add("redirects", "0", "streams that go to files: 1 the output, 2 the errors, 3 both; or for some workers, as in "
                          "0:1,1:3", "-r")
    add("tee", "0", "streams that go to files and to the screen, as --redirects", "-t")
    add("local-ranks-filter", "", "the workers whose lines are shown, as in 0,2")
    add("virtual-local-rank", False, "LOCAL_RANK is 0 in each worker, and CUDA_VISIBLE_DEVICES its GPU alone")
    parser.add_argument("training_script", metavar="program", help="the program that each worker runs")
    parser.add_argument("training_script_args", metavar="arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The words of a command line; None: of this process's. SystemExit with the status 2 for words that are no options.

    >>> found = parse_args(["--nproc-per-node", "2", "train.py", "--lr", "0.1"])
    >>> found.nproc_per_node, found.training_script, found.training_script_args
    ('2', 'train.py', ['--lr', '0.1'])
    """
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace) -> None:
    """Run what parsed words ask for, until all workers have ended well.

    Errors: ChildFailedError if a worker failed, Stopped after a signal, SystemExit with the status 2 for more than one
        machine, ValueError for words that
    make no sense.
    """
    if args.max_restarts < 0:
        raise AssertionError("max_restarts must be >= 0")
    count = _count(args.nproc_per_node)
    machines = _machines(args.nnodes)
    if machines > 1:
        print(_for_mpi(args, machines, count), file=sys.stderr)
        raise SystemExit(2)
    host, port = _endpoint(args)
    for name, address in (("--rdzv-endpoint" if args.rdzv_endpoint else "--master-addr", host),
                          ("--local-addr", args.local_addr)):
        if address is not None and not _is_here(address):
            print(f"{name}: {address} is not this machine.\n{_for_mpi(args, 2, count)}", file=sys.stderr)
            raise SystemExit(2)
    if args.node_rank:
        raise ValueError(f"node_rank must be 0, got {args.node_rank}: there is one machine")
    agent = Agent(_job(args, count, host, port))
    if count > 1 and "OMP_NUM_THREADS" not in os.environ:
        agent.console.note(THREADS)
    agent.run()


def _job(args: argparse.Namespace, count: int, host: str, port: int) -> Job:
    named = args.rdzv_id != "none" and not args.standalone
    grace = os.environ.get(SHUTDOWN, "30") if args.shutdown_timeout is None else args.shutdown_timeout
    shown = args.local_ranks_filter and frozenset(_numbers(args.local_ranks_filter))
    threads = {"OMP_NUM_THREADS": "1"} if count > 1 and "OMP_NUM_THREADS" not in os.environ else {}
    return Job(args.training_script, _command(args), count, args.rdzv_id if named else str(uuid.uuid4()), host, port,
               args.role, args.max_restarts, args.monitor_interval, float(grace), _prefix(args.role),
               _streams(args.redirects, count), _streams(args.tee, count), shown or None, args.log_dir,
               args.signals_to_handle, threads,
               args.virtual_local_rank)


def _count(asked: str) -> int:
    """How many workers."""
    from .. import cuda
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if asked == "cpu":
        return cores
    if asked == "gpu" and not cuda.is_available():
        raise ValueError("Cuda is not available.")
    if asked in ("gpu", "auto"):
        return cuda.device_count() if cuda.is_available() else cores
    try:
        count = int(asked)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {asked}") from None
    if count < 1:
        raise ValueError(f"nproc_per_node must be at least 1, got {count}")
    return count


def _machines(asked: str) -> int:
    """How many machines, at most."""
    parts = asked.split(":")
    if len(parts) > 2 or not all(part.isdecimal() for part in parts):
        raise RuntimeError(f'nnodes={asked} is not in "MIN:MAX" format')
    least, most = int(parts[0]), int(parts[-1])
    if not 0 < least <= most:
        raise AssertionError(f"min_nodes must be > 0 and <= max_nodes, got min_nodes={least}, max_nodes={most}")
    return most


def _endpoint(args: argparse.Namespace) -> tuple[str, int]:
    """Host and port at which workers meet; port 0 stands for a free one."""
    if args.standalone or not args.rdzv_endpoint:
        return args.master_addr, 0 if args.standalone else args.master_port or 0
    host, _, port = (args.rdzv_endpoint.rpartition(":") if args.rdzv_endpoint.rpartition(":")[2].isdecimal()
                     else (args.rdzv_endpoint, "", "0"))
    return host.strip("[]"), int(port)


def _is_here(host: str) -> bool:
    """Return True if a name or an address is this machine's, so that a socket can listen there."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return host == socket.gethostname()
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as probe:
            try:
                probe.bind(address)
                return True
            except OSError:
                continue
    return False


def _for_mpi(args: argparse.Namespace, machines: int, count: int) -> str:
    """Say which `mpiexec` and `srun` lines start the job on several machines."""
    program = [] if args.no_python else ["python", "-m", "tensorgrad", *(["-m"] if args.module else [])]
    command = shlex.join([*program, args.training_script, *args.training_script_args])
    hosts = ",".join(f"host{i}" for i in range(min(machines, 3))) + (",…" if machines > 3 else "")
    return (f"This launcher starts the workers of one machine. For {machines} machines with {count} workers on each, "
            f"use MPI, with the machines' names:\n    mpiexec -n {machines * count} -ppn {count} -hosts {hosts} "
            f"{command}\n(Open MPI: mpiexec -n {machines * count} --map-by ppr:{count}:node --host "
            f"{hosts.replace(',', f':{count},')}:{count} …), or under Slurm:\n    srun --nodes={machines} "
            f"--ntasks-per-node={count} {command}\n"
            f'There, init_process_group() takes "mpi" by itself; it needs {install("mpi")}.')


def _numbers(asked: str) -> list[int]:
    try:
        return [int(part) for part in asked.split(",")]
    except ValueError:
        raise ValueError("--local_ranks_filter must be a comma-separated list of integers e.g. "
                         "--local_ranks_filter=0,1,2") from None


def _streams(asked: str, count: int) -> dict[int, int]:
    """Which streams are asked for, by worker."""
    try:
        if ":" not in asked:
            found = dict.fromkeys(range(count), int(asked))
        else:
            found = {int(i): int(which) for i, which in (part.split(":") for part in asked.split(","))}
        if all(0 <= which <= 3 for which in found.values()):
            return found
    except ValueError:
        pass
    raise ValueError(f"{asked} does not match: 0, 1, 2 or 3, or such numbers for some workers, as in 0:1,1:3")


def _prefix(role: str) -> Callable[[int], str]:
    """Return the prefix of a worker's lines, which the variable TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE overrides."""
    template = Template(os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "[rank${rank}]: "))
    return lambda i: template.safe_substitute(role_name=role, rank=i, local_rank=i)


def _command(args: argparse.Namespace) -> Callable[[int], list[str]]:
    """The command of each worker. Options of the interpreter, such as -W error, are those of this one."""
    if args.no_python and args.module:
        raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
    start = [os.environ.get("PYTHON_EXEC", sys.executable), *subprocess._args_from_interpreter_flags(), "-u", "-m",
             "tensorgrad"]   # type: ignore[attr-defined]
    if args.run_path:
        start += ["-c", RUN_PATH]
    elif args.no_python:
        start = []
    elif args.module:
        start += ["-m"]

    def command(i: int) -> list[str]:
        own = [] if getattr(args, "use_env", True) else [f"--local-rank={i}"]
        return [*start, args.training_script, *own, *args.training_script_args]
    return command


@record
def main(args: Sequence[str] | None = None) -> None:
    """Run a command line. Errors: those of `run`."""
    run(parse_args(args))


def command_line(call: Callable[[], None]) -> int:
    """Run a launcher as a program, and return its exit status. Errors are printed without a traceback."""
    try:
        call()
        return 0
    except ChildFailedError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    except Stopped as stopped:
        print(stopped, file=sys.stderr, flush=True)
        return 128 + stopped.number
    except BrokenPipeError:
        return 1
    except (AssertionError, OSError, RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(command_line(main))
