"""Calls under less memory than they ask for: each ends in its result or in a clean error, never in a crash.

    python -m tests.campaign.low_memory [--seed 0] [--rounds 2] [--only matmul lstm]

Each case runs alone in a fresh process, which imports the package, then may map so many bytes more (RLIMIT_AS) and runs
the case there. The limits grow from what the case surely lacks to what it needs. It prints, by case, calls that
succeeded, clean errors, other errors and crashes; the exit status is 1 if there was a crash, a hang, another error, or
an input that an error changed.
"""
from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
from collections import Counter

MEGABYTE = 1 << 20
SECONDS = 60
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CASES = {
    # what is made before the limit, and what is called under it
    "matmul": ("a, b = randn(n, n), randn(n, n)", "a @ b"),
    "matmul backward": ("a, b = leaf(n, n), leaf(n, n)", "(a @ b).sum().backward()"),
    "batched matmul": ("a, b = randn(8, n, n // 4), randn(8, n // 4, n)", "torch.bmm(a, b)"),
    "linear": ("x, w, b = leaf(n, n), leaf(n, n), leaf(n)", "F.linear(x, w, b).sum().backward()"),
    "attention": ("q, k, v = leaf(2, 4, n, 32), leaf(2, 4, n, 32), leaf(2, 4, n, 32)",
                  "F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()"),
    "layer_norm": ("x, w, b = leaf(n, n), leaf(n), leaf(n)", "F.layer_norm(x, (n,), w, b).square().sum().backward()"),
    "rms_norm": ("x, w = leaf(n, n), leaf(n)", "F.rms_norm(x, (n,), w).square().sum().backward()"),
    "group_norm": ("x, w = leaf(8, 32, n // 4, 16), leaf(32)", "F.group_norm(x, 8, w, w).square().sum().backward()"),
    "batch_norm": ("x, w = leaf(8, 32, n // 4, 16), leaf(32)",
                   "F.batch_norm(x, None, None, w, w, True).square().sum().backward()"),
    "sum": ("x = randn(n, n)", "x.sum(0), x.T.sum(1), x.sum()"),
    "sum backward": ("x = leaf(n, n)", "(x.sum(0) * x.sum(1).mean()).sum().backward()"),
    "mean of a transposed": ("x = randn(n, 3, n).permute(2, 1, 0)", "x.mean((0, 2)), x.var(1)"),
    "softmax": ("x = leaf(n, n)", "x.softmax(-1).square().sum().backward()"),
    "log_softmax along the first axis": ("x = leaf(n, n)", "x.log_softmax(0).square().sum().backward()"),
    "cross_entropy": ("x, t = leaf(n, n), torch.randint(n, (n,))", "F.cross_entropy(x, t).backward()"),
    "lstm": ("m, x = torch.nn.LSTM(n // 4, n // 4), leaf(16, 8, n // 4)", "m(x)[0].sum().backward()"),
    "gru": ("m, x = torch.nn.GRU(n // 4, n // 4), leaf(16, 8, n // 4)", "m(x)[0].sum().backward()"),
    "conv": ("x, w = leaf(2, 16, n // 4, n // 4), leaf(16, 16, 3, 3)", "F.conv2d(x, w, padding=1).sum().backward()"),
    "strided conv": ("x, w = leaf(2, 16, n // 4, n // 4), leaf(32, 16, 3, 3)",
                     "F.conv2d(x, w, stride=2, padding=1).sum().backward()"),
    "dilated conv": ("x, w = leaf(2, 16, n // 4, n // 4), leaf(16, 16, 3, 3)",
                     "F.conv2d(x, w, dilation=2).sum().backward()"),
    "depthwise conv": ("x, w = leaf(2, 32, n // 4, n // 4), leaf(32, 1, 3, 3)",
                       "F.conv2d(x, w, groups=32).sum().backward()"),
    "conv1d": ("x, w = leaf(4, 32, n), leaf(32, 32, 5)", "F.conv1d(x, w).sum().backward()"),
    "conv_transpose": ("x, w = leaf(2, 16, n // 8, n // 8), leaf(16, 16, 4, 4)",
                       "F.conv_transpose2d(x, w, stride=2).sum().backward()"),
    "max_pool": ("x = leaf(2, 16, n // 2, n // 2)", "F.max_pool2d(x, 3, 2).sum().backward()"),
    "avg_pool": ("x = leaf(2, 16, n // 2, n // 2)", "F.avg_pool2d(x, 3, 2).sum().backward()"),
    "interpolate": ("x = leaf(2, 4, n // 4, n // 4)",
                    "F.interpolate(x, scale_factor=2.0, mode='bilinear').sum().backward()"),
    "gelu": ("x = leaf(n, n)", "F.gelu(x).sum().backward()"),
    "dropout": ("x = leaf(n, n)", "F.dropout(x, 0.5).sum().backward()"),
    "embedding": ("w, i = leaf(n, 64), torch.randint(n, (n * 4,))", "F.embedding(i, w).sum().backward()"),
    "gather": ("x, i = leaf(n, n), torch.randint(n, (n, n))", "x.gather(1, i).sum().backward()"),
    "index_add": ("x, i = leaf(n, n), torch.randint(n, (n,))", "torch.zeros(n, n).index_add(0, i, x).sum().backward()"),
    "sort": ("x = leaf(n, n)", "x.sort(-1)[0].sum().backward()"),
    "topk": ("x = leaf(n, n)", "x.topk(8)[0].sum().backward()"),
    "cumsum": ("x = leaf(n, n)", "x.cumsum(0).sum().backward()"),
    "cat": ("x = leaf(n, n)", "torch.cat([x, x.T]).sum().backward()"),
    "where": ("x = leaf(n, n)", "torch.where(x > 0, x, x * 2).sum().backward()"),
    "broadcasting": ("x, y = leaf(n, 1), leaf(1, n)", "(x * y + x).exp().sum().backward()"),
    "randn": ("torch.rand(1)", "torch.randn(n, n), torch.rand(n, n), torch.randperm(n * n)"),
    "copies": ("x = randn(n, n)", "x.T.contiguous(), x.double(), x.flip(0), x.repeat(2, 2)"),
    "solve": ("x = randn(n // 2, n // 2)", "torch.linalg.solve(x, x), torch.linalg.qr(x), torch.linalg.svd(x)"),
    "fft": ("x = leaf(n, n); torch.fft.fft2(torch.ones(2, 2))", "torch.fft.fft2(x).abs().sum().backward()"),
    "einsum": ("x, y = leaf(8, n, n // 8), leaf(8, n // 8, n)", "torch.einsum('bij,bjk->bik', x, y).sum().backward()"),
    "Adam": ("p = leaf(n, n); p.grad = randn(n, n); o = torch.optim.Adam([p], amsgrad=True)", "o.step()"),
    "SGD": ("p = leaf(n, n); p.grad = randn(n, n); o = torch.optim.SGD([p], 0.1, momentum=0.9)", "o.step()"),
    "clip_grad_norm_": ("p = leaf(n, n); p.grad = randn(n, n)", "torch.nn.utils.clip_grad_norm_([p], 1.0)"),
    "in place": ("x, y = randn(n, n), randn(n, 1)", "x.mul_(y).add_(x.T.clone()).clamp_(-1, 1)"),
    "save and load": ("import io; x, f = randn(n, n), io.BytesIO()", "torch.save(x, f), f.seek(0), torch.load(f)"),
}
PROGRAM = """
import resource, sys, zlib
import tensorgrad as torch
F, n, extra = torch.nn.functional, {n}, {extra}
torch.manual_seed({seed})
def randn(*size): return torch.randn(*size)
def leaf(*size): return torch.randn(*size).requires_grad_()
{before}
def inputs(): return {{k: zlib.crc32(v.detach().numpy().tobytes()) for k, v in globals().items() if type(v) is torch.Tensor and k != "kept"}}
kept = inputs() if {watched} else None
with open("/proc/self/statm") as statm: now = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + extra, resource.RLIM_INFINITY))
try:
    {call}
    outcome = "result"
except MemoryError as error:
    outcome = "clean" if isinstance(error, RuntimeError) and "can't allocate memory" in str(error) else "other: " + type(error).__name__ + ": " + str(error)
except Exception as error:
    outcome = "other: " + type(error).__name__ + ": " + str(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if outcome == "clean" and kept is not None and kept != inputs(): outcome = "changed"
print(outcome.splitlines()[0][:200])
"""  # noqa: E501
# several writes, of which the first may be done when the next has no room
CHANGING = {"in place", "Adam", "SGD", "clip_grad_norm_"}


def outcome(case: str, n: int, extra: int, seed: int) -> str:
    """How one case ends under one limit: result, clean, changed, other: …, crash …, or hang."""
    before, call = CASES[case]
    code = PROGRAM.format(n=n, extra=extra, seed=seed, before=before, call=call, watched=case not in CHANGING)
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, cwd=ROOT,
                              env={**os.environ, "PYTHONPATH": ROOT, "OMP_NUM_THREADS": "2"})
    except subprocess.TimeoutExpired:
        return "hang"
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 and done.stdout.strip() else \
        f"crash {done.returncode}: {' '.join(done.stderr.strip().splitlines()[-1:])}"


def limits(chance: random.Random, rounds: int) -> list[int]:
    """So many bytes more than the process has: from next to nothing to enough for most."""
    return [int(2 ** chance.uniform(low, low + 1)) for _ in range(rounds) for low in range(16, 27, 2)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], choices=sorted(CASES), metavar="CASE")
    given = parser.parse_args()
    chance, total, bad = random.Random(given.seed), Counter(), []
    print(f"{'case':<34}{'results':>9}{'clean':>8}{'other':>8}{'changed':>9}{'crashes':>9}")
    for case in given.only or CASES:
        counts: Counter[str] = Counter()
        for extra in limits(chance, given.rounds):
            n = chance.choice((256, 512, 1024))
            found = outcome(case, n, extra, seed := chance.randrange(1 << 30))
            counts[kind := found.partition(":")[0].split()[0]] += 1
            if kind not in ("result", "clean"):
                bad.append(f"{case}: n={n}, {extra / MEGABYTE:.1f} MB, seed {seed}: {found}")
        total.update(counts)
        print(f"{case:<34}{counts['result']:>9}{counts['clean']:>8}{counts['other']:>8}{counts['changed']:>9}"
              f"{counts['crash'] + counts['hang']:>9}", flush=True)
    print(f"{'all':<34}{total['result']:>9}{total['clean']:>8}{total['other']:>8}{total['changed']:>9}"
          f"{total['crash'] + total['hang']:>9}")
    print(*bad, sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    if not hasattr(resource, "RLIMIT_AS") or not os.path.exists("/proc/self/statm"):
        sys.exit("this needs a limit of memory that the system keeps (Linux)")
    sys.exit(main())
