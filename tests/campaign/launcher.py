"""Kill launchers and workers at random moments, and look for what is left of them: processes, shared memory, open
files.

Each kill starts a job of `python -m tensorgrad.distributed.run` whose workers share tensors, reduce over gloo and have
children of their own, some of which leave the workers' session. After a random time SIGKILL goes to the launcher, a
worker or a child, or a signal that asks goes to the launcher. All processes must be gone within a minute, and no
segment may be in /dev/shm that nobody holds. The last line tells the figures; the exit status is 1 if something was
found.

    python tests/campaign/launcher.py --kills 100 --seed 0
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "common")]

from support import is_running, nothing_is_left, shared_memory, until  # noqa: E402

WORKER = """
import os, subprocess, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
folder, waits = sys.argv[1], "import os, sys, time; open(os.path.join(sys.argv[1], f'child{os.getpid()}'), 'w').close(); time.sleep(300)"

def note(name):
    open(os.path.join(folder, f"{name}{os.getpid()}"), "w").close()

def pass_on(queue, back):
    note("child")
    for x in iter(queue.get, None):
        back.put(x.add_(1))

if __name__ == "__main__":
    note("worker")
    for apart in (False, True):
        subprocess.Popen([sys.executable, "-I", "-S", "-c", waits, folder], start_new_session=apart)
    context = mp.get_context("fork")
    queue, back = context.Queue(), context.Queue()
    context.Process(target=pass_on, args=(queue, back), daemon=True).start()
    dist.init_process_group("gloo")
    while True:
        x = torch.zeros(1000)
        queue.put(x)
        back.get()
        dist.all_reduce(x)
"""  # noqa: E501
WAYS = ("launcher", "worker", "child", "SIGTERM", "SIGINT", "SIGHUP")


def trial(draw, folder):
    """Run a job and kill a part of it; return (what was killed, the mistake found or None)."""
    before = shared_memory()
    program = folder / "program.py"
    program.write_text(WORKER)
    pids = folder / "pids"
    pids.mkdir()
    words = ["--nproc-per-node", "2", "--shutdown-timeout", "5", "--max-restarts", str(draw.choice([0, 1])),
             str(program), str(pids)]
    launcher = subprocess.Popen([sys.executable, "-W", "ignore", "-m", "tensorgrad.distributed.run", *words], cwd=ROOT,
                                stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    way = draw.choice(WAYS)
    if way in ("worker", "child"):
        until(lambda: list(pids.glob(f"{way}*")), f"a {way}")
    time.sleep(draw.uniform(0, 3))
    known = lambda kind: [int(path.name.removeprefix(kind)) for path in pids.glob(f"{kind}*")]      # noqa: E731
    target = launcher.pid if way not in ("worker", "child") else draw.choice(known(way))
    try:
        os.kill(target, getattr(signal, way, signal.SIGKILL))
    except ProcessLookupError:
        pass
    # the job may go on: a worker may start again, a child may be one that nobody waits for
    if way in ("worker", "child"):
        time.sleep(draw.uniform(0, 2))
        launcher.send_signal(signal.SIGTERM)
    try:
        launcher.wait(60)
        until(lambda: not [pid for kind in ("worker", "child") for pid in known(kind) if is_running(pid)],
              "the end of all")
        until(lambda: nothing_is_left(before), "the end of shared memory")
    except (AssertionError, subprocess.TimeoutExpired) as error:
        launcher.kill()
        return (way, f"{error}: {[pid for pid in known('worker') + known('child') if is_running(pid)]} "
                     f"{shared_memory() - before}")
    return way, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    # which nohup, and shells for what runs in the background, let processes ignore
    for name in ("SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    draw, begin, counts, found = random.Random(args.seed), time.monotonic(), dict.fromkeys(WAYS, 0), 0
    for number in range(args.kills):
        with tempfile.TemporaryDirectory() as folder:
            way, left = trial(draw, Path(folder))
        counts[way] += 1
        if left is not None:
            found += 1
            print(f"kill {number} ({way}): {left}", flush=True)
    told = ", ".join(f"{way} {count}" for way, count in counts.items())
    print(f"{args.kills} jobs killed ({told}), {found} left something, {time.monotonic() - begin:.0f} s")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
