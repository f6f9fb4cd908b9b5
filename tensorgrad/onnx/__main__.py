"""Show an ONNX model: `python -m tensorgrad.onnx model.onnx` prints its inputs, its graph, and how fast it runs, eager
and compiled.

Sizes that the file leaves open are 1, or as given by `--size batch=8`; `--all` prints every step.
"""
from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from .. import api as torch
from ..compiler import compile
from ..core.mode import no_grad
from .errors import InvalidModelError, UnsupportedModelError
from .reading.loading import load
from .reading.model import OnnxModel, Signature


def example(signature: Signature, sizes: dict[str, int]) -> Any:
    """Return a tensor that fits an input: numbers between 0 and 1, or zeros if it has integers."""
    shape = [n if isinstance(n, int) else sizes.get(n, 1) for n in signature.shape or ()]
    dtype = signature.dtype or torch.float32
    return torch.rand(shape).to(dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)


def describe(model: OnnxModel, every: bool) -> str:
    """Return lines about a model: its inputs and outputs, how many weights it has, and its operators."""
    nodes = [node for node in model.graph.nodes if node.op.startswith("call")]
    kinds = Counter(str(getattr(node.target, "__name__", node.target)) for node in nodes)
    weights = sum(p.numel() for p in model.parameters())
    lines = [f"inputs      {'; '.join(map(str, model.inputs))}", f"outputs     {', '.join(model.outputs)}",
             f"weights     {weights:,} numbers in {len(list(model.parameters()))} tensors",
             f"operators   {len(nodes)}: {', '.join(f'{name} {count}' for name, count in kinds.most_common(8))}"]
    return "\n".join([*lines, *(node.format_node() or "" for node in model.graph.nodes if every)])


def speed(call: Callable[..., Any], inputs: Sequence[Any]) -> str:
    """Return the median time of calls as text, and that of the first call."""
    times: list[float] = []
    with no_grad():
        while len(times) < 3 or sum(times[1:]) < 1 and len(times) < 50:
            start = perf_counter()
            call(*inputs)
            times.append(perf_counter() - start)
    return f"{1e3 * sorted(times[1:])[len(times[1:]) // 2]:.2f} ms (the first call {1e3 * times[0]:.2f} ms)"


def compiled_speed(model: OnnxModel, inputs: Sequence[Any]) -> str:
    """Return the times of the compiled model as text, with what runs in Python; or why it runs eagerly."""
    compiled = compile(model)
    text = speed(compiled, inputs)
    told = compiled.explain()
    if told.reasons:
        return f"not compiled: {'; '.join(told.reasons)}"
    left = Counter(name.rstrip("_0123456789") for graph in told.graphs for name, _ in getattr(graph.run, "left", ()))
    return text + (f", in Python: {', '.join(f'{name} {count}' for name, count in left.most_common())}" if left else "")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tensorgrad.onnx", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=NUMBER", help="the size of an open axis")
    parser.add_argument("--all", action="store_true", help="print every step of the graph")
    options = parser.parse_args(arguments)
    try:
        sizes = {name: int(number) for name, _, number in (each.partition("=") for each in options.size)}
        start = perf_counter()
        model = load(options.model)
        print(describe(model, options.all))
        print(f"loaded in   {1e3 * (perf_counter() - start):.0f} ms")
    except (InvalidModelError, UnsupportedModelError, OSError, ValueError) as error:
        print(f"{options.model}: {error}", file=sys.stderr)
        return 1
    try:
        inputs = [example(signature, sizes) for signature in model.inputs]
        print(f"eager       {speed(model, inputs)}")
        print(f"compiled    {compiled_speed(model, inputs)}")
    except Exception as error:
        print(f"speed       it does not run on example inputs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
