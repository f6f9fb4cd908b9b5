"""Programs that are killed and started again until they finish: `finish` starts them, and kills them at given moments.

A program prints a line `step …` after each step, goes on by itself when it is started again, and prints `digest <text>`
when it has finished. It is run by
this file, which can kill it in the middle of a save: before and after each call that writes a file to the disk.
"""
import hashlib
import json
import os
import random
import runpy
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL, -signal.SIGALRM
# of the file's name before there is anything in it, of what is in it, …
IN_SAVES = "open", "fsync", "replace", "replaced", "link", "linked"


@dataclass(frozen=True)
class Kill:
    """A moment: so many seconds after the `count`-th step of a process (0: its start), or at the `count`-th call of a
    kind in its saves.
    """
    count: int
    seconds: float = 0.0
    call: str | None = None


@dataclass
class Finished:
    digest: str
    killed: int         # how many of the kills came before the end
    steps: int          # in all processes


def moments(seed, number, steps, saving=0.4, longest=0.03):
    """Kills at random: of each process within its next `steps` steps."""
    chance = random.Random(seed)
    return [Kill(chance.randint(1, steps), call=chance.choice(IN_SAVES)) if chance.random() < saving else
            Kill(chance.randint(0, steps), chance.random() * longest) for _ in range(number)]


def finish(program, *arguments, kills=(), fresh=False):
    """Start a program until it finishes, and kill one process after the other at these moments.

    The processes are forks of one that has imported the package, which is most of what a start costs; with `fresh`,
    each is an interpreter of its own.
    """
    steps = killed = 0
    for group in [[kill] for kill in [*kills, None]] if fresh else [[*kills, None]]:
        given = json.dumps([kill and [kill.count, kill.seconds, kill.call] for kill in group])
        done = subprocess.run([sys.executable, "-W", "error", __file__, given, str(program), *map(str, arguments)],
                              cwd=ROOT, text=True, capture_output=True,
                              env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)})
        words = [line.split() for line in done.stdout.splitlines() if line]
        codes = [int(word[1]) for word in words if word[0] == "ended"]
        steps += sum(word[0] == "step" for word in words)
        killed += sum(code in KILLED for code in codes)
        if codes[-1:] == [0] and words[-2][0] == "digest":
            return Finished(words[-2][1], killed, steps)
        if not codes or codes[-1] not in KILLED:
            raise AssertionError(f"{program} ended with {codes[-1:]}, after {killed} kills of "
                                 f"{group}:\n{done.stderr[-4000:]}")
    raise AssertionError(f"{program} did not finish")


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
    """Let this process die so many seconds after it has printed its count-th step.

    Its own timer does that: another process might be late.
    """
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


def main(kills, *words):
    """Run a program in one fork after the other, as long as they are killed."""
    from tensorgrad.experiment import Checkpointer, GANWrapper, Run, Trainer, callbacks  # noqa: F401  (each loaded when it is asked for)
    callbacks.EarlyStopping, callbacks.LearningRateMonitor, callbacks.ModelCheckpoint
    for kill in kills:
        child = os.fork()
        if not child:
            if kill is not None:
                arm(kill.call, kill.count) if kill.call else arm_timer(kill.count, kill.seconds)
            sys.argv = list(words)
            return runpy.run_path(sys.argv[0], run_name="__main__")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(f"\nended {code}", flush=True)
        if code not in KILLED:
            return None


if __name__ == "__main__":
    sys.modules["killing"] = sys.modules["__main__"]
    main([kill and Kill(*kill) for kill in json.loads(sys.argv[1])], *sys.argv[2:])
