"""Answers of the smaller namespaces: backends, missing devices, compilers, testing, futures, profiler, hub."""
import contextlib
import copy
import functools
import importlib
import inspect
import io
import json
import math
import pickle
import tempfile
import warnings

import pytest
from side_by_side import attempt
from support import Programs, cpu_only, skip_if_built_with_cuda

import tensorgrad

program = Programs()


def importing(torch, *names):
    for name in names:
        importlib.import_module(f"{torch.__name__}.{name}")


@program
def switches_of_backends(torch):
    skip_if_built_with_cuda(torch)
    importing(torch, "backends")
    backends = torch.backends
    # a library that a test imported may have called PyTorch's `disable_global_flags`
    with getattr(backends, "__allow_nonbracketed_mutation")():
        found = changed_switches(torch, backends)
        backends.disable_global_flags()
        return found, backends.flags_frozen(), attempt(lambda: setattr(backends.cudnn, "benchmark", True))


def changed_switches(torch, backends):
    before = [backends.cudnn.enabled, backends.cudnn.benchmark, backends.cudnn.deterministic, backends.cudnn.allow_tf32,
              backends.cuda.matmul.allow_tf32, backends.cudnn.is_available(), backends.cudnn.version(),
              backends.mps.is_available(),
              backends.mps.is_built(),
              backends.mha.get_fastpath_enabled(),
              backends.cuda.flash_sdp_enabled(), backends.cuda.math_sdp_enabled(),
              backends.cuda.is_flash_attention_available(),
              backends.mkldnn.enabled]
    backends.cudnn.benchmark = backends.cudnn.deterministic = True
    with backends.cudnn.flags(enabled=True, benchmark=False):
        inside = backends.cudnn.benchmark, backends.cudnn.deterministic
    after = backends.cudnn.benchmark, backends.cudnn.deterministic
    backends.cudnn.benchmark = backends.cudnn.deterministic = False
    backends.cuda.matmul.allow_tf32 = True
    precision = torch.get_float32_matmul_precision()
    backends.cuda.matmul.allow_tf32 = False
    return (before, inside, after, precision, torch.get_float32_matmul_precision(),
            type(backends.cpu.get_cpu_capability()))


@program
def devices_that_are_not_there(torch):
    importing(torch, "mps", "xpu", "mtia", "cpu")
    calls = [lambda m=m, f=f: getattr(getattr(torch, m), f)() for m, f in (
        ("mps", "is_available"), ("mps", "device_count"), ("mps", "synchronize"), ("mps", "empty_cache"),
        ("mps", "seed"), ("mps", "get_rng_state"), ("xpu", "is_available"), ("xpu", "device_count"),
        ("xpu", "current_device"), ("xpu", "synchronize"),
        ("xpu", "get_device_name"),
        ("xpu", "memory_allocated"),
        ("mtia", "is_available"), ("mtia", "device_count"), ("mtia", "synchronize"), ("mtia", "empty_cache"),
        ("cpu", "is_available"), ("cpu", "device_count"), ("cpu", "current_device"), ("cpu", "synchronize"))]
    return [attempt(call) for call in calls]


@program
def compilers(torch):
    importing(torch, "compiler", "_dynamo", "jit")
    calls = []

    @torch.jit.unused
    def unused(x):
        return x

    @torch.jit.ignore
    def ignored(x):
        return x

    @torch.compiler.disable
    def disabled(x):
        return x

    @torch.compiler.disable(recursive=False)
    def also(x):
        calls.append(x)
        return x
    torch._dynamo.config.suppress_errors = False
    return (unused(1), ignored(2), disabled(4), also(5), torch.jit.is_scripting(), torch.jit.is_tracing(),
            torch.jit.annotate(int, 3), torch.jit.isinstance([1, 2], list[int]),
            torch.jit.isinstance({"a": 1.0}, dict[str, int]),
            torch.compiler.is_compiling(),
            attempt(lambda: torch.compile(len, mode="nonsense")),
            attempt(lambda: torch.compile(len, mode="default", options={})))


@program
def settings_of_the_compiler(torch):
    """Change settings for good, for a block and for a function, and take them back."""
    importing(torch, "_dynamo.config", "_inductor.config")
    dynamo, inductor = torch._dynamo.config, torch._inductor.config
    saved = inductor.save_config()
    inductor.coordinate_descent_tuning = inductor.triton.unique_kernel_names = True
    with inductor.patch({"triton.cudagraphs": True, "max_autotune": True}):
        out = [inductor.triton.cudagraphs, inductor.max_autotune]

    @inductor.patch(max_autotune=True)
    def function():
        return inductor.max_autotune
    out += [function(), function(), inductor.max_autotune, inductor.triton.cudagraphs]
    dynamo.cache_size_limit = 33                # an alias
    with dynamo.patch("recompile_limit", 7):
        out += [dynamo.recompile_limit, dynamo.cache_size_limit]
    out += [dynamo.recompile_limit, attempt(lambda: dynamo.no_setting), attempt(lambda: inductor.no_setting)]
    dynamo.recompile_limit = 8
    inductor.load_config(saved)
    return [*out, dynamo.cache_size_limit, inductor.coordinate_descent_tuning]


@program
def compiled_modules_and_functions(torch):
    """Ask the objects from torch.compile for their attributes, and set and delete some."""
    class Net(torch.nn.Module):
        kind = "net"

        def __init__(self):
            super().__init__()
            self.inner, self.tags = torch.nn.Linear(2, 1), [1]
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            return self.inner(x)

        def extra(self):
            return self.tags

        def __len__(self):
            return 3

    net = Net()
    compile = functools.partial(torch.compile, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")         # of what PyTorch imports for it
        model = compile(net)
    out = [type(model).__name__, isinstance(model, torch._dynamo.OptimizedModule), isinstance(model, Net), repr(model),
           list(model.state_dict()), [name for name, _ in model.named_modules()],
           [name for name, _ in model.named_parameters()], model._orig_mod is net, model.kind, model.extra(),
           len(model)]
    model.tags, model.fresh, model.scale = 5, 6, torch.nn.Parameter(torch.ones(1))
    out += [net.tags, net.fresh, list(net.state_dict()), "fresh" in dir(model), "fresh" in vars(model)]
    del model.fresh
    out += [hasattr(net, "fresh"), model.eval() is model, net.training, model.training, model.train().training,
            net.training, model.to(torch.float64) is model, str(net.inner.weight.dtype),
            str(model.load_state_dict(model.state_dict())),
            attempt(lambda: model.nothing), attempt(lambda: model[0]), attempt(lambda: len(compile(net.inner))),
            [name for name, _ in torch.nn.Sequential(model).named_parameters()]]

    def double(x, factor=2):
        "x times a factor"
        return factor * x
    double.mark = 1
    for function in (compile(double), compile()(double), torch.compiler.disable(double),
                     compile(compile(double)), torch.compiler.disable(double, recursive=False)):
        out += [function is double, getattr(function, "_torchdynamo_orig_callable", double) is double, function.mark,
                function.__name__, function.__doc__, str(inspect.signature(function))]
    out += [compile(Net) is Net, torch.compile(net, disable=True) is net, compile(net.extra).__name__,
            torch.compiler.disable(double)._torchdynamo_disable, type(torch.compiler.disable(net)).__name__,
            torch._dynamo.eval_frame.innermost_fn(compile(double)) is double,
            attempt(lambda: compile()(None))]
    return out


@program
def distributed_without_a_group(torch):
    skip_if_built_with_cuda(torch)
    importing(torch, "distributed")
    d = torch.distributed
    return [d.is_initialized(), d.is_nccl_available(), d.is_torchelastic_launched(), attempt(d.get_rank),
            attempt(d.get_world_size), attempt(d.barrier)]


@program
def close_and_not(torch):
    importing(torch, "testing")
    x, t = torch.tensor([1.0, 2.0, 4.0]), torch.testing.assert_close
    nan = torch.tensor([float("nan")])
    pairs = [(x, x + 1e-7), (x, x + 1), (x.reshape(1, 3), x.reshape(1, 3) * 2), (x, x[:2]), (x, x.double()), (x, 1.0),
             (1.0, 1.5), (1, 2), (1j, 2j), (1, 1.0), (True, False), (None, None), (None, 1), ("a", "a"),
             (torch.tensor(1.0), torch.tensor(2.0)), (torch.tensor([1, 2]), torch.tensor([2, 2])),
             (torch.tensor([True, False]), torch.tensor([False, False])), ([x, x], [x, x + 1]), ([x], [x, x]),
             ({"a": x}, {"b": x}), ({"a": x}, {"a": x + 1}), ({"a": [x, (x, x)]}, {"a": [x, (x, -x)]}),
             (x.numpy(), x.numpy() + 1), (x, x.numpy()), (nan, nan),
             (torch.zeros(0), torch.zeros(0)),
             (torch.tensor([1 + 2j]), torch.tensor([1 + 3j])),
             (x.half(), x.half() * 1.0001),
             (float("inf"), float("inf")),
             (torch.tensor([0.0]), torch.tensor([1.0]))]
    options = [{"rtol": 0.1}, {"rtol": 0, "atol": 0}, {"rtol": 0, "atol": 2}, {"msg": "words"},
               {"msg": lambda text: "more: " + text}, {"check_stride": True}]
    def shown(call):
        return [str(part).replace("torch._tensor.Tensor", "torch.Tensor") for part in attempt(call, whole=True) or ()]
    return ([shown(lambda a=a, b=b: t(a, b)) for a, b in pairs]
            + [attempt(lambda o=o: t(x, x + 1, **o), whole=True) for o in options]
            + [attempt(lambda: t(nan, nan, equal_nan=True)), attempt(lambda: t(x, x.double(), check_dtype=False)),
               attempt(lambda: t(torch.ones(2, 2).t(), torch.ones(2, 2), check_stride=True), whole=True)])


@program
def made_tensors(torch):
    importing(torch, "testing")
    make = torch.testing.make_tensor
    dtypes = torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float16
    made = [make(2, 3, dtype=dtype, device="cpu") for dtype in dtypes]
    made += [make((4,), dtype=torch.int32, device="cpu", low=1, high=5),
             make(3, dtype=torch.float32, device="cpu", low=-1, high=1, requires_grad=True),
             make(2, 4, dtype=torch.float32, device="cpu", noncontiguous=True),
             make((), dtype=torch.float32, device="cpu"),
             make(50, dtype=torch.int64, device="cpu", low=-1, high=2, exclude_zero=True)]
    return (made, made[9].stride(), made[8].requires_grad,
            [attempt(lambda d=d: make(2, dtype=d, device="cpu", low=3, high=2)) for d in (torch.int64,)])


@program
def futures(torch):
    importing(torch, "futures")
    first, second = torch.futures.Future(), torch.futures.Future()
    seen = []
    first.add_done_callback(lambda f: seen.append(f.wait()))
    after = first.then(lambda f: f.wait() * 2)
    whole = torch.futures.collect_all([first, second])
    before = first.done(), whole.done()
    first.set_result(3)
    second.set_exception(ValueError("wrong"))
    return (before, first.value(), after.wait(), seen, whole.done(), attempt(second.wait),
            torch.futures.wait_all([first, after]), attempt(whole.wait))


@program
def bounds_of_random_tensors(torch):
    importing(torch, "testing")
    make = functools.partial(torch.testing.make_tensor, (3,), device="cpu")
    small = [torch.tensor(values).to(torch.float8_e4m3fn) for values in ([1.0, 2.0], [1.0, 3.0])]
    close = torch.testing.assert_close
    return ([attempt(lambda k=kwargs: make(**k)) for kwargs in (
        {"dtype": torch.float32, "low": 2, "high": 2}, {"dtype": torch.int8, "low": 127, "high": 128},
        {"dtype": torch.bool, "low": -3, "high": -2}, {"dtype": torch.int8, "low": -600, "high": -300},
        {"dtype": torch.float16, "low": -1e9, "high": -1e6},
        {"dtype": torch.int64, "low": 2 ** 63 - 1, "high": 2 ** 63},
        {"dtype": torch.float64, "low": 10 ** 400, "high": 10 ** 401}, {"dtype": torch.int8, "requires_grad": True})],
        make(dtype=torch.float32, low=-math.inf, high=math.inf).isfinite().all(),
        [attempt(call) for call in (lambda: close(small[0], small[0]), lambda: close(small[0], small[1]),
                                    lambda: close(*small, rtol=0, atol=5))])


@program
def errors_of_futures(torch):
    importing(torch, "futures")
    Future = torch.futures.Future
    done, other = Future(), Future()
    done.set_result(1)
    other.set_exception(KeyError("k"))
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        done.add_done_callback(lambda future: 1 / 0)
    return ([attempt(lambda call=call: call()) for call in (
        lambda: done.set_result(2), lambda: done.set_exception(ValueError("x")), lambda: other.set_result(1),
        lambda: done.then(lambda: 3).wait(), lambda: done.then(lambda future: future + 1).wait()[:1],
        lambda: pickle.dumps(done), lambda: torch.futures.wait_all([None, done]),
        lambda: torch.futures.wait_all([other, done]), lambda: torch.futures.collect_all([None]))],
        [attempt(call)[0] for call in (lambda: done.then(3), lambda: done.add_done_callback(3),
                                       lambda: torch.futures.collect_all(3))],
        "ZeroDivisionError" in printed.getvalue() or torch is not tensorgrad)


@program
def steps_of_a_profile(torch):
    importing(torch, "profiler")
    p = torch.profiler
    plans = [p.schedule(wait=1, warmup=1, active=2), p.schedule(wait=0, warmup=1, active=1, repeat=2, skip_first=2)]
    return ([[plan(step).name for step in range(10)] for plan in plans],
            attempt(lambda: p.schedule(wait=-1, warmup=0, active=1)))


@program
def steps_and_notes_in_a_trace(torch):
    importing(torch, "profiler")
    p = torch.profiler
    plan = p.schedule(wait=1, warmup=0, active=2, repeat=1)
    with p.profile(activities=[p.ProfilerActivity.CPU], schedule=plan) as prof:
        for _ in range(4):
            torch.ones(2).exp()
            prof.step()
    steps = [(event.key, event.count) for event in prof.key_averages() if "Step" in event.key]
    with p.profile(activities=[p.ProfilerActivity.CPU]) as prof:
        torch.ones(2).exp()
        prof.add_metadata("text", "a text")
        prof.add_metadata_json("numbers", "[1, {}]")
    with tempfile.TemporaryDirectory() as folder:
        prof.export_chrome_trace(f"{folder}/trace.json")
        with open(f"{folder}/trace.json") as file:
            trace = json.load(file)
    return steps, trace["text"], trace["numbers"], len(trace["traceEvents"]) > 0


@program
def meta_tensors(torch):
    x = torch.empty(2, 3, device="meta")
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(),
                                    torch.nn.Linear(16, 2))
    state = torch.random.get_rng_state()
    y = model(torch.rand(2, 3, 4, 4, device="meta"))
    return [str(x), str(y), x.is_meta, str((x + 1).double()), str(model[0].weight.device), attempt(x.item),
            attempt(x.tolist), attempt(lambda: x.cpu()),
            attempt(lambda: model.to("cpu")), model.to_empty(device="cpu")[3].weight.shape,
            torch.equal(state, torch.random.get_rng_state()),
            {k: str(v.device) for k, v in torch.nn.Linear(1, 1).to("meta").state_dict().items()}]


@program
def types(torch):
    importing(torch, "types", "functional", "torch_version")
    V = torch.torch_version.TorchVersion
    versions = [V("2.13.0+cpu") > "2.13", V("2.13.0+cpu") == "2.13.0", V("1.10.0a1") < (1, 10), V("1.2") == "1.2.0",
                V("1.2") == "words", V("2.0") >= (2, 0, 1),
                attempt(lambda: V("1.0") > 1.0)]
    return (torch.types.Number, torch.types._bool, isinstance(3, torch.types._Number),
            torch.functional.einsum("ij->j", torch.ones(2, 2)),
            torch.functional.block_diag(torch.ones(1, 1), torch.ones(1, 2)), versions, isinstance(3, torch.SymInt))


@program
def old_habits(torch):
    x = torch.autograd.Variable(torch.FloatTensor([1, 2]), requires_grad=True)
    (x * x).sum().backward()
    x.data -= 0.5 * x.grad.data
    x.data = x.data + 1
    loss = torch.nn.functional.mse_loss(x, torch.ones(2), size_average=False)
    kept = torch.nn.MSELoss(reduce=False)(x, torch.zeros(2))
    y = x.cuda() if torch.cuda.is_available() else x
    return (x, loss, kept, y.type("torch.DoubleTensor"), x.type(), torch.LongTensor(3).zero_(),
            x.untyped_storage().nbytes())


test_programs = cpu_only(program.test())


@pytest.mark.parametrize("call", [
    lambda torch: torch.export.draft_export(None), lambda torch: torch.jit.load("x"),
    lambda torch: torch.sparse.to_sparse_semi_structured(1),
    lambda torch: torch.ao.quantization.quantize_dynamic(None),
    lambda torch: torch.library.triton_op("t::x"),
    lambda torch: importlib.import_module("tensorgrad.utils.cpp_extension").load("x", [])])
def test_what_is_not_there_says_so(call):
    with pytest.raises(NotImplementedError, match=r"tensorgrad has no torch\.\w+.*: \w+"):
        call(tensorgrad)


def compiled_modules_as_they_are(torch):
    import warnings
    warnings.simplefilter("ignore")
    x, model, seen = torch.ones(2, 3), torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), []
    scripted, traced, function = torch.jit.script(model), torch.jit.trace(model, x), torch.jit.trace(lambda a: a * 2, x)
    for module in scripted, traced:
        seen += [isinstance(module, torch.jit.ScriptModule), torch.equal(module(x), model(x)),
                 list(module.state_dict()), module.original_name]
    seen += [isinstance(function, torch.jit.ScriptFunction), function(x),
             isinstance(traced, torch.jit.TopLevelTracedModule),
             torch.jit.freeze(torch.jit.script(model.eval()))(x).shape,
             torch.jit.optimize_for_inference(scripted.eval())(x).shape]
    for call in (lambda: torch.jit.script(3), lambda: torch.jit.freeze(model), lambda: torch.jit.trace(model),
                 lambda: torch.jit.freeze(torch.jit.script(torch.nn.Linear(1, 1))),
                 lambda: torch.jit.trace(lambda a: 3, x), lambda: torch.jit.trace(model, 3),
                 lambda: torch.jit.trace(lambda a: {"x": a}, x), lambda: torch.compile(3),
                 lambda: torch.compile(model, backend="foo"),
                 lambda: torch.compile(model, mode="foo"), lambda: torch.compile(model, mode="default", options={})):
        try:
            seen.append(type(call()).__name__)
        except Exception as error:
            seen.append((type(error).__name__, str(error).split("\n")[0]))
    return seen


def devices_that_are_not_here(torch):
    x = torch.ones(2)
    seen = [torch.device("mps").type, torch.device("xpu", 1).index, torch.device("mps") == torch.device("mps"),
            x.device == torch.device("mps")]
    for call in (lambda: x.to("mps"), lambda: x.to("xpu"), lambda: torch.nn.Linear(1, 1).to("mps"),
                 lambda: torch.tensor([1], device="xpu"),
                 lambda: x.to("foo"), lambda: x.to("xla"), lambda: torch.set_num_threads(1.5),
                 lambda: torch.set_default_dtype(3),
                 lambda: torch.set_default_dtype("float32"),
                 lambda: torch.random.fork_rng(device_type="foo").__enter__(),
                 lambda: torch.testing.assert_close(x.to("meta"), x.to("meta")),
                 lambda: torch.testing.assert_close(x.to("meta"), x[:1].to("meta"))):
        try:
            seen.append(call())
        except Exception as error:
            seen.append((type(error).__name__, str(error).split("\n")[0]))
    return seen


@pytest.mark.parametrize("program", [compiled_modules_as_they_are, devices_that_are_not_here],
                         ids=lambda program: program.__name__)
def test_as_pytorch_answers(program):
    from side_by_side import same
    pytest.importorskip("torch")
    same(program)


def test_memory_is_pinned_where_there_is_a_gpu():
    if tensorgrad.cuda.is_available():
        assert tensorgrad.ones(1).pin_memory()
    else:
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            tensorgrad.ones(1).pin_memory()


def test_functions_are_not_compiled():
    assert tensorgrad.jit.fork(max, 1, 2).wait() == tensorgrad.jit.wait(tensorgrad.jit.fork(lambda: 2)) == 2
    def double(x):
        return 2 * x
    module = tensorgrad.nn.Linear(2, 2)
    compiled, x = tensorgrad.compile(module, backend="eager"), tensorgrad.tensor([[1.0, -2.0]])
    assert tensorgrad.equal(compiled(x), module(x)) and tensorgrad.compile(double)(3) == 6
    assert tensorgrad.compile(mode="default")(double)._torchdynamo_orig_callable is double
    copied = copy.deepcopy(compiled)
    assert type(copied) is type(compiled) and copied._orig_mod is not module
    assert tensorgrad.equal(pickle.loads(pickle.dumps(compiled))(x), module(x))
    scripted, traced = tensorgrad.jit.script(module), tensorgrad.jit.trace(module, tensorgrad.ones(1, 2))
    assert tensorgrad.jit.script(double)(3) == 6 and scripted.weight is module.weight is traced.weight
    with pytest.raises(NotImplementedError, match="tensorgrad has no save of RecursiveScriptModule: there is no "
                                                  "TorchScript"):
        scripted.save("x")


def test_a_hub_is_a_directory(tmp_path):
    (tmp_path / "hubconf.py").write_text("dependencies = ['math']\ndef model(n, scale=1):\n    'a number'\n    return "
                                         "n * scale\n")
    hub = tensorgrad.hub
    assert hub.load(tmp_path, "model", 3, source="local", scale=2) == 6
    assert hub.list(tmp_path) == ["model"] and hub.help(tmp_path, "model") == "a number"
    with pytest.raises(RuntimeError, match="downloads nothing"):
        hub.load("owner/name", "model")
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(tmp_path, "other", source="local")
    tensorgrad.save({"w": tensorgrad.ones(2)}, tmp_path / "model.pt")
    assert hub.load_state_dict_from_url("file:///model.pt", model_dir=tmp_path)["w"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="downloads nothing"):
        hub.load_state_dict_from_url("file:///other.pt", model_dir=tmp_path)


def test_a_profile_measures(tmp_path):
    from tensorgrad.profiler import profile, record_function, schedule
    ready = []
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=ready.append) as prof:
        for _ in range(3):
            with record_function("step"):
                x = tensorgrad.ones(50, 50).exp()
                x @ x
            prof.step()
    events = {event.key: event for event in prof.key_averages()}
    assert len(ready) == 1 and events["step"].count == events["aten::exp"].count == 1
    step = events["step"]
    assert (step.cpu_time_total >= step.self_cpu_time_total + events["aten::exp"].cpu_time_total
            and step.self_cpu_time_total > 0)
    assert "Self CPU time total" in prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=2)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert '"name": "step"' in (tmp_path / "trace.json").read_text()


def test_a_benchmark_measures():
    from tensorgrad.utils.benchmark import Timer
    found = Timer("x.append(1)", globals={"x": (x := [])}, label="append").timeit(50)
    assert (len(x) >= 50 and found.number_per_run == 50 and 0 < found.mean < 1e-2
            and repr(found).partition("\n")[2].startswith("append\n"))
    found = Timer("pass").blocked_autorange(min_run_time=0.001)
    assert found.median > 0 and found.iqr >= 0


def test_the_environment_is_told():
    text = importlib.import_module("tensorgrad.utils.collect_env").get_pretty_env_info()
    assert f"tensorgrad version: {tensorgrad.__version__}" in text and "Is CUDA available" in text
