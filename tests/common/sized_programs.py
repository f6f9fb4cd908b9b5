"""Random functions that read sizes: comparisons, arithmetic, loops, tables, texts, and tensors made by them.

`program(seed)` is the text of one, which ends with a call of `compare_sizes`: the function and its compiled form must
agree at many sizes, errors included.
"""
from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

import tensorgrad as torch
from tensorgrad.utils._pytree import tree_flatten

ATOMS = ["x.shape[0]", "x.size(1)", "x.numel()", "y.shape[-1]", "h.shape[0]", "h.shape[1]", "len(x.shape)",
         "h.size(-1)", "x.shape.numel()", "2", "3", "5"]
NUMBERS = ["({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} // {k})", "({a} % {k})", "min({a}, {b})", "max({a}, {b})",
           "(-{a} % 8)", "abs({a} - {b})", "({a} // 2 + {a} % 2)", "sum([{a}, {b}])", "divmod({a}, {k})[1]",
           "(({a} + {k} - 1) // {k})", "({a} << 1)", "({a} & 3)", "round({a} / {k})", "math.ceil({a} / {k})",
           "math.prod((2, {a}))", "(lambda n: n + 1)({a})", "helper({a})"]
CONDITIONS = ["{a} == {b}", "{a} < {b}", "{a} >= {k}", "{a} % {k} == 1", "{a} in (2, 4, {k})", "1 < {a} < 9",
              "{a} != {b} and {a} > 2", "not {a} % 2", "({a} == 3) or ({b} > 4)", "x.shape == y.shape",
              "{a} * 2 == {b} + {k}", "bool({a} - {k})", "str({a}) == '4'", "{a} in {{2, 5}}",
              "all(n > 2 for n in x.shape)",
              "x.shape[0] == h.shape[0] == {k}", "range({k} + 2)[-1] == {a}", "isinstance({a}, int) and {a} > {k}"]
STEPS = [
    "h = h * 0.5 if {c} else h + 1", "if {c}:\n        h = h.flip(0)", "h = h / {a}", "h = h + {a}", "h = {a} - h",
    "h = h * (1 / ({a} + 1))", "h = h * ({a} + 1) ** -0.5", "h = h / math.sqrt({a} * {a} + 1)", "h = h.reshape(-1)",
    "h = h.view(h.shape[0], -1)", "h = F.pad(h, (0, -h.shape[1] % 4))", "h = torch.cat([h, h.flip(0)], 0)",
    "h = h[:, :max(1, h.shape[1] // 2)]", "h = h[h.shape[0] // 2:]", "h = h + torch.arange(h.shape[1])",
    "h = h * (torch.arange(h.shape[0])[:, None] < {a})", "h = h.topk(h.shape[1] // 2 + 1, 1)[0]", "h = h.cumsum(0)",
    "h = sum(h[:, i] for i in range(h.shape[1]))", "h = torch.stack([row * i for i, row in enumerate(h)])",
    "h = h @ h.T",
    "h = torch.tril(torch.ones(h.shape[0], h.shape[0])) @ h",
    "h = h.masked_fill(torch.ones_like(h).triu(1) > 0, {a})", "h = torch.cat(h.split(max(1, h.shape[0] // 2)), 1)[:2]"
    " if h.shape[0] % 2 == 0 else h", "h = torch.stack([each.sum() for each in h.chunk(3)])",
    "h = h * [0.5, 1.5, 2.5][{a} % 3]", "h = h + int(h.shape[0] * 0.5)", "h = h + round({a} / 2)",
    "h = h + torch.full((h.shape[1],), 1 / h.shape[1])", "h = torch.cat([h, h.new_zeros(h.shape[0], 2)], 1)",
    "h = h + {{2: 1, 3: 2}}.get({a}, 0)", "h = h - h.mean(0, keepdim=True)", "h = F.softmax(h, -1)",
    "h = h[:, h.shape[1] // 2]", "h = h.repeat({a} % 2 + 1, 1)", "h = h * torch.linspace(0, 1, h.shape[1])",
    "h = F.max_pool1d(h[None], 2, ceil_mode=True)[0] if h.shape[1] > 1 else h",
    "h = h.sum(1, keepdim=True).expand(-1, 3)",
    "h = F.avg_pool1d(h[None], 3, 2, padding=1, ceil_mode=True)[0] if h.shape[1] > 2 else h",
    "h = F.interpolate(h[None, None], size=(h.shape[0] + 1, h.shape[1] * 2))[0, 0]",
    "h = F.layer_norm(h + torch.arange(h.shape[1]), h.shape[1:])",
    "h = F.interpolate(h[None, None], scale_factor=2, mode='bilinear')[0, 0]", "h = torch.einsum('ij,kj->ik', h, h)",
    "h = h + torch.eye(h.shape[0], h.shape[1])", "h = F.one_hot(torch.arange(h.shape[0]), h.shape[0] + 1) * 1.",
    "h = h.unfold(1, 2, 1).flatten(1) if h.shape[1] > 2 else h", "h = torch.zeros(h.shape).add_(h)",
    "h = h.T.contiguous()",
    "out = torch.zeros(h.shape[0] + 1, h.shape[1])\n    out[1:] = h\n    h = out", "h = h.clone()\n    h[:, 0] = {a}",
    "for k in range(min(3, h.shape[0])):\n        h = h + h[k]",
    "h = torch.cat([h[:, k:k + 1] for k in (0, 1, 2) if k < h.shape[1]], 1)",
    "h = (h.roll(h.shape[0] // 2, 0) if {c} else h.roll(1, 1))", "h = h.squeeze()", "h = h.flatten()", "h = h.std(0)",
    "h = F.conv1d(h[:, None], torch.ones(2, 1, 2) * 0.3).flatten(1) if h.shape[1] > 1 else h", "h = h.transpose(0, 1)",
    "h = h * len(h)", "h = h.norm(dim=-1)", "h = torch.outer(h[:, 0], h[0])",
    "h = h.view(-1, 1) + y.view(1, -1)[:, :3]",
    "h = F.adaptive_avg_pool1d(h[None], 2)[0]", "h = h.unflatten(0, (1, -1))[0]",
    "h = h.narrow(0, 0, (h.shape[0] + 1) // 2)",
    "h = h + (x.shape[0] if {c} else x.shape[1])", "h = h.index_select(0, torch.tensor([0, h.shape[0] - 1]))",
    "h = torch.diag(h[0])", "h = h.sort(0)[0]", "h = h + torch.tensor({a})", "h = h.var(unbiased=False) + h",
    "h = torch.block_diag(h, h)", "h = h.expand(2, *h.shape)[1]", "h = h.reshape(*h.shape[::-1])",
    "h = h.tile(({a} % 2 + 1,))",
]
AS_MATRIX = "    h = h.reshape(h.shape[0], -1) if h.ndim > 1 else h.reshape(1, -1)"
STEPS += ["h = h + torch.full((h.shape[1],), {a})", "h = torch.full((2, 2), {a}) * 1",
          "h = ((h * 0).long() + {a}).float()",
          "h = torch.where(h > 0, {a}, 0) + h", "h = h.clamp({a} - 3, {a} + 2)", "h = torch.arange({a}, {a} + 3)",
          "h = (h * 0 + 7).long() // ({a} + 20)", "h = h.clone().fill_({a})", "h = torch.full_like(h, {a} / 2)",
          "h = h.float() % 5"]
RESULTS = ["return h", "return h, h.shape[0]", "return {{'h': h, 'n': {a}}}", "return [h, {a} / 2, h.shape]",
           "return h.sum(), {c}",
           "return torch.full((2,), {a}), (h * 0).long() + {a}, h.half() * {a}, torch.arange({a} % 4 + 1)"]


def expression(rng: random.Random, depth: int = 2) -> str:
    """Return an expression of sizes."""
    if not depth or rng.random() < 0.4:
        return rng.choice(ATOMS)
    numbers = {"a": expression(rng, depth - 1), "b": expression(rng, depth - 1), "k": rng.choice([2, 3, 4])}
    return rng.choice(NUMBERS).format(**numbers)


def filled(rng: random.Random, text: str) -> str:
    condition = rng.choice(CONDITIONS).format(a=expression(rng), b=expression(rng, 1), k=rng.choice([2, 3, 4]))
    return text.format(a=expression(rng), c=condition)


def program(seed: int) -> str:
    """Return the text of a program."""
    rng = random.Random(seed)
    lines = ["def helper(n):", "    return n + 1 if n % 2 else n // 2", "", "", "def run(x, y):", "    h = x * 1.25"]
    for _ in range(rng.randint(1, 6)):
        lines += [f"    {filled(rng, rng.choice(STEPS))}", AS_MATRIX]
    lines += [f"    {filled(rng, rng.choice(RESULTS))}", "", "", f"compare_sizes(run, {seed})"]
    return "\n".join(lines) + "\n"


class Differs(Exception):
    """A compiled function does something else than the function."""


def outcome(run: Any, inputs: Any) -> Any:
    """Return (leaves of the result, how they are nested), or the class of the error."""
    try:
        with np.errstate(all="ignore"):
            return tree_flatten(run(*inputs))
    except Exception as error:
        return type(error)


def compare_sizes(run: Any, seed: int, count: int = 9) -> Any:
    """Compare a function and its compiled form at several sizes, each twice, and return the latter."""
    rng = random.Random(seed)
    compiled = torch.compile(run, dynamic=rng.choice([True, True, None]))
    torch.manual_seed(seed & 0xffff)
    for _ in range(count):
        n, m, k = (rng.choice([1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 12]) for _ in range(3))
        shapes = [(n, m), (n, m) if rng.random() < 0.3 else (n, k)]
        for _ in range(2):
            inputs = [torch.randn(*shape) for shape in shapes]
            if rng.random() < 0.2:
                inputs[0] = torch.randn(*shapes[0][::-1]).T
            with torch.no_grad():
                want, got = outcome(run, inputs), outcome(compiled, inputs)
            agree(got, want, [tuple(each.shape) for each in inputs])
    return compiled


def agree(got: Any, want: Any, where: Any) -> None:
    """Raise Differs unless two outcomes agree."""
    if isinstance(want, type) or isinstance(got, type):
        if got is not want:
            raise Differs(f"{where}: {got}, not {want}")
        return
    if got[1] != want[1]:
        raise Differs(f"{where}: nested as {got[1]}, not {want[1]}")
    for a, b in zip(got[0], want[0], strict=True):
        if not isinstance(b, torch.Tensor):
            if type(a) is not type(b) or a != b:
                raise Differs(f"{where}: {a!r} of {type(a)}, not {b!r} of {type(b)}")
        elif a.shape != b.shape or a.dtype != b.dtype or any(type(size) is not int for size in a.shape):
            raise Differs(f"{where}: {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}")
        elif a.numel() and not close(a.numpy(), b.numpy()):
            raise Differs(f"{where}: {a}, not {b}")


def close(a: Any, b: Any) -> bool:
    """Return True if arrays agree within rounding."""
    finite = np.isfinite(b)
    scale = np.abs(b[finite].astype(complex)).max(initial=0) if b.dtype.kind in "fc" else 0
    step = 2e-5 if b.dtype.itemsize > 2 else 4e-3
    with np.errstate(all="ignore"):
        return bool(np.array_equal(np.isfinite(a), finite)
                    and (np.abs(a[finite].astype(complex) - b[finite]) <= step * scale + 1e-4).all())


def check(text: str, given: dict[str, Any]) -> tuple[str | None, bool]:
    """Run the text of a program, as `workers.Campaign` asks: return why it is a finding, and True if it raised."""
    try:
        exec(compile(text, "<program>", "exec"), dict(given))
    except Exception as error:                  # errors of programs are outcomes
        return f"{type(error).__name__}: {error}", True
    return None, False


def names() -> dict[str, Any]:
    """Return what programs may name."""
    return {"torch": torch, "F": torch.nn.functional, "math": math, "compare_sizes": compare_sizes}
