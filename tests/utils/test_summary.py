"""Models as tables: the text and totals of torchinfo over PyTorch, and a model that is afterwards as it was."""
import contextlib
import importlib
import io
import warnings

import numpy as np
import pytest
from support import DEVICE

import tensorgrad

COLUMNS = ("kernel_size", "input_size", "output_size", "num_params", "params_percent", "mult_adds", "trainable")
SETTINGS = [{}, {"col_names": COLUMNS, "row_settings": ("var_names", "depth"), "col_width": 16, "depth": 10},
            {"verbose": 2, "col_names": COLUMNS, "depth": 2}, {"depth": 1, "col_names": COLUMNS},
            {"depth": 0, "row_settings": ()}, {"depth": -1, "col_width": 5},
            {"row_settings": ("ascii_only", "hide_recursive_layers", "depth"), "verbose": 2},
            {"row_settings": ("hide_recursive_layers",), "col_names": COLUMNS}]


def zoo(torch):
    """{name: (model(), arguments of summary)}"""
    nn = torch.nn
    forwards = {}

    def model(**calls):
        """A module of parts, and a function of the module and its input that calls them."""
        def decorate(forward):
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    for name, part in calls.items():
                        setattr(self, name, part())

                def forward(self, *args, **kwargs):
                    return forward(self, *args, **kwargs)
            Model.__name__ = Model.__qualname__ = forward.__name__
            forwards[forward.__name__] = Model
            return forward
        return decorate

    def linear(*sizes):
        return lambda: nn.Sequential(*(part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.ReLU())))

    @model(w=lambda: nn.Parameter(torch.zeros(7)), unused=linear(5, 2), layers=linear(3, 3, 2))
    def Parameters(self, x):
        return self.layers(x)

    @model(list=lambda: nn.ModuleList([nn.Linear(4, 4), linear(4, 4)()]),
           dict=lambda: nn.ModuleDict({"x": nn.Linear(4, 2), "y": nn.Linear(4, 2)}),
           more=lambda: nn.ParameterList([nn.Parameter(torch.ones(2))]))
    def Containers(self, x):
        for part in self.list:
            x = part(x)
        return {"y": self.dict["y"](x), "x": self.dict["x"](x)}

    @model(a=lambda: nn.Linear(3, 2), b=lambda: nn.Bilinear(2, 3, 4))
    def Two(self, x, y, scale=1.0):
        return self.b(self.a(x), y) * scale

    @model(embed=lambda: nn.Embedding(10, 6),
           lstm=lambda: nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True), gru=lambda: nn.GRU(10, 4),
           out=lambda: nn.Linear(4, 3))
    def Recurrent(self, x):
        return self.out(self.gru(self.lstm(self.embed(x))[0])[0])

    @model(c1=lambda: nn.Conv2d(1, 10, 5), c2=lambda: nn.Conv2d(10, 20, (3, 2), bias=False),
           pool=lambda: nn.MaxPool2d(2), norm=lambda: nn.BatchNorm2d(20),
           drop=nn.Dropout2d, fc=lambda: nn.Linear(20, 10), one=lambda: nn.Conv1d(1, 2, 3),
           up=lambda: nn.ConvTranspose2d(10, 10, 2))
    def Convolutions(self, x):
        x = self.drop(self.norm(self.c2(self.up(self.pool(self.c1(x))))))
        return self.fc(x.mean((2, 3))), self.one(x.mean((1, 2)).unsqueeze(1))

    @model(f=linear(3, 3), cell=lambda: nn.GRUCell(3, 3))
    def Again(self, x):
        for _ in range(3):
            x = self.cell(self.f(x), x)
        return x

    @model()
    def Nothing(self, x):
        return x * 2

    @model(añb=lambda: nn.Linear(2, 2))
    def Ünï(self, x):
        return self.añb(x)

    @model(a=lambda: nn.Linear(2, 2))
    def Dicts(self, d, k=None):
        return [self.a(d["x"]), k]

    @model(encoder=lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
           attention=lambda: nn.MultiheadAttention(8, 2, batch_first=True))
    def Attention(self, x):
        return self.attention(self.encoder(x), x, x)

    @model(good=lambda: nn.BatchNorm1d(2), a=lambda: nn.Linear(2, 2),
           bad=lambda: nn.Sequential(nn.Dropout(), nn.Linear(3, 3)))
    def Broken(self, x):
        return self.bad(self.a(self.good(x)))

    @model(a=linear(2, 2), bad=lambda: nn.Sequential(nn.Linear(3, 3)), b=lambda: nn.Linear(2, 3))
    def Rescued(self, x):
        with contextlib.suppress(RuntimeError):
            self.bad(x)
        return self.b(self.a(x))

    def shared():
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = self.b = nn.Linear(3, 3)
                self.layers = nn.Sequential(self.a, nn.ReLU(), nn.Linear(3, 2))

            def forward(self, x):
                return self.layers(self.b(self.a(x)))
        return Shared()

    def uncalled():
        """Containers that are not called themselves."""
        net = forwards["Uncalled"]()
        net.block.inner = nn.Module()
        net.block.inner.lin, net.block.lin, net.block.w = nn.Linear(2, 3), nn.Linear(3, 3), nn.Parameter(torch.zeros(3))
        return net

    @model(block=nn.Module)
    def Uncalled(self, x):
        return self.block.lin(self.block.inner.lin(x)) * self.block.w

    def frozen():
        net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)))
        for p in [net[0].weight, net[0].bias, net[1].weight, *net[2].parameters()]:
            p.requires_grad = False
        return net

    def pruned():
        net = linear(4, 4, 2)()
        torch.nn.utils.prune.l1_unstructured(net[0], "weight", amount=0.5)
        return net

    def deep(n=4):
        return nn.Sequential(nn.Linear(2, 2), deep(n - 1) if n else nn.Identity())
    ones = torch.ones
    return {
        **{name: (forwards[name], {"input_size": size}) for name, size in {
            "Parameters": (2, 3), "Containers": (2, 4), "Two": [(2, 3), [2, 3]],
            "Convolutions": torch.Size([3, 1, 20, 20]), "Again": (2, 3), "Nothing": [2, 3],
            "Ünï": (1, 2), "Attention": (2, 5, 8), "Broken": (3, 2), "Rescued": (4, 2)}.items()},
        "data": (forwards["Two"], {"input_data": [ones(2, 3), ones(2, 3)], "scale": ones(4)}),
        "keywords": (forwards["Two"], {"input_data": {"x": ones(2, 3), "y": ones(2, 3)}, "scale": 2.0}),
        "dicts": (forwards["Dicts"], {"input_data": [{"x": ones(3, 2), "y": [1]}, (ones(2), 3)]}),
        "Recurrent": (forwards["Recurrent"], {"input_size": (2, 7), "dtypes": [torch.int64]}),
        "lstm": (lambda: nn.LSTM(3, 4, proj_size=2), {"input_size": (5, 2, 3)}),
        "batch": (forwards["Convolutions"], {"input_size": (1, 20, 20), "batch_dim": 0}),
        "batches": (forwards["Two"], {"input_size": [(3,), (3,)], "batch_dim": 0, "mode": "train"}),
        "shared": (shared, {"input_size": (2, 3)}), "shared, not run": (shared, {}),
        "not run": (forwards["Convolutions"], {}), "uncalled": (uncalled, {"input_size": (2, 2)}),
        "uncalled, not run": (uncalled, {}), "frozen": (frozen, {"input_size": (2, 3)}),
        "pruned": (pruned, {"input_size": (2, 4)}),
        "deep": (deep, {"input_size": (2, 2)}),
        "double": (lambda: nn.Linear(3, 2).double(), {
            "input_data": ones(2, 3, dtype=torch.float64)}), "one": (lambda: nn.Linear(3, 2), {"input_size": (3,)}),
        "lazy": (lambda: nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d()), {"input_size": (2, 3)}),
        "lazy, not run": (lambda: nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU()), {}),
        "weight_norm": (lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))),
                        {"input_size": (2, 3)}),
        "large": (lambda: nn.Sequential(*(nn.Linear(300, 300) for _ in range(3))), {"input_size": (640, 300)}),
        "no arguments": (lambda: nn.Linear(3, 2), {"input_data": []}),
        "no tensor": (lambda: nn.Linear(3, 2), {"input_data": "abc"}),
    }


def told(summary, model, settings):
    """Return the output of summary and its totals, or its error and that error's cause."""
    screen = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(screen):
        warnings.simplefilter("ignore")
        try:
            found = summary(model(), **{"verbose": 1, **settings})
        except Exception as error:
            cause = str(error.__cause__).split("\n")[0].rpartition(".")[2]
            return (type(error).__name__, str(error).replace("torchinfo", "summary"), type(error.__cause__).__name__,
                    cause)
    return (screen.getvalue(),
            [getattr(found, name) for name in ("total_params", "trainable_params", "total_mult_adds",
                                               "total_param_bytes",
                                               "total_output_bytes")], list(
                                                   map(str, found.summary_list)))


@pytest.mark.parametrize("name", zoo(tensorgrad))
def test_the_tables_of_torchinfo(name):
    torch = pytest.importorskip("torch")
    torchinfo = pytest.importorskip("torchinfo")
    for library in (torch, tensorgrad):
        importlib.import_module(f"{library.__name__}.nn.utils.prune")
    (model, ours), (other, theirs) = zoo(tensorgrad)[name], zoo(torch)[name]
    for settings in SETTINGS:
        if not ours and "col_names" in settings:
            settings = {**settings, "col_names": ("kernel_size", "num_params", "params_percent", "trainable")}
        assert (told(tensorgrad.summary, model, {**ours, **settings})
                == told(torchinfo.summary, other, {**theirs, **settings}))


# in BERT, PyTorch meets nested tensors
@pytest.mark.parametrize("name", ["resnet", "vgg", "densenet", "mobilenet", "unet", "vit", "gpt", "lstm"])
def test_whole_models(name):
    torch = pytest.importorskip("torch")
    torchinfo = pytest.importorskip("torchinfo")
    import tests.as_torch.test_architectures as whole
    case = next(case for case in whole.CASES if case.name == name)

    def table(engine, summary):
        program = whole.program(name, engine)
        model = case.build(program)
        x = engine.tensor(case.batch[0])
        data = [x] if name != "lstm" else [x, model.start(x.shape[1])]
        return told(summary, lambda: model, {"input_data": data, "col_names": COLUMNS, "depth": 9})
    ours, theirs = table(tensorgrad, tensorgrad.summary), table(torch, torchinfo.summary)
    assert ours == theirs and len(ours) == 3


@pytest.mark.parametrize("wrong", [
    {"input_size": (2, 3), "col_width": 0}, {"input_size": (2, 3), "verbose": 3}, {"input_size": (2, 3), "mode": "x"},
    {"col_names": ("x",)}, {"row_settings": ("x",)}, {"input_size": (2, 3), "input_data": 1}, {"input_size": ()},
    {"input_size": (-1, 2)}, {"input_size": [(2, 0)]}, {"input_size": 3},
    {"input_size": (2, 3), "nothing": 1}, {"input_size": [(2, 3), (2, 3)]}])
def test_what_is_refused(wrong):
    torch = pytest.importorskip("torch")
    torchinfo = pytest.importorskip("torchinfo")
    assert (told(tensorgrad.summary, lambda: tensorgrad.nn.Linear(3, 2), wrong)
            == told(torchinfo.summary, lambda: torch.nn.Linear(3, 2), wrong))


def test_columns_that_need_an_input():
    with pytest.raises(ValueError, match=r"You must pass input_data or input_size in order to use columns: "
                                         r"\{'mult_adds'\}"):
        tensorgrad.summary(tensorgrad.nn.Linear(3, 2), col_names=["mult_adds"])


def test_half_precision():
    with pytest.warns(UserWarning, match="Half precision is not supported with input_size parameter"):
        found = tensorgrad.summary(tensorgrad.nn.Flatten(), (2, 3), dtypes=[tensorgrad.float16], verbose=0)
    assert found.total_input == 12


def test_a_table():
    """The text itself, where no other package is there to compare with."""
    nn = tensorgrad.nn
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Sequential(nn.ReLU(), nn.Flatten(1)), nn.Linear(4 * 36, 10)).to(DEVICE)
    found = tensorgrad.utils.summary(model, (16, 1, 8, 8), verbose=0, col_width=18,
                                     col_names=["output_size", "num_params", "mult_adds"])
    assert str(found) == """\
==============================================================================================
Layer (type:depth-idx)                   Output Shape       Param #            Mult-Adds
==============================================================================================
Sequential                               [16, 10]           --                 --
├─Conv2d: 1-1                            [16, 4, 6, 6]      40                 23,040
├─Sequential: 1-2                        [16, 144]          --                 --
│    └─ReLU: 2-1                         [16, 4, 6, 6]      --                 --
│    └─Flatten: 2-2                      [16, 144]          --                 --
├─Linear: 1-3                            [16, 10]           1,450              23,200
==============================================================================================
Total params: 1,490
Trainable params: 1,490
Non-trainable params: 0
Total mult-adds (Units.MEGABYTES): 0.05
==============================================================================================
Input size (MB): 0.00
Forward/backward pass size (MB): 0.02
Params size (MB): 0.01
Estimated Total Size (MB): 0.03
=============================================================================================="""
    assert ((found.total_params, found.total_mult_adds, found.total_input, found.total_output_bytes)
            == (1490, 46240, 4096, 2 * 4 * (16 * 144 + 160)))
    conv = found.summary_list[1]
    assert (conv.class_name, conv.input_size, conv.output_size, conv.kernel_size, conv.macs, conv.var_name) == (
        "Conv2d", [16, 1, 8, 8], [16, 4, 6, 6], [3, 3], 23040, "0")
    assert [layer.depth_index for layer in found.summary_list[0].children] == [1, 2, 1, 2, 3]


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_model_is_as_it_was(mode, broken):
    nn = tensorgrad.nn
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(), nn.Linear(3, 2),
                          *([nn.Linear(5, 5)] if broken else [])).to(DEVICE)
    model[1].eval()
    model[0].register_forward_hook(hook := lambda module, args, result: None)
    buffers, seed = [*model.buffers()], tensorgrad.get_rng_state()
    before, hooks = str(model.state_dict()), str([vars(m) for m in model.modules()])
    if broken:
        with pytest.raises(RuntimeError,
                           match=r"Executed layers up to: \[BatchNorm1d: 1, Dropout: 1, Linear: 1\]") as caught:
            tensorgrad.summary(model, (4, 3), mode=mode, verbose=0)
        assert "shapes cannot be multiplied" in str(caught.value.__cause__)
    else:
        assert tensorgrad.summary(model, (4, 3), mode=mode, verbose=0).total_params == 14
    assert (str(model.state_dict()), str([vars(m) for m in model.modules()])) == (before, hooks) and hook
    assert [m.training for m in model.modules()] == [True, True, False, True, *([True] if broken else [])]
    assert all(a is b for a, b in zip(model.buffers(), buffers)) and (tensorgrad.get_rng_state() == seed).all()
    assert tensorgrad.is_grad_enabled() and all(p.grad is None for p in model.parameters())
    from tensorgrad.nn.modules import module
    assert not module._global_forward_hooks and not module._global_forward_pre_hooks


def test_a_remembered_run():
    calls = []

    class Counted(tensorgrad.nn.Linear):
        def forward(self, x):
            calls.append(1)
            return super().forward(x)
    model = Counted(3, 2)
    tables = [str(tensorgrad.summary(model, (4, 3), cache_forward_pass=True, verbose=0)) for _ in range(3)]
    assert len(calls) == 1 and len(set(tables)) == 1
    tensorgrad.summary(model, (4, 3), verbose=0)
    assert len(calls) == 2


def test_arrays_and_silence(capsys):
    class Arrays(tensorgrad.nn.Module):
        def forward(self, x):
            return tensorgrad.from_numpy(x)
    found = tensorgrad.summary(Arrays(), input_data=np.ones((2, 3), np.float32), verbose=0)
    assert not capsys.readouterr().out
    assert found.total_input == 24 and found.summary_list[0].input_size == found.summary_list[0].output_size == [2, 3]
    tensorgrad.summary(Arrays(), input_data=[np.ones(2)])
    assert "Arrays" in capsys.readouterr().out


def test_a_missing_axis_of_the_batch_is_asked_for():
    nn = tensorgrad.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 900, 10))
    with pytest.raises(RuntimeError, match=r"has no axis of the batch: Conv2d takes \(N, C, H, W\), so give "
                                           r"input_size=\(1, 3, 32, 32\), or batch_dim=0"):
        tensorgrad.summary(model, (3, 32, 32), verbose=0)
    with pytest.raises(RuntimeError) as caught:
        tensorgrad.summary(model, (1, 3, 30, 32), verbose=0)
    assert "axis of the batch" not in str(caught.value)
