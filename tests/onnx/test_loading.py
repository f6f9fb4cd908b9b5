"""Models that are loaded from ONNX files: what they compute, that they learn, and that bad files do no harm."""
import copy
import importlib
import os
import pickle
import random

import numpy as np
import pytest
from support import needed

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.graph import lower
from tensorgrad.onnx.__main__ import main
from tensorgrad.onnx.errors import InvalidModelError, UnsupportedModelError

onnx = needed("onnx")
onnxruntime = needed("onnxruntime")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def value(name, kind=FLOAT, shape=("n", 2)):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs=(), outputs=("y",), tensors=None, opset=17, **parts):
    """Make a model of nodes (operator, inputs, outputs, attributes)."""
    made = [helper.make_node(*node[:3], **(node[3] if len(node) > 3 else {})) for node in nodes]
    graph = helper.make_graph(made, "graph", [i if not isinstance(i, str) else value(i) for i in inputs],
                              [value(name) for name in outputs],
                              [numpy_helper.from_array(np.asarray(a), name) for name, a in (tensors or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("own", 1)],
                             **parts)


def load(proto, **options):
    return torch.onnx.load(proto.SerializeToString(), **options)


def reference(proto, *arrays):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in proto.graph.input], arrays, strict=True)))


@pytest.fixture
def x():
    return torch.tensor([[1.0, -2.0], [3.0, 0.5], [-1.0, 4.0]])


# ── programs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("module", "gelu leakyrelu gru scatternd convtranspose split cumsum lstm roialign "
                         "convinteger nonmaxsuppression rotaryembedding".split())
def test_the_tests_of_onnx(module):
    from onnx.backend.test.case import node
    before = len(node._NodeTestCases)
    importlib.import_module(f"onnx.backend.test.case.node.{module}")        # adds its cases to the list
    cases = [case for case in node._NodeTestCases[before:] if "expanded" not in case.name
             and case.model.opset_import[0].version <= 23]
    assert cases
    for case in cases:
        inputs, wanted = case.data_sets[0]
        try:
            loaded = load(case.model)
        except InvalidModelError as error:
            assert "data type" in str(error), case.name          # numbers of 4 bits
            continue
        found = loaded(*[torch.from_numpy(np.array(a)) for a in inputs])
        for a, b in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b, 1e-3, 1e-6, err_msg=case.name)


def test_names_of_weights_are_those_of_the_model_that_was_exported(x):
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)).eval()
    loaded = torch.onnx.load(bytes(torch.onnx.export(net, (x,)).model_proto.SerializeToString()))
    assert set(loaded.state_dict()) == set(net.state_dict()) and not loaded.training
    torch.testing.assert_close(loaded(x), net(x))
    loaded.load_state_dict({name: p + 1 for name, p in net.state_dict().items()})
    assert not torch.allclose(loaded(x), net(x))


def test_a_loaded_model_learns_and_is_saved_again(x):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 1)).eval()
    images, wanted = torch.randn(5, 1, 4, 4), torch.randn(5, 1)
    first = torch.onnx.export(net, (images,), do_constant_folding=False).model_proto
    loaded = load(first)
    gradients = []
    for each in (net, loaded):
        each.train()
        loss = nn.functional.mse_loss(each(images), wanted)
        loss.backward()
        gradients.append({name: p.grad for name, p in each.named_parameters()})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient)
    for name, buffer in loaded.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            torch.testing.assert_close(buffer, net.get_buffer(name))
    optimizer = torch.optim.SGD(loaded.parameters(), 0.1)
    optimizer.step()
    again = load(torch.onnx.export(loaded.eval(), (images,)).model_proto)
    torch.testing.assert_close(again(images), loaded(images))


def test_copies_and_pickles(x):
    loaded = load(model([("MatMul", ["x", "w"], ["y"])], ["x"], tensors={"w": np.float32([[1, 2], [3, 4]])}))
    for other in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        assert torch.equal(other(x), loaded(x))
    assert torch.equal(loaded(x=x), loaded(x))
    assert loaded.double()(x.double()).dtype == torch.float64 if loaded.inputs[0].dtype is None else True


@pytest.mark.parametrize("operator, options", [
    ("Gather", {}), ("GatherElements", {}), ("GatherND", {}), ("ScatterND", {"reduction": "max"}),
    ("ScatterElements", {}), ("ScatterElements", {"reduction": "mul"})])
def test_indices_that_are_inputs(operator, options, x):
    """Indices below 0 count from the end, others out of range raise, and lowering a model reads no value."""
    proto = model([(operator, ["x", "i", *["new"] * operator.startswith("Scatter")], ["y"], options)],
                  ["x", value("i", INT64, (2, 1))], opset=18,
                  tensors={"new": np.ones((2, 2) if operator == "ScatterND" else (2, 1), "f")})
    loaded = load(proto)
    given = torch.tensor([[1], [-3]])
    want = reference(proto, x.numpy(), given.numpy())[0]
    np.testing.assert_array_equal(loaded(x, given).detach().numpy(), want)
    for wrong in (3, -4):
        with pytest.raises((IndexError, RuntimeError), match="ind"):
            loaded(x, torch.tensor([[1], [wrong]]))
    if operator != "ScatterND":
        np.testing.assert_array_equal(lower(loaded, (x, given))(x, given).detach().numpy(), want)


def branches():
    made = []
    for name, op in (("then", "Add"), ("else", "Mul")):
        made.append(helper.make_graph([helper.make_node(op, ["x", "w"], [name])], name, [], [value(name)]))
    return {"then_branch": made[0], "else_branch": made[1]}


def test_graphs_see_values_around_them(x):
    proto = model([("ReduceSum", ["x"], ["s"], {"keepdims": 0}), ("Greater", ["s", "zero"], ["c"]),
                   ("If", ["c"], ["y"], branches())], ["x"],
                  tensors={"w": np.float32([1, 2]), "zero": np.float32(0)})
    loaded = load(proto)
    for sign in (1, -1):
        np.testing.assert_allclose(loaded(sign * x).detach().numpy(), reference(proto, sign * x.numpy())[0])
    loaded(x).sum().backward()
    assert torch.equal(loaded.w.grad, torch.tensor([3.0, 3.0]))


def test_loops(x):
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "w"], ["b"]), helper.make_node("ReduceMax", ["b"], ["m"], keepdims=0),
         helper.make_node("Less", ["m", "limit"], ["again"]), helper.make_node("Identity", ["b"], ["row"])],
        "body", [value("i", INT64, ()), value("go", onnx.TensorProto.BOOL, ()), value("a")],
        [value("again", onnx.TensorProto.BOOL, ()), value("b"), value("row")])
    proto = model([("Loop", ["most", "", "x"], ["y", "rows"], {"body": body})], ["x"], ["y", "rows"],
                  {"most": np.int64(9), "w": np.float32([1, 2]), "limit": np.float32(12)})
    for found, wanted in zip(load(proto)(x), reference(proto, x.numpy()), strict=True):
        np.testing.assert_allclose(found.detach().numpy(), wanted)


def test_functions_of_the_file(x):
    function = helper.make_function(
        "own", "Scaled", ["a", "b"], ["c"],
        [helper.make_node("Mul", ["a", "b"], ["t"]), helper.make_node("LeakyRelu", ["t"], ["c"])],
        [helper.make_opsetid("", 17)], ["alpha"])
    function.node[1].attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    proto = model([("Scaled", ["x", "w"], ["h"], {"domain": "own", "alpha": 0.5}), ("Scaled", ["h", "w"], ["y"],
                                                                                    {"domain": "own"})],
                  ["x"], tensors={"w": np.float32([2, 3])}, functions=[function])
    np.testing.assert_allclose(load(proto)(x).detach().numpy(),
                               nn.functional.leaky_relu(nn.functional.leaky_relu(x * torch.tensor([2.0, 3]), 0.5)
                                                        * torch.tensor([2.0, 3]), 0.01).numpy())


@pytest.mark.parametrize("opset,node,wanted", [
    (6, ("Add", ["x", "w"], ["y"], {"broadcast": 1, "axis": 0}), lambda x, w: x + w[:, None]),
    (10, ("Clip", ["x"], ["y"], {"min": -1.0}), lambda x, w: x.clip(-1)),
    (11, ("Softmax", ["x"], ["y"], {"axis": 0}), lambda x, w: np.exp(x) / np.exp(x).sum()),
    (12, ("Squeeze", ["x3"], ["y"], {"axes": [0]}), lambda x, w: x),
    (9, ("Slice", ["x"], ["y"], {"starts": [1], "ends": [9], "axes": [0]}), lambda x, w: x[1:]),
    (10, ("Pad", ["x"], ["y"], {"pads": [1, 0, 0, 0], "value": 7.0}), lambda x, w: np.pad(x, ((1, 0), (0, 0)),
                                                                                      constant_values=7))])
def test_old_versions_of_operators(opset, node, wanted, x):
    w = np.float32([5, 6, 7])
    nodes = [("Unsqueeze", ["x"], ["x3"], {"axes": [0]}), node] if "x3" in node[1] else [node]
    found = load(model(nodes, ["x"], tensors={"w": w}, opset=opset))(x)
    np.testing.assert_allclose(found.detach().numpy(), wanted(x.numpy(), w), 1e-6)


def test_operators_of_ones_own(x):
    proto = model([("Twice", ["x"], ["y"], {"domain": "own", "by": 2.0}), ("Thrice", ["x"], ["z"], {"domain": "own"})],
                  ["x"])
    with pytest.raises(UnsupportedModelError, match=r"own::Twice \(1\), own::Thrice \(1\)"):
        load(proto)
    loaded = load(proto, operators={"own::Twice": lambda x, by: x * by, "own::Thrice": lambda x: 3 * x})
    assert torch.equal(loaded(x), 2 * x)


def test_inputs_are_checked(x):
    loaded = load(model([("Relu", ["x"], ["y"])], ["x"]))
    for error, call, text in ((TypeError, lambda: loaded(), "'x' is missing"),
                              (TypeError, lambda: loaded(x, x), "2 values"), (TypeError, lambda: loaded(x, z=x), "z"),
                              (TypeError, lambda: loaded(1), "must be a tensor"),
                              (ValueError, lambda: loaded(x.double()), r"x: float32\[n, 2\].*float64"),
                              (ValueError, lambda: loaded(x.t()), r"shape \[2, 3\]")):
        with pytest.raises(error, match=text):
            call()


def test_the_command(tmp_path, capsys):
    path = tmp_path / "m.onnx"
    path.write_bytes(model([("Relu", ["x"], ["y"])], ["x"]).SerializeToString())
    assert main([str(path), "--size", "n=3", "--all"]) == 0
    shown = capsys.readouterr().out
    assert "x: float32[n, 2]" in shown and "relu 1" in shown
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert "ms (the first call" in lines["eager"] and "ms (the first call" in lines["compiled"]
    path.write_bytes(b"text")
    assert main([str(path)]) == 1 and "m.onnx" in capsys.readouterr().err


# ── files that are bad ────────────────────────────────────────────────────────────────────────────────────────────────


def outside(tmp_path, location, size=16, **entries):
    """Return the path of a model whose weight is in another file."""
    proto = model([("MatMul", ["x", "w"], ["y"])], ["x"], tensors={"w": np.ones((2, 2), np.float32)})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in {"location": location, "length": str(size), **entries}.items():
        tensor.external_data.add(key=key, value=str(text))
    path = tmp_path / "models" / "m.onnx"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(proto.SerializeToString())
    return path


def test_tensors_in_other_files(tmp_path, x):
    path = outside(tmp_path, "deep/w.bin", offset=8)
    with pytest.raises(FileNotFoundError, match=r"deep/w\.bin"):
        torch.onnx.load(path)
    (path.parent / "deep").mkdir()
    (path.parent / "deep" / "w.bin").write_bytes(bytes(8) + np.float32([1, 2, 3, 4]).tobytes())
    assert torch.equal(torch.onnx.load(path)(x), x @ torch.tensor([[1.0, 2], [3, 4]]))
    with path.open("rb") as file, pytest.raises(InvalidModelError, match="no folder"):
        torch.onnx.load(file)


@pytest.mark.parametrize("entries", [{"location": "../secret"}, {"location": "deep/../../secret"},
                                     {"location": "{outside}/secret"}, {"location": "link"}, {"location": "way/secret"},
                                     {"location": "w.bin", "offset": -8}, {"location": "w.bin", "offset": 1 << 62},
                                     {"location": "w.bin", "offset": 8}, {"location": "w.bin", "length": 12},
                                     {"location": "w.bin", "offset": "0x0"}, {"location": "\0"},
                                     {"location": "a" * 5000}])
def test_other_files_are_within_the_folder(tmp_path, entries):
    (tmp_path / "secret").write_bytes(bytes(16))
    entries["location"] = entries["location"].format(outside=tmp_path)
    path = outside(tmp_path, **entries)
    (path.parent / "w.bin").write_bytes(bytes(16))
    os.symlink(tmp_path / "secret", path.parent / "link")
    os.symlink(tmp_path, path.parent / "way")
    with pytest.raises(InvalidModelError, match="the tensor 'w'"):
        torch.onnx.load(path)


def tensor(dims, data=b"", kind=FLOAT, **fields):
    made = onnx.TensorProto(dims=dims, data_type=kind, name="w", **fields)
    if data:
        made.raw_data = data
    return made


@pytest.mark.parametrize("bad", [tensor([1 << 40], b"1234"), tensor([2], b"1234"), tensor([-2], b"12345678"),
                                 tensor([1 << 62, 4], b"1234"), tensor([0, 1 << 62], b""),
                                 tensor([1 << 50], float_data=[1.0]),
                                 tensor([2], kind=99), tensor([2], kind=8, string_data=[b"a", b"b"])])
@pytest.mark.parametrize("place", ["initializer", "attribute", "function"])
def test_tensors_have_the_data_of_their_shape(bad, place):
    proto = model([("Relu", ["x"], ["y"])], ["x"])
    constant = helper.make_node("Constant", [], ["c"])
    constant.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(bad)
    if place == "initializer":
        proto.graph.initializer.append(bad)
    elif place == "attribute":
        proto.graph.node.append(constant)
    else:
        proto.functions.append(helper.make_function("own", "F", [], ["c"], [constant], [helper.make_opsetid("", 17)]))
        proto.graph.node.append(helper.make_node("F", [], ["c"], domain="own"))
    with pytest.raises(InvalidModelError, match="the tensor 'w'|data type"):
        load(proto)


@pytest.mark.parametrize("indices,dims", [([0, 9], [4]), ([-1, 0], [4]), ([[0, 0], [2, 0]], [2, 2]),
                                          ([0, 1], [1 << 40]), ([0], [4]), ([0, 1], [-4])])
def test_sparse_tensors(indices, dims):
    proto = model([("Relu", ["x"], ["y"])], ["x"])
    proto.graph.sparse_initializer.append(onnx.SparseTensorProto(
        values=numpy_helper.from_array(np.float32([1, 2]), "w"), dims=dims,
        indices=numpy_helper.from_array(np.array(indices), "i")))
    with pytest.raises(InvalidModelError, match="sparse"):
        load(proto)
    good = model([("Add", ["x", "w"], ["y"])], ["x"])
    good.graph.sparse_initializer.append(onnx.SparseTensorProto(
        values=numpy_helper.from_array(np.float32([5]), "w"), dims=[3, 2],
        indices=numpy_helper.from_array(np.array([[1, 0]]), "i")))
    assert load(good)(torch.zeros(3, 2)).tolist() == [[0, 0], [5, 0], [0, 0]]


def test_regions_without_points_are_zeros_and_blocks_have_a_size():
    regions = {"r": np.ones((1, 4), "f4"), "i": np.array([0])}
    for sizes in ({}, {"output_height": 2}):
        found = load(model([("RoiAlign", ["x", "r", "i"], ["y"], sizes)], [value("x", shape=(1, 1, 4, 4))],
                           tensors=regions))(torch.ones(1, 1, 4, 4))
        assert found.shape == (1, 1, sizes.get("output_height", 1), 1) and not found.any()
    for operator in ("DepthToSpace", "SpaceToDepth"):
        blocks = load(model([(operator, ["x"], ["y"], {"blocksize": 0})], [value("x", shape=(1, 4, 2, 2))]))
        with pytest.raises(ValueError, match="blocksize must be 1 or more, not 0"):
            blocks(torch.ones(1, 4, 2, 2))


def test_programs_that_cannot_be():
    nothing = [("Relu", ["a"], ["b"]), ("Relu", ["b"], ["a"])]
    calls = [helper.make_function("own", f"F{i}", ["a"], ["b"],
                                  [helper.make_node(f"F{i + 1}" if i < 40 else "Neg", [name], [out],
                                                    domain="own" if i < 40 else "")
                                   for name, out in (("a", "t"), ("t", "b"))], [helper.make_opsetid("", 17)])
             for i in range(41)]
    itself = helper.make_function("own", "F", ["a"], ["b"], [helper.make_node("F", ["a"], ["b"], domain="own")],
                                  [helper.make_opsetid("", 17)])
    for proto, text in (
            (model(nothing, ["x"], ["a"]), "before a node gives it"), (model([("Relu", ["x"], ["x"])], ["x"]), "twice"),
            (model([("Relu", ["x"], ["z"])], ["x"]), "'y' is used before"),
            (model([("Relu", ["x", "x"], ["y"])], ["x"]), "calls Relu"),
            (model([("Relu", ["x"], ["y"], {"unknown": 1})], ["x"]), "calls Relu"),
            (model([("F", ["x"], ["y"], {"domain": "own"})], ["x"], functions=[itself]), "calls itself"),
            (model([("F0", ["x"], ["y"], {"domain": "own"})], ["x"], functions=calls), "more than"),
            (model([("Relu", ["x"], ["y"])], ["x"], opset=99), "version 99")):
        with pytest.raises(InvalidModelError, match=text):
            load(proto)


def test_damaged_files_raise():
    proto = model([("Conv", ["x", "w"], ["h"], {"pads": [1, 1, 1, 1]}), ("Relu", ["h"], ["y"])],
                  [value("x", shape=(1, 1, 4, 4))], tensors={"w": np.ones((1, 1, 3, 3), np.float32)})
    data, draw = proto.SerializeToString(), random.Random(0)
    for _ in range(300):
        bad = bytearray(data)
        for _ in range(draw.randrange(1, 4)):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        bad = bad[:draw.randrange(len(bad))] if draw.random() < 0.2 else bad
        try:
            torch.onnx.load(bytes(bad))
        except (InvalidModelError, UnsupportedModelError):
            pass
