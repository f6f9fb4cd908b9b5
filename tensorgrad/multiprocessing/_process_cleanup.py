"""End all processes of a job: those that a launcher started, and their descendants.

Each process of a job has the job's mark in its initial environment, which its children inherit. Run as a program, this
file waits for the launcher to end, even by SIGKILL, and then ends the remaining processes of the job. The process
imports the standard library only, so that it starts in milliseconds.
"""
from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

MARK = "TENSORGRAD_JOBS"        # a process's jobs, separated by colons: a launcher may start a launcher
GRACE = 5.0                     # seconds from SIGTERM to SIGKILL
IN_PROC = os.path.exists("/proc/self/environ")


def marked(environment: dict[str, str], job: str) -> dict[str, str]:
    """Return the environment variable that marks a process of a job."""
    above = environment.get(MARK)
    return {MARK: f"{above}:{job}" if above else job}


def members(job: str) -> list[int]:
    """Return the processes of a job; none on systems without /proc."""
    found = []
    for name in os.listdir("/proc") if IN_PROC else ():
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                given = (b"\0" + file.read()).partition(b"\0" + MARK.encode() + b"=")[2].partition(b"\0")[0]
                if job.encode() in given.split(b":"):
                    found.append(int(name))
    return found


def _parents() -> dict[tuple[int, str], int]:
    """Return the parent of each (pid, start time), which identifies a process even if its pid is reused; empty
    without /proc."""
    found = {}
    for name in os.listdir("/proc") if IN_PROC else ():
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat") as file:
                state, parent, *rest = file.read().rpartition(")")[2].split()
                if state != "Z":
                    found[int(name), rest[17]] = int(parent)
    return found


def descendants(pids: Iterable[int]) -> set[tuple[int, str]]:
    """Return (pid, start time) of the descendants of processes."""
    parents, found, above = _parents(), set[tuple[int, str]](), set(pids)
    while above:
        children = {process for process, parent in parents.items() if parent in above} - found
        found |= children
        above = {pid for pid, _ in children}
    return found


def end_all(processes: set[tuple[int, str]], grace: float = GRACE) -> None:
    """Send SIGTERM to processes, and SIGKILL to those that still run after `grace` seconds."""
    end, number = time.monotonic() + grace, int(signal.SIGTERM)
    while left := processes & _parents().keys():
        if time.monotonic() > end:
            number = signal.SIGKILL
        for pid, _ in left if number else ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        number = 0
        time.sleep(0.02)


def send(number: int, job: str, groups: Iterable[int] = ()) -> bool:
    """Send a signal to the processes of a job, and to its process groups; return True if there were any."""
    there = False
    for call, targets in ((os.killpg, groups), (os.kill, members(job))):
        for target in targets:
            with suppress(ProcessLookupError, PermissionError):
                call(target, number)
                there = True
    return there


def sweep(job: str, groups: Iterable[int] = (), grace: float = GRACE) -> None:
    """Send SIGTERM to all processes of a job, and SIGKILL to those that still run after `grace` seconds."""
    groups, end = list(groups), time.monotonic() + grace
    there = send(signal.SIGTERM, job, groups)
    while there and time.monotonic() < end:
        time.sleep(0.02)
        there = send(0, job, groups)
    for _ in range(100):                            # a process may start others during the listing
        if not there or not send(signal.SIGKILL, job, groups):
            break
        time.sleep(0.02)


def main() -> None:
    """Read the job, its folder, and lines +pid and -pid of process groups that begin and end.

    At the end of the input, end the remaining processes and remove the folder, unless the last line was "done".
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    groups: set[int] = set()
    job, folder, done = sys.stdin.readline().strip(), sys.stdin.readline().rstrip("\n"), False
    for line in sys.stdin:
        done = line == "done\n"
        if not done:
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    sweep(job, groups)
    if folder and not done:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
