"""Spoiled files, read by the thousand: python tests/campaign/files.py --cases 20000 --seed 1

Each is read in a worker process of little memory, and what was read is then used: shown, loaded into a model and an
optimizer, which takes a step. A case fails if the worker dies or hangs, if memory runs out, if an error is of a kind
that is not documented or holds control characters, or if anything is imported, run or opened meanwhile. A failing
case is shown by its number, and `--only NUMBER` repeats it.
"""

import argparse
import collections
import faulthandler
import mmap
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "campaign")]

MEMORY = 300_000_000  # bytes that a worker may take beyond what it begins with
LONGEST = 10.0  # seconds for one case
BOLD = ("\033[1m", "\033[0m")  # in PyTorch's message
FORBIDDEN = set(
    """import exec compile os.system os.exec os.fork os.posix_spawn os.spawn os.startfile subprocess.Popen os.remove
    os.rename os.mkdir shutil.rmtree shutil.unpack_archive socket.__new__ socket.connect socket.bind ctypes.dlopen
    pickle.find_class urllib.Request webbrowser.open tempfile.mkstemp tempfile.mkdtemp
    code.__new__ marshal.loads sys.addaudithook os.listdir os.scandir os.truncate""".split()
)


class Watch:
    """A watch on what happens while a file is read.

    An audit hook stays for good; it looks on between `begin` and `end` only.
    """

    def __init__(self, path):
        self.path, self.looking, self.events, self.literals = path, False, [], False
        sys.addaudithook(self.hook)

    def hook(self, event, arguments):
        if not self.looking:
            return
        if event == "compile" and self.literals and arguments[1] == "<unknown>":  # NumPy's reader parses a literal
            return
        if event in FORBIDDEN or event == "open" and arguments[0] != self.path:
            self.events.append((event, repr(arguments)[:200]))


def documented(kind):
    """The errors that reading a file of this format may give."""
    from tensorgrad.onnx.errors import InvalidModelError, UnsupportedModelError
    from tensorgrad.utils.safetensors import SafetensorError

    onnx = (InvalidModelError, UnsupportedModelError)
    return {"safetensors": (SafetensorError,), "npz": (ValueError,), "onnx": onnx}.get(
        kind, (pickle.UnpicklingError, RuntimeError, EOFError, ValueError)
    )


def unprintable(message):
    """The characters in a message that do more to a terminal than to be shown."""
    for mark in BOLD:
        message = message.replace(mark, "")
    return [c for c in message if not c.isprintable() and c not in "\n\t"]


def use(loaded, tg):
    """Do what a program does with what it read. Errors are those of bad values, and are given back."""
    errors = []

    def attempt(function, *arguments):
        try:
            function(*arguments)
        except (MemoryError, RecursionError):
            pass  # PyTorch's copies are as large and as deep: of a tensor of stride 0, of a list in itself
        except Exception as error:
            errors.append(error)

    waiting, seen = [loaded], set()
    while waiting and len(seen) < 300:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, tg.Tensor):
            attempt(repr, value)
            if not value.is_meta and value.numel() < 10_000:
                attempt(lambda v=value: (v.tolist(), v.clone(), v.sum(), v.contiguous()))
        elif isinstance(value, dict):
            waiting += [*list(value.values())[:50], *list(value)[:50]]
        elif isinstance(value, tg.nn.Module):
            attempt(value, tg.ones(1, 1, 4, 4))
            waiting.append(value.state_dict())
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += list(value)[:50]
        elif not isinstance(value, (int, str, bytes)):
            attempt(repr, value)
    train(loaded if isinstance(loaded, dict) else {}, attempt, tg)
    return errors


def train(loaded, attempt, tg):
    """Load the parts of a checkpoint, and go on from there."""
    model = tg.nn.Sequential(tg.nn.Linear(3, 2), tg.nn.BatchNorm1d(2))
    optimizer = tg.optim.Adam(model.parameters())
    scheduler = tg.optim.lr_scheduler.StepLR(optimizer, 2)
    model(tg.ones(4, 3)).sum().backward()
    if isinstance(loaded.get("model"), dict):
        attempt(model.load_state_dict, loaded["model"])
        attempt(lambda: model.load_state_dict(loaded["model"], strict=False, assign=True))
        attempt(model, tg.ones(4, 3))
    if isinstance(loaded.get("optimizer"), dict):
        attempt(lambda: (optimizer.load_state_dict(loaded["optimizer"]), optimizer.step(), optimizer.state_dict()))
    if isinstance(loaded.get("scheduler"), dict):
        attempt(lambda: (scheduler.load_state_dict(loaded["scheduler"]), scheduler.step()))
    attempt(tg.nn.Linear(3, 2).load_state_dict, loaded)


def one(kind, data, path, watch, tg):
    """Read a file and use what it holds: (what happened, complaints)."""
    from file_mutations import read

    complaints, loaded = [], None
    watch.events.clear()
    watch.literals = kind == "npz"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        watch.looking = True
        try:
            loaded = read(kind, data, path)
            happened, errors = "read", []
        except MemoryError as error:
            happened, errors = "MemoryError", [error]
            complaints.append("memory ran out")
        except Exception as error:
            happened, errors = type(error).__name__, [error]
            if not isinstance(error, documented(kind)):
                complaints.append(f"not documented: {error!r:.300}")
            if "more memory than there is" in str(error):
                complaints.append("memory ran out")
        watch.looking = False
        if happened == "read":
            errors = use(loaded, tg)
    if watch.events:
        complaints.append(f"events: {watch.events[:3]}")
    for message in [*map(str, errors), *(str(warning.message) for warning in warned)]:
        if bad := unprintable(message):
            complaints.append(f"control characters {bad[:5]} in {message!r:.300}")
        if len(message) > 5000:
            complaints.append(f"a message of {len(message)} characters: {message!r:.200}")
    return happened, complaints


def worker(first, last, seed, folder):
    """Run cases; the number of each is noted before it begins, and what happened is printed after it."""
    import tensorgrad as tg

    tg.manual_seed(0)
    tg.cuda.is_available()  # a place in a file may ask for it
    from file_mutations import case, read, sources

    path, table = os.path.join(folder, f"case{first}"), sources()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, kind, data, _ in table:
            if data[:2] not in (b"\x80\x02",) or kind == "legacy":
                use(read(kind, data, path), tg)  # what is imported when it is first needed is there from here on
    watch = Watch(path)
    with open(os.path.join(folder, f"at{first}"), "w+b") as file:
        file.write(bytes(8))
        file.flush()
        place = mmap.mmap(file.fileno(), 8)
    limit()
    faulthandler.enable()
    for number in range(first, last):
        place[:] = number.to_bytes(8, "little")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")         # of names that are in an archive twice
            kind, data = case(number, seed, table)
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        happened, complaints = one(kind, data, path, watch, tg)
        faulthandler.cancel_dump_traceback_later()
        print(f"CASE {kind} {happened}", flush=True)
        for complaint in complaints:
            print(f"FAIL {number} {kind}: {complaint}", flush=True)


def limit():
    """Leave this process little memory beyond what it has."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError):
        return
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY,) * 2)


def run(cases, seed, first=0):
    """(outcomes, failures) of many cases; a worker that dies is replaced by one that goes on behind that case."""
    outcomes, failures, at = collections.Counter(), [], first
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        while at < first + cases:
            command = [
                sys.executable,
                __file__,
                "--worker",
                folder,
                "--first",
                str(at),
                "--cases",
                str(first + cases - at),
                "--seed",
                str(seed),
            ]
            ran = subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=environment, cwd=ROOT, timeout=60 + cases
            )
            for line in ran.stdout.splitlines():
                word, *rest = line.split()
                if word == "CASE":
                    outcomes[rest[0], rest[1]] += 1
                elif word == "FAIL":
                    failures.append(line)
            if ran.returncode == 0:
                break
            note = Path(folder, f"at{at}")
            if not note.exists():
                raise RuntimeError(f"the worker did not begin: {ran.stderr[-2000:]}")
            died = int.from_bytes(note.read_bytes(), "little")
            failures.append(f"FAIL {died}: the worker ended with {ran.returncode}: {ran.stderr[-1500:]}")
            at = died + 1
    return outcomes, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.first, given.first + given.cases, given.seed, given.worker)
        return 0
    if given.only is not None:
        given.first, given.cases = given.only, 1
    begin = time.monotonic()
    outcomes, failures = run(given.cases, given.seed, given.first)
    for (kind, happened), count in sorted(outcomes.items()):
        print(f"{kind:12} {happened:20} {count:7}")
    print(*failures, sep="\n")
    print(f"{given.cases} cases, {len(failures)} complaints, {time.monotonic() - begin:.1f} s")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
