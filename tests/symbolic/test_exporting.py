"""Models as Python files, which run here and under PyTorch; and the arguments of layers, read back from them."""
import math
import operator
import subprocess
import sys

import pytest

import tensorgrad as torch
import tensorgrad.nn.functional as F
from tensorgrad import nn
from tensorgrad.symbolic import CustomInput, Input, SymbolicModel, add_to_graph
from tensorgrad.symbolic.construction import arguments_of


def pictures():
    x = Input((3, 16, 16))
    y = nn.Conv2d(3, 8, 3, padding=1, bias=False)(x)(nn.BatchNorm2d(8))(nn.ReLU())
    inner = Input((8, 16, 16))
    block = SymbolicModel(inner, nn.Sequential(nn.Conv2d(8, 8, (1, 3), padding=(0, 1)), nn.LeakyReLU(0.2))(inner)
                          + inner)
    y = F.avg_pool2d(torch.cat((block(y), block(y).flip(-1)), dim=1), 2).mean((2, 3))
    y = y * nn.Parameter(torch.rand(16)) - torch.arange(16.0) / 3
    return SymbolicModel(x, (y, y.argmax(dim=1), nn.LayerNorm(16)(y)[:, ::2])), (torch.rand(2, 3, 16, 16),)


def words():
    x = Input((None,), dtype=torch.int64)
    out, (h, _) = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)(nn.Embedding(10, 6, padding_idx=0)(x))
    attended, weights = nn.MultiheadAttention(10, 2, batch_first=True)(out, out, out)
    return SymbolicModel(x, [attended.view(None, None, 2, 5).transpose(1, 2), h[-1].T.sum() ** 2,
                             abs(-weights) // 0.3]), (torch.randint(10, (3, 4)),)


def named():
    x, y = Input((4,), custom_name="image"), Input((4,), custom_name="class")
    h = nn.Linear(4, 4)(x, custom_name="encoder") @ torch.eye(4) + y.to(torch.float32) * math.inf
    h = torch.where(h.isnan(), torch.full_like(h, -1.5), h).clamp(-2, 1e30)
    return SymbolicModel([x, y], h), (torch.rand(2, 4), torch.zeros(2, 4, dtype=torch.int32))


def sequence():
    from collections import OrderedDict
    x = Input((4,))
    net = nn.Sequential(OrderedDict(first=nn.Linear(4, 3, dtype=torch.float64),
                                    second=nn.PReLU(3, 0.1, dtype=torch.float64)))
    shared = nn.Linear(3, 3, bias=False)
    y = shared(shared(net(x.double()).float()))
    return SymbolicModel(x, y.sqrt().nan_to_num(nan=0.5, posinf=None)), (torch.rand(5, 4),)


MODELS = [pictures, words, named, sequence]


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("make", MODELS)
def test_files_define_the_same_model(make, inside):
    torch.manual_seed(0)
    model, inputs = make()
    path = model.eval().save_source(inside / f"{make.__name__}_net.py", "Net")
    text = path.read_text().replace("import torch\n", "import tensorgrad as torch\n").replace("from torch",
                                                                                              "from tensorgrad")
    scope = {"__name__": "net"}
    exec(compile(text, str(path), "exec"), scope)
    twin = scope["Net"]().eval()
    assert [*twin.state_dict()] == [*model.state_dict()]
    twin.load_state_dict(model.state_dict())
    found, wanted = twin(*inputs), model(*inputs)
    assert all(map(torch.equal, *([x if isinstance(x, tuple) else (x,) for x in (found, wanted)])))


@pytest.mark.parametrize("make", MODELS)
def test_files_run_under_pytorch(make, inside):
    pytest.importorskip("torch")
    torch.manual_seed(0)
    model, inputs = make()
    model.eval().save_source(inside / "net.py", "Net")
    result = model(*inputs)
    torch.save([model.state_dict(), inputs, result if isinstance(result, tuple) else (result,)], inside / "all.pt")
    (inside / "run.py").write_text(
        "import torch\nfrom net import Net\nstate, inputs, wanted = torch.load('all.pt')\nnet = "
        "Net().eval()\nnet.load_state_dict(state)\nwith torch.no_grad():\n    found = net(*inputs)\nfor a, b in "
        "zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):\n    torch.testing.assert_close(a, "
        "b.detach())\nprint(torch.__file__)\n")
    done = subprocess.run([sys.executable, "run.py"], cwd=inside, capture_output=True, encoding="utf-8", timeout=120,
                          check=False)
    assert done.returncode == 0 and "tensorgrad" not in done.stdout, done.stderr


def test_the_text_of_a_file():
    x = Input((784,))
    model = SymbolicModel(x, nn.Linear(784, 10)(nn.Dropout(0.1)(x)).softmax(dim=1))
    assert model.source("Digits").splitlines()[1:] == [
        "from torch import nn", "", "", "class Digits(nn.Module):", "    def __init__(self):",
        "        super().__init__()", "        self.Dropout_1 = nn.Dropout(0.1)",
        "        self.Linear_1 = nn.Linear(784, 10)", "", "    def forward(self, i0):",
        "        x0 = self.Dropout_1(i0)", "        x0 = self.Linear_1(x0)",
        "        return x0.softmax(dim=1)"]


def test_layers_that_cannot_be_written_are_given():
    class Own(nn.Module):
        def forward(self, x):
            return x + 1

    x, layer = Input((3,)), Own()
    scope = {}
    exec(SymbolicModel(x, nn.ReLU()(layer(x))).source().replace("from torch", "from tensorgrad"), scope)
    assert scope["Model"](layer)(torch.tensor([[-3.0, 0, 1]])).tolist() == [[0, 1, 2]]


def test_functions_of_other_modules_are_imported():
    x = CustomInput([3, 1])
    text = SymbolicModel(x, add_to_graph(operator.indexOf, x, 1)).source()
    scope = {}
    exec(text.replace("from torch", "from tensorgrad"), scope)
    assert scope["Model"]()([5, 6, 1]) == 2 and "import indexOf" in text


@pytest.mark.parametrize("function, said", [(lambda x: x + 1, "lambda"), (object(), "object")])
def test_what_cannot_be_written_is_named(function, said, inside):
    x = Input((3,))
    y = add_to_graph(function, x) if callable(function) else add_to_graph(lambda a, b: a, x, function)
    with pytest.raises(ValueError, match=said):
        SymbolicModel(x, y).save_source(inside / "net.py")
    assert not (inside / "net.py").exists()
    with pytest.raises(ValueError, match="name of a class"):
        SymbolicModel(x, x + 1).source("1st")


def test_copies_can_be_written_too():
    model, _ = pictures()
    assert model.detach_from_graph().source() == model.source()


# ── constructors ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("module, expected", [
    (nn.Linear(2, 3), {"in_features": 2, "out_features": 3}),
    (nn.Linear(2, 3, False), {"in_features": 2, "out_features": 3, "bias": False}),
    (nn.Conv2d(2, 4, 3, stride=(2, 1), groups=2, padding=1),
     {"in_channels": 2, "out_channels": 4, "kernel_size": (3, 3), "stride": (2, 1),
                         "padding": (1, 1), "groups": 2}),
    (nn.GRU(2, 3, num_layers=2), {"input_size": 2, "hidden_size": 3, "num_layers": 2}),
    (nn.RNN(2, 3, nonlinearity="relu"), {
        "input_size": 2, "hidden_size": 3, "nonlinearity": "relu"}),
    (nn.MultiheadAttention(4, 2, bias=False, kdim=3),
     {"embed_dim": 4, "num_heads": 2, "bias": False, "kdim": 3, "vdim": 4}),
    (nn.BatchNorm1d(3, momentum=None), {"num_features": 3, "momentum": None}), (nn.Linear(2, 3, dtype=torch.float64), {
        "in_features": 2, "out_features": 3, "dtype": torch.float64}),
    (nn.TransformerEncoderLayer(4, 2), None), (nn.Sequential(nn.ReLU()), None), (nn.ModuleList(), None)])
def test_arguments_are_read_back(module, expected):
    assert arguments_of(module) == expected


def test_a_layer_that_was_changed_tells_nothing():
    layer = nn.Linear(2, 3)
    layer.weight = nn.Parameter(torch.zeros(5, 2))
    assert arguments_of(layer) is None
    dropout = nn.Dropout(0.5)
    dropout.extra = 7
    assert arguments_of(dropout) is None
    class Own(nn.Linear):
        pass
    assert arguments_of(Own(2, 3)) is None


def test_reading_draws_nothing():
    state = torch.get_rng_state()
    layer = nn.Linear(2, 3)
    torch.set_rng_state(state)
    arguments_of(layer)
    assert torch.equal(torch.get_rng_state(), state)
