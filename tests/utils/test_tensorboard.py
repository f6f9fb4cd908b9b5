"""Event files: what PyTorch's SummaryWriter writes for the same calls, read by TensorBoard itself."""
import contextlib
import importlib.util
import io
import os
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from support import DEVICE, ROOT, fresh_process, until

import tensorgrad
from tensorgrad.utils.tensorboard import FileWriter, SummaryWriter, _wire
from tensorgrad.utils.tensorboard._files import BLOCK, crc32c

reads = pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None,
                           reason="TensorBoard, which reads the files, is not installed")


def events(folder):
    """The events of each file below a folder, as TensorBoard reads them: {folder: [event]}."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event
    found = {}
    for path in sorted(folder.rglob("events.out.tfevents.*")):
        found.setdefault(str(path.parent.relative_to(folder)),
                         []).extend(map(Event.FromString, RawEventFileLoader(str(path)).Load()))
    return found


def accumulated(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    return EventAccumulator(str(folder), size_guidance={"tensors": 0, "histograms": 0, "images": 0, "scalars": 0,
                                                        "audio": 0}).Reload()


def comparable(event):
    """The event without its time and the name of its writer; pictures as their pixels."""
    from PIL import Image
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    event.ClearField("wall_time")
    event.ClearField("source_metadata")
    for value in event.summary.value:
        if value.image.encoded_image_string:
            value.image.encoded_image_string = np.asarray(
                Image.open(io.BytesIO(value.image.encoded_image_string))).tobytes()
        plugin = value.metadata.plugin_data
        if plugin.plugin_name == "hparams":         # protobuf writes a mapping in any order
            plugin.content = HParamsPluginData.FromString(plugin.content).SerializeToString(deterministic=True)
    return event


def written(program, torch, folder):
    """Run `program(writer, torch)`, and return the written {folder: events}, and its other files."""
    torch.manual_seed(0)
    with importlib.import_module(f"{torch.__name__}.utils.tensorboard").SummaryWriter(folder) as writer:
        program(writer, torch)
    others = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.*"))
              if "tfevents" not in path.name and path.is_file()}
    return {name: list(map(comparable, found)) for name, found in events(folder).items()}, others


PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def scalars(w, torch):
    values = [1, 0, -0.0, 2.5, True, 1e300, float("inf"), torch.tensor(3.5), torch.tensor([[7]]), np.float32(0.1),
              np.array([2]), np.int64(-3), torch.tensor(2.0, requires_grad=True),
              torch.tensor(1.5, dtype=torch.bfloat16), float("nan")]
    for step, value in enumerate(values):
        w.add_scalar("number", value, step, walltime=1e9 + step)
    w.add_scalar("without a step/ünïcode", 0.1)
    w.add_scalar("n", 0.1, torch.tensor(5), new_style=True)
    w.add_scalar("d", 0.1, 2.7, new_style=True, double_precision=True)
    w.add_scalar("zero", 0.0, -1, new_style=True)
    for step in range(3):
        w.add_scalars("main/tag", {"a": step, "b c": torch.tensor(2.0 * step)}, step)


@program
def texts(w, torch):
    w.add_text("lstm", "**This** is an lstm\n\n| a | ü |", 0)
    w.add_text("empty", "")
    w.add_text("a/b", "x" * 1000, 70000)


@program
def histograms(w, torch):
    w.add_histogram("normal", torch.randn(1000, generator=torch.Generator().manual_seed(1)), 1)
    for bins in ("auto", "fd", 10, [0, 1, 2.5]):
        w.add_histogram(f"{bins}", np.arange(20.0), 3, bins=bins)
    w.add_histogram("one", torch.tensor([0.0]))
    w.add_histogram("ints", torch.arange(7).reshape(7, 1), bins=7)
    w.add_histogram("few", np.linspace(-3, 3, 500), max_bins=20)
    w.add_histogram("fewer", np.linspace(-3, 3, 500), bins=100, max_bins=7)
    w.add_histogram("gap", np.array([1.0, 9.0, 9.5]), bins=10)
    w.add_histogram("number", 4)
    w.add_histogram_raw("raw", 0.0, 2.0, 5, 4.0, 6.0, bucket_limits=[0.5, 1.0, 2.0], bucket_counts=[1, 0, 4])
    w.add_histogram_raw("arrays", min=0, max=2, num=3, sum=4, sum_squares=6, bucket_limits=np.array([0.5, 1.0]),
                        bucket_counts=np.array([1, 2]),
                        global_step=4)


@program
def images(w, torch):
    picture = torch.arange(60.0).reshape(3, 4, 5) / 50
    w.add_image("floats", picture, 1)
    w.add_image("bytes", (picture * 200).to(torch.uint8), 1)
    w.add_image("HWC", picture.permute(1, 2, 0).numpy(), dataformats="HWC")
    w.add_image("hw", picture[0], dataformats="HW")
    w.add_image("grey", picture[:1])
    w.add_image("WH", picture[0], dataformats="WH")
    w.add_image("alpha", torch.cat([picture, picture[:1]]))
    w.add_image("half", picture.to(torch.float16))
    w.add_image("booleans", picture > 0.5)
    many = torch.arange(11 * 3 * 4.0).reshape(11, 1, 3, 4) / 100
    w.add_images("grid", many, 2)
    w.add_images("three", many.repeat(1, 3, 1, 1)[:3].permute(0, 2, 3, 1), 2, dataformats="NHWC")
    boxes = torch.tensor([[1, 2, 20, 25], [5, 5, 30, 12]])
    big = torch.arange(4800.0).reshape(3, 40, 40) / 4800
    w.add_image_with_boxes("boxes", big, boxes, 3)
    w.add_image_with_boxes("labels", big, boxes, labels=["cat", "dög"])
    w.add_image_with_boxes("wrong labels", big, boxes, labels=["cat"])
    w.add_image_with_boxes("one", big.permute(1, 2, 0), boxes[:1].float(), labels="cat", rescale=2, dataformats="HWC")


@program
def figures(w, torch):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    def figure(slope):
        figure = pyplot.figure(figsize=(2, 1.5))
        figure.gca().plot([0, 1], [0, slope])
        return figure
    w.add_figure("one", figure(1), 2)
    w.add_figure("two", [figure(1), figure(-1)], close=True)
    assert not pyplot.get_fignums()
    kept = figure(3)
    w.add_figure("kept", kept, close=False)
    assert pyplot.fignum_exists(kept.number)
    pyplot.close(kept)


@program
def sounds(w, torch):
    w.add_audio("tone", np.sin(np.arange(200) * 0.1), 1)
    w.add_audio("clipped", torch.from_numpy(np.linspace(-2, 2, 50)).reshape(1, 50), sample_rate=8000)


@program
def curves(w, torch):
    generator = np.random.default_rng(0)
    labels, predictions = generator.integers(0, 2, 100), generator.random(100).round(2)
    w.add_pr_curve("curve", labels, predictions, 1)
    w.add_pr_curve("tensors", torch.tensor(labels), torch.tensor(predictions), 1, num_thresholds=20)
    w.add_pr_curve("many", labels > 0, predictions, num_thresholds=500, weights=2.0)
    w.add_pr_curve("weights", labels.reshape(10, 10), predictions.reshape(10, 10), num_thresholds=5,
                   weights=generator.random((10, 10)))
    w.add_pr_curve("outside", labels, predictions * 3 - 1, num_thresholds=11)
    w.add_pr_curve_raw("raw", [4, 2, 1], [3, 1, 0], [0, 2, 3], [0, 2, 3], [4 / 7, 2 / 3, 1], [1, 0.5, 0.25],
                       num_thresholds=3)


@program
def meshes(w, torch):
    vertices = torch.arange(24.0).reshape(2, 4, 3)
    faces = torch.tensor([[[0, 2, 3], [0, 3, 1]]]).repeat(2, 1, 1)
    w.add_mesh("full", vertices, colors=(vertices * 10).int(), faces=faces,
               config_dict={"lights": [{"cls": "AmbientLight"}], "camera": {}},
               global_step=2)
    w.add_mesh("points", vertices)


@program
def layouts(w, torch):
    w.add_custom_scalars({"Taiwan": {"twse": ["Multiline", ["twse/0050", "twse/2330"]]},
                          "USA": {"dow": ["Margin", ["dow/aaa", "dow/bbb", "dow/ccc"]],
                                  "nasdaq": ["Multiline", ["n"]]}})
    w.add_custom_scalars_multilinechart(["a", "b"], title="two")
    w.add_custom_scalars_marginchart(["a", "b", "c"], category="x")


@program
def hyperparameters(w, torch):
    w.add_hparams({"lr": 0.1, "batch": 16, "name": "net", "flag": True, "none": None, "tensor": torch.tensor([2.5])},
                  {"accuracy": 0.5, "loss": torch.tensor(1.5)},
                  {"lr": [0.1, 0.01], "name": ["net", "other"], "flag": [True]}, "run", 7)
    w.add_hparams({}, {}, run_name="empty")


@program
def tensors(w, torch):
    for dtype in "float16 bfloat16 float32 float64 int8 uint8 int16 int32 int64 bool complex64 complex128".split():
        w.add_tensor(dtype, torch.tensor([[0, 1, 100], [-3, 2, 0]]).to(getattr(torch, dtype)), 1)
    w.add_tensor("big", torch.tensor([2 ** 62, -2 ** 63, 2 ** 63 - 1, 300]))
    w.add_tensor("0-d", torch.tensor(1.5))
    w.add_tensor("none", torch.zeros(0, 3))
    w.add_tensor("bits", torch.tensor([float("inf"), 1e-8, -2.5]).half())


@program
def embeddings(w, torch):
    vectors = torch.arange(15.0).reshape(5, 3) / 7
    w.add_embedding(vectors, metadata=["a", 2, "ü", "x y", None],
                    label_img=torch.arange(120.0).reshape(5, 3, 2, 4) / 128)
    w.add_embedding(vectors.numpy(), [["a", 1]] * 5, global_step=3, tag='with/"%\\ü', metadata_header=["name", "n"])
    w.add_embedding(vectors.to(torch.int64), global_step=12, tag="bare")


@reads
@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])
def test_what_pytorch_writes(program, tmp_path):
    """Both libraries write the same messages, field by field, to the same files."""
    torch = pytest.importorskip("torch")
    (ours, files), (theirs, expected) = (written(program, library, tmp_path / library.__name__)
                                         for library in (tensorgrad, torch))
    assert list(ours) == list(theirs)
    for name in theirs:
        assert len(ours[name]) == len(theirs[name])
        for one, other in zip(ours[name], theirs[name]):
            assert (one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)), (one,
                                                                                                                other)
    assert ({name: data for name, data in files.items() if not name.endswith("png")}
            == {n: d for n, d in expected.items() if not n.endswith("png")})
    from PIL import Image
    for name in (name for name in expected if name.endswith("png")):
        with Image.open(io.BytesIO(files[name])) as one, Image.open(io.BytesIO(expected[name])) as other:
            assert one.size == other.size and one.tobytes() == other.tobytes()


@reads
def test_tensorboard_reads_it(tmp_path):
    from tensorboard.compat.proto.summary_pb2 import Summary
    with SummaryWriter(tmp_path) as w:
        # a program that makes its own
        w.file_writer.add_summary(Summary(value=[Summary.Value(tag="theirs", simple_value=2)]), 5)
        for step in range(200):
            w.add_scalar("loss", 1 / (step + 1), step)
        w.add_histogram("weights", tensorgrad.linspace(-1, 1, 50, device=DEVICE), 3)
        w.add_text("note", "hello")
        w.add_image("dot", tensorgrad.full((3, 2, 2), 0.5), 4)
        w.add_audio("tone", tensorgrad.zeros(30))
    found = accumulated(tmp_path)
    assert ([(s.step, s.value) for s in found.Scalars("loss")]
            == [(i, float(np.float32(1 / (i + 1)))) for i in range(200)])
    assert [(s.step, s.value) for s in found.Scalars("theirs")] == [(5, 2.0)]
    histogram = found.Histograms("weights")[0]
    assert histogram.step == 3 and sum(histogram.histogram_value.bucket) == histogram.histogram_value.num == 50
    assert found.Tensors("note/text_summary")[0].tensor_proto.string_val == [b"hello"]
    assert found.Images("dot")[0].width == 2 and found.Audio("tone")[0].length_frames == 30
    assert found.summary_metadata["note/text_summary"].plugin_data.plugin_name == "text"


REFUSED = [
    lambda w, torch: w.add_scalar("x", torch.ones(2)),
    lambda w, torch: w.add_scalar("x", "text"),
    lambda w, torch: w.add_scalar("x", [1]),
    lambda w, torch: w.add_scalar("x", None),
    lambda w, torch: w.add_histogram("x", torch.zeros(0)),
    lambda w, torch: w.add_histogram("x", torch.ones(2), bins=[5, 6]),
    lambda w, torch: w.add_histogram("x", torch.ones(2), bins=[5, 6, 7]),
    lambda w, torch: w.add_histogram("x", torch.ones(2), bins="nothing"),
    lambda w, torch: w.add_histogram_raw("x", 0, 1, 1, 1, 1, [1], [1, 2]),
    lambda w, torch: w.add_image("x", torch.ones(2, 2)),
    lambda w, torch: w.add_image("x", torch.ones(2, 2), dataformats="HH"),
    lambda w, torch: w.add_images("x", torch.ones(2, 2, 2, 2)),
    lambda w, torch: w.add_audio("x", torch.ones(2, 2)),
    lambda w, torch: w.add_mesh("x", torch.ones(2, 3)),
    lambda w, torch: w.add_hparams([], {}),
    lambda w, torch: w.add_hparams({"a": []}, {}),
    lambda w, torch: w.add_hparams({"a": np.float32(1)}, {}),
    lambda w, torch: w.add_hparams({"a": 1}, {}, []),
    lambda w, torch: w.add_hparams({"a": 1}, {}, [1]),
    lambda w, torch: w.add_hparams({"a": 1}, {}, {"a": [1, "b"]}),
    lambda w, torch: w.add_hparams({"a": 1}, {}, {"b": [1]}),
    lambda w, torch: w.add_custom_scalars({"a": {"b": ["Margin", ["x"]]}}),
    lambda w, torch: w.add_custom_scalars_marginchart(["x"]),
    lambda w, torch: w.add_embedding(torch.ones(2, 2), metadata=["a"]),
    lambda w, torch: w.add_embedding(torch.ones(2, 2), metadata=[["a"], ["b"]], metadata_header=["a", "b"]),
    lambda w, torch: w.add_embedding(torch.ones(2, 2), label_img=torch.ones(1, 3, 2, 2)),
    lambda w, torch: w.add_embedding(torch.ones(2)),
    lambda w, torch: w.add_tensor("x", torch.ones(2).to(torch.uint16)),
    lambda w, torch: w.add_text("x", 3),
    lambda w, torch: w.add_graph(torch.nn.Linear(2, 2), torch.ones(1, 3)),
    lambda w, torch: w.file_writer.add_event(3),
    lambda w, torch: (w.close(), w.close(), w.add_scalar("again", 1), w.get_logdir())[-1].endswith("x"),
    lambda w, torch: (w.file_writer.close(), w.file_writer.close(), w.file_writer.flush()),
]


@reads
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number, tmp_path):
    torch = pytest.importorskip("torch")
    from side_by_side import attempt

    def tried(library):
        writer = importlib.import_module(f"{library.__name__}.utils.tensorboard").SummaryWriter(
            str(tmp_path / library.__name__ / "x"))
        answer = attempt(lambda: REFUSED[number](writer, library))
        with contextlib.suppress(OSError):      # theirs, when a file is closed already
            writer.close()
        return answer
    ours, theirs = tried(tensorgrad), tried(torch)
    assert ours == theirs


def test_the_signatures():
    pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.utils.tensorboard", reason="TensorBoard is not installed")
    import inspect
    for kind, expected in ((SummaryWriter, theirs.SummaryWriter), (FileWriter, theirs.FileWriter)):
        for name, method in vars(expected).items():
            if inspect.isfunction(method) and name != "add_onnx_graph":
                ours, other = (inspect.signature(f).parameters.values() for f in (getattr(kind, name), method))
                if name not in ("__exit__",):
                    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in other], name


class Net(tensorgrad.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = tensorgrad.nn.Conv2d(1, 2, 3)
        self.layers = tensorgrad.nn.Sequential(tensorgrad.nn.Linear(2, 3), tensorgrad.nn.BatchNorm1d(3),
                                               tensorgrad.nn.Dropout(0.5))

    def forward(self, x, scale):
        return self.layers(self.conv(x).relu().mean((2, 3))) * scale["by"], x + 1


@reads
def test_the_graph_of_a_model(tmp_path, capsys):
    from tensorboard.compat.proto.config_pb2 import RunMetadata
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    model = Net()
    model.layers[2].eval()
    lstm = tensorgrad.nn.LSTM(2, 3)
    before, modes, random = str(model.state_dict()), [m.training for m in model.modules()], tensorgrad.get_rng_state()
    method = vars(tensorgrad.Tensor)["relu"]
    with SummaryWriter(tmp_path) as w:
        w.add_graph(model, (tensorgrad.randn(4, 1, 5, 5, generator=tensorgrad.Generator()), {"by": tensorgrad.ones(3)}),
                    verbose=True)
        w.add_graph(lstm, tensorgrad.ones(1, 4, 2))
    assert (str(model.state_dict()), [m.training for m in model.modules()]) == (before, modes)
    assert (tensorgrad.get_rng_state() == random).all() and vars(tensorgrad.Tensor)["relu"] is method
    found = events(tmp_path)["."]
    nodes = {node.name: node for node in GraphDef.FromString(found[1].graph_def).node}
    assert nodes["Net/Conv2d[conv]/conv2d"].input == ["input/x", "Net/Conv2d[conv]/weight", "Net/Conv2d[conv]/bias"]
    assert nodes["Net/relu"].input == ["Net/Conv2d[conv]/conv2d"] and nodes["Net/relu"].op == "aten::relu"
    assert [d.size for d in nodes["Net/relu"].attr["_output_shapes"].list.shape[0].dim] == [4, 2, 3, 3]
    assert nodes["Net/mean"].attr["attr"].s == b"{1: (2, 3)}"
    assert nodes["Net/Sequential[layers]/Linear[0]/linear"].input[0] == "Net/mean"
    assert ("Net/Sequential[layers]/BatchNorm1d[1]/running_mean" in nodes
            and nodes["output/output.2"].input == ["Net/add"])
    assert (nodes["Net/mul"].input[1] == "input/scale" and "Net/relu = aten::relu(Net/Conv2d[conv]/conv2d)"
            in capsys.readouterr().out)
    assert all(name in nodes for node in nodes.values() for name in node.input)
    assert (RunMetadata.FromString(found[2].tagged_run_metadata.run_metadata).step_stats.dev_stats[0].device
            == "/device:CPU:0")
    assert accumulated(tmp_path).Graph().node


def test_a_strict_graph_refuses_a_dict():
    class Named(tensorgrad.nn.Module):
        def forward(self, x):
            return {"out": x + 1}
    from tensorgrad.utils.tensorboard._graph import graph
    with pytest.raises(RuntimeError, match="Encountering a dict at the output of the tracer"):
        graph(Named(), tensorgrad.ones(1))
    nodes = graph(Named(), tensorgrad.ones(1), use_strict_trace=False)[0].node
    assert nodes[-1].name == "output/output.1" and nodes[-1].device == ""


def test_messages_read_as_protobufs_do():
    torch_summary = pytest.importorskip("torch.utils.tensorboard.summary")
    from tensorgrad.utils.tensorboard import summary
    for call in (lambda s: s.text("é", "a\n"), lambda s: s.scalar("a", 1 / 3), lambda s: s.scalar("a", 0.0),
                 lambda s: s.histogram("h", np.arange(9.0) / 3, "auto", 5), lambda s: s.audio("a", np.zeros(4)),
                 lambda s: s.pr_curve("p", np.zeros(2), np.ones(2), 2)):
        assert str(call(summary)) == str(call(torch_summary))
    assert summary.scalar("a", 1.0).value[0].metadata is None and summary.Summary().value == []
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        summary.Summary().other


def test_what_is_not_there():
    with pytest.raises(NotImplementedError, match="ONNX files are not read"):
        SummaryWriter.add_onnx_graph(None, "file")


@pytest.mark.parametrize("package, call", [("PIL", "add_image('x', torch.ones(3, 2, 2))"),
                                           ("matplotlib", "add_figure('x', None)")])
def test_missing_packages(package, call):
    line = fresh_process(f"import sys, tempfile; sys.modules['{package}'] = None\nimport tensorgrad as torch\n"
                         f"from tensorgrad.utils.tensorboard import SummaryWriter as W\nwith "
                         f"tempfile.TemporaryDirectory() as d, W(d) as w: w.{call}",
                         fails=True)
    assert line.startswith("ImportError: ") and "pip install " in line


@pytest.mark.skipif(importlib.util.find_spec("PIL") is None, reason="Pillow writes pictures")
@reads
def test_videos(tmp_path):
    from PIL import Image
    with SummaryWriter(tmp_path) as w:
        w.add_video("clip", tensorgrad.arange(5 * 3 * 2 * 2).reshape(1, 5, 3, 2, 2).to(tensorgrad.uint8) * 4, 1, fps=10)
        w.add_video("three", tensorgrad.rand(3, 2, 3, 4, 6))
    clip, three = (event.summary.value[0].image for event in events(tmp_path)["."][1:])
    assert (clip.height, clip.width, clip.colorspace) == (2, 2, 3) and (three.height, three.width) == (4, 24)
    with Image.open(io.BytesIO(clip.encoded_image_string)) as movie:
        assert movie.format == "GIF" and movie.n_frames == 5 and movie.info["duration"] == 100


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_checksums():
    """Known values, and long data against the plain algorithm."""
    def plain(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF
    assert ([crc32c(data) for data in (b"", b"a", b"123456789", bytes(32), b"\xff" * 32)]
            == [0, 0xC1D04330, 0xE3069283, 0x8A9136AA, 0x62A8AB43])
    data = np.random.default_rng(0).bytes(3 * BLOCK + 17)
    for size in (1, 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, len(data)):
        assert crc32c(data[:size]) == plain(data[:size])
    assert crc32c(bytes(1025 * BLOCK + 5)) == crc32c(bytearray(1025 * BLOCK + 5))


def test_integers():
    values = [0, 1, 127, 128, 300, 2 ** 31, 2 ** 56, 2 ** 62 + 5, 2 ** 63 - 1, -1, -300, -2 ** 63]
    assert _wire.varints(values) == b"".join(map(_wire.varint, values)) and _wire.varint(-1) == b"\xff" * 9 + b"\1"
    with pytest.raises(ValueError, match="Value out of range: 2147483648"):
        _wire.Image(height=2 ** 31).SerializeToString()
    with pytest.raises(ValueError, match='Protocol message Dim has no "length" field.'):
        _wire.Dim(length=1)


def sizes(folder):
    return [path.stat().st_size for path in sorted(folder.rglob("events*"))]


def decoded(message):
    """{number: [values]} of a message, read by the rules of protobuf's wire format."""
    def varint():
        nonlocal message
        end = next(i for i, byte in enumerate(message) if byte < 128) + 1
        value, message = sum((byte & 127) << 7 * i for i, byte in enumerate(message[:end])), message[end:]
        return value
    fields = {}
    while message:
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value = varint()
        else:
            size = varint() if size is None else size
            value, message = message[:size], message[size:]
        fields.setdefault(key >> 3, []).append(value)
    return fields


def noted(folder):
    """(tag, step) of each summary in the files of a folder, whose checksums must be right."""
    found = []
    for path in sorted(folder.rglob("events.out.tfevents.*")):
        data = path.read_bytes()
        while data:
            length, = struct.unpack("<Q", data[:8])
            event = data[12:12 + length]
            for part, end in ((data[:8], 8), (event, 12 + length)):
                crc = crc32c(part)
                assert struct.unpack("<I", data[end:end + 4])[0] == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            data = data[length + 16:]
            event = decoded(event)
            if 5 in event:
                found.append((decoded(decoded(event[5][0])[1][0])[1][0].decode(), event.get(2, [0])[0]))
            else:
                assert event[3] == [b"brain.Event:2"]
    return found


def test_names_and_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_x", filename_suffix=".mine") as w:
        assert w.get_logdir() == w.log_dir and w.file_writer.get_logdir() == w.log_dir
        day, host = w.log_dir.split(os.sep)[1].split("_", 2)[::2]
        assert day == time.strftime("%b%d") and host.endswith("_x") and w.log_dir.startswith("runs")
        name, = os.listdir(w.log_dir)
        parts = name.split(".")
        assert (parts[:3] == ["events", "out", "tfevents"] and len(parts[3]) == 10 and parts[-1] == "mine"
                and parts[-3] == str(os.getpid()))


@reads
def test_purging(tmp_path, monkeypatch):
    with SummaryWriter(tmp_path) as w:
        for step in range(5):
            w.add_scalar("a", step, step)
    # files are read in the order of the second that they were made in
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 2)
    with SummaryWriter(tmp_path, purge_step=3) as w:
        w.add_scalar("a", 30, 3)
    assert [(s.step, s.value) for s in accumulated(tmp_path).Scalars("a")] == [(0, 0), (1, 1), (2, 2), (3, 30)]


def test_nothing_is_lost_and_little_waits(tmp_path):
    w = SummaryWriter(tmp_path, max_queue=5, flush_secs=1000)
    start, = sizes(tmp_path)
    assert w.file_writer.event_writer._thread is None        # before it is needed
    w.add_scalar("a", 0, 0)
    assert sizes(tmp_path) == [start]
    w.flush()
    assert sizes(tmp_path)[0] > start
    for step in range(1, 100):
        w.add_scalar("a", step, step)
    until(lambda: len(noted(tmp_path)) >= 95)    # a full queue is written without being told
    w.close()
    assert noted(tmp_path) == [("a", step) for step in range(100)]


def test_events_are_written_in_time(tmp_path):
    with SummaryWriter(tmp_path, max_queue=1000, flush_secs=0.05) as w:
        w.add_scalar("a", 1)
        until(lambda: noted(tmp_path))
        assert noted(tmp_path) == [("a", 0)]


def test_many_threads(tmp_path):
    with SummaryWriter(tmp_path, max_queue=3) as w:
        threads = [threading.Thread(target=lambda k=k: [w.add_scalar(f"t{k}", i, i) for i in range(50)])
                   for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = noted(tmp_path)
    assert (all([step for tag, step in found if tag == f"t{k}"] == list(range(50)) for k in range(6))
            and len(found) == 300)


def test_the_end_of_a_program(tmp_path):
    """Events that were not flushed are written when the program ends, even by an error."""
    program = (f"from tensorgrad.utils.tensorboard import SummaryWriter\nw = SummaryWriter({str(tmp_path)!r})\n"
               "for i in range(7): w.add_scalar('a', i, i)\nraise SystemExit(3)")
    assert subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=ROOT, timeout=60).returncode == 3
    assert noted(tmp_path) == [("a", step) for step in range(7)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_fork(tmp_path):
    """A forked child writes to its own file, and nothing twice."""
    program = f"""
import os, warnings
from tensorgrad.utils.tensorboard import SummaryWriter
warnings.simplefilter("ignore", DeprecationWarning)     # Python warns of forks beside threads
w = SummaryWriter({str(tmp_path)!r})
for i in range(3): w.add_scalar("parent", i, i)
child = os.fork()
w.add_scalar("parent" if child else "child", 10, 10)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    fresh_process(program)
    assert len(sizes(tmp_path)) == 2
    assert sorted(noted(tmp_path)) == [("child", 10), ("parent", 0), ("parent", 1), ("parent", 2), ("parent", 10)]


def test_a_full_disk_is_told(tmp_path):
    w = SummaryWriter(tmp_path)
    w.file_writer.event_writer._file.close()
    w.add_scalar("a", 1)
    for _ in range(2):
        with pytest.raises(ValueError, match="closed file"):
            w.flush()
    w.file_writer.event_writer.close()
    with pytest.raises(OSError, match="Writer is closed"):
        w.file_writer.flush()
    w.file_writer.reopen()
    w.add_scalar("a", 2)
    w.close()
    assert len(sizes(tmp_path)) == 2
