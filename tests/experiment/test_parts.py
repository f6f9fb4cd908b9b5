"""Registries, models, losses, data, schedules and small tools of experiments."""

import copy
import gzip
import hashlib
import io
import os
import shutil
import struct
import sys
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from support import ROOT, fresh_process

import tensorgrad as torch
from tensorgrad.experiment import Registry, UnknownName, callbacks, datasets, losses, models, schedules, utils
from tensorgrad.experiment.datasets import mnist
from tensorgrad.utils.data import DataLoader

MLP = {"name": "mlp", "args": {"in_dim": 4, "out_dim": 3, "hidden_list": [5]}}


def parameter(*shape):
    return torch.nn.Parameter(torch.ones(*shape or (1,)))


# ── registries ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("package", [models, datasets, losses, callbacks])
def test_E1_register_returns_the_class_and_make_finds_it(package, monkeypatch):
    package.names()
    monkeypatch.setattr(package.registry, "_classes", dict(package.registry._classes))

    class Mine:
        def __init__(self, a=1):
            self.a = a

    assert package.register("mine")(Mine) is Mine and "mine" in package.names()
    made = package.make({"name": "mine", "args": {"a": 2}})
    assert type(made) is Mine and made.a == 2 and package.registry["mine"] is Mine


def test_E1_a_second_class_is_an_error_unless_it_replaces():
    registry = Registry("thing")
    first, second = type("First", (), {}), type("Second", (), {})
    registry.register("x")(first)
    with pytest.raises(
        ValueError, match="the thing 'x' is registered already, as .*First.*; choose another name, or pass"
    ):
        registry.register("x")(second)
    assert registry["x"] is first and registry.register("x")(first) is first
    registry.register("x", replace=True)(second)
    assert registry["x"] is second
    cell = [type("Cell", (), {"__module__": "__main__"}) for _ in range(2)]
    for made in cell:
        registry.register("cell")(made)
    assert registry["cell"] is cell[1]
    registry.register("function")(partial(dict, a=1))
    assert registry.make({"name": "function"}) == {"a": 1}
    with pytest.raises(TypeError, match=r"as in @register\('my-thing'\)"):
        registry.register(first)


def test_E1_built_in_names_cannot_be_taken_before_they_are_loaded():
    fresh_process(
        "from tensorgrad.experiment import models\n"
        "try:\n"
        "    models.register('mlp')(dict)\n"
        "except ValueError: pass\n"
        "else: raise AssertionError\n"
        "models.register('mlp', replace=True)(dict)\n"
        "assert models.make({'name': 'mlp'}) == {} and 'resnet18' in models.names()\n"
    )


def test_E1_modules_may_be_imported_before_the_registry_loads_them():
    fresh_process(
        "from tensorgrad.experiment.models.resnet import ResNet18\n"
        "from tensorgrad.experiment import models\n"
        "assert models.registry['resnet18'] is ResNet18 and 'mlp' in models.names()\n"
    )


def test_E2_args_override_a_copy_of_the_spec():
    spec = copy.deepcopy(MLP)
    made = models.make(spec, args={"out_dim": 7, "hidden_list": [2]})
    assert made(torch.zeros(1, 4)).shape == (1, 7) and spec == MLP

    registry = Registry("thing")

    @registry.register("keeps")
    class Keeps:
        def __init__(self, values=()):
            self.values = values

    spec = {"name": "keeps", "args": {"values": [1]}}
    registry.make(spec).values.append(2)
    assert spec["args"] == {"values": [1]}
    assert registry.make({"name": "keeps"}).values == registry.make({"name": "keeps", "args": None}).values == ()


def test_E2_states_are_loaded():
    model = models.make(MLP)
    restored = models.make({**MLP, "sd": model.state_dict()}, load_sd=True)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), restored.parameters(), strict=True))
    with pytest.raises(KeyError, match="has no state 'sd' to load"):
        models.make(MLP, load_sd=True)


@pytest.mark.parametrize("spec", ["mlp", {"args": {}}, None, {"name": "mlp", "args": [1]}])
def test_E2_specs_of_another_form(spec):
    with pytest.raises(TypeError):
        models.make(spec)


def test_E2_errors_of_constructors_say_whose():
    with pytest.raises(TypeError, match="hiden_list") as caught:
        models.make({"name": "mlp", "args": {"hiden_list": [1]}})
    assert caught.value.__notes__ == ["while making the model 'mlp' with args {'hiden_list': [1]}"]


def test_E3_missing_args_are_none():
    assert type(losses.make({"name": "mnist_ce"})).__name__ == "CrossEntropy"
    assert len(datasets.make({"name": "mnist-ds"}, args={"train": False})) == 200


@pytest.mark.parametrize(
    "name, message",
    [
        (
            "resent18",
            r"no model is called 'resent18'; nearest: resnet18; registered: .*layers, .*mlp, resnet18, symbolic",
        ),
        ("\x1b[2J", r"no model is called '\\x1b\[2J'; registered: "),
        (["mlp"], r"no model is called \['mlp'\]"),
        ("os.system", r"no model is called 'os.system'"),
        ("__class__", r"no model is called '__class__'"),
    ],
)
def test_E4_unknown_names_list_the_registered_ones(name, message):
    for call in (lambda: models.make({"name": name}), lambda: models.registry[name]):
        with pytest.raises(UnknownName, match=message) as caught:
            call()
        assert isinstance(caught.value, KeyError) and "\x1b" not in str(caught.value)
    assert name not in models.registry


# ── models ────────────────────────────────────────────────────────────────────────────────────


def test_E6_freeze():
    model = models.make(MLP)
    models.freeze(model)
    assert not any(p.requires_grad for p in model.parameters())


def test_E10_mlp_works_on_the_last_dimension():
    model = models.make(MLP)
    assert model(torch.randn(2, 5, 4)).shape == (2, 5, 3) and model({"img": torch.randn(4)}).shape == (3,)
    assert [type(layer).__name__ for layer in model.layers] == ["Linear", "ReLU", "Linear"]
    assert models.make(MLP, args={"hidden_list": []})(torch.randn(1, 4)).shape == (1, 3)
    x = torch.randn(6, 4)
    first, _, last = model.layers
    expected = (x @ first.weight.T + first.bias).relu() @ last.weight.T + last.bias
    torch.testing.assert_close(model(x), expected)


def test_E11_resnet18_has_the_known_number_of_parameters():
    model = models.make({"name": "resnet18", "args": {"num_classes": 10}})
    assert utils.compute_num_params(model) == 11_175_370
    image = torch.randn(2, 1, 28, 28)
    out = model({"img": image, "label": None})
    assert out.shape == (2, 10)
    torch.nn.functional.cross_entropy(out, torch.tensor([1, 2])).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    model.eval()
    assert torch.equal(model({"img": image}), model(image))


def test_E11_resnet18_computes_what_pytorchs_layers_do():
    oracle = pytest.importorskip("torch")
    model = models.make({"name": "resnet18"}).eval()
    x = np.random.default_rng(0).normal(size=(1, 1, 28, 28)).astype("f4")
    state = {name: oracle.from_numpy(np.array(value.numpy())) for name, value in model.state_dict().items()}

    def normed(name, x):
        return oracle.nn.functional.batch_norm(
            x, *(state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
        )

    def block(name, x, stride):
        y = oracle.relu(
            normed(f"{name}.bn1", oracle.conv2d(x, state[f"{name}.conv1.weight"], stride=stride, padding=1))
        )
        y = normed(f"{name}.bn2", oracle.conv2d(y, state[f"{name}.conv2.weight"], padding=1))
        if f"{name}.downsample.0.weight" in state:
            x = normed(f"{name}.downsample.1", oracle.conv2d(x, state[f"{name}.downsample.0.weight"], stride=stride))
        return oracle.relu(y + x)

    y = oracle.relu(normed("bn1", oracle.conv2d(oracle.from_numpy(x), state["conv1.weight"], stride=2, padding=3)))
    y = oracle.max_pool2d(y, 3, 2, 1)
    for stage in range(1, 5):
        y = block(f"layer{stage}.1", block(f"layer{stage}.0", y, 1 if stage == 1 else 2), 1)
    y = oracle.nn.functional.linear(y.mean((2, 3)), state["fc.weight"], state["fc.bias"])
    with torch.no_grad():
        np.testing.assert_allclose(model(torch.from_numpy(x)).numpy(), y.numpy(), rtol=1e-3, atol=1e-4)


def test_E2_networks_written_out_in_the_config():
    from tensorgrad import layers, symbolic
    from tensorgrad.layers.spec import described

    network = layers.Sequential([layers.Linear(5), layers.ReLU(), layers.Linear(2)])
    network(torch.zeros(1, 4))
    spec = {
        "name": "layers",
        "args": {"spec": described(network)},
    }
    made = models.make(spec)
    assert made({"img": torch.zeros(3, 4)}).shape == (3, 2)
    inputs = symbolic.Input(shape=(4,))
    model = symbolic.SymbolicModel(inputs, torch.nn.Linear(4, 3)(inputs))
    assert models.make({"name": "symbolic", "args": {"spec": described(model)}})(torch.zeros(2, 4)).shape == (2, 3)
    with pytest.raises(layers.SpecError):
        models.make({"name": "layers", "args": {"spec": {"type": "os.system"}}})


# ── losses ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["mnist_ce", "cross_entropy"])
def test_E14_cross_entropy_returns_named_terms(name):
    scores, labels = torch.randn(6, 10, requires_grad=True), torch.arange(6)
    terms = losses.make({"name": name})(scores, {"label": labels}, batch_idx=3, stage="train", model=None)
    assert set(terms) == {"loss", "accuracy"} and not terms["accuracy"].requires_grad
    assert torch.equal(terms["loss"], torch.nn.functional.cross_entropy(scores, labels))
    assert terms["accuracy"].item() == pytest.approx(np.mean(scores.detach().numpy().argmax(1) == np.arange(6)))
    terms["loss"].backward()
    assert scores.grad is not None


def test_E14_targets_may_be_called_otherwise_and_be_probabilities():
    scores = torch.randn(2, 3)
    terms = losses.make({"name": "cross_entropy", "args": {"target": "y", "label_smoothing": 0.1}})(
        scores, {"y": torch.ones(2, 3) / 3}
    )
    assert set(terms) == {"loss"}
    for name, expected in (("mse", 2.5), ("l1", 1.5)):
        terms = losses.make({"name": name})(torch.tensor([1.0, 2.0]), {"target": torch.tensor([2.0, 4.0])}, stage="val")
        assert terms["loss"].item() == expected


# ── schedules ─────────────────────────────────────────────────────────────────────────────────

SCHEDULES = [
    ("CosineAnnealingLR", {"T_max": 3}),
    ("ExponentialLR", {"gamma": 0.5}),
    ("MultiStepLR", {"milestones": [1, 2]}),
    ("ReduceLROnPlateau", {}),
    ("StepLR", {"step_size": 2}),
    ("LinearLR", {}),
    ("ConstantLR", {}),
    ("PolynomialLR", {}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 9}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2}),
    ("LambdaLR", {"lr_lambda": {"name": "warmup_lr", "args": {"start": 0.1}}}),
    ("MultiplicativeLR", {"lr_lambda": {"name": "warmup_lr", "args": {"start": 0.1}}}),
    (
        "SequentialLR",
        {"milestones": [1], "schedulers": [{"name": "ConstantLR"}, {"name": "StepLR", "args": {"step_size": 1}}]},
    ),
    ("ChainedScheduler", {"schedulers": [{"name": "ConstantLR"}, {"name": "StepLR", "args": {"step_size": 1}}]}),
]


@pytest.mark.parametrize("name, args", SCHEDULES)
def test_E7_every_schedule_by_its_name(name, args):
    optimizer = torch.optim.SGD([parameter()], lr=1.0, momentum=0.9)
    spec = {"name": name, "args": args}
    before = copy.deepcopy(spec)
    made = models.make_lr_scheduler(optimizer, spec)
    assert type(made).__name__ == name and spec == before
    optimizer.step()
    made.step(1.0) if name == "ReduceLROnPlateau" else made.step()


def test_E7_all_schedules_are_tried_and_none_is_none():
    assert {name for name, _ in SCHEDULES} == set(schedules.schedulers.names())
    assert models.make_lr_scheduler(None, None) is None
    with pytest.raises(UnknownName, match="nearest: StepLR"):
        models.make_lr_scheduler(torch.optim.SGD([parameter()]), {"name": "SteppLR"})
    with pytest.raises(TypeError, match="a scheduler is specified as"):
        models.make_lr_scheduler(torch.optim.SGD([parameter()]), "StepLR")


def test_E7_one_function_for_each_group():
    optimizer = torch.optim.SGD([{"params": [parameter()]}, {"params": [parameter()]}], lr=1.0)
    specs = [{"name": "warmup_lr", "args": {"start": start}} for start in (0.1, 0.2)]
    made = models.make_lr_scheduler(optimizer, {"name": "LambdaLR", "args": {"lr_lambda": specs}})
    assert made.get_last_lr() == [0.1, 0.2]


def test_E8_warmup_lr():
    factor = schedules.warmup_lr(0.1, total_iters=5)
    assert [round(factor(epoch), 10) for epoch in range(7)] == [0.1, 0.325, 0.55, 0.775, 1, 1, 1]
    factor = schedules.warmup_lr(0, end=2.0, total_iters=3, exp_gamma=0.5)
    assert [factor(epoch) for epoch in range(6)] == [0, 1, 2, 1, 0.5, 0.25]
    assert schedules.warmup_lr(0.1, total_iters=1)(0) == 1
    with pytest.raises(ValueError, match="at least 1, not 0"):
        schedules.warmup_lr(0.1, total_iters=0)
    optimizer = torch.optim.SGD([parameter()], lr=2.0)
    made = models.make_lr_scheduler(
        optimizer, {"name": "LambdaLR", "args": {"lr_lambda": {"name": "warmup_lr", "args": {"start": 0.1}}}}
    )
    rates = []
    for _ in range(6):
        rates += made.get_last_lr()
        optimizer.step()
        made.step()
    assert rates == pytest.approx([0.2, 0.65, 1.1, 1.55, 2, 2])


def test_E9_every_optimizer_by_its_name():
    for name in schedules.optimizers.names():
        made = utils.make_optimizer([parameter(2, 2)], {"name": name})
        assert type(made) is getattr(torch.optim, name)
    assert {"SGD", "Adam", "AdamW", "LBFGS"} <= set(
        schedules.optimizers.names()
    ) and "Optimizer" not in schedules.optimizers
    with pytest.raises(UnknownName, match="nearest: Adam; registered: ASGD"):
        utils.make_optimizer([parameter()], {"name": "Adamm"})


def test_E9_states_of_optimizers_are_loaded():
    spec = {"name": "Adam", "args": {"lr": 0.5, "betas": [0.8, 0.9]}}
    weight = parameter(3)
    before = utils.make_optimizer([weight], spec)
    weight.grad = torch.tensor([1.0, 2.0, 3.0])
    before.step()
    after = utils.make_optimizer([weight], {**spec, "sd": before.state_dict()}, load_sd=True)
    assert after.state_dict()["state"][0]["step"] == 1 and after.param_groups[0]["lr"] == 0.5
    assert torch.equal(after.state[weight]["exp_avg"], before.state[weight]["exp_avg"])


# ── MNIST ─────────────────────────────────────────────────────────────────────────────────────


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype("u1").tobytes()


def digits_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 28, 28), dtype=np.uint8), np.arange(n, dtype=np.uint8) % 10


@pytest.fixture
def folder(tmp_path):
    """MNIST with 24 training and 10 test images."""
    for seed, (part, n) in enumerate({"train": 24, "t10k": 10}.items()):
        images, labels = digits_of(n, seed)
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    return tmp_path


def test_E12_items_are_dictionaries(folder):
    data = datasets.make({"name": "mnist-ds", "args": {"root_dir": str(folder)}})
    images, labels = digits_of(24)
    assert (
        len(data) == 24
        and list(data[3]) == ["img", "label"]
        and [data[i]["label"] for i in range(24)] == labels.tolist()
    )
    image = data[3]["img"]
    assert image.shape == (1, 28, 28) and image.dtype == torch.float32 and type(data[3]["label"]) is int
    np.testing.assert_allclose(image[0].numpy(), (images[3] / 255 - 0.1307) / 0.3081, rtol=1e-5, atol=1e-6)
    assert len(datasets.make({"name": "mnist-ds"}, args={"root_dir": str(folder), "train": False})) == 10
    batch = next(iter(DataLoader(data, 5)))
    assert (
        batch["img"].shape == (5, 1, 28, 28)
        and batch["label"].tolist() == [0, 1, 2, 3, 4]
        and batch["label"].dtype == torch.int64
    )
    with pytest.raises(IndexError):
        data[24]


def test_E12_normalizes_as_pytorch_does(folder):
    oracle = pytest.importorskip("torch")
    images, _ = digits_of(24)
    expected = (
        oracle.from_numpy(images).to(oracle.float32).div(255).sub(oracle.tensor(0.1307)).div(oracle.tensor(0.3081))
    )
    got = mnist.MNIST(root_dir=str(folder)).images
    assert np.array_equal(got[:, 0].numpy(), expected.numpy())


def test_E12_images_come_along():
    train, test = mnist.MNIST(), mnist.MNIST(train=False)
    assert (len(train), len(test)) == (1800, 200)
    for part in (train, test):
        assert set(part.labels) == set(range(10)) and min(np.bincount(part.labels)) * 20 > len(part)
    assert abs(train.images.mean().item()) < 0.05 and abs(train.images.std().item() - 1) < 0.05
    whole, labels = mnist.read_digits(ROOT / "examples" / "mnist" / "data", "t10k")
    images, own = mnist.embedded_digits()
    assert np.array_equal(images, whole[:2000]) and np.array_equal(own, labels[:2000])
    assert sum(file.stat().st_size for file in mnist.EMBEDDED.iterdir()) <= 300_000
    assert "Attribution-Share Alike 3.0" in (mnist.EMBEDDED / "README.md").read_text(encoding="utf-8")


def test_E12_given_images():
    images, labels = digits_of(4)
    arrays, pairs = mnist.MNIST((images, labels)), mnist.MNIST([(images[i], int(labels[i])) for i in range(4)])
    tensors = mnist.MNIST([torch.from_numpy(images), torch.from_numpy(labels)])
    assert torch.equal(arrays.images, pairs.images) and torch.equal(arrays.images, tensors.images)
    assert arrays.labels == pairs.labels == tensors.labels == [0, 1, 2, 3]
    for wrong in (
        (images, labels[:3]),
        (images, [1, 2, 3, 10]),
        (images.astype("f4"), labels),
        (images[:, 1:], labels),
    ):
        with pytest.raises(ValueError):
            mnist.MNIST(wrong)


def test_E12_torchvisions_folders_are_found(folder, tmp_path):
    (tmp_path / "data" / "MNIST").mkdir(parents=True)
    shutil.copytree(folder, tmp_path / "data" / "MNIST" / "raw", ignore=shutil.ignore_patterns("data"))
    assert len(mnist.MNIST(root_dir=str(tmp_path / "data"))) == 24


def test_E12_missing_and_damaged_files_are_named(folder, tmp_path):
    with pytest.raises(
        FileNotFoundError, match="none of train-images-idx3-ubyte.*; download=True fetches it, and without root_dir"
    ):
        mnist.MNIST(root_dir=str(tmp_path / "empty"))
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(np.arange(23)))
    with pytest.raises(ValueError, match="train labels are not one digit for each of 24 images"):
        mnist.MNIST(root_dir=str(folder))
    (folder / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b nonsense")
    with pytest.raises(ValueError, match="train-images-idx3-ubyte.gz: damaged gzip data"):
        mnist.MNIST(root_dir=str(folder))
    with pytest.raises(ValueError, match="download=True needs root_dir"):
        mnist.MNIST(download=True)


@pytest.fixture
def mirror(monkeypatch):
    """A server of four small files, as if they were the published ones: (address, files by name, paths that were asked
    for).
    """
    files, asked = {}, []
    for seed, (part, n) in enumerate({"train": 24, "t10k": 10}.items()):
        images, labels = digits_of(n, seed)
        files[f"{part}-images-idx3-ubyte.gz"] = gzip.compress(idx(images))
        files[f"{part}-labels-idx1-ubyte.gz"] = gzip.compress(idx(labels))
    published = {name: mnist.Published(len(data), hashlib.md5(data).hexdigest()) for name, data in files.items()}
    monkeypatch.setattr(mnist, "FILES", published)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            data = files.get(self.path.rpartition("/")[2])
            self.send_response(404 if data is None else 200)
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mnist", files, asked
        server.shutdown()
        thread.join()


def test_E12_download_fetches_what_is_missing(mirror, tmp_path):
    address, files, asked = mirror
    root = tmp_path / "load" / "mnist"
    data = mnist.MNIST(root_dir=str(root), download=True, mirror=address)
    assert len(data) == 24 and sorted(asked) == [
        "/mnist/train-images-idx3-ubyte.gz",
        "/mnist/train-labels-idx1-ubyte.gz",
    ]
    module = datasets.make(
        {"name": "mnist", "args": {"root_dir": str(root), "download": True, "mirror": address + "/"}}
    )
    module.prepare_data()
    module.prepare_data()
    assert len(asked) == 4 and {file.name: file.read_bytes() for file in root.iterdir()} == files
    module.setup()
    assert len(module.test_dataloader().dataset) == 10


def test_E12_other_files_than_the_published_ones_are_refused(mirror, tmp_path):
    address, files, _ = mirror
    for damage in (
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data + bytes(10_000_000),
        lambda data: data[:-1] + b"x",
    ):
        name = "t10k-labels-idx1-ubyte.gz"
        good, files[name] = files[name], damage(files[name])
        with pytest.raises(ValueError, match=f"{name} is not the file that was published"):
            mnist.download(tmp_path, address, ["t10k"])
        assert [file.name for file in tmp_path.iterdir()] == ["t10k-images-idx3-ubyte.gz"]
        files[name] = good
    del files[name]
    with pytest.raises(OSError, match="cannot be fetched: HTTP Error 404"):
        mnist.download(tmp_path, address, ["t10k"])
    with pytest.raises(ValueError, match="begins with https:// or http://"):
        mnist.download(tmp_path, "file:///etc")


def test_E12_the_published_sums_are_those_of_the_files():
    for name, published in mnist.FILES.items():
        if name.startswith("t10k"):
            data = (ROOT / "examples" / "mnist" / "data" / name).read_bytes()
            assert (len(data), hashlib.md5(data).hexdigest()) == published
    assert [published.size for published in mnist.FILES.values()] == [9912422, 28881, 1648877, 4542]


@pytest.mark.parametrize("name", ["mnist", "mnist-dm"])
def test_E13_both_names_make_the_data_module(name, folder):
    module = datasets.make({"name": name, "args": {"root_dir": str(folder), "batch_size": 4}})
    module.prepare_data()
    module.setup("fit")
    train, val = module.train_dataloader(), module.val_dataloader()
    assert (len(train.dataset), len(val.dataset)) == (22, 2) and train.batch_size == 4 and "test" not in module.parts
    assert sorted(b for batch in train for b in batch["label"].tolist()) == sorted(i % 10 for i in range(22))
    assert [b for batch in val for b in batch["label"].tolist()] == [2, 3]
    torch.manual_seed(0)
    orders = [
        tuple(b for batch in loader for b in batch["label"].tolist())
        for loader in (train, train, val, val, module.test_dataloader())
    ]
    assert orders[0] != orders[1] and orders[2] == orders[3] and orders[4] == tuple(range(10))
    assert len(module.predict_dataloader().dataset) == 10 and train.num_workers == 0
    module.teardown("fit")
    assert not module.parts and len(module.val_dataloader().dataset) == 2


def test_E13_sixty_thousand_are_split_as_usual(monkeypatch):
    images, labels = np.zeros((60_000, 1, 1), np.uint8), np.zeros(60_000, np.uint8)
    monkeypatch.setattr(mnist, "_digits", lambda *args: (images, labels))
    module = mnist.MNISTDataModule()
    module.setup("fit")
    assert (len(module.parts["train"]), len(module.parts["val"])) == (55_000, 5_000)


def test_E13_a_network_learns_the_images_that_come_along():
    torch.manual_seed(0)
    module = datasets.make({"name": "mnist", "args": {"batch_size": 50}})
    model = torch.nn.Sequential(
        torch.nn.Flatten(), models.make({"name": "mlp", "args": {"in_dim": 784, "out_dim": 10, "hidden_list": [64]}})
    )
    loss_of = losses.make({"name": "mnist_ce"})
    optimizer = utils.make_optimizer(model.parameters(), {"name": "Adam", "args": {"lr": 2e-3}})
    for _ in range(5):
        for batch in module.train_dataloader():
            optimizer.zero_grad()
            loss_of(model(batch["img"]), batch)["loss"].backward()
            optimizer.step()
    right = utils.Averager()
    for batch in module.val_dataloader():
        right.add(loss_of(model(batch["img"]), batch)["accuracy"], len(batch["label"]))
    assert right.item() > 0.85 and right.count == 150


def test_E26_data_sets_are_described():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            raise AssertionError("read")

    assert datasets.described(mnist.MNIST(train=False), "val") == [
        "val dataset: size=200",
        "  img: shape=(1, 28, 28), dtype=float32",
        "  label: int",
    ]
    assert datasets.described([(np.zeros((2, 3)), "text")]) == [
        "dataset: size=1",
        "  [0]: shape=(2, 3), dtype=float64",
        "  [1]: str",
    ]
    assert datasets.described([5]) == ["dataset: size=1", "  item: int"] and datasets.described([], "x") == [
        "x dataset: size=0"
    ]
    assert datasets.described(Stream()) == ["dataset: size=unknown"]
    assert datasets.described([{"\x1b[2J": 1}])[1] == r"  \x1b[2J: int"


# ── tools ─────────────────────────────────────────────────────────────────────────────────────


def test_E39_averager():
    average = utils.Averager()
    assert average.item() == 0.0
    average.add(1.0, 3)
    average.add(torch.tensor(5.0))
    assert average.item() == 2.0 and type(average.item()) is float
    restored = utils.Averager()
    restored.load_state_dict(average.state_dict())
    restored.add(2.0, 4)
    assert restored.item() == 2.0 and restored.count == 8


def test_E39_timer():
    timer = utils.Timer()
    time.sleep(0.01)
    assert 0.01 <= timer.t() < 5
    timer.s()
    assert timer.t() < 0.01


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0.0s"), (12.34, "12.3s"), (59, "59.0s"), (60, "1.0m"), (270, "4.5m"), (3600, "1.0h"), (4320, "1.2h")],
)
def test_E39_time_text(seconds, text):
    assert utils.time_text(seconds) == text


def test_E39_log_prints_and_appends(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(utils, "_log_path", None)
    utils.log("only printed")
    utils.set_log_path(tmp_path)
    utils.log("é\x1b[2J")
    utils.log({"a": 1}, filename="other.txt")
    utils.log("two\nlines")
    assert capsys.readouterr().out == "only printed\né\\x1b[2J\n{'a': 1}\ntwo\nlines\n"
    assert (tmp_path / "log.txt").read_text(encoding="utf-8") == "é\\x1b[2J\ntwo\nlines\n"
    assert (tmp_path / "other.txt").read_text(encoding="utf-8") == "{'a': 1}\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "answer, kept", [("", True), ("n", True), ("yess", True), ("y", False), ("Yes", False), (None, True)]
)
def test_E39_ensure_path_asks_before_it_removes(tmp_path, monkeypatch, capsys, answer, kept):
    path = tmp_path / "save" / "a"
    utils.ensure_path(path)
    utils.ensure_path(path)
    (path / "weights").write_text("1")
    monkeypatch.setattr(sys, "stdin", Terminal("" if answer is None else f"{answer}\n"))
    utils.ensure_path(path)
    assert (
        (path / "weights").exists() == kept and path.is_dir() and "exists, remove? (y/[n])" in capsys.readouterr().out
    )


def test_E39_ensure_path_removes_nothing_unasked(tmp_path, monkeypatch):
    (tmp_path / "weights").write_text("1")
    for stdin in (io.StringIO("y\n"), None):
        monkeypatch.setattr(sys, "stdin", stdin)
        utils.ensure_path(tmp_path)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    utils.ensure_path(tmp_path, remove=False)
    assert (tmp_path / "weights").exists()
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    with pytest.raises(ValueError, match="is not removed: it holds"):
        utils.ensure_path(tmp_path, yes=True)
    utils.ensure_path(tmp_path / "inside" / "x", yes=True)
    monkeypatch.chdir("/")
    utils.ensure_path(tmp_path, yes=True)
    assert list(tmp_path.iterdir()) == []


def test_E39_set_save_path(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(utils, "_log_path", None)
    log, writer = utils.set_save_path(tmp_path / "run")
    log("begun")
    writer.add_scalar("loss", 1.0, 0)
    writer.close()
    assert (tmp_path / "run" / "log.txt").read_text() == "begun\n" and len(
        list((tmp_path / "run" / "tensorboard").iterdir())
    ) == 1


def test_E39_include_patterns(tmp_path):
    for name in ("a.py", "b.yaml", "c.pt", "deep/d.py", "deep/e.bin", "empty/f.bin"):
        (tmp_path / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / name).write_text("")
    shutil.copytree(tmp_path / "from", tmp_path / "to", ignore=utils.include_patterns("*.py", "*.yaml"))
    assert sorted(os.path.relpath(file, tmp_path / "to") for file in (tmp_path / "to").rglob("*.*")) == [
        "a.py",
        "b.yaml",
        "deep/d.py",
    ]


def test_E39_compute_num_params():
    model = torch.nn.Linear(99, 34)
    assert utils.compute_num_params(model) == 3400 and utils.compute_num_params(model, text=True) == "3.4K"
    assert (
        utils.compute_num_params(torch.nn.Linear(1199, 1000), text=True) == "1.2M"
        and utils.compute_num_params(torch.nn.ReLU(), text=True) == "0.0K"
    )


def test_E40_make_coord():
    assert utils.make_coord((2, 2)).tolist() == [[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]]
    grid = utils.make_coord((2, 3, 4), ranges=[(0, 1), (0, 3), (-4, 4)], flatten=False)
    assert grid.shape == (2, 3, 4, 3) and grid.dtype == torch.float32
    assert (
        grid[:, 0, 0, 0].tolist() == [0.25, 0.75]
        and grid[0, :, 0, 1].tolist() == [0.5, 1.5, 2.5]
        and grid[0, 0, :, 2].tolist() == [-3, -1, 1, 3]
    )
    assert utils.make_coord([3]).shape == (3, 1) and utils.make_coord((0, 2)).shape == (0, 2)
    with pytest.raises(ValueError, match="1 ranges for 2 dimensions"):
        utils.make_coord((2, 2), ranges=[(0, 1)])


def test_E40_to_pixel_samples():
    image = torch.arange(24.0).reshape(3, 2, 4)
    coord, value = utils.to_pixel_samples(image)
    assert torch.equal(coord, utils.make_coord((2, 4))) and value.shape == (8, 3)
    assert value[5].tolist() == image[:, 1, 1].tolist()
    assert utils.to_pixel_samples(image[:1])[1].shape == (8, 1)


def test_E41_init_params_works_with_biases():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(16, 64, 3),
        torch.nn.BatchNorm2d(64),
        torch.nn.Conv2d(64, 8, 1, bias=False),
        torch.nn.Linear(400, 300),
        torch.nn.BatchNorm1d(4, affine=False),
    )
    torch.nn.init.normal_(net[1].weight)
    utils.init_params(net)
    assert net[0].weight.std().item() == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.05) and net[
        3
    ].weight.std().item() == pytest.approx((2 / 300) ** 0.5, rel=0.05)
    assert not net[0].bias.any() and not net[3].bias.any() and not net[1].bias.any() and (net[1].weight == 1).all()
