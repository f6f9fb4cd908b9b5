"""Packages that probe for `torch` find its distribution and no array API, or nothing, if it is hidden from them."""
import os
import subprocess
import sys
import textwrap

import pytest
from support import ROOT, cpu_only, fresh_process

# Packages that a program hides torch from, or not; each notes what it found.
PROBING = """
import importlib, importlib.metadata, importlib.util
from importlib.metadata import version

def probe():
    found = []
    try:
        import torch.nn.functional
    except ImportError as error:
        found.append((type(error).__name__, str(error), error.name))
    for question in (lambda: importlib.import_module("torch.nn").__name__,
                     lambda: importlib.import_module("torch").__name__,
                     lambda: importlib.util.find_spec("torch") is not None,
                     lambda: importlib.util.find_spec("torch.nn") is not None, lambda: version("torch"),
                     lambda: __import__("torch", globals()).__name__,
                     lambda: "torch" in importlib.metadata.packages_distributions(),
                     lambda: importlib.import_module(".names", __package__).TORCH):
        try:
            found.append(question())
        except ImportError as error:
            found.append((type(error).__name__, str(error)))
    return found

found = probe()
"""
ABSENT = [("ModuleNotFoundError", "No module named 'torch.nn.functional'", "torch.nn.functional"),
          ("ModuleNotFoundError", "No module named 'torch.nn'"), ("ModuleNotFoundError", "No module named 'torch'"),
          False, ("ModuleNotFoundError", "No module named 'torch'"),
          ("PackageNotFoundError", "No package metadata was found for torch"),
          ("ModuleNotFoundError", "No module named 'torch'")]
PRESENT = ["tensorgrad.nn", "torch", True, True, "2.13.0+tensorgrad", "torch", True, "a name"]


@pytest.fixture
def packages(tmp_path):
    for name in ("wary", "wary_too", "bold"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "inner" / "__init__.py").write_text(PROBING)
        (tmp_path / name / "inner" / "names.py").write_text("TORCH = 'a name'")
    return tmp_path


def test_torch_is_absent_for_packages_that_a_program_names(packages):
    out = fresh_process(textwrap.dedent(f"""
        import sys, builtins, importlib, importlib.util
        sys.path.insert(0, {str(packages)!r})
        plain = builtins.__import__, importlib.import_module, importlib.util.find_spec
        import tensorgrad
        for wrong in ("wary", ["a b"], [3]):
            try:
                tensorgrad.install_as_torch(hidden_from=wrong)
            except (TypeError, ValueError) as error:
                print(type(error).__name__)
            assert "torch" not in sys.modules
        tensorgrad.install_as_torch(hidden_from=["wary.inner"])
        tensorgrad.install_as_torch(hidden_from=("wary_too",))
        import torch, wary.inner, wary_too.inner, bold.inner
        assert wary.inner.found[:7] == wary_too.inner.found[:7] == {ABSENT!r}, wary.inner.found
        assert wary.inner.found[-1] == "a name"
        assert bold.inner.found == {PRESENT!r}, bold.inner.found
        assert wary.inner.probe()[:7] == {ABSENT!r} and importlib.import_module("torch") is torch
        tensorgrad.uninstall_as_torch()
        assert plain == (builtins.__import__, importlib.import_module, importlib.util.find_spec)
        tensorgrad.install_as_torch()
        assert wary.inner.probe() == {PRESENT!r}
    """))
    assert out == "TypeError\nValueError\nValueError\n"


@cpu_only
def test_it_is_hidden_in_spawned_processes_too(packages):
    (packages / "program.py").write_text(textwrap.dedent("""
        import multiprocessing, torch
        from wary import inner

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found = pool.apply(inner.probe)
                print(found[2], found[5][0], pool.apply(torch.add, (torch.ones(1), 2)))
    """))
    done = subprocess.run([sys.executable, "-m", "tensorgrad", "--hidden-from", "wary,other", "program.py"],
                          cwd=packages, env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"},
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == "('ModuleNotFoundError', \"No module named 'torch'\") PackageNotFoundError tensor([3.])\n", \
        done.stderr


def test_the_distribution_torch_has_the_facts_of_this_package():
    out = fresh_process(textwrap.dedent("""
        import importlib.metadata as metadata, os
        before = {found.name for found in metadata.distributions()}
        own = next(iter(metadata.Distribution.discover(name="tensorgrad-engine")), None)
        import tensorgrad
        tensorgrad.install_as_torch()
        torch = metadata.distribution("torch")
        assert torch.name == "torch" and torch.version == metadata.version("Torch") == tensorgrad.version.__version__
        assert {found.name for found in metadata.distributions()} == before | {"torch"}
        assert "torch" in metadata.packages_distributions()["torch"] and not torch.entry_points
        assert torch.locate_file("tensorgrad/__init__.py").is_file()
        here = os.path.dirname(tensorgrad.__path__[0].rpartition(":")[2])
        assert not list(metadata.distributions(name="torch", path=["/nowhere"]))
        assert [found.version for found in metadata.distributions(name="torch", path=[here])] == [torch.version]
        if own is not None:
            assert torch.requires == [line for line in own.requires if "extra ==" not in line]
            assert torch.metadata["Summary"] == own.metadata["Summary"]
            assert all(file.locate().is_file() for file in torch.files or ())
        print(torch.metadata.get_all("Name"), metadata.version("numpy") is not None)
    """))
    assert out == "['torch'] True\n"


def test_tensors_are_no_arrays_of_the_standard_as_in_pytorch():
    out = fresh_process(textwrap.dedent("""
        import tensorgrad
        x = tensorgrad.ones(2)
        before = hasattr(x, "__array_namespace__")
        tensorgrad.install_as_torch()
        during = hasattr(x, "__array_namespace__")
        tensorgrad.overrides.BaseTorchFunctionMode().__enter__()
        tensorgrad.uninstall_as_torch()
        print(before, during, x.__array_namespace__().__name__)
    """))
    assert out == "True False tensorgrad.array_api\n"
