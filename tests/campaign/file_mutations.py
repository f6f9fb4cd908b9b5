"""Valid files of every format, and ways to spoil them: bytes, lengths, opcodes, headers and fields."""

import collections
import io
import json
import pickle
import pickletools
import random
import struct
import tarfile
import zipfile

import numpy as np

import tensorgrad as tg
from tensorgrad.utils import npz, safetensors

# ── valid files ───────────────────────────────────────────────────────────────────────────────────────────────────────


def checkpoint():
    """A small training's checkpoint, and a little of everything that files may hold."""
    model = tg.nn.Sequential(tg.nn.Linear(3, 2), tg.nn.BatchNorm1d(2))
    optimizer = tg.optim.Adam(model.parameters())
    scheduler = tg.optim.lr_scheduler.StepLR(optimizer, 2)
    model(tg.ones(4, 3)).sum().backward()
    optimizer.step()
    tagged = tg.nn.Parameter(tg.ones(2))
    tagged.label = "a"
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "p": tagged,
        "rest": [
            tg.ones(3, dtype=tg.bool),
            tg.empty(2, 3, device="meta"),
            tg.ones(2, dtype=tg.uint16),
            tg.float32,
            tg.device("cpu"),
            tg.empty(0),
            tg.ones(2, 3).shape,
            tg.ones(2, 3).t(),
            1,
            2.5,
            "x",
            None,
            True,
            10**30,
            1j,
            {1, 2},
            b"ab",
            bytearray(b"x"),
            collections.Counter("aab"),
            collections.OrderedDict(a=(1, 2)),
            tg.ones(2, dtype=tg.complex64),
        ],
    }


def written(obj, **options):
    file = io.BytesIO()
    tg.save(obj, file, **options)
    return file.getvalue()


def network():
    """A small ONNX model."""
    net = tg.nn.Sequential(tg.nn.Conv2d(1, 2, 3), tg.nn.BatchNorm2d(2), tg.nn.ReLU(), tg.nn.MaxPool2d(2),
                           tg.nn.Flatten(), tg.nn.Linear(2, 3), tg.nn.Softmax(-1))
    return tg.onnx.export(net.eval(), (tg.ones(1, 1, 4, 4),), do_constant_folding=False).model_proto.SerializeToString()


def text(value):
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def tar():
    """A file in the tar format: a storage, a part of it, a tensor, and an OrderedDict with it under 'w'."""
    number = lambda n: pickle.dumps(n, 2)
    members = {
        "storages": number(1)
        + b"\x80\x02(K\x07"
        + text("cpu")
        + b"ctorch\nFloatStorage\nt."
        + struct.pack("<q", 6)
        + np.arange(6, dtype="f4").tobytes()
        + number([(9, 7, 1, 4)]),
        "tensors": number(1) + b"\x80\x02(K\x0cK\x07ctorch\nFloatTensor\nt." + struct.pack("<i4x5q", 2, 2, 3, 3, 1, 0),
        "pickle": b"\x80\x02ccollections\nOrderedDict\n)R"
        + text("w")
        + text("12")
        + b"Qs"
        + text("epoch")
        + b"K\x05s.",
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_with(pickled, parts):
    """An archive like torch.save's with another pickle, whose checksums are right."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, pickled if name.endswith("/data.pkl") else data)
    return out.getvalue()


def arrays():
    out = io.BytesIO()
    np.savez(out, w=np.arange(6, dtype=np.float32).reshape(2, 3), b=np.array([True, False]))
    packed = io.BytesIO()
    np.savez_compressed(packed, w=np.zeros(100), i=np.arange(3, dtype=">i4"))
    return out.getvalue(), packed.getvalue()


# ── mutations ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LENGTHS = [
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\0\0\0\x80",
    b"\0\0\0\0",
    b"\xff\xff",
    b"\xff" * 8,
    b"\xff" * 7 + b"\x7f",
    b"\0" * 7 + b"\x80",
    b"\1\0\0\0",
]
NAMES = """os system|builtins eval|builtins getattr|operator attrgetter|functools partial|pkgutil resolve_name
    torch.storage _load_from_bytes|torch load|torch.nn.modules.module os.system|torch.nn.modules.module.os system
    torch._utils _rebuild_tensor_v2|torch._utils _rebuild_tensor_v3|torch._utils _rebuild_parameter_with_state
    torch._tensor _rebuild_from_type_v2|torch Tensor|torch.nn.parameter Parameter|torch Size|torch device|torch float64
    torch IntStorage|torch.storage UntypedStorage|collections OrderedDict|collections Counter|builtins set
    builtins bytearray|builtins complex|_codecs encode|torch._utils _rebuild_meta_tensor_no_storage
    torch.serialization _get_layout|torch._utils _rebuild_sparse_tensor|copyreg _reconstructor
    evil\x1b[2J\x07 name\x9b31m\u202e|torch.float8_\x1b x|torch float8_\x1b]0;x""".replace("\n", "|").split("|")
FRAGMENTS = [
    *(b"c%s\n%s\n" % tuple(part.encode() for part in name.split(" ")) for name in map(str.strip, NAMES)),
    *(bytes([code]) for code in b"(.01tleausbRQ}])N\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94"),
    b"\x80\x02",
    b"\x80\x04",
    b"q\x00",
    b"h\x00",
    b"h\x05",
    b"r\xff\xff\xff\x7f",
    b"j\xff\xff\xff\x7f",
    b"j\0\0\0\0",
    b"K\x00",
    b"K\xff",
    b"J\xff\xff\xff\xff",
    b"\x8a\x09" + b"\xff" * 8 + b"\0",
    b"\x8a\x08" + b"\xff" * 7 + b"\x7f",
    b"\x8a\x05\0\0\0\0\1",
    b"\x8b\0\0\1\0" + b"\1" * 65536,
    b"G\x7f\xf8\0\0\0\0\0\0",
    text("\x1b[31mkey\x07\r"),
    text("__class__"),
    text("_metadata"),
    text("step"),
    text("data"),
    text("grad"),
    text("shape"),
    text("storage"),
    text("cuda:99"),
    text("meta"),
    text("mps\x1b[2J"),
    b"B\xff\xff\xff\xff",
    b"\x8e" + b"\xff" * 8,
    b"X\xff\xff\xff\x7f",
    b"I" + b"9" * 5000 + b"\n",
    b"(" * 50,
    b"]" * 300,
    b"\x85" * 300,
    b"q\x00h\x00\x86" * 60,
    b"}q\x00h\x00h\x00s",
    b"]q\x00h\x00a",
    b"\x95" + b"\xff" * 8,
    b"\x96" + b"\xff" * 8,
    b"\x97",
    b"P1\n",
]


def flipped(data, r):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 4))):
        at, kind = r.randrange(len(data) + 1), r.choice((0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6))
        if kind < 3 and at < len(data):
            data[at] = r.randrange(256) if kind else data[at] ^ 1 << r.randrange(8)
        elif kind == 3:
            del data[at : at + r.randint(1, 20)]
        elif kind == 4:
            other = r.randrange(len(data) + 1)
            data[at:at] = data[other : other + r.randint(1, 20)]
        elif kind == 5:
            length = r.choice(LENGTHS)
            data[at : at + len(length)] = length
        elif len(data) > 1:
            del data[r.randrange(1, len(data)) :]
        if not data:
            data = bytearray(b"x")
    return bytes(data)


def opcodes(data):
    """A pickle as a list of its opcodes with their arguments."""
    places = [place for _, _, place in pickletools.genops(data)] + [len(data)]
    return [data[a:b] for a, b in zip(places, places[1:])]


def restructured(codes, r):
    """Opcodes left out, doubled, exchanged and put in; arguments from elsewhere."""
    codes = list(codes)
    for _ in range(r.choice((1, 1, 1, 2, 3, 5))):
        at, kind = r.randrange(1, len(codes)), r.choice((0, 1, 2, 3, 4, 5, 6, 6, 6, 7, 7))
        if kind == 0:
            del codes[at : at + r.randint(1, 4)]
        elif kind == 1:
            codes[at:at] = codes[at : at + r.randint(1, 10)]
        elif kind == 2:
            other = r.randrange(1, len(codes))
            codes[at], codes[other] = codes[other], codes[at]
        elif kind < 6:
            codes[at : at + (kind == 5)] = [r.choice(FRAGMENTS) for _ in range(r.choice((1, 1, 2, 4)))]
        elif kind == 6:
            same = [code for code in codes if code[:1] == codes[at][:1]]
            codes[at] = r.choice(same)
        else:
            codes[at] = flipped(codes[at], r)
        codes = codes if len(codes) > 2 else [b"\x80\x02", *codes, b"."]
    return b"".join(codes)


SIGNATURES = {
    b"PK\3\4": (("H", 4), ("H", 6), ("H", 8), ("I", 14), ("I", 18), ("I", 22), ("H", 26), ("H", 28)),
    b"PK\1\2": (
        ("H", 8),
        ("H", 10),
        ("I", 16),
        ("I", 20),
        ("I", 24),
        ("H", 28),
        ("H", 30),
        ("H", 32),
        ("H", 34),
        ("I", 42),
    ),
    b"PK\5\6": (("H", 4), ("H", 6), ("H", 8), ("H", 10), ("I", 12), ("I", 16), ("H", 20)),
}


def relabelled(data, r):
    """Fields of an archive's headers changed: flags, methods, lengths, offsets, counts; names too."""
    data = bytearray(data)
    for _ in range(r.randint(1, 3)):
        signature = r.choice(list(SIGNATURES))
        places = [at for at in range(len(data) - 46) if data[at : at + 4] == signature] or [
            max(0, data.rfind(b"PK\5\6"))
        ]
        at, (kind, offset) = r.choice(places), r.choice(SIGNATURES[signature])
        if at + offset + 4 > len(data):
            continue
        (value,) = struct.unpack_from("<" + kind, data, at + offset)
        most = (1 << 8 * struct.calcsize(kind)) - 1
        value = r.choice([0, 1, 8, most, most >> 1, value + 1, value - 1, value * 2, r.randrange(len(data))]) & most
        struct.pack_into("<" + kind, data, at + offset, value)
    if r.random() < 0.2:
        spot = r.choice([b"/data.pkl", b"/version", b"/data/0", b"byteorder"])
        data = data.replace(spot, bytes(r.choice(b"/.\\\x1b\x00a\xff\r") for _ in spot), r.randint(1, 2))
    if r.random() < 0.1:
        data += data[data.rfind(b"PK\5\6") :]
    return bytes(data)


def described(data, r):
    """A safetensors file with another header."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    names = [name for name in header if name != "__metadata__"]
    entry = header[r.choice(names)]
    number = lambda: r.choice(
        [-1, 0, 1, 2, 7, 24, 27, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, 1.5, "3", None, True, [1], {}]
    )
    kind = r.randrange(8)
    if kind == 0:
        entry["dtype"] = r.choice(
            ["F64", "I8", "F4", "BF16", "x\x1b[2J", 3, None, "F32 ", "\u202e", ["F32"], "BOOL", "C64", "F6_E2M3"]
        )
    elif kind == 1:
        entry["shape"] = [number() for _ in range(r.choice((0, 1, 2, 3, 70)))]
    elif kind == 2:
        entry["data_offsets"] = [number() for _ in range(r.choice((0, 1, 2, 2, 2, 3)))]
    elif kind == 3:
        header["\x1b]0;title\x07\u202e" + r.choice("abc")] = r.choice([dict(entry), number(), [], "x"])
    elif kind == 4:
        header["__metadata__"] = r.choice([number(), {"a": number()}, {"\x1b": "\x1b"}, []])
    elif kind == 5:
        del entry[r.choice(list(entry))]
    packed = json.dumps(header, ensure_ascii=r.random() < 0.5)
    if kind == 6:
        packed = packed.replace(
            "}",
            r.choice(
                [", " + packed[1:60] + "}", "NaN}", "[" * 3000 + "}", ',"a":' * 99, "}}", '"\\ud800"}', ',"a":1,"a":2}']
            ),
            1,
        )
    elif kind == 7:
        packed = packed.replace(
            r.choice([":", ",", '"', "[", "{"]),
            r.choice(["", "{", "[", '"', "-", "\x1b", "\0", "/*", "Infinity", "1e999"]),
            r.randint(1, 3),
        )
    packed = packed.encode("utf-8", "surrogatepass")
    return (
        struct.pack("<Q", len(packed) + (r.choice((-1, 1, 8, 2**40, 2**63)) if r.random() < 0.05 else 0))
        + packed
        + body
    )


def described_array(data, r):
    """An .npz file with another header in one of its arrays, whose checksums are right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        names = source.namelist()
        chosen = r.choice(names)
        for name in names:
            content = source.read(name)
            if name == chosen:
                (length,) = struct.unpack_from("<H", content, 8)
                header, rest = content[10 : 10 + length].decode("latin1"), content[10 + length :]
                old, new = r.choice(
                    [
                        (
                            "(2",
                            r.choice(
                                [
                                    "(10**9",
                                    "(-2",
                                    "(4000000000",
                                    "(2.5",
                                    "(True",
                                    "(" * 900 + "2",
                                    "(9999999999999999999,2",
                                    "(99",
                                ]
                            ),
                        ),
                        (
                            "'<f4'",
                            r.choice(
                                [
                                    "'|O'",
                                    "'<f8'",
                                    "'<U9'",
                                    "'|V4'",
                                    "[('a','<f4')]",
                                    "'<m8'",
                                    "'<f16'",
                                    "'\x1b[2J'",
                                    "'<c8'",
                                    "3",
                                ]
                            ),
                        ),
                        ("False", r.choice(["True", "1", "__import__('os')", "None"])),
                        ("'shape'", "'\x1bape'"),
                        ("}", "," + "-" * 5000 + "1}"),
                        ("{", "{" * 50),
                    ]
                )
                header = header.replace(old, new)
                content = (
                    content[:6]
                    + bytes([r.choice((1, 1, 1, 2, 3, 9)), 0])
                    + struct.pack("<H", len(header))
                    + header.encode("latin1")
                    + rest
                )
            method = r.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
            target.writestr(r.choice((name, name, name, "\x1b[2J.npy", "../x.npy", "noarray")), content, method)
    return out.getvalue()


def rewritten_tar(data, r):
    """A tar file one of whose members is spoiled; the headers are right."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as source, tarfile.open(fileobj=out, mode="w:") as target:
        members = source.getmembers()
        chosen = r.choice(members)
        for info in members:
            content = source.extractfile(info).read()
            if info is chosen:
                if r.random() < 0.6:
                    content = flipped(content, r)
                else:
                    at = r.randrange(len(content))
                    content = content[:at] + r.choice(FRAGMENTS) + content[at:]
                info.size = len(content)
            target.addfile(info, io.BytesIO(content))
    return out.getvalue()


def sources():
    """[(weight, format, valid bytes, mutation)]: what is read, and how it is spoiled."""
    everything = checkpoint()
    training = {key: everything[key] for key in ("model", "optimizer", "scheduler")}
    whole, old = written(everything), written(everything, _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (top,) = {name.partition("/")[0] for name in parts}
    codes, old_codes = opcodes(parts[f"{top}/data.pkl"]), opcodes_of_all(old)
    tensors = safetensors.save({"a": tg.ones(2, 3), "b": tg.ones(3, dtype=tg.int8)}, {"k": "v"})
    stored, packed = arrays()
    oldest, model = tar(), network()
    pickled = lambda data, r: zip_with(flipped(data, r), parts)
    return [
        (6, "zip", whole, lambda data, r: zip_with(restructured(codes, r), parts)),
        (3, "zip", parts[f"{top}/data.pkl"], pickled),
        (1, "zip", whole, flipped),
        (2, "zip", whole, relabelled),
        (1, "mapped", whole, flipped),
        (1, "mapped", whole, relabelled),
        (2, "legacy", old, flipped),
        (3, "legacy", old, lambda data, r: restructured(old_codes[0], r) + old_codes[1]),
        (1, "tar", oldest, flipped),
        (4, "zip", whole, lambda data, r: written({key: replaced(part, r, 0.03) for key, part in training.items()})),
        (2, "tar", oldest, rewritten_tar),
        (1, "safetensors", tensors, flipped),
        (3, "safetensors", tensors, described),
        (1, "npz", stored, flipped),
        (1, "npz", packed, flipped),
        (1, "npz", stored, relabelled),
        (2, "npz", stored, described_array),
        (2, "onnx", model, flipped),
    ]


def odd(r):
    """A value that no training writes."""
    return r.choice(
        [
            lambda: None,
            lambda: r.choice([0, -1, 2**40, 10**400, 1.5, float("nan"), float("inf"), "x\x1b[2J", b"x", True, (), [],
                              {}, 1j]),
            lambda: tg.ones(r.choice([(), (0,), (1,), (2,), (3,), (2, 3), (3, 2), (200, 300), (2, 3, 1)])),
            lambda: tg.ones(r.choice([(), (2,), (2, 3)]),
                            dtype=r.choice([tg.float64, tg.int64, tg.bool, tg.complex64, tg.float16])),
            lambda: tg.ones(()).expand(r.choice([(2,), (2, 3), (10**6,), (2**20, 2**20)])),
            lambda: tg.ones(3, 2).t(),
            lambda: tg.ones(12)[:: r.choice([2, 6])],
            lambda: tg.empty(2, 3, device="meta"),
            lambda: tg.ones(2, requires_grad=True),
            lambda: tg.nn.Parameter(tg.ones(2, 3)),
            lambda: tg.ones(2, dtype=tg.complex64).conj(),
            lambda: tg.full((2, 3), float("nan")),
            lambda: {"\x1b[2J": 1, 3: 4},
        ]
    )()


def replaced(value, r, chance):
    """A copy of a checkpoint in which some values, keys and items are others."""
    if r.random() < chance:
        return odd(r)
    if isinstance(value, dict):
        items = [(key, replaced(part, r, chance)) for key, part in value.items() if r.random() > chance / 2]
        if r.random() < chance:
            items.append((r.choice(["\x1b[2J", "step", 0, 7, None, (1, 2), "lr", "params", "_extra_state"]), odd(r)))
        return type(value)(items) if type(value) in (dict, collections.OrderedDict) else value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(replaced(part, r, chance) for part in value)
    return value


def opcodes_of_all(data):
    """(the opcodes of the pickles of a legacy file, the bytes behind them)."""
    file, codes = io.BytesIO(data), []
    for _ in range(5):
        begin = file.tell()
        for _ in pickletools.genops(file):
            pass
        codes += opcodes(data[begin : file.tell()])
    return codes, data[file.tell() :]


def read(kind, data, path):
    """Read a file. Formats that are read from a path are written there first."""
    if kind in ("mapped", "npz"):
        with open(path, "wb") as file:
            file.write(data)
    if kind == "mapped":
        return tg.load(path, mmap=True)
    if kind == "npz":
        return npz.load_file(path)
    if kind == "onnx":
        return tg.onnx.load(data)
    return safetensors.load(data) if kind == "safetensors" else tg.load(io.BytesIO(data))


def case(number, seed, table):
    """(format, bytes) of a case, which is the same at every run."""
    r = random.Random(seed * 1_000_003 + number)
    _, kind, data, mutation = r.choices(table, [weight for weight, *_ in table])[0]
    return kind, mutation(data, r)
