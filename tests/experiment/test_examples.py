"""examples/experiment: each configuration, shortened, trains and draws its picture."""

import csv
import re
import struct
import sys
from pathlib import Path

import experiment_project as project
import pytest
from experiment_project import run
from support import ROOT

import tensorgrad as torch
from tensorgrad.experiment.checking import check
from tensorgrad.experiment.config import load, override
from tensorgrad.experiment.datasets.mnist import DEVIATION, MEAN
from tensorgrad.experiment.project import activate

pytest.importorskip("yaml")
FOLDER = ROOT / "examples" / "experiment"
CONFIGS = sorted(file.stem for file in (FOLDER / "configs").iterdir())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory to work in, with what the examples register."""
    folder = tmp_path_factory.mktemp("examples")
    with project.inside(folder):
        activate(FOLDER)
        yield folder


def trained(name, *changes):
    """The directory of a shortened run."""
    assert run(str(FOLDER / "configs" / f"{name}.yaml"), *changes, "--overwrite") == 0
    return Path("save") / f"_{name}"


def column(path, name):
    with open(path / "metrics.csv", encoding="utf-8", newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file) if row.get(name)]


def picture_size(path):
    """Return width and height of a PNG, from its header."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">2I", head[16:])


def test_the_classifier_learns(place):
    pytest.importorskip("matplotlib")
    path = trained("classifier", "epoch_max=1", "model.args.width=4", "train_dataset.batch_size=32",
                   "optimizer.args.lr=4e-3")
    before, after = column(path, "accuracy/val")
    assert before < 0.3 and after > 0.85
    assert picture_size(path / "img" / "classified.png")[0] > 1000


def test_the_gan_draws_also_when_it_was_resumed(place):
    pytest.importorskip("matplotlib")
    wrapper, longer = "train_wrapper.args", "trainer_params.max_epochs=2"
    short = ["trainer_params.limit_train_batches=20", "trainer_params.log_every_n_steps=1",
             f"{wrapper}.generator_spec.args.width=8",
             f"{wrapper}.discriminator_spec.args.width=8"]
    path = trained("gan", *short, longer)
    # it tells digits from what is drawn so far
    assert column(path, "d_real_epoch")[-1] > column(path, "d_fake_epoch")[-1]
    assert picture_size(path / "img" / "samples.png")[0] > 1000
    moments = sampled(path)
    assert list(moments) == [1, 2] and moments[2].shape == (10, 28, 28)
    assert moments[2].min() >= -MEAN / DEVIATION - 1e-3 and not torch.equal(moments[1], moments[2])

    config = str(FOLDER / "configs" / "gan.yaml")
    assert run(config, *short, "trainer_params.max_epochs=1", "--tag", "cut") == 0
    assert run(config, longer, "--tag", "cut", "--resume") == 0
    again = sampled(Path("save/_gan_cut"))
    assert all(torch.equal(moments[epoch], again[epoch]) for epoch in (1, 2))


def sampled(path):
    """The images of the callback, by epoch, from a run's last checkpoint."""
    return torch.load(path / "ckpt" / "last.ckpt")["parts"]["callbacks"]["Sampled"]["moments"]


@pytest.mark.parametrize("net", ["siren", "fourier"])
def test_E40_a_network_becomes_a_picture(place, net):
    pytest.importorskip("matplotlib")
    module, spec = "data_module.args", "train_wrapper.args.model_spec.args.model_spec"
    args = "{in_dim: 2, out_dim: 1, hidden_list: [64, 64]}"
    path = trained("image", "trainer_params.max_epochs=3", f"{module}.train_dataset_spec.args.size=32",
                   f"{module}.train_dataset_spec.args.count=512", f"{module}.val_dataset_spec.args.size=64",
                   f"{spec}.name={net}", f"{spec}.args={args}",
                   "trainer_params.check_val_every_n_epoch=1")
    psnr = column(path, "val_psnr")
    assert psnr[-1] > 17 and psnr[-1] > psnr[0] + 1
    assert picture_size(path / "img" / "reconstruction.png")[0] > 1000


def test_E40_a_picture_may_come_from_a_file(place):
    image = pytest.importorskip("matplotlib.image")
    from datasets.pixels import Pixels
    stripes = torch.zeros(9, 14, 3)
    stripes[:, 5:] = 1
    image.imsave("stripes.png", stripes.numpy())
    # the middle 8 × 8, from column 3 on, in blocks of 2 × 2
    pixels = Pixels(size=4, count=16, file="stripes.png")
    assert pixels.image.tolist() == [[[0.0, 1.0, 1.0, 1.0]] * 4]
    group = pixels[0]
    assert torch.equal(group["target"][:, 0], (group["coord"][:, 1] > -0.5).float())
    with pytest.raises(ValueError, match="9×14 pixels, too few for a picture of 10×10"):
        Pixels(size=10, file="stripes.png")


def test_the_gpt_writes(place):
    pytest.importorskip("matplotlib")
    args = "train_wrapper.args"
    path = trained("chargpt", "trainer_params.max_steps=40", "trainer_params.val_check_interval=20",
                   "trainer_params.limit_val_batches=2", f"{args}.model_spec.args.num_layers=1",
                   f"{args}.model_spec.args.embed=32",
                   f"{args}.scheduler_spec.args.total_steps=40",
                   f"{args}.scheduler_spec.args.max_lr=1e-2", "callbacks[0].args.length=60")
    first, last = column(path, "val_loss")
    assert last < first < 4.17 and last < 3.2                           # log(65) = 4.17 without learning
    text = (path / "img" / "written.txt").read_text(encoding="utf-8")
    assert re.findall("after (.*) steps", text) == ["0", "20", "40"] and len(text) > 100
    assert picture_size(path / "img" / "written.png")[0] > 1000


def test_without_matplotlib_a_line_says_so(place, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    path = trained("image", "trainer_params.max_epochs=1",
                   "data_module.args.train_dataset_spec.args={size: 16, count: 128}",
                   "data_module.args.val_dataset_spec=null")
    assert "no picture img/reconstruction.png: matplotlib is missing" in (path / "log.txt").read_text(encoding="utf-8")
    assert not list((path / "img").glob("*.png"))


def test_the_commands_of_the_readme_are_right(place):
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"run examples/experiment/configs/(\w+)\.yaml((?: [\w.]+=\S+)*)", text)
    assert sorted({name for name, _ in commands}) == CONFIGS and sum(bool(changes) for _, changes in commands) == 4
    for name, changes in commands:
        config = override(load(FOLDER / "configs" / f"{name}.yaml"), changes.split())
        assert check(config) == [], f"{name} {changes}"
