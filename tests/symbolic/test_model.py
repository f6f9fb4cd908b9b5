"""Models made of graphs: results, names, copies, files, training, summaries."""
import copy
import gc
import io
import pickle
import threading
import weakref

import pytest
from symbolic_forms import check, equal, forms

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.symbolic import CustomInput, DetachedSymbolicModel, Input, SymbolicModel, add_to_graph, model_tools


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def small():
    x = Input((4,))
    h = nn.Linear(4, 5)(x).relu()
    return SymbolicModel(x, nn.Linear(5, 2)(h))


def later(module, args, out):
    return out + 100


# ── what a model computes ─────────────────────────────────────────────────────────────────────────────────────────────


class TestModel:
    def test_one_or_several_inputs_and_outputs(self):
        """S23: a single output is a value, also in a list; several are a tuple."""
        x, y = Input((3,)), Input((3,))
        z = x + y
        a, b = torch.randn(2, 3), torch.randn(2, 3)
        assert equal(SymbolicModel(x, x * 2)(a), a * 2) and equal(SymbolicModel([x], (x * 2,))(a), a * 2)
        assert equal(SymbolicModel([x], [x * 2], enable_forward_codegen=False)(a), a * 2)
        assert equal(SymbolicModel([x, y], z)(a, b), a + b) and equal(SymbolicModel((x, y), [z, x])(a, b), (a + b, a))
        for bad in (lambda: SymbolicModel(torch.ones(2), z), lambda: SymbolicModel((x, 1), z),
                    lambda: SymbolicModel(x, "z"), lambda: SymbolicModel((), z)):
            with pytest.raises(AssertionError, match="Only SymbolicData allowed in inputs!|Only SymbolicData allowed "
                                                     "in outputs!"):
                bad()
        with pytest.raises(AssertionError, match="twice"):
            SymbolicModel((x, x), z)

    def test_inputs_may_be_outputs_and_outputs_repeat(self):
        x, y = Input((3,)), Input((3,))
        a, b = torch.randn(2, 3), torch.randn(2, 3)
        assert SymbolicModel(x, x)(a) is a
        check((x, y), (x, x + 1, x + 1, x, y), (a, b), (a, a + 1, a + 1, a, b))
        check((x, y), x * 2, (a, b), a * 2)                              # an input may be unused
        z = x + 1
        check(x, (z, z), (a,), (a + 1, a + 1))

    def test_any_nodes_may_be_inputs(self):
        x = Input((4,))
        towers = [nn.Linear(4, 4)(x).relu() for _ in range(3)]
        joined = nn.Linear(4, 2)(sum(towers))
        whole, head = SymbolicModel(x, joined), SymbolicModel(towers, joined)
        data = torch.randn(6, 4)
        values = SymbolicModel(x, towers)(data)
        assert equal(head(*values), whole(data)) and head.input_shape == ((None, 4),) * 3
        assert len(list(head.parameters())) == 2

    def test_seventeen_inputs(self):
        inputs = [Input((5,)) for _ in range(17)]
        layers = [nn.Linear(5, 3) for _ in range(11)]
        outs = [layer(inputs[k] + inputs[16 - k] * inputs[(3 * k) % 17]) for k, layer in enumerate(layers)]
        model = SymbolicModel(inputs, outs)
        for batch in range(10):
            data = [torch.randn(batch, 5) for _ in range(17)]
            by_hand = tuple(layer(data[k] + data[16 - k] * data[(3 * k) % 17]) for k, layer in enumerate(layers))
            assert equal(model(*data), by_hand)

    def test_the_order_is_that_of_creation(self):
        seen = []
        x = Input(batch_shape=(1,))

        def noting(name):
            return lambda value: seen.append(name) or value * 1
        b, a = add_to_graph(noting("b"), x), add_to_graph(noting("a"), x)
        c = add_to_graph(noting("c"), a)
        for name, model in forms(x, (a, c, b), picklable=False):
            seen.clear()
            model(torch.ones(1))
            assert seen == ["b", "a", "c"], name

    def test_what_leads_to_no_output_is_not_computed(self):
        x = Input((3,))
        unused = nn.Linear(3, 9)(x)
        model = SymbolicModel(x, x.relu())
        assert not list(model.parameters()) and unused not in model.nodes.values()

    def test_facts(self):
        x, y = Input((3,)), CustomInput([1])
        z = x.relu()
        model = SymbolicModel((x, y), (z, y))
        assert model.inputs == (x, y) and model.outputs == (z, y)
        assert model.input_shape == ((None, 3), None) and model.output_shape == ((None, 3), None)
        assert SymbolicModel(x, z).output_shape == (None, 3) and SymbolicModel([x], [z]).input_shape == (None, 3)
        b = Input(batch_shape=(2, 3))
        assert SymbolicModel(b, b + 1).output_shape == (2, 3)


class TestErrors:
    def test_outputs_out_of_reach(self):
        x, y = Input((3,)), Input((3,))
        z = x + y
        with pytest.raises(AssertionError, match="foreign node"):
            SymbolicModel(x, z)
        with pytest.raises(AssertionError, match="foreign node"):
            SymbolicModel(x, y)
        with pytest.raises(AssertionError, match="foreign node"):
            SymbolicModel(z, x)

    def test_cycles(self):
        x = Input((3,))
        a = x + 1
        b = a * 2
        a._parents = (x, b)                                              # by force
        with pytest.raises(AssertionError, match="not a DAG"):
            SymbolicModel(x, b)
        c = Input((3,)) + 1
        c._parents = (c,)
        with pytest.raises(AssertionError, match="not a DAG"):
            SymbolicModel(c._parents[0]._call.args[0], c)

    def test_cycles_outside_do_no_harm(self):
        x = Input((3,))
        a = x + 1
        b = a * 2
        x._parents = (b,)
        assert SymbolicModel(a, b)(torch.ones(1, 3)).tolist() == [[2.] * 3]

    def test_the_number_of_arguments(self):
        x, y = Input((3,)), Input((3,))
        a = torch.ones(1, 3)
        with pytest.raises(TypeError, match="argument"):
            SymbolicModel((x, y), x + y)(a)
        with pytest.raises(TypeError, match="Number of inputs doesn't match"):
            SymbolicModel((x, y), x + y, enable_forward_codegen=False)(a)
        with pytest.raises(TypeError):
            SymbolicModel(x, x + 1)(a, a)

    def test_cuda_graphs_are_refused_clearly(self):
        x = Input(batch_shape=(2, 3))
        with pytest.raises(RuntimeError, match="CUDA graphs"):
            SymbolicModel(x, x + 1, enable_cuda_graphs=True)
        assert SymbolicModel(x, x + 1, enable_cuda_graphs=False)(torch.ones(2, 3)).shape == (2, 3)

    def test_errors_inside_show_the_generated_line(self):
        x = Input((3,))
        model = SymbolicModel(x, nn.Linear(3, 2)(x.relu()))
        with pytest.raises(RuntimeError) as caught:
            model(torch.ones(1, 4))
        lines = [str(entry) for entry in caught.traceback]
        assert any("generated forward" in line and "layers[0](" in line for line in lines)


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class TestNames:
    def test_of_layers(self):
        x = Input((4,))
        first = nn.Linear(4, 4)
        y = nn.ReLU()(first(x))
        y = nn.Linear(4, 2)(first(y))
        model = SymbolicModel(x, y)
        assert list(model.nodes) == ["Input_1", "Linear_1", "ReLU_1", "Linear_2", "Linear_3"]
        assert ([name for name, _ in model.named_modules(remove_duplicate=False)]
                == ["", "Linear_1", "ReLU_1", "Linear_2", "Linear_3"])
        assert list(model.state_dict()) == [f"{n}.{p}" for n in ("Linear_1", "Linear_2", "Linear_3")
                                            for p in ("weight", "bias")]
        assert model_tools.get_parameter_count(model) == 20 + 10                # the shared layer counts once
        assert ([name for name, _ in model.named_parameters()]
                == ["Linear_1.weight", "Linear_1.bias", "Linear_3.weight", "Linear_3.bias"])

    def test_chosen_names(self):
        x = Input((4,), custom_name="features")
        y = x
        for _ in range(3):
            y = nn.Linear(4, 4)(y, custom_name="dense")
        model = SymbolicModel(x, y)
        assert list(model.nodes) == ["features", "dense", "dense_2", "dense_3"] and model.dense_2.out_features == 4
        assert "def forward(self, features):" in model._generated_forward_source
        assert model(features=torch.ones(1, 4)).shape == (1, 4)

    def test_a_chosen_name_that_a_number_would_have_given(self):
        x = Input((4,))
        y = nn.Linear(4, 4)(nn.Linear(4, 4)(x, custom_name="Linear_1"))
        assert list(SymbolicModel(x, y).nodes) == ["Input_1", "Linear_1", "Linear_2"]

    @pytest.mark.parametrize("name", ["a.b", ""])
    def test_names_that_cannot_be(self, name):
        x = Input((4,))
        with pytest.raises(ValueError, match="name of a layer"):
            SymbolicModel(x, nn.Linear(4, 4)(x, custom_name=name))

    @pytest.mark.parametrize("name", ["forward", "training", "self", "class", "two words", "é", "layers", "1st",
                                      "torch", "wrap(x)", "__init__", "source"])
    def test_odd_names(self, name):
        x = Input((4,), custom_name=name)
        layer = nn.Linear(4, 4)
        data = torch.randn(2, 4)
        y = torch.relu(layer(x)) + torch.ones(4)
        check(x, y, (data,), torch.relu(layer(data)) + 1)
        y = torch.relu(layer(Input((4,)), custom_name=name))
        try:
            model = SymbolicModel(y.parents[0].parents, y)
        except ValueError as error:
            assert "an attribute that every module has" in str(error) and name in error.args[0]
        else:
            assert equal(model(data), layer(data).relu()) and equal(copy.deepcopy(model)(data), layer(data).relu())

    def test_nodes_by_name(self):
        model = small()
        assert model.get_node("Linear_2") is model.outputs[0] and model.get_node("Input_1") is model.inputs[0]
        with pytest.raises(KeyError, match="Linear_1, Linear_2|Linear_2, Linear_1"):
            model.get_node("Linear_3")

    def test_nested_models(self):
        inner = small()
        x = Input((4,))
        model = SymbolicModel(x, inner(x) + x(inner))
        assert list(model.nodes) == ["Input_1", "SymbolicModel_1", "SymbolicModel_2", "AddOpLayer_1"]
        assert model_tools.get_parameter_count(model) == model_tools.get_parameter_count(inner)
        data = torch.randn(3, 4)
        check(x, inner(x) + x(inner), (data,), inner(data) * 2)

        class Vanilla(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = inner

            def forward(self, x):
                return self.body(x) * 2
        assert equal(Vanilla()(data), inner(data) * 2) and equal(SymbolicModel(x, Vanilla()(x))(data), inner(data) * 2)

    def test_a_strange_model(self):
        """A model of 1,248 parameters that is used several times over, at several depths, counts once."""
        x = Input((12,))
        once = SymbolicModel(x, nn.Linear(24, 40, bias=False)(nn.Linear(12, 24, bias=False)(x))[:, :12])
        y = Input((12,))
        twice = SymbolicModel(y, once(once(y)))
        z = Input((12,))
        strange = SymbolicModel(z, twice(once(z)) + twice(z))
        text = strange.summary(return_string=True)
        assert "Total params: 1248\n" in text and [line.split()[-2] for line in text.splitlines()[4:7]].count("0") >= 1
        data = torch.randn(2, 12)
        assert equal(strange(data), once(once(once(data))) + once(once(data)))


# ── outputs, parts, copies ────────────────────────────────────────────────────────────────────────────────────────────


class TestAddOutput:
    def test_features(self):
        x = Input((3, 8, 8))
        features = nn.Conv2d(3, 4, 3)(x).relu()
        model = SymbolicModel(x, nn.Linear(144, 2)(features.flatten(1)))
        data = torch.randn(2, 3, 8, 8)
        first = model(data)
        assert model.add_output(features) is None
        assert model.outputs[1] is features and model.output_shape == ((None, 2), (None, 4, 6, 6))
        logits, seen = model(data)
        assert equal(logits, first) and equal(seen, model.Conv2d_1(data).relu())

    def test_siblings_and_new_nodes(self):
        lstm, x = nn.LSTM(4, 3, batch_first=True), Input((5, 4))
        out, (h, _) = lstm(x)
        model = SymbolicModel(x, out)
        model.add_output(h)
        model.add_output(nn.Linear(3, 2)(out))
        data = torch.randn(2, 5, 4)
        found = model(data)
        expected, (eh, _) = lstm(data)
        assert (equal(found[:2], (expected, eh)) and found[2].shape == (2, 5, 2)
                and "Linear_1.weight" in model.state_dict())

    def test_errors_change_nothing(self):
        x = Input((4,))
        model = SymbolicModel(x, x + 1)
        with pytest.raises(AssertionError, match="Node is an input"):
            model.add_output(x)
        with pytest.raises(AssertionError, match="out of reach"):
            model.add_output(nn.Linear(4, 4)(Input((4,)) + x))
        with pytest.raises(AssertionError, match="Only SymbolicData"):
            model.add_output(3)
        with pytest.raises(ValueError, match="dot"):
            model.add_output(nn.Linear(4, 4)(nn.Linear(4, 4)(x), custom_name="a.b"))
        assert (model(torch.ones(1, 4)).tolist() == [[2.] * 4] and model.output_shape == (None, 4)
                and not model.state_dict())
        assert list(model.nodes) == ["Input_1", "AddOpLayer_1"]


class TestCopies:
    def test_detached_models(self):
        model = small()
        detached = model.detach_from_graph()
        data = torch.randn(3, 4)
        assert type(detached) is DetachedSymbolicModel and equal(detached(data), model(data))
        for (name, p), (other, q) in zip(model.named_parameters(), detached.named_parameters(), strict=True):
            assert name == other and p is not q and equal(p, q) and type(q) is nn.Parameter
        assert [type(layer).__name__ for layer in detached._execution_order_layers] == ["Linear", "Linear"]
        assert detached._generated_forward_source == model._generated_forward_source

    def test_the_graph_can_go(self):
        model = small()
        nodes = [weakref.ref(node) for node in model.nodes.values()]
        detached = model.detach_from_graph()
        del model
        gc.collect()
        assert not any(node() for node in nodes) and detached(torch.ones(1, 4)).shape == (1, 2)

    def test_deep_copies(self):
        model = small()
        model.eval()
        copied = copy.deepcopy(model)
        assert (type(copied) is DetachedSymbolicModel and type(copy.deepcopy(copied)) is DetachedSymbolicModel
                and not copied.training)
        together = copy.deepcopy([model, model.Linear_1, model])
        assert together[0] is together[2] and together[0].Linear_1 is together[1]
        data = torch.randn(3, 4)
        assert equal(copied(data), model(data)) and equal(copied.detach_from_graph()(data), model(data))

    def test_hooks_attributes_and_modes_come_along(self):
        model = small()
        model.note, seen = {"epoch": 3}, []
        model.register_forward_hook(later)
        model.Linear_1.eval()
        model.Linear_2.weight.requires_grad_(False)
        data = torch.randn(3, 4)
        for copied in (model.detach_from_graph(), copy.deepcopy(model.detach_from_graph()),
                       pickle.loads(pickle.dumps(model))):
            assert (copied.note == {"epoch": 3} and copied.training and not copied.Linear_1.training
                    and not copied.Linear_2.weight.requires_grad)
            seen.append(copied(data))
        assert all(equal(value, model(data)) for value in seen) and not equal(model(data), model.forward(data))

    def test_layers_that_know_the_model(self):
        model = small()
        object.__setattr__(model.Linear_1, "owner", model)
        copied = copy.deepcopy(model)
        assert copied.Linear_1.owner is copied

    def test_shared_layers_stay_shared(self):
        x, layer = Input((4,)), nn.Linear(4, 4)
        model = SymbolicModel(x, layer(layer(x)) + layer.weight)
        for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert copied.Linear_1 is copied.Linear_2 and len(list(copied.parameters())) == 2
            assert any(p is copied.Linear_1.weight for p in copied.parameters())

    def test_pickled_and_saved(self):
        model = small()
        data = torch.randn(3, 4)
        for one in (model, model.detach_from_graph()):
            revived = pickle.loads(pickle.dumps(one))
            assert type(revived) is DetachedSymbolicModel and equal(revived(data), model(data))
            file = io.BytesIO()
            torch.save(one, file)
            file.seek(0)
            assert equal(torch.load(file, weights_only=False)(data), model(data))
        other = small()
        other.load_state_dict(model.state_dict())
        assert equal(other(data), model(data))

    def test_no_code_comes_out_of_a_file(self):
        text = pickle.dumps(small())
        assert b"def forward" not in text

    def test_what_cannot_be_pickled_says_so(self):
        x = Input((4,))
        with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
            pickle.dumps(SymbolicModel(x, add_to_graph(lambda x: x, x)))

    def test_nothing_is_held_between_calls(self):
        """Neither the model nor its nodes hold on to values."""
        for codegen in (True, False):
            x = Input((4,))
            h = nn.Linear(4, 4)(x)
            seen = []
            y = add_to_graph(lambda h, seen=seen: seen.append(weakref.ref(h)) or h * 2, h)
            model = SymbolicModel(x, y, enable_forward_codegen=codegen)
            seen.clear()
            with torch.no_grad():
                model(torch.ones(2, 4))
            gc.collect()
            assert seen and not any(r() for r in seen)

    def test_values_are_let_go_on_the_way(self):
        x = Input((4,))
        alive = []
        y = x
        for _ in range(6):
            y = add_to_graph(lambda t: alive.append(weakref.ref(r := t * 2)) or r, y)
        z = add_to_graph(lambda t: (gc.collect(), t, sum(r() is not None for r in alive))[2], y)
        for codegen in (True, False):
            model = SymbolicModel(x, z, enable_forward_codegen=codegen)
            alive.clear()
            assert model(torch.ones(2, 4)) == 1


class TestSharing:
    def test_several_models_of_one_graph(self):
        x = Input((3, 10, 10))
        nodes, layers = [x], []
        for _ in range(20):
            layers.append(nn.Conv2d(3, 3, 3, padding=1))
            nodes.append(layers[-1](nodes[-1]))
        models = [SymbolicModel(nodes[a], nodes[a + 5]) for a in range(0, 20, 5)]
        value = data = torch.randn(2, 3, 10, 10)
        for model in models:
            value = model(value)
        assert equal(value, SymbolicModel(x, nodes[-1])(data)) and equal(value, nn.Sequential(*layers)(data))
        for a, b in ((0, 7), (3, 20), (5, 6), (11, 11)):
            assert model_tools.get_parameter_count(SymbolicModel(nodes[a], nodes[b])) == (b - a) * 84
        assert models[1].Conv2d_1 is layers[5]


# ── deep graphs and threads ───────────────────────────────────────────────────────────────────────────────────────────


class TestDepth:
    def test_thousands_of_layers(self):
        layers = [nn.Linear(4, 4) if k % 500 == 0 else nn.Identity() for k in range(5000)]
        x = y = Input((4,))
        for layer in layers:
            y = layer(y)
        assert y.depth == 5000 and y.shape == (None, 4) and y.v.shape[1:] == (4,)
        model = SymbolicModel(x, y)
        data = torch.randn(3, 4)
        expected = nn.Sequential(*layers)(data)
        assert equal(model(data), expected)
        z = nn.Linear(4, 2)(y + x)                                       # the graph goes on
        assert equal(SymbolicModel(x, z)(data), z.layer(expected + data))
        assert equal(copy.deepcopy(model)(data), expected) and equal(pickle.loads(pickle.dumps(model))(data), expected)
        assert model.summary(return_string=True).count("Identity_") == 4990
        assert equal(SymbolicModel(x, y, enable_forward_codegen=False)(data), expected)
        assert model_tools.models_have_corresponding_parameters(model, nn.Sequential(*layers))
        gone = weakref.ref(x)
        del x, y, z, model
        gc.collect()
        assert gone() is None

    def test_functions_many_deep(self):
        x = y = Input((2,))
        for _ in range(2500):
            y = y + 1
        check(x, y, (torch.zeros(1, 2),), torch.full((1, 2), 2500.))


def test_threads():
    """Concurrent calls of a model from several threads equal sequential ones, with and without generated source."""
    x, y = Input((8,)), Input((8,))
    layers = [nn.Linear(8, 8) for _ in range(6)]
    h = x
    for layer in layers:
        h = add_to_graph(lambda parts, scale: (parts[0] + parts[1]["k"]) * scale, (layer(h), {"k": y}),
                         scale=0.5).tanh()
    pairs = [(torch.randn(5, 8), torch.randn(5, 8)) for _ in range(8)]
    for codegen in (True, False):
        model = SymbolicModel((x, y), h, enable_forward_codegen=codegen)
        expected = [model(*pair) for pair in pairs]
        found = {}

        def work(k, model=model, found=found):
            for _ in range(20):
                found.setdefault(k, []).append(model(*pairs[k]))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(len(pairs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(len(found[k]) == 20 and all(equal(value, expected[k]) for value in found[k])
                   for k in range(len(pairs)))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 3          # unmistakably its own


def test_functions_with_gradients_of_their_own():
    x = Input((4,))
    data = torch.randn(2, 4, requires_grad=True)
    for node in (add_to_graph(Square.apply, x), Square.apply(x)):
        g, = torch.autograd.grad(SymbolicModel(x, node)(data).sum(), data)
        assert torch.allclose(g, data * 3)
    assert list(SymbolicModel(x, node).nodes) == ["Input_1", "Square_apply_1"]


def test_deep_networks_run_as_one_loop():
    x = y = Input((4,))
    layers = [nn.Linear(4, 4) for _ in range(250)]
    for layer in layers:
        y = layer(y)
    assert SymbolicModel(x, y)._generated_forward_source.splitlines() == [
        "def forward(self, i0):", "    layers = callables(self)", "    x000 = i0", "    for layer in layers[0:250]:",
        "        x000 = layer(x000)",
        "    return x000"]


# ── the summary ───────────────────────────────────────────────────────────────────────────────────────────────────────


class TestSummary:
    def test_text(self):
        inputs = Input(shape=(1, 28, 28))
        x = nn.Flatten()(inputs)
        x = nn.Linear(x.shape[1], 10)(x)(nn.Softmax(1))
        rows = ["     Layer       Output shape        Params   Parent   ",
                "1    Input_1     (None, 1, 28, 28)   0                 ",
                "2    Flatten_1   (None, 784)         0        1        ",
                "3    Linear_1    (None, 10)          7850     2        ",
                "4*   Softmax_1   (None, 10)          0        3        "]
        expected = ["_" * 55, rows[0], "=" * 55, *rows[1:], "=" * 55, "Total params: 7850", "Trainable params: 7850",
                    "Non-trainable params: 0", "_" * 55]
        assert SymbolicModel(inputs=inputs, outputs=x).summary(return_string=True) == "\n".join(expected)

    def test_printed(self, capsys):
        model = small()
        assert model.summary() is None
        assert capsys.readouterr().out == model.summary(return_string=True) + "\n"

    def test_several_siblings_are_outputs(self):
        lstm, x = nn.LSTM(4, 3), Input((5, 4))
        out, (h, c) = lstm(x)
        lines = SymbolicModel(x, (out, h, c)).summary(return_string=True).splitlines()
        assert sum("*" in line for line in lines) == 3 and any("(1, 5, 3)" in line for line in lines)

    def test_frozen_parameters_and_other_data(self):
        x, y = Input((4,)), CustomInput({"a": 1})
        layer = nn.Linear(4, 4)
        layer.bias.requires_grad_(False)
        text = SymbolicModel((x, y), (layer(layer(x)), y["a"])).summary(return_string=True)
        assert "Total params: 20\nTrainable params: 16\nNon-trainable params: 4\n" in text
        assert any(line.split()[1:3] == ["Input_2", "dict"] for line in text.splitlines())
        # shared: counted once
        assert [line.split()[-2] for line in text.splitlines() if "Linear" in line] == ["20", "0"]

    def test_parameters_that_are_arguments(self):
        x = Input((4,))
        scale = nn.Parameter(torch.ones(4))
        model = SymbolicModel(x, x * scale)
        assert "Total params: 4" in model.summary(return_string=True) and [*model.state_dict()] == ["constant_1"]


# ── models are modules ────────────────────────────────────────────────────────────────────────────────────────────────


class TestModule:
    def test_training(self):
        x = Input((2,))
        model = SymbolicModel(x, nn.Linear(16, 1)(nn.Linear(2, 16)(x).tanh()))
        data = torch.tensor([[0., 0.], [0., 1.], [1., 0.], [1., 1.]])
        target = torch.tensor([[0.], [1.], [1.], [0.]])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(200):
            loss = nn.functional.mse_loss(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert loss < 0.02

    def test_modes_hooks_and_dtypes(self):
        x = Input((4,))
        model = SymbolicModel(x, nn.Dropout(0.9)(nn.BatchNorm1d(4)(x)) + torch.ones(4))
        data = torch.randn(8, 4)
        model.eval()
        assert not model.Dropout_1.training and equal(model(data), model.BatchNorm1d_1(data) + 1)
        calls = []
        model.register_forward_hook(lambda module, args, out: calls.append(out.shape))
        model(data)
        assert calls == [(8, 4)]
        model.double()
        assert model(data.double()).dtype == torch.float64 and model.constant_1.dtype == torch.float64

    def test_moves_to_a_device(self):
        model = small().to("meta")
        assert ({p.device.type for p in model.parameters()} == {"meta"}
                and model(torch.empty(2, 4, device="meta")).shape == (2, 2))

    def test_tracing_leaves_no_trace(self):
        norm, x = nn.BatchNorm1d(4), Input((4,))
        before = {name: b.clone() for name, b in norm.named_buffers()}
        torch.manual_seed(5)
        state = torch.get_rng_state()
        y = nn.Dropout()(norm(x))
        y.shape, y.v
        assert all(equal(b, before[name]) for name, b in norm.named_buffers()) and equal(torch.get_rng_state(), state)
        assert nn.BatchNorm1d(4)(Input((4,), batch_size=4)).shape == (4, 4)
        # no batch of one while the graph is built
        assert nn.BatchNorm1d(4)(x).shape == (None, 4)

    def test_lazy_layers_and_subclasses(self):
        x = Input((6,))
        y = nn.LazyLinear(3)(x)
        assert y.shape == (None, 3) and y.layer.weight.shape == (3, 6)

        class Twice(nn.Linear):
            def forward(self, x, times=2):
                return super().forward(x) * times
        node = Twice(6, 2)(x, times=3)
        assert equal(SymbolicModel(x, node)(torch.ones(1, 6)), node.layer(torch.ones(1, 6), times=3))

    def test_functional_calls_and_vmap(self):
        model = small()
        data = torch.randn(3, 4)
        weights = {name: p * 2 for name, p in model.named_parameters()}
        expected = nn.functional.linear(nn.functional.linear(data, weights["Linear_1.weight"],
                                                             weights["Linear_1.bias"]).relu(),
                                        weights["Linear_2.weight"], weights["Linear_2.bias"])
        assert torch.allclose(torch.func.functional_call(model, weights, (data,)), expected)
        assert torch.allclose(torch.func.vmap(model)(data), model(data), atol=1e-6)
