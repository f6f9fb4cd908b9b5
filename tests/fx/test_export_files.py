"""Files of exported programs: PyTorch's format, read without running code from it. exported_by_pytorch.pt2 is from
PyTorch 2.13: relu(linear(x)) * 2 + shift, with a batch of any size."""
import io
import json
import operator
import zipfile
from pathlib import Path

import pytest

import tensorgrad as tg
from tensorgrad.export import Dim, export, load, save

THEIRS = Path(__file__).with_name("exported_by_pytorch.pt2")


def changed(edit, file=THEIRS):
    """Return the archive with `edit(model, records)` applied to its JSON and its records by name."""
    with zipfile.ZipFile(file) as archive:
        records = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    model = json.loads(records["models/model.json"])
    edit(model, records)
    if "models/model.json" in records:
        records["models/model.json"] = json.dumps(model).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in records.items():
            archive.writestr(f"m/{name}", data)
    return out


def test_a_program_of_pytorch():
    program = load(THEIRS)
    assert program.graph_signature.user_inputs == ("x",) and program.graph_signature.buffers == ("shift",)
    assert str(program.range_constraints) == "{'s77': VR[0, int_oo]}"
    module = program.module()
    for x in (tg.arange(6.).reshape(2, 3) - 2, tg.arange(12.).reshape(4, 3) - 7):
        y = tg.relu(x @ module.linear.weight.T + module.linear.bias) * 2 + tg.tensor([1., -1.])
        found = module(x)
        assert tg.allclose(found["y"], y) and tg.allclose(found["top"], y.amax(-1))
    found = module(tg.arange(6.).reshape(2, 3) - 2)["y"].tolist()
    assert found == [[1.0, pytest.approx(2.0599, abs=1e-4)], [1.0, pytest.approx(-0.8948, abs=1e-4)]]     # PyTorch's
    with pytest.raises(AssertionError, match="Guard failed"):
        module(tg.ones(2, 4))


class Net(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = tg.nn.Conv1d(2, 4, 3)
        self.register_buffer("scale", tg.tensor(3, dtype=tg.int16), persistent=False)

    def forward(self, x, more, *, shift=None):
        y = tg.nn.functional.layer_norm(self.conv(x), (3,)).to(tg.float64)
        low, high = (y * self.scale + more[0]).split([1, 3], 1)
        return [low.logsumexp(1), (high[:, 1:, ::2] > 0) & ~tg.tensor([True, False])], high.cummax(-1)[1] + shift


def test_round_trips(tmp_path):
    tg.manual_seed(3)
    net = Net()
    args, kwargs = (tg.arange(10.).reshape(1, 2, 5).sin(), (2, None)), {"shift": tg.tensor(1)}
    program = export(net, args, kwargs, dynamic_shapes=({0: 2 * Dim("half", max=8) - 1}, None, None))
    save(program, tmp_path / "net.pt2")
    program.module()        # saving has not changed it
    again = load(tmp_path / "net.pt2")
    save(again, file := io.BytesIO())
    for each in (again, load(file)):
        calls, called = ([str(node.target) for node in graph.nodes if node.op == "call_function"
                          and node.target is not operator.getitem] for graph in (each.graph, program.graph))
        assert calls == called and len(calls) > 9
        assert str(each.graph_signature) == str(program.graph_signature)
        assert each.range_constraints == program.range_constraints
        assert isinstance(each.state_dict["conv.weight"], tg.nn.Parameter) and each.constants["scale"].item() == 3
        x = tg.arange(30.).reshape(3, 2, 5).cos()
        (low, high), index = each.module()(x, (2, None), shift=tg.tensor(4))
        (low_, high_), index_ = net(x, (2, None), shift=tg.tensor(4))
        assert tg.equal(low, low_) and tg.equal(high, high_) and tg.equal(index, index_)
        with pytest.raises(AssertionError, match="Guard failed"):
            each.module()(tg.ones(2, 2, 5), (2, None), shift=tg.tensor(4))
    assert tg.equal(again.example_inputs[0][0], args[0])


def node(model, k=0):
    return model["graph_module"]["graph"]["nodes"][k]


def weights(records, name, **told):
    path = "data/weights/model_weights_config.json"
    config = json.loads(records[path])
    config["config"][name].update(told)
    records[path] = json.dumps(config).encode()


META = {"dtype": 7, "requires_grad": True, "device": {"type": "cpu", "index": None}, "layout": 7}
HOSTILE = {
    "a function of Python": lambda m, r: node(m).update(target="os.system"),
    "a function that opens files": lambda m, r: node(m).update(target="torch.ops.aten.from_file.default"),
    "an attribute": lambda m, r: node(m, 1).update(target="torch.ops.aten.relu.__class__"),
    "another module": lambda m, r: node(m).update(target="tensorgrad.fx.table.__class__"),
    "code as a name": lambda m, r: node(m, 1)["outputs"][0]["as_tensor"].update(name="a): import os"),
    "code as an argument's name": lambda m, r: m["graph_module"]["graph"]["inputs"][3]["as_tensor"].update(name="x, y"),
    "an unknown value": lambda m, r: node(m, 1)["inputs"][0]["arg"]["as_tensor"].update(name="nowhere"),
    "no graph": lambda m, r: m.pop("graph_module"),
    "a list for a graph": lambda m, r: m.update(graph_module=[]),
    "no model": lambda m, r: r.pop("models/model.json"),
    "another version": lambda m, r: m["schema_version"].update(major=99),
    "a pickled tensor": lambda m, r: weights(r, "shift", use_pickle=True),
    "a size beyond its bytes": lambda m, r: weights(r, "shift", tensor_meta={
        **META, "sizes": [{"as_int": 3}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}}),
    "a negative stride": lambda m, r: weights(r, "shift", tensor_meta={
        **META, "sizes": [{"as_int": 2}], "strides": [{"as_int": -1}], "storage_offset": {"as_int": 1}}),
    "a huge size": lambda m, r: weights(r, "shift", tensor_meta={
        **META, "sizes": [{"as_int": 2 ** 61}], "strides": [{"as_int": 8}], "storage_offset": {"as_int": 0}}),
    "a path out of the archive": lambda m, r: weights(r, "shift", path_name="../../models/model.json"),
    "another container": lambda m, r: m["graph_module"]["module_call_graph"][0]["signature"].update(
        in_spec='[1, {"type": "os.PathLike", "context": "null", "children_spec": []}]'),
}


@pytest.mark.parametrize("edit", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files(edit):
    with pytest.raises((ValueError, RuntimeError)):
        load(changed(edit))


def test_errors(tmp_path):
    assert load(changed(lambda model, records: None)).graph_signature.user_inputs == ("x",)
    with pytest.raises(TypeError, match="The 'ep' parameter must be an instance of 'ExportedProgram', got 'Linear'"):
        save(tg.nn.Linear(1, 1), tmp_path / "a")
    tg.save({}, tmp_path / "b")
    with pytest.raises(ValueError, match="no archive of an exported program"):
        load(tmp_path / "b")
    (tmp_path / "c").write_bytes(b"PK\3\4 nothing")
    with pytest.raises(RuntimeError, match="failed reading zip archive"):
        load(tmp_path / "c")
    assert not (tmp_path / "a").exists()
