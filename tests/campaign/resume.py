"""Training runs that are killed at random, and must end to the bit as one that nobody kills: python
tests/campaign/resume.py --kills 200 --seed 1

Each run of a program of tests/experiment/killed starts anew until it finishes. Its processes are killed by SIGKILL
after a random number of steps and a random while, before their first step, or before and after a call that writes a
checkpoint to the disk. The exit status is 1 if a run ended otherwise, or not at all; its kills are shown.
"""
import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "common")]

import killing  # noqa: E402

KILLED = ROOT / "tests" / "experiment" / "killed"
# A program, and what it is given after its directory.
RUNS = [("loop.py", workers, every) for workers in (0, 2) for every in (1, 2, 5)]
RUNS += [("fit.py", kind, workers) for kind in ("classifier", "gan") for workers in (0, 2)]


def attempt(run, kills=()):
    """How a run ends."""
    with tempfile.TemporaryDirectory() as folder:
        return killing.finish(KILLED / run[0], Path(folder) / "run", *run[1:], kills=kills, fresh=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began, chance, expected = time.monotonic(), random.Random(given.seed), {}
    killed = in_saves = runs = failed = 0
    while killed < given.kills:
        run = RUNS[runs % len(RUNS)]
        if run not in expected:
            expected[run] = attempt(run).digest
        kills = killing.moments(chance.random(), chance.randint(1, 8), 4)
        runs += 1
        try:
            ended = attempt(run, kills)
            wrong = None if ended.digest == expected[run] else "ended with another state"
        except AssertionError as error:
            ended, wrong = None, str(error)
        if wrong:
            failed += 1
            print(f"{run}: {wrong}\n    {kills}", flush=True)
        else:
            killed += ended.killed
            in_saves += sum(kill.call is not None for kill in kills[:ended.killed])
        if failed >= 10:
            break
    print(f"resume: {killed} kills, {in_saves} of them in saves, {runs} runs, {failed} ended otherwise, "
          f"{time.monotonic() - began:.0f} s")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
