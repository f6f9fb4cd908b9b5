"""Formulas call ops only: each `forward` and `grad_*` runs on values that have a shape, a dtype and operators, and
nothing else.
"""
import re
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from samples import SAMPLES
from sampling import Values
from support import cpu_only

import tensorgrad as tg
from tensorgrad.core.plan import plans_of
from tensorgrad.interpret._batched_ops import runner
from tensorgrad.interpret.batched import batched_backend
from tensorgrad.interpret.symbol_storage import Symbol, SymbolStorage
from tensorgrad.ops.base import OPS, input_name
from tensorgrad.storage.base import MAKERS, attach_operators
from tensorgrad.storage.cpu import NumpyStorage

pytestmark = cpu_only
CASES = [pytest.param(OPS[name], row, id=f"{name}{row}") for name, rows in SAMPLES.items()
         for row in rows if name in OPS and not OPS[name].crosses]


class Opaque:
    """A value of a formula. Subscripts read a part of it by integers, slices, None and dots: the op `get_slice`."""

    __slots__ = ("_array",)
    __array_ufunc__ = None          # NumPy's arrays leave operators to this class
    __hash__ = None
    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)

    def __init__(self, array):
        self._array = array

    def __getitem__(self, index):
        parts = index if isinstance(index, tuple) else (index,)
        assert all(part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice))
                   for part in parts), "subscripts are no arrays"
        return Opaque(np.asarray(self._array[index]))

    def __bool__(self):
        raise AssertionError("a formula does not look at values")

    def __iter__(self):
        raise AssertionError("a formula does not go through values one by one")


def bare(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(bare, value))
    return value._array if isinstance(value, Opaque) else value


def covered(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(covered, value))
    return Opaque(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


attach_operators(Opaque, lambda function, operands, self: covered(function(*map(bare, operands))))


class OnlyOps:
    """`xp` that has the ops of the table and what makes new arrays."""

    def __getattr__(self, name):
        if name in MAKERS:
            function = getattr(np, name)
        elif name in OPS:
            op, count = OPS[name], len(OPS[name].inputs)
            kernel = runner(op, NumpyStorage)

            def function(*args, **params):
                if op.arity is not None or op.sequence:
                    args, params = args[:count], dict(zip(op.parameters, args[count:]), **params)
                return kernel(*args, **params)
        else:
            raise AttributeError(f"a formula asks for {name!r}, which is no op of the table")
        return lambda *args, **params: covered(function(*map(bare, args),
                                                        **{key: bare(value) for key, value in params.items()}))


only_ops = OnlyOps()


@pytest.fixture(autouse=True)
def silent():
    """Kernels run as the engine runs them: NumPy does not warn."""
    with np.errstate(all="ignore"):
        yield


def drawn(row):
    rng = np.random.default_rng(5)
    first, *rest = [each.draw(rng, np.dtype("float64")) if isinstance(each, Values) else each for each in row.inputs]
    if isinstance(first, np.ndarray):
        first = row.prepared([tg.tensor(first)])[0].numpy()
    return [first, *rest]


def results_of(op, inputs, params):
    found = runner(op, NumpyStorage)(*([inputs] if op.sequence else inputs), **params)
    return tuple(found) if op.several else (found,)


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(bare(one)), other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("op", "row"), [case for case in CASES if not case.values[0].host])
def test_definitions_call_ops_only(op, row, request):
    inputs = drawn(row)
    expected = results_of(op, inputs, row.params)
    given = covered(list(inputs))
    found = op.forward(only_ops, *([list(given)] if op.sequence else given), **row.params)
    same(found if op.several else (found,), expected)


SPARSE = ("embedding_sparse", "gather_sparse")      # their gradients are sparse, which no opaque value is


@pytest.mark.parametrize(("op", "row"), [case for case in CASES if case.values[0].differentiable
                                         and case.values[0].opname not in SPARSE])
def test_gradients_call_ops_only(op, row):
    inputs = drawn(row)
    wanted = [i for i, each in enumerate(row.inputs) if isinstance(each, Values) and each.kind in "fc" and each.learnt
              and
              hasattr(op, f"grad_{input_name(op, i)}")]
    if not wanted:
        return
    results = covered(results_of(op, inputs, row.params))
    args = covered(list(inputs))
    plan = plans_of(op).of(sum(1 << i for i in wanted), args)
    step = SimpleNamespace(params=row.params, edges=[a if isinstance(a, Opaque) else None for a in args])
    values = list(plan.save(args, results))
    for extra in plan.extras:
        values.append(extra(step, values))
    g = [Opaque(np.full(out.shape, 0.7, out.dtype)) for out in results]
    for i, formula, wants in plan.steps:
        ge = formula(only_ops, g if op.several else g[0], *[values[place] for place in wants])
        assert isinstance(ge, Opaque), f"grad_{input_name(op, i)} gave a {type(ge).__name__}"


INTS = np.array([3, 4]), np.array([1, 0])
REFUSED = [("floor_divide", INTS, {}), ("trunc_divide", INTS, {}), ("remainder", INTS, {}), ("fmod", INTS, {}),
           ("binary_cross_entropy", (np.array([0.5, 1.5]), np.ones(2), None), {"reduction": "sum"}),
           ("nll_loss", (np.ones((2, 3)), np.array([0, 3]), None), {"reduction": "none", "ignore_index": -100}),
           ("one_zero", (np.ones(2), np.array([1, 2])), {"strict": True}),
           ("multi_margin_loss", (np.ones((2, 3)), np.array([0, -1]), None),
            {"p": 1, "margin": 1.0, "reduction": "sum"}),
           ("multilabel_margin_loss", (np.ones((2, 3)), np.array([[0, 1, 2], [0, 3, 0]])), {"reduction": "sum"})]


def test_rows_refuse_values_of_every_op_that_checks_them():
    assert {name for name, op in OPS.items() if op.check} == {name for name, _, _ in REFUSED}


@pytest.mark.parametrize(("name", "inputs", "params"), [pytest.param(*row, id=row[0]) for row in REFUSED])
def test_values_are_refused_where_there_are_values(name, inputs, params):
    op = OPS[name]
    batches = batched_backend(NumpyStorage, 1)
    # the second example is refused
    one_bad = [None if x is None else batches.array_type(np.stack([x[:1], x[1:]])) for x in inputs]
    symbols = [None if x is None else Symbol(x.shape, x.dtype) for x in inputs]
    with pytest.raises((RuntimeError, IndexError)) as error:
        op.kernels.from_definition(NumpyStorage)(*inputs, **params)
    if name not in ("nll_loss", "multi_margin_loss"):         # whose message looks for the target
        with pytest.raises(type(error.value), match=re.escape(str(error.value))):
            op.kernels[batches](*one_bad, **params)
    assert op.kernels[SymbolStorage](*symbols, **params).shape in ((), (2,))


BARE = [op for op in OPS.values() if op.forward.__code__.co_names == (op.opname,)
        and op.opname not in op.forward.__globals__]


@pytest.mark.parametrize("op", BARE, ids=lambda op: op.opname)
def test_what_names_itself_is_said_elsewhere(op):
    """A formula that is nothing but its op's name: NumPy has that function, or arrays have a body of it."""
    assert op.kernels.in_arrays is not None or hasattr(np, op.opname)


def test_the_adjoint_of_take_axis_builds_no_large_matrix():
    """A signal of a minute, mirrored at its ends, would need 10¹² elements."""
    size, index = 3000, np.abs(np.arange(-500, 3000))
    x = np.arange(2.0 * len(index)).reshape(2, -1)
    tracemalloc.start()
    out = OPS["add_axis"].forward(NumpyStorage.xp, x, index, size=size, axis=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = np.zeros((2, size))
    np.add.at(expected, (slice(None), index), x)
    assert peak < 2e6 and np.array_equal(out, expected)
