"""Compare compiled modules with eager ones: to the bit where nothing is rounded, else within rounding; with several
inputs and batches, from two threads, and after changes of the parameters.
"""
from __future__ import annotations

import copy
import re
import threading
import traceback
import warnings
from collections import Counter
from contextlib import nullcontext
from typing import Any

import numpy as np

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.core.dispatch import apply
from tensorgrad.ops.base import OPS
from tensorgrad.overrides import TorchFunctionMode
from tensorgrad.utils._pytree import tree_flatten

TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "float16": 2 ** -9, "bfloat16": 2 ** -6}
EPS = {"float32": 2 ** -23, "float64": 2 ** -52}
counts: Counter[str] = Counter()


class Differs(Exception):
    """The result of a compiled module differs from the module's."""


class Program:
    """A module, its compiled form, and a copy that runs eagerly and gets the same changes.

    By its seed, the compiled form is that of the module or of a function, with fixed or dynamic sizes.
    """

    def __init__(self, net: Any, seed: int = 0) -> None:
        self.net, self.twin = net, copy.deepcopy(net)
        self.dynamic = [True, None, False][seed % 7 % 3]
        options: dict[str, Any] = {"dynamic": self.dynamic}
        self.run = torch.compile(net if seed % 4 else lambda *inputs: net(*inputs), **options)

    def agree(self, inputs: Any, exact: Any, where: str) -> tuple[Any, list[Any], str]:
        """Compare one call. Return the compiled results, copies of their arrays, and `where`."""
        mine, theirs = copies(inputs), copies(inputs)
        before = copies(self.twin)
        want = seeded(self.twin, theirs)
        got = seeded(self.run, mine)
        judge(before, inputs, got, want, exact, where)
        for name, a, b in (("inputs", mine, theirs), ("buffers", [*self.net.buffers(), getattr(self.net, "kept", None)],
                                                     [*self.twin.buffers(), getattr(self.twin, "kept", None)])):
            if any(x.tobytes() != y.tobytes() for x, y in zip(arrays(a), arrays(b), strict=True)):
                raise Differs(f"{where} leaves other {name}")
        if any(getattr(self.net, name, None) != getattr(self.twin, name, None) for name in ("count", "notes")):
            raise Differs(f"{where} leaves other attributes")
        for x, y in zip(tree_flatten(got)[0], tree_flatten(want)[0], strict=True):
            if any(y is theirs[i] and x is not mine[i] for i in range(len(inputs))):
                raise Differs(f"{where} returns a copy of an input that it returns eagerly")
        return got, arrays(got), where

    def together(self, each: list[Any], exact: Any) -> None:
        """Call the compiled form from two threads at once."""
        before = copies(self.twin)
        want = [self.twin(*copies(inputs)) for inputs in each]
        got, failed = [None] * len(each), list[BaseException]()

        def calls(i: int) -> None:
            try:
                with torch.no_grad():
                    for _ in range(3):
                        got[i] = self.run(*copies(each[i]))
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=calls, args=(i,)) for i in range(len(each))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        for i, inputs in enumerate(each):
            judge(before, inputs, got[i], want[i], exact, f"a call from thread {i + 1} of two")


def compare(Net: Any, inputs: Any, *, seed: int, batch: int, dtype: str = "float32", exact: Any = (),
            stateful: bool = False) -> None:
    """Run a module and its compiled form side by side; raise Differs where results differ."""
    torch.manual_seed(seed)
    pair = Program(settled(Net().to(getattr(torch, dtype))), seed)
    first, other = inputs(batch, seed), inputs(batch + 1 + seed % 3, seed + 1)
    with torch.inference_mode() if seed % 3 == 1 else torch.no_grad():
        copies(pair.twin)(*copies(first))                           # a program that fails in eager mode does not count
        kept = [pair.agree(first, exact, "the first call"),
                pair.agree(inputs(batch, seed + 7), exact, "a second call")]
        if runs(pair.twin, other):
            kept.append(pair.agree(other, exact, "another batch"))
        for further in (batch + 4, 2, 1, batch + 3) if pair.dynamic is not False else ():
            if runs(pair.twin, more := inputs(further, seed + further)):
                kept.append(pair.agree(more, exact, f"a batch of {further}"))
        changed([pair.net, pair.twin], seed)
        kept.append(pair.agree(first, exact, "the first call after parameters changed"))
        if not stateful:
            pair.together([inputs(batch, seed + i) for i in (3, 4)], exact)
    for now, then, where in kept:
        if any(a.tobytes() != b.tobytes() for a, b in zip(arrays(now), then, strict=True)):
            raise Differs(f"results of {where} were written to by later calls")
    told = pair.run.explain()
    for reason in told.reasons:
        counts[f"eager: {re.sub(r', at .*', '', reason)}"] += 1
    counts["compared" if told.graphs else "eager"] += 1


def settled(net: Any) -> Any:
    """Draw the statistics and scales of norms, so that they matter."""
    for module in net.modules():
        if isinstance(getattr(module, "running_mean", None), torch.Tensor):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
        if "Norm" in type(module).__name__ and getattr(module, "weight", None) is not None:
            nn.init.normal_(module.weight, 1, 0.3)
            if getattr(module, "bias", None) is not None:
                nn.init.normal_(module.bias)
    return net.eval()


def changed(nets: list[Any], seed: int) -> None:
    """Change parameters and statistics of some modules alike: in place, by new data, by a state that is loaded, or by
    other parameters.
    """
    for net in nets:
        kind = seed % 4
        if kind == 0:
            for p in [*net.parameters(), *(b for b in net.buffers() if b.dtype.is_floating_point)]:
                p.mul_(0.75)
        elif kind == 1:
            for p in net.parameters():
                p.data = p.data * 0.5 + 0.125
        elif kind == 2:
            net.load_state_dict({name: t * 1.25 if t.dtype.is_floating_point else t
                                 for name, t in net.state_dict().items()})
        else:
            for module in net.modules():
                for name, p in module._parameters.items():
                    if p is not None:
                        setattr(module, name, nn.Parameter(p.detach() * 0.5))


def seeded(call: Any, inputs: Any) -> Any:
    """Call with equal random numbers."""
    torch.manual_seed(11)
    return call(*inputs)


def copies(inputs: Any) -> Any:
    return copy.deepcopy(inputs)


def arrays(tree: Any) -> list[Any]:
    return [np.array(leaf.detach().numpy() if leaf.dtype is not torch.bfloat16 else leaf.detach().float().numpy())
            for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def runs(net: Any, inputs: Any) -> bool:
    try:
        copies(net)(*copies(inputs))
    except Exception:
        return False
    return True


def judge(net: Any, inputs: Any, got: Any, want: Any, exact: Any, where: str) -> None:
    """Raise Differs unless results agree: within rounding, or within a few times what eager results move by if all
    numbers move by the last bit.
    """
    (a, spec), (b, other) = tree_flatten(got), tree_flatten(want)
    if spec != other:
        raise Differs(f"{where} returns {spec}, not {other}")
    found = [(i, text) for i, (x, y) in enumerate(zip(a, b, strict=True)) if (text := apart(x, y, i in exact))]
    hard = [(i, text) for i, text in found if not isinstance(text, float)]
    if hard:
        raise Differs(f"result {hard[0][0]} of {where}: {hard[0][1]}")
    if found:
        moved = sensitivity(net, inputs, want)
        for i, error in found:
            if not error <= 8 * moved[i]:
                raise Differs(f"result {i} of {where} is off by {error:.0e} of its largest number")
        counts["ill-conditioned"] += 1


def apart(x: Any, y: Any, exact: bool) -> Any:
    """Return how two results differ: "" for not at all, a text, or a number where rounding may be the reason."""
    if type(x) is not type(y) or not isinstance(x, torch.Tensor):
        return "" if type(x) is type(y) and x == y else f"{x}, not {y}"
    if x.shape != y.shape or x.dtype is not y.dtype:
        return "another shape" if x.dtype is y.dtype else f"{x.dtype}, not {y.dtype}"
    [p], [q] = arrays(x), arrays(y)
    if p.tobytes() == q.tobytes():
        return ""
    if p.dtype.kind != "f" or exact:
        same = np.array_equal(p, q, equal_nan=True) and (np.signbit(p) == np.signbit(q))[p == 0].all()
        return "" if same else "bits differ where nothing is rounded"
    finite = np.isfinite(q)
    if not np.array_equal(np.isfinite(p), finite) or not np.array_equal(p[~finite], q[~finite], equal_nan=True):
        return "NaN or infinity in other places"
    largest = float(np.abs(q[finite]).max(initial=0))
    error = float(np.abs(p[finite].astype("float64") - q[finite]).max(initial=0))
    limit = TOLERANCE[str(y.dtype).rpartition(".")[2]]
    return "" if error <= limit * largest else error / max(largest, 1e-300)


def sensitivity(net: Any, inputs: Any, want: Any) -> list[float]:
    """Return how far results are from exact ones, and how far they move if all inputs, parameters and results of
    functions move by about their last bit: the largest of several tries.
    """
    most = [0.0] * len(arrays(want))
    rng = np.random.default_rng(0)

    def near(t: Any) -> Any:
        return moved_a_little(t, rng)

    def wide(t: Any) -> Any:
        return t.double() if t.dtype.is_floating_point else t
    for change in (wide, near, near, near):
        other = copies(net)
        torch.manual_seed(11)
        for p in [*other.parameters(), *other.buffers()]:
            p.data = change(p)
        try:
            with Rounding(rng) if change is near else nullcontext():
                moved = other(*[change(x) for x in copies(inputs)])
        except RuntimeError:                                # a program that makes tensors of its own dtype
            continue
        for i, (x, y) in enumerate(zip(arrays(moved), arrays(want), strict=True)):
            if y.dtype.kind == "f" and (finite := np.isfinite(x) & np.isfinite(y)).any():
                most[i] = max(most[i], float(np.abs(x - y)[finite].max() / max(np.abs(y[finite]).max(), 1e-300)))
    return most


def moved_a_little(t: Any, rng: Any) -> Any:
    """Return a copy of a tensor of floats with each number moved by up to its last bit; other tensors as they are."""
    array = t.detach().numpy() if t.dtype in (torch.float32, torch.float64) else np.empty(0, "?")
    if array.dtype.kind != "f":
        return t
    factor = 1 + EPS[str(array.dtype)] * rng.uniform(-1, 1, array.shape)
    return torch.from_numpy(np.array(array * factor, array.dtype))


class Rounding(TorchFunctionMode):
    """Moves the results of functions, as their rounding does: rows that are equal numbers are not after it. Results
    that share memory with operands stay.
    """

    def __init__(self, rng: Any) -> None:
        super().__init__()
        self.rng = rng

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        if not isinstance(made, torch.Tensor) or any(np.may_share_memory(made.array, x.array) for x in given):
            return made
        return moved_a_little(made, self.rng)


def names() -> dict[str, Any]:
    """The names that texts of programs use."""
    from random_graphs import draw, tokens
    return {"torch": torch, "nn": nn, "F": nn.functional, "draw": draw, "tokens": tokens, "compare": compare,
            "sample": sample}


def check(text: str, given: dict[str, Any]) -> tuple[str | None, bool]:
    """Run the text of a program, as `workers.Campaign` asks: return why it is a finding, and True if it raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)            # of a deviation of one element, and its like
            exec(compile(text, "<program>", "exec"), dict(given))
    except Differs as error:
        return f"Differs: {error}", True
    except Exception as error:
        return raised_by_compiler(error), True
    return None, False


def raised_by_compiler(error: Exception) -> str | None:
    """Describe an error of the compiler's, or of a compiled call; None for one of the program."""
    frames = traceback.extract_tb(error.__traceback__)
    if not any(frame.name in ("agree", "together") or "/compiler/" in frame.filename or "/graph/" in frame.filename
               for frame in frames):
        return None
    line, file = (str(error).splitlines() or [""])[0][:100], frames[-1].filename.rpartition("/")[2]
    return f"{type(error).__name__}: {line} ({file}:{frames[-1].lineno})"


def sample(name: str, number: int, dtype: str, strided: bool = False, special: bool = False) -> None:
    """Compare a sample of an op of the table: once with all its tensors as inputs, once with all but the first as
    parameters; with `strided`, of memory in another order; with `special`, with NaN, infinity and -0 among the numbers.
    """
    from samples import SAMPLES
    row = SAMPLES[name][number]
    drawn = [np.array(v) if isinstance(v, np.ndarray) else v for v in row.draw(dtype)]
    for v in drawn:
        if special and isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.size:
            v.flat[[0, v.size // 3, v.size // 2, -1]] = [np.nan, -0.0, -np.inf, np.inf]
    given = row.prepared([torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in drawn])
    if strided:
        given = [other_order(v) for v in given]
    tensors = [v for v in given if isinstance(v, torch.Tensor)]
    for fixed in (0, max(0, len(tensors) - 1)):
        net, inputs = Applied(OPS[name], given, row.params, fixed), tensors[:len(tensors) - fixed]
        run = torch.compile(net)
        with torch.no_grad():
            torch.manual_seed(7)
            want = net(*copies(inputs))
            torch.manual_seed(7)
            got = run(*copies(inputs))
            judge(net, inputs, got, want, (), f"{name}, with {fixed} parameters,")
        counts["compared" if run.explain().graphs else "eager"] += 1


def other_order(x: Any) -> Any:
    """Return a tensor of the same values whose memory is in another order."""
    return x.movedim(-1, 0).contiguous().movedim(0, -1) if isinstance(x, torch.Tensor) and x.ndim > 1 else x


class Applied(nn.Module):
    """An op of the table on inputs, of which the last `fixed` tensors are buffers."""

    def __init__(self, op: Any, given: Any, params: Any, fixed: int) -> None:
        super().__init__()
        self.op, self.params = op, params
        self.given = [None if isinstance(v, torch.Tensor) else v for v in given]
        self.places = [i for i, v in enumerate(given) if isinstance(v, torch.Tensor)]
        for i in self.places[len(self.places) - fixed:]:
            self.register_buffer(f"input{i}", given[i])

    def forward(self, *inputs: Any) -> Any:
        args = [*self.given]
        for i, x in zip(self.places, [*inputs, *self.buffers()], strict=True):
            args[i] = x
        made = apply(self.op, *([args] if self.op.sequence else args), **self.params)
        return tuple(made) if isinstance(made, list) else made
