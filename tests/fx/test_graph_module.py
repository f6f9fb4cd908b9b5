"""torch.fx.GraphModule: generated modules, their copies, files and errors; Interpreter and Transformer."""
import copy
import io
import operator
import pickle
import subprocess
import sys

import pytest
from fx_programs import modules

import tensorgrad as tg
from tensorgrad.fx import CodeGen, Graph, GraphModule, Interpreter, Transformer, symbolic_trace


def layers():
    tg.manual_seed(0)
    return modules(tg)["layers"].eval()


X = tg.arange(8.).reshape(2, 4)


def test_root_may_be_a_dictionary():
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("a.b.relu", (graph.call_function(operator.add, (x, graph.get_attr("a.bias"))),)))
    module = GraphModule({"a.b.relu": tg.nn.ReLU(), "a.bias": tg.tensor(-1.)}, graph, "Small")
    assert module(tg.tensor([0., 3.])).tolist() == [0., 2.] and list(module.state_dict()) == ["a.bias"]
    assert type(module).__name__ == "Small" and isinstance(module, GraphModule)
    with pytest.raises(RuntimeError, match="referenced target a.bias but that target was not provided in ``root``!"):
        GraphModule({"a.b.relu": tg.nn.ReLU()}, graph)
    with pytest.raises(RuntimeError, match="Unsupported type 3 passed for root!"):
        GraphModule(3, graph)


def test_changed_graphs_are_compiled_anew():
    module = symbolic_trace(layers())
    before = module(X)
    module.graph.output_node().args = (module.graph.find_nodes(op="call_module", target="linear")[0],)
    assert tg.equal(module(X), before)
    module.graph.eliminate_dead_code()
    module.recompile()
    assert tg.equal(module(X), module.linear(X)) and "rest" not in module.code
    module.delete_all_unused_submodules()
    assert [name for name, _ in module.named_modules()] == ["", "linear"]
    assert module.add_submodule("new.deep.layer", tg.nn.ReLU()) and module.new.deep.layer is not None
    assert not module.add_submodule("linear.weight.x", tg.nn.ReLU())
    assert module.delete_submodule("new.deep.layer") and not module.delete_submodule("new.deep.layer")


@pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda module: pickle.loads(pickle.dumps(module))])
@pytest.mark.parametrize("name", ["layers", "root", "operators"])
def test_copies(name, again):
    module = symbolic_trace(modules(tg)[name].eval())
    module.note = "kept"
    module.meta["key"] = [1]
    new = again(module)
    assert new.code == module.code and str(new.graph) == str(module.graph) and new.graph.owning_module is new
    assert list(new.state_dict()) == list(module.state_dict())
    assert getattr(new, "note", None) == (None if again in (copy.copy, copy.deepcopy) else "kept")
    if name == "layers":
        assert tg.equal(new(X), module(X))
        assert (new.linear.weight is module.linear.weight) is (again is copy.copy)


def test_pickles_go_both_ways(torch):
    ours, theirs = symbolic_trace(layers()), torch.fx.symbolic_trace(modules(torch)["layers"].eval())
    theirs.load_state_dict({name: torch.tensor(value.tolist()) for name, value in ours.state_dict().items()})
    file = io.BytesIO()
    del theirs.inner, ours.inner            # of a class of this file, which both would import
    for module, engine in ((ours, tg), (theirs, torch)):
        graph = engine.fx.Graph()
        copies = {}
        for node in module.graph.nodes:
            if node.op == "placeholder":
                copies[node] = graph.node_copy(node)
        graph.output(graph.call_function(engine.relu, (graph.call_module("linear", (copies[next(iter(copies))],)),)))
        module.graph = graph
        module.delete_all_unused_submodules()
    torch.save(theirs, file)
    file.seek(0)
    loaded = tg.load(file, weights_only=False)
    assert loaded.code == theirs.code and tg.allclose(loaded(X), ours(X))


def test_generated_code_without_pytorch(tmp_path):
    """A pickle's code says `import torch`, which is this package where no PyTorch is installed."""
    path = tmp_path / "module.pt"
    tg.save(symbolic_trace(tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.GELU())), path)
    program = (f"import sys; sys.modules['torch'] = None\nimport tensorgrad as tg\n"
               f"print(tuple(tg.load({str(path)!r}, weights_only=False)(tg.ones(3, 2)).shape))")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "(3, 2)\n", run.stderr


def test_folder(tmp_path, monkeypatch):
    module = symbolic_trace(layers())
    module.delete_submodule("inner")                    # of a local class, which cannot be pickled
    with pytest.warns(UserWarning, match=r"children modules as reprs -saved as pickled files instead: \['rest'\]"):
        module.to_folder(tmp_path / "written_by_fx", "Written")
    text = (tmp_path / "written_by_fx" / "module.py").read_text()
    assert "class Written(torch.nn.Module):" in text and "def forward(self, x : torch.Tensor" in text
    assert "setattr(self, 'linear', Linear(in_features=4, out_features=3, bias=True))" in text


def test_errors_show_the_line(capsys):
    module = symbolic_trace(lambda x: (x + 1) @ x)
    with pytest.raises(TypeError):
        module(tg.ones(2), 3)
    module = symbolic_trace(lambda x, y: operator.getitem(x, y) + 1)
    capsys.readouterr()
    with pytest.raises(IndexError):
        module([1], 3)
    told = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 5 of the traced Module's generated forward function:" in told
    assert "    getitem = x[y];  x = y = None\n" in told and "~~~ <--- HERE" in told


def test_hooks():
    module, seen = symbolic_trace(lambda x: tg.relu(x) + 1), []
    module._register_create_node_hook(lambda node: seen.append(("made", node.name)))
    module._register_erase_node_hook(lambda node: seen.append(("erased", node.name)))
    graph, (x, relu, *_) = module.graph, module.graph.nodes
    with module._set_replace_hook(lambda old, new, user: seen.append((old.name, new, user.name))), \
            graph.inserting_after(relu):
        tanh = graph.call_function(tg.tanh, (x,))
        relu.replace_all_uses_with(tanh)
        graph.erase_node(relu)
        tanh.name = "other"
    assert seen == [("made", "tanh"), ("relu", "tanh", "add"), ("erased", "relu"), ("tanh", "other", "add")]
    with pytest.raises(AssertionError, match="hook must be a callable"):
        module._register_erase_node_hook(3)


def test_codegen():
    class Listed(CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            names = ", ".join(free_vars)
            return f"def forward(self, given: List[torch.Tensor]){maybe_return_annotation}:\n    {names}, = given"

        def additional_globals(self):
            return [("List", list)]

        def process_inputs(self, *inputs):
            return inputs[0]
    module = symbolic_trace(lambda x, y: x - y)
    module.graph.set_codegen(Listed())
    module.recompile()
    assert module([5, 3]) == 2 == Interpreter(module).run([5, 3]) == copy.deepcopy(module)([5, 3])
    with module.graph.on_generate_code(lambda before: lambda body: ["x = x * 2\n", *body]):
        module.recompile()
    assert module([5, 3]) == 7


def test_printed_with_shapes(both):
    texts = []
    for engine in both:
        module = engine.fx.symbolic_trace(lambda x, y: (x + y).relu().sum(0))
        for node, kind in zip(module.graph.nodes, ("float32", "bfloat16", "int64", "bool", "complex64", "float8_e5m2"),
                              strict=False):
            node.meta["val"] = engine.empty(2, 3, dtype=getattr(engine, kind), device="meta")
        texts.append([module.print_readable(False, include_stride=True, include_device=True, colored=True),
                      module.print_readable(False, expanded_def=True)])
    assert texts[0] == texts[1]


# ── interpreters ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_interpreter():
    module = symbolic_trace(layers())
    assert tg.equal(Interpreter(module).run(X, 2.0, None), module(X))
    assert tg.equal(Interpreter(module, garbage_collect_values=False).boxed_run([X, 2.0, None]), module(X))
    assert tg.equal(Interpreter(module).run(X), module(X))              # defaults
    with pytest.raises(RuntimeError, match="expected 3 arguments for placeholders but received 1"):
        Interpreter(module).boxed_run([X])
    failing = symbolic_trace(lambda x, y: x["a"] + y)
    with pytest.raises(RuntimeError, match=r"While executing %getitem : .*\(args = \(%x, a\), kwargs = {}\)"):
        Interpreter(failing).run({}, 1)
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter y, but one was not passed in!"):
        Interpreter(failing).run({"a": 1})
    env = {module.graph.find_nodes(op="call_module", target="linear")[0]: tg.zeros(2, 3)}
    assert tg.equal(Interpreter(module).run(X, 2.0, None, initial_env=env), layers().rest(tg.zeros(2, 3)) * 2)


def test_transformer():
    class Other(Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(operator.sub if target is operator.mul else target, args, kwargs)

        def call_module(self, target, args, kwargs):
            return args[0] if isinstance(self.submodules[target], tg.nn.Dropout) else super().call_module(target, args,
                                                                                                         kwargs)
    module = symbolic_trace(layers())
    new = Other(module).transform()
    assert "dropout" not in new.code.lower() and new.code.count(" - ") == 3 and new.code != module.code
    assert new.graph.find_nodes(op="call_module", target="linear")[0].meta["from_node"][0].name == "linear"
    assert symbolic_trace(new).code == new.code
