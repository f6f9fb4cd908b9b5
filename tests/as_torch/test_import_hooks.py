"""`torch.x` is the module `tensorgrad.x`, and never a second copy of it, wherever other import hooks are."""
import os
import subprocess
import sys
import textwrap

import pytest
from support import ROOT, cpu_only, fresh_process

INSTALL = "import tensorgrad\ntensorgrad.install_as_torch()\n"
HOOKS = {
    "pytest": """
        from _pytest.assertion import install_importhook
        from _pytest.config import get_config
        config = get_config()
        config.known_args_namespace = config._parser.parse_known_args([])
        hook = install_importhook(config)
        assert sys.meta_path[0] is hook""",
    "finders of every directory": """
        sys.meta_path.insert(0, importlib.machinery.PathFinder)
        from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
        loaders = (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceFileLoader, [".py"])
        sys.path_hooks.insert(0, FileFinder.path_hook(*loaders))
        sys.path_importer_cache.clear()""",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_in_front_loads_no_module_twice(hook):
    out = fresh_process(INSTALL + textwrap.dedent("""
        import importlib, sys, torch""" + HOOKS[hook] + """
        import torch.nn.functional as F, torch.utils.data.sampler, torch.optim.lr_scheduler, torch.cuda.amp.common
        import tensorgrad.distributions.normal
        from torch.distributions import Normal, kl
        from torch.functional import Tensor
        assert F is tensorgrad.nn.functional and kl is tensorgrad.distributions.kl and Tensor is tensorgrad.Tensor
        assert Normal is tensorgrad.distributions.normal.Normal
        ours = {name for name, module in sys.modules.items() if name.startswith("torch.")}
        own = {name: sys.modules[name].__name__ for name in ours}
        assert len(ours) >= 12 and all(name.startswith("tensorgrad.") for name in own.values()), own
        for missing in ("torch.nn.functionals", "torch.nosuch"):
            try:
                importlib.import_module(missing)
            except ModuleNotFoundError as error:
                assert error.name == missing
            assert importlib.util.find_spec(missing) is None
        print(torch.nn.Linear(2, 1)(torch.ones(1, 2)).shape)
    """))
    assert out == "torch.Size([1, 1])\n"


def test_reloading_and_walking_find_the_modules_there_are():
    out = fresh_process(textwrap.dedent("""
        import sys, tensorgrad, tensorgrad.nn
        before = list(tensorgrad.__path__), list(tensorgrad.nn.__path__), list(sys.path_hooks)
        tensorgrad.install_as_torch()
        import importlib, os, pkgutil, torch, tensorgrad.viz, torch.utils.data.sampler
        torch.marked = 1
        assert importlib.reload(torch) is torch is sys.modules["torch"] and torch.marked == 1
        sys.meta_path.insert(0, importlib.machinery.PathFinder)
        assert importlib.reload(torch.utils.data.sampler) is sys.modules["torch.utils.data.sampler"]
        assert torch.utils.data.sampler is tensorgrad.utils.data.sampler
        importlib.reload(torch.utils.data)
        import torch.utils.data.distributed as later
        assert later is tensorgrad.utils.data.distributed

        names = [found.name for found in pkgutil.iter_modules(torch.optim.__path__, "torch.optim.")]
        assert "torch.optim.sgd" in names and "torch.optim.muon" in names
        seen = [found for found in pkgutil.walk_packages(torch.__path__, "torch.") if found.name.startswith("torch.utils.")]
        packages = {found.name for found in seen if found.ispkg}
        assert "torch.utils.data._utils" in packages and "torch.utils.data.sampler" not in packages
        for name in [found.name for found in seen]:
            assert importlib.import_module(name) is importlib.import_module(name.replace("torch", "tensorgrad", 1)), name
        # no path of a module is a directory that other finders can read, but programs find the package's
        assert not any(map(os.path.isdir, (*torch.__path__, *torch.nn.__path__, *torch.utils.data._utils.__path__)))
        (place,) = importlib.util.find_spec("torch").submodule_search_locations
        assert os.path.samefile(place, os.path.dirname(torch.__file__))

        tensorgrad.as_torch.install.uninstall_as_torch()
        assert before == (tensorgrad.__path__, tensorgrad.nn.__path__, sys.path_hooks)
        import tensorgrad.symbolic
        assert all(map(os.path.isdir, (*tensorgrad.symbolic.__path__, *tensorgrad.viz.__path__)))
        assert not [entry for entry in sys.path_importer_cache if "torch:" in entry]
        print(len(seen) > 20)
    """))  # noqa: E501
    assert out == "True\n"


INSIDE = '''
import concurrent.futures, importlib, multiprocessing, pickle, sys
import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.size = nn.Linear(2, 1), torch.Size([2])
        self.device, self.dtype = torch.device("cpu"), torch.half

    def forward(self, x):
        return F.relu(self.inner(x))


def test_the_hook_is_in_front():
    assert type(sys.meta_path[0]).__name__ == "AssertionRewritingHook"
    import torch.utils.data.sampler, torch.distributions.normal, torch.nn.utils.prune
    own = {name: module.__name__ for name, module in sys.modules.items() if name.startswith("torch.")}
    assert all(name.startswith("tensorgrad.") for name in own.values()), own
    assert importlib.reload(torch) is torch is sys.modules["torch"]
    assert importlib.reload(torch.nn.utils.prune) is sys.modules["tensorgrad.nn.utils.prune"]


def child(model, x):
    assert model.dtype is torch.half and type(model.size) is torch.Size and model.device == torch.device("cpu")
    return model(x), torch.__name__, torch.nn.__name__


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children(method):
    model, x = Model(), torch.tensor([[1.0, 2.0]])
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        y, *names = pool.submit(child, model, x).result()
    assert torch.equal(y, model(x)) and names == ["torch", "tensorgrad.nn"]


def test_pickles():
    things = [torch.ones(2), torch.ones(1, device="meta"), nn.Parameter(torch.ones(2)), torch.float32, torch.Size([1]),
              torch.device("cpu"), torch.Generator().manual_seed(3), torch.strided, torch.channels_last, torch.add]
    optimizer = torch.optim.SGD([torch.ones(2)], 0.1)       # by PyTorch's name, as modules are
    assert b"torch.optim.sgd" in (text := pickle.dumps(optimizer)) and type(pickle.loads(text)) is torch.optim.SGD
    with open("things.pickle", "wb") as file:
        pickle.dump(things, file)
'''


@cpu_only
def test_pytests_own_hook_and_the_processes_it_starts(tmp_path):
    """Run tests of a PyTorch program, whose pickles are then read by a process without `torch`."""
    (tmp_path / "test_inside.py").write_text(INSIDE)
    done = subprocess.run([sys.executable, "-m", "tensorgrad", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                           "test_inside.py"], cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout + done.stderr
    out = fresh_process(textwrap.dedent(f"""
        import pickle, sys
        sys.modules["torch"] = None
        import tensorgrad
        with open({str(tmp_path / "things.pickle")!r}, "rb") as file:
            ones, meta, parameter, *others = pickle.load(file)
        dtype, size, device, generator, layout, memory_format, function, *_ = others
        assert type(ones) is type(meta) is tensorgrad.Tensor and type(parameter) is tensorgrad.nn.Parameter
        assert dtype is tensorgrad.float32 and type(size) is tensorgrad.Size and device == tensorgrad.device("cpu")
        assert tensorgrad.equal(tensorgrad.rand(3, generator=generator),
                                tensorgrad.rand(3, generator=tensorgrad.Generator().manual_seed(3)))
        print(layout, memory_format, function is tensorgrad.add)
    """))
    assert out == "torch.strided torch.channels_last True\n"
