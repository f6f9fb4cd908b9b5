"""save and load: PyTorch's files both ways, aliasing, places, and files that lie or want to run code."""
import collections
import io
import os
import pickle
import subprocess
import sys
import zipfile

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
    dtypes = [torch.float16, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128,
              torch.uint16, torch.uint32, torch.uint64]
    return {"x": x, "row": x[1], "turned": x.t(), "steps": torch.arange(9.)[1::3], "parameter": parameter, "tagged": tagged,
            "of": {str(d): torch.ones(2, 2, dtype=d) for d in dtypes}, "dtype": torch.float32, "device": torch.device("cpu"), "size": x.shape,
            "big": 10 ** 30, "negative": -5, "float": 0.1, "complex": 1 + 2j, "set": {1, 2}, "counter": collections.Counter("aab"), "bytes": b"ab\xff",
            "array": bytearray(b"x"), "text": "αβ\n", "none": None, "true": True, "tuple": (1, (2, [3, {"k": 4}])), "empty": torch.empty(0, 3),
            "scalar": torch.tensor(3.), "leaf": torch.ones(2, requires_grad=True), "ordered": collections.OrderedDict(b=1, a=2),
            "model": model.state_dict(), "optimizer": optimizer.state_dict(),
            "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2).state_dict()}


def plain(value):
    """The value without the library that it came from."""
    if type(value).__name__ in ("Tensor", "Parameter"):
        return (type(value).__name__, str(value.dtype), tuple(value.shape), tuple(value.stride()) if value.numel() else None, value.requires_grad,
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


@pytest.mark.parametrize("writer, reader", [("tensorgrad", "tensorgrad"), ("torch", "tensorgrad"), ("tensorgrad", "torch")])
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
    pytest.importorskip("ml_dtypes")
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
    np.testing.assert_allclose(ours(tg.from_numpy(x)).detach().numpy(), theirs(torch.from_numpy(x)).detach().numpy(), rtol=1e-5, atol=1e-6)
    back = torch.load(written(tg, ours), weights_only=False)
    np.testing.assert_allclose(back(torch.from_numpy(x)).detach().numpy(), theirs(torch.from_numpy(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_the_archive_is_laid_out_as_pytorchs():
    names = zipfile.ZipFile(written(tg, {"w": tg.ones(3)})).infolist()
    assert [i.filename.partition("/")[2] for i in names] == ["data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "version",
                                                             ".data/serialization_id"]
    file = written(tg, {"w": tg.ones(3)}).getvalue()
    for entry in names:
        begin = entry.header_offset + 30 + int.from_bytes(file[entry.header_offset + 26:entry.header_offset + 28], "little") + int.from_bytes(
            file[entry.header_offset + 28:entry.header_offset + 30], "little")
        assert begin % 64 == 0 and entry.compress_type == zipfile.ZIP_STORED


def test_tensors_of_a_device_come_back_to_it():
    x = on_device(tg.ones(2))
    assert tg.load(written(tg, x)).device == x.device
    assert tg.load(written(tg, x), map_location="cpu").device.type == "cpu"
    assert tg.load(written(tg, x), map_location={str(x.device): "cpu"}).device.type == "cpu"
    seen = []
    assert tg.load(written(tg, x), map_location=lambda storage, place: seen.append(place) or storage.cpu()).device.type == "cpu"
    assert seen == [str(x.device)]


@pytest.mark.skipif(DEVICE != "cpu", reason="about a machine without CUDA")
def test_a_missing_device_is_an_error_that_helps():
    file = written(tg, tg.ones(2))
    with pytest.raises(RuntimeError, match="map_location=torch.device"):
        tg.load(file, map_location="cuda")


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.pt"
    tg.save(tg.ones(1), path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        tg.save({"x": tg.ones(2), "f": lambda: 1}, path)
    assert tg.load(path).tolist() == [1.0] and os.listdir(tmp_path) == ["file.pt"]
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        tg.save(1, tmp_path / "no" / "file.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        tg.save(1, 3)


def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "file.pt"
    tg.save(tg.zeros(1), path)
    program = f"import tensorgrad as tg\nx = tg.ones(300_000)\nprint('go', flush=True)\nwhile True: tg.save(x, {str(path)!r})"
    for pause in (0.0, 0.01, 0.03):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            process.wait(pause)
        except subprocess.TimeoutExpired:
            pass
        process.kill()
        process.wait()
        process.stdout.close()
        assert tg.load(path).numel() in (1, 300_000)


# ── reading what is not right ─────────────────────────────────────────────────────────────────────────────────────────


def archive(data, storages=(), change=None, name="a"):
    """A file with this pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr(f"{name}/data.pkl", data)
        for key, content in enumerate(storages):
            z.writestr(f"{name}/data/{key}", content)
        z.writestr(f"{name}/version", "3\n")
        if change:
            change(z)
    file.seek(0)
    return file


def calling(module, name, arguments=")"):
    """The pickle of a call."""
    return f"\x80\x02c{module}\n{name}\n{arguments}R.".encode("latin1")


GLOBALS = [name.split(":") for name in """
    os:system posix:system subprocess:Popen builtins:eval builtins:exec builtins:getattr builtins:open builtins:__import__
    __builtin__:eval importlib:import_module runpy:run_path pickle:loads torch:load torch.serialization:load torch.hub:load
    torch._utils:_import_dotted_name torch.jit:load operator:attrgetter functools:partial functools:reduce types:FunctionType
    types:CodeType socket:socket webbrowser:open shutil:rmtree ctypes:CDLL code:interact pty:spawn sys:exit numpy:load
    numpy.core.multiarray:_reconstruct tensorgrad:load tensorgrad.serialization:load collections:defaultdict collections:namedtuple
    copyreg:_reconstructor torch.nn.modules.linear:Linear torch.nn:Module torch:tensor torch:Tensor torch:FloatStorage torch:float32
    torch.nn.parameter:UninitializedParameter builtins:object builtins:type builtins:super builtins:list asyncio:run
    multiprocessing:Process threading:Thread logging.config:dictConfig email:message zipfile:ZipFile tempfile:mkdtemp
""".split()]


@pytest.mark.parametrize("module, name", GLOBALS)
def test_names_are_refused_and_never_imported(module, name):
    file, seen = archive(calling(module, name)), []
    watching = [True]

    def watch(event, arguments):
        if watching[0] and event in ("import", "os.system", "subprocess.Popen", "exec", "open", "socket.connect", "compile"):
            seen.append((event, arguments[0]))
    sys.addaudithook(watch)
    with pytest.raises(pickle.UnpicklingError) as caught:
        tg.load(file)
    watching[0] = False
    assert name in str(caught.value) or "unsupported function" in str(caught.value)
    assert not seen


HOSTILE = {
    "state of a function": b"\x80\x02c_codecs\nencode\n}b.", "state of a list": b"\x80\x02]}b.", "append to a dict": b"\x80\x02}K\x01a.",
    "items of a list": b"\x80\x02]K\x01K\x02s.",
    "items of a tensor class": b"\x80\x02ctorch\nTensor\nK\x01K\x02s.", "no arguments": b"\x80\x02c_codecs\nencode\nNR.",
    "an unknown opcode": b"\x80\x02P.",
    "an instance": b"\x80\x02(ios\nsystem\n.", "an object": b"\x80\x02(cos\nsystem\no.", "an extension": b"\x80\x02\x82\x01.",
    "no end": b"\x80\x02K\x01", "an empty stack": b"\x80\x02.", "an unknown memo": b"\x80\x02h\x05.", "a long number": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "a long text": b"\x80\x02X\xff\xff\xff\xffabc.", "another protocol": b"\x80\x09N.", "a persistent number": b"\x80\x02K\x01Q.",
    "a persistent path":
        b"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x05\x00\x00\x00../..X\x03\x00\x00\x00cpuK\x01tQ.",
    "a codec": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x06\x00\x00\x00base64\x86R.",
    "a new tensor": b"\x80\x02ctorch\nTensor\n)\x81.",
    "a set of dunder": b"\x80\x02ccollections\nOrderedDict\n)R}X\x09\x00\x00\x00__class__Nsb.", "an unhashable key": b"\x80\x02}]K\x01s.",
    "an odd dict": b"\x80\x02(K\x01d.", "a mark too few": b"\x80\x02]e."}


@pytest.mark.parametrize("case", HOSTILE)
def test_malformed_pickles_are_clean_errors(case):
    with pytest.raises((pickle.UnpicklingError, EOFError, RuntimeError)):
        tg.load(archive(HOSTILE[case]))


def tensor_pickle(offset, size, stride, count=6):
    def numbers(values):
        return b"(" + b"".join(b"\x8a\x09" + int(v).to_bytes(9, "little", signed=True) for v in values) + b"t"
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK"
            + bytes([count]) + b"tQ" + numbers([offset])[1:-1] + numbers(size) + numbers(stride) + b"\x89NtR.")


def test_no_view_reaches_beyond_its_storage():
    content, generator = np.arange(6, dtype=np.float32).tobytes(), np.random.default_rng(0)
    right = 0
    for _ in range(600):
        ndim = int(generator.integers(0, 4))
        bound = int(generator.choice([2, 4, 9, 2 ** 33, 2 ** 62]))
        size, stride = ([int(n) for n in generator.integers(-1, bound, ndim)] for _ in range(2))
        offset = int(generator.integers(-1, 9))
        last = offset + sum((n - 1) * s for n, s in zip(size, stride))
        fits = offset >= 0 and min([*size, *stride, 0]) >= 0 and (last < 6 if all(size) else offset <= 6)
        try:
            loaded = tg.load(archive(tensor_pickle(offset, size, stride), [content]))
        except pickle.UnpicklingError:
            assert not fits
        else:
            right += 1
            assert fits and list(loaded.shape) == size and (not all(size) or float(loaded.sum()) >= 0)
    assert right > 50


@pytest.mark.parametrize("lie", ["deflated", "twice", "upwards", "absolute", "checksum", "short", "two folders", "cut off", "no storage"])
def test_archives_that_lie_are_refused(lie):
    data = tensor_pickle(0, [6], [1])
    content = np.arange(6, dtype=np.float32).tobytes()
    changes = {"deflated": lambda z: z.writestr("a/x", b"0" * 999, zipfile.ZIP_DEFLATED), "upwards": lambda z: z.writestr("a/../x", b""),
               "absolute": lambda z: z.writestr("/a/x", b""), "two folders": lambda z: z.writestr("b/x", b"")}
    if lie == "twice":
        with pytest.warns(UserWarning, match="Duplicate"):
            file = archive(data, [content], lambda z: z.writestr("a/version", b"4"))
    else:
        file = archive(data, [] if lie == "no storage" else [content[:-4] if lie == "short" else content], changes.get(lie))
    raw = file.getvalue()
    if lie == "checksum":
        raw = raw.replace(content, content[:-1] + b"\xff")
    if lie == "cut off":
        raw = raw[:len(raw) // 2]
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        tg.load(io.BytesIO(raw))


def test_mutated_files_end_in_success_or_a_clean_error():
    raw = bytearray(written(tg, {"w": tg.arange(4.), "n": [1, 2.5, "x"]}).getvalue())
    generator = np.random.default_rng(1)
    for _ in range(400):
        mutated = bytearray(raw)
        for at in generator.integers(0, len(raw), int(generator.integers(1, 4))):
            mutated[at] = int(generator.integers(256))
        try:
            tg.load(io.BytesIO(mutated))
        except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError):
            pass


def test_what_is_no_file_of_tensors():
    for junk, error in ((b"", EOFError), (b"hello world, this is no file", pickle.UnpicklingError), (b"PK\x03\x04 cut", RuntimeError)):
        with pytest.raises(error):
            tg.load(io.BytesIO(junk))
    with pytest.raises(FileNotFoundError):
        tg.load("no such file")
    with pytest.raises(AttributeError, match="seek"):
        tg.load(3)
    with pytest.raises(ValueError, match="mmap"):
        tg.load(io.BytesIO(b"x"), mmap=True)


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
