"""Tools around graphs: settings, layers for operations, queries of models, algorithms on graphs, pictures."""
import pickle
import subprocess
import sys
import warnings
from xml.etree import ElementTree

import pytest
from support import ROOT, fresh_process
from symbolic_forms import check, equal

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.symbolic import (
    CustomInput,
    Input,
    SymbolicModel,
    add_to_graph,
    config,
    draw_graph,
    graph_algorithms,
    model_tools,
    picture,
    useful_layers,
)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class TestConfig:
    PROGRAM = ("from tensorgrad.symbolic import config as c; print(c.CODEGEN_BY_DEFAULT, c.CODEGEN_MIN_LOOP_LENGTH, "
               "c.API_2_ENABLED_BY_DEFAULT)")

    def test_defaults(self):
        assert fresh_process(self.PROGRAM).split() == ["True", "50", "True"]

    def test_from_the_environment(self):
        settings = {"TENSORGRAD_SYMBOLIC_CODEGEN_BY_DEFAULT": "False", "PYTORCH_SYMBOLIC_CODEGEN_MIN_LOOP_LENGTH": "7",
                    "TENSORGRAD_SYMBOLIC_API_2_ENABLED_BY_DEFAULT": "False"}
        assert fresh_process(self.PROGRAM, **settings).split() == ["False", "7", "False"]
        both = {"TENSORGRAD_SYMBOLIC_CODEGEN_MIN_LOOP_LENGTH": "3", "PYTORCH_SYMBOLIC_CODEGEN_MIN_LOOP_LENGTH": "7"}
        assert fresh_process(self.PROGRAM, **both).split()[1] == "3"

    @pytest.mark.parametrize("text", ["print('run')", "__import__('os').abort()", "'5'", "5.0", "True", "", "1 +",
                                      "[" * 500])
    def test_garbage_is_refused_and_not_run(self, text, monkeypatch, capsys):
        monkeypatch.setenv("PYTORCH_SYMBOLIC_LENGTH", text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(ValueError, match="PYTORCH_SYMBOLIC_LENGTH must be a literal of type int, such as 50"):
                config.read_from_env("LENGTH", 50)
        assert capsys.readouterr().out == ""

    def test_layer_calls_can_be_switched_off(self):
        x, layer = Input((3,)), nn.Linear(3, 2)
        model = SymbolicModel(x, layer(x))
        data = torch.randn(4, 3)
        assert config.is_symbolic_api_2_enabled()
        config.disable_symbolic_api_2()
        try:
            assert not config.is_symbolic_api_2_enabled()
            with pytest.raises(TypeError, match=r"Linear was called with a node.*write x\(layer\)"):
                layer(x)
            assert x(layer).shape == (None, 2) and equal(model(data), layer(data)) and layer(data).shape == (4, 2)
            with config.SymbolicAPI2ContextManager():
                assert layer(x).shape == (None, 2)
            assert not config.is_symbolic_api_2_enabled()
        finally:
            config.enable_symbolic_api_2()
        with config.SymbolicAPI2ContextManager():
            pass
        assert config.is_symbolic_api_2_enabled() and layer(x).shape == (None, 2)


# ── operations as layers ──────────────────────────────────────────────────────────────────────────────────────────────

L = useful_layers
X, Y = torch.arange(12.).view(2, 6) - 4, torch.arange(12.).view(2, 6) % 5 + 1
LAYERS = {
    "LambdaOpLayer": (L.LambdaOpLayer(torch.sin), (X,), torch.sin(X)),
    "NamedLambdaOpLayer": (L.NamedLambdaOpLayer(torch.sin, "Sine"), (X,), torch.sin(X)),
    "CallbackLayer": (L.CallbackLayer(repr), (X,), X),
    "AddOpLayer": (L.AddOpLayer(), (X, Y), X + Y),
    "SubOpLayer": (L.SubOpLayer(), (X, Y), X - Y),
    "MulOpLayer": (L.MulOpLayer(), (X, Y), X * Y),
    "ModOpLayer": (L.ModOpLayer(), (X, Y), X % Y),
    "MatmulOpLayer": (L.MatmulOpLayer(), (X, Y.T), X @ Y.T),
    "ConcatLayer": (L.ConcatLayer(dim=1), (X, Y, X), torch.cat((X, Y, X), 1)),
    "StackLayer": (L.StackLayer(dim=1), (X, Y), torch.stack((X, Y), 1)),
    "ReshapeLayer": (L.ReshapeLayer((3, 2)), (X,), X.view(2, 3, 2)),
    "ViewCopyLayer": (L.ViewCopyLayer((3, -1), batch_size_included=True), (X,), X.view(3, 4)),
    "AggregateLayer": (L.AggregateLayer(torch.argmax, dim=1, keepdim=True), (X,), X.argmax(1, keepdim=True)),
    "UnpackLayer": (L.UnpackLayer(), (X,), (X[0], X[1])),
    "SliceLayer": (L.SliceLayer((slice(None), slice(1, None, 2))), (X,), X[:, 1::2]),
    "SliceLayerSymbolicIdx": (L.SliceLayerSymbolicIdx(), (X, torch.tensor([1, 1, 0])), X[[1, 1, 0]]),
    "MethodCall": (L.MethodCall("clamp", -1, max=3), (X,), X.clamp(-1, 3)),
    "GetAttr": (L.GetAttr("mT"), (X,), X.mT),
}


class TestUsefulLayers:
    @pytest.mark.parametrize("name", LAYERS)
    def test_each_alone_and_in_a_graph(self, name):
        layer, values, expected = LAYERS[name]
        assert type(layer).__name__ == name and equal(layer(*values), expected)
        inputs = [Input(custom_tensor=value) for value in values]
        node = layer(*inputs)
        check(inputs, node if name != "UnpackLayer" else tuple(node), values, expected)
        assert equal(nn.Sequential(layer)(*values), expected) if len(values) == 1 else True
        assert equal(pickle.loads(pickle.dumps(layer))(*values), expected) and isinstance(repr(layer), str)

    def test_all_are_there(self):
        assert (set(LAYERS) == {n for n in L.__all__
                                if n not in ("AnyOpLayer", "NamedAnyOpLayer", "ConcatOpLayer", "StackOpLayer")}
                and len(LAYERS) == 18)
        assert ((L.AnyOpLayer, L.NamedAnyOpLayer, L.ConcatOpLayer, L.StackOpLayer)
                == (L.LambdaOpLayer, L.NamedLambdaOpLayer, L.ConcatLayer, L.StackLayer))

    def test_with_batches_of_unknown_size(self):
        x1, x2 = Input((1, 2, 3)), Input((5, 2, 3))
        assert (L.ConcatLayer(dim=1)(x1, x2).shape == (None, 6, 2, 3) == x1(L.ConcatLayer(dim=1), x2).shape
                == L.ConcatLayer(1)([x1, x2]).shape)
        assert (L.ReshapeLayer((3, -1))(x2).shape == (None, 3, 10) and L.ViewCopyLayer([10, 3])(x2).shape
                == (None, 10, 3))
        assert L.ReshapeLayer((-1, 3), batch_size_included=True)(x2).shape == (None, 3)
        assert (L.AggregateLayer(torch.mean)(x1).shape == () and L.AggregateLayer(torch.sum, (1, 2))(x1).shape
                == (None, 3))
        out, indices = L.AggregateLayer(torch.max, dim=1)(x1)
        assert out.shape == indices.shape == (None, 2, 3)

    def test_classes_and_several_arguments(self):
        """S42: `x(Class, y)` makes the layer; joining is along the axis after the batch unless another is named;
        UnpackLayer takes several, too.
        """
        x1, x2 = Input((1, 2, 3)), Input((5, 2, 3))
        assert (x1(L.ConcatLayer, x2).shape == L.ConcatLayer()(x1, x2).shape == (None, 6, 2, 3)
                and x1(L.StackLayer, x1).shape == (None, 2, 1, 2, 3))
        assert x1(L.AddOpLayer, x1)(nn.Flatten).shape == (None, 6) and L.UnpackLayer()(3, 4) == (3, 4)
        check([x1], x1(L.MulOpLayer, x1), (torch.ones(2, 1, 2, 3) * 3,), torch.ones(2, 1, 2, 3) * 9)

    def test_names_of_steps(self):
        x = Input((3,))
        y = L.NamedLambdaOpLayer(torch.sin, "Sine")(L.AddOpLayer()(x, x))
        assert list(SymbolicModel(x, y).nodes) == ["Input_1", "AddOpLayer_1", "Sine_1"]
        assert list(SymbolicModel(x, L.NamedLambdaOpLayer(torch.sin, "a.b")(x)).nodes)[1] == "a_b_1"

    def test_callbacks_see_real_values(self):
        seen = []
        x = Input((3,))
        model = SymbolicModel(x, L.CallbackLayer(lambda v: seen.append(v.shape))(x) * 2)
        seen.clear()
        model(torch.ones(4, 3))
        assert seen == [(4, 3)]

    def test_copies_are_copies(self):
        assert (L.ViewCopyLayer((6,))(X).data_ptr() != X.data_ptr() and L.ReshapeLayer((6,))(X).data_ptr()
                == X.data_ptr())

    def test_methods_of_other_objects(self):
        words = CustomInput(["b", "a"])
        check(words, (L.MethodCall("index", "a")(words), L.SliceLayer(0)(words), L.GetAttr("__len__")(words)()),
              (["a", "c", "b"],), (0, "a", 3))


# ── questions to models ───────────────────────────────────────────────────────────────────────────────────────────────


class TestModelTools:
    def test_counts_and_shapes(self):
        net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2, bias=False))
        assert model_tools.get_parameter_count(net) == 15 + 6 + 6
        net[0].weight.requires_grad_(False)
        assert (model_tools.get_parameter_count(net) == 27 and model_tools.get_parameter_count(net, only_trainable=True)
                == 15)
        assert model_tools.get_parameter_shapes(net) == [(3, 4), (3,), (3,), (3,), (2, 3)]
        assert model_tools.get_parameter_count(nn.Sequential(net, net)) == 27

    def test_similar_models(self):
        a, b = nn.Linear(4, 3), nn.Linear(3, 3)
        assert (model_tools.model_similar(nn.Sequential(a, b), nn.Sequential(b, a))
                and not model_tools.model_similar(a, b))
        assert not model_tools.model_similar(nn.Sequential(a, b), a)
        # equal counts, other shapes
        assert not model_tools.model_similar(nn.Linear(6, 2, bias=False), nn.Linear(4, 3, bias=False))

    def test_corresponding_parameters(self):
        a, b = nn.Linear(4, 3), nn.Linear(3, 3)
        assert model_tools.models_have_corresponding_parameters(nn.Sequential(a, b), nn.Sequential(b, a))
        assert not model_tools.models_have_corresponding_parameters(nn.Sequential(a, b), a)
        other = nn.Linear(4, 3)
        assert not model_tools.models_have_corresponding_parameters(a, other)
        other.load_state_dict(a.state_dict())
        assert model_tools.models_have_corresponding_parameters(a, other)
        with torch.no_grad():
            other.weight[0, 0] += 1
        assert not model_tools.models_have_corresponding_parameters(a, other)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.bool,
                                       torch.complex64, torch.float16])
    def test_hashes(self, dtype):
        h = model_tools.hash_torch_tensor
        a = torch.tensor([[1, 0, 1], [0, 0, 1]]).to(dtype)
        assert (h(a) == h(a.clone()) == h(a.t().contiguous().t()) and h(a) != h(a.t())
                and h(a) != h(a.flatten()) != h(torch.zeros_like(a).flatten()))
        assert h(a) != h(a.to(torch.complex128)) and h(a.sum()) == h(a.sum()) and h(a[:0]) == h(a[:0])
        assert h(nn.Parameter(a) if a.is_floating_point() else a) == h(a)


# ── algorithms ────────────────────────────────────────────────────────────────────────────────────────────────────────


class TestAlgorithms:
    def test_nodes_between(self):
        x, other = Input((3,)), Input((3,))
        y = x + 1
        z, unused = y * other, y.relu()
        between = graph_algorithms.figure_out_nodes_between
        assert (between([x], [z]) == {x, y, z} and between(outputs=[z]) == {x, y, z, other}
                and between(inputs=[y]) == {y, z, unused})
        assert between([y], [y]) == {y} and between([z], [x]) == set()
        with pytest.raises(ValueError, match="inputs or outputs are needed"):
            between()

    def test_missing_inputs(self):
        x, other = Input((3,)), Input((3,))
        z = x + other
        graph_algorithms.check_for_missing_inputs({x, other, z}, {x, other})
        with pytest.raises(AssertionError, match=r"AddOpLayer \(\(None, 3\)\) depends on the output of a foreign node, "
                                                 r"an input"):
            graph_algorithms.check_for_missing_inputs({x, z}, {x})

    def test_order_and_cycles(self):
        x = Input((3,))
        y = x + 1
        z = y * x
        assert (graph_algorithms.sort_graph_and_check_DAG({z, x, y}) == [x, y, z]
                == graph_algorithms.topological_sort([y, z, x]))
        x._parents = (Input((3,)), Input((3,)))
        assert graph_algorithms.sort_graph_and_check_DAG({z, x, y}) == [x, y, z]
        late = Input((3,))
        y._parents = (late,)                            # made later, and yet a parent
        order = graph_algorithms.sort_graph_and_check_DAG({x, y, z, late})
        assert order.index(late) < order.index(y) < order.index(z)
        late._parents = (z,)
        with pytest.raises(AssertionError, match="not a DAG"):
            graph_algorithms.sort_graph_and_check_DAG({x, y, z, late})

    def test_texts(self):
        node, edge = graph_algorithms.default_node_text, graph_algorithms.default_edge_text
        x = Input((3,))
        assert [node(n) for n in (x, CustomInput([1, 2]), CustomInput(abs), CustomInput(5), CustomInput({}))] == [
            "(None, 3)", "list(2)", "callable", "int", "dict(0)"]
        layers = [nn.Linear(3, 2)(x), x + 1, x.relu(), x.mT, x[0], torch.cat((x, x)), add_to_graph(lambda x: x, x), x]
        assert [edge(n.layer) for n in layers] == ["Linear", "AddOpLayer", ".relu", ".mT", "SliceLayer", "cat",
                                                   "wrap(<lambda>)", ""]

    def test_names_of_variables(self):
        x = Input((3,))
        y = again = x + 1
        name = graph_algorithms.variable_name_resolver({"y": y, "again": again, "x": x, "number": 3, "_x": x})
        assert (name(x), name(y), name(x * 2)) == ("x", "y", "?")


# ── pictures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def two_heads():
    image, vector = Input((3, 8, 8)), Input((6,), custom_name="vector")
    x = nn.Conv2d(3, 4, 3)(image)
    y = nn.Sequential(nn.Linear(6, 5), nn.ReLU())(vector)
    z = nn.Linear(149, 7)(torch.cat((x.flatten(1), y), dim=1))
    return SymbolicModel((image, vector), (z, nn.Linear(7, 2)(z.relu())))


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def boxes(figure):
    """{what the legend calls the colour of boxes: their texts}"""
    axes, legend = figure.axes[0], figure.legends[0]
    kinds = {mark.get_facecolor(): text.get_text()
             for mark, text in zip(legend.get_patches(), legend.get_texts(), strict=True)}
    found = {}
    for patch in axes.patches:
        if patch.get_facecolor() in kinds and patch.get_edgecolor()[3]:
            box = patch.get_path().get_extents()
            text, = [t for t in axes.texts if box.contains(*t.get_position())]
            found.setdefault(kinds[patch.get_facecolor()], []).append(text.get_text())
    return found


def overlapping(figure):
    """Pairs of texts that meet."""
    figure.canvas.draw()
    drawn = [(t.get_text(), t.get_window_extent()) for t in figure.axes[0].texts]
    return [(a, b) for k, (a, first) in enumerate(drawn) for b, second in drawn[k + 1:] if first.overlaps(second)]


class TestDrawGraph:
    pytestmark = pytest.mark.usefixtures("matplotlib")

    @pytest.fixture(autouse=True)
    def matplotlib(self):
        pytest.importorskip("matplotlib").use("Agg")

    def test_a_model(self):
        from matplotlib.figure import Figure
        model = two_heads()
        figure = draw_graph(model=model)
        assert isinstance(figure, Figure) and graph_algorithms.draw_graph is draw_graph
        found = texts(figure)
        assert sorted(found) == sorted([*[str(tuple(node.shape)) for node in model.nodes.values()], "Conv2d",
                                        "Sequential", ".flatten", "cat", "cat", "Linear",
                                        ".relu", "Linear"])
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["input", "output", "hidden"]
        by_kind = boxes(figure)
        assert (sorted(by_kind["input"]) == ["(None, 3, 8, 8)", "(None, 6)"]
                and sorted(by_kind["output"]) == ["(None, 2)", "(None, 7)"])
        assert len(by_kind["hidden"]) == 5

    def test_depth_goes_down(self):
        x = Input((3,))
        y = x.relu()
        z = y + x
        heights = {t.get_text(): t.get_position()[1]
                   for t in draw_graph(inputs=x, outputs=z, node_text_namespace={"x": x, "y": y, "z": z}).axes[0].texts}
        assert heights["x"] < heights["y"] < heights["z"]
        places = {t.get_text(): t.get_position()[0]
                  for t in draw_graph(inputs=x, outputs=z, node_text_namespace={"x": x, "y": y, "z": z},
                                      rotate_graph=True).axes[0].texts}
        assert places["x"] < places["y"] < places["z"]

    @pytest.mark.parametrize("options", [{}, {"rotate_graph": True}, {"rotate_labels": True}, {"figsize": (5, 5)},
                                         {"figsize": (40, 3)},
                                         {"node_text_func": lambda n: "a long text about it\nand more"}])
    def test_texts_do_not_meet(self, options):
        assert not overlapping(draw_graph(model=two_heads(), **options))

    def test_inputs_or_outputs_alone(self):
        x = Input((3,))
        y = x.relu()
        z, w = y * 2, y[0]
        assert (sorted(texts(draw_graph(inputs=x)))
                == sorted(["(None, 3)"] * 3 + ["(3,)", ".relu", "MulOpLayer", "SliceLayer"]))
        assert sorted(boxes(draw_graph(inputs=x))["output"]) == ["(3,)", "(None, 3)"]
        assert (texts(draw_graph(outputs=[z])).count("(None, 3)") == 3
                and "SliceLayer" not in texts(draw_graph(outputs=z)))
        assert boxes(draw_graph(outputs=z))["input"] == ["(None, 3)"]
        assert texts(draw_graph(inputs=y, outputs=(z, w))).count(".relu") == 0
        assert texts(draw_graph(inputs=x, outputs=x)) == ["(None, 3)"]

    def test_given_texts(self):
        x = Input((3,))
        y = x.relu()
        z = nn.Linear(3, 2)(y)
        figure = draw_graph(inputs=x, outputs=z, node_text_func=lambda node: f"depth {node.depth}",
                            edge_text_func=lambda layer: f"<{type(layer).__name__}>")
        assert sorted(texts(figure)) == ["<Linear>", "<Method>", "depth 0", "depth 1", "depth 2"]
        assert sorted(texts(draw_graph(inputs=x, outputs=z, edge_text_func=lambda layer: "",
                                       node_text_namespace={"x": x, "z": z}))) == ["?", "x", "z"]
        assert texts(draw_graph(inputs=x, outputs=x + 0, node_text_func=lambda node: "$\\frac{1}$ _ <b>",
                                edge_text_func=lambda layer: ""))

    def test_the_size(self):
        model = two_heads()
        assert draw_graph(model=model, figsize=(6, 4)).get_size_inches().tolist() == [6, 4]
        width, height = draw_graph(model=model).get_size_inches()
        assert draw_graph(model=model, rotate_graph=True).get_size_inches()[0] > width and height > 3
        x = y = Input((2,))
        for _ in range(400):
            y = y + 1
        assert max(draw_graph(inputs=x, outputs=y).get_size_inches()) <= 101

    def test_show(self, monkeypatch):
        from matplotlib import pyplot
        shown = []
        monkeypatch.setattr(pyplot, "show", lambda *args, **kwargs: shown.append(pyplot.get_fignums()))
        figure = draw_graph(model=two_heads(), show=True)
        assert shown == [[figure.number]] and texts(figure)
        pyplot.close(figure)
        assert pyplot.get_fignums() == []
        draw_graph(model=two_heads())
        assert len(shown) == 1 and pyplot.get_fignums() == []

    def test_errors(self):
        with pytest.raises(KeyError, match="a model, inputs or outputs are needed"):
            draw_graph()
        with pytest.raises(TypeError):
            draw_graph(two_heads())                     # by name only
        with pytest.raises(TypeError, match="must be nodes"):
            draw_graph(inputs=[3])


def test_drawing_without_matplotlib_names_the_extra():
    program = """
import sys; sys.modules["matplotlib"] = None
from tensorgrad.symbolic import Input, draw_graph, picture
x = Input((3,))
try:
    draw_graph(inputs=x, outputs=x + 1)
except ImportError as error:
    print("plot" in str(error), "Matplotlib" in str(error))
try:
    draw_graph(inputs=x, outputs=x + 1, show=True)
except ImportError as error:
    print("plot" in str(error), "Matplotlib" in str(error))
print("(None, 3)" in picture(x + 1).svg())
"""
    assert fresh_process(program).split() == ["True"] * 5


class TestPicture:
    def test_all_formats(self, tmp_path):
        drawn = picture(two_heads())
        svg, dot, html = drawn.svg(), drawn.dot(), drawn.html()
        ElementTree.fromstring(svg)
        for text in (svg, dot, html):
            assert all(word in text for word in ("Conv2d", "(None, 4, 6, 6)", "vector", "Sequential_1", "output 2"))
        assert (drawn._repr_svg_() == svg and "iframe" in drawn._repr_html_()
                and repr(drawn).startswith("<SymbolicModel of 8 steps, 4 leaves and outputs"))
        assert drawn.save(tmp_path / "graph.svg").read_text() == svg

    def test_viz_graph_draws_models_and_nodes(self):
        model = two_heads()
        assert torch.viz.graph(model).dot() == picture(model).dot()
        x = Input((3,))
        assert " at 0x" not in picture(torch.cat((x, x))).dot()
        assert ("relu" in torch.viz.graph(x.relu(), title="Mine").dot()
                and torch.viz.graph(x.relu(), title="Mine").title == "Mine")
        with pytest.raises(TypeError, match="reads|read from tensors"):
            torch.viz.graph(3)
        for bad in ((), (3,), (model, model), (model, x)):
            with pytest.raises(TypeError, match="picture"):
                picture(*bad)

    def wires(self, drawn):
        """(from, to), by titles."""
        nodes = drawn.model.by_id
        return sorted((nodes[e.source].title, nodes[e.target].title) for e in drawn.model.edges)

    def test_wires(self):
        x = Input((4,), custom_name="x")
        y = nn.Linear(4, 4)(x)
        drawn = picture(SymbolicModel(x, y * x))
        assert self.wires(drawn) == [("Linear", "MulOpLayer"), ("MulOpLayer", "output"), ("x", "Linear"),
                                     ("x", "MulOpLayer")]

    def test_models_in_models_are_groups(self):
        x = Input((4,))
        inner = SymbolicModel(x, (nn.Linear(4, 5)(x), x.relu()))
        z = Input((4,), custom_name="z")
        wide, narrow = inner(z)
        model = SymbolicModel(z, nn.Linear(5, 4)(wide) + narrow)
        drawn = picture(model)
        assert {node.title: node.group for node in drawn.model.nodes if node.kind == "step"} == {
            "Linear": (), "relu": ("SymbolicModel_1",), "AddOpLayer": ()}
        assert [node.group for node in drawn.model.nodes if node.title == "Linear"] == [("SymbolicModel_1",), ()]
        assert self.wires(drawn) == [("AddOpLayer", "output"), ("Linear", "AddOpLayer"), ("Linear", "Linear"),
                                     ("relu", "AddOpLayer"), ("z", "Linear"),
                                     ("z", "relu")]
        deeper = picture(SymbolicModel(w := Input((4,)), nn.Sequential(inner.detach_from_graph(), nn.Identity())(w)))
        assert ({node.group for node in deeper.model.nodes if node.kind == "step"}
                == {("Sequential_1", "DetachedSymbolicModel"), ("Sequential_1",)})

    def test_two_calls_of_one_model_are_two_groups(self):
        x = y = Input((4,))
        inner = SymbolicModel(x, nn.Linear(4, 4)(x).relu())
        outer = nn.Sequential(inner, inner)
        assert ([group.title for group in picture(outer(y)).tree.groups]
                == ["", "Sequential", "SymbolicModel", "SymbolicModel"])

    def test_groups_of_other_sizes_have_the_sizes_of_their_use(self):
        x = Input((3, 8, 8))
        inner = SymbolicModel(x, nn.Conv2d(3, 2, 3)(x))
        y = Input((3, 20, 20))
        assert "(None, 2, 18, 18)" in picture(inner(y)).svg()

    def test_several_results(self):
        x = Input((5, 4))
        out, (h, _) = nn.LSTM(4, 3)(x)
        drawn = picture(SymbolicModel(x, (out[:, -1], h)))
        assert self.wires(drawn) == [("Input_1", "LSTM"), ("LSTM", "[0]"), ("LSTM", "[1]"), ("[0]", "[:, -1]"),
                                     ("[0]", "output 2"), ("[1]", "[0]"),
                                     ("[:, -1]", "output 1")]
        assert "(1, 5, 3)" in drawn.svg()

    def test_other_data(self):
        x, f = CustomInput([1, 2]), CustomInput(len)
        drawn = picture(SymbolicModel((x, f), (x + [3], f(x))))
        assert "list(3)" in drawn.svg() and "callable" in drawn.svg()

    def test_switched_off_layer_calls(self):
        x = Input((4,))
        node = x(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
        config.disable_symbolic_api_2()
        try:
            assert "ReLU" in picture(node).svg()
        finally:
            config.enable_symbolic_api_2()

    def test_repeated_blocks_are_told_once(self):
        x = y = Input((4,))
        for _ in range(12):
            y = nn.Linear(4, 4)(y).relu()
        assert any(group.count == 12 for group in picture(SymbolicModel(x, y)).tree.groups)

    def test_pictures_leave_the_graph_as_it_is(self):
        x = Input((4,))
        node = nn.Sequential(nn.Linear(4, 2), nn.ReLU())(x)
        picture(node).svg()
        assert x.children == (node,)

    def test_png(self):
        assert picture(two_heads()).png().startswith(b"\x89PNG")


def test_importing_the_package_draws_in_nothing_optional():
    code = ("import sys, tensorgrad.symbolic; print(sorted(set(sys.modules) & {'matplotlib', 'graphviz', 'PIL', "
            "'networkx', 'scipy'}))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
