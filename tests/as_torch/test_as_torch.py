"""tensorgrad in the place of torch: `import torch` and all below it, names that are not there, `python -m tensorgrad`."""
import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from side_by_side import attempt
from support import ROOT, Programs, cpu_only, fresh_process, skip_if_built_with_cuda

import tensorgrad

program = Programs()
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("DEVICE", "TENSORGRAD_SIMULATED_CUDA")} | {"PYTHONPATH": str(ROOT)}


def run(*arguments, code=0, cwd=None):
    """(output, errors) of `python -m tensorgrad` with these arguments."""
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tensorgrad", *map(str, arguments)], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def as_torch(text):
    """Run a program in a process where torch is tensorgrad, and return its output."""
    return fresh_process("import tensorgrad\ntensorgrad.install_as_torch()\n" + textwrap.dedent(text))


# ── imports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


PATHS = """nn nn.functional nn.modules nn.modules.conv nn.init nn.utils nn.utils.rnn nn.parameter nn.parallel nn.common_types nn.grad nn.attention optim
optim.lr_scheduler optim.swa_utils utils utils.data utils.data.dataloader utils.data.distributed utils.checkpoint utils.dlpack utils._pytree utils.model_zoo
utils.cpp_extension utils.benchmark utils.collect_env utils.backcompat utils.deterministic utils.hooks distributions distributions.constraints
distributions.kl func linalg fft special signal signal.windows autograd autograd.function autograd.functional autograd.profiler autograd.grad_mode
autograd.anomaly_mode autograd.forward_ad autograd.gradcheck autograd.graph cuda cuda.amp amp amp.autocast_mode amp.grad_scaler accelerator backends
backends.cudnn backends.cuda backends.mkl backends.mkldnn backends.openmp backends.mps backends.cpu backends.opt_einsum backends.quantized backends.mha version
torch_version onnx jit compiler _dynamo _dynamo.config _dynamo.eval_frame multiprocessing multiprocessing.spawn distributed distributed.optim hub profiler types
testing quantization ao ao.quantization sparse nested fx export library futures functional storage random cpu mps xpu mtia overrides return_types serialization
_C _tensor _utils _jit_internal""".split()


def test_every_module_is_the_same_object():
    out = as_torch(f"""
        import importlib
        for name in {PATHS}:
            assert importlib.import_module('torch.' + name) is importlib.import_module('tensorgrad.' + name), name
        import torch, torch.nn.functional as F
        from torch import nn, Tensor
        from torch.utils.data import DataLoader
        assert F is torch.nn.functional is tensorgrad.nn.functional and nn is tensorgrad.nn and Tensor is tensorgrad.Tensor
        assert torch.add is tensorgrad.add and dir(torch) == dir(tensorgrad)
        assert nn.__spec__.name == nn.__name__ == 'tensorgrad.nn'
        print(torch.__name__, torch.__version__, torch.version.__version__, torch.version.cuda, tensorgrad.__version__, torch.__version__ >= (2, 0), Tensor)
    """)
    assert out == f"torch 2.13.0+tensorgrad 2.13.0+tensorgrad None {tensorgrad.__version__} True <class 'torch.Tensor'>\n"


def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:          # an object that stands in for a module
        return True


def test_paths_are_those_of_pytorch():
    pytest.importorskip("torch")
    assert not [name for name in PATHS if not there(f"torch.{name}")]


def test_packages_can_ask_for_it():
    out = as_torch("""
        import importlib.metadata as metadata, importlib.util as util
        print(metadata.version("torch"), util.find_spec("torch") is not None, util.find_spec("torch.nn").name, util.find_spec("torch.nonsense"))
        exec("from torch import *")
        print(randn(2).shape)
    """)
    assert out == "2.13.0+tensorgrad True torch.nn None\ntorch.Size([2])\n"


def test_it_can_be_undone():
    out = as_torch("""
        import sys, torch
        print(len([f for f in sys.meta_path if type(f).__module__.startswith("tensorgrad")]))
        tensorgrad.install_as_torch()
        tensorgrad.uninstall_as_torch()
        tensorgrad.uninstall_as_torch()
        print([f for f in sys.meta_path if type(f).__module__.startswith("tensorgrad")], [n for n in sys.modules if n.partition(".")[0] == "torch"])
        print(tensorgrad.Tensor, tensorgrad.nn.Linear(2, 1)(tensorgrad.ones(1, 2)).shape)
    """)
    assert out == "3\n[] []\n<class 'tensorgrad._tensor.Tensor'> torch.Size([1, 1])\n"


def test_it_refuses_where_torch_is_something_else():
    error = fresh_process("import sys, types; sys.modules['torch'] = types.ModuleType('torch')\nimport tensorgrad; tensorgrad.install_as_torch()", fails=True)
    assert error.startswith("RuntimeError: cannot install tensorgrad as torch: the module 'torch' is already imported")


# ── names that are not there ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("statement, message", [
    ("import torch.nonsense", "ModuleNotFoundError: No module named 'torch.nonsense' (tensorgrad, in the place of torch, has none)"),
    ("import torch.jit.nonsense", "ModuleNotFoundError: No module named 'torch.jit.nonsense' (tensorgrad, in the place of torch, has none)"),
    ("import torch.ao.nn.quantized", "ModuleNotFoundError: No module named 'torch.ao.nn' (tensorgrad has none: there are no quantized tensors)"),
    ("from torch import package", "ImportError: cannot import name 'package' from 'tensorgrad' (tensorgrad has none: torch.save and torch.load"),
    ("from torch.distributed.pipelining import pipeline", "ModuleNotFoundError: No module named 'torch.distributed.pipelining' (tensorgrad has none: a"),
    ("import torch.distributed.checkpoint.hf_storage", "ModuleNotFoundError: No module named 'torch.distributed.checkpoint.hf_storage' (tensorgrad has none"),
    ("from torch.distributed.autograd import context", "ModuleNotFoundError: No module named 'torch.distributed.autograd' (tensorgrad has none: processes"),
    ("from torch.nn.functional import gelo", "ImportError: cannot import name 'gelo' from 'tensorgrad.nn.functional' (tensorgrad has torch.nn.functional.gelu"),
    ("from torch.nn.functional import nonsense", "ImportError: cannot import name 'nonsense' from 'tensorgrad.nn.functional'"),
    ("import torch.nn.functionl", "ModuleNotFoundError: No module named 'torch.nn.functionl' (tensorgrad has torch.nn.functional)"),
    ("from torch.nn import Liner", "ImportError: cannot import name 'Liner' from 'tensorgrad.nn' (tensorgrad has torch.nn.Linear"),
    ("from torch import Linear", "ImportError: cannot import name 'Linear' from 'tensorgrad' (tensorgrad has torch.nn.Linear"),
    ("torch.softmx", "AttributeError: module 'tensorgrad' has no attribute 'softmx' (tensorgrad has torch.softmax)"),
    ("torch.nn.relu", "AttributeError: module 'tensorgrad.nn' has no attribute 'relu' (tensorgrad has torch.nn.ReLU, torch.relu"),
    ("torch.optim.adamm", "AttributeError: module 'tensorgrad.optim' has no attribute 'adamm' (tensorgrad has torch.optim.Adam"),
    ("torch.nn.functional.gelo", "AttributeError: module 'tensorgrad.nn.functional' has no attribute 'gelo' (tensorgrad has torch.nn.functional.gelu"),
])
def test_a_missing_name_comes_with_the_nearest(statement, message):
    if statement.startswith("torch"):
        with pytest.raises(AttributeError) as caught:
            eval(statement, {"torch": tensorgrad})
        assert f"AttributeError: {caught.value}".startswith(message)
    else:
        hook = "import torch, sys\nsys.excepthook = lambda kind, error, trace: print(f'{kind.__name__}: {error}')\n"
        assert run("-c", hook + statement, code=1)[0].startswith(message)


def test_names_that_have_a_module_of_their_own_in_pytorch():
    table = importlib.import_module("tensorgrad.as_torch.install").ELSEWHERE
    assert all(there(f"tensorgrad.{module}") for module in table.values())
    out = as_torch(f"""
        import importlib
        for name, module in {table}.items():
            assert importlib.import_module('torch.' + name) is importlib.import_module('tensorgrad.' + module), name
        from torch.cuda.amp import grad_scaler, autocast_mode
        from torch.nn.functional import relu
        import torch.distributed.nn.functional as together
        print(grad_scaler.GradScaler is torch.cuda.amp.GradScaler, importlib.util.find_spec("torch.jit.nonsense"), together.__name__)
    """.replace("import importlib\n", "import importlib.util, torch\n"))
    assert out == "True None tensorgrad.distributed.nn.functional\n"
    if importlib.util.find_spec("torch") is not None:
        assert not [name for name in table if not there(f"torch.{name}")]


INCIDENTAL = """functional: Tensor F; nn.functional: Tensor _in_projection _in_projection_packed; nn.modules.conv: Tensor Parameter init F; nn.modules.loss: F
Tensor; nn.modules.linear: init; nn.modules.normalization: Parameter; nn.modules.transformer: _get_clones _get_activation_fn Tensor; nn.modules.utils:
_list_with_default; nn.init: Tensor _no_grad_trunc_normal_ _no_grad_normal_ _no_grad_uniform_ _no_grad_fill_; distributions.distribution: Tensor;
_jit_internal: Optional Tuple; cuda.amp: grad_scaler autocast_mode; utils.checkpoint: get_device_states set_device_states; distributed: nn"""


def test_names_that_programs_import_from_where_they_happen_to_be(script):
    pairs = [line.split(":") for line in INCIDENTAL.split(";")]
    statements = [f"from torch.{module.strip()} import {name}" for module, names in pairs for name in names.split()]
    out = run(script("\n".join(["import torch", *statements, "print(Tensor is torch.Tensor, F is torch.nn.functional, init is torch.nn.init)"])))[0]
    assert out == "True True True\n"
    if importlib.util.find_spec("torch") is not None:
        subprocess.run([sys.executable, "-c", "\n".join(statements)], check=True, timeout=60)


def test_asking_for_a_name_looks_for_no_other(monkeypatch):
    monkeypatch.setattr(importlib.import_module("tensorgrad.messages.missing_names"), "nearest", None)
    assert not hasattr(tensorgrad, "nonsense") and not hasattr(tensorgrad.nn, "nonsense")
    assert getattr(tensorgrad.nn.functional, "nonsense", 3) == 3


# ── python -m tensorgrad ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path
    return write


def test_a_script_finds_itself(script, tmp_path):
    script("VALUE = 5", "neighbour.py")
    path = script("""
        import os, pickle, sys, torch
        from neighbour import VALUE
        class Point:
            def __init__(self, x): self.x = x
        again = pickle.loads(pickle.dumps(Point(torch.ones(2))))
        print(sys.argv[1:], os.path.basename(__file__), sys.path[0] == os.path.dirname(__file__), __name__, VALUE, again.x,
              sys.modules["__main__"].Point is Point)
    """)
    expected = "['-x', 'y'] script.py True __main__ 5 tensor([1., 1.]) True\n"
    assert run(path, "-x", "y")[0] == run("script.py", "-x", "y", cwd=tmp_path)[0] == expected


def test_a_module_and_a_package(script, tmp_path):
    script("import sys, torch\nfrom . import part\nprint(__name__, __package__, sys.argv[1:], part.torch is torch)", "pack/__main__.py")
    script("import torch", "pack/part.py")
    script("import sys, torch\nprint(__name__, __spec__.name, torch.__name__, sys.argv[1:])", "alone.py")
    assert run("-m", "pack", "1", cwd=tmp_path)[0] == "__main__ pack ['1'] True\n"
    assert run("-m", "alone", "-m", "2", cwd=tmp_path)[0] == "__main__ alone torch ['-m', '2']\n"
    assert run("-c", "import sys, torch; print(sys.argv, torch.zeros(1))", "3")[0] == "['-c', '3'] tensor([0.])\n"
    assert "No module named nothing" in run("-m", "nothing", code=1)[1]
    program = "import sys, torch\nprint(sys.argv, torch.ones(1), __name__)\n"
    done = subprocess.run([sys.executable, "-m", "tensorgrad", "-", "4"], input=program, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "['-', '4'] tensor([1.]) __main__\n", done.stderr


def test_errors_are_the_programs_own(script):
    path = script("import torch\n\ndef fail():\n    torch.ones(2) + torch.ones(3)\n\nfail()\n")
    errors = run(path, code=1)[1]
    assert errors.startswith(f'Traceback (most recent call last):\n  File "{path}", line 6, in <module>\n')
    assert "__main__.py" not in errors and "runpy" not in errors and "importlib" not in errors
    path = script("def late():\n    import torch.nn.functionl\nlate()\n")
    errors = run(path, code=1)[1]
    assert [line for line in errors.splitlines() if line.startswith("  File")] == [f'  File "{path}", line 3, in <module>', f'  File "{path}", line 2, in late']
    path = script("x = = 1\n")
    assert run(path, code=1)[1].startswith(f'  File "{path}", line 1\n')


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_exit_codes(script):
    run(script("raise SystemExit(7)"), code=7)
    assert run(script("import sys; sys.exit('words')"), code=1)[1] == "words\n"
    assert "KeyboardInterrupt" in run(script("raise KeyboardInterrupt"), code=-signal.SIGINT)[1]
    assert "can't open file" in run("nothing.py", code=2)[1]
    assert run(code=2)[1].startswith("usage") and run("--help")[0].startswith("usage")
    assert "unknown option" in run("-x", code=1)[1]
    hooked = "import sys\nsys.excepthook = lambda kind, error, trace: print(kind.__name__, trace.tb_frame.f_code.co_name)\n1 / 0\n"
    assert run(script(hooked), code=1)[0] == "ZeroDivisionError <module>\n"


@cpu_only
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_see_it_too(script, method):
    import multiprocessing
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    path = script(f"""
        import torch, torch.multiprocessing as mp
        from torch.utils.data import DataLoader, Dataset

        class Squares(Dataset):
            def __len__(self): return 4
            def __getitem__(self, i): return torch.tensor(i) ** 2

        def work(rank, model, shared, queue):
            with torch.no_grad():
                model.weight += rank + 1
                shared[rank] = 7
            queue.put((torch.__name__, float(model.weight.detach().sum())))

        if __name__ == "__main__":
            context = mp.get_context("{method}")
            model, shared, queue = torch.nn.Linear(1, 1, bias=False), torch.zeros(2).share_memory_(), context.SimpleQueue()
            torch.nn.init.zeros_(model.weight)
            model.share_memory()
            child = context.Process(target=work, args=(0, model, shared, queue))
            child.start()
            print(queue.get())
            child.join()
            print(child.exitcode, model.weight.item(), shared.tolist(), shared.is_shared(), torch.zeros(1).is_shared())
            for batch in DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context="{method}"):
                print(batch)
    """)
    assert run(path)[0] == "('torch', 1.0)\n0 1.0 [7.0, 0.0] True False\ntensor([0, 1])\ntensor([4, 9])\n"


@cpu_only
def test_errors_of_spawned_processes_come_back(script):
    path = script("""
        import torch.multiprocessing as mp

        def fail(i, text):
            if i == 1:
                raise ValueError(text)

        if __name__ == "__main__":
            try:
                mp.spawn(fail, args=("wrong",), nprocs=2)
            except mp.ProcessRaisedException as error:
                print(error.error_index, str(error).strip().splitlines()[0], str(error).strip().splitlines()[-1])
            mp.start_processes(print, nprocs=1, start_method="fork")
    """)
    assert run(path)[0] == "1 -- Process 1 terminated with the following error: ValueError: wrong\n0\n"


# ── what the smaller namespaces answer ────────────────────────────────────────────────────────────────────────────────


def importing(torch, *names):
    for name in names:
        importlib.import_module(f"{torch.__name__}.{name}")


@program
def switches_of_backends(torch):
    skip_if_built_with_cuda(torch)
    importing(torch, "backends")
    backends = torch.backends
    before = [backends.cudnn.enabled, backends.cudnn.benchmark, backends.cudnn.deterministic, backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32,
              backends.cudnn.is_available(), backends.cudnn.version(), backends.mps.is_available(), backends.mps.is_built(),
              backends.mha.get_fastpath_enabled(),
              backends.cuda.flash_sdp_enabled(), backends.cuda.math_sdp_enabled(), backends.cuda.is_flash_attention_available(),
              backends.mkldnn.enabled]
    backends.cudnn.benchmark = backends.cudnn.deterministic = True
    with backends.cudnn.flags(enabled=True, benchmark=False):
        inside = backends.cudnn.benchmark, backends.cudnn.deterministic
    after = backends.cudnn.benchmark, backends.cudnn.deterministic
    backends.cudnn.benchmark = backends.cudnn.deterministic = False
    backends.cuda.matmul.allow_tf32 = True
    precision = torch.get_float32_matmul_precision()
    backends.cuda.matmul.allow_tf32 = False
    return before, inside, after, precision, torch.get_float32_matmul_precision(), type(backends.cpu.get_cpu_capability())


@program
def devices_that_are_not_there(torch):
    importing(torch, "mps", "xpu", "mtia", "cpu")
    calls = [lambda m=m, f=f: getattr(getattr(torch, m), f)() for m, f in (
        ("mps", "is_available"), ("mps", "device_count"), ("mps", "synchronize"), ("mps", "empty_cache"), ("mps", "seed"), ("mps", "get_rng_state"),
        ("xpu", "is_available"), ("xpu", "device_count"), ("xpu", "current_device"), ("xpu", "synchronize"), ("xpu", "get_device_name"),
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
    return (unused(1), ignored(2), disabled(4), also(5), torch.jit.is_scripting(), torch.jit.is_tracing(), torch.jit.annotate(int, 3),
            torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance({"a": 1.0}, dict[str, int]), torch.compiler.is_compiling(),
            attempt(lambda: torch.compile(len, mode="nonsense")), attempt(lambda: torch.compile(len, mode="default", options={})))


@program
def distributed_without_a_group(torch):
    skip_if_built_with_cuda(torch)
    importing(torch, "distributed")
    d = torch.distributed
    return [d.is_initialized(), d.is_nccl_available(), d.is_torchelastic_launched(), attempt(d.get_rank), attempt(d.get_world_size), attempt(d.barrier)]


@program
def close_and_not(torch):
    importing(torch, "testing")
    x, t = torch.tensor([1.0, 2.0, 4.0]), torch.testing.assert_close
    nan = torch.tensor([float("nan")])
    pairs = [(x, x + 1e-7), (x, x + 1), (x.reshape(1, 3), x.reshape(1, 3) * 2), (x, x[:2]), (x, x.double()), (x, 1.0), (1.0, 1.5), (1, 2), (1j, 2j), (1, 1.0),
             (True, False), (None, None), (None, 1), ("a", "a"), (torch.tensor(1.0), torch.tensor(2.0)), (torch.tensor([1, 2]), torch.tensor([2, 2])),
             (torch.tensor([True, False]), torch.tensor([False, False])), ([x, x], [x, x + 1]), ([x], [x, x]), ({"a": x}, {"b": x}), ({"a": x}, {"a": x + 1}),
             ({"a": [x, (x, x)]}, {"a": [x, (x, -x)]}), (x.numpy(), x.numpy() + 1), (x, x.numpy()), (nan, nan), (torch.zeros(0), torch.zeros(0)),
             (torch.tensor([1 + 2j]), torch.tensor([1 + 3j])), (x.half(), x.half() * 1.0001), (float("inf"), float("inf")),
             (torch.tensor([0.0]), torch.tensor([1.0]))]
    options = [{"rtol": 0.1}, {"rtol": 0, "atol": 0}, {"rtol": 0, "atol": 2}, {"msg": "words"}, {"msg": lambda text: "more: " + text}, {"check_stride": True}]
    def shown(call):
        return [str(part).replace("torch._tensor.Tensor", "torch.Tensor") for part in attempt(call, whole=True) or ()]
    return ([shown(lambda a=a, b=b: t(a, b)) for a, b in pairs] + [attempt(lambda o=o: t(x, x + 1, **o), whole=True) for o in options]
            + [attempt(lambda: t(nan, nan, equal_nan=True)), attempt(lambda: t(x, x.double(), check_dtype=False)),
               attempt(lambda: t(torch.ones(2, 2).t(), torch.ones(2, 2), check_stride=True), whole=True)])


@program
def made_tensors(torch):
    importing(torch, "testing")
    make = torch.testing.make_tensor
    dtypes = torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float16
    made = [make(2, 3, dtype=dtype, device="cpu") for dtype in dtypes]
    made += [make((4,), dtype=torch.int32, device="cpu", low=1, high=5), make(3, dtype=torch.float32, device="cpu", low=-1, high=1, requires_grad=True),
             make(2, 4, dtype=torch.float32, device="cpu", noncontiguous=True), make((), dtype=torch.float32, device="cpu"),
             make(50, dtype=torch.int64, device="cpu", low=-1, high=2, exclude_zero=True)]
    return made, made[9].stride(), made[8].requires_grad, [attempt(lambda d=d: make(2, dtype=d, device="cpu", low=3, high=2)) for d in (torch.int64,)]


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
    return before, first.value(), after.wait(), seen, whole.done(), attempt(second.wait), torch.futures.wait_all([first, after])


@program
def steps_of_a_profile(torch):
    importing(torch, "profiler")
    p = torch.profiler
    plans = [p.schedule(wait=1, warmup=1, active=2), p.schedule(wait=0, warmup=1, active=1, repeat=2, skip_first=2)]
    return [[plan(step).name for step in range(10)] for plan in plans], attempt(lambda: p.schedule(wait=-1, warmup=0, active=1))


@program
def meta_tensors(torch):
    x = torch.empty(2, 3, device="meta")
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 2))
    state = torch.random.get_rng_state()
    y = model(torch.rand(2, 3, 4, 4, device="meta"))
    return [str(x), str(y), x.is_meta, str((x + 1).double()), str(model[0].weight.device), attempt(x.item), attempt(x.tolist), attempt(lambda: x.cpu()),
            attempt(lambda: model.to("cpu")), model.to_empty(device="cpu")[3].weight.shape, torch.equal(state, torch.random.get_rng_state()),
            {k: str(v.device) for k, v in torch.nn.Linear(1, 1).to("meta").state_dict().items()}]


@program
def types(torch):
    importing(torch, "types", "functional", "torch_version")
    V = torch.torch_version.TorchVersion
    versions = [V("2.13.0+cpu") > "2.13", V("2.13.0+cpu") == "2.13.0", V("1.10.0a1") < (1, 10), V("1.2") == "1.2.0", V("1.2") == "words", V("2.0") >= (2, 0, 1),
                attempt(lambda: V("1.0") > 1.0)]
    return (torch.types.Number, torch.types._bool, isinstance(3, torch.types._Number), torch.functional.einsum("ij->j", torch.ones(2, 2)),
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
    return x, loss, kept, y.type("torch.DoubleTensor"), x.type(), torch.LongTensor(3).zero_(), x.untyped_storage().nbytes()


test_programs = cpu_only(program.test())


@pytest.mark.parametrize("call", [
    lambda torch: torch.fx.symbolic_trace(None), lambda torch: torch.export.export(None),
    lambda torch: torch.jit.load("x"), lambda torch: torch.sparse.mm(1, 2), lambda torch: torch.nested.nested_tensor([]),
    lambda torch: torch.ao.quantization.quantize_dynamic(None),
    lambda torch: torch.library.opcheck(None),
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
        seen += [isinstance(module, torch.jit.ScriptModule), torch.equal(module(x), model(x)), list(module.state_dict()), module.original_name]
    seen += [isinstance(function, torch.jit.ScriptFunction), function(x), isinstance(traced, torch.jit.TopLevelTracedModule),
             torch.jit.freeze(torch.jit.script(model.eval()))(x).shape, torch.jit.optimize_for_inference(scripted.eval())(x).shape]
    for call in (lambda: torch.jit.script(3), lambda: torch.jit.freeze(model), lambda: torch.jit.trace(model),
                 lambda: torch.jit.freeze(torch.jit.script(torch.nn.Linear(1, 1))), lambda: torch.jit.trace(lambda a: 3, x), lambda: torch.jit.trace(model, 3),
                 lambda: torch.jit.trace(lambda a: {"x": a}, x), lambda: torch.compile(3), lambda: torch.compile(model, backend="foo"),
                 lambda: torch.compile(model, mode="foo"), lambda: torch.compile(model, mode="default", options={})):
        try:
            seen.append(type(call()).__name__)
        except Exception as error:
            seen.append((type(error).__name__, str(error).split("\n")[0]))
    return seen


def devices_that_are_not_here(torch):
    x = torch.ones(2)
    seen = [torch.device("mps").type, torch.device("xpu", 1).index, torch.device("mps") == torch.device("mps"), x.device == torch.device("mps")]
    for call in (lambda: x.to("mps"), lambda: x.to("xpu"), lambda: torch.nn.Linear(1, 1).to("mps"), lambda: torch.tensor([1], device="xpu"),
                 lambda: x.to("foo"), lambda: x.to("xla"), lambda: torch.set_num_threads(1.5), lambda: torch.set_default_dtype(3),
                 lambda: torch.set_default_dtype("float32"),
                 lambda: torch.random.fork_rng(device_type="foo").__enter__(), lambda: torch.testing.assert_close(x.to("meta"), x.to("meta")),
                 lambda: torch.testing.assert_close(x.to("meta"), x[:1].to("meta"))):
        try:
            seen.append(call())
        except Exception as error:
            seen.append((type(error).__name__, str(error).split("\n")[0]))
    return seen


@pytest.mark.parametrize("program", [compiled_modules_as_they_are, devices_that_are_not_here], ids=lambda program: program.__name__)
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
    assert tensorgrad.compile(double) is double and tensorgrad.compile(module, backend="eager") is module
    assert tensorgrad.compile(mode="default")(double) is double
    scripted, traced = tensorgrad.jit.script(module), tensorgrad.jit.trace(module, tensorgrad.ones(1, 2))
    assert tensorgrad.jit.script(double)(3) == 6 and scripted.weight is module.weight is traced.weight
    with pytest.raises(NotImplementedError, match="tensorgrad has no save of RecursiveScriptModule: there is no TorchScript"):
        scripted.save("x")


def test_a_hub_is_a_directory(tmp_path):
    (tmp_path / "hubconf.py").write_text("dependencies = ['math']\ndef model(n, scale=1):\n    'a number'\n    return n * scale\n")
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
    with profile(schedule=schedule(wait=1, warmup=0, active=1, repeat=1), on_trace_ready=ready.append) as prof:
        for _ in range(3):
            with record_function("step"):
                x = tensorgrad.ones(50, 50).exp()
                x @ x
            prof.step()
    events = {event.key: event for event in prof.key_averages()}
    assert len(ready) == 1 and events["step"].count == events["torch.Tensor.exp"].count == 1
    step = events["step"]
    assert step.cpu_time_total >= step.self_cpu_time_total + events["torch.Tensor.exp"].cpu_time_total and step.self_cpu_time_total > 0
    assert "Self CPU time total" in prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=2)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert '"name": "step"' in (tmp_path / "trace.json").read_text()


def test_a_benchmark_measures():
    from tensorgrad.utils.benchmark import Timer
    found = Timer("x.append(1)", globals={"x": (x := [])}, label="append").timeit(50)
    assert len(x) >= 50 and found.number_per_run == 50 and 0 < found.mean < 1e-2 and repr(found).partition("\n")[2].startswith("append\n")
    found = Timer("pass").blocked_autorange(min_run_time=0.001)
    assert found.median > 0 and found.iqr >= 0


def test_the_environment_is_told():
    text = importlib.import_module("tensorgrad.utils.collect_env").get_pretty_env_info()
    assert f"tensorgrad version: {tensorgrad.__version__}" in text and "Is CUDA available" in text


# ── torchx and pytorch_symbolic ───────────────────────────────────────────────────────────────────────────────────────


def installed(name):
    """Tell whether a package of this name is there, which then is the one that programs get."""
    return importlib.util.find_spec(name) is not None


no_torchx = pytest.mark.skipif(installed("torchx"), reason="a package torchx is installed")
no_symbolic = pytest.mark.skipif(installed("pytorch_symbolic"), reason="a package pytorch_symbolic is installed")
plain_cpu = pytest.mark.skipif(ENVIRONMENT.get("CUDA_VISIBLE_DEVICES", "") != "" or tensorgrad.cuda.is_available(), reason="about machines without CUDA")

TORCHX = {"one layer": ("""
    import torch
    import torchx.layers as L
    layer = L.Linear(20)
    print(layer(torch.zeros((16, 10))).size(), type(layer.native_module()).__name__, isinstance(layer, torch.nn.Module))
    """, "torch.Size([16, 20]) Linear True"), "a sequence": ("""
    import torch
    import torchx.layers as L
    network = L.Sequential(
        L.Conv2d(20, kernel_size=5, stride=2, padding=1), L.ReLU(), L.Conv2d(30, kernel_size=7), L.BatchNorm2d(), L.ReLU(),
        L.Conv2d(40, kernel_size=3), L.BatchNorm2d(), L.ReLU(), L.Flatten(), L.Linear(80), L.ReLU(), L.Linear(10))
    print(network(torch.randn((8, 3, 32, 32))).size(), network[-3].input_shape, type(L.Layer.from_spec(network.to_spec())).__name__)
    """, "torch.Size([8, 10]) (8, 1960) Sequential"), "a diamond": ("""
    import torch
    import torchx.layers as L
    image = L.Placeholder((8, 3, 32, 32))
    x = L.Conv2d(10, kernel_size=5, stride=2)(image)
    left, right = L.Conv2d(30, kernel_size=7, padding=2)(x), L.Conv2d(30, kernel_size=5, padding=1)(x)
    x = (left * right).flatten()
    x = L.Linear(10)(L.Linear(80)(x))
    network = L.Functional(inputs=image, outputs=x)
    print(len(list(network.parameters())), network(torch.randn((8, 3, 32, 32))).size())
    """, "10 torch.Size([8, 10])"), "scopes": ("""
    import warnings
    import torch
    import torchx as tx
    warnings.simplefilter("ignore")
    for device in -1, 2, "gpu:2":
        with tx.device_scope(device):
            print(torch.zeros((3, 6)).device, torch.empty(0).new_ones((3, 6)).shape)
    """, "cpu torch.Size([3, 6])\n" * 3), "a module": ("""
    import torch
    import torchx as tx
    import torch.nn as nn
    import torchx.nn as nnx
    class Network(nnx.Module):
        def __init__(self):
            self.first, self.second = nn.Linear(10, 20), nn.Linear(20, 30)
        def forward(self, x):
            return self.second(self.first(x))
    with tx.device_scope(-1, torch.float64):
        y = Network()(torch.zeros((4, 10)))
    print(y.shape, y.dtype, tx.nn is nnx, callable(nnx.th_flatten), tx.DataParallel(nnx.Module) is nnx.Module)
    """, "torch.Size([4, 30]) torch.float64 True True True"), "paths": ("""
    import torchx.utils as U, torchx
    from torchx.utils.nested import recursive_map
    from torchx.utils.shape import shape_conv2d
    from torchx.device import ids_to_devices
    from torchx.layers.base import Layer
    from torchx.distributed import DistributedManager
    print(U.recursive_map is recursive_map, U.shape_conv2d is shape_conv2d, torchx.ids_to_devices is ids_to_devices, torchx.layers.Layer is Layer,
          torchx.DistributedManager is DistributedManager)
    """, "True True True True True")}


@no_torchx
@plain_cpu
@pytest.mark.parametrize("text, expected", TORCHX.values(), ids=TORCHX)
def test_programs_for_torchx(script, text, expected):
    """K26, X11 to X64: what its README shows, under its names."""
    assert run(script(text))[0].strip() == expected.strip()


SYMBOLIC = {"a classifier": ("""
    from torch import nn
    from pytorch_symbolic import Input, SymbolicModel
    image = Input(shape=(1, 28, 28))
    x = nn.Flatten()(image)
    x = nn.Linear(x.shape[1], 10)(x)(nn.Softmax(1))
    SymbolicModel(inputs=image, outputs=x).summary()
    """, ["4*   Softmax_1   (None, 10)          0        3", "Total params: 7850"]), "two notations": ("""
    import torch
    from torch import nn
    from pytorch_symbolic import Input, SymbolicModel
    torch.manual_seed(0)
    x = Input(shape=(28 * 28,))
    layer = nn.Linear(in_features=x.features, out_features=10)
    print(torch.equal(SymbolicModel(x, layer(x))(torch.ones(2, 784)), SymbolicModel(x, x(layer))(torch.ones(2, 784))))
    """, ["True"]), "a residual network": ("""
    from torch import nn
    from pytorch_symbolic import Input, SymbolicModel
    def convolution(x, channels, **options):
        return nn.ReLU()(nn.Conv2d(x.C, channels, 3, **options)(x))
    image = Input(shape=(3, 32, 32))
    first = nn.MaxPool2d(3)(convolution(convolution(image, 32), 64))
    second = convolution(convolution(first, 64, padding=1), 64, padding=1) + first
    third = convolution(convolution(second, 64, padding=1), 64, padding=1) + second
    x = convolution(third, 64)
    x = x(nn.AvgPool2d(kernel_size=x.HW))(nn.Flatten())
    x = x(nn.Linear(x.features, 256))(nn.ReLU())(nn.Dropout(0.5))
    model = SymbolicModel(image, nn.Linear(x.features, 10)(x))
    print(sum(p.numel() for p in model.parameters()), model.output_shape)
    """, ["223242 (None, 10)"]), "functions and layers": ("""
    import torch, pytorch_symbolic
    from pytorch_symbolic import Input, add_to_graph, useful_layers, layers
    from pytorch_symbolic.functions_utility import add_to_model
    from pytorch_symbolic.symbolic_data import SymbolicTensor
    import pytorch_symbolic.graph_algorithms as algorithms
    a, b = Input(shape=(1, 2, 3)), Input(shape=(5, 2, 3))
    for x in (useful_layers.ConcatLayer(dim=1)(a, b), a(layers.ConcatLayer, b), add_to_graph(torch.concat, (a, b), dim=1),
              add_to_model(torch.concat, tensors=(a, b), dim=1)):
        assert tuple(x.shape) == (None, 6, 2, 3) and type(x) is SymbolicTensor, x
    print(algorithms is pytorch_symbolic.graph_algorithms, pytorch_symbolic.useful_layers is layers)
    """, ["True True"])}


@no_symbolic
@pytest.mark.parametrize("text, expected", SYMBOLIC.values(), ids=SYMBOLIC)
def test_programs_for_pytorch_symbolic(script, text, expected):
    """S51: what its README shows, under its names."""
    out = run(script(text))[0]
    assert all(line in out for line in expected), out


def test_installed_packages_of_these_names_go_before(script, tmp_path):
    script("NAME = 'installed'", "torchx.py")
    script("NAME = 'installed'", "pytorch_symbolic/__init__.py")
    script("NAME = 'below'", "pytorch_symbolic/config.py")
    path = script("import torch, torchx, pytorch_symbolic\nfrom pytorch_symbolic import config\nprint(torchx.NAME, pytorch_symbolic.NAME, config.NAME)")
    assert run(path)[0] == "installed installed below\n"


@no_torchx
@no_symbolic
def test_these_names_go_away_again():
    out = as_torch("""
        import sys, torchx.layers, pytorch_symbolic.config
        assert torchx.layers is tensorgrad.layers and pytorch_symbolic is tensorgrad.symbolic
        for name in "torchx.nonsense", "pytorch_symbolic.nonsense", "torchx.layers.nonsense", "torchx.nn.nonsense":
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                assert error.name == name
            else:
                raise AssertionError(name)
        tensorgrad.uninstall_as_torch()
        print([name for name in sys.modules if name.startswith(("torchx", "pytorch_symbolic"))])
        try:
            import torchx
        except ModuleNotFoundError as error:
            print(error)
    """)
    assert out == "[]\nNo module named 'torchx'\n"
