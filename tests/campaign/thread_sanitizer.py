"""The compiled kernels under ThreadSanitizer: `python tests/campaign/thread_sanitizer.py`.

It builds them with -fsanitize=thread and runs itself with them.

Several threads of Python call kernels of all kinds at once, while another changes how many threads there are, and
memory comes and goes. It reports each access to the same memory that no lock or atomic orders, and fails if there is
one in a file of ours. NumPy, OpenBLAS and Python are not
built so: what they do with their own memory is not looked at.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("SECONDS", "20"))


def library(name: str) -> str | None:
    found = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True,
                           check=True).stdout.strip()
    return found if os.path.isabs(found) else None


def main() -> int:
    runtime = library("libtsan.so")
    if runtime is None:
        print("the compiler has no ThreadSanitizer")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "native/build.py", folder, "only=AVX2", "-fsanitize=thread", "-g", "-O1"],
                       cwd=ROOT, check=True)
        log = Path(folder, "log")
        environment = {**os.environ, "LD_PRELOAD": runtime, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'common'}",
                       "OPENBLAS_NUM_THREADS": "1",
                       "SANITIZED_KERNELS": str(next(Path(folder).glob("*.so"))),
                       "TSAN_OPTIONS": f"log_path={log} exitcode=0 history_size=4"}
        ran = subprocess.run(["setarch", "-R", sys.executable, __file__, "work"], cwd=ROOT, env=environment)
        reports = [report for path in Path(folder).glob("log.*")
                   for report in path.read_text().split("==================") if "WARNING" in report]
    ours = [report for report in reports if "_compiled" in report or "/native/" in report]
    print(*ours[:5], sep="\n")
    print(f"{len(ours)} reports in files of ours, of {len(reports)}")
    return ran.returncode or bool(ours)


def work() -> None:
    import sanitized  # noqa: F401 (the kernels)

    import tensorgrad as torch
    from tensorgrad.compiler.executable import build
    from tensorgrad.graph import lower
    from tensorgrad.runtime.native import empty_memory, native
    assert native is not None
    functional, stop, errors = torch.nn.functional, threading.Event(), []
    x, image, kernel = torch.randn(60, 400), torch.randn(6, 8, 24, 24), torch.randn(8, 8, 3, 3)
    lstm = torch.nn.LSTM(32, 64)
    net = torch.nn.Sequential(torch.nn.Conv2d(8, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(7744, 90))
    with torch.no_grad():
        compiled = build(lower(net.eval(), image))

    def step(draw: torch.Generator) -> None:
        a, b = (torch.randn(130, 170, generator=draw, requires_grad=True),
                torch.randn(170, 190, generator=draw, requires_grad=True))
        (a @ b).exp().mean().backward()
        w = kernel.clone().requires_grad_()
        (functional.conv2d(image, w, padding=1).relu().square().sum()
         + functional.max_pool2d(image * w.sum(), 3, 2).sum()).backward()
        y = x.clone().requires_grad_()
        (functional.layer_norm(y, (400,)).softmax(1).log().sum()
         + functional.cross_entropy(y, torch.arange(60))).backward()
        q = torch.randn(2, 4, 40, 16, requires_grad=True)
        functional.scaled_dot_product_attention(q, q, q).sum().backward()
        lstm(torch.randn(8, 16, 32))[0].sum().backward()
        optimizer = torch.optim.Adam([a, b])
        optimizer.step()
        torch.linalg.svdvals(torch.randn(30, 30))
        compiled([image.numpy()])

    def until_the_end(task: object) -> None:
        try:
            while not stop.wait(0.001):
                task()      # type: ignore[operator]
        except BaseException as error:
            errors.append(error)

    counts = iter(range(1 << 30))

    def others() -> None:
        torch.set_num_threads(next(counts) % 4 + 1)
        empty_memory()

    threads = [threading.Thread(target=until_the_end, args=(task,))
               for task in [*(lambda i=i: step(torch.Generator().manual_seed(i)) for i in range(3)), others]]
    for thread in threads:
        thread.start()
    stop.wait(SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


if __name__ == "__main__":
    sys.exit(work() if sys.argv[1:] == ["work"] else main())
