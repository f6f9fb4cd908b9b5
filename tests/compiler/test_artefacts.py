"""Files of compiled programs: they run without the program, hold no code, and malformed ones are refused."""
import json
import random
import zipfile
from io import BytesIO

import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn

pytestmark = cpu_only


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.lstm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.LSTM(4, 3, batch_first=True)
        self.register_buffer("scale", torch.tensor(2.0, dtype=torch.bfloat16))

    def forward(self, x, *, shift=1):
        y = torch.relu(self.norm(self.conv(x)))
        out, (h, c) = self.lstm(y.flatten(2).transpose(1, 2)[:, ::2])
        return {"out": out + shift, "state": [h, c * self.scale], "input": x, "name": "net", "mask": out > 0}


def written(**kwargs):
    torch.manual_seed(0)
    model, x, file = Net().eval(), torch.randn(2, 1, 5, 5), BytesIO()
    torch.compiler.save(torch.compile(model), file, (x,), kwargs)
    return model, x, file


def test_programs_run_from_their_files():
    model, x, file = written(shift=2)
    loaded = torch.compiler.load(file)
    with torch.no_grad():
        got, want = loaded(x, shift=2), model(x, shift=2)
    assert got["input"] is x and got["name"] == "net" and list(got) == list(want)
    for g, w in zip([got["out"], got["mask"], *got["state"]], [want["out"], want["mask"], *want["state"]], strict=True):
        assert g.dtype is w.dtype and g.stride() == w.stride()
        torch.testing.assert_close(g, w)
    for args, kwargs in (((x,), {}), ((x,), {"shift": 3}), ((x[:1],), {"shift": 2}), ((x.double(),), {"shift": 2}),
                         (([x],), {"shift": 2})):
        with pytest.raises(RuntimeError, match="Net was saved for"):
            loaded(*args, **kwargs)
    with pytest.raises(RuntimeError, match="compiled code has no backward"):
        loaded(x.requires_grad_(), shift=2)


def test_programs_that_files_cannot_hold_are_refused(tmp_path):
    x = torch.ones(2)
    for program, error, words in ((lambda x: x + 1 if x.sum() > 0 else x, RuntimeError, "is read, at .*test_artefacts"),
                                  (lambda x: x + torch.rand(2), NotImplementedError, "draw_uniform"),
                                  (lambda x: x.view(torch.int32) + 1, NotImplementedError, "files have no")):
        path = tmp_path / "program"
        with pytest.raises(error, match=words):
            torch.compiler.save(program, path, (x,))
        assert not list(tmp_path.iterdir())
    torch.compiler.save(torch.sin, tmp_path / "program", x)
    torch.testing.assert_close(torch.compiler.load(tmp_path / "program")(x), x.sin())
    with pytest.raises(FileNotFoundError):
        torch.compiler.load(tmp_path / "nothing")


def places(value, path=()):
    """Yield the path of each value in a JSON document."""
    if path:
        yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*path, key))


def test_malformed_files_are_value_errors():
    _, x, file = written()
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    text, chosen, refused = entries["program.json"].decode(), random.Random(0), 0

    def loaded(text, **others):
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name, data in {**entries, "program.json": text, **others}.items():
                archive.writestr(name, data)
        return torch.compiler.load(out)
    assert set(loaded(text)(x)) == {"out", "state", "input", "name", "mask"}
    news = [0, -1, 1 << 60, None, [], {}, "x", {"node": "x"}, {"op": "as_strided"}, True, 0.5, [1, 2]]
    for _ in range(60):
        told = json.loads(text)
        *path, last = chosen.choice(list(places(told)))
        part = told
        for key in path:
            part = part[key]
        part[last] = chosen.choice(news)
        try:
            loaded(json.dumps(told))
        except ValueError:
            refused += 1
    assert refused > 40
    deep = "[" * 100_000 + "]" * 100_000
    for bad in ("{}", "[1]", "no", deep, text.replace("program 1", "program 2"), text.replace('"relu"', '"as_strided"'),
                text.replace("builtins.dict", "collections.defaultdict")):
        with pytest.raises(ValueError, match=r"torch\.compiler\.load"):
            loaded(bad)
    with pytest.raises(ValueError, match="does not have"):
        loaded(text, **{"tensors/0": b"123"})
    with pytest.raises(ValueError, match="no valid program"):
        torch.compiler.load(BytesIO(b"no archive"))
