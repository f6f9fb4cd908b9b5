"""The examples run, learn, and are PyTorch programs; their toolkit copes with bad files and without a terminal."""

import gzip
import importlib
import importlib.util
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from steady import steady
from support import ROOT

import tensorgrad as torch
from examples.chargpt.text import SHAKESPEARE, Text, batch
from examples.graphs.data import karate_club
from examples.mnist.dataset import EMBEDDED, MNIST, load, truncate
from examples.toolkit.evaluator import Evaluator
from examples.toolkit.plotting import save_report, smooth
from examples.toolkit.progress import ProgressBar
from tensorgrad.experiment.datasets.idx import TYPES, read_idx

DEVICE = ["--device", os.environ.get("DEVICE", "cpu")]
TINY_MNIST = [*DEVICE, "--epochs", "2", "--truncate_train", "96", "--truncate_test", "40"]
TINY = {
    "xor": ["--steps", "20"],
    "mnist.cnn.train": [*TINY_MNIST, "--out", ""],
    "mnist.vit.train": [*TINY_MNIST, "--out", "", "--embed", "16"],
    "chargpt.train": [*DEVICE, *"--steps 3 --context 8 --embed 16 --num_layers 1 --sample 12".split()],
    "speech.train": [*DEVICE, "--words", "30", "--epochs", "1"],
    "cartpole": ["--rounds", "2", "--carts", "4"],
    "graphs.gcn": ["--epochs", "20"],
    "graphs.gat": ["--epochs", "20", "--graph", "club"],
}
FLAGS = {
    "xor": "steps seed",
    "graph": "out seed",
    "mnist.cnn.train": "device epochs batch_size truncate_train truncate_test data-dir seed lr out",
    "mnist.vit.train": "device epochs batch_size truncate_train truncate_test data-dir seed lr out "
                       "patch_size embed num_heads num_layers",
    "mnist.hogwild": "processes epochs batch_size truncate_train truncate_test data-dir seed lr",
    "speech.train": "device batch_size lr epochs words seed",
    "cartpole": "rounds carts seed",
    "graphs.gcn": "graph epochs width lr seed",
    "graphs.gat": "graph epochs heads width lr seed",
    "chargpt.train": "device steps batch_size context embed num_heads num_layers dropout seed lr sample text",
}
has_matplotlib = importlib.util.find_spec("matplotlib") is not None
can_draw = all(importlib.util.find_spec(name) for name in ("matplotlib", "PIL"))


def run(example, *options, folder=ROOT, expect=0):
    """Run `python -m examples.…`, and return its output."""
    command = [sys.executable, "-W", "error", "-m", f"examples.{example}", *options]
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout if expect == 0 else done.stderr


def losses(printed):
    return [float(number) for number in re.findall(r"loss ([\d.e+-]+)", printed)]


# ── the programs ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("example", FLAGS)
def test_help_lists_the_flags(example):
    listed = set(re.findall(r"^  --([\w-]+)", run(example, "-h"), re.MULTILINE))
    assert listed == set(FLAGS[example].split())


def test_xor_is_learned():
    printed = run("xor")
    assert "targets:    [1 0 0 1]" in printed and "prediction: [1 0 0 1]" in printed
    chances = [float(number) for number in re.findall(r"\d\.\d+", printed.split("softmax:")[1])]
    assert len(chances) == 8 and all(max(pair) > 0.99 for pair in zip(chances[::2], chances[1::2], strict=True))


def test_cnn_learns_digits_and_draws_them(tmp_path):
    picture = tmp_path / "new" / "digits.png"
    printed = run("mnist.cnn.train", *DEVICE, "--epochs", "3", "--truncate_train", "3000", "--out", str(picture))
    assert float(re.search(r"([\d.]+) % of the test images right", printed)[1]) > 95
    assert printed.count("Total") == 3 and "3000 training images, 1000 test images" in printed
    assert picture.is_file() == has_matplotlib == (f"picture: {picture}" in printed)
    if has_matplotlib:
        assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000
    else:
        assert "pip install matplotlib" in printed


def test_two_processes_learn_digits_without_locks():
    # After one epoch the loss still falls steeply, and how the processes were scheduled shows in what they have
    # learned.
    printed = run("mnist.hogwild", "--epochs", "3", "--truncate_train", "960", "--truncate_test", "300", "--batch_size",
                  "16")
    assert "process 0, epoch 3/3" in printed and "process 1, epoch 3/3" in printed
    assert float(re.search(r"([\d.]+) % of the test images right, after 3 epochs in 2 processes", printed)[1]) > 80


def test_vit_runs():
    printed = run("mnist.vit.train", *TINY["mnist.vit.train"])
    assert "epoch 2/2 3/3 loss" in printed and "% of the test images right" in printed


def test_spoken_digits_are_learned():
    printed = run("speech.train", *DEVICE, "--words", "150", "--epochs", "8")
    assert float(re.search(r"([\d.]+) % of the test words understood", printed)[1]) > 80
    assert "150 words of 5120 samples, 32 bands by 41 moments" in printed


def test_poles_are_balanced_longer_and_longer():
    lengths = [float(number) for number in re.findall(r"stayed up ([\d.]+) steps", run("cartpole", "--rounds", "30"))]
    assert len(lengths) == 3 and lengths[-1] > 100 > lengths[0]


@pytest.mark.parametrize("example, graph, least", [("gcn", "blocks", 85), ("gat", "blocks", 80), ("gcn", "club", 90),
                                                   ("gat", "club", 90)])
def test_groups_of_nodes_are_told(example, graph, least, capsys):
    with torch.random.fork_rng():
        importlib.import_module(f"examples.graphs.{example}").main(["--graph", graph])
    printed = capsys.readouterr().out
    assert float(re.search(r"([\d.]+) % of the other nodes right", printed)[1]) > least
    assert ("34 nodes, 78 edges, 2 groups, 2 nodes known" in printed) == (graph == "club")


def test_the_club_is_the_one_that_was_observed():
    edges = karate_club().edges
    degrees = torch.bincount(edges[0])
    assert [degrees[member - 1].item() for member in (1, 2, 3, 33, 34, 12)] == [16, 9, 10, 12, 17, 1]
    assert torch.equal(degrees, torch.bincount(edges[1])) and degrees.sum() == 156 and degrees.min() == 1


def test_chargpt_writes():
    printed = run("chargpt.train", *TINY["chargpt.train"])
    assert "1115394 characters, 65 different ones" in printed
    assert re.search(r"training 3/3 loss 4\.\d+ test 4\.\d+ in 0:\d\d\n\n.{12}\n$", printed, re.DOTALL)


def test_chargpt_takes_another_text(tmp_path):
    song = tmp_path / "song.txt"
    song.write_text("la di da, " * 50, encoding="utf-8")
    assert "500 characters, 6 different ones" in run("chargpt.train", *TINY["chargpt.train"], "--text", str(song))
    song.write_text("la", encoding="utf-8")
    assert "too short" in run("chargpt.train", "--text", str(song), expect=1)


def test_graph_is_drawn(tmp_path):
    picture = tmp_path / "graph.png"
    printed = run("graph", "--out", str(picture))
    if can_draw:
        assert picture.read_bytes().startswith(b"\x89PNG")
    else:
        assert "no PNG" in printed and str(picture.with_suffix(".svg")) in printed
        drawn = picture.with_suffix(".svg").read_text(encoding="utf-8")
        assert drawn.startswith("<svg") and all(f">{name}<" in drawn for name in ("x", "w", "b", "matmul", "output"))


def test_bad_options_are_refused():
    assert "0 is not above 0" in run("mnist.cnn.train", "--epochs", "0", expect=2)
    assert "do not fill" in run("mnist.vit.train", "--patch_size", "5", expect=1)


@pytest.fixture(scope="module")
def swapped(tmp_path_factory):
    """The examples with one word exchanged."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("swapped")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        # tensorgrad.experiment reads the files of images, as arrays.
        source = re.sub(r"^(import|from) tensorgrad\b(?!\.experiment)", r"\1 torch", source, flags=re.MULTILINE)
        file.write_text(source, encoding="utf-8")
    return folder


@pytest.mark.skipif(DEVICE[1] != "cpu", reason="PyTorch's random numbers differ between devices")
@pytest.mark.parametrize("example", TINY)
def test_swapping_the_import_for_pytorch_gives_the_same(example, swapped):
    ours, theirs = run(example, *TINY[example]), run(example, *TINY[example], folder=swapped)
    if example in ("xor", "cartpole"):
        assert ours == theirs
    else:
        assert losses(ours) == pytest.approx(losses(theirs), rel=1e-3) and len(losses(ours)) > 0


# ── IDX files ─────────────────────────────────────────────────────────────────────────────────


def idx(array, code):
    return struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.astype(TYPES[code]).tobytes()


def refused(file, data, why):
    file.write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(str(file)) + ".*" + why):
        read_idx(file)


@st.composite
def idx_arrays(draw):
    code = draw(st.sampled_from(sorted(TYPES)))
    shape = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
    return draw(hnp.arrays(np.dtype(TYPES[code]).newbyteorder("="), shape)), code


@steady()
@given(idx_arrays(), st.booleans())
def test_idx_round_trip(tmp_path_factory, array_and_code, packed):
    array, code = array_and_code
    file = tmp_path_factory.getbasetemp() / "round-trip.idx"
    file.write_bytes(gzip.compress(idx(array, code)) if packed else idx(array, code))
    read = read_idx(file)
    assert read.dtype == array.dtype and read.dtype.isnative and read.flags.writeable
    np.testing.assert_array_equal(read, array)


IMAGE = idx(np.arange(6).reshape(2, 3), 0x08)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("data, why", [
    *[(IMAGE[:length], "too short") for length in range(len(IMAGE))],
    (IMAGE + b"\0", "trailing bytes"),
    (IMAGE * 1000, "trailing bytes"),
    (b"\x00\x01" + IMAGE[2:], "not an IDX file: it starts with 00 01 08 02"),
    (b"PK\x03\x04" + IMAGE[4:], "not an IDX file"),
    (b"\x00\x00\x07" + IMAGE[3:], "unknown type code 0x07"),
    (b"\x00\x00\x08\x00", "not an IDX file"),
    (b"\x00\x00\x08\x40" + 255 * b"\xff", "too short for an IDX header of 64 dimensions"),
    (b"\x00\x00\x08\x40" + 256 * b"\xff", "too short: the header promises"),
    (b"\x00\x00\x08\x41" + 260 * b"\x00", "65 dimensions"),
    (b"\x00\x00\x08\x04" + 4 * b"\x00" + 12 * b"\xff", ""),
    (b"\x00\x00\x0d\x02\x00\x00\x00\x02\xff\xff\xff\xff", "too short: the header promises shape"),
])
def test_bad_idx_files_are_refused(tmp_path, data, why, pack):
    if data or pack is bytes:
        refused(tmp_path / "bad.idx", pack(data), why)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_lying_header_gets_no_memory(tmp_path, pack):
    shapes = [(2**32 - 1,) * 4, (10_000, 28, 28), (900_000,)]
    lies = [struct.pack(f">HBB{len(shape)}I", 0, 0x08, len(shape), *shape) + bytes(1000) for shape in shapes]
    files = [(pack(lie), "too short") for lie in lies] + [(pack(IMAGE + bytes(10_000_000)), "trailing bytes")]
    tracemalloc.start()
    try:
        for data, why in files:
            refused(tmp_path / "liar.idx", data, why)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 500_000


def test_damaged_gzip_files_never_pass_for_others(tmp_path):
    file = tmp_path / "damaged.gz"
    array = np.random.default_rng(0).integers(0, 256, (5, 7, 3))
    whole = gzip.compress(idx(array, 0x08))
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1:])
        try:
            np.testing.assert_array_equal(read_idx(file), array)  # a changed date, say
        except ValueError as error:
            assert str(file) in str(error)
        if place > 1:
            refused(file, whole[:place], "")


@steady(max_examples=300)
@given(st.sampled_from([b"", b"\0\0\x08\x01", b"\0\0\x08\x02\0\0\0", b"\x1f\x8b\x08\0"]), st.binary(max_size=60))
def test_noise_is_refused_or_read_exactly(tmp_path_factory, start, noise):
    file = tmp_path_factory.getbasetemp() / "noise.idx"
    file.write_bytes(start + noise)
    try:
        array = read_idx(file)
    except ValueError as error:
        assert str(file) in str(error)
    else:
        assert 4 + 4 * array.ndim + array.nbytes == len(start + noise)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_idx(tmp_path / "nothing")


# ── data sets ─────────────────────────────────────────────────────────────────────────────────


def test_the_digits_that_come_along():
    train, test = load()
    assert (len(train), len(test)) == (9000, 1000)
    assert set(train.indices).isdisjoint(test.indices) and len({*train.indices, *test.indices}) == 10_000
    assert list(load()[1].indices) == list(test.indices)
    image, label = test[0]
    assert image.shape == (1, 28, 28) and image.dtype == torch.float32 and label.dtype == torch.int64
    pixels = train.dataset.images
    assert abs(pixels.mean().item()) < 0.02 and abs(pixels.std().item() - 1) < 0.02
    assert len(truncate(test, 12)) == 12 and len(truncate(test, 10**6)) == 1000


@pytest.mark.parametrize("mark", "-.")
@pytest.mark.parametrize("end", ["", ".gz"])
def test_a_folder_with_all_of_mnist(tmp_path, mark, end):
    write = gzip.compress if end else bytes
    for part, n in (("train", 7), ("t10k", 3)):
        (tmp_path / f"{part}-images{mark}idx3-ubyte{end}").write_bytes(write(idx(np.full((n, 28, 28), 255), 8)))
        (tmp_path / f"{part}-labels{mark}idx1-ubyte{end}").write_bytes(write(idx(np.arange(n), 8)))
    train, test = load(tmp_path)
    assert (len(train), len(test)) == (7, 3) and [label.item() for _, label in train] == list(range(7))


def test_folders_that_are_not_mnist(tmp_path):
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        load(tmp_path)
    images, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    good = {images: idx(np.zeros((2, 28, 28)), 8), labels: idx(np.arange(2), 8)}
    for file, data, why in [
        (images, idx(np.zeros((2, 28, 27)), 8), "28×28"),
        (images, idx(np.zeros((2, 28, 28)), 13), "28×28"),
        (images, idx(np.zeros((3, 28, 28)), 8), "one digit for each of 3"),
        (labels, idx(np.array([1, 10]), 8), "one digit"),
        (labels, idx(np.zeros((2, 1)), 8), "one digit"),
    ]:
        for name, content in {**good, file: data}.items():
            name.write_bytes(content)
        with pytest.raises(ValueError, match=why):
            MNIST(tmp_path, "train")


def test_text_and_its_numbers():
    text = Text(SHAKESPEARE)
    assert len(text.letters) == 65 and text.decode(text.numbers[:13]) == "First Citizen"
    assert text.decode(text.encode("To be")) == "To be"
    learned, held_out = text.split()
    assert len(learned) + len(held_out) == len(text.numbers)
    torch.manual_seed(0)
    snippets, following = batch(held_out, 4, 16)
    assert snippets.shape == following.shape == (4, 16) and torch.equal(snippets[:, 1:], following[:, :-1])
    assert batch(torch.arange(5), 50, 4)[1].max() == 4  # the last number can be asked for


# ── the toolkit ───────────────────────────────────────────────────────────────────────────────


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_bar_on_a_terminal(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    bar = ProgressBar("abcd", prefix="epoch 1", bins=8, file=(terminal := Terminal()))
    for i, _ in enumerate(bar):
        bar.note(loss=1 / (i + 1), accuracy=i / 4)
    drawn = terminal.getvalue().split("\r")[1:]
    assert drawn[0].rstrip() == "epoch 1 [==......] 1/4 loss 1 accuracy 0.0 % ETA 0:06"
    assert re.fullmatch(r"epoch 1 \[={8}\] 4/4 loss 0.25 accuracy 75.0 % in 0:0\d\s*\n", drawn[-1])
    widths = [len(line.rstrip("\n")) for line in drawn]
    assert "\n" not in "".join(drawn[:-1]) and widths == sorted(widths)  # each covers the one before


def test_progress_bar_without_a_terminal():
    lines = io.StringIO()
    assert list(ProgressBar(iter("abc"), total=3, file=lines)) == ["a", "b", "c"]
    assert lines.getvalue() == "3/3 in 0:00\n"
    assert list(ProgressBar([], file=lines)) == []


def test_evaluator_counts_by_class():
    evaluator = Evaluator(["cat", "dog", "owl"])
    logits = torch.tensor([[2.0, 1, 0], [0, 2, 1], [0, 2, 1], [3, 1, 2]])
    assert evaluator.update(logits, torch.tensor([0, 1, 0, 0])) == 3
    assert evaluator.accuracy == 0.75
    rows = [" ".join(line.split()) for line in evaluator.table().splitlines()]
    assert rows == ["class right of accuracy", "cat 2 3 66.67 %", "dog 1 1 100.00 %", "owl 0 0 –", "Total 3 4 75.00 %"]


def test_without_matplotlib_the_run_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    save_report(tmp_path / "no.png", "", [1.0], [0.5], None, None)
    assert "pip install matplotlib" in capsys.readouterr().out and not list(tmp_path.iterdir())


def test_the_running_mean_starts_at_the_first_value():
    assert smooth([3.0, 3.0, 3.0]) == pytest.approx([3, 3, 3])
    assert smooth([1.0, 2.0])[1] == pytest.approx(1.5, abs=0.02)


def test_the_data_are_attributed():
    assert "Attribution-Share Alike 3.0" in (EMBEDDED / "README.md").read_text(encoding="utf-8")
