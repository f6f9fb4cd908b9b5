"""The compiled fast path beside Python's own: results, steps, gradients, errors, and that nothing is kept.

And the functions of arrays that they call.
"""
import gc
import inspect
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.core import sweep
from tensorgrad.core.dispatch import OPS, xp
from tensorgrad.core.fast_path import compiled
from tensorgrad.core.mode import mode, writers
from tensorgrad.core.plan import plans_of
from tensorgrad.core.tape import record, record_careful
from tensorgrad.ops.base import Pair
from tensorgrad.storage.cpu import NumpyStorage

pytestmark = pytest.mark.skipif(compiled is None, reason="the compiled fast path is not in use")


def leaf(*values, dtype=tg.float32):
    return tg.tensor(values, dtype=dtype, requires_grad=True)


class Marked(tg.Tensor):
    pass


def seen(node):
    """Return the attributes of a step in a form that can be compared."""
    if node is None:
        return None
    saved = [getattr(v, "array", v) for v in node.saved]
    return (type(node), tuple(node.edges), node.params, node.plan, node.hooks, node.shape, node.dtype,
            type(node._storage),
            node._storage is NumpyStorage.nowhere, [v.tolist() if isinstance(v, np.ndarray) else v for v in saved])


OPERANDS = {
    "leaves": lambda: (leaf(1, 2), leaf(3, 4)), "one leaf": lambda: (leaf(1, 2), tg.tensor([3.0, 4.0])),
    "the other": lambda: (tg.tensor([3.0, 4.0]), leaf(1, 2)),
    "none": lambda: (tg.ones(2), tg.ones(2)), "results": lambda: (leaf(1, 2) * 2, leaf(3, 4) * 3),
    "a float": lambda: (leaf(1, 2), 3.5),
    "an int": lambda: (leaf(1, 2), 3), "a bool": lambda: (leaf(1, 2), True),
    "a row": lambda: (tg.ones(3, 2, requires_grad=True), leaf(1, 2)),
    "a column": lambda: (tg.ones(3, 2, requires_grad=True), tg.ones(3, 1)),
    "outer": lambda: (leaf(1, 2)[:, None], leaf(3, 4, 5)), "views": lambda: (leaf(1, 2, 3)[1:], leaf(4, 5)),
    "doubles": lambda: (leaf(1, 2, dtype=tg.float64), leaf(3, 4, dtype=tg.float64)),
    "mixed": lambda: (leaf(1, 2), leaf(3, 4, dtype=tg.float64)),
    "halves": lambda: (leaf(1, 2, dtype=tg.float16), leaf(3, 4, dtype=tg.float16)),
    "integers": lambda: (tg.tensor([1, 2]), tg.tensor([3, 4])),
    "complex": lambda: (leaf(1j, 2, dtype=tg.complex64), leaf(3, 4j, dtype=tg.complex64)),
    "numbers of no axes": lambda: (leaf(2).sum(), leaf(3).sum()),
    "empty": lambda: (tg.ones(0, 3, requires_grad=True), tg.ones(3)),
    "a parameter": lambda: (tg.nn.Parameter(tg.ones(2)), leaf(3, 4)),
    "a subclass": lambda: (tg.ones(2).as_subclass(Marked), leaf(3, 4)),
    "turned": lambda: (tg.arange(6.0).reshape(2, 3).T.requires_grad_(), tg.ones(3, 2)),
}


@pytest.mark.parametrize("operands", OPERANDS)
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "maximum", "power", "arctan2", "less"])
def test_a_lane_does_what_pythons_does(op, operands):
    path, (a, b) = getattr(xp, op), OPERANDS[operands]()
    outcomes = []
    for run in (path, path.__wrapped__):
        try:
            out = run(a, b)
            outcomes.append((type(out), out.array.tolist(), out.array.dtype, out.array.strides, out.origin, out.grad,
                             type(out._storage), out._storage.__dict__,
                             seen(out._node)))
        except Exception as error:      # noqa: BLE001 (of any kind: it is the same)
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]
    assert type(path) is compiled.FastPath


@pytest.mark.parametrize("op", ["negative", "exp", "sqrt", "relu", "sigmoid", "sum", "max"])
@pytest.mark.parametrize("params", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}], ids=str)
def test_of_one_tensor(op, params):
    path, a = getattr(xp, op), tg.rand(3, 2, requires_grad=True)
    outcomes = []
    for run in (path, path.__wrapped__):
        try:
            out = run(a, **params)
            outcomes.append((out.array.tolist(), out.array.shape, seen(out._node)))
        except Exception as error:      # noqa: BLE001
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]


def test_of_three_tensors():
    x, w, b = tg.rand(4, 2), tg.rand(3, 2, requires_grad=True), tg.rand(3, requires_grad=True)
    ours, python = (run(x, w, b) for run in (xp.linear, xp.linear.__wrapped__))
    assert tg.equal(ours, python) and seen(ours._node) == seen(python._node) and ours.grad_fn.name() == "AddmmBackward0"


VIEWS = {"reshape": [{"shape": (3, 2)}, {"shape": (-1,)}, {"shape": (4,)}],
         "permute_dims": [{"axes": (1, 0)}, {"axes": (0, 2)}],
         "expand_dims": [{"axis": 1}], "squeeze": [{"axis": 0}], "broadcast_to": [{"shape": (4, 2, 3)}]}
TENSORS = {
    "a leaf": lambda: tg.rand(2, 3, requires_grad=True), "a result": lambda: tg.rand(2, 3, requires_grad=True) * 2,
    "without gradients": lambda: tg.rand(2, 3), "turned": lambda: tg.rand(3, 2, requires_grad=True).T,
    "a view": lambda: tg.rand(3, 3, requires_grad=True)[:2], "of integers": lambda: tg.arange(6).view(2, 3),
    "a row": lambda: tg.rand(1, 3),
    "a parameter": lambda: tg.nn.Parameter(tg.rand(2, 3)), "a subclass": lambda: tg.rand(2, 3).as_subclass(Marked),
}


@pytest.mark.parametrize("switch", [tg.enable_grad, tg.no_grad, tg.inference_mode])
@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("op, params", [(op, params) for op in VIEWS for params in VIEWS[op]], ids=str)
def test_views(op, params, tensor, switch):
    path, outcomes = getattr(xp, op), []
    assert type(path) is compiled.FastPath
    a = TENSORS[tensor]()
    for run in (path, path.__wrapped__):
        with switch():
            try:
                out = run(a, **params)
            except Exception as error:      # noqa: BLE001
                outcomes.append((type(error), str(error)))
                continue
            origin = (out.origin and (out.origin.parent is a, out.origin.op, out.origin.args[0] is a, out.origin.params,
                                      out.origin.kind))
            outcomes.append((type(out), out.array.tolist(), out.array.strides, origin, out._storage is a._storage,
                             out._storage.memory is not None, out._storage.watched, out.is_inference(),
                             out.requires_grad, type(out._node),
                             None if out.is_leaf else seen(out._node)))
            a._storage.watched = False
    assert outcomes[0] == outcomes[1]


def test_views_are_written_through():
    base = tg.rand(2, 3, requires_grad=True)
    a = base * 1
    view = xp.permute_dims(a, axes=(1, 0))
    view.mul_(2)
    assert a.grad_fn.name() != "MulBackward0" and tg.equal(view, a.T)
    a.sum().backward()
    assert base.grad.tolist() == [[2, 2, 2], [2, 2, 2]]


PAIRS = {"softmax": lambda x, run: run(x, axis=-1), "log_softmax": lambda x, run: run(x, axis=0),
         "gelu": lambda x, run: run(x),
         "layer_norm": lambda x, run: run(x, None, None, size=(8,), eps=1e-5)}


@pytest.mark.parametrize("switch", [tg.enable_grad, tg.no_grad, tg.inference_mode])
@pytest.mark.parametrize("op", [op for op in PAIRS if op in OPS and type(OPS[op].kernels[NumpyStorage]) is Pair])
def test_kernel_pairs(op, switch):
    path, x, outcomes = getattr(xp, op), tg.rand(4, 8, requires_grad=True), []
    assert type(path) is compiled.FastPath
    for run in (path, path.__wrapped__):
        with switch():
            out = PAIRS[op](x, run)
        gradient = tg.autograd.grad((out * out).sum(), x)[0].tolist() if out.requires_grad else None
        outcomes.append((out.tolist(), type(out.grad_fn), out.is_inference(), gradient,
                         getattr(out.grad_fn, "params", None)))
    assert outcomes[0] == outcomes[1] and (outcomes[0][3] is None) == (switch is not tg.enable_grad)


def test_a_kernel_pair_under_hooks_saves_what_its_definition_saves():
    noted, x = [], tg.rand(4, 8, requires_grad=True)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: noted.append(t.shape) or t, lambda t: t):
        xp.softmax(x, axis=-1)
    assert noted == [(4, 8)]


def test_record_is_what_it_is_in_python():
    a, b = leaf(1, 2), leaf(3, 4)
    for op, formulas in (("multiply", 3), ("exp", 1), ("sum", 1)):
        operands = (a, b) if op == "multiply" else (a,)
        steps = []
        for write in (compiled.record, record):
            out = getattr(xp, op)(*operands).detach()
            write(plans_of(OPS[op])[formulas], operands, tuple(t._node for t in operands), {}, out)
            steps.append(out._node)
        assert seen(steps[0]) == seen(steps[1]) and steps[0].time < steps[1].time
    with pytest.raises(TypeError):
        compiled.record(1, 2, 3, 4, 5)


def test_modes():
    a = leaf(1, 2)
    with tg.no_grad():
        assert (a * a).grad_fn is None
    with tg.inference_mode():
        assert (a * a).is_inference()
    assert not (a * a).is_inference() and not a.detach().mul(2).is_inference()
    noted = []
    with tg.autograd.graph.saved_tensors_hooks(lambda t: noted.append(t) or t, lambda t: t):
        y = a * a
    y.sum().backward()
    assert len(noted) == 2 and a.grad.tolist() == [2, 4]


def test_a_thread_that_was_in_inference_mode_keeps_its_lanes():
    def steps():
        a, seen = leaf(1, 2), []
        assert mode.record is compiled.record
        with tg.inference_mode():
            w = tg.ones(2)
        assert mode.record is compiled.record_careful
        for operand in (a, w):
            assert (a + operand).requires_grad
        assert (a * a).grad_fn.saved[0] is a
        for writer in (compiled.record_careful, record_careful):
            mode.record = writer
            for op in (lambda: a * w, lambda: tg.mul(w, a),
                       lambda: tg.linalg.cross(tg.ones(3, requires_grad=True), wide)):
                with pytest.raises(RuntimeError, match="^Inference tensors cannot be saved for backward"):
                    op()
        mode.watch(seen.append)
        assert mode.record is writers.watched and (a * a).grad_fn is seen[0]
        return True
    with tg.inference_mode():
        wide = tg.ones(3)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(steps).result()


def test_a_kernel_that_is_registered_later_counts():
    a = tg.ones(2)
    with tg.dispatch.OpDispatch.override("add", "cpu", lambda x, y: x * 10):
        assert (a + a).tolist() == [10, 10]
    with tg.dispatch.OpDispatch.override("exp", "cpu", lambda x: x * 10):
        assert a.exp().tolist() == [10, 10]
    assert (a + a).tolist() == [2, 2]


def test_operators_are_methods():
    method = tg.Tensor.__add__
    assert method.__name__ == "__add__" and method.__qualname__ == "Tensor.__add__" and method.__doc__ == "self + other"
    assert list(inspect.signature(method).parameters) == ["a", "b"]
    a = tg.ones(2)
    assert a.__add__(1).tolist() == [2, 2] and method(a, 1).tolist() == [2, 2] and a.__add__.__self__ is a
    assert a.__add__("1") is NotImplemented
    for wrong in ((), (a,), (a, 1, 2)):
        with pytest.raises(TypeError):
            method(*wrong)


# ── the way back ──────────────────────────────────────────────────────────────────────────────────────────────────────


def many(x, w, b):
    y = tg.nn.functional.linear(x, w, b).tanh() * x.sum(1, keepdim=True)
    y = (y - y.mean()) / (y.exp() + w.sum())
    return (y * y.clone().relu() + y[0] + (x.T.max() * b.sigmoid()) ** 2).sum() + w[0, 0] * b[1] + x.unbind(0)[0].sum()


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_gradients_are_those_of_pythons_engine(dtype, monkeypatch):
    tg.manual_seed(0)
    leaves = [tg.rand(*shape, dtype=dtype, requires_grad=True) for shape in ((4, 3), (2, 3), (2,))]

    def gradients():
        for t in leaves:
            t.grad = None
        loss = many(*leaves)
        loss.backward(retain_graph=True)
        loss.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            loss.backward()
        return [t.grad for t in leaves]
    ours = gradients()
    monkeypatch.setattr(sweep, "compiled", None)
    for a, b in zip(ours, gradients(), strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape
        tg.testing.assert_close(a, b)


def test_gradients_own_their_memory():
    a, b = leaf(1, 2), leaf(3, 4)
    (a * b).sum().backward()
    assert a.grad.data_ptr() != b.data_ptr() and b.grad.data_ptr() != a.data_ptr()
    a.grad = b.grad = None
    g = tg.tensor([1.0, 5.0])
    (a + b).backward(g)
    assert len({t.data_ptr() for t in (a.grad, b.grad, g)}) == 3
    (a + a + b).backward(g)
    assert a.grad.tolist() == [3, 15] and b.grad.tolist() == [2, 10] and g.tolist() == [1, 5]


def test_what_was_written_to_is_noticed():
    a = leaf(1, 2)
    x = a * 1
    y, z = x * x, a.exp()
    x.add_(1)
    z.add_(1)
    for out in (y, z):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


def test_an_error_in_a_formula_comes_through(monkeypatch):
    a = leaf(1, 2)
    y = (a * a).sum()
    (step,) = y.grad_fn.edges

    def fails(*args):
        raise ValueError("no")
    plan = step.plan
    monkeypatch.setattr(plan, "steps", ((plan.steps[0][0], fails, plan.steps[0][2]),))
    with pytest.raises(ValueError, match="no"):
        y.backward()


def test_threads_that_pull_one_step_at_once_free_it_once(monkeypatch):
    a = leaf(1, 2)
    y = a * a
    plan, many = y.grad_fn.plan, 8
    together = threading.Barrier(many)

    def waits(*args):
        together.wait(60)
        return plan_formula(*args)
    place, plan_formula, wants = plan.steps[0]
    monkeypatch.setattr(plan, "steps", ((place, waits, wants), *plan.steps[1:]))
    saved, before = y.grad_fn.saved, sys.getrefcount(y.grad_fn.saved)
    threads = [threading.Thread(target=lambda: y.sum().backward()) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert a.grad.tolist() == [2 * many, 4 * many]
    assert sys.getrefcount(saved) == before - 1        # the step's own


def test_steps_that_saved_numbers_alone_are_pulled_again():
    a = leaf(1, 2)
    for y in (tg.add(a, a, alpha=2), tg.cat([a, a]), tg.lerp(a, a, 0.5), a + 1, a.view(2, 1)):
        y.backward(tg.ones(y.shape))
        y.backward(tg.ones(y.shape))
    assert a.grad.tolist() == [16, 16]


def test_nothing_is_kept():
    a, b, w = leaf(1, 2), leaf(3, 4), tg.rand(3, 2, requires_grad=True)

    def work():
        y = xp.linear((a * b / 2 + a[:1]).view(1, 2).T.reshape(2), w, tg.ones(3)).softmax(-1).sum().exp()
        y.backward(retain_graph=True)
        y.backward()
        with tg.no_grad():
            a.grad.mul_(0.5).add_(b, alpha=2)
            xp.reshape(a, shape=(2, 1)).softmax(-1)
        for wrong in (lambda: a + tg.ones(3), lambda: a + "b", lambda: a.reshape(3), y.backward):
            with pytest.raises((RuntimeError, TypeError)):
                wrong()
    constants = (None, True) if sys.version_info < (3, 12) else ()       # later ones are not counted
    held = (*constants, np.dtype("float32"), a.array, b.array, tg.Tensor, NumpyStorage, plans_of(OPS["multiply"])[3],
            a._node)

    def counts():
        gc.collect()
        return [*map(sys.getrefcount, held), len(gc.get_objects()) // 20]
    for _ in range(20):
        work()
    before = counts()
    for _ in range(300):
        work()
    assert all(abs(after - earlier) < 100 for earlier, after in zip(before, counts(), strict=True))


# ── functions of arrays ───────────────────────────────────────────────────────────────────────────────────────────────

SHAPES = [(), (1,), (3,), (4, 3), (4, 1), (1, 3), (2, 4, 3), (2, 1, 3), (1, 1, 3), (2, 4, 1), (1, 1, 1, 1), (0, 3),
          (70, 1000), (1000,), (70, 1)]
WAYS = {"rows": lambda x: x, "columns": np.asfortranarray, "turned": lambda x: x.T,
        "with gaps": lambda x: x[..., ::2] if x.ndim else x,
        "swapped": lambda x: x.swapaxes(0, -1) if x.ndim else x,
        "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), x.dtype, x.size, 1).reshape(x.shape)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["f", "d"])
@np.errstate(all="ignore")
def test_functions_of_two_arrays_are_numpys(dtype, way):
    rng, run, laid = np.random.default_rng(0), OPS["subtract"].kernels[NumpyStorage], WAYS[way]
    for first in SHAPES:
        for second in SHAPES:
            a, b = (laid(rng.normal(size=shape).astype(dtype)) for shape in (first, second))
            try:
                expected = np.subtract(a, b)
            except ValueError:
                with pytest.raises(ValueError):
                    run(a, b)
                continue
            found = run(a, b)
            assert found.shape == expected.shape and found.dtype == expected.dtype and np.array_equal(found, expected)
            if min(expected.shape, default=1) > 1:
                assert found.strides == expected.strides
        for number in (2, -2.5, True, 1e300, 10**400, np.float32(2)):
            try:
                expected = np.subtract(a, number)
            except OverflowError:
                with pytest.raises(OverflowError):
                    run(a, number)
            else:
                assert (np.array_equal(run(a, number), expected)
                        and np.array_equal(run(number, a), np.subtract(number, a)))


@pytest.mark.parametrize("size", [5, 100_000])
def test_results_written_over_operands(size):
    run, expected = OPS["subtract"].kernels[NumpyStorage], np.arange(size, dtype="f") - np.arange(size, dtype="f")[::-1]
    a, b = np.arange(size, dtype="f"), np.ascontiguousarray(np.arange(size, dtype="f")[::-1])
    assert run(a.copy(), b, out=(out := a.copy())) is out and np.array_equal(out, expected)
    assert run(a, out := b.copy(), out) is out and np.array_equal(out, expected)
    memory = np.arange(size + 1, dtype="f")
    # shifted by one: what is written is read later, unless that is noticed
    run(memory[:-1], memory[1:], memory[1:])
    run(memory[:-1], 0, memory[1:])
    assert np.array_equal(memory[1:], [0, *[-1] * (size - 1)])
    row = np.arange(size, dtype="f")
    assert np.array_equal(run(row, row[2:3], row), np.arange(size, dtype="f") - 2)
    for wrong in (np.empty(size + 1, "f"), "out"):
        with pytest.raises((TypeError, ValueError)):
            run(a, b, out=wrong)
    fixed = a.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError):
        run(a, b, fixed)


@pytest.mark.parametrize("name", ["negative", "absolute", "square", "sqrt", "reciprocal"])
@pytest.mark.parametrize("way", WAYS)
def test_functions_of_one_array_are_numpys(name, way):
    run = OPS[name].kernels[NumpyStorage]
    for shape in SHAPES:
        x = WAYS[way](np.random.default_rng(0).uniform(0.1, 1, shape).astype("f"))
        found, expected = run(x), getattr(np, name)(x)
        np.testing.assert_array_equal(found, expected)
        if min(expected.shape, default=1) > 1:
            assert found.strides == expected.strides


def test_what_is_no_array_of_ours_goes_to_numpy():
    add, relu = OPS["add"].kernels[NumpyStorage], OPS["relu"].kernels[NumpyStorage]
    assert add(np.arange(3), 1).tolist() == [1, 2, 3] and add(np.ones(2, ">f4"), np.ones(2, "f")).tolist() == [2, 2]
    assert add(np.ones(2, "f"), np.ones(2)).dtype == np.float64 and relu(np.array([-1, 2])).tolist() == [0, 2]
    assert type(add(np.ones(2, "f").view(np.recarray), 1)) is np.recarray
    for wrong in ((), (1,), (np.ones(2),)):
        with pytest.raises(TypeError):
            add(*wrong)
    with pytest.raises(TypeError):
        relu(np.ones(2, "f"), np.ones(2, "f"), np.ones(2, "f"))
