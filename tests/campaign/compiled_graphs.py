"""Random programs and all samples of ops, compiled and eager: results must be equal, or within rounding.

    python tests/campaign/compiled_graphs.py --programs 2000 --jobs 2
    python tests/campaign/compiled_graphs.py --programs 2000 --kernels numpy

Each program (tests/common/random_graphs.py) runs on two inputs, another batch, from two threads, and after changes of
its parameters. Then each sample of each op is a program of its own. A difference, a crash or a hang is printed as the
shortest program found that does it; `--replay FILE` runs such a one. `--show SEED` prints a program. The seed decides
all programs.
"""
import argparse
import os
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "common"), str(Path(__file__).parent)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0, help="of each call; one or two by turns without it")
    parser.add_argument("--kernels", choices=["compiled", "numpy"], default="compiled")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no program begins")
    parser.add_argument("--sizes", action="store_true", help="programs that read sizes, at many (sized_programs.py)")
    parser.add_argument("--no-samples", action="store_true", help="random programs alone")
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--show", type=int, metavar="SEED")
    return parser.parse_args()


def main():
    given = arguments()
    os.environ["TENSORGRAD_KERNELS"] = "numpy" if given.kernels == "numpy" else ""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    import random_graphs
    import sized_programs
    import workers
    from compiled_and_eager import check, names

    import tensorgrad as tg
    if given.sizes:
        random_graphs, names, check, given.no_samples = sized_programs, sized_programs.names, sized_programs.check, True
    if given.show is not None:
        print(random_graphs.program(given.show))
        return 0
    if given.replay:
        exec(compile(Path(given.replay).read_text(), given.replay, "exec"), names())
        return 0

    def prepared():
        warnings.simplefilter("ignore")
        tg.set_num_threads(given.threads or 1 + os.getpid() % 2)
    samples = [] if given.no_samples else random_graphs.sampled()
    count = given.programs + len(samples)

    def program(number):
        return (random_graphs.program(given.seed << 32 | number) if number < given.programs
                else samples[number - given.programs])
    campaign = workers.Campaign(program, names(), prepared, check, given.jobs, patience=60)
    return 0 if workers.report(f"compiled graphs, {given.kernels}", campaign.run(count, given.seconds)) else 1


if __name__ == "__main__":
    sys.exit(main())
