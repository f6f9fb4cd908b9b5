"""Every function and layer accepts nodes: it returns a node of the right shape and dtype, and its model computes the
function's result."""
import importlib
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from samples import SAMPLES
from support import cpu_only, fresh_process
from symbolic_forms import equal

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.core.dispatch import apply
from tensorgrad.ops.base import OPS
from tensorgrad.symbolic import Input, SymbolicData, SymbolicModel, SymbolicTensor, add_to_graph
from tensorgrad.symbolic.nesting import leaves, mapped
from tests.nn.test_layers import build, cases, given

pytestmark = [cpu_only, pytest.mark.filterwarnings("ignore")]


def as_input(value):
    return Input(custom_tensor=value)


def agrees(expression, names):
    """Assert that an expression, a function of tensors by their names, comes to the same on nodes.

    Returns whether it did not fail on tensors.
    """
    tensors = {name: value for name, value in names.items() if isinstance(value, torch.Tensor)}
    torch.manual_seed(3)
    try:
        with torch.no_grad():
            expected = expression({**names, **{name: t.detach().clone() for name, t in tensors.items()}})
    except Exception:       # there is nothing to agree with
        return False
    inputs = {name: Input(custom_tensor=t.detach()) for name, t in tensors.items()}
    found = expression({**names, **inputs})
    nodes = [leaf for leaf in leaves(found) if isinstance(leaf, SymbolicData)]
    assert nodes, f"{found!r} is no node"
    model = SymbolicModel(list(inputs.values()), nodes)
    torch.manual_seed(3)
    with torch.no_grad():
        results = model(*[t.detach().clone() for t in tensors.values()])
        values = dict(zip(nodes, results if len(nodes) > 1 else [results], strict=True))
    assert equal(mapped(lambda leaf: values[leaf] if isinstance(leaf, SymbolicData) else leaf, found), expected)
    for node, value in values.items():
        if isinstance(value, torch.Tensor):
            assert type(node) is SymbolicTensor and node.shape == value.shape and node.dtype == value.dtype
    return True


# ── the public functions, in the expressions that are run beside PyTorch elsewhere ────────────────────────────────────


def texts(*sources):
    return [e.strip() for source in sources for line in source.strip().splitlines() for e in line.split(" ; ")]


def functional():
    here = importlib.import_module("tests.nn.test_functional")
    return here.calls, vars(torch.nn.functional) | {"torch": torch} | here.arguments(torch)[1]


def elementwise():
    here = importlib.import_module("tests.api.test_math")
    return texts(*here.EXPRESSIONS.values()), here.given(torch)


def differentiable():
    here = importlib.import_module("tests.api.test_math")
    return (texts(here.GRADIENTS), {"torch": torch, "inf": here.inf}
            | {name: torch.tensor(value) for name, value in here.POINTS.items()})


def linear_algebra():
    here = importlib.import_module("tests.api.test_linalg")
    return texts(*here.EXPRESSIONS.values()), here.given(torch)


def spectra():
    here = importlib.import_module("tests.api.test_fft")
    return texts(*here.EXPRESSIONS.values()), here.given(torch)


FAMILIES = [functional, elementwise, differentiable, linear_algebra, spectra]
# nodes are compared by identity
COMPARED = {"x==None", "x!=None", 'x=="a"', "x==[1, 2]", "x==np.ones(2)", "i.to(torch.uint8)==-1", "x.conj() is x"}


def takes_nodes(expression, names):
    """Return True if the expression has a named tensor; not as `out`, which is written to and cannot be a node."""
    return (expression not in COMPARED and "out=" not in expression
            and any(isinstance(names.get(name), torch.Tensor) for name in words(expression)))


def words(expression):
    try:
        return compile(expression, "", "eval").co_names
    except SyntaxError:
        return ()


@pytest.mark.parametrize(("family", "least"),
                         [(functional, 200), (elementwise, 450), (differentiable, 170), (linear_algebra, 120),
                          (spectra, 45)],
                         ids=lambda value: getattr(value, "__name__", ""))
def test_functions(family, least):
    pytest.importorskip("torch")
    expressions, names = family()
    agreed, failed = 0, []
    for expression in dict.fromkeys(expressions):
        if takes_nodes(expression, names):
            try:
                agreed += agrees(partial(eval, expression), names)
            except Exception as error:
                failed.append(f"{expression}: {type(error).__name__}: {error}")
    assert not failed and agreed >= least, "\n".join(failed)


# ── the ops of the table, as functions of the program's own ───────────────────────────────────────────────────────────


def run(op, sample, *inputs):
    inputs = sample.prepared(inputs)
    return apply(op, inputs, **sample.params) if op.sequence else apply(op, *inputs, **sample.params)


@pytest.mark.parametrize("name", [name for name, (row, *_) in SAMPLES.items() if "graph" not in row.skipped])
def test_ops(name):
    op = OPS[name]
    for sample in SAMPLES[name]:
        inputs = [torch.tensor(value) if isinstance(value, np.ndarray) else value for value in sample.draw()]
        expected = run(op, sample, *inputs)
        nodes = [Input(custom_tensor=value) if isinstance(value, torch.Tensor) else value for value in inputs]
        result = add_to_graph(run, op, sample, *nodes)
        model = SymbolicModel([node for node in nodes if isinstance(node, SymbolicData)], result)
        found = model(*[value for value in inputs if isinstance(value, torch.Tensor)])
        assert equal(found, expected)
        if isinstance(expected, torch.Tensor):
            assert result.shape == expected.shape and result.dtype == expected.dtype


# ── modules ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("training", [True, False])
@cases
def test_layers(name, args, kwargs, x, flags, training):
    module = build(torch, name, args, kwargs).train(training)
    inputs = [given(torch, value) for value in x]
    options = inputs.pop() if isinstance(inputs[-1], dict) else {}
    call = [inputs, options]
    symbols = mapped(lambda leaf: Input(custom_tensor=leaf) if isinstance(leaf, torch.Tensor) else leaf, call)
    before = {} if name.startswith("Lazy") else {key: value.clone() for key, value in module.state_dict().items()}
    result = module(*symbols[0], **symbols[1])
    # building a graph leaves no trace
    assert all(equal(module.state_dict()[key], value) for key, value in before.items())
    twin, found = deepcopy(module), SymbolicModel([leaf for leaf in leaves(symbols) if isinstance(leaf, SymbolicData)],
                                                  result)
    results = []
    for run_it in (lambda: found(*[copied(leaf) for leaf in leaves(call) if isinstance(leaf, torch.Tensor)]),
                   lambda: twin(*mapped(copied, inputs), **mapped(copied, options))):
        torch.manual_seed(1)
        with torch.no_grad():
            results.append(run_it())
    assert equal(*results)
    if isinstance(results[1], torch.Tensor):
        assert result.shape == results[1].shape and result.dtype == results[1].dtype


def copied(leaf):
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf


def test_sequences_of_different_lengths():
    steps, rnn = torch.rand(3, 5, 4), nn.GRU(4, 2, batch_first=True)
    packing = torch.nn.utils.rnn

    def network(x):
        packed = packing.pack_padded_sequence(x, [5, 3, 2], batch_first=True)
        out, _ = rnn(packed)
        return (packing.pad_packed_sequence(out, batch_first=True)[0]
                + packing.pad_sequence([x[0, :, :2], x[1, :, 2:]]).sum())
    x = Input(batch_shape=(3, 5, 4))
    y = network(x)
    assert tuple(y.shape) == (3, 5, 2) and torch.equal(SymbolicModel(x, y)(steps), network(steps))


def test_functions_of_functions_are_added():
    x, data = Input((4,)), torch.rand(3, 4)
    for function in (torch.vmap(lambda row: row * row.sum()), torch.func.grad(lambda rows: (rows ** 3).sum())):
        assert torch.equal(SymbolicModel(x, add_to_graph(function, x))(data), function(data))


def test_modules_may_be_called_with_what_refers_to_itself():
    tree = {"value": 2.0}
    tree["children"] = [{"value": 3.0, "parent": tree}]

    class Sum(nn.Module):
        def forward(self, node):
            return node["value"] + node["children"][0]["value"]
    assert Sum()(tree) == 5


def test_other_classes_that_override_functions_are_asked_as_before():
    fresh_process("""
import tensorgrad as torch, tensorgrad.symbolic
class Other:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
assert torch.exp(Other()) == "exp" and torch.ones(2).mul(Other()) == "mul" and torch.ones(2) + Other() == "add"
""")
