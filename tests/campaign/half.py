"""Results and gradients in 16 bits beside PyTorch's, over the samples of PyTorch's own table of operators.

    python tests/campaign/half.py --dtype bfloat16 --samples 24

Results are compared with PyTorch's at the tolerances of torch.testing.assert_close. Where they differ, PyTorch's result
in float64 decides: an op is "nearer" if ours is within the tolerances of it, or as an array no farther from it than
PyTorch's (which rounds each step of many gradients, or sums in 16 bits), else it "differs", and the script fails.
Sorted ties, which PyTorch leaves open, are left out.
"""
import argparse
import os
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "common")]
TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5)}
VERDICTS = ("equal", "nearer", "differs", "refused")
# In PyTorch, the gradient of its input has the elements that are overwritten, in place of the others.
WRONG_THERE = {"as_strided_scatter"}
OPEN = {"argsort", "sort", "msort", "mode", "topk", "kthvalue", "median", "nanmedian", "empty", "empty_like",
        "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "unique"}


def found(root, name):
    """Return the function of a dotted name, or the method of tensors; None if there is neither."""
    place = root
    for part in name.split("."):
        place = getattr(place, part, None)
    return place if callable(place) else getattr(root.Tensor, name, None) if "." not in name else None


class Sides:
    """The functions of an operator in both libraries, and conversions of arguments."""

    def __init__(self, info):
        import torch

        import tensorgrad
        self.torch, self.ours, self.info = torch, tensorgrad, info
        self.theirs_function, self.function = found(torch, info.name), found(tensorgrad, info.name)

    @property
    def known(self):
        """True if PyTorch's table means the public function, and we have it."""
        return self.function is not None and self.theirs_function is not None and self.info.op in (
            self.theirs_function, getattr(self.torch.Tensor, self.info.name, None))

    def to_ours(self, value):
        torch, ours = self.torch, self.ours
        if isinstance(value, torch.Tensor):
            return ours.from_dlpack(value.detach().clone()).requires_grad_(value.requires_grad)
        if isinstance(value, torch.dtype):
            return getattr(ours, str(value).removeprefix("torch."))
        if isinstance(value, (torch.device, torch.layout, torch.memory_format, torch.Generator)):
            raise NotImplementedError(type(value).__name__)
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.to_ours, value))
        return {k: self.to_ours(v) for k, v in value.items()} if isinstance(value, dict) else value

    def wide(self, value):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            copy = value.detach().clone()
            return (copy.double() if copy.dtype in (torch.float16, torch.bfloat16) else copy).requires_grad_(
                value.requires_grad)
        if value in (torch.float16, torch.bfloat16) and isinstance(value, torch.dtype):
            return torch.float64
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.wide, value))
        return {k: self.wide(v) for k, v in value.items()} if isinstance(value, dict) else value


def leaves(value, kind):
    """Yield the tensors of nested arguments or results."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves(each, kind)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from leaves(each, kind)


def run(library, dtype, function, args, kwargs):
    """Return the results, and the gradients for upstreams in a dtype, as float64 arrays."""
    inputs = [t for t in leaves((args, kwargs), library.Tensor) if t.requires_grad]
    outputs = list(leaves(function(*args, **kwargs), library.Tensor))
    roots = [out for out in outputs if out.requires_grad and out.dtype.is_floating_point]
    gradients = []
    if inputs and roots:
        upstream = [library.asarray(unequal(i, tuple(out.shape))).to(getattr(library, dtype)).to(out.dtype)
                    for i, out in enumerate(roots)]
        gradients = [g for g in library.autograd.grad(roots, inputs, upstream, allow_unused=True) if g is not None]
    return [t.detach().resolve_conj().to(library.complex128 if t.dtype.is_complex else library.float64).numpy()
            for t in (*outputs, *gradients)]


def unequal(i, shape):
    import numpy as np
    return np.cos(1.7 * np.arange(int(np.prod(shape)), dtype="float64") + i).reshape(shape) + 0.1


def verdict(ours, theirs, exact, rtol, atol):
    """Compare two lists of arrays, and judge differences by the exact arrays."""
    import numpy as np
    if len(ours) != len(theirs) or any(a.shape != b.shape for a, b in zip(ours, theirs)):
        return "differs"
    worst = "equal"
    for mine, other, truth in zip(ours, theirs, exact):
        apart = ~np.isclose(mine, other, rtol, atol, equal_nan=True)
        if apart.any():
            worst = "nearer"
            with np.errstate(all="ignore"):
                size = abs(truth) + np.sqrt(np.mean(np.square(abs(truth[np.isfinite(truth)]))))  # sums cancel
                far, near = ((x - truth) / (rtol * size + atol) for x in (mine, other))
                known = np.isfinite(far) & np.isfinite(near)
                if (~np.isfinite(far) & np.isfinite(near)).any() or np.any(abs(far[known]) > 1) and (
                        np.square(far[known]).sum() > 1.5 * np.square(near[known]).sum()):
                    return "differs"
    return worst


def trial(sides, sample, dtype):
    """Return the verdict on one sample; None if PyTorch's own result is random, or not to be had."""
    import numpy as np
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    if any(map(callable, kwargs.values())):
        return None             # a function or module of PyTorch's
    try:
        given = sides.to_ours((args, kwargs))
        theirs, again, exact = (run(sides.torch, dtype, sides.theirs_function, *each)
                                for each in ((args, kwargs), (args, kwargs), sides.wide((args, kwargs))))
    except Exception:       # PyTorch refuses the sample, or has no such tensor to hand over
        return None
    if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(theirs, again)) or len(exact) != len(theirs):
        return None
    try:
        ours = run(sides.ours, dtype, sides.function, *given)
    except (NotImplementedError, RuntimeError):
        return "refused"
    return verdict(ours, theirs, exact, *TOLERANCES[dtype])


def operators(dtype, names=None):
    """Yield PyTorch's operators of a dtype, those of `names` alone if given."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    for info in op_db:
        if (names is None or info.name in names) and info.name not in OPEN | WRONG_THERE and info.supports_dtype(
                getattr(torch, dtype), "cpu"):
            yield info


def judged(info, dtype, samples):
    """Return {verdict: number of samples} of an operator; None where the table does not mean a public function."""
    import torch
    sides = Sides(info)
    if not sides.known:
        return None
    torch.manual_seed(0)
    grad = dtype in {str(d).removeprefix("torch.") for d in info.supported_backward_dtypes("cpu")}
    counts = dict.fromkeys(VERDICTS, 0)
    for number, sample in enumerate(info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=grad)):
        if number == samples:
            break
        said = trial(sides, sample, dtype)
        if said is not None:
            counts[said] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), default="bfloat16")
    parser.add_argument("--samples", type=int, default=24, help="of each operator")
    parser.add_argument("names", nargs="*", help="operators; all by default")
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    warnings.simplefilter("ignore")
    total, worst = dict.fromkeys(VERDICTS, 0), 0
    for info in operators(given.dtype, given.names or None):
        counts = judged(info, given.dtype, given.samples)
        if counts is None or not sum(counts.values()):
            continue
        said = next(v for v in ("differs", "refused", "nearer", "equal") if counts[v])
        total[said] += 1
        worst += said == "differs"
        if said != "equal":
            print(f"{said:8} {info.name} {info.variant_test_name}", {v: n for v, n in counts.items() if n}, flush=True)
    print(f"halves, {given.dtype}: {sum(total.values())} operators,", ", ".join(f"{n} {v}" for v, n in total.items()))
    return bool(worst)


if __name__ == "__main__":
    sys.exit(main())
