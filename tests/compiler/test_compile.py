"""torch.compile: compiled calls agree with the program, notice changes between calls, and run eagerly, once, what a
graph cannot hold."""
import copy
import cProfile
import gc
import io
import linecache
import logging
import pickle
import random
import threading
import time
import warnings
import weakref
from collections import namedtuple
from contextlib import redirect_stdout
from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad._dynamo.eval_frame import OptimizedModule
from tensorgrad._dynamo.exc import BackendCompilerFailed, Unsupported
from tensorgrad._dynamo.testing import CompileCounter
from tensorgrad.compiler import guards
from tensorgrad.compiler.packed import PackedWeight
from tensorgrad.kernels.compiled import WANTED
from tensorgrad.nn import functional as F
from tensorgrad.utils._pytree import tree_leaves

pytestmark = cpu_only
SCALE, SEEN, COUNTS = 2.0, [], {"calls": 0}
Pair = namedtuple("Pair", "first second")


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch.compiler.reset()
    yield
    torch.compiler.set_stance("default")


def net():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 3)).eval()


def told(compiled):
    return compiled.explain()


def alike(got, want):
    """Assert that results are nested alike and equal, in values, dtypes and strides."""
    assert type(got) is type(want)
    for g, w in zip(tree_leaves(got), tree_leaves(want), strict=True):
        if isinstance(w, torch.Tensor):
            assert g.dtype is w.dtype and g.stride() == w.stride()
            torch.testing.assert_close(g, w)
        else:
            assert g == w


def same(program, *args, graphs=1, **kwargs):
    """Compare two compiled calls with the program, and return the compiled program."""
    compiled = torch.compile(program)
    for _ in range(2):
        with torch.no_grad():
            torch.manual_seed(1)
            want = program(*copy.deepcopy(args), **kwargs)
            torch.manual_seed(1)
            alike(compiled(*copy.deepcopy(args), **kwargs), want)
    assert len(told(compiled).graphs) == graphs, told(compiled)
    return compiled


# ── what is compiled ──────────────────────────────────────────────────────────────────────────────────────────────────

def by_name(x, *, y, shift=3):
    return {"sum": x + y, "rest": [x * SCALE, shift, None]}


def cached(x, past):
    return x + past[0][0], tuple((torch.cat([k, x]), v * 2) for k, v in past)


PAST = ((torch.ones(2, 4), torch.ones(3)),) * 2
PROGRAMS = {
    "module": lambda x: (net(), x), "names": lambda x: (by_name, x), "cache": lambda x: (cached, x, PAST),
    "lstm": lambda x: (nn.LSTM(4, 5, batch_first=True).eval(), x.expand(3, 2, 4) * 1),
    "encoder": lambda x: (nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1).eval(),
                          x[None], None, torch.tensor([[False, True]])),
    "input returned": lambda x: (lambda x: Pair(x, x + 1), x), "one twice": lambda x: (lambda x: [x + 1] * 2, x),
    "permuted": lambda x: (lambda x: (x.t() + 1, (x * 2).t()), x), "0-d": lambda x: (lambda x: x.sum() * 2, x),
    "empty": lambda x: (lambda x: x[:0] * 2, x),
    "drawn in vain": lambda x: (lambda x: (torch.rand(2), x + torch.rand(4))[1], x),
    "drawn": lambda x: (lambda x: F.dropout(x + torch.rand(4), 0.5), x),
    "channels last": lambda x: (nn.Conv2d(1, 3, 2).eval(),
                                torch.randn(2, 1, 4, 5).to(memory_format=torch.channels_last)),
    "double": lambda x: (lambda x: x / 3, x.double()), "integers": lambda x: (lambda x: x // 2 > 1, (x * 9).int()),
    "bfloat16": lambda x: (lambda x: x * 2 + 1, x.bfloat16())}


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_compute_what_they_do(name):
    program, *args = PROGRAMS[name](torch.randn(2, 4))
    same(program, *args, **({"y": torch.ones(4)} if name == "names" else {}))


def test_signatures_have_graphs_of_their_own():
    compiled = torch.compile(lambda x, k=1, how=None: x * k if how is None else x + len(how))
    x = torch.randn(2, 4)
    calls = [(x,), (x, 2), (x, 2.0), (x, True), (x[:1],), (x.double(),), (x, 1, ("a",)), (x, 1, ["a", "b"])]
    with torch._dynamo.config.patch(recompile_limit=20, cache_size_limit=20):
        for args in calls * 2:
            assert torch.equal(compiled(*args), compiled._torchdynamo_orig_callable(*args))
    assert len(told(compiled).graphs) == len(calls) and not told(compiled).reasons


def test_methods_nested_functions_and_classes():
    class Scaler:
        factor = 2

        def __init__(self):
            self.w = torch.ones(4)

        @torch.compile
        def go(self, x):
            return inner(x) * self.w * self.factor
    inner = torch.compile(lambda x: x + 1)
    x, scaler = torch.randn(2, 4), Scaler()
    assert torch.equal(scaler.go(x), (x + 1) * 2)
    scaler.factor = 3
    assert torch.equal(scaler.go(x), (x + 1) * 3)
    assert torch.compile(Scaler) is Scaler and len(told(Scaler.go).graphs) == 2 and not told(inner).graphs


# ── what runs as it is ────────────────────────────────────────────────────────────────────────────────────────────────

def counting(x):
    COUNTS["calls"] += 1
    return x + 1


def appending(x):
    SEEN.append(1)
    return x + 1


def setting(x):
    global LAST
    LAST = LAST + 1
    return x + 1


LAST = 0


def printing(x):
    print("once")
    return x + 1


def reading(x):
    return x + 1 if x.sum() > 0 else x - 1


def warning(x):
    warnings.warn("careful", stacklevel=1)
    return x


@torch.compiler.disable
def excluded(x):
    return x * 2


@pytest.mark.parametrize(("program", "reason"), [
    (counting, "changes COUNTS.calls"), (appending, "changes SEEN"), (setting, "changes global.LAST"),
    (printing, "calls print"), (reading, "a tensor that depends on the inputs is read"),
    (lambda x: x.add_(1), "writes to an input in place"), (lambda x: x.t(), "returns a view of an input"),
    (lambda x: x + random.random(), "calls random.random"), (lambda x: x * float(np.random.rand()), "draws random"),
    (lambda x: x * (time.time() > 0), "calls time.time"),
    (lambda x: excluded(x) + 1, "torch.compiler.disable excludes"), (warning, "gives a warning"),
    (lambda x: (torch._dynamo.graph_break(), x + 1)[1], "calls graph_break"), (lambda x: x.numpy() + 1, "is read"),
    (lambda x: x @ x, "raises RuntimeError")])
def test_programs_with_effects_run_as_they_are_and_have_them_once(program, reason):
    def run(function):
        """Run a function three times; return what can be seen of it."""
        SEEN.clear()
        COUNTS["calls"], random_state = 0, random.getstate()
        globals()["LAST"] = 0
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        seen = []
        with redirect_stdout(io.StringIO()) as out, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for i in range(3):
                x = torch.arange(8.0).reshape(2, 4) - i
                try:
                    seen.append(np.asarray(function(x)).tolist())
                except RuntimeError as error:
                    seen.append(str(error))
                seen.append(x.tolist())
        random.setstate(random_state)
        return seen, out.getvalue(), len(caught), len(SEEN), COUNTS["calls"], LAST, float(torch.rand(1))
    compiled = torch.compile(program)
    assert run(compiled) == run(program)
    assert sum(told(compiled).reasons.values()) == 3 and not told(compiled).graphs
    assert reason in str(told(compiled))


def test_modules_that_change_themselves_run_as_they_are():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.norm = 0, nn.BatchNorm1d(4)

        def forward(self, x):
            self.calls += 1
            return self.norm(x)
    model, x = Counter(), torch.randn(3, 4)
    compiled = torch.compile(model)
    with torch.no_grad():
        for _ in range(3):
            compiled(x)
        assert model.calls == 3 and model.norm.num_batches_tracked == 3
    assert told(compiled).reasons == {"writes to norm.num_batches_tracked, norm.running_mean, norm.running_var in "
                                      "place": 3}


def test_gradients_flow_through_eager_runs(caplog):
    model, x = net(), torch.randn(2, 4)
    compiled = torch.compile(model)
    with caplog.at_level(logging.INFO, logger="tensorgrad.compiler"):
        for _ in range(2):
            compiled(x).sum().backward()
    assert model[0].weight.grad is not None and len(caplog.records) == 1
    double = torch.compile(lambda x: x * 2)
    w = torch.ones(2, requires_grad=True)
    double(w).sum().backward()
    assert w.grad.tolist() == [2, 2] and not told(double).graphs
    assert torch.equal(torch.func.vmap(double)(x), x * 2) and "a function transform runs" in told(double).reasons
    with torch.autocast("cpu", dtype=torch.bfloat16):
        double(x)
    assert not told(double).graphs
    with torch.device("meta"):
        assert torch.compile(lambda x: x.shape[0] * torch.ones(2))(x).is_meta
    with torch.inference_mode():
        assert double(w).is_inference() and len(told(double).graphs) == 1


def test_inputs_that_graphs_do_not_take():
    double = torch.compile(lambda x: x + x)
    sparse = torch.eye(2).to_sparse()
    assert torch.equal(double(sparse).to_dense(), 2 * torch.eye(2))
    assert double(torch.ones(2, device="meta")).shape == (2,) and double(np.ones(2)).tolist() == [2, 2]
    assert len(told(double).reasons) == 3 and not told(double).graphs


def test_fullgraph_raises_where_a_graph_ends():
    for program in (reading, printing):
        with pytest.raises(Unsupported, match=r"test_compile\.py:\d+"), redirect_stdout(io.StringIO()) as out:
            torch.compile(program, fullgraph=True)(torch.ones(2))
        assert not out.getvalue()
    assert torch.compile(counting, fullgraph=True)(torch.ones(1)).tolist() == [2]


# ── what changes between calls ────────────────────────────────────────────────────────────────────────────────────────

def assign(model, other):
    model[0].weight = nn.Parameter(other[0].weight.clone())


def swap(model, other):
    model[3] = other[3]


def step(model, other, **options):
    for p in model.parameters():
        p.grad = torch.full_like(p, 0.5)
    torch.optim.SGD(model.parameters(), lr=0.1, **options).step()


CHANGES = {
    "assign": assign, "swap": swap, "load": lambda m, o: m.load_state_dict(o.state_dict()),
    "load by assignment": lambda m, o: m.load_state_dict(o.state_dict(), assign=True),
    "data": lambda m, o: setattr(m[0].weight, "data", o[0].weight.data),
    "data in place": lambda m, o: m[0].weight.data.add_(1), "detached": lambda m, o: m[0].weight.detach().mul_(2),
    "numpy": lambda m, o: m[0].weight.detach().numpy().__setitem__(0, 1.0), "item": lambda m, o: m[0].bias[0].fill_(9),
    "numpy of data": lambda m, o: m[0].weight.data.numpy().__setitem__(0, 1.0),
    "buffer": lambda m, o: m[2].running_mean.add_(1), "bytes": lambda m, o: m[0].weight.untyped_storage().fill_(0),
    "step": step, "foreach": lambda m, o: step(m, o, foreach=True), "fused": lambda m, o: step(m, o, fused=True),
    "swapped data": lambda m, o: torch.utils.swap_tensors(m[0].weight, nn.Parameter(o[0].weight.detach().clone())),
    "hook": lambda m, o: m[1].register_forward_hook(lambda module, args, out: out + 1),
    "patched": lambda m, o: setattr(m[1], "forward", lambda x: x * 3), "eps": lambda m, o: setattr(m[2], "eps", 1.0),
    "removed": lambda m, o: setattr(m[0], "bias", None), "appended": lambda m, o: m.append(nn.Tanh()),
    "parametrized": lambda m, o: nn.utils.parametrizations.weight_norm(m[0]),
    "all hooks": lambda m, o: HANDLES.append(nn.modules.module.register_module_forward_hook(
        lambda module, args, out: out + isinstance(module, nn.Linear)))}
HANDLES = []


@pytest.mark.parametrize("name", CHANGES)
@torch.no_grad()
def test_changes_of_the_model_are_seen(name):
    model, x = net(), torch.randn(2, 4)
    compiled = torch.compile(model)
    before = compiled(x)
    try:
        CHANGES[name](model, net())
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x))
        assert name == "parametrized" or not torch.equal(model(x), before)
        if name.startswith("numpy"):                    # later writes, too, which nothing dates
            kept = model[0].weight.detach().numpy()
            for value in (3.0, 4.0):
                kept[:] = value
                torch.testing.assert_close(compiled(x), model(x))
    finally:
        for handle in HANDLES:
            handle.remove()
    assert len(told(compiled).graphs) <= 2


@torch.no_grad()
def test_changes_around_a_function_are_seen():
    settings, row, table = {"k": 2}, [1.0], np.ones(4, np.float32)
    w = torch.ones(4)

    def program(x):
        return x * settings["k"] + row[0] * SCALE + torch.from_numpy(table) * w
    compiled, x = torch.compile(program), torch.randn(2, 4)
    changes = [lambda: settings.update(k=3), lambda: row.__setitem__(0, 2.0), lambda: table.__setitem__(0, 5),
               lambda: w.add_(1), lambda: globals().__setitem__("SCALE", 3.0), lambda: w.set_(torch.zeros(4))]
    for change in changes:
        alike(compiled(x), program(x))
        change()
        alike(compiled(x), program(x))
    globals()["SCALE"] = 2.0
    settings["unread"] = 1
    count = len(told(compiled).graphs)
    alike(compiled(x), program(x))
    assert len(told(compiled).graphs) == count + 1


@torch.no_grad()
def test_attributes_that_nobody_reads_do_not_matter():
    model, x = net(), torch.randn(2, 4)
    compiled = torch.compile(model)
    for i in range(3):
        model.note_of_the_trainer = i
        compiled(x)
    assert len(told(compiled).graphs) == 1
    model.double()
    alike(compiled(x.double()), model(x.double()))
    model.train()
    compiled(x.double())
    model.eval()
    alike(compiled(x.double()), model(x.double()))
    assert len(told(compiled).graphs) == 2


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────

def test_the_number_of_graphs_is_bounded():
    static = torch.compile(lambda x: x + 1, dynamic=False)
    limited, dynamic = (torch.compile(lambda x: sum(x[i] for i in range(len(x))), dynamic=how) for how in (None, True))
    for n in range(1, 13):
        x = torch.ones(n)
        assert static(x).tolist() == [2] * n and limited(x).item() == dynamic(x).item() == n
    assert [len(told(each).graphs) for each in (static, limited, dynamic)] == [8, 8, 12]
    assert all(any("recompile_limit" in reason for reason in told(each).reasons) for each in (static, limited))
    x = torch.ones(20)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    limited(x)
    assert len(told(limited).graphs) == 9


def test_stances():
    compiled, x = torch.compile(lambda x: x + 1), torch.ones(2)
    compiled(x)
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(x)
        with pytest.raises(RuntimeError, match="Detected recompile when torch.compile stance is 'fail_on_recompile'"):
            compiled(x.double())
    with torch.compiler.set_stance("eager_on_recompile"):
        compiled(x.double())
    assert len(told(compiled).graphs) == 1

    @torch.compiler.set_stance("force_eager")
    def forced():
        return compiled(x)
    forced()
    assert told(compiled).reasons["the stance is force_eager"] == 1 and told(compiled).graphs[0].calls == 2
    with torch.compiler.set_stance("eager_then_compile"):
        compiled(x.int())
        assert len(told(compiled).graphs) == 1
        compiled(x.int())
    assert len(told(compiled).graphs) == 2
    torch.compiler.reset()
    assert not told(compiled).graphs
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        torch.compiler.set_stance("nonsense")


def test_is_compiling_is_true_in_a_trace():
    seen = []
    compiled = torch.compile(lambda x: x + torch.compiler.is_compiling())
    assert compiled(torch.ones(1)).tolist() == [2] and not torch.compiler.is_compiling() and not seen


def test_backends():
    model, x, counter = net(), torch.randn(2, 4), CompileCounter()
    compiled = torch.compile(model, backend=counter)
    alike(compiled(x).detach(), model(x).detach())
    compiled(x).sum().backward()
    assert counter.frame_count == 1 and model[0].weight.grad is not None
    assert torch.equal(torch.compile(lambda x: {"y": x.sin()}, backend=lambda gm, inputs: gm.forward)(x)["y"], x.sin())
    with pytest.raises(BackendCompilerFailed, match="ValueError"):
        torch.compile(lambda x: x + 1, backend=lambda gm, inputs: int("x"))(x)
    for backend in ("eager", "aot_eager"):
        assert torch.compile(reading, backend=backend)(x).shape == x.shape


# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────────────

@torch.no_grad()
def test_copies_pickles_and_compilation_in_place():
    model, x = net(), torch.randn(2, 4)
    compiled = torch.compile(model)
    want = compiled(x)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert isinstance(other, OptimizedModule) and other._orig_mod is not model
        alike(other(x), want)
        assert len(told(other).graphs) == 1
    model.compile()
    alike(model(x), want)
    assert list(model.state_dict())[0] == "0.weight" and len(model._compiled_call_impl.entries) == 1
    alike(pickle.loads(pickle.dumps(model))(x), want)


def test_threads_compile_and_call_one_model():
    model = net()
    xs = [torch.randn(n, 4) for n in (1, 2, 3)]
    with torch.no_grad():
        want = [model(x) for x in xs]
    compiled, failed = torch.compile(model), []

    def work(seed):
        try:
            with torch.no_grad():
                for i in range(12):
                    k = (seed + i) % 3
                    torch.testing.assert_close(compiled(xs[k]), want[k])
            compiled(xs[0])
        except Exception as error:
            failed.append(error)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(told(compiled).graphs) == 2       # for one row, and for more


@torch.no_grad()
def test_explanations_tell_what_became_of_the_calls():
    model = net()
    compiled = torch.compile(model)
    text = str(compiled.explain(torch.ones(2, 4)))
    assert "Sequential: 1 graph" in text and "float32[2, 4]; 1 calls" in text and "linear" in text and "ahead" in text
    model[2].eps = 0.5
    compiled(torch.ones(2, 4))
    assert "graph 1: float32[2, 4]; 1 calls; replaced, since something that it relied on changed" in str(told(compiled))
    kept = model[0].weight.detach().numpy()
    assert kept is not None and torch._dynamo.explain(model)(torch.ones(2, 4)).graph_count == 1
    assert torch._dynamo.explain(reading)(torch.ones(2)).graph_break_count == 1
    with pytest.raises(RuntimeError, match="runs as it is"):
        torch.compile(model, backend="eager").explain()


# ── guards ────────────────────────────────────────────────────────────────────────────────────────────────────────────

def test_checks_in_python_and_in_c_agree():
    cell, changed = (lambda: value).__closure__[0] if (value := 1.5) else None, []
    table, row = {"a": 1, "b": 2.5, "c": table_entry}, ["x", 3]
    flat = (table, ("a", "b"), 3, (1, 2.5), row, None, 0, ("x", 3), cell, None, 0, (1.5,), Holder, ("size",), -1, (4,))
    prepared = guards.prepare(flat)

    def both():
        found = {guards.same_places(flat, prepared), guards._same_places(flat)}
        assert len(found) == 1
        return found.pop()
    assert both()
    for change, back in ((lambda: table.update(a=2), lambda: table.update(a=1)),
                         (lambda: table.update(d=0), lambda: table.pop("d")),
                         (lambda: row.append(1), lambda: row.pop()),
                         (lambda: setattr(Holder, "size", 5), lambda: setattr(Holder, "size", 4)),
                         (lambda: setattr(cell, "cell_contents", 2), lambda: setattr(cell, "cell_contents", 1.5))):
        change()
        changed.append(both())
        back()
        assert both()
    table["b"] = float("2.5")
    assert both() and changed == [False] * 5
    if guards.same_places is not guards._same_places:
        for call in (lambda: guards.prepare((1, 2, 3)), lambda: guards.prepare((1, None, 0, ())),
                     lambda: guards.same_places(flat, None), lambda: guards.same_places((), prepared),
                     lambda: guards.same_tensors((1,) * 5)):
            with pytest.raises(TypeError):
                call()


class Holder:
    size = 4


table_entry = object()


@torch.no_grad()
def test_graphs_of_one_program_share_what_they_compute_ahead():
    model = net()
    compiled = torch.compile(model, dynamic=False)

    def arrays():
        runs = [entry.run for entry in told(compiled).graphs]
        return [array for run in runs for node, array in run._settled[0].items() if node.op == "call_function"]
    for change in (lambda: None, lambda: model[0].weight.data.mul_(2)):
        change()
        for n in (2, 3, 4):
            x = torch.randn(n, 4)
            alike(compiled(x), model(x))
        assert 3 * len({id(array) for array in arrays()}) == len(arrays()) > 0
    kept = model[0].weight.detach().numpy()
    for value in (1, 2):                                # nothing dates these writes
        kept[:] = value
        for n in (2, 3, 4):
            alike(compiled(torch.ones(n, 4)), model(torch.ones(n, 4)))


def test_decorated_functions_are_followed():
    @torch.no_grad()
    def program(x):
        return x * FACTORS[0]
    compiled, x = torch.compile(program), torch.ones(2, requires_grad=True)
    with torch.no_grad():
        for factor in (2.0, 3.0):
            FACTORS[0] = factor
            assert compiled(x).tolist() == [factor] * 2
    assert len(told(compiled).graphs) == 2 and torch.compile(torch.sin)(torch.zeros(1)).tolist() == [0]


FACTORS = [1.0]


@torch.no_grad()
def test_frozen_models_let_go_of_their_parameters():
    model, x = net(), torch.randn(2, 4)
    want, arrays = model(x), [weakref.ref(tensor.array) for tensor in model[:3].state_dict().values() if tensor.ndim]
    compiled = torch.compile(model, freeze=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), want)
        gc.collect()
        if WANTED:                          # without kernels, runs read the parameters' own arrays: nothing is packed
            assert not any(array() is not None and array().size > 6 for array in arrays)
    for use in (lambda: compiled(x[:1]), lambda: model(x), model.state_dict, lambda: pickle.dumps(model)):
        with pytest.raises(RuntimeError, match="The original parameters have been discarded for memory efficiency"):
            use()
    assert model[0].weight.shape == (6, 4) and "Erased(Linear 0.weight" in repr(model[0].weight)


@torch.no_grad()
@pytest.mark.skipif(not WANTED, reason="without kernels, nothing is packed")
def test_freezing_lets_go_of_each_parameter_once_it_is_packed(monkeypatch):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 64)).eval()
    arrays, alive = [weakref.ref(model[i].weight.array) for i in (0, 2)], []
    packed = PackedWeight.__call__

    def counted(self, *weights):
        alive.append(sum(array() is not None for array in arrays))
        return packed(self, *weights)
    monkeypatch.setattr(PackedWeight, "__call__", counted)
    torch.compile(model, freeze=True)(torch.randn(4, 16))
    assert alive == [2, 1]                              # the larger one first


def test_no_garbage_is_collected_in_a_trace():
    """Callbacks and finalizers of collections are not part of the program: here they ask for the time."""
    times, threshold = [], gc.get_threshold()

    def called(phase, info):
        times.append(time.time())
    gc.callbacks.append(called)
    gc.set_threshold(1)
    try:
        compiled = torch.compile(lambda x: [x * i for i in range(9)][-1])
        assert compiled(torch.ones(2)).tolist() == [8, 8] and times
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(called)
    assert not compiled.explain().reasons and gc.isenabled()


@torch.no_grad()
def test_an_input_that_is_given_twice_is_one_object():
    compiled, x, y = torch.compile(lambda a, b: a * 2 if a is b["c"] else a + b["c"]), torch.ones(2), torch.zeros(2)
    assert [compiled(a, {"c": b}).tolist() for a, b in ((x, x), (x, y), (x, x))] == [[2, 2], [1, 1], [2, 2]]
    assert len(told(compiled).graphs) == 2
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()        # which projects one input at once
    x = torch.randn(2, 3, 8)
    found, want = torch.compile(attention)(x, x, x)[0], attention(x, x, x)[0]
    torch.testing.assert_close(found, want)
    assert found.stride() == want.stride()


@torch.no_grad()
def test_a_program_that_keeps_something_in_its_first_call_is_compiled_later():
    class Net(nn.Module):
        calls = 0

        @cached_property
        def scale(self):
            return 3.0

        def forward(self, x):
            with LOCK:
                return x * self.scale

    class Counting(Net):
        def forward(self, x):
            self.calls += 1
            return x * self.calls
    for kind, runs, graphs in ((Net, [3.0, 3.0, 3.0, 3.0], 1), (Counting, [1.0, 2.0, 3.0, 4.0], 0)):
        compiled = torch.compile(kind())
        assert [compiled(torch.ones(1)).item() for _ in range(4)] == runs
        assert len(told(compiled).graphs) == graphs


LOCK = threading.Lock()


def test_a_profiler_goes_on_after_a_trace():
    fast, profile = torch.compile(lambda x: x * 2), cProfile.Profile()
    profile.enable()
    try:
        fast(torch.ones(2))
        sorted([2, 1])
    finally:
        profile.disable()
    assert not fast.explain().reasons
    assert any("sorted" in str(entry.code) for entry in profile.getstats())


def test_an_error_of_the_program_is_raised_though_its_text_reads_a_file():
    linecache.clearcache()
    with pytest.raises(RuntimeError, match="^mat1 and mat2 shapes cannot be multiplied"):
        torch.compile(lambda x: x @ torch.ones(3, 2), fullgraph=True)(torch.ones(2, 2))


def test_globals_named_like_attributes_are_not_guarded():
    scope = {"by": 1, "scale": 3.}
    exec("def function(x, given):\n    return x * given.by * scale", scope)
    given = SimpleNamespace(by=2)
    compiled, x = torch.compile(scope["function"]), torch.ones(2)
    for scope["by"] in range(3):
        assert compiled(x, given).tolist() == [6., 6.]
    assert len(compiled.explain().graphs) == 1
    scope["scale"] = 5.
    assert compiled(x, given).tolist() == [10., 10.]


def test_containers_with_odd_methods_are_followed():
    class Pair(tuple):
        def __len__(self):
            raise NotImplementedError

        __iter__ = __len__

    model = nn.Linear(2, 2)
    model.pair = Pair([3, torch.ones(2)])
    model.forward = lambda x: x * model.pair[0] + model.pair[1]
    assert torch.compile(model)(torch.ones(2)).tolist() == [4., 4.]
