"""Files in the safetensors format: written and read beside the package of that name, false headers, models."""
import json
import os
import struct

import numpy as np
import pytest
from support import DEVICE, cpu_only

import tensorgrad as tg
from tensorgrad.utils import safetensors as ours

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
          "uint64", "bool", "complex64"]


def sample(torch):
    made = {f"of.{name}": torch.tensor([[0, 1], [1, 1]]).to(getattr(torch, name)) for name in DTYPES}
    return made | {"scalar": torch.tensor(3.), "empty": torch.empty(0, 2), "αβ \"x\"": torch.arange(3),
                   "_": torch.arange(6.).reshape(2, 3)}


def plain(tensors):
    return {name: (str(t.dtype).removeprefix("tensorgrad."), tuple(t.shape), t.tolist()) for name, t in tensors.items()}


@pytest.fixture
def theirs():
    pytest.importorskip("torch")
    return pytest.importorskip("safetensors.torch")


def test_round_trip(tmp_path):
    tensors = sample(tg)
    ours.save_file(tensors, tmp_path / "x.safetensors", {"format": "pt", "α": "β"})
    assert (plain(ours.load_file(tmp_path / "x.safetensors")) == plain(tensors)
            == plain(ours.load((tmp_path / "x.safetensors").read_bytes())))
    assert (os.listdir(tmp_path) == ["x.safetensors"] and plain(ours.load_file(tmp_path / "x.safetensors", DEVICE))
            == plain(tensors))


def test_files_cross_over(theirs, tmp_path):
    import torch
    mine, other = ours.save(sample(tg), {"k": "v"}), theirs.save(sample(torch), {"k": "v"})
    assert mine == other                                    # to the byte
    assert plain(theirs.load(mine)) == plain(sample(torch)) and plain(ours.load(other)) == plain(sample(tg))
    theirs.save_file(sample(torch), tmp_path / "x", {"k": "v"})
    assert plain(ours.load_file(tmp_path / "x")) == plain(sample(tg))


def test_one_by_one(theirs, tmp_path):
    import safetensors
    ours.save_file(sample(tg), tmp_path / "x", {"k": "v"})
    with ours.safe_open(tmp_path / "x", "pt") as file, safetensors.safe_open(tmp_path / "x", "pt") as other:
        assert (file.keys() == other.keys() and file.offset_keys() == other.offset_keys()
                and file.metadata() == other.metadata())
        assert file.get_tensor("_").tolist() == other.get_tensor("_").tolist()
        a, b = file.get_slice("_"), other.get_slice("_")
        assert a.get_shape() == b.get_shape() and a.get_dtype() == b.get_dtype()
        for index in (np.s_[:, 1:], np.s_[0], np.s_[..., 1], np.s_[1:2, :2], np.s_[-1], np.s_[:]):
            assert a[index].tolist() == b[index].tolist() and a[index].shape == tuple(b[index].shape)
        for bad in (5, (0, 0, 0)):
            with pytest.raises(IndexError):
                a[bad]
        for ask in (file.get_tensor, file.get_slice):
            with pytest.raises(ours.SafetensorError, match="File does not contain tensor no"):
                ask("no")
    with pytest.raises(ours.SafetensorError, match="File is closed"):
        file.get_tensor("_")
    with ours.safe_open(tmp_path / "x", "np") as file:
        assert isinstance(file.get_tensor("_"), np.ndarray) and file.get_slice("_")[1].tolist() == [3, 4, 5]
    with pytest.raises(FileNotFoundError, match="No such file or directory: nowhere"):
        ours.safe_open("nowhere")
    with pytest.raises(ours.SafetensorError, match="framework"):
        ours.safe_open(tmp_path / "x", "jax")


@cpu_only
def test_mapped_tensors_are_the_programs_own(tmp_path):
    ours.save_file({"a": tg.ones(4)}, tmp_path / "x")
    loaded = ours.load_file(tmp_path / "x")["a"]
    assert not loaded.array.flags.owndata
    loaded.fill_(5.0)
    assert ours.load_file(tmp_path / "x")["a"].tolist() == [1.0] * 4
    ours.save_file({"a": tg.zeros(9)}, tmp_path / "x")          # in the place of the file that is mapped
    assert loaded.tolist() == [5.0] * 4


def test_what_cannot_be_written(theirs, tmp_path):
    import torch
    x = {"torch": torch.ones(4), "tensorgrad": tg.ones(4)}
    for make, kind in ((lambda x: {"a": x, "b": x[:2]}, RuntimeError), (lambda x: {"a": x, "b": x}, RuntimeError),
            (lambda x: {"a": x.reshape(2, 2).t()}, ValueError),
                       (lambda x: {"a": 1}, ValueError), (lambda x: [x], ValueError)):
        with pytest.raises(kind) as mine:
            ours.save_file(make(x["tensorgrad"]), tmp_path / "x")
        with pytest.raises(kind) as other:
            theirs.save_file(make(x["torch"]), tmp_path / "x")
        said, meant = (str(error.value).strip().splitlines()[0].partition(": [{")[0] for error in (mine, other))
        assert said == meant and os.listdir(tmp_path) == []
    assert (plain(ours.load(ours.save({"a": x["tensorgrad"][:2], "b": x["tensorgrad"][2:]})))
            == {"a": ("torch.float32", (2,), [1, 1]),
"b": ("torch.float32", (2,), [1, 1])})
    with pytest.raises(TypeError, match="metadata"):
        ours.save({}, {"a": 1})
    for wrong in ({1: tg.ones(1)}, {"__metadata__": tg.ones(1)}, {"a": tg.ones(1, dtype=tg.complex128)}):
        with pytest.raises(ValueError):
            ours.save(wrong)


def file_of(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(begin, end, shape=(1,), dtype="F32", **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end], **more}


FOUR = b"\0" * 4
LIES = {
    "nothing": (b"", "header too small"),
    "three bytes": (b"abc", "header too small"),
    "length": (struct.pack("<Q", 50) + b"{}", "invalid header length"),
    "largest length": (b"\xff" * 8 + b"{}", "header too large"),
    "a list": (file_of(b"[]"), "invalid"),
    "no end": (file_of(b"{"), "invalid JSON in header"),
    "utf-8": (file_of(b'{"\xff":1}'), "invalid UTF-8"),
    "byte over": (file_of({}, b"x"), "incomplete metadata, file not fully covered"),
    "cut off": (file_of({"a": entry(0, 4)}, b"123"), "incomplete metadata"),
    "hole in front": (file_of({"a": entry(4, 8)}, FOUR * 2), "invalid offset for tensor `a`"),
    "hole": (file_of({"a": entry(0, 4), "b": entry(8, 12)}, FOUR * 3), "invalid offset for tensor `b`"),
    "same bytes": (file_of({"a": entry(0, 4), "b": entry(0, 4)}, FOUR), "invalid offset for tensor `b`"),
    "overlap": (file_of({"a": entry(0, 8, [2]), "b": entry(4, 8)}, FOUR * 2), "invalid offset for tensor `b`"),
    "backwards": (file_of({"a": entry(4, 0)}, FOUR), "invalid offset"),
    "shape": (file_of({"a": entry(0, 8)}, FOUR * 2), "invalid shape, data type, or offset"),
    "dtype": (file_of({"a": entry(0, 4, dtype="X")}, FOUR), "invalid JSON in header"),
    "dtype of a list": (file_of({"a": entry(0, 4, dtype=["F32"])}, FOUR), "invalid JSON"),
    "negative": (file_of({"a": entry(0, 4, [-1])}, FOUR), "counts"),
    "negative pair": (file_of({"a": entry(0, 4, [-1, -1])}, FOUR), "counts"),
    "float": (file_of({"a": entry(0, 4.0)}, FOUR), "counts"),
    "true": (file_of({"a": entry(0, 4, [True])}, FOUR), "counts"),
    "infinite": (file_of({"a": entry(0, 4, [float("inf")])}, FOUR), "is no number"),
    "overflow": (file_of({"a": entry(0, 4, [2 ** 40, 2 ** 40])}, FOUR), "overflow"),
    "overflow and none": (file_of({"a": entry(0, 0, [2 ** 62, 2 ** 62, 0])}), "overflow"),
    "large": (file_of({"a": entry(0, 2 ** 70)}, FOUR), "counts"),
    "digits": (file_of(b'{"a":' + b"9" * 5000 + b"}"), "invalid JSON"),
    "axes": (file_of({"a": entry(0, 4, [1] * 65)}, FOUR), "overflow"),
    "three offsets": (file_of({"a": {**entry(0, 4), "data_offsets": [0, 2, 4]}}, FOUR), "counts"),
    "no entry": (file_of({"a": 1}), "has a dtype"),
    "part of one": (file_of({"a": {"dtype": "F32"}}), "has a dtype"),
    "half a pair": (file_of(b'{"\\uD800":' + json.dumps(entry(0, 4)).encode() + b"}", FOUR), "invalid JSON in header"),
    "texts without end": (file_of(b'{"' + b'\\"' * 200_000), "invalid JSON in header"),
    "a text that ends in a backslash": (file_of(b'{"' + b'\\"' * 200_000 + b"\\"), "invalid JSON in header"),
    "twice": (file_of(b'{"a":' + json.dumps(entry(0, 4)).encode() + b',"a":' + json.dumps(entry(0, 4)).encode() + b"}",
                      FOUR), "twice"),
    "metadata": (file_of({"__metadata__": {"a": 1}}), "metadata are texts"),
    "metadata list": (file_of({"__metadata__": ["a"]}), "metadata are texts"),
    "deep": (file_of(b'{"a":' + b"[" * 150_000), "invalid JSON"),
    "deeper": (file_of(b'{"a":' + b"[" * 300_000), "more than"),
    "dicts": (file_of(b'{"a":[' + b"{}," * 200_000 + b"{}]}"), "more than"),
    "half bytes": (file_of({"a": entry(0, 1, [1], "F4")}, b"x"), "invalid shape"),
}


@pytest.mark.parametrize("lie", LIES)
def test_headers_that_lie(lie, tmp_path):
    from tests.serialization.test_hostile_files import within
    data, message = LIES[lie]
    (tmp_path / "x").write_bytes(data)
    for read in (lambda: ours.load(data), lambda: ours.load_file(tmp_path / "x"),
                 lambda: ours.safe_open(tmp_path / "x")):
        with within(), pytest.raises(ours.SafetensorError, match=message) as caught:
            read()
        assert len(str(caught.value)) < 500


def test_odd_headers_that_are_right():
    assert (ours.load(file_of(b"{}   ")) == {} and ours.load(file_of({})) == {}
            and list(ours.load(file_of({"a": entry(0, 4, x=1)}, FOUR))) == ["a"])
    assert (list(ours.load(file_of(b'{"\\uD83D\\uDE00":' + json.dumps(entry(0, 4)).encode() + b"}", FOUR)))
            == ["\U0001F600"])
    nested = json.dumps({"__metadata__": {"config": json.dumps([[[{"a": [1]}]]] * 50_000)}})
    assert ours.load(file_of(nested.encode())) == {}
    loaded = ours.load(file_of({"b": entry(1, 5), "a": entry(0, 1, dtype="BOOL"), "e": entry(5, 5, [0, 3])},
                               b"\x07" + struct.pack("<f", 2.5)))
    # not aligned
    assert loaded["a"].tolist() == [True] and loaded["b"].tolist() == [2.5] and loaded["e"].shape == (0, 3)
    with pytest.raises(ours.SafetensorError, match="F4"):
        ours.load(file_of({"a": entry(0, 1, [2], dtype="F4")}, b"x"))


def tied(torch):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    model[1].weight = model[0].weight
    return model


def test_models(theirs, tmp_path):
    import torch
    tg.manual_seed(0)
    model, other, back = tied(tg), tied(torch), tied(tg)
    with pytest.raises(RuntimeError, match="share memory"):
        ours.save_file(model.state_dict(), tmp_path / "x")
    ours.save_model(model, tmp_path / "x")
    assert theirs.load_model(other, tmp_path / "x") == (set(), [])
    theirs.save_model(other, tmp_path / "y")
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()
    assert ours.load_model(back, tmp_path / "y") == (set(), [])
    assert plain(back.state_dict()) == plain(model.state_dict()) == plain(other.state_dict())
    with pytest.raises(RuntimeError) as mine:
        ours.load_model(tg.nn.Linear(3, 3), tmp_path / "x")
    with pytest.raises(RuntimeError) as theirs_said:
        theirs.load_model(torch.nn.Linear(3, 3), tmp_path / "x")
    assert [line.partition(":")[0].split()[:2] for line in str(mine.value).splitlines()] == [
        line.partition(":")[0].split()[:2] for line in str(theirs_said.value).splitlines()]
