"""Processes that run calls until one of them dies, and go on after it.

`campaign` forks them from this process, which has imported all and called nothing. A worker notes the number of the
call that it begins in memory that it shares, so a crash belongs to a call; that call then runs alone, again and again,
as long as it still crashes with a line or an argument less.
"""
import ast
import contextlib
import itertools
import json
import mmap
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field

SECONDS = 12                        # that a call may take
MEMORY = 3 << 30                    # that a worker may map, beside what a sanitizer maps
NOW, CALLS, RAISED = range(3)       # what a worker notes
NEVER = (SystemError, RecursionError, NameError, SyntaxError)       # what no call may end with


@dataclass
class Finding:
    """Calls that ended the same way: the first of them, cut short, and how many there were."""
    reason: str
    program: str
    number: int
    alone: bool = True
    count: int = 1


@dataclass
class Figures:
    calls: int = 0
    raised: int = 0
    crashes: int = 0
    seconds: float = 0.0
    findings: dict = field(default_factory=dict)


def run(program, names):
    """Make a call; return the reason why its end is a finding, or None."""
    try:
        exec(compile(program, "<call>", "exec"), dict(names))
    except NEVER as error:
        return described(error), True
    except Exception:
        return None, True
    return None, False


def described(error):
    """An exception that no call should end with, and where it came from."""
    frames = [f"{os.path.basename(frame.filename)}:{frame.lineno}"
              for frame in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''} ({frames[-1]})"


def limit(seconds=None):
    """Of a process that runs calls: no memory beyond a bound, no core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "asan" not in os.environ.get("LD_PRELOAD", "") and "tsan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if seconds:
        signal.alarm(seconds)


def begin(path):
    """A child, with all that it prints in a file: 0 in the child."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1), os.dup2(out, 2)
    return child


def reason_of(status, log, patience=SECONDS):
    """Why a process ended: a sanitizer's summary, an assertion, or a signal. None if it ended well."""
    if status == 0:
        return None
    found = re.findall(r"SUMMARY: (.*)|(\S+ runtime error: .*)|(\S+:\d+: not so: .*)", log)
    if found:
        return re.sub(r"/\S*/", "", next(filter(None, found[0]))).strip()
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return f"longer than {patience} seconds" if name in ("SIGALRM", "SIGKILL") else name
    return f"exit with {os.waitstatus_to_exitcode(status)}"


class Campaign:
    """`calls` calls, of which program(number) gives the text, in `jobs` processes.

    prepare() runs first in each; a check may take `patience` seconds.
    """

    def __init__(self, program, names, prepare=lambda: None, check=run, jobs=1, isolated=lambda text: False,
                 patience=SECONDS):
        self.program, self.names, self.prepare, self.check, self.jobs, self.isolated = (program, names, prepare, check,
                                                                                        jobs, isolated)
        self.patience = patience
        self.figures = Figures()

    def run(self, calls, seconds=float("inf")):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as self.folder:
            edges = [calls * k // self.jobs for k in range(self.jobs + 1)]
            running = dict(self.start(first, stop) for first, stop in itertools.pairwise(edges) if first < stop)
            while running:
                time.sleep(0.02)
                for child in list(running):
                    self.watch(child, running)
                    if time.monotonic() - began > seconds and child in running:
                        running[child][0] = 0
                        os.kill(child, signal.SIGTERM)
        self.figures.seconds = time.monotonic() - began
        return self.figures

    def start(self, first, stop):
        notes = memoryview(mmap.mmap(-1, 24)).cast("q")
        log = os.path.join(self.folder, f"log {first}")
        notes[NOW] = first
        child = begin(log)
        if not child:
            self.work(first, stop, notes)
        return child, [stop, notes, log, first, time.monotonic()]

    def work(self, first, stop, notes):
        """In the child."""
        with contextlib.suppress(KeyboardInterrupt):
            limit()
            self.prepare()
            for number in range(first, stop):
                notes[NOW] = number
                text = self.program(number)
                reason, raised = self.apart(text) if self.isolated(text) else self.check(text, self.names)
                notes[CALLS] += 1
                notes[RAISED] += raised
                if reason:
                    print("\nFOUND", json.dumps([reason, number]), flush=True)
            os._exit(0)
        os._exit(1)

    def apart(self, text):
        """A call that changes the process runs in one that ends with it."""
        return self.once(text), False

    def once(self, text):
        """How a call ends that runs alone: None if well."""
        log = os.path.join(self.folder, f"once {os.getpid()}")
        child = begin(log)
        if not child:
            with contextlib.suppress(BaseException):
                limit(self.patience)
                self.prepare()
                reason, _ = self.check(text, self.names)
                print("\nFOUND", json.dumps([reason, 0]) if reason else "", flush=True)
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        with open(log, errors="replace") as file:
            text = file.read()
        os.unlink(log)
        reported = re.findall(r"^FOUND (\[.*)", text, re.MULTILINE)
        return json.loads(reported[0])[0] if reported else reason_of(status, text, self.patience)

    def watch(self, child, running):
        """See how a worker does: one that died or hangs is followed by another, after the call that it was at."""
        stop, notes, log, seen, since = running[child]
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            if notes[NOW] != seen:
                running[child][3:] = [notes[NOW], time.monotonic()]
            elif time.monotonic() - since > self.patience:
                os.kill(child, signal.SIGKILL)
            return
        del running[child]
        with open(log, errors="replace") as file:
            text = file.read()
        os.unlink(log)
        self.figures.calls += notes[CALLS]
        self.figures.raised += notes[RAISED]
        for reported in re.findall(r"^FOUND (\[.*)", text, re.MULTILINE):
            self.note(*json.loads(reported))
        if status and not (stop == 0 and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM):
            self.figures.calls += 1
            self.figures.crashes += 1
            self.note(reason_of(status, text, self.patience), notes[NOW])
            if notes[NOW] + 1 < stop:
                running.update([self.start(notes[NOW] + 1, stop)])

    def note(self, reason, number):
        text = self.program(number)
        key = (alike(reason), callee(text) if reason.startswith(("SIG", "longer")) else "")
        if key in self.figures.findings:
            self.figures.findings[key].count += 1
            return
        found = self.figures.findings[key] = Finding(reason, text, number)
        slow = reason.startswith("longer")
        found.alone = slow or self.once(text) is not None
        if found.alone and not slow:
            found.program = self.shortened(text, reason)
        print(f"\n{reason} (call {number}{'' if found.alone else ', not when it runs alone'})")
        print("\n".join(f"    {line}" for line in found.program.splitlines()), flush=True)

    def shortened(self, text, reason, most=60):
        """The call with as few lines and as plain arguments as still end it alike."""
        tries, again = 0, True
        while again and tries < most:
            again = False
            for shorter in simpler(text):
                tries += 1
                ended = self.once(shorter)
                if ended is not None and alike(ended) == alike(reason):
                    text, again = shorter, True
                    break
                if tries >= most:
                    break
        return text


def simpler(text):
    """Programs with a line less, or with an argument of a call that is not written out, or is None or 1."""
    lines = text.splitlines()
    for k in range(len(lines) - 1, -1, -1):
        if len(lines) > 1:
            yield "\n".join(lines[:k] + lines[k + 1:])
    tree = ast.parse(text)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for part in (call.keywords, call.args):
            for k, given in enumerate(part):
                del part[k]
                yield ast.unparse(tree)
                part.insert(k, given)
        for k, given in enumerate(call.args):
            for plain in (None, 1):
                if not (isinstance(given, ast.Constant) and given.value in (None, 1)):
                    call.args[k] = ast.Constant(plain)
                    yield ast.unparse(tree)
            call.args[k] = given


def alike(reason):
    """Return what ends of one kind have in common."""
    return re.sub(r"0x[0-9a-f]+|<call>:\d+|\b\d{3,}\b", "", reason)


def callee(text):
    """The function that a program is about: the first that is none of the campaign's own."""
    names = re.findall(r"([A-Za-z_][\w.]*)\(", text)
    return next((name for name in names if name not in ("tensor", "array", "pull", "trained", "print")), text[:40])


def report(name, figures):
    """Print a line of figures; return True if nothing was found."""
    print(f"{name}: {figures.calls:,} calls, {figures.raised:,} raised, {figures.crashes:,} crashes, "
          f"{len(figures.findings)} findings, {figures.seconds:.0f} s, "
          f"{figures.calls / max(figures.seconds, 1e-9):,.0f} a second")
    return not figures.findings
