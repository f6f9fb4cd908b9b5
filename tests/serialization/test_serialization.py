"""save and load: PyTorch's files both ways, aliasing, places, files of other versions and programs, mapped files."""
import collections
import io
import os
import pickle
import struct
import tarfile
import types
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from support import DEVICE, cpu_only, on_device

import tensorgrad as tg

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage")


def sample(torch):
    """Everything that checkpoints hold."""
    x = torch.arange(6.).reshape(2, 3)
    parameter, tagged = torch.nn.Parameter(torch.ones(2)), torch.ones(1)
    tagged.label = "a"
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    dtypes = [torch.float16, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool,
              torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64]
    return {"x": x, "row": x[1], "turned": x.t(), "steps": torch.arange(9.)[1::3], "parameter": parameter,
            "tagged": tagged,
            "of": {str(d): torch.ones(2, 2, dtype=d) for d in dtypes}, "dtype": torch.float32,
            "device": torch.device("cpu"), "size": x.shape,
            "big": 10 ** 30, "negative": -5, "float": 0.1, "complex": 1 + 2j, "set": {1, 2},
            "counter": collections.Counter("aab"), "bytes": b"ab\xff", "array": bytearray(b"x"), "text": "αβ\n",
            "none": None, "true": True, "tuple": (1, (2, [3, {"k": 4}])),
            "empty": torch.empty(0, 3), "scalar": torch.tensor(3.), "leaf": torch.ones(2, requires_grad=True),
            "ordered": collections.OrderedDict(b=1, a=2), "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2).state_dict()}


def plain(value):
    """The value without the library that it came from."""
    if type(value).__name__ in ("Tensor", "Parameter"):
        return (type(value).__name__, str(value.dtype), tuple(value.shape),
                tuple(value.stride()) if value.numel() else None, value.requires_grad,
                value.detach().cpu().numpy().tolist())
    if isinstance(value, dict):
        return type(value).__name__, [(plain(k), plain(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return str(value) if "torch" in repr(value) or type(value).__name__ in ("device", "dtype") else value


def written(torch, obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("writer, reader", [("tensorgrad", "tensorgrad"), ("torch", "tensorgrad"),
                                            ("tensorgrad", "torch")])
@pytest.mark.parametrize("options", [{}, {"mmap": True}], ids=["read", "mapped"])
def test_checkpoints_cross_over(writer, reader, options, tmp_path):
    a, b = pytest.importorskip(writer), pytest.importorskip(reader)
    b.manual_seed(0)
    a.manual_seed(0)
    obj = sample(a)
    a.save(obj, tmp_path / "file.pt")
    loaded = b.load(tmp_path / "file.pt", **options)
    assert plain(loaded) == plain(obj)
    assert loaded["tagged"].label == "a"
    loaded["row"][0] = 7.0
    assert loaded["x"][1, 0] == 7.0 and loaded["turned"][0, 1] == 7.0          # one block of memory
    assert a.load(tmp_path / "file.pt")["x"][1, 0] == 3.0                      # a mapped file is not written to


def test_bfloat16_crosses_over():
    torch = pytest.importorskip("torch")
    x = tg.tensor([1.5, -2.25], dtype=tg.bfloat16)
    assert torch.load(written(tg, x)).tolist() == [1.5, -2.25]
    assert tg.load(written(torch, torch.tensor([1.5], dtype=torch.bfloat16))).tolist() == [1.5]


def test_files_of_older_versions_are_read():
    torch = pytest.importorskip("torch")
    obj = sample(torch)
    loaded = tg.load(written(torch, obj, _use_new_zipfile_serialization=False))
    for name in ("of", "tagged"):
        obj.pop(name), loaded.pop(name)
    assert plain(loaded) == plain(obj)


def test_whole_modules_cross_over():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(8, 2))
    ours = tg.load(written(torch, theirs), weights_only=False)
    x = np.random.default_rng(0).normal(size=(1, 1, 4, 4)).astype(np.float32)
    np.testing.assert_allclose(ours(tg.from_numpy(x)).detach().numpy(), theirs(torch.from_numpy(x)).detach().numpy(),
                               rtol=1e-5, atol=1e-6)
    back = torch.load(written(tg, ours), weights_only=False)
    np.testing.assert_allclose(back(torch.from_numpy(x)).detach().numpy(), theirs(torch.from_numpy(x)).detach().numpy(),
                               rtol=1e-5, atol=1e-6)


def test_the_archive_is_laid_out_as_pytorchs():
    assert "archive/byteorder" not in zipfile.ZipFile(written(tg, 1, _disable_byteorder_record=True)).namelist()
    names = zipfile.ZipFile(written(tg, {"w": tg.ones(3)})).infolist()
    assert ([i.filename.partition("/")[2] for i in names] == ["data.pkl", ".format_version", ".storage_alignment",
                                                              "byteorder", "data/0", "version",
                                                              ".data/serialization_id"])
    file = written(tg, {"w": tg.ones(3)}).getvalue()
    for entry in names:
        begin = entry.header_offset + 30 + int.from_bytes(file[entry.header_offset + 26:entry.header_offset + 28],
                                                          "little") + int.from_bytes(
            file[entry.header_offset + 28:entry.header_offset + 30], "little")
        assert begin % 64 == 0 and entry.compress_type == zipfile.ZIP_STORED


def test_tensors_of_a_device_come_back_to_it():
    x = on_device(tg.ones(2))
    assert tg.load(written(tg, x)).device == x.device
    assert tg.load(written(tg, x), map_location="cpu").device.type == "cpu"
    assert tg.load(written(tg, x), map_location={str(x.device): "cpu"}).device.type == "cpu"
    seen = []
    assert tg.load(written(tg, x), map_location=lambda storage, place: seen.append(place)
                   or storage.cpu()).device.type == "cpu"
    assert seen == [str(x.device)]


@pytest.mark.skipif(DEVICE != "cpu", reason="about a machine without CUDA")
def test_a_missing_device_is_an_error_that_helps():
    file = written(tg, tg.ones(2))
    with pytest.raises(RuntimeError, match="map_location=torch.device"):
        tg.load(file, map_location="cuda")


# ── a program's own classes, mapped tensors ───────────────────────────────────────────────────────────────────────────


class Point:
    def __init__(self, x):
        self.x = x


def test_a_programs_own_classes_are_allowed_one_by_one():
    file = written(tg, Point(tg.ones(2)))
    with pytest.raises(pickle.UnpicklingError, match="Point"):
        tg.load(file)
    file.seek(0)
    with tg.serialization.safe_globals([Point]):
        assert Point in tg.serialization.get_safe_globals()
        assert tg.load(file).x.tolist() == [1.0, 1.0]
    file.seek(0)
    assert tg.load(file, weights_only=False).x.tolist() == [1.0, 1.0]
    assert tg.serialization.get_safe_globals() == []


@cpu_only
def test_a_mapped_tensor_is_read_when_it_is_used(tmp_path):
    tg.save({"a": tg.ones(1 << 20), "b": tg.zeros(4)}, tmp_path / "big.pt")
    loaded = tg.load(tmp_path / "big.pt", mmap=True)
    assert loaded["b"].tolist() == [0.0] * 4 and not loaded["a"].array.flags.owndata
    loaded["a"][0] = 5.0
    assert loaded["a"][:2].tolist() == [5.0, 1.0]


# ── names of torch.serialization ──────────────────────────────────────────────────────────────────────────────────────


def test_the_names_of_pytorch_are_there():
    torch = pytest.importorskip("torch")
    absent = {"mkdtemp", "validate_hpu_device", "storage_to_tensor_type"}
    assert set(torch.serialization.__all__) - absent <= set(dir(tg.serialization))


def test_places_can_be_registered():
    seen = []
    tg.serialization.register_package(5, lambda storage: "shelf" if seen else None,
                                      lambda storage, place: storage if place == "shelf" else None)
    try:
        seen.append(1)
        file = written(tg, tg.ones(2))
        assert b"shelf" in file.getvalue() and tg.load(file).tolist() == [1.0, 1.0]
        seen.clear()
        assert tg.serialization.location_tag(tg.ones(2).untyped_storage()) == "cpu"
    finally:
        from tensorgrad.serialization import _map_location
        del _map_location.registry[0]
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location of torch.storage.UntypedStorage "
                                           r"\(tagged with shelf\)"):
        tg.load(file)


def test_settings_of_reading(tmp_path):
    s, path = tg.serialization, tmp_path / "x.pt"
    tg.save(tg.arange(1000.), path)
    with s.set_default_mmap_options(s.get_default_mmap_options()):
        tg.load(path, mmap=True).fill_(1.0)
    assert tg.load(path)[5] == 5.0
    with s.set_default_mmap_options(1):
        tg.load(path, mmap=True).fill_(1.0)
    assert s.get_default_mmap_options() == 2
    with pytest.raises(RuntimeError, match="checksum"):
        tg.load(path)
    s.set_crc32_options(False)
    try:
        assert tg.load(path)[5] == 1.0
    finally:
        s.set_crc32_options(True)
    with s.skip_data():
        assert tg.load(path).tolist() == [0.0] * 1000
        assert tg.load(written(tg, tg.ones(2))).tolist() == [0.0] * 2
        with pytest.raises(RuntimeError, match="Cannot serialize nested tensor under skip_data"):
            written(tg, tg.nested.nested_tensor([tg.ones(2)]))
    with tg._subclasses.FakeTensorMode():
        fake = tg.randn(2, 3)
    with s.skip_data(materialize_fake_tensors=True):
        assert s._serialization_tls.skip_data and s._serialization_tls.materialize_fake_tensors
        file = written(tg, [fake, fake[1], fake.T, tg.ones(2)])
    loaded = tg.load(file)
    assert loaded[2].shape == (3, 2) and loaded[3].tolist() == [0, 0]
    loaded[1][2] = 5.0
    assert loaded[0].tolist() == [[0, 0, 0], [0, 0, 5]] and loaded[2][2, 1] == 5
    with pytest.raises(TypeError, match="set_default_load_endianness"):
        s.set_default_load_endianness("big")
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE"):
        s.set_default_mmap_options(7)


def reordered(torch, obj, order, record=True):
    """A file as a machine with this order of bytes writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(written(torch, obj)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("byteorder"):
                if not record:
                    continue
                data = order.encode()
            if "/data/" in name and order == "big":
                data = np.frombuffer(data, np.float32).byteswap().tobytes()
            target.writestr(name, data)
    out.seek(0)
    return out


def test_the_other_order_of_bytes():
    x = tg.arange(4.) + 1j * tg.ones(4)
    for value in (tg.arange(4.), x):
        assert tg.load(reordered(tg, value, "big")).tolist() == value.tolist()
    tg.serialization.set_default_load_endianness(tg.serialization.LoadEndianness.BIG)
    try:
        assert tg.load(reordered(tg, x, "big", record=False)).tolist() == x.tolist()
        assert tg.load(reordered(tg, x, "little")).tolist() == x.tolist()
    finally:
        tg.serialization.set_default_load_endianness(None)
    with pytest.raises(pickle.UnpicklingError, match="order of bytes"):
        tg.load(reordered(tg, tg.ones(4, dtype=tg.uint16), "big"))
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        tg.load(reordered(tg, x, "middle"))


def test_names_that_a_file_would_run():
    names = tg.serialization.get_unsafe_globals_in_checkpoint(written(tg, {"p": Point(tg.ones(1)), "x": tg.ones(1)}))
    assert [name.rpartition(".")[2] for name in names] == ["Point"] and "copy_reg" not in names
    with tg.serialization.safe_globals([Point]):
        assert tg.serialization.get_unsafe_globals_in_checkpoint(written(tg, Point(1))) == []
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        tg.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"abc"))


# ── more that crosses over ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("writer, reader", [("tensorgrad", "torch"), ("torch", "tensorgrad"),
                                            ("tensorgrad", "tensorgrad")])
def test_files_before_1_6_cross_over(writer, reader):
    a, b = pytest.importorskip(writer), pytest.importorskip(reader)
    x = a.arange(6.).reshape(2, 3)
    obj = {"x": x, "turned": x.t(), "n": a.tensor([True, False]), "empty": a.empty(0),
           "layer": a.nn.Linear(2, 2).state_dict(), "big": 2 ** 70}
    loaded = b.load(written(a, obj, _use_new_zipfile_serialization=False))
    assert plain(loaded) == plain(obj)
    loaded["x"][0, 1] = 9.0
    assert loaded["turned"][1, 0] == 9.0


@pytest.mark.parametrize("writer, reader", [("tensorgrad", "torch"), ("torch", "tensorgrad")])
def test_layouts_metas_and_storages_cross_over(writer, reader):
    a, b = pytest.importorskip(writer), pytest.importorskip(reader)
    x = a.randn(2, 3, 4, 5).contiguous(memory_format=a.channels_last)
    every = a.from_numpy(np.arange(10.)[::3])
    base = a.zeros(10)
    obj = {"last": x, "every": every, "same": base.data, "part": base[3:], "meta": a.empty(2, 3, device="meta"),
           "bytes": a.UntypedStorage([1, 2, 3]),
           "wide": base.view(2, 5).unsqueeze(0).expand(3, 2, 5)}
    loaded = b.load(written(a, obj))
    for name in ("last", "every", "part", "wide"):
        assert loaded[name].stride() == obj[name].stride() and loaded[name].tolist() == obj[name].tolist()
    assert loaded["meta"].is_meta and tuple(loaded["meta"].shape) == (2, 3)
    assert type(loaded["bytes"]) is b.TypedStorage and loaded["bytes"].dtype is b.uint8
    loaded["part"][0] = 4.0
    assert loaded["same"][3] == 4.0 and loaded["wide"][2, 0, 3] == 4.0
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as "
                                           "different types"):
        a.save([base, base.view(a.int32)], io.BytesIO())


def networks(torch):
    nn = torch.nn
    yield nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)), (2, 1, 6,
                                                                                                            6), torch.optim.SGD, {"momentum": 0.9}  # noqa: E501
    yield nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5,
                                                                                8), torch.optim.AdamW, {"amsgrad": True,
                                                                                                        "eps": 1e-2}
    yield nn.LSTM(3, 4, 2, bidirectional=True), (5, 2, 3), torch.optim.RMSprop, {"centered": True}
    yield nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), nn.GroupNorm(2, 4), nn.PReLU()), (3, 4), torch.optim.Adagrad, {}  # noqa: E501


@pytest.mark.parametrize("which", range(4))
def test_training_goes_on_in_the_other_library(which):
    torch = pytest.importorskip("torch")
    x = None

    def step(library, model, optimizer):
        optimizer.zero_grad()
        out = model(library.from_numpy(x))
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()
        optimizer.step()
    state = {}
    for library in (torch, tg):
        library.manual_seed(3)
        model, shape, kind, options = list(networks(library))[which]
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        optimizer = kind(model.parameters(), lr=0.05, **options)
        if library is tg:
            loaded = tg.load(state["file"])
            assert str(model.load_state_dict(loaded["model"])) == "<All keys matched successfully>"
            optimizer.load_state_dict(loaded["optimizer"])
        else:
            step(library, model, optimizer)
            state["file"] = written(torch, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        step(library, model, optimizer)
        state[library] = [p.detach().numpy() for p in model.parameters()]
    for ours, theirs in zip(state[tg], state[torch]):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-5)


def text(value):
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def tar_file(parts=(), storage=(7, 6), tensor=(2, 3), stride=(3, 1), offset=0, name="12"):
    """A file in the tar format: a float storage, a tensor in it, and an OrderedDict with it under 'w'."""
    key, count = storage
    number = lambda n: pickle.dumps(n, 2)
    members = {
        "storages": number(1) + b"\x80\x02(K" + bytes([key]) + text("cpu") + b"ctorch\nFloatStorage\nt."
        + struct.pack("<q", count)
        + np.arange(6, dtype=np.float32).tobytes() + number(list(parts)),
        "tensors": number(1) + b"\x80\x02(K\x0cK" + bytes([parts[0][0] if parts else key]) + b"ctorch\nFloatTensor\nt."
        + struct.pack("<i4x", len(tensor))
        + struct.pack(f"<{len(tensor) + len(stride) + 1}q", *tensor, *stride, offset),
        "pickle": b"\x80\x02ccollections\nOrderedDict\n)R" + text("w") + text(name) + b"Qs" + text("epoch")
        + b"K\x05s."}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for member, data in members.items():
            info = tarfile.TarInfo(member)
            info.size, info.mtime = len(data), 1.5
            tar.addfile(info, io.BytesIO(data))
    out.seek(0)
    return out


# PyTorch's, on 3.12 and 3.13
@pytest.mark.filterwarnings("ignore:Python 3.14 will, by default, filter:DeprecationWarning")
def test_the_oldest_files_are_read(tmp_path):
    def theirs(file):
        (tmp_path / "old.pt").write_bytes(file.getvalue())
        return torch.load(tmp_path / "old.pt", weights_only=False)
    for options in ({}, {"parts": [(9, 7, 1, 4)], "tensor": (2,), "stride": (2,), "offset": 1}):
        readers = [lambda f: tg.load(f), lambda f: tg.load(f, weights_only=False)]
        try:
            import torch
        except ImportError:
            torch = None
        else:
            readers.append(theirs)
        first, *others = (read(tar_file(**options)) for read in readers)
        assert (type(first) is collections.OrderedDict and first["epoch"] == 5
                and first["w"].tolist() in ([[0, 1, 2], [3, 4, 5]], [2, 4]))
        assert all(plain(other) == plain(first) for other in others)


@pytest.mark.parametrize("lie", [{"storage": (7, 7)}, {"storage": (7, -1)}, {"storage": (7, 2 ** 60)},
                                 {"tensor": (2, 4)}, {"offset": 1}, {"offset": -1}, {"stride": (-1, 1)}, {"name": "13"},
                                 {"name": "x"}, {"parts": [(9, 7, 4, 4)]},
                                 {"parts": [(9, 8, 0, 1)]},
                                 {"parts": [(9, 7, -1, 2)]}, {"tensor": (2 ** 40, 3)}])
def test_the_oldest_files_may_lie(lie):
    with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)):
        tg.load(tar_file(**lie))


def zipped(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("_", "."), data)
    return file.getvalue()


@pytest.mark.parametrize("data, told", [
    (b"GGUF" + bytes(60), "a GGUF model"), (b"\x89HDF\r\n\x1a\n" + bytes(60), "HDF5"),
    (b"\x93NUMPY" + bytes(60), r"torch.from_numpy\(numpy.load"), (b"\x1f\x8b\x08" + bytes(60), "gzip"),
    (b" <!DOCTYPE html><html>", "a web page"),
    (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    (struct.pack("<Q", 2) + b"{}", "safetensors format"), (b"\x08\x07\x12\x07pytorch" + bytes(40), "a model of ONNX"),
    (b'{"a": 1}', "JSON"), (b"hello, world", "is text"), (b"\4\0\0\0\1\0\0\0\3\0\0\0V 1", "legacy.load_lua"),
    (zipped(a_npy=b"", b_npy=b""), r"\(\.npz\)"),
    (zipped(a_txt=b"x"), r"a zip archive of other files \('a.txt'\)")])
def test_files_of_others_are_named(data, told, tmp_path):
    for file in (io.BytesIO(data), str(tmp_path / "model.pt")):
        (tmp_path / "model.pt").write_bytes(data)
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError), match=f"\nThe file .*{told}"):
            tg.load(file)


def test_a_damaged_file_of_ours_is_not_said_to_be_anothers(tmp_path):
    tg.save({"a": tg.ones(3)}, tmp_path / "a.pt")
    data = (tmp_path / "a.pt").read_bytes()
    with pytest.raises(RuntimeError) as caught:
        tg.load(io.BytesIO(data[:-30]))
    assert "The file is" not in str(caught.value)
    with pytest.warns(UserWarning, match="tensorgrad.utils.safetensors.save_file"):
        tg.save({"a": tg.ones(3)}, tmp_path / "a.safetensors")


# ── mapped files ──────────────────────────────────────────────────────────────────────────────────────────────────────


def zip_of(entries):
    """The bytes of an archive written by hand, in pieces: (bytes, or a number of zeros)."""
    pieces, directory, at = [], b"", 0
    for name, data in entries:
        size, checksum = (data, 0) if isinstance(data, int) else (len(data), zlib.crc32(data))
        common = struct.pack("<HHHHHLLLH", 10, 0, 0, 0, 33, checksum, size, size, len(name))
        padding = -(at + 34 + len(name)) % 64
        header = (b"PK\3\4" + common + struct.pack("<H", padding + 4) + name.encode() + b"FB"
                  + struct.pack("<H", padding) + b"Z" * padding)
        directory += b"PK\1\2" + b"\x0a\0" + common + b"\0\0" + struct.pack("<HHHLL", 0, 0, 0, 0, at) + name.encode()
        pieces += [header, data]
        at += len(header) + size
    return [*pieces, directory + b"PK\5\6" + struct.pack("<HHHHLLH", 0, 0, len(entries), len(entries), len(directory),
                                                         at, 0)]


@cpu_only
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="measures resident memory by /proc")
def test_a_mapped_file_is_read_where_it_is_used(tmp_path):
    count = 1 << 29
    ids = b"".join(b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + b"J"
                   + n.to_bytes(4, "little") + b"tQ" + name
                   for key, n, name in (("0", count, b"q\0"), ("1", 4, b"q\1")))
    tensor = lambda memo, n: b"ctorch._utils\n_rebuild_tensor_v2\n(h" + memo + b"K\0J" + n.to_bytes(4, "little") + b"\x85K\x01\x85\x89NtR"  # noqa: E501
    data = b"\x80\x02" + ids + b"00}" + text("a") + tensor(b"\0", count) + b"s" + text("b") + tensor(b"\1", 4) + b"s."
    with open(tmp_path / "sparse.pt", "wb") as file:
        for piece in zip_of([("x/data.pkl", data), ("x/data/0", 4 * count),
                             ("x/data/1", np.ones(4, np.float32).tobytes()), ("x/version", b"3")]):
            file.seek(piece, 1) if isinstance(piece, int) else file.write(piece)
    resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    before = resident()
    loaded = tg.load(tmp_path / "sparse.pt", mmap=True)
    assert loaded["b"].tolist() == [1.0] * 4 and loaded["a"].numel() == count and loaded["a"][count - 1] == 0
    assert resident() - before < 50e6


# ── the same in both libraries ────────────────────────────────────────────────────────────────────────────────────────

Pair = collections.namedtuple("Pair", "a b")


class Slotted:
    __slots__ = ("a",)


class Mine(dict):
    """A class of the program's own."""


class NoSeek(io.RawIOBase):
    def readable(self):
        return True


def back(torch, obj, reading=None, **options):
    return torch.load(written(torch, obj, **options), **reading or {})


def marked(torch):
    x = torch.ones(2)
    x.label = [1, torch.zeros(1)]
    return x


def aliases(torch):
    a = torch.arange(6.)
    w = torch.nn.Parameter(torch.ones(2))
    x, y, z, again, p, q, r = back(torch, [a, a[2:], a.view(2, 3), a, w, w, w.data])
    y[0], r[0] = 9, 5
    return x, z, x is again, p is q, p, type(p).__name__, p.is_leaf, p.grad


def hooked(torch):
    x, w = torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2))
    with pytest.warns(UserWarning, match="backward hook .* on tensor will not be serialized"):
        x.register_hook(print)
        written(torch, x)
    w.register_hook(print)
    return back(torch, w).requires_grad


def allowed(torch, obj, *classes):
    with torch.serialization.safe_globals(classes):
        return back(torch, obj), torch.serialization.get_safe_globals() == list(classes) or len(classes) > 1


def slots(torch):
    x = Slotted()
    x.a = torch.ones(1)
    return allowed(torch, x, Slotted)[0].a


def environment(torch, **settings):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(f"TORCH_FORCE_{name}WEIGHTS_ONLY_LOAD", value)
        return back(torch, Pair(1, 2))


def numpy_allowed(torch):
    numbers = np._core.multiarray
    return repr(allowed(torch, [np.arange(2.), np.float32(3)], numbers._reconstruct, np.ndarray, np.dtype,
                        np.dtypes.Float64DType, numbers.scalar,
                        np.dtypes.Float32DType)[0])


def in_a_row(torch):
    one = written(torch, torch.ones(1), _use_new_zipfile_serialization=False).getvalue()
    file = io.BytesIO(one * 2)
    return torch.load(file), torch.load(file)


class Doubling(pickle._Pickler):
    """A pickler that writes integers doubled."""

    dispatch = dict(pickle._Pickler.dispatch)
    dispatch[int] = lambda self, n: pickle._Pickler.save_long(self, 2 * n)


def other_pickler(torch):
    module = types.SimpleNamespace(Pickler=Doubling, Unpickler=pickle.Unpickler, HIGHEST_PROTOCOL=5, __name__="other")
    return [back(torch, {"a": [1, 2]}, {"weights_only": only}, pickle_module=module) for only in (True, False)]


def metas(torch):
    file = written(torch, torch.arange(4.)).getvalue()
    return [torch.load(io.BytesIO(file), map_location=place).device.type
            for place in ("meta", torch.device("meta"), {"cpu": "meta"}, {"cuda:0": "cpu"},
                            lambda storage, place: storage,
                          lambda storage, place: None)]


def the_file(torch):
    return written(torch, torch.ones(2)).getvalue()


SAME = [
    marked, aliases, hooked, slots, numpy_allowed, in_a_row, other_pickler, metas,
    "back(torch, Pair(1, torch.ones(1)), {'weights_only': False})",
    "back(torch, Pair(1, 2))", "back(torch, np.arange(3.))", "back(torch, np.float32(3))",
    "back(torch, frozenset([1]))", "back(torch, slice(1, 2))", "back(torch, Mine(a=1))",
    "back(torch, collections.deque([1]))", "back(torch, torch.Generator())",
    "back(torch, torch.nn.Linear(1, 1))", "back(torch, len)",
    "back(torch, [torch.strided, torch.sparse_coo, torch.float16, torch.FloatTensor, torch.Size([1])])",
    "back(torch, torch.nn.Buffer(torch.ones(2)))",
    "isinstance(back(torch, torch.nn.Buffer(torch.ones(2))), torch.nn.Buffer)",
    "back(torch, marked(torch), {'weights_only': False}).label",
    "back(torch, torch.Generator().manual_seed(3), {'weights_only': False}).initial_seed()",
    "back(torch, torch.nn.LazyLinear(2).state_dict())",
    "allowed(torch, Pair(1, 2), Pair)", "allowed(torch, Mine(a=1), Mine)", "allowed(torch, frozenset([1]), frozenset)",
    "allowed(torch, slice(1, 2), slice)",
    "allowed(torch, collections.defaultdict(list, a=[1]), collections.defaultdict, list)",
    "allowed(torch, 1, os.getcwd)",
    "allowed(torch, torch.Generator().manual_seed(3), torch.Generator)[0].initial_seed()",
    "allowed(torch, Pair(1, 2), (Pair, __name__ + '.Pair'))",
    "allowed(torch, Pair(1, 2), (Pair, 'a', 'b'))", "allowed(torch, Pair(1, 2), (Pair, 1))",
    "environment(torch, NO_='1')", "environment(torch, **{'': '1'})", "environment(torch, NO_='y', **{'': 'true'})",
    "environment(torch, NO_='0')",
    "back(torch, Pair(1, 2), {'weights_only': True, 'encoding': 'ascii'})",
    "back(torch, 1, {'pickle_module': pickle, 'weights_only': True})",
    "back(torch, 1, {'pickle_module': pickle})",
    "back(torch, bytearray(b'abc'), {'weights_only': False}, pickle_protocol=5)",
    "back(torch, 1, {'foo': 1, 'weights_only': False})", "torch.load(NoSeek())", "torch.load(3)",
    "torch.load(None)", "torch.load(io.BytesIO(the_file(torch)), map_location=['cpu'])",
    "torch.load(io.BytesIO(the_file(torch)), map_location=0)",
    "torch.load(io.BytesIO(the_file(torch)), map_location=lambda s, l: {}['key'])",
    "torch.load(io.BytesIO(the_file(torch)), map_location=lambda s, l: 1 / 0)",
    "torch.load(io.BytesIO(the_file(torch)), mmap=True)", "torch.load('no such file')", "torch.save(1, 3)",
    "torch.save(lambda: 1, io.BytesIO())", "torch.save(1, io.BytesIO(), pickle_protocol=9)",
    "torch.serialization.set_default_mmap_options(5)",
    "torch.serialization.set_default_load_endianness(5)",
    "[getattr(torch.utils.serialization.config.load, n) for n in ('mmap', 'endianness', 'mmap_flags', "
    "'calculate_storage_offsets')]",
    "[getattr(torch.utils.serialization.config.save, n) for n in ('compute_crc32', 'use_pinned_memory_for_d2h', "
    "'storage_alignment')]",
    "torch.ones(2, 3).t().storage()", "torch.ones(2)[1:]._typed_storage().size()",
    "torch.ones(2).storage().untyped().nbytes()", "torch.ones(2).storage_type().__name__", "torch.ones(2).storage()[1]",
    "torch.UntypedStorage([1, 2]).float()",
    "back(torch, torch.ones(2).storage())",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(DEVICE != "cpu", reason="about the default device")
@pytest.mark.parametrize("what", SAME, ids=lambda what: getattr(what, "__name__", what))
def test_the_same_in_both_libraries(what):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.utils.serialization")

    def said(library):
        library.serialization.clear_safe_globals()
        try:
            found = eval(what, globals() | {"torch": library}) if isinstance(what, str) else what(library)
            return repr(plain(found)).replace("tensorgrad", "torch")
        except Exception as error:
            lines = str(error).splitlines()
            return type(error), lines[0], [line for line in lines
                                           if "WeightsUnpickler error: Unsupported global" in line]
        finally:
            library.serialization.clear_safe_globals()
    assert said(tg) == said(torch)


@pytest.mark.parametrize("writer, reader", [("tensorgrad", "torch"), ("torch", "tensorgrad"),
                                            ("tensorgrad", "tensorgrad")])
def test_conjugates_generators_and_recurrent_modules_cross_over(writer, reader):
    a, b = pytest.importorskip(writer), pytest.importorskip(reader)
    x = a.tensor([1 + 2j, 3 - 1j])
    loaded = b.load(written(a, [x.conj(), x.clone().conj().imag, a.Generator().manual_seed(3), a.nn.LSTM(2, 3)]),
                    weights_only=False)
    assert loaded[0].tolist() == [1 - 2j, 3 + 1j] and loaded[1].tolist() == [-2.0, 1.0]
    old = b.load(written(a, [x.conj(), x, x.conj()[1:]], _use_new_zipfile_serialization=False))
    assert [part.tolist() for part in old] == [[1 - 2j, 3 + 1j], [1 + 2j, 3 - 1j], [3 + 1j]]
    assert b.rand(3, generator=loaded[2]).tolist() == a.rand(3, generator=a.Generator().manual_seed(3)).tolist()
    assert loaded[3](b.ones(4, 2))[0].shape == (4, 3) and len(list(loaded[3].parameters())) == 4


class AsOurs(pickle.Unpickler):
    """Reads a plain pickle as it is read where this package is `torch`."""

    def find_class(self, module, name):
        return super().find_class("tensorgrad" + module[5:] if module.split(".")[0] == "torch" else module, name)


def test_plain_pickles_of_pytorch_are_read():
    torch = pytest.importorskip("torch")
    x = torch.arange(6.).reshape(2, 3)
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.label = "a"
    obj = [x.t(), x[1], x.half(), x.bfloat16().requires_grad_(), x.bool(), torch.tensor([1 + 2j]).conj(), parameter,
           x.to(torch.uint16), torch.float32, x.shape, torch.device("cpu"), torch.contiguous_format, torch.strided]
    found = AsOurs(io.BytesIO(pickle.dumps([*obj, x.to_sparse(), x.to("meta"), torch.nn.Linear(3, 2)]))).load()
    bits = found[3].float()
    *found, sparse, meta, linear = found[:3] + found[4:]
    assert bits.tolist() == x.tolist() and bits.requires_grad
    obj[5] = obj[5].resolve_conj()
    assert plain(found) == plain(obj[:3] + obj[4:]) and found[5].label == "a"
    assert sparse.to_dense().tolist() == x.tolist() and meta.shape == (2, 3)
    assert isinstance(linear, tg.nn.Linear) and linear(tg.ones(3)).shape == (2,)


def test_settings_of_writing_as_attributes(tmp_path):
    from tensorgrad.utils.serialization import config
    try:
        config.save.storage_alignment, config.load.mmap = 4096, True
        tg.save(tg.arange(3.), tmp_path / "x.pt")
        assert (not tg.load(tmp_path / "x.pt").array.flags.owndata
                and zipfile.ZipFile(tmp_path / "x.pt").read("x/.storage_alignment") == b"4096")
    finally:
        config.save.storage_alignment, config.load.mmap = 64, False
    with pytest.raises(AttributeError, match="no setting 'nap'"):
        config.load.nap = True


def test_records_that_are_not_aligned_are_read_into_memory(tmp_path):
    with zipfile.ZipFile(written(tg, tg.arange(3.))) as source, zipfile.ZipFile(tmp_path / "x.pt", "w") as target:
        for k, name in enumerate(source.namelist()):
            target.writestr(zipfile.ZipInfo(name + "x" * (k == 1)), source.read(name))
    x = tg.load(tmp_path / "x.pt", mmap=True)
    assert x.tolist() == [0, 1, 2] and x.data_ptr() % 4 == 0


@pytest.mark.parametrize("place, error", [({}, "dict"), (lambda storage, place: storage, "callable"), ("cpu", None)])
def test_a_path_may_be_that_of_safetensors(place, error, tmp_path):
    from tensorgrad.utils import safetensors
    safetensors.save_file({"a": tg.ones(2)}, tmp_path / "x.safetensors")
    if error is None:
        assert tg.load(tmp_path / "x.safetensors", map_location=place)["a"].tolist() == [1, 1]
    else:
        with pytest.raises(RuntimeError, match=f"{error} map_location is not supported"):
            tg.load(tmp_path / "x.safetensors", map_location=place)
