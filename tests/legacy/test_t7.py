"""Files of Lua Torch: what they hold, files that are damaged, and files that are hostile."""
import io
import random
import struct

import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.legacy import convert, load_lua, nn

pytestmark = cpu_only


class T7:
    """Writes files of the format."""

    def __init__(self):
        self.known = {}

    def index(self, value):
        seen = id(value) in self.known
        return self.known.setdefault(id(value), (len(self.known) + 1, value))[0], seen

    def __call__(self, value):
        if value is None:
            return struct.pack("<i", 0)
        if isinstance(value, bool):
            return struct.pack("<ii", 5, value)
        if isinstance(value, (int, float)):
            return struct.pack("<id", 1, value)
        if isinstance(value, str):
            return struct.pack("<i", 2) + self.string(value)
        if isinstance(value, tg.Tensor):
            return self.tensor(value)
        number, seen = self.index(value)
        if isinstance(value, Object):
            return struct.pack("<ii", 4, number) + (b"" if seen else self.string("V 1") + self.string(value.name)
                                                    + self(value.fields))
        pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value, 1))
        return struct.pack("<ii", 3, number) + (b"" if seen else struct.pack("<i", len(pairs))
                                                + b"".join(self(k) + self(v) for k, v in pairs))

    def string(self, text):
        return struct.pack("<i", len(text.encode())) + text.encode()

    def tensor(self, t):
        number, seen = self.index(t)
        head = struct.pack("<ii", 4, number)
        if seen:
            return head
        kind = t.type().split(".")[1].removesuffix("Tensor")
        memory = self.known.setdefault(("storage", t.untyped_storage().data_ptr()), (len(self.known) + 1, t))
        first = memory[1] is t
        whole = tg.as_strided(t, (t.untyped_storage().nbytes() // t.element_size(),), (1,), 0)
        stored = struct.pack("<ii", 4, memory[0])
        if first:
            stored += (self.string("V 1") + self.string(f"torch.{kind}Storage") + struct.pack("<q", whole.numel())
                       + whole.numpy().tobytes())
        return (head + self.string("V 1") + self.string(f"torch.{kind}Tensor") + struct.pack("<i", t.dim())
                + struct.pack(f"<{2 * t.dim() + 1}q", *t.shape, *t.stride(), t.storage_offset() + 1) + stored)


class Object:
    def __init__(self, name, **fields):
        self.name, self.fields = name, fields


def read(value):
    return load_lua(io.BytesIO(T7()(value)))


def test_plain_values(tmp_path):
    for value in [None, True, False, 3, -1.5, "héllo", [1, "two", [3]], {"a": 1, "b": {"c": [1]}}, {2: "x", 3: "y"},
                  {}]:
        assert read(value) == value
    (tmp_path / "a.t7").write_bytes(T7()([1, 2]))
    assert load_lua(tmp_path / "a.t7") == load_lua(str(tmp_path / "a.t7")) == [1, 2]


@pytest.mark.parametrize("kind", ["Float", "Double", "Byte", "Char", "Short", "Int", "Long", "Half"])
def test_tensors(kind):
    x = tg.arange(6).view(2, 3).type(f"torch.{kind}Tensor")
    found = read(x)
    assert found.dtype == x.dtype and tg.equal(found, x) and found.stride() == (3, 1)


def test_what_is_shared_stays_shared():
    x = tg.arange(6.)
    view = x.view(2, 3).t()[1:]
    table = {"x": x, "view": view, "again": x}
    found = read(table)
    assert found["again"] is found["x"] and tg.equal(found["view"], view) and found["view"].stride() == view.stride()
    found["x"][1] = 70
    assert found["view"][0, 0] == 70
    circle = {}
    circle["self"] = circle
    assert read(circle)["self"]["self"]["self"] is not None


def test_modules():
    tg.manual_seed(0)
    linear, conv = nn.Linear(12, 3), nn.SpatialConvolution(1, 3, 3, 3)
    file = Object("nn.Sequential", train=False, modules=[
        Object("nn.SpatialConvolutionMM", nInputPlane=1, nOutputPlane=3, kW=3, kH=3, dW=1, dH=1, padW=0, padH=0,
               weight=conv.weight.view(3, 9), bias=conv.bias,
               gradWeight=tg.zeros(3, 9), gradBias=tg.zeros(3), train=False),
        Object("nn.Threshold", threshold=0, val=0, inplace=False, train=False),
        Object("nn.View", size=[12], numElements=12, train=False),
        Object("nn.ConcatTable",
               modules=[Object("nn.Linear", weight=linear.weight, bias=linear.bias, gradWeight=tg.zeros(3, 12),
                               gradBias=tg.zeros(3),
                               train=False)], train=False),
        Object("nn.SelectTable", index=1, train=False)])
    model, x = read(file), tg.randn(1, 4, 4)
    expected = linear.forward(conv.forward(x).clamp(min=0).reshape(12))
    assert (tg.allclose(model.forward(x), expected) and repr(model.get(0))
            == "nn.SpatialConvolution(1, 3, 3, 3, 1, 1, 0, 0)")
    assert (model.backward(x, tg.ones(3)).shape == x.shape and model.get(0).gradWeight.abs().sum() > 0
            and not model.train)
    assert tg.allclose(convert(model.get(3).get(0))(tg.ones(12)), linear.forward(tg.ones(12)))
    norm = read(Object("nn.BatchNormalization", weight=tg.ones(2), bias=tg.zeros(2), gradWeight=tg.zeros(2),
                       gradBias=tg.zeros(2), running_mean=tg.ones(2), running_var=tg.ones(2) * 4, eps=0, momentum=0.1,
                       train=False))
    assert norm.forward(tg.tensor([[3., 5.]])).tolist() == [[1, 2]]
    assert read(Object("nn.JoinTable", dimension=2)).forward([tg.ones(1, 1), tg.zeros(1, 1)]).tolist() == [[1, 0]]


INT = struct.Struct("<i").pack


@pytest.mark.parametrize("data, why", [
    (b"", "ends too early"), (INT(1) + b"abc", "ends too early"),
    (INT(2) + INT(1 << 30) + b"x", "claims 1073741824 characters"),
    (INT(2) + INT(-5), "claims -5 characters"), (INT(3) + INT(1) + INT(1 << 30), "claims 1073741824 entries"),
    (INT(99), "99 is no type"), (b"4\n1\n3\nV 1", "is no type"),
    (INT(6) + INT(1) + INT(4) + b"code", "holds a function"),
    (INT(8) + INT(1), "holds a function"),
    (INT(4) + INT(1) + T7().string("V 1") + T7().string("os.System"),
     "the class 'os.System', which legacy.nn does not have"),
    (INT(4) + INT(1) + T7().string("V 1") + T7().string("nn.__class__"), "which legacy.nn does not have"),
    (INT(4) + INT(1) + T7().string("V 1") + T7().string("nn.Linear") + INT(0),
     "the state of a Linear in a .t7 file is no table"),
    (INT(4) + INT(1) + T7().string("V 1") + T7().string("torch.FloatStorage") + struct.pack("<q", 1 << 60),
     "claims a storage of 1152921504606846976"),
    (INT(4) + INT(1) + T7().string("V 1") + T7().string("torch.FloatStorage") + struct.pack("<q", -1),
     "claims a storage of -1"),
    (INT(4) + INT(1) + T7().string("V 1") + T7().string("torch.FloatTensor") + INT(1 << 28), "claims 268435456 axes"),
    (T7()([1]) + b"x", "1 bytes follow"),
    (b"".join(INT(3) + INT(i) + INT(1) + INT(1) + bytes(8) for i in range(1, 300)), "inside each other")])
def test_hostile_files(data, why):
    with pytest.raises(ValueError, match=why):
        load_lua(io.BytesIO(data))


def test_tensors_do_not_leave_their_storage():
    x = tg.arange(4.)
    for sizes, strides, offset in [((5,), (1,), 0), ((2, 2), (4, 1), 0), ((2,), (1,), 3), ((2,), (-1,), 1),
                                   ((-1,), (1,), 0), ((1,), (1,), -5),
                                   ((1 << 62,), (1 << 62,), 0)]:
        storage = (INT(4) + INT(2) + T7().string("V 1") + T7().string("torch.FloatStorage") + struct.pack("<q", 4)
                   + x.numpy().tobytes())
        data = (INT(4) + INT(1) + T7().string("V 1") + T7().string("torch.FloatTensor") + INT(len(sizes))
                + struct.pack(f"<{2 * len(sizes) + 1}q", *sizes, *strides, offset + 1) + storage)
        with pytest.raises(ValueError, match="leaves its storage of 4 numbers"):
            load_lua(io.BytesIO(data))


def test_attributes_of_files_replace_no_methods():
    module = read(Object("nn.Identity", forward="x", _tape=3, updateOutput=1, train=True, __class__=4))
    assert module.forward(tg.ones(1)).tolist() == [1] and type(module) is nn.Identity


def test_damaged_files_are_errors_and_nothing_else():
    whole = T7()(
        {"model": Object("nn.Sequential", modules=[Object("nn.Linear", weight=tg.ones(2, 2), bias=tg.ones(2))]),
         "x": tg.arange(5.), "s": "text"})
    chance = random.Random(0)
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 255, chance.randrange(256)])
        try:
            load_lua(io.BytesIO(data[:chance.choice([len(data), chance.randrange(len(data))])]))
        except ValueError:
            pass
