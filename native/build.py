"""Compile the kernels: `python native/build.py FOLDER [only=AVX2] [FLAG …]`. Needs a C compiler (CC, or cc) and
Python's headers; hatch_build.py calls it
on install. `only` is for tests: it leaves the other instruction sets out. TENSORGRAD_DEBUG=1 compiles assertions in,
    and `fail_allocation` (debug.h)."""
from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import rows  # noqa: E402

# NaN and infinity mean what they mean: nothing here lets the compiler assume otherwise. Traps and errno are what nobody
#     looks at.
FLAGS = ["-std=gnu11", "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fPIC", "-fvisibility=hidden",
         "-ffunction-sections", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fopenmp-simd",
         "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-unused-function"]
BASELINE = {"baseline": ("baseline", [])}
# On Linux a thread's variables come with its stack, so that a thread that has begun cannot lack the memory for them.
OF_THREADS = ["-ftls-model=initial-exec"] if sys.platform == "linux" else []
DEBUG = ["-DTENSORGRAD_DEBUG", "-g", "-O1"]
X86 = {"AVX-512": ("avx512", ["-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma",
                              "-mprefer-vector-width=512"]),
       "AVX2": ("avx2", ["-mavx2", "-mfma"])}


def build(folder: Path, extra: list[str] | None = None, only: str | None = None) -> Path:
    """The module `_compiled` in a folder, for all instruction sets or only one.

    Raises OSError or CalledProcessError where that cannot be done.
    """
    debug = DEBUG if os.environ.get("TENSORGRAD_DEBUG", "0") not in ("", "0") else []
    compiler = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, *OF_THREADS, *debug, *(extra or []),
                *shlex.split(os.environ.get("CFLAGS", ""))]
    sets = BASELINE | (X86 if platform.machine() in ("x86_64", "AMD64") else {})
    if only is not None:
        sets = {only: sets[only]}
    target = folder / "_compiled.abi3.so"
    with tempfile.TemporaryDirectory() as scratch:
        rows.write(Path(scratch))
        compiler.append(f"-I{scratch}")
        jobs = {f"{name}.o": [*flags, f"-DISA={name}", "kernels.c"] for name, flags in sets.values()}
        about = [f"-I{sysconfig.get_paths()['include']}", *(f"-DHAS_{name}" for name, _ in sets.values())]
        apart = ("check", "memory", "numpy_state", "ufuncs", "fast_path", "backward", "optimizers", "loop", "program",
                 "guards", "module")
        jobs |= {"pool.o": ["pool.c"], **{f"{name}.o": [*about, f"{name}.c"] for name in apart}}
        running = [subprocess.Popen([*compiler, "-c", *arguments, "-o", f"{scratch}/{out}"], cwd=HERE)
                   for out, arguments in jobs.items()]
        for process in running:
            if process.wait():
                raise subprocess.CalledProcessError(process.returncode, process.args)
        shared = (["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin"
                  else ["-shared", "-Wl,--gc-sections"])
        shared += [] if extra or debug or sys.platform == "darwin" else ["-Wl,--strip-all"]
        subprocess.run([*compiler, *shared, *(f"{scratch}/{out}" for out in jobs), "-o", f"{scratch}/module.so",
                        "-lpthread", "-lm"], check=True)
        # in one move: a process that has the old module loaded keeps it
        folder.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")
        partial.write_bytes(Path(scratch, "module.so").read_bytes())
        os.replace(partial, target)
    return target


if __name__ == "__main__":
    target, *flags = sys.argv[1:]
    alone = flags.pop(0).removeprefix("only=") if flags and flags[0].startswith("only=") else None
    print(build(Path(target), flags, alone))
