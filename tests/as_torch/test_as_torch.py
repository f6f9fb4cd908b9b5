"""tensorgrad in the place of torch: `import torch` and all below it, names that are not there, `python -m
tensorgrad`.
"""
import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from support import ROOT, cpu_only, fresh_process

import tensorgrad

ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("DEVICE", "TENSORGRAD_SIMULATED_CUDA")} | {"PYTHONPATH": str(ROOT)}


def run(*arguments, code=0, cwd=None):
    """(output, errors) of `python -m tensorgrad` with these arguments."""
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tensorgrad", *map(str, arguments)], cwd=cwd,
                          env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def as_torch(text):
    """Run a program in a process where torch is tensorgrad, and return its output."""
    return fresh_process("import tensorgrad\ntensorgrad.install_as_torch()\n" + textwrap.dedent(text))


# ── imports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


PATHS = """nn nn.functional nn.modules nn.modules.conv nn.init nn.utils nn.utils.rnn nn.parameter nn.parallel
nn.common_types nn.grad nn.attention optim optim.lr_scheduler optim.swa_utils utils utils.data utils.data.dataloader
utils.data.distributed utils.checkpoint utils.dlpack utils._pytree utils.model_zoo utils.cpp_extension utils.benchmark
utils.collect_env utils.backcompat utils.deterministic utils.hooks distributions distributions.constraints
distributions.kl func linalg fft special signal signal.windows autograd autograd.function autograd.functional
autograd.profiler autograd.grad_mode autograd.anomaly_mode autograd.forward_ad autograd.gradcheck autograd.graph cuda
cuda.amp amp amp.autocast_mode amp.grad_scaler accelerator backends backends.cudnn backends.cuda backends.mkl
backends.mkldnn backends.openmp backends.mps backends.cpu backends.opt_einsum backends.quantized backends.mha version
torch_version onnx jit compiler
_dynamo _dynamo.config _dynamo.eval_frame multiprocessing
multiprocessing.spawn
distributed distributed.optim hub
profiler types testing quantization ao
ao.quantization sparse nested fx export
library futures functional storage random cpu mps xpu
mtia overrides return_types serialization
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
    """)  # noqa: E501
    assert (out == f"torch 2.13.0+tensorgrad 2.13.0+tensorgrad None {tensorgrad.__version__} True <class "
                   f"'torch.Tensor'>\n")


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
    """)  # noqa: E501
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
    """)  # noqa: E501
    assert out == "3\n[] []\n<class 'tensorgrad._tensor.Tensor'> torch.Size([1, 1])\n"


def test_modules_have_the_full_names_of_pytorch():
    """Packages write them into files, from which they import them again."""
    theirs = pytest.importorskip("torch").nn
    classes = [name for name in tensorgrad.nn.__all__ if isinstance(getattr(theirs, name, None), type)]
    out = as_torch(f"""
        import pickle
        from typing import get_type_hints
        from torch import Tensor, nn
        print("name" in get_type_hints(Tensor), "_compiled_call_impl" in get_type_hints(nn.Linear))
        print([getattr(nn, name).__module__ for name in {classes}])
        layer = nn.Sequential(nn.Linear(2, 1), nn.Tanh())
        again = pickle.loads(pickle.dumps(layer))
        print([type(part) for part in again], type(again[0]) is type(layer[0]))
        import torch, torch.utils.data
        for kind in (torch.optim.lr_scheduler.StepLR, torch.optim.Adam, torch.utils.data.TensorDataset, torch.finfo,
                     torch.distributions.Normal, torch.no_grad, torch.nn.utils.prune.Identity):
            print(kind)
        try:
            torch.softmx
        except AttributeError as error:
            print(str(error)[:42])
        tensorgrad.uninstall_as_torch()
        print(nn.Tanh.__module__, torch.optim.Adam.__module__)
    """)
    hints, modules, parts, *others, undone = out.splitlines()
    assert hints == "False False"             # transformers asks for those of its models
    assert modules == str([getattr(theirs, name).__module__ for name in classes]) and len(classes) > 100
    assert parts == "[<class 'torch.nn.modules.linear.Linear'>, <class 'torch.nn.modules.activation.Tanh'>] True"
    assert others == [f"<class 'torch.{name}'>" for name in (
        "optim.lr_scheduler.StepLR", "optim.adam.Adam", "utils.data.dataset.TensorDataset", "finfo",
        "distributions.normal.Normal", "autograd.grad_mode.no_grad", "nn.utils.prune.Identity")] + [
        "module 'torch' has no attribute 'softmx' ("]
    assert undone == "tensorgrad.nn.modules.activation tensorgrad.optim.adam"


def test_it_refuses_where_torch_is_something_else():
    error = fresh_process("import sys, types; sys.modules['torch'] = types.ModuleType('torch')\nimport tensorgrad; "
                          "tensorgrad.install_as_torch()", fails=True)
    assert error.startswith("RuntimeError: cannot install tensorgrad as torch: the module 'torch' is already imported")


# ── names that are not there ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("statement, message", [
    ("import torch.nonsense",
     "ModuleNotFoundError: No module named 'torch.nonsense' (tensorgrad, in the place of torch, has none)"),
    ("import torch.jit.nonsense",
     "ModuleNotFoundError: No module named 'torch.jit.nonsense' (tensorgrad, in the place of torch, has none)"),
    ("import torch.ao.nn.quantized",
     "ModuleNotFoundError: No module named 'torch.ao.nn' (tensorgrad has none: there are no quantized tensors)"),
    ("from torch.utils import jit",
     "ImportError: cannot import name 'jit' from 'tensorgrad.utils' (tensorgrad has none: no C++ or Triton is"),
    ("from torch.distributed.pipelining import pipeline",
     "ModuleNotFoundError: No module named 'torch.distributed.pipelining' (tensorgrad has none: a"),
    ("import torch.distributed.checkpoint.quantized_hf_storage",
     "ModuleNotFoundError: No module named 'torch.distributed.checkpoint.quantized_hf_storage' (tensorgrad has none"),
    ("from torch.distributed.autograd import context",
     "ModuleNotFoundError: No module named 'torch.distributed.autograd' (tensorgrad has none: processes"),
    ("from torch.nn.functional import gelo",
     "ImportError: cannot import name 'gelo' from 'tensorgrad.nn.functional' (tensorgrad has torch.nn.functional.gelu"),
    ("from torch.nn.functional import nonsense",
     "ImportError: cannot import name 'nonsense' from 'tensorgrad.nn.functional'"),
    ("import torch.nn.functionl",
     "ModuleNotFoundError: No module named 'torch.nn.functionl' (tensorgrad has torch.nn.functional)"),
    ("from torch.nn import Liner",
     "ImportError: cannot import name 'Liner' from 'tensorgrad.nn' (tensorgrad has torch.nn.Linear"),
    ("from torch import Linear",
     "ImportError: cannot import name 'Linear' from 'tensorgrad' (tensorgrad has torch.nn.Linear"),
    ("torch.softmx", "AttributeError: module 'tensorgrad' has no attribute 'softmx' (tensorgrad has torch.softmax)"),
    ("torch.nn.relu", "AttributeError: module 'tensorgrad.nn' has no attribute 'relu' (tensorgrad has torch.nn.ReLU, "
                      "torch.relu"),
    ("torch.optim.adamm",
     "AttributeError: module 'tensorgrad.optim' has no attribute 'adamm' (tensorgrad has torch.optim.Adam"),
    ("torch.nn.functional.gelo",
     "AttributeError: module 'tensorgrad.nn.functional' has no attribute 'gelo' (tensorgrad has "
     "torch.nn.functional.gelu"),
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
    """.replace("import importlib\n", "import importlib.util, torch\n"))  # noqa: E501
    assert out == "True None tensorgrad.distributed.nn.functional\n"
    if importlib.util.find_spec("torch") is not None:
        assert not [name for name in table if not there(f"torch.{name}")]


INCIDENTAL = """functional: Tensor F; nn.functional: Tensor _in_projection _in_projection_packed; nn.modules.conv: Tensor Parameter init F; nn.modules.loss: F
Tensor; nn.modules.linear: init; nn.modules.normalization: Parameter; nn.modules.transformer: _get_clones _get_activation_fn Tensor; nn.modules.utils:
_list_with_default; nn.init: Tensor _no_grad_trunc_normal_ _no_grad_normal_ _no_grad_uniform_ _no_grad_fill_; distributions.distribution: Tensor;
_jit_internal: Optional Tuple; cuda.amp: grad_scaler autocast_mode; utils.checkpoint: get_device_states set_device_states; distributed: nn"""  # noqa: E501


def test_names_that_programs_import_from_where_they_happen_to_be(script):
    pairs = [line.split(":") for line in INCIDENTAL.split(";")]
    statements = [f"from torch.{module.strip()} import {name}" for module, names in pairs for name in names.split()]
    out = run(
        script("\n".join(["import torch", *statements,
                          "print(Tensor is torch.Tensor, F is torch.nn.functional, init is torch.nn.init)"])))[0]
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
    """)  # noqa: E501
    expected = "['-x', 'y'] script.py True __main__ 5 tensor([1., 1.]) True\n"
    assert run(path, "-x", "y")[0] == run("script.py", "-x", "y", cwd=tmp_path)[0] == expected


def test_a_module_and_a_package(script, tmp_path):
    script("import sys, torch\nfrom . import part\nprint(__name__, __package__, sys.argv[1:], part.torch is torch)",
           "pack/__main__.py")
    script("import torch", "pack/part.py")
    script("import sys, torch\nprint(__name__, __spec__.name, torch.__name__, sys.argv[1:])", "alone.py")
    assert run("-m", "pack", "1", cwd=tmp_path)[0] == "__main__ pack ['1'] True\n"
    assert run("-m", "alone", "-m", "2", cwd=tmp_path)[0] == "__main__ alone torch ['-m', '2']\n"
    assert run("-c", "import sys, torch; print(sys.argv, torch.zeros(1))", "3")[0] == "['-c', '3'] tensor([0.])\n"
    assert "No module named nothing" in run("-m", "nothing", code=1)[1]
    program = "import sys, torch\nprint(sys.argv, torch.ones(1), __name__)\n"
    done = subprocess.run([sys.executable, "-m", "tensorgrad", "-", "4"], input=program, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == "['-', '4'] tensor([1.]) __main__\n", done.stderr


def test_errors_are_the_programs_own(script):
    path = script("import torch\n\ndef fail():\n    torch.ones(2) + torch.ones(3)\n\nfail()\n")
    errors = run(path, code=1)[1]
    assert errors.startswith(f'Traceback (most recent call last):\n  File "{path}", line 6, in <module>\n')
    assert "__main__.py" not in errors and "runpy" not in errors and "importlib" not in errors
    path = script("def late():\n    import torch.nn.functionl\nlate()\n")
    errors = run(path, code=1)[1]
    assert ([line for line in errors.splitlines() if line.startswith("  File")]
            == [f'  File "{path}", line 3, in <module>', f'  File "{path}", line 2, in late'])
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
    hooked = ("import sys\nsys.excepthook = lambda kind, error, trace: print(kind.__name__, "
              "trace.tb_frame.f_code.co_name)\n1 / 0\n")
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
    """)  # noqa: E501
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


# ── torchx and pytorch_symbolic ───────────────────────────────────────────────────────────────────────────────────────


def installed(name):
    """Tell whether a package of this name is there, which then is the one that programs get."""
    return importlib.util.find_spec(name) is not None


no_torchx = pytest.mark.skipif(installed("torchx"), reason="a package torchx is installed")
no_symbolic = pytest.mark.skipif(installed("pytorch_symbolic"), reason="a package pytorch_symbolic is installed")
plain_cpu = pytest.mark.skipif(ENVIRONMENT.get("CUDA_VISIBLE_DEVICES", "") != "" or tensorgrad.cuda.is_available(),
                               reason="about machines without CUDA")

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
    """, "torch.Size([8, 10]) (8, 1960) Sequential"),  # noqa: E501
    "a diamond": ("""
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
    """, "True True True True True")}  # noqa: E501


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
    """, ["True True"])}  # noqa: E501


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
    path = script("import torch, torchx, pytorch_symbolic\nfrom pytorch_symbolic import config\nprint(torchx.NAME, "
                  "pytorch_symbolic.NAME, config.NAME)")
    assert run(path)[0] == "installed installed below\n"


@no_torchx
@no_symbolic
def test_these_names_go_away_again():
    out = as_torch("""
        import sys, torchx.layers, pytorch_symbolic.config
        assert torchx.layers is tensorgrad.layers and pytorch_symbolic is tensorgrad.symbolic
        for name in ("torchx.nonsense", "pytorch_symbolic.nonsense", "torchx.layers.nonsense", "torchx.nn.nonsense",
                     "functorch.nonsense"):
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
