"""Programs that are killed and started again until they finish: `finish` starts them, and kills them at given moments.

A program prints a line `step …` after each step, goes on by itself when it is started again, and prints `digest <text>` when it has finished. It is run by
this file, which can kill it in the middle of a save: before and after each call that writes a file to the disk.
"""
import hashlib
import os
import random
import runpy
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
IN_SAVES = "open", "fsync", "replace", "replaced", "link", "linked"      # of the file's name before there is anything in it, of what is in it, …


@dataclass(frozen=True)
class Kill:
    """A moment: so many seconds after the `count`-th step of a process (0: its start), or at the `count`-th call of a kind in its saves."""
    count: int
    seconds: float = 0.0
    call: str | None = None


@dataclass
class Finished:
    digest: str
    killed: int         # how many of the kills came before the end
    steps: int          # in all processes
    seconds: float


def moments(seed, number, steps, saving=0.4, longest=0.03):
    """Kills at random: of each process within its next `steps` steps."""
    chance = random.Random(seed)
    return [Kill(chance.randint(1, steps), call=chance.choice(IN_SAVES)) if chance.random() < saving else
            Kill(chance.randint(0, steps), chance.random() * longest) for _ in range(number)]


def finish(program, *arguments, kills=(), environment=None):
    """Start a program until it finishes, and kill one process after the other at these moments."""
    began, steps, killed = time.monotonic(), 0, 0
    for kill in [*kills, None]:
        settings = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)} | (environment or {})
        if kill is not None:
            settings["KILLED_AT"] = f"{kill.call} {kill.count} {kill.seconds}"
        process = subprocess.Popen([sys.executable, "-W", "error", __file__, str(program), *map(str, arguments)], cwd=ROOT, env=settings,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        done, digest = read(process)
        steps += done
        errors = process.stderr.read()
        process.stdout.close(), process.stderr.close()
        if process.wait() in (-signal.SIGKILL, -signal.SIGALRM) and kill is not None:
            killed += 1
        elif process.returncode or digest is None:
            raise AssertionError(f"{program} ended with {process.returncode}, after {killed} kills, at {kill}:\n{errors[-4000:]}")
        else:
            return Finished(digest, killed, steps, time.monotonic() - began)
    raise AssertionError(f"{program} did not finish")


def read(process):
    """Read what a process prints: the number of its steps, and its digest."""
    done, digest = 0, None
    for line in process.stdout:
        done += line.startswith("step")
        digest = line.split()[1] if line.startswith("digest") else digest
    return done, digest


def digest(state):
    """A text that two states have in common if they are equal to the bit."""
    found = hashlib.sha256()
    _digest(state, found.update)
    return found.hexdigest()


def _digest(value, add):
    if hasattr(value, "detach"):
        numbers = value.detach().cpu().contiguous()
        numbers = numbers.float() if str(value.dtype) == "torch.bfloat16" else numbers
        add(f"{value.dtype} {tuple(value.shape)}".encode() + numbers.numpy().tobytes())
    elif isinstance(value, dict):
        for key in value:
            add(f"{key!r}:".encode())
            _digest(value[key], add)
    elif isinstance(value, (list, tuple)):
        add(f"{len(value)} items".encode())
        for item in value:
            _digest(item, add)
    else:
        add(repr(value).encode())


def arm(call, count):
    """Let this process die at the count-th call: before it, or after it (`replaced`, `linked`)."""
    name = {"replaced": "replace", "linked": "link"}.get(call, call)
    original, after, calls = getattr(os, name), name != call, [0]

    def killing(*arguments, **options):
        counts = name != "open" or str(arguments[0]).endswith(".part")
        calls[0] += counts
        if counts and calls[0] == count and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **options)
        if counts and calls[0] == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(os, name, killing)


def arm_timer(count, seconds):
    """Let this process die so many seconds after it has printed its count-th step. Its own timer does that: another process might be late."""
    def start():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)       # ends the process as suddenly as SIGKILL
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        if not seconds:
            signal.pause()

    write, steps = sys.stdout.write, [0]

    def counted(text):
        written = write(text)
        steps[0] += text.startswith("step")
        if steps[0] == count and text.endswith("\n"):
            sys.stdout.write = write
            sys.stdout.flush()
            start()
        return written

    if count:
        sys.stdout.write = counted
    else:
        start()


if __name__ == "__main__":
    sys.modules["killing"] = sys.modules["__main__"]
    if "KILLED_AT" in os.environ:
        call, number, after = os.environ["KILLED_AT"].split()
        arm(call, int(number)) if call != "None" else arm_timer(int(number), float(after))
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
