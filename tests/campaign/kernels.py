"""Calls of the compiled kernels at random, by hundreds of thousands: none may end the process, or go beyond its memory.

    python tests/campaign/kernels.py --level public --calls 1000000 --jobs 2 --sanitizers

public: functions and modules of the package, well formed and not, with first and second gradients, and tensors changed
    between them.
direct: the functions of the compiled module themselves, with any arguments.
memory: public calls in which the n-th request for memory fails: they raise MemoryError, or give what they give with
    enough of it.

A crash, a hang or an exception that is none of PyTorch's is printed as the shortest program found that does it;
`--replay PROGRAM` runs such a one. `--sanitizers` compiles the kernels with AddressSanitizer and UBSan (Linux);
`memory` compiles them with TENSORGRAD_DEBUG=1. The seed decides all calls.
"""
import argparse
import functools
import os
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "common"), str(Path(__file__).parent)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--level", choices=["public", "direct", "memory"], default="public")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no call begins")
    parser.add_argument("--sanitizers", action="store_true")
    parser.add_argument("--replay", metavar="PROGRAM")
    return parser.parse_args()


def prepared():
    """Prepare a worker: half of them compute with two threads."""
    import tensorgrad as tg
    warnings.simplefilter("ignore")
    tg.set_num_threads(1 + os.getpid() % 2)


def main():
    given = arguments()
    import sanitized
    if os.environ.get("SANITIZED_KERNELS") is None and (given.sanitizers or given.level == "memory"):
        return sanitized.again(debug=given.level == "memory", sanitizers=given.sanitizers)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    import public_calls
    import values
    import workers
    names = {name: getattr(values, name) for name in values.__all__}
    if given.replay:
        warnings.simplefilter("ignore")
        exec(given.replay, names)
        return 0
    check, isolated, patience = workers.run, lambda text: False, workers.SECONDS
    if given.level == "direct":
        import native_calls
        names |= native_calls.names()
        program, isolated = native_calls.program, native_calls.changes_the_process
    else:
        program = public_calls.program
    if given.level == "memory":
        import short_memory
        program, check, patience = (functools.partial(program, large=0.4), short_memory.run,
                                    workers.SECONDS * short_memory.RUNS)
    campaign = workers.Campaign(lambda number: program(given.seed << 32 | number), names, prepared, check, given.jobs,
                                isolated, patience)
    return 0 if workers.report(f"kernels, {given.level}", campaign.run(given.calls, given.seconds)) else 1


if __name__ == "__main__":
    sys.exit(main())
