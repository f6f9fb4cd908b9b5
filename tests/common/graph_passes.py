"""Programs that are lowered, rewritten by passes, and compared with eager."""
import numpy as np

import tensorgrad as torch
from tensorgrad.compiler.passes.rewriting import settled
from tensorgrad.compiler.values import computed
from tensorgrad.graph import lower
from tensorgrad.graph.nesting import leaves, mapped
from tensorgrad.graph.node import Node


def run(graph, arrays):
    """Return the outputs of a graph, node by node, and check the shapes and dtypes that `meta` promises."""
    given, env = iter(arrays), {}
    for node in graph.nodes:
        def value(leaf):
            return env[leaf] if isinstance(leaf, Node) else leaf
        if node.op == "output":
            return [env[leaf] for leaf in leaves(node.args[0]) if isinstance(leaf, Node)]
        if node.op == "placeholder":
            env[node] = next(given)
        elif node.op == "get_attr":
            env[node] = graph.tensors[node.target].array
        else:
            env[node] = found = computed(node.target, mapped(value, node.args), mapped(value, node.kwargs))
            several = isinstance(found, (tuple, list))
            assert node.meta["shape"] == ([a.shape for a in found] if several else found.shape), node
            assert node.meta["dtype"] == ([a.dtype for a in found] if several else found.dtype), node


def names(graph):
    """The names of the calls that depend on the inputs."""
    state = settled(graph)
    return " ".join(getattr(node.target, "opname", node.target.__name__) if isinstance(node.target, type)
                    else node.target.__name__
                    for node in graph.nodes if node.op == "call_function" and node not in state)


def after(program, inputs, *passes, exact=False):
    """Lower a program, run passes, compare with eager, and return the graph."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    with torch.no_grad():
        wanted = [leaf.array for leaf in leaves(program(*inputs)) if isinstance(leaf, torch.Tensor)]
    graph = lower(program, inputs)
    for each in passes:
        each(graph)
    graph.lint()
    with np.errstate(all="ignore"):
        found = run(graph, [x.array.copy() for x in inputs])
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if exact or want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
            assert want.dtype.kind != "f" or np.array_equal(np.signbit(got), np.signbit(want))
        else:
            scale = np.abs(want[np.isfinite(want)]).max(initial=0) if want.size else 0
            np.testing.assert_allclose(got, want, rtol=0, atol=scale * (1e-5 if want.dtype.itemsize < 8 else 1e-12))
    return graph
