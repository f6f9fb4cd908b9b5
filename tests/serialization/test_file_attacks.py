"""Attacks on readers of files: what PyTorch refuses is refused here, text from files does nothing to a terminal, and
nothing is left of a killed save."""

import collections
import hashlib
import io
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from support import ROOT

import tensorgrad as tg
from tensorgrad.messages.escaping import escaped
from tensorgrad.utils import npz, safetensors
from tests.serialization.test_hostile_files import CLEAN, SIX, archive, calling, entries, tensor_pickle, within, zip_of
from tests.serialization.test_serialization import tar_file

EVIL = "evil\x1b[2J\x07\x9b31m\u202e\r\n"
TENSOR = tensor_pickle(0, [6], [1])[2:-1]


def text(value):
    return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()


def plain(message):
    """Tell whether a message prints as it is, but for PyTorch's bold words and its own lines."""
    for known in ("\033[1m", "\033[0m", "\n\t", "\n"):
        message = message.replace(known, "")
    return message.isprintable()


# ── text from files ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_moves_the_cursor_or_hides_becomes_an_escape():
    assert escaped("a\x1b[2J\u202e\x9b\n") == r"a\x1b[2J\u202e\x9b\n"
    assert (
        escaped("straße 層 \\ 'x'") == "straße 層 \\ 'x'"
        and escaped("abc", 2) == "ab"
        and escaped("a\n\x07", keep="\n") == "a\n\\x07"
    )
    assert escaped("\ud800") == r"\ud800" and escaped(None) == "None"


def legacy(data):
    return b"".join(pickle.dumps(head, 2) for head in (0x1950A86A20F9469CFC6C, 1001, {})) + data


NAMED = b"\x80\x04" + text(EVIL) + text(EVIL + "x") + b"\x93."
PLACED = b"\x80\x02(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text(EVIL) + b"K\x06tQ."
KEYED = b"\x80\x02(" + text("storage") + b"ctorch\nFloatStorage\n" + text(EVIL) + text("cpu") + b"K\x06tQ."
SPEAKING = {
    "a global": lambda: archive(NAMED),
    "a blocked module": lambda: archive(b"\x80\x04" + text("os") + text(EVIL) + b"\x93."),
    "a dtype": lambda: archive(b"\x80\x04" + text("torch") + text("float8_" + EVIL) + b"\x93."),
    "a place": lambda: archive(PLACED, [SIX]),
    "a key": lambda: archive(KEYED, [SIX]),
    "a long key": lambda: archive(KEYED.replace(text(EVIL), text(EVIL.replace("e", "/"))), [SIX]),
    "an attribute": lambda: archive(b"\x80\x02ccollections\nOrderedDict\n)R}" + text("__" + EVIL) + b"Nsb."),
    "an entry": lambda: io.BytesIO(zip_of([*entries(), (f"a/{EVIL}", b""), (f"a/{EVIL}", b"")])),
    "an entry upwards": lambda: io.BytesIO(zip_of([*entries(), (f"../{EVIL}", b"")])),
    "a version": lambda: io.BytesIO(zip_of([*entries()[:2], ("a/version", EVIL.encode()[:19])])),
    "an order of bytes": lambda: io.BytesIO(zip_of([*entries(), ("a/byteorder", b"\x1b[2J\x07\r\n")])),
    "a legacy global": lambda: io.BytesIO(legacy(NAMED)),
    "a legacy key": lambda: io.BytesIO(legacy(KEYED) + pickle.dumps([EVIL], 2) + bytes(8)),
    "a legacy place": lambda: io.BytesIO(legacy(PLACED)),
    "a first pickle": lambda: io.BytesIO(NAMED),
    "a tensor in a tar": lambda: tar_file(name=EVIL),
    "an integer": lambda: archive(b"\x80\x02I\x1b[2J\n."),
}


@pytest.mark.parametrize("case", SPEAKING)
def test_errors_do_nothing_to_a_terminal(case):
    with pytest.raises((*CLEAN, ValueError)) as caught:
        tg.load(SPEAKING[case]())
    message = str(caught.value)
    assert (
        plain(message)
        and len(message) < 3000
        and (r"\x1b" in message or case in ("an attribute", "an order of bytes", "a tensor in a tar"))
    )


def test_errors_of_trusted_files_do_nothing_to_a_terminal_either():
    for module in ("torch", "torch.nn", "no" + EVIL):
        with pytest.raises((AttributeError, ImportError, pickle.UnpicklingError)) as caught:
            tg.load(archive(b"\x80\x04" + text(module) + text("float8_\x1b[2J") + b"\x93."), weights_only=False)
        assert plain(str(caught.value))


def test_errors_of_the_programs_own_functions_stay_what_they_are():
    def place(storage, where):
        raise KeyError("\x1b")

    with pytest.raises(KeyError) as caught:
        tg.load(archive(tensor_pickle(0, [6], [1]), [SIX]), map_location=place)
    assert caught.value.args == ("\x1b",)


def test_no_code_of_a_file_is_suggested():
    with pytest.raises(pickle.UnpicklingError) as caught:
        tg.load(archive(b"\x80\x04" + text("a]); __import__('os').system('x') #") + text("b") + b"\x93."))
    assert "safe_globals" not in str(caught.value) and "Unsupported global: GLOBAL a]); __import__" in str(caught.value)


def test_keys_of_a_state_dict_do_nothing_to_a_terminal():
    model = tg.nn.Linear(1, 1)
    for state in ({EVIL: tg.ones(1)}, {"weight": tg.ones(1, 1), "bias": tg.ones(1), EVIL + "x": 3}):
        with pytest.raises(RuntimeError) as caught:
            model.load_state_dict(state)
        assert plain(str(caught.value)) and r'"evil\x1b[2J\x07\x9b31m\u202e\r\n' in str(caught.value)
    child = tg.nn.Module()
    child.register_parameter("\x1b[2J", tg.nn.Parameter(tg.ones(2)))
    for value in (tg.ones(3), None):
        with pytest.raises(RuntimeError) as caught:
            child.load_state_dict({"\x1b[2J": value})
        assert plain(str(caught.value)) and r"\x1b[2J" in str(caught.value)


def test_specs_of_layers_do_nothing_to_a_terminal():
    from tensorgrad.layers.spec import SpecError, from_json

    for spec in ({"type": "Linear", EVIL: {"type": EVIL}}, {"type": "Linear", "null": {EVIL: {"type": "Linear"}}}):
        with pytest.raises(SpecError) as caught:
            from_json(json.dumps(spec))
        assert plain(str(caught.value)) and r"evil\x1b" in str(caught.value)


def test_names_in_safetensors_and_npz_do_nothing_to_a_terminal(tmp_path):
    entry = {"dtype": "F32", "shape": [7], "data_offsets": [0, 4]}
    header = json.dumps({EVIL: entry}, ensure_ascii=False).encode()
    for data in (
        header,
        header.replace(b"F32", b"F\\u001b"),
        header.replace(b"[0, 4]", b"[4, 0]"),
        header.replace(b"[0, 4]", b"3"),
    ):
        with pytest.raises(safetensors.SafetensorError) as caught:
            safetensors.load(struct.pack("<Q", len(data)) + data + bytes(4))
        assert plain(str(caught.value))
    safetensors.save_file({EVIL: tg.ones(1)}, tmp_path / "x.safetensors")
    with pytest.raises(RuntimeError) as caught:
        safetensors.load_model(tg.nn.Linear(1, 1), tmp_path / "x.safetensors")
    assert plain(str(caught.value)) and r"evil\x1b" in str(caught.value)
    np.savez(tmp_path / "x.npz", **{"\x1b[2J": np.array(["x"])})
    with pytest.raises(ValueError, match="tensors do not have") as caught:
        npz.load_file(tmp_path / "x.npz")
    assert plain(str(caught.value))


# ── pickles ───────────────────────────────────────────────────────────────────────────────────────────────────────────

INDIRECT = """pkgutil:resolve_name operator:attrgetter operator:methodcaller functools:partial builtins:getattr
    torch.storage:_load_from_bytes torch.nn.modules.module:os.system torch.nn.modules.module.os:system torch:os.system
    torch._utils:torch.os.system torch.serialization:pickle.loads torch._utils:_rebuild_tensor_v2.__globals__
    collections:OrderedDict.fromkeys torch._tensor:_rebuild_from_type_v2.__call__ copy:_reconstruct codecs:decode
    torch.utils._pytree:importlib.import_module torch._C:_jit_pass_lint _codecs:decode""".split()
REFUSED = {
    "an item of a tensor": b"\x80\x02" + TENSOR + b"K\0K\1s.",
    "items of a tensor": b"\x80\x02" + TENSOR + b"(K\0K\1u.",
    "an item of a size": b"\x80\x02ctorch\nSize\n(K\1K\2t\x85RK\0K\1s.",
    "an item of a set": b"\x80\x04\x8fK\0K\1s.",
    "an item of a tuple": b"\x80\x02)K\0K\1s.",
    "an item of bytes": b"\x80\x02c__builtin__\nbytearray\n)RK\0K\1s.",
    "appended to a tensor": b"\x80\x02" + TENSOR + b"K\1a.",
    "added to a dict": b"\x80\x04}(K\1\x90.",
    "a state of a tensor": b"\x80\x02" + TENSOR + b"}" + text("a") + b"K\1sb.",
    "a storage as state": b"\x80\x02" + TENSOR + b"(" + TENSOR + b"K\5K\x09\x85K\1\x85tb.",
    "a state of numbers": b"\x80\x02" + TENSOR + b"(K\1K\2tb.",
    "more elements than bytes": tensor_pickle(0, [7], [1], 7),
    "fewer elements than bytes": tensor_pickle(0, [5], [1], 5),
    "an element behind the end": tensor_pickle(0, [7], [1]),
    "an offset below zero": tensor_pickle(-1, [1], [1]),
    "a stride below zero": tensor_pickle(5, [6], [-1]),
    "a product that overflows": tensor_pickle(0, [2**33, 2**33], [0, 0]),
    "a stride that overflows": tensor_pickle(0, [3, 3], [2**62, 1]),
    "a sum that overflows": tensor_pickle(2**62, [2], [2**62]),
    "a size below zero": tensor_pickle(0, [-1], [1]),
    "a memo of nothing": b"\x80\x02h\0.",
    "four gigabytes of text": b"\x80\x02X\xff\xff\xff\xff.",
    "four gigabytes of bytes": b"\x80\x03B\xff\xff\xff\xff.",
    "two gigabytes of digits": b"\x80\x02\x8b\xff\xff\xff\x7f.",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_pytorch_refuses_is_refused(case):
    with within(), pytest.raises(CLEAN) as caught:
        tg.load(archive(REFUSED[case], [SIX]))
    assert len(str(caught.value)) < 1500
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:
        torch.load(archive(REFUSED[case], [SIX]), weights_only=True)
    if "than bytes" in case:
        assert type(caught.value) is type(theirs.value) and str(caught.value).startswith(
            str(theirs.value).split(" (")[0]
        )


@pytest.mark.parametrize("name", INDIRECT)
def test_names_of_names_are_not_followed(name):
    module, name = name.split(":")
    for data in (calling(module, name), b"\x80\x04" + text(module) + text(name) + b"\x93)R."):
        for file in (archive(data), io.BytesIO(legacy(data)), io.BytesIO(data)):
            before = set(sys.modules)
            with pytest.raises(pickle.UnpicklingError):
                tg.load(file)
            assert set(sys.modules) == before


@pytest.mark.parametrize("form", ["zip", "legacy", "tar"])
def test_a_payload_before_a_damaged_end_does_not_run(form, tmp_path):
    target = tmp_path / "made"
    data = b"\x80\x02cos\nmkdir\n" + text(str(target)) + b"\x85R0N.garbage"
    file = {
        "zip": lambda: archive(data),
        "legacy": lambda: io.BytesIO(legacy(data)[:-20]),
        "tar": lambda: io.BytesIO(
            tar_file()
            .getvalue()
            .replace(b"\x80\x02ccollections\nOrderedDict\n)R", b"\x80\x02cos\nmkdir\n" + text("made") + b"\x85R")
        ),
    }[form]()
    with pytest.raises(CLEAN):
        tg.load(file)
    assert not target.exists() and not os.path.exists("made")


def test_a_recipe_in_a_recipe_is_charged_its_state():
    state = b"}(" + b"".join(text(str(k)) + b"N" for k in range(20_000)) + b"u"
    data = (
        b"\x80\x02"
        + TENSOR
        + b"q\x010"
        + state
        + b"q\x020ctorch._utils\n_rebuild_parameter_with_state\nq\x030ctorch._tensor\n_rebuild_from_type_v2\n"
        b"q\x040ctorch.nn.parameter\nParameter\nq\x050]" + b"h\x04(h\x03h\x05(h\x01\x89Nh\x02tNtRa" * 1000 + b"."
    )
    with within(megabytes=60), pytest.raises(pickle.UnpicklingError, match="it makes more than it holds"):
        tg.load(archive(data, [SIX]))


@pytest.mark.parametrize("n", [10**12, 10**18])
def test_a_large_tensor_of_one_element_is_shown_in_no_time(n):
    loaded = tg.load(archive(tensor_pickle(0, [n], [0]), [SIX]))
    with within(seconds=1.0, megabytes=5):
        assert repr(loaded).startswith("tensor([0., 0., 0.,  ..., 0., 0., 0.]")


def test_an_optimizer_takes_pairs_of_pairs_in_no_time():
    optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=0.1)
    state, pair = optimizer.state_dict(), (1, 2)
    for _ in range(60):
        pair = (pair, pair)
    state["param_groups"][0] |= {"pair": pair, "list": [[3], tg.ones(2)]}
    optimizer.load_state_dict(state)
    group = optimizer.param_groups[0]
    assert (group["pair"][0] is group["pair"][1] and group["list"][0] == [3]
            and group["list"][0] is not state["param_groups"][0]["list"][0])
    assert group["list"][1] is not state["param_groups"][0]["list"][1] and group["list"][1].tolist() == [1, 1]


def test_long_integers_in_old_files_are_clean_errors():
    long = b"\x8b\0\x40\0\0" + b"\1" * 16384
    for data in (pickle.dumps(0x1950A86A20F9469CFC6C, 2) + b"\x80\x02" + long + b".",):
        with pytest.raises(RuntimeError, match="Invalid protocol version: int"):
            tg.load(io.BytesIO(data))


# ── archives ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_checksums_of_mapped_files_are_checked_where_it_is_asked_for(tmp_path):
    path, config = tmp_path / "x.pt", tg.utils.serialization.config
    tg.save(tg.arange(4096.0), path)
    data = path.read_bytes()
    values = np.arange(4096, dtype="f4").tobytes()
    assert values in data
    path.write_bytes(data.replace(values, values[:-4] + b"\0\0\x80\x7f"))
    assert tg.load(path, mmap=True)[-1] == float("inf")  # as in PyTorch: not every byte is read
    with pytest.raises(RuntimeError, match="checksum"):
        tg.load(path)
    assert config.load.mmap_crc32 is False
    config.load.mmap_crc32 = True
    try:
        with pytest.raises(RuntimeError, match="checksum is wrong"):
            tg.load(path, mmap=True)
        path.write_bytes(data)
        assert tg.load(path, mmap=True)[-1] == 4095
    finally:
        config.load.mmap_crc32 = False


def nested(method=zipfile.ZIP_STORED, name="model.pt"):
    inner, out = io.BytesIO(), io.BytesIO()
    tg.save({"w": tg.ones(2)}, inner)
    with zipfile.ZipFile(out, "w", method) as z:
        z.writestr(name, inner.getvalue())
    return out.getvalue()


@pytest.mark.parametrize("name", ["model.pt", "../model.pt", "/model.pt", "a/model.pt"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_around_archives_are_not_unpacked(name, method, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.pt").write_bytes(nested(method, name))
    for load in (
        lambda: tg.hub.load_state_dict_from_url("https://example.org/x.pt", model_dir=str(tmp_path / "in")),
        lambda: tg.load(tmp_path / "in" / "x.pt"),
    ):
        with pytest.raises(CLEAN):
            load()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "x.pt"]


class Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_hub_and_model_zoo_run_nothing(tmp_path):
    for form in (
        lambda o, p: p.write_bytes(archive(pickle.dumps(o, 2)).getvalue()),
        lambda o, p: p.write_bytes(pickle.dumps(o, 2)),
    ):
        form(Runs(str(tmp_path / "made")), tmp_path / "x.pt")
        for load in (tg.hub.load_state_dict_from_url, tg.utils.model_zoo.load_url):
            with pytest.raises(pickle.UnpicklingError):
                load("https://example.org/x.pt?y=../../z", model_dir=str(tmp_path))
    assert not (tmp_path / "made").exists()


def test_hub_checks_the_hash_in_a_name(tmp_path):
    data = io.BytesIO()
    tg.save({"w": tg.ones(2)}, data)
    right = hashlib.sha256(data.getvalue()).hexdigest()[:8]
    for digits in (right, "00000000"):
        (tmp_path / f"m-{digits}.pt").write_bytes(data.getvalue())
    load = lambda digits, check: tg.hub.load_state_dict_from_url(
        f"https://example.org/m-{digits}.pt", model_dir=str(tmp_path), check_hash=check
    )
    assert load(right, True)["w"].tolist() == load("00000000", False)["w"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match='invalid hash value .expected "00000000", got "' + right):
        load("00000000", True)


# ── arrays ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def array_file(shape="(2,)", descr="'<f4'", body=bytes(8), version=1, order="False", tail=b"\n"):
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode("latin1") + tail
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(header)) + header + body


def npz_of(*arrays, method=zipfile.ZIP_STORED, names=None):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for k, data in enumerate(arrays):
            z.writestr(names[k] if names else f"{k}.npy", data)
    out.seek(0)
    return out


WRONG_ARRAYS = {
    "a huge shape": {"shape": "(10000000000,)"},
    "an overflow": {"shape": f"({2**62}, 4)"},
    "a negative shape": {"shape": "(-1, -2)"},
    "bools": {"shape": "(True, 2)"},
    "objects": {"descr": "'|O'"},
    "texts": {"descr": "'<U2'"},
    "fields": {"descr": "[('a', '<f4')]"},
    "times": {"descr": "'<m8'"},
    "a call": {"shape": "exit()"},
    "a deep literal": {"shape": "(" * 4000},
    "many signs": {"shape": "-" * 9000 + "1"},
    "too short": {"body": bytes(7)},
    "too long": {"body": bytes(9)},
    "a version": {"version": 9},
    "another version": {"version": 3},
    "no literal": {"tail": b"\x1b[2J(\n"},
    "axes": {"shape": "(" + "1," * 70 + "2)"},
    "a long double": {"descr": "'<f16'", "body": bytes(32)},
    "a word of flags": {"order": "'x'"},
}


@pytest.mark.parametrize("case", WRONG_ARRAYS)
def test_arrays_that_lie(case):
    with within(megabytes=20), pytest.raises(ValueError) as caught:
        npz.load_file(npz_of(array_file(**WRONG_ARRAYS[case])))
    assert plain(str(caught.value)) and len(str(caught.value)) < 600


def test_arrays_in_archives_that_lie(tmp_path):
    right = array_file()
    assert npz.load_file(npz_of(right))["0"].tolist() == [0, 0]
    assert npz.load_file(npz_of(array_file("(2, 1)", "'|b1'", b"\7\0", order="True")))["0"].tolist() == [
        [True],
        [False],
    ]
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = npz_of(right, right, names=["a.npy", "a.npy"])
    whole = npz_of(right, right).getvalue()
    wrong = whole.replace(bytes(8), bytes(7) + b"\1", 1)
    encrypted = whole.replace(b"PK\3\4\x14\0\0\0", b"PK\3\4\x14\0\1\0").replace(
        b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0"
    )
    assert encrypted != whole != wrong
    for file in (
        twice,
        npz_of(right, method=zipfile.ZIP_BZIP2),
        npz_of(b"x", names=["data"]),
        npz_of(b"x"),
        io.BytesIO(wrong),
        io.BytesIO(encrypted),
        io.BytesIO(whole[:-30]),
        io.BytesIO(b""),
        io.BytesIO(b"junk"),
        io.BytesIO(pickle.dumps([1])),
    ):
        with pytest.raises(ValueError):
            npz.load_file(file)
    with pytest.raises(FileNotFoundError):
        npz.load_file(tmp_path / "none.npz")


def test_entries_that_are_longer_than_what_they_are_made_of():
    """Sizes in the directory and in the headers agree with each other, and with nothing else."""
    right = npz_of(array_file("(300,)", body=bytes(1200))).getvalue()
    (size,) = {struct.unpack_from("<L", right, right.index(b"PK\1\2") + 24)[0]}
    for claimed, message in ((200_000_000, "shorter than it says"), (2**31, "more than 268435456")):
        with within(megabytes=2), pytest.raises(ValueError, match=message):
            npz.load_file(io.BytesIO(right.replace(struct.pack("<LL", size, size), struct.pack("<LL", size, claimed))))
    both = right.replace(struct.pack("<LL", size, size), struct.pack("<LL", 200_000_000, 200_000_000))
    with within(megabytes=2), pytest.raises(ValueError, match="longer than the file, or overlap"):
        npz.load_file(io.BytesIO(both))


def test_a_small_file_does_not_unpack_to_a_large_array(monkeypatch):
    zeros = npz_of(array_file("(2000000,)", body=bytes(8_000_000)), method=zipfile.ZIP_DEFLATED)
    assert npz.load_file(zeros)["0"].numel() == 2_000_000
    monkeypatch.setattr(npz, "LEAST_LIMIT", 1 << 20)
    with (
        within(megabytes=2),
        pytest.raises(
            ValueError, match="take 80000.. bytes, more than 1048576: if you trust the file, say `largest=80000..`"
        ),
    ):
        npz.load_file(zeros)
    assert npz.load_file(zeros, largest=9_000_000)["0"].numel() == 2_000_000


# ── what killed saves leave ───────────────────────────────────────────────────────────────────────────────────────────

STOPPED = """
import sys, time
from tensorgrad.serialization._atomic import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half of it")
    file.flush()
    print("written", flush=True)
    time.sleep(60)
"""
posix = pytest.mark.skipif(sys.platform == "win32", reason="about locks of POSIX")


@posix
@pytest.mark.parametrize("name", ["x.pt", "層" * 80 + ".pt", "a\nb[*]?.pt"], ids=["short", "long", "odd"])
def test_the_next_save_removes_what_a_killed_one_left(name, tmp_path):
    path = str(tmp_path / name)
    child = subprocess.Popen([sys.executable, "-c", STOPPED, path], stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert child.stdout.readline() == b"written\n"
        (part,) = os.listdir(tmp_path)
        tg.save(tg.ones(1), path)  # while the other is at it
        assert set(os.listdir(tmp_path)) == {part, name}
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    tg.save(tg.ones(2), tmp_path / "another.pt")  # what is another path's stays
    assert set(os.listdir(tmp_path)) == {part, name, "another.pt"}
    tg.save(tg.ones(3), path)
    assert set(os.listdir(tmp_path)) == {name, "another.pt"} and tg.load(path).numel() == 3


@posix
def test_what_only_looks_like_a_leftover_stays(tmp_path):
    digits = "0" * 16
    os.mkfifo(tmp_path / f".x.pt.{digits}.part")
    (tmp_path / f".x.pt.1{digits[1:]}.part").symlink_to(tmp_path / "target")
    (tmp_path / "target").write_text("x")
    (tmp_path / f".x.pt.2{digits[1:]}.part").mkdir()
    (tmp_path / ".x.pt.part").write_text("x")
    (tmp_path / f".x.pt.old.{digits}.part").write_text("x")
    before = set(os.listdir(tmp_path))
    tg.save(tg.ones(1), tmp_path / "x.pt")
    assert set(os.listdir(tmp_path)) == before | {"x.pt"}
    (tmp_path / f".x.pt.3{digits[1:]}.part").write_text("x")
    tg.save(tg.ones(1), tmp_path / "x.pt")
    assert set(os.listdir(tmp_path)) == before | {"x.pt"}


def test_without_locks_old_leftovers_are_removed(tmp_path, monkeypatch):
    from tensorgrad.serialization import _atomic

    monkeypatch.setattr(_atomic, "fcntl", None)
    old, new = (tmp_path / f".x.pt.{digit * 16}.part" for digit in "01")
    for part in (old, new):
        part.write_text("x")
    os.utime(old, (time.time() - 7200,) * 2)
    tg.save(tg.ones(1), tmp_path / "x.pt")
    assert set(os.listdir(tmp_path)) == {"x.pt", new.name}


@posix
def test_a_part_that_somebody_takes_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    """Another process may look between the creation of a file and its lock."""
    import fcntl

    from tensorgrad.serialization import _atomic

    real, steps = fcntl.flock, []

    def flock(descriptor, how):
        steps.append(how)
        (part,) = [path for path in tmp_path.iterdir() if path.suffix == ".part"]
        if len(steps) == 1:
            raise BlockingIOError
        if len(steps) == 2:
            part.unlink()
        return real(descriptor, how)

    monkeypatch.setattr(_atomic.fcntl, "flock", flock)
    tg.save(tg.ones(2), tmp_path / "x.pt")
    assert len(steps) == 3 and os.listdir(tmp_path) == ["x.pt"] and tg.load(tmp_path / "x.pt").numel() == 2


# ── many spoiled files ────────────────────────────────────────────────────────────────────────────────────────────────


def campaign(cases, seed):
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "campaign" / "files.py"), "--cases", str(cases), "--seed", str(seed)],
        capture_output=True,
        text=True,
        timeout=60 + cases / 20,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-2000:]
    return collections.Counter(
        {tuple(line.split()[:2]): int(line.split()[2]) for line in ran.stdout.splitlines() if len(line.split()) == 3}
    )


def test_spoiled_files_are_read_or_refused_cleanly():
    counted = campaign(700, 1)
    assert sum(counted.values()) == 700
    for kind in ("zip", "legacy", "tar", "safetensors", "npz", "mapped"):
        assert sum(count for key, count in counted.items() if key[0] == kind) > 20
    assert sum(count for key, count in counted.items() if key[1] == "read") > 30


@pytest.mark.slow
def test_many_more_spoiled_files():
    for seed in range(100, 105):
        campaign(10_000, seed)
