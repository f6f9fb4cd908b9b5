"""The shipped files: a small pure wheel that needs NumPy alone, and texts without slips."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import numpy as np
import pytest
from support import ROOT, fresh_process

import tensorgrad
from tensorgrad.messages.extras import EXTRAS as INSTALLED

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST_BYTES, MOST_LINES = 3_360_000, 800
EXTRAS = {"viz", "plot", "cuda12", "cuda13", "bfloat16", "experiment", "mpi", "mpich", "onnx", "tensorboard", "yaml",
          "oracle", "beside", "test"}
FOLDERS = ["tensorgrad", "native", "tests", "examples", "benchmarks", "scripts", ".ci"]
SUFFIXES = {".py", ".pyi", ".c", ".h", ".inc", ".md", ".toml", ".sh", ""}
ANYWHERE, PACKAGE = ("",), ("tensorgrad/",)

SLIPS = {  # what is wrong, what it looks like, where it may not stand
    "a path of one machine": (r"(?<![-.\w])/(?:work|farm|root|home|tmp|opt)/[a-z]", ANYWHERE),
    "a registry's host": (r"\b(?:pypi|anaconda|npmjs|pythonhosted)\.(?:org|com)\b", ANYWHERE),
    "unfinished work": (r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b", ANYWHERE),
    "the unrelated package": (r"^(?!.*(?i:never|not)\b).*pip install tensorgrad\b(?!-engine)", ANYWHERE),
    "what no index has": (r"pip install ['\"]?tensorgrad-engine", ANYWHERE),
    "an import of torch": (r"^\s*(?:import|from) torch\b", PACKAGE),
    "something not implemented": (r"raise NotImplementedError(?:\(\))?\s*$", PACKAGE),
}
CAUGHT = {
    "a path of one machine": "see /" "home/ann/x",
    "a registry's host": "https://pypi" ".org/simple",
    "unfinished work": "# TO" "DO: more",
    "the unrelated package": "run `pip install " "tensorgrad`",
    "what no index has": "pip install 'tensorgrad" "-engine[viz]'",
    "an import of torch": "    from torch import nn",
    "something not implemented": "    raise Not" "ImplementedError()",
}


def texts(places=ANYWHERE):
    """Path and content of each text whose path starts with one of `places`."""
    for file in [*ROOT.iterdir(), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))]:
        path = file.relative_to(ROOT).as_posix()
        if (file.is_file() and file.name != ".git" and file.suffix in SUFFIXES and "__pycache__" not in path
                and path.startswith(places)):
            yield path, file.read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize("slip", SLIPS)
def test_texts_have_no_slips(slip):
    pattern, places = SLIPS[slip]
    pattern = re.compile(pattern, re.MULTILINE)
    assert pattern.search(CAUGHT[slip])
    found = [f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
             for path, text in texts(places) for match in pattern.finditer(text)]
    assert not found


def test_messages_name_what_the_extras_bring():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert ({name: packages.split() for name, packages in INSTALLED.items()}
            == {name: declared[name] for name in INSTALLED})
    assert declared.keys() - INSTALLED.keys() == {"oracle", "beside", "test"}


def test_commands_that_texts_name_exist():
    """Each `python -m …` of a text names a module or a package of this repository."""
    missing = []
    for path, text in texts():
        for module in re.findall(r"python -m ((?:tensorgrad|examples|benchmarks)(?:\.\w+)*)",
                                 text) if not path.startswith("tests/") else ():
            file = ROOT / module.replace(".", "/")
            file = file / "__main__.py" if file.is_dir() else file.with_suffix(".py")
            missing += [(path, module)] * (not file.exists())
        missing += [(path, found) for found in re.findall(r"python -m torch\S*", text) if path.startswith(PACKAGE)]
    assert not missing


def test_no_file_is_long():
    lengths = {path: text.count("\n") for path, text in texts() if path.endswith(".py")}
    assert len(lengths) > 50 and not {path: n for path, n in lengths.items() if n > MOST_LINES}


def test_links_lead_somewhere():
    for name in ("README.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / name).read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{name} links to {target}"


def test_the_commands_of_the_readme_exist():
    goals = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert {"demo", "test"} <= named <= goals
    ci = ROOT / ".ci" / "run"
    assert os.access(ci, os.X_OK) and "make test" in ci.read_text(encoding="utf-8")


def test_one_version():
    assert tensorgrad.__version__ == PROJECT["version"]
    assert f"## [{PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
                   cwd=ROOT, env={**os.environ, "TENSORGRAD_PURE": "1"}, check=True, capture_output=True)
    [file] = folder.glob("*.whl")
    return file


def test_the_wheel_is_small_and_pure(wheel):
    assert wheel.name.endswith("-py3-none-any.whl") and wheel.stat().st_size <= MOST_BYTES


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    packed = set(zipfile.ZipFile(wheel).namelist())
    source = {file.relative_to(ROOT).as_posix() for file in (ROOT / "tensorgrad").rglob("*.py*")
              if file.suffix in (".py", ".pyi") and "tensorgrad/docs/" not in file.as_posix()}
    assert not any(name.startswith("tensorgrad/docs/") for name in packed)
    assert "tensorgrad/py.typed" in packed and source <= packed
    info = f"tensorgrad_engine-{PROJECT['version']}.dist-info"
    assert {name.partition("/")[0] for name in packed} == {"tensorgrad", info}


def test_the_wheel_needs_numpy_alone(wheel):
    archive = zipfile.ZipFile(wheel)
    info = f"tensorgrad_engine-{PROJECT['version']}.dist-info/"
    metadata = Parser().parsestr(archive.read(info + "METADATA").decode())
    assert metadata["Name"] == "tensorgrad-engine" and metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT" and info + "licenses/LICENSE" in archive.namelist()
    needs = metadata.get_all("Requires-Dist")
    assert [need for need in needs if "extra ==" not in need] == ["numpy>=2.0"]
    assert set(metadata.get_all("Provides-Extra")) == EXTRAS


def test_the_wheel_runs_beside_numpy_alone(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    (tmp_path / "numpy").symlink_to(Path(np.__file__).parent, target_is_directory=True)
    for libraries in Path(np.__file__).parents[1].glob("numpy.libs"):
        (tmp_path / "numpy.libs").symlink_to(libraries, target_is_directory=True)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import tensorgrad as torch\n"
        "others = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "assert others == {'__main__', 'numpy', 'tensorgrad'}, others\n"
        "model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))\n"
        "model(torch.ones(4, 2)).sum().backward()\n"
        "torch.optim.Adam(model.parameters()).step()\n"
        "print(len(list(model.parameters())))\n")
    done = subprocess.run([sys.executable, "-I", "-S", "-W", "error", "-c", program, str(tmp_path)],
                          capture_output=True, text=True)
    assert done.stdout == "4\n", done.stderr


def test_every_file_of_tests_loads_without_optional_packages():
    """A96: `python -m unittest discover tests` meets no error of loading, and runs the tests that are beside
    tests/common.
    """
    program = """
import importlib, pathlib, sys, unittest
for package in 'torch ml_dtypes scipy matplotlib onnx onnxruntime playwright cupy'.split():
    sys.modules[package] = None
loader = unittest.TestLoader()
suite = loader.discover('tests')
assert not loader.errors, loader.errors
names = {type(test).__module__ for tests in suite for group in tests for test in group}
assert names == {'test_nn', 'test_ops', 'test_optim', 'test_train'}, names
for path in pathlib.Path('tests').glob('*/test_*.py'):
    try:
        importlib.import_module('.'.join(path.with_suffix('').parts))
    except unittest.SkipTest:
        pass
print(suite.countTestCases())
"""
    assert int(fresh_process(program)) > 1000
