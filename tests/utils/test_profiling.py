"""Measuring beside PyTorch: the profiler, benchmark's tables, and counts of operations."""
import gzip
import json

import pytest
from support import Programs

import tensorgrad as tg

program = Programs()


def attempts(*calls):
    seen = []
    for call in calls:
        try:
            seen.append(call())
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
    return seen


@program
def what_a_profile_tells(torch):
    import importlib
    P = importlib.import_module(f"{torch.__name__}.profiler")
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), torch.ones(4, 8)
    with P.profile(activities=[P.ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
        with P.record_function("inference"):
            y = model(x)
        y.sum().backward()
    averages = prof.key_averages()
    event = next(e for e in averages if e.key == "inference")
    tables = [averages.table(sort_by=key, row_limit=2)
              for key in ("cpu_time_total", "self_cpu_memory_usage", "count", "self_device_time_total")]
    first = prof.events()[0]
    return (event.count, event.cpu_time_total > 0, event.cpu_time > 0, event.device_time_total, event.device_type.name,
            event.node_id, event.is_async, event.is_user_annotation, tables[0].splitlines()[1].split(),
            ["Self CPU time total" in table for table in tables],
            "Input Shapes" in prof.key_averages(group_by_input_shape=True).table(), first.time_range.elapsed_us() >= 0,
            averages.total_average().count > 3,
            averages.table(header="hello").splitlines()[1])


@program
def names_of_calls(torch):
    import importlib
    P = importlib.import_module(f"{torch.__name__}.profiler")
    F, x = torch.nn.functional, torch.ones(3, 3, requires_grad=True)
    model, places = torch.nn.Linear(3, 2), torch.tensor([0, 2])
    optimizer, target = torch.optim.SGD(model.parameters()), torch.tensor([0, 1, 1])
    with P.profile(record_shapes=True) as prof:
        y = (x * 2 + x) @ x / 3 - 1
        _ = y[0], y[1:], y[places], -y, 2 - y, y.T, y.mT, y.sum(1), y.exp(), y.relu(), y.reshape(9), y.double(), y ** 2
        _ = torch.cat([x, y]), torch.zeros(2), F.softmax(y, 1), F.gelu(y), x.numel(), x.size(), x.dim(), x.shape, y > 0
        _ = y.as_strided([2, 2], [1, 2]), F.dropout(y, 0.5), torch.linalg.det(y), y.clone().mul_(2)
        with P.record_function("block", "7"):
            loss = F.cross_entropy(model(y), target)
        if loss:
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    top = [e for e in prof.events() if e.cpu_parent is None]
    pairs = [e for e in prof.events() if e.name in ("MmBackward0", "AddmmBackward0", "block", "aten::as_strided")]
    return ([e.name for e in top if "engine" not in e.name and e.name != "aten::ones_like"],
            {e.name: e.cpu_parent and e.cpu_parent.name for e in pairs if e.name != "aten::as_strided"},
            [(e.input_shapes[:3], e.concrete_inputs[:3], e.is_user_annotation) for e in top
             if e.name in ("aten::as_strided", "block")],
            [e.input_shapes[:1] for e in top if e.name in ("aten::cat", "aten::add")])


@program
def traces_of_a_backward(torch):
    import importlib
    import tempfile
    P = importlib.import_module(f"{torch.__name__}.profiler")
    x = torch.ones(2, requires_grad=True)
    with P.profile() as prof:
        prof.add_metadata_json("key", "[1]")
        F = torch.nn.functional
        F.binary_cross_entropy_with_logits(torch.add(x, 1), torch.ones(2)).backward()
        for _ in torch.utils.data.DataLoader([1, 2]):
            pass
    path = f"{tempfile.mkdtemp()}/t.json"
    prof.export_chrome_trace(path)
    with open(path) as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    names = {e["ts"]: (e["name"], e["cat"]) for e in events if e["ph"] == "X" and "evaluate" not in e["name"]}
    return ([(e["id"], e["ph"], names[e["ts"]]) for e in sorted(events, key=lambda e: (e.get("id", 0), e["ph"] == "f"))
             if e.get("cat") == "fwdbwd"], trace["key"], [e["name"] for e in events[-4:]],
            sum(e["name"].startswith("enumerate(DataLoader)#_SingleProcessDataLoaderIter") for e in events),
            [isinstance(trace[key], int) for key in ("schemaVersion", "baseTimeNanoseconds")],
            importlib.import_module(f"{torch.__name__}.autograd.profiler")._is_profiler_enabled)


@program
def steps_of_a_schedule(torch):
    import importlib
    P = importlib.import_module(f"{torch.__name__}.profiler")
    seen = []
    with P.profile(activities=[P.ProfilerActivity.CPU],
                   schedule=P.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1), acc_events=True,
                   on_trace_ready=lambda p: seen.append((p.step_num, len(p.key_averages()) > 0))) as prof:
        for _ in range(12):
            torch.ones(2).exp()
            prof.step()
    fresh = P.profile(activities=[P.ProfilerActivity.CPU])
    return seen, attempts(fresh.stop, fresh.key_averages, lambda: prof.export_stacks("x"))


@program
def measurements(torch):
    import importlib
    B = importlib.import_module(f"{torch.__name__}.utils.benchmark")

    def measured(times, description="d", sub="s", label="l", threads=1, env=None):
        return B.Measurement(2, times, B.TaskSpec("x = 1", "y = 2\nz = 3", label=label, sub_label=sub,
                                                  description=description, num_threads=threads, env=env))
    some = [measured(times) for times in ([1e-3], [1e-3] * 4, [1e-3, 2e-3, 3e-3, 4e-3, 5e-3],
                                          [1e-3, 1.1e-3, 1.2e-3, 1.3e-3, 1.25e-3])]
    compare = B.Compare([measured([1e-3 * k], "a", f"s{k}") for k in (1, 1.005, 1.05, 1.2, 2.1, 6, 40)] + [
        measured([5e-3], "bb", "s1"), measured([1e-6], "bb", "longer", threads=2), measured([3.0], label="other"),
        measured([7e-3], env="E", label="third")])
    tables = [str(compare)]
    compare.colorize()
    compare.highlight_warnings()
    compare.extend_results([measured([1e-3, 2e-3, 3e-3, 4e-3, 5e-3], "a", "varies")])
    tables.append(str(compare))
    compare.trim_significant_figures()
    compare.colorize(rowwise=True)
    tables.append(str(compare))
    return ([repr(m).partition("\n")[2] for m in some],
            [(m.median, m.mean, m.significant_figures, m.has_warnings, m.title, m.as_row_name) for m in some],
            tables, [B.select_unit(t)[0] for t in (1e-9, 1e-5, 1, 1e3)],
            [m.times for m in B.Measurement.merge([some[0], some[1], measured([1.0], "e")])],
            B.Timer("x", setup="\n  x = 1\n").timeit(3).number_per_run,
            attempts(lambda: B.Compare([1]), lambda: B.Timer("y").timeit(1)))


@program
def operations(torch):
    import importlib
    Counter = importlib.import_module(f"{torch.__name__}.utils.flop_counter").FlopCounterMode
    nn = torch.nn

    def count(call, **options):
        with Counter(display=False, **options) as counter:
            call()
        return counter.get_total_flops(), sorted((name, sorted((str(op), n) for op, n in counts.items()))
                                                 for name, counts in counter.get_flop_counts().items())
    x, w, b, v = (torch.ones(5, 8, requires_grad=True), torch.ones(8, 6, requires_grad=True), torch.ones(3, 4, 5),
                  torch.ones(8))
    image, model = (torch.ones(2, 4, 8, 8, requires_grad=True),
                    nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2))))
    return [count(call) for call in (
        lambda: x @ w, lambda: (x @ w).sum().backward(), lambda: b @ b.mT, lambda: b @ torch.ones(5, 2), lambda: x @ v,
        lambda: v @ v,
        lambda: torch.addmm(torch.zeros(6), x, w), lambda: torch.baddbmm(torch.zeros(3, 4, 4), b, b.mT),
        lambda: torch.einsum("bij,bkj->bik", b, b),
        lambda: torch.einsum("ij,jk,kl", x, w, w.t()), lambda: torch.tensordot(x, w, 1), lambda: model(x),
        lambda: model(x).sum().backward(),
        lambda: nn.Linear(5, 2)(b).sum().backward(),
        lambda: nn.Conv2d(4, 8, 3, groups=2, padding=1, stride=2)(image).sum().backward(),
        lambda: nn.Conv2d(4, 2, 3)(image.detach()).sum().backward(),
        lambda: nn.ConvTranspose2d(4, 3, 3, stride=2)(image).sum().backward(),
        lambda: nn.Conv1d(4, 3, 3)(torch.ones(2, 4, 8)), lambda: nn.MultiheadAttention(8, 2)(x, x, x),
        lambda: nn.functional.scaled_dot_product_attention(b, b, b),
        lambda: nn.TransformerEncoderLayer(8, 2, 16)(torch.ones(3, 5, 8)), lambda: nn.LSTM(8, 4)(x),
        lambda: torch.ones(2, 3, 4, 5) @ torch.ones(3, 5, 6),
        lambda: x.relu())]


test_programs = program.test()


def test_traces_are_written(tmp_path):
    with tg.profiler.profile(with_stack=True) as prof:
        tg.ones(2).exp()
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    prof.export_chrome_trace(str(tmp_path / "t.json.gz"))
    prof.export_stacks(str(tmp_path / "stacks"))
    trace = json.loads((tmp_path / "t.json").read_text())
    assert (json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"] == trace["traceEvents"]
            and {"aten::exp"} <= {e["name"] for e in trace["traceEvents"]})
    assert "test_traces_are_written" in (tmp_path / "stacks").read_text()
    handler = tg.profiler.tensorboard_trace_handler(str(tmp_path / "runs"), use_gzip=True)
    handler(prof)
    assert [path.name.endswith(".pt.trace.json.gz") for path in (tmp_path / "runs").iterdir()] == [True]


def test_a_table_of_operations(capsys):
    model = tg.nn.Sequential(tg.nn.Linear(8, 4), tg.nn.Linear(4, 2))
    from tensorgrad.utils.flop_counter import FlopCounterMode, register_flop_formula
    with FlopCounterMode():
        model(tg.ones(100, 8))
    assert capsys.readouterr().out.splitlines()[:4] == [
        "Module             FLOP  % Total", "---------------  ------  -------", "Global           8.000K  100.00%",
        " - aten.addmm    8.000K  100.00%"]
    with FlopCounterMode(display=False, custom_mapping={"exp": lambda x, out_shape: 7 * x[0]}) as counter:
        tg.exp(tg.ones(3))
    assert counter.get_flop_counts()["Global"] == {tg._ops.ops.aten.exp: 21}

    def elements(x, out_val):
        return out_val.numel()
    elements._get_raw = True
    with FlopCounterMode(display=False, custom_mapping={tg._ops.ops.aten.exp: elements}) as counter:
        tg.exp(tg.ones(3, 2))
    with pytest.warns(UserWarning, match="mods argument is not needed"):
        FlopCounterMode(model)
    assert counter.get_total_flops() == 6 and register_flop_formula("nothing_of_this_name")(len) is len


def test_what_is_not_timed():
    with pytest.raises(NotImplementedError, match="Valgrind"):
        tg.utils.benchmark.Timer("1").collect_callgrind()
    with pytest.raises(NotImplementedError, match="statements of Python"):
        tg.utils.benchmark.Timer("int a;", language="cpp")
    assert len(tg.utils.benchmark.Timer("1 + 1").adaptive_autorange(max_run_time=0.01).times) >= 4
