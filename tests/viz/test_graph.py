"""The graph behind tensors as text: what is read from the tape, how it is folded, what is noted while somebody watches,
and hostile names.
"""
import gc
import io
import re
import shutil
import subprocess
import sys
import time
import weakref
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn, viz
from tensorgrad.core.mode import mode
from tensorgrad.viz import text
from tensorgrad.viz.fold import Group, Tree, inside, periods
from tensorgrad.viz.tape import read

pytestmark = cpu_only
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["<script>alert(1)</script>", "</script><b>", "]]>&amp;\"'`", "a\\l\\N{x}\"]; evil [label=\"",
           "\0\x1b\x85\ud800\ufffe", "😀 é 漢字 שלום", "\u202egpj.exe", "x" * 10_000, "", "{{7*7}} ${1}"]


def weights(*shape):
    return torch.rand(*shape, requires_grad=True)


def expression():
    a, b = torch.tensor(0.5, requires_grad=True), torch.tensor(-0.3, requires_grad=True)
    return torch.tanh(a * b + b), {"a": a, "b": b}


def encoder(layers=3):
    torch.manual_seed(0)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0., batch_first=True), layers)


def by_title(model):
    return {node.title: node for node in model.nodes}


# ── what is read ──────────────────────────────────────────────────────────────────────────────


def test_leaves_steps_and_outputs():
    y, names = expression()
    model = read(y, names=names)
    assert [n.title for n in model.nodes] == ["a", "b", "multiply", "add", "tanh", "output"]
    assert [n.kind for n in model.nodes] == ["leaf", "leaf", "step", "step", "step", "value"]
    ids = {n.id: n.title for n in model.nodes}
    assert [(ids[e.source], ids[e.target], e.role, e.position) for e in model.edges] == [
        ("a", "multiply", "a", 0), ("b", "multiply", "b", 1), ("multiply", "add", "a", 0), ("b", "add", "b", 1),
        ("add", "tanh", "x", 0),
        ("tanh", "output", "", 0)]
    assert set(by_title(model)["multiply"].saved) == {"a", "b"} and by_title(model)["tanh"].saved == ("out",)


def test_order_of_time_is_topological():
    model = read(encoder()(torch.rand(1, 3, 8)).sum())
    place = {node.id: i for i, node in enumerate(model.nodes)}
    assert all(place[e.source] < place[e.target] for e in model.edges)


def test_inputs_without_gradient_and_numbers_are_shown_where_steps_saved_them():
    w, x = weights(2), torch.rand(2)
    model = read((w * x * 3).sum(), names={"x": x})
    found = by_title(model)
    assert found["x"].kind == found["3"].kind == "leaf" and found["x"].tape is None
    np.testing.assert_array_equal(found["x"].value, x.numpy())


def test_values_are_those_that_the_tape_still_has():
    w = weights(3)
    a = w.exp()
    b = a * a
    c = b.sum()
    assert by_title(read(c))["exp"].value is a.array and by_title(read(c))["sum"].value is c.array
    with torch.no_grad():
        a.zero_()
    assert by_title(read(c))["exp"].value is None      # it was written to since


def test_several_results():
    x = weights(6)
    first, second = x.split(3)
    model = read((first * second).sum(), second.sum())
    split = next(n for n in model.nodes if n.shape == ((3,), (3,)))
    assert sorted(e.result for e in model.edges if e.source == split.id) == [0, 1, 1]
    assert [n.title for n in model.nodes if n.kind == "value"] == ["output 1", "output 2"]


def test_what_has_no_graph_is_refused():
    for wrong, error in ((torch.ones(2), RuntimeError), (3, TypeError), ("x", TypeError), (None, TypeError)):
        with pytest.raises(error, match="graph"):
            viz.graph(wrong)
    with pytest.raises(RuntimeError, match="no tensor"):
        viz.graph()
    with pytest.raises(TypeError, match="Module"):
        viz.graph(weights(2) * 2, module=3)
    with pytest.raises(TypeError, match="names"):
        viz.graph(weights(2) * 2, names={"x": 3})


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x * g


def test_functions_of_programs_writes_in_place_views_and_hooks_are_read():
    x = weights(4)
    y = Cube.apply(x) + x[1:3].sum()
    z = y.clone()
    z[0] = 1.
    z.mul_(2)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.tensor):
        z = z.exp()
    model = read(z.sum(), gradients=True)
    assert "Cube" in by_title(model) and viz.graph(z.sum(), backward=True).svg()
    x.grad = None
    z.sum().backward()
    np.testing.assert_allclose(model.nodes[0].gradient, x.grad.numpy())


# ── gradients ─────────────────────────────────────────────────────────────────────────────────


def test_gradients_are_those_of_backward_and_nothing_changes():
    y, names = expression()
    called = []
    names["a"].register_hook(lambda g: called.append(1) or g * 100)
    middle = y.grad_fn.next_functions[0][0]
    middle.register_hook(lambda *g: called.append(2))
    y.retain_grad()
    model = read(y, names=names, gradients=True)
    assert not called and y.grad is None and names["a"].grad is None and middle.hooks.after
    a, b, s = 0.5, -0.3, 1 - np.tanh(-0.45) ** 2
    found = by_title(model)
    for title, gradient in (("a", b * s), ("b", (a + 1) * s), ("multiply", s), ("add", s), ("tanh", 1.),
                            ("output", 1.)):
        assert found[title].gradient == pytest.approx(gradient, rel=1e-4), title
    back = {(e.source, e.target): e.gradient for e in model.edges}
    assert back[found["b"].id, found["multiply"].id] == pytest.approx(a * s, rel=1e-4)
    assert back[found["b"].id, found["add"].id] == pytest.approx(s, rel=1e-4)
    y.backward()
    assert called


def test_gradients_that_are_given():
    x = weights(2)
    y = x * 2
    assert list(read(y, gradients=torch.tensor([1., 10.])).nodes[0].gradient) == [2, 20]
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        read(y, gradients=torch.ones(3))
    with pytest.raises(RuntimeError, match="1 tensors and 2 gradients"):
        read(y, gradients=[None, None])
    with pytest.raises(TypeError, match="Tensors or None"):
        read(y, gradients=3.)


def test_after_backward_the_gradients_that_are_kept_are_shown():
    y, names = expression()
    y.backward()
    assert by_title(read(y, names=names, gradients=True))["a"].gradient == names["a"].grad.array
    assert "grad" in y.render(format="svg")


def test_backward_is_drawn_from_the_output_down():
    y, names = expression()
    forward, backward = (ElementTree.fromstring(viz.graph(y, names=names, backward=b).svg()) for b in (False, True))

    def heights(root):
        return {g.find(f"{SVG}text").text: float(g.find(f"{SVG}rect").get("y"))
                for g in root.iter(f"{SVG}g") if "node" in g.get("class")}
    assert heights(forward)["output"] > heights(forward)["tanh"] > heights(forward)["a"]
    assert heights(backward)["output"] < heights(backward)["TanhBackward0"] < heights(
        backward)["MulBackward0"] < heights(backward)["a"]
    assert sum("note" in g.get("class", "") for g in backward.iter(f"{SVG}g")) == 6      # a gradient on each edge


# ── modules and folding ───────────────────────────────────────────────────────────────────────


def paths(model):
    return {".".join(node.group) for node in model.nodes if node.kind == "step"}


def test_modules_by_the_names_of_parameters():
    module = encoder(2)
    model = read(module(torch.rand(1, 3, 8)).sum(), module=module)
    assert {"layers.0.self_attn", "layers.1.linear2", "layers.0.norm1", ""} <= paths(model)
    assert by_title(model)["layers.1.norm2.weight"].group == ("layers", "1", "norm2")


def test_modules_as_they_ran():
    module = encoder(2)
    x = torch.rand(1, 3, 8, requires_grad=True)
    with viz.watch(module):
        inner = module(x)
        outer = inner.sum()
    model = read(outer)
    assert {"layers.0", "layers.0.self_attn", "layers.1.linear2", ""} <= paths(model)
    assert by_title(model)["layers.0.linear1.weight"].parameter       # named without being told the module again
    assert by_title(model)["sum"].group == () and by_title(model)["sum"].source[2] == "inner.sum()"
    relu = by_title(model)["relu"]
    assert relu.group == ("layers", "1") or relu.group == ("layers", "0")


def test_calls_of_one_module_are_apart():
    cell = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    with viz.watch():
        y = cell(cell(torch.rand(2, 3)))
    tree = Tree(read(y))
    groups = [g for g in tree.groups if g.title == "Sequential"]
    assert len(groups) == 2 and all(len([n for n in inside(g) if n.kind == "step"]) == 2 for g in groups)


def test_watching_ends_and_keeps_nothing_alive():
    before = mode.watching.watchers
    w = weights(3)
    with viz.watch():
        y = (w * 2).sum()
        assert len(mode.watching.watchers) == len(before) + 1
    assert mode.watching.watchers == before
    assert read(y).nodes[-2].source is not None and read((w * 2).sum()).nodes[-2].source is None
    node = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert node() is None


@pytest.mark.parametrize("watched", [True, False])
def test_repeated_blocks_are_told_once(watched):
    module = encoder(12)
    x = torch.rand(1, 3, 8, requires_grad=True)
    if watched:
        with viz.watch(module):
            y = module(x).sum()
    else:
        y = module(x).sum()
    graph = viz.graph(y, module=module)
    run = next(g for g in graph.tree.groups if g.count and not g.repeats)
    assert run.count in (11, 12) and f"× {run.count}" in graph.svg()
    assert graph.svg().count("<rect") < 100 < graph.steps
    assert "more like it" in graph.svg() and "more like it" in graph.dot()


def test_repeats_without_modules():
    h, w = weights(3), weights(3)
    y = h
    for _ in range(20):
        y = torch.tanh(y * w + h)
    tree = Tree(read(y.sum()))
    run = next(g for g in tree.groups if g.count and not g.repeats)
    assert (run.title, run.count, run.steps) == ("multiply, add, tanh", 20, 60)


def test_runs_of_numbers():
    code = np.array([9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8, 5, 5, 5, 5])
    assert periods(code, code, [False] * 15) == [(1, 3, 3)]
    assert periods(code, code, [True] * 15) == [(1, 3, 3), (11, 1, 4)]
    assert periods(np.array([], dtype=int), np.array([], dtype=int), []) == []


@pytest.mark.parametrize("fold", [True, False])
def test_every_node_is_in_one_group_and_links_lead_forward(fold):
    module = encoder(4)
    with viz.watch(module):
        y = module(torch.rand(1, 3, 8, requires_grad=True)).sum()
    tree = Tree(read(y), fold)
    held = [m.id for g in tree.groups for m in g.members if not isinstance(m, Group)]
    assert (sorted(held) == sorted(n.id for n in tree.model.nodes) and tree.root.steps
            == sum(n.kind != "leaf" for n in tree.model.nodes))
    assert (len(tree.groups) > 1) == fold
    for group in tree.groups:
        place = {getattr(m, "key", None) or m.id: i for i, m in enumerate(group.members)}
        steps = {k for k in place if k in tree.home and tree.model.by_id[k].kind != "leaf" or k.startswith("g")}
        assert all(place[a] < place[b] for _, a, b in group.links if a in steps and b in steps)


# ── large graphs ──────────────────────────────────────────────────────────────────────────────


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return x + self.narrow(torch.relu(self.wide(self.norm(x)))) * 0.5


@pytest.mark.parametrize("fold", [True, False])
def test_a_large_graph_is_quick_and_small(fold):
    deep = nn.Sequential(*[Block() for _ in range(400)])
    with viz.watch(deep):
        y = deep(torch.rand(2, 4)).sum()
    start = time.process_time()
    graph = viz.graph(y, fold=fold)
    sizes = len(graph.html()), len(graph.svg())
    assert len(graph.model.nodes) > 5000 and max(sizes) < 5e6
    assert time.process_time() - start < 15      # about one second of the processor


def test_a_huge_graph_folds():
    x, y = weights(1), weights(1)
    for _ in range(12_000):
        y = torch.tanh(y * x + x)
    graph = viz.graph(y)
    assert graph.steps == 36_000 and "× 12000" in graph.svg() and len(graph.svg()) < 1e5 and len(graph.html()) < 8e6
    assert graph.dot().count("\n") < 100


def test_a_huge_graph_without_any_order_folds():
    chance = np.random.default_rng(0)
    pool = [weights(1)]
    for a, b, op in chance.integers(0, [20, 20, 3], size=(10_000, 3)).tolist():
        pool.append((torch.add, torch.mul, torch.minimum)[op](pool[-1 - a % len(pool)], pool[-1 - b % len(pool)]))
    graph = viz.graph(pool[-1])
    assert graph.steps > 5000 and all(len(g.members) <= 151 for g in graph.tree.groups) and len(graph.svg()) < 1e6


# ── texts ─────────────────────────────────────────────────────────────────────────────────────


class Elements(HTMLParser):
    def __init__(self, content):
        super().__init__()
        self.found = []
        self.feed(content)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text(name):
    x, w = weights(2), weights(2)
    graph = viz.graph((x * w).sum(), names={name: x, "w": w}, values=True, gradients=True)
    root = ElementTree.fromstring(graph.svg())
    shown = [t.text or "" for t in root.iter(f"{SVG}text")]
    assert text.clean(text.shorten(name or "tensor")) in shown and max(map(len, shown)) <= text.LABEL
    assert {child.tag for child in root.iter()} <= {SVG + tag
                                                    for tag in ("svg", "title", "style", "defs", "marker", "path", "g",
                                                                "rect", "text")}
    assert all(len(t.text or "") <= text.TOOLTIP for t in root.iter(f"{SVG}title"))
    plain = viz.graph((x * w).sum(), names={"x": x, "w": w})
    page, ordinary = graph.html(), plain.html()
    assert [tag for tag, _ in Elements(page).found] == [tag for tag, _ in Elements(ordinary).found]
    assert page.count("</script") == ordinary.count("</script") == 1 and "\0" not in page
    assert graph.dot().count("\n") == plain.dot().count("\n") and is_dot(graph.dot())


def is_dot(written):
    """Return True if every line is of the few kinds that DOT text consists of here."""
    string = r'"(?:[^"\\]|\\.)*"'
    attributes = rf' ?\[(?:\w+=(?:{string}|[\w.#]+) ?)+\]'
    lines = (rf'digraph {{|  (?:node|edge){attributes}| +(?:subgraph {string} {{|}}|{string}(?: -> '
             rf'{string})?(?:{attributes})?|(?:\w+=(?:{string}|\w+) ?)+)|}}')
    return all(re.fullmatch(lines, line) for line in written.split("\n"))


def test_dot_of_groups():
    assert (is_dot(viz.graph(expression()[0], backward=True, values=True).dot())
            and not is_dot('digraph {\n  "a" [label="b"c"]\n}'))
    module = encoder()
    written = viz.graph(module(torch.rand(1, 3, 8, requires_grad=True)).sum(), module=module).dot()
    assert (is_dot(written) and written.count("subgraph") == written.count("\n  }") + written.count("\n    }")
            + written.count("\n      }") > 0)


def test_dot_is_what_graphviz_reads():
    if shutil.which("dot") is None:
        pytest.skip("graphviz's dot is not installed")
    x = weights(2)
    for name in HOSTILE:
        done = subprocess.run(["dot", "-Tplain"], input=viz.graph(x * 2, names={name: x}).dot().encode(),
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_modules_with_hostile_names():
    module = nn.Module()
    module.add_module("<b>&\"'", nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)))
    with viz.watch(module):
        y = getattr(module, "<b>&\"'")(torch.rand(1, 2)).sum()
    ElementTree.fromstring(viz.graph(y, source=True).svg())
    assert "<b>" not in viz.graph(y).html() and "&lt;b&gt;" in viz.graph(y).svg()


def test_texts():
    assert text.quoted('a"\\\n') == '"a\\"\\\\\\n"' and text.script("</script>&") == '"\\u003c/script\\u003e\\u0026"'
    assert text.columns("漢字é") == 5 and text.columns("abc") == 3
    assert (text.numbers(np.array([])) == "[]" and text.numbers(np.array(1e-9)) == "1e−09"
            and text.numbers(np.array([True, False])) == "[True, False]")
    assert text.numbers(np.array([1 + 2j])) == "[1+2j]" and text.numbers(np.full(20, np.nan)).startswith("nan")
    assert text.numbers(torch.ones(3, dtype=torch.bfloat16)) == "[1, 1, 1]"


# ── formats ───────────────────────────────────────────────────────────────────────────────────


def test_saving(tmp_path, monkeypatch):
    y, names = expression()
    graph = viz.graph(y, names=names, values=True, saved=True)
    for suffix, begin in ((".svg", b"<svg"), (".html", b"<!DOCTYPE html>"), (".dot", b"digraph {"),
                          (".png", b"\x89PNG"), (".pdf", b"%PDF-")):
        assert graph.save(tmp_path / "new" / f"graph{suffix}").read_bytes().startswith(begin)
    with pytest.raises(ValueError, match=".svg"):
        graph.save(tmp_path / "graph.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib pillow \(the extra \[viz\]\)"):
        graph.save(tmp_path / "graph.png")
    assert not (tmp_path / "graph.png").exists()


def picture_of(graph, how, tmp_path):
    """The pixels of a graph, (height, width, 3), as `png()` or another program paints them."""
    image = pytest.importorskip("PIL.Image")
    if how == "png":
        return np.asarray(image.open(io.BytesIO(graph.png())).convert("RGB").reduce(2))
    if shutil.which("rsvg-convert") is None:
        pytest.skip("rsvg-convert is not installed")
    subprocess.run(["rsvg-convert", graph.save(tmp_path / "graph.svg"), "-o", tmp_path / "graph.png"], check=True)
    return np.asarray(image.open(tmp_path / "graph.png").convert("RGB"))


@pytest.mark.parametrize("how", ["png", "rsvg-convert"])
def test_pixels(how, tmp_path):
    """White paper, steps of light blue with a blue border, an output of dark blue with white letters, grey edges."""
    x = weights(3)
    pixels = picture_of(viz.graph((x * 2).sum()), how, tmp_path)
    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    seen = {tuple(c): n for c, n in zip(colours.tolist(), counts.tolist())}
    assert max(seen, key=seen.get) == (255, 255, 255) == tuple(pixels[1, 1])
    assert seen[0xe3, 0xee, 0xfc] > 1000 and seen[0x1d, 0x4f, 0x91] > 1000 and seen.get((0, 0, 0), 0) == 0
    dark = (pixels.astype(int).sum(2) < 250).mean()
    assert 0.002 < dark < 0.2                       # letters and borders


def test_svg_needs_no_css():
    graph = viz.graph(expression()[0], values=True, gradients=True, backward=True)
    root = ElementTree.fromstring(graph.svg())
    drawn = [e for e in root.iter() if e.tag.removeprefix(SVG) in ("rect", "path", "text")]
    assert len(drawn) > 20 and all(re.fullmatch("#[0-9a-f]{6}|none", e.get("fill", "")) for e in drawn)
    style = "".join(e.text for e in root.iter(f"{SVG}style"))
    assert style.startswith("@media(prefers-color-scheme:dark){") and style.count("{") == style.count("}")


@pytest.mark.parametrize("name", ["$x^2$", "漢字", "<b>&\"'", "a\\b"])
def test_names_are_painted_as_they_are(name):
    x = weights(2)
    assert viz.graph(x * 2, names={name: x}).pdf().startswith(b"%PDF-")


def test_notebooks():
    graph = viz.graph(expression()[0])
    (tag, attributes), = Elements(graph._repr_html_()).found
    assert (tag == "iframe" and attributes["srcdoc"].startswith("<!DOCTYPE html>")
            and graph._repr_svg_().startswith("<svg"))


def test_nothing_is_asked_for_from_outside():
    page = viz.graph(expression()[0]).html()
    assert not any(word in page.replace("http://www.w3.org/2000/svg", "")
                   for word in ("http:", "https:", "//cdn", "@import", "src=", "url(h"))


def test_what_is_shown_on_demand():
    w, x = weights(2, 3), torch.rand(4, 3)
    with viz.watch():
        y = (x @ w.T).relu().sum()
    plain = viz.graph(y, names={"w": w}).svg()
    labels = [t.text for t in ElementTree.fromstring(plain).iter(f"{SVG}text")]
    assert "4×2" in labels and not any(word in label for label in labels
                                       for word in ("=", "grad ", "saves", "test_graph"))
    told = viz.graph(y, names={"w": w}, shapes=False, values=True, gradients=True, saved=True, source=True).svg()
    labels = [t.text for t in ElementTree.fromstring(told).iter(f"{SVG}text")]
    assert "4×2" not in labels and "saves out" in labels and "(x @ w.T).relu()" in labels
    assert any(label.startswith("= ") for label in labels) and any(label.startswith("grad ") for label in labels)


def test_render_as_text():
    y, _ = expression()
    assert (y.render(format="svg").startswith("<svg") and y.render(format="html").startswith("<!DOCTYPE")
            and "tanh" in y.render(format="dot"))
    with pytest.raises(ValueError, match="format"):
        y.render(format="gif")


# ── forwards that fail ────────────────────────────────────────────────────────────────────────


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(5, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def test_a_forward_that_fails_shows_how_far_it_got():
    with pytest.raises(RuntimeError, match="mat1 and mat2"), viz.watch() as seen:
        Broken()(torch.rand(3, 4))
    assert (seen.failure.title == "linear" and [tuple(t.shape) for _, t in seen.failure.operands]
            == [(3, 6), (2, 5), (2,)])
    assert seen.failure.error.startswith("RuntimeError: mat1") and seen.failure.group == ("Broken", "second")
    assert seen.failure.source[2] == "self.second(torch.relu(self.first(x)))"
    model = seen.graph().model
    assert [n.title for n in model.nodes if n.kind == "step"] == ["linear", "relu"]
    broken = model.nodes[-1]
    assert broken.kind == "failed"
    assert (sorted(model.by_id[e.source].title for e in model.edges if e.target == broken.id)
            == ["relu", "second.bias", "second.weight"])
    drawn = ElementTree.fromstring(seen.graph().svg())
    assert sum("failed" in g.get("class", "") for g in drawn.iter(f"{SVG}g")) == 1
    assert sum("broken" in p.get("class", "") for p in drawn.iter(f"{SVG}path")) == 3
    assert "mat1 and mat2" in seen.graph().html() and "dashed" in seen.graph().dot()


@pytest.mark.parametrize("fails, title, shapes, more", [
    (lambda a, b: a @ b, "matmul", [(3, 2), (4, 2)], False),
    (lambda a, b: (a * 2 + 1) - b, "subtract", [(4, 2)], True),
    (lambda a, b: torch.cat([a, b[:, :1]]), "cat", [(3, 2), (4, 1)], False),
    (lambda a, b: (a * 2).view(7), "view", [], True),
    (lambda a, b: nn.functional.conv2d(a, b), "conv2d", [(3, 2), (4, 2)], False),
    (lambda a, b: nn.functional.cross_entropy(a, torch.tensor([1, 2])), "cross_entropy", [(3, 2), (2,)], False),
    (lambda a, b: 1 // 0, "operator", [], False)], ids="matmul subtract cat view conv loss python".split())
def test_what_failed(fails, title, shapes, more):
    a, b = weights(3, 2), torch.rand(4, 2)
    with pytest.raises(Exception), viz.watch() as seen:
        fails(a, b)
    assert ((seen.failure.title, [tuple(t.shape) for _, t in seen.failure.operands], seen.failure.more)
            == (title, shapes, more))
    ElementTree.fromstring(seen.graph().svg())
    assert seen.failure.error.partition(":")[0] in seen.graph().html()


def test_nothing_failed():
    with viz.watch() as seen:
        weights(2) * 2
    with pytest.raises(RuntimeError, match="nothing failed"):
        seen.graph()
    with pytest.raises(TypeError, match="Module"):
        viz.watch(3)
