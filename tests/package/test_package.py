"""Packages: what PyTorch writes is read here and the other way round, and each refuses what the other refuses."""
import gc
import inspect
import io
import logging
import os
import sys
import zipfile

import pytest

import tensorgrad
from tensorgrad.package import (
    ObjMismatchError,
    PackageExporter,
    PackageImporter,
    PackagingError,
    is_from_package,
    sys_importer,
)

SOURCES = {"shop/__init__.py": "from .till import Till\nfrom . import stock\n",
           "shop/till.py": "import math\nfrom .stock import goods\n\n\nclass Till:\n"
                           "    def __init__(self, sums):\n        self.sums = sums\n\n"
                           "    def most(self):\n        return math.floor(max(self.sums))\n",
           "shop/stock.py": "import colorsys as colors\n"
                            "__import__('shop.shelf.top', fromlist=['left'])\ngoods = ['tea']\n",
           "shop/shelf/top.py": "left = 1\n", "lonely.py": "from missing_elsewhere import *\n", "attic.py": "pen = 1\n"}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("shop")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("shop", "attic", "lonely")]:
        del sys.modules[name]


@pytest.fixture
def oracle():
    pytest.importorskip("torch.package")
    return sys.modules["torch"]


def package(library, *contents):
    file = io.BytesIO()
    with library.package.PackageExporter(file) as exporter:
        for name, *arguments in contents:
            getattr(exporter, name)(*arguments)
    file.seek(0)
    return file


def same(there, call):
    """Compare the results of a call with both libraries, or their errors."""
    def outcome(library):
        try:
            return call(library)
        except Exception as error:
            return type(error).__name__, str(error)
    ours = outcome(tensorgrad)
    assert ours == outcome(there)
    return ours


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_each_reads_the_packages_of_the_other(oracle, shop):
    for writer, reader in ((tensorgrad, oracle), (oracle, tensorgrad)):
        weight = writer.arange(6.).reshape(2, 3).t()
        layer = writer.nn.Linear(2, 3)
        contents = {"layer": layer, "weight": weight, "column": weight[1], "till": shop.Till([2.5, 1.])}
        file = package(writer, ("intern", "shop.**"), ("save_pickle", "data", "all.pkl", contents, True, 4),
                       ("save_pickle", "data", "again.pkl", weight), ("save_binary", "data", "raw", b"\0\1"),
                       ("save_source_string", "code.model", "import torch\nfrom torch.nn import functional as F\n"
                                                            "def run(x): return F.relu(torch.neg(x))\n"))
        importer = reader.package.PackageImporter(file)
        found = importer.load_pickle("data", "all.pkl", map_location="cpu")
        assert found["weight"].tolist() == weight.tolist() and found["weight"].stride() == weight.stride()
        assert found["column"].data_ptr() == found["weight"][1].data_ptr()
        assert found["layer"].weight.tolist() == layer.weight.tolist() and type(found["layer"]) is reader.nn.Linear
        assert importer.load_pickle("data", "again.pkl").tolist() == weight.tolist()
        assert found["till"].most() == 2 and type(found["till"]) is not shop.Till
        assert importer.import_module("shop.till").goods is importer.import_module("shop").stock.goods
        assert importer.import_module("shop.stock").colors is sys.modules["colorsys"]
        assert importer.load_binary("data", "raw") == b"\0\1"
        assert importer.import_module("code.model").run(reader.tensor([1., -2.])).tolist() == [0, 2]
        assert sum(record.endswith(".storage") for record in importer.zip_reader.get_all_records()) == 3


def test_errors_are_those_of_pytorch(oracle, shop, tmp_path):
    def closing(*contents):
        return same(oracle, lambda library: package(library, *contents) and None)
    till = shop.Till([1.])
    assert "Extern, mock, or intern it" in closing(("save_pickle", "a", "b", till))[1]
    assert "denied" in closing(("deny", "shop.stock"), ("save_module", "shop.till"))[1]
    assert "was mocked out" in closing(("mock", "shop.till"), ("save_pickle", "a", "b", till))[1]
    assert "beyond top-level" in closing(("save_source_string", "a", "from ... import b"))[1]
    assert "system level access" in closing(("save_source_string", "a", "import sys"))[1]
    assert "save_module() expects" in closing(("save_module", shop))[1]
    assert closing(("save_module", "nowhere"))[0] == "ModuleNotFoundError"
    assert closing(("save_text", "a.b", "c", "x"), ("save_text", "a", "b/c", "x"))[0] == "ValueError"
    assert closing(("extern", "shop.*"), ("save_pickle", "a", "b", till), ("save_text", "a", "b", ""))
    assert closing(("save_pickle", "a", "b", 3, True, 2))[0] == "AssertionError"
    assert closing(("save_module", "lonely")) == ("ModuleNotFoundError", "No module named 'missing_elsewhere'")
    empty = same(oracle, lambda library: library.package.PackageExporter(io.BytesIO(), importer=3))
    assert empty[0] == "TypeError"
    file = package(tensorgrad, ("extern", "shop"), ("save_source_string", "a", "import shop; import b.c"))
    same(oracle, lambda library: library.package.PackageImporter(io.BytesIO(file.getvalue())).import_module("d"))
    (tmp_path / "shop.pt").write_bytes(file.getvalue())
    assert same(oracle, lambda library: library.package.PackageImporter(
        tmp_path / "shop.pt", lambda name: name != "shop"))[0] == "ImportError"


def test_names_are_matched_and_drawn_as_in_pytorch(oracle):
    names = ("a", "a.b", "a.b.c", "ab", "", "b.a", "a.bc.d")
    for include, exclude in (("a.**", ()), ("**", ["a.*"]), ("*", ()), ("**.a", "a"), (["a.b*.**", "ab"], "**.c")):
        same(oracle, lambda library, include=include, exclude=exclude: [
            library.package.GlobGroup(include, exclude=exclude).matches(name) for name in names])
    assert same(oracle, lambda library: library.package.GlobGroup("a**"))[0] == "ValueError"
    file = package(tensorgrad, ("save_text", "a.b", "c.txt", "x"), ("save_text", "a", "d", "y"),
                   ("save_source_string", "z", ""), ("save_source_string", "a.b.e", "", True)).getvalue()

    def drawn(library, **patterns):
        tree = library.package.PackageImporter(io.BytesIO(file)).file_structure(**patterns)
        return str(tree), [tree.has_file(name) for name in ("z.py", "a/b", "a/b/c.txt", "a/b/e/__init__.py")]
    assert "│   │   └── c.txt\n" in same(oracle, drawn)[0]
    same(oracle, lambda library: drawn(library, include=["**/*.txt", "*.py"], exclude="z.*"))

    def paths(library):
        graph = __import__(f"{library.__name__}.package._digraph", fromlist=["DiGraph"]).DiGraph()
        for edge in ("ab", "ac", "bd", "cd", "de", "xy"):
            graph.add_edge(*edge)
        return sorted(graph.all_paths("a", "d").splitlines()), graph.first_path("e")[0], sorted(graph.to_dot())
    same(oracle, paths)


def test_modules_of_a_package_are_apart_and_have_their_source(shop, tmp_path):
    path = tmp_path / "shop.pt"
    with PackageExporter(path) as exporter:
        exporter.intern("shop.**")
        exporter.mock("attic")
        exporter.save_pickle("data", "till.pkl", shop.Till([3.]))
        exporter.save_source_string("use", "import shop.till as t\nimport attic\nimport importlib.resources as r\n"
                                           "import torch_package_importer as me\nimport data\n"
                                           "text = r.files(data).joinpath('a.txt').read_text()\n", dependencies=False)
        exporter.add_dependency("attic")
        exporter.add_dependency("importlib.resources")
        exporter.save_source_string("broken", "1 / 0")
        exporter.save_text("data", "a.txt", "tea")
        assert exporter.get_rdeps("shop.stock") == ["shop.till"] and exporter.mocked_modules() == ["attic"]
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "out")
    for place in (path, tmp_path / "out" / "shop"):
        importer = PackageImporter(place)
        use, till = importer.import_module("use"), importer.load_pickle("data", "till.pkl")
        assert use.text == "tea" and use.me is importer and use.t.Till is type(till)
        assert is_from_package(till) and is_from_package(use) and not is_from_package(shop)
        assert inspect.getsource(type(till)) == inspect.getsource(shop.Till)
        assert importer.get_source("shop.stock") == SOURCES["shop/stock.py"]
        with pytest.raises(NotImplementedError, match=r"'<torch_package_\d+>.attic.pen' was mocked out"):
            use.attic.pen()
        with pytest.raises(ZeroDivisionError):
            importer.import_module("broken")
        assert "broken" not in importer.modules
        with pytest.raises(ModuleNotFoundError, match="self-contained archive"):
            importer.import_module("json")
    with pytest.raises(ObjMismatchError, match="coming from <torch_package"):
        sys_importer.get_name(type(till))
    again = io.BytesIO()
    logging.disable()
    try:
        with PackageExporter(again, importer=(importer, sys_importer)) as exporter:
            exporter.intern("**")
            exporter.save_pickle("data", "till.pkl", till)
    finally:
        logging.disable(logging.NOTSET)
    assert PackageImporter(io.BytesIO(again.getvalue())).load_pickle("data", "till.pkl").most() == 3
    prefix = importer.id()
    del importer, use, till, exporter
    gc.collect()
    assert not [name for name in sys.modules if name.startswith(prefix)]


def test_a_failed_export_leaves_the_file(tmp_path, shop):
    path = tmp_path / "kept.pt"
    path.write_bytes(b"old")
    with pytest.raises(PackagingError), PackageExporter(path, debug=True) as exporter:
        exporter.save_pickle("a", "b", shop.Till([1.]))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path).count("kept.pt") == 1


def test_graphs_and_scripted_modules_take_their_code_along():
    x = tensorgrad.tensor([1., -2.])
    module = tensorgrad.nn.Sequential(tensorgrad.nn.Linear(2, 2), tensorgrad.nn.Tanh())
    traced, scripted = tensorgrad.fx.symbolic_trace(module), tensorgrad.jit.script(module)
    file = package(tensorgrad, ("save_pickle", "a", "b", [traced, scripted]))
    found = PackageImporter(file).load_pickle("a", "b")
    assert all(tensorgrad.equal(each(x), module(x)) for each in found)
    assert isinstance(found[1], tensorgrad.jit.RecursiveScriptModule)
    with pytest.raises(RuntimeError, match="Tried to serialize object __torch__.*Sequential which does not have a"):
        tensorgrad.save(scripted, io.BytesIO())
