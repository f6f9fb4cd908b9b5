"""A plugin for pytest, `-p sanitized`: the package takes its compiled kernels from the file that SANITIZED_KERNELS
names. And how such a file is made.
"""
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNEL_TESTS = [*map(str, sorted((ROOT / "tests" / "kernels").glob("test_compiled_*.py"))),
                "tests/compiler/test_blocked.py"]
LIBRARIES = [f"lib{name}.so" for name in ("asan", "ubsan")]
INSTRUCTIONS = "AVX2" if platform.machine() in ("x86_64", "AMD64") else "baseline"
# Not: reading a vector from where its type would not lie, which is meant; and what AddressSanitizer sees in any case,
#     and takes half the time to compile.
FLAGS = ["-g1", "-O1", "-fsanitize=address,undefined", "-fno-sanitize=alignment,object-size,null,pointer-overflow",
         "-fno-sanitize-recover=undefined"]

if path := os.environ.get("SANITIZED_KERNELS"):
    spec = importlib.util.spec_from_file_location("tensorgrad._compiled", path)
    sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])


def libraries(names=LIBRARIES):
    """Those that the compiler has, to be loaded before all others."""
    found = [subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
             for name in names]
    return [path for path in found if os.path.isabs(path)]


def build(folder, flags=FLAGS, debug=False, only=INSTRUCTIONS):
    """The kernels in a folder, for one set of instructions, with these flags; and the environment of a process that
    uses them.
    """
    subprocess.run([sys.executable, ROOT / "native" / "build.py", folder, f"only={only}", *flags], check=True,
                   capture_output=True,
                   env=os.environ | {"TENSORGRAD_DEBUG": str(int(debug))})
    found = {"SANITIZED_KERNELS": str(Path(folder, "_compiled.abi3.so"))}
    if flags:           # arrays from malloc, Python's objects as well, so that each has its own borders
        found |= {"LD_PRELOAD": " ".join(libraries()), "TENSORGRAD_MEMORY": "system", "PYTHONMALLOC": "malloc",
                  "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024:detect_stack_use_after_return=0"}  # noqa: E501
    return found


def again(debug=False, sanitizers=True):
    """Run this program once more, with kernels made for it; how it ends."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([sys.executable, *sys.argv],
                              env=os.environ | build(folder, FLAGS if sanitizers else (), debug)).returncode
