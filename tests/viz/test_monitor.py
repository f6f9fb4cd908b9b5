"""viz.monitor: the numbers of a training are those computed by hand, and its page is whole at any time."""
import math
import os
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import opened, scrolls_sideways, widths

import tensorgrad as torch
from tensorgrad.viz.monitor.chart import Line, chart

nn = torch.nn
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The elements of a page, which must be closed in their order; the text of the cells of its tables."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.metas = [], [], []
        self.feed(text)
        self.close()
        assert not self.open
        self.pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg xmlns.*?</svg>", text, re.S)]

    def handle_starttag(self, tag, attrs):
        if tag == "meta":
            self.metas.append(dict(attrs))
        if tag == "tr":
            self.rows.append([])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)

    @property
    def refreshes(self):
        return [meta["content"] for meta in self.metas if meta.get("http-equiv") == "refresh"]


def net(*sizes):
    torch.manual_seed(0)
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def points(n=40):
    x = np.random.default_rng(0).normal(size=(n, 2)).astype("float32")
    return torch.tensor(x), torch.tensor((x[:, 0] * x[:, 1] > 0).astype("float32"))


def size(tensors):
    return math.sqrt(sum(float((t.detach().numpy().astype("float64") ** 2).sum()) for t in tensors))


def train(model, optimizer, seen, steps, data, after=lambda step: None):
    x, y = data
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y)
        loss.backward()
        optimizer.step()
        seen.step(loss)
        after(step)


def test_numbers_are_those_computed_by_hand(tmp_path):
    model, data, path = net(2, 8, 1), points(), tmp_path / "page.html"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
    layers = {"0": model[0], "2": model[2]}
    expected, losses, rates = [], [], []
    with torch.viz.monitor(model, optimizer, path, every=1) as seen:
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(data[0])[:, 0], data[1])
            loss.backward()
            before = {k: [p.detach().clone() for p in part.parameters()] for k, part in layers.items()}
            optimizer.step()
            rates.append([optimizer.param_groups[0]["lr"]])
            seen.step(loss)
            losses.append(loss.item())
            expected.append({k: (size([p.grad for p in part.parameters()]), size(before[k]),
                                 size([p - old for p, old in zip(part.parameters(), before[k])]))
                             for k, part in layers.items()})
            scheduler.step()
    record = seen.record
    assert (record.losses == losses and record.rates == rates and rates[2][0] == pytest.approx(0.05)
            and record.measured == [1, 2, 3])
    for layer in record.layers:
        found = list(zip(layer.gradient, layer.weight, layer.update))
        np.testing.assert_allclose(found, [step[layer.name] for step in expected], rtol=1e-6)
    page = Page(path.read_text(encoding="utf-8"))
    for name in layers:
        gradient, weight, update = expected[-1][name]
        assert [name, *(f"{v:.4g}" for v in (gradient, weight, update, update / weight))] in page.rows
    assert f"step 3, loss {losses[-1]:.3g}" in path.read_text(encoding="utf-8")


def test_page_is_whole_refreshes_while_it_runs_and_is_kept(tmp_path):
    model, data, path = net(2, 8, 1), points(), tmp_path / "page.html"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    written = []

    def look(step):
        text = path.read_text(encoding="utf-8")
        written.append((os.stat(path).st_ino, int(re.search(r"step (\d+), loss", text)[1])))
        assert Page(text).refreshes == ["0.5"] and os.listdir(tmp_path) == ["page.html"]
    with torch.viz.monitor(model, optimizer, path, every=3, refresh=0.5, boundary=data, title="<XOR>") as seen:
        assert Page(path.read_text(encoding="utf-8")).refreshes == ["0.5"]
        train(model, optimizer, seen, 7, data, look)
    assert [last for _, last in written] == [1, 1, 3, 3, 3, 6, 6]
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert not page.refreshes and "&lt;XOR&gt;" in text and ">done<" in text and "step 7," in text
    titles = [picture[0].text for picture in page.pictures]
    assert titles == ["Loss", "Learning rate", "Gradient norm", "Update / weight", "Weight norm", "Update norm",
                      "Dead ReLU units", "Decision boundary"]
    assert not re.search(r"(src|href)\s*=|url\(|@import|<script", text)


def test_a_write_that_fails_leaves_the_page_before(tmp_path, monkeypatch):
    model, data, path = net(2, 4, 1), points(), tmp_path / "page.html"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.viz.monitor(model, optimizer, path, every=1) as seen:
        train(model, optimizer, seen, 1, data)
        before = path.read_bytes()
        with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
            def fails(*args):
                raise OSError("full")
            patch.setattr(os, "replace", fails)
            train(model, optimizer, seen, 1, data)
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["page.html"]
    assert "step 2," in path.read_text(encoding="utf-8")


def test_an_error_inside_goes_on_and_the_page_says_where_it_ended(tmp_path):
    model, data, path = net(2, 4, 1), points(), tmp_path / "new" / "page.html"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(KeyError, match="<gone>"), torch.viz.monitor(model, optimizer, path, every=100) as seen:
        train(model, optimizer, seen, 5, data)
        raise KeyError("<gone>")
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert ("Ended after step 5 by KeyError: &#39;&lt;gone&gt;&#39;" in text.replace("&#x27;", "&#39;").replace("'",
                                                                                                                "&#39;")
            and not page.refreshes)
    assert f"step 5, loss {seen.record.losses[-1]:.3g}" in text
    taken = seen.record.taken
    optimizer.step()
    model(data[0])
    # no hook is left
    assert seen.record.taken == taken and all(units.alive is None or units.steps for units, _ in seen.record.rectifiers)
    with pytest.raises(RuntimeError, match="inside"):
        seen.step(1.0)
    with pytest.raises(RuntimeError, match="once"), seen:
        pass


def test_dead_units_are_found(tmp_path):
    model, data, path = net(2, 8, 1), points(), tmp_path / "page.html"
    with torch.no_grad():
        model[0].bias[:3] = -100.0
        model[0].bias[3:] = 100.0
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with torch.viz.monitor(model, optimizer, path, every=2, boundary=data) as seen:
        train(model, optimizer, seen, 4, data)
    units = seen.record.rectifiers[0][0]
    assert units.steps == [1, 2, 4] and units.dead == [0.375] * 3
    assert ["1", "3 of 8"] in Page(path.read_text(encoding="utf-8")).rows


@pytest.mark.parametrize(("conv", "shape", "dead"),
                         [(nn.Conv2d(1, 4, 1), (2, 1, 3, 5), 0.25), (nn.Conv1d(1, 4, 1), (2, 1, 5), 0.25),
                          (nn.Linear(1, 4), (2, 5, 1), 0.25), (nn.Linear(1, 4), (1,), 0.25)])
def test_a_unit_is_a_channel(tmp_path, conv, shape, dead):
    with torch.no_grad():
        conv.weight.fill_(0)
        conv.bias.copy_(torch.tensor([1.0, 2.0, -1.0, 3.0]))
    model = nn.Sequential(conv, nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with torch.viz.monitor(model, optimizer, tmp_path / "page.html") as seen:
        loss = model(torch.ones(shape)).sum()
        loss.backward()
        optimizer.step()
        seen.step(loss)
    assert seen.record.rectifiers[0][0].dead == [dead] and seen.record.rectifiers[0][0].count == 4


def test_training_goes_on_as_without_it(tmp_path):
    data = points()

    def trained(watched):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))
        model[3].eval()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        if watched:
            with torch.viz.monitor(model, optimizer, tmp_path / "page.html", every=1, boundary=data) as seen:
                train(model, optimizer, seen, 4, data)
        else:
            class Nothing:
                def step(self, loss):
                    pass
            train(model, optimizer, Nothing(), 4, data)
        return [part.training for part in model.modules()], {k: v.tolist() for k, v in model.state_dict().items()}
    assert trained(True) == trained(False)


def test_the_boundary_is_where_the_module_decides(tmp_path):
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0.0]]))
        model.bias.fill_(0)
    x = np.array([[-1.0, -1.0], [1.0, 1.0]])
    optimizer, path = torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "page.html"
    with torch.viz.monitor(model, optimizer, path, boundary=(x, [-1, 1])) as seen:
        classes = seen.boundary.classes()
    assert (classes[:, :24] == 0).all() and (classes[:, 24:] == 1).all()
    picture = Page(path.read_text(encoding="utf-8")).pictures[-1]
    fills = [element.get("fill") for element in picture if element.tag.endswith("path")]
    assert len(set(fills)) == 2 and len([e for e in picture if e.tag.endswith("rect")]) == 2 * 48


def test_closures_and_losses_that_are_not_finite(tmp_path):
    model, (x, y), path = net(2, 4, 1), points(), tmp_path / "page.html"
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y)
        loss.backward()
        return loss
    with torch.viz.monitor(model, optimizer, path, every=1) as seen:
        seen.step(optimizer.step(closure))
        seen.step(float("nan"))
        seen.step(math.inf)
    assert seen.record.layers[0].gradient[0] > 0 and "2 of 3 not finite" in path.read_text(encoding="utf-8")
    Page(path.read_text(encoding="utf-8"))


class Rectified(nn.Module):
    """Rectifiers of all kinds: functions after a linear layer, a normalization and a sum, and a module."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second, self.act, self.last = (nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Linear(8, 6),
                                                                   nn.ReLU(), nn.Linear(6, 1))
        with torch.no_grad():
            self.first.bias[:3], self.norm.weight[:2], self.norm.bias[:2], self.second.bias[0] = (-100.0, 0.0, -1.0,
                                                                                                  -100.0)

    def forward(self, x):
        self.seen = [nn.functional.relu(self.first(x))]
        self.seen.append(torch.relu_(self.norm(self.seen[0])))
        self.seen.append(nn.functional.relu6(self.second(self.seen[1]) + 0.1))
        self.seen.append(self.act(self.second(self.seen[1])))
        return self.last(self.seen[3] + self.seen[2])


def test_rectifiers_that_are_no_modules(tmp_path):
    model, (x, y), dead = Rectified(), points(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with torch.viz.monitor(model, optimizer, tmp_path / "page.html", every=1) as seen:
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y)
            dead.append([float((out.detach().numpy() <= 0).all(axis=0).mean()) for out in model.seen])
            loss.backward()
            with torch.no_grad():
                model(x + 1000)                              # tried, not trained: not seen, but for the module's hook
            optimizer.step()
            seen.step(loss)
    found = {units.name: units for units, _ in seen.record.rectifiers}
    assert list(found) == ["act", "relu after first", "relu after norm", "relu after second"]
    for name, column in (("relu after first", 0), ("relu after norm", 1), ("relu after second", 2)):
        assert found[name].dead == pytest.approx([row[column] for row in dead]) and found[name].steps == [1, 2, 3]
    assert (found["relu after first"].dead[0] >= 3 / 8 and found["relu after norm"].dead[0] >= 2 / 8
            and found["act"].count == 6)
    model(x)                                                 # nobody counts any more
    assert all(units.alive is None for units in found.values())
    assert ["relu after first", f"{round(dead[-1][0] * 8)} of 8"] in Page(
        (tmp_path / "page.html").read_text(encoding="utf-8")).rows


def test_a_symbolic_model(tmp_path):
    from tensorgrad.symbolic import Input, SymbolicModel
    x = Input(shape=(2,))
    model = SymbolicModel(x, nn.Linear(4, 1)(nn.ReLU()(nn.Linear(8, 4)(torch.relu(nn.Linear(2, 8)(x))))))
    optimizer, data, path = torch.optim.SGD(model.parameters(), lr=0.1), points(), tmp_path / "page.html"
    with torch.viz.monitor(model, optimizer, path, every=1, boundary=data) as seen:
        train(model, optimizer, seen, 2, data)
    assert ([(units.name, units.count) for units, _ in seen.record.rectifiers]
            == [("ReLU_1", 4), ("relu after Linear_1", 8)])
    assert ([layer.name for layer in seen.record.layers] == ["Linear_1", "Linear_2", "Linear_3"]
            and "Decision boundary" in path.read_text(encoding="utf-8"))


def test_charts_show_all_values_and_gaps():
    svg = ElementTree.fromstring(chart("a", [Line("a", [1, 2, 3, 4], [0.0, 1.0, math.nan, 0.5])]))
    line = next(e for e in svg if e.get("stroke-width"))
    assert line.get("d") == "M50.0 176.0L150.0 10.0M350.0 93.0h.01" and chart("a", [Line("a", [1], [math.inf])]) == ""
    spike = [1.0] * 9000
    spike[4567] = 50.0
    svg = ElementTree.fromstring(chart("a", [Line("a", range(1, 9001), spike)]))
    assert " 10.0" in next(e for e in svg if e.get("stroke-width")).get("d")


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"module": 3}, TypeError, "module"), ({"optimizer": None}, TypeError, "optimizer"),
    ({"path": 5}, TypeError, "path"), ({"every": 1.5}, TypeError, "every"), ({"every": True}, TypeError, "every"),
    ({"every": 0}, ValueError, "every"), ({"refresh": "2"}, TypeError, "refresh"),
    ({"refresh": 0}, ValueError, "refresh"), ({"title": None}, TypeError, "title"),
    ({"boundary": 3}, TypeError, "boundary"),
    ({"boundary": ("a", "b")}, TypeError, "boundary"),
    ({"boundary": (np.ones((3, 3)), np.ones(3))}, ValueError, "shape"),
    ({"module": nn.Linear(1, 1)}, ValueError, "no parameter")])
def test_wrong_arguments(tmp_path, change, error, words):
    model = nn.Linear(2, 1)
    arguments = {"module": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
                 "path": tmp_path / "page.html"} | change
    with pytest.raises(error, match=words):
        torch.viz.monitor(**arguments)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("loss", ["1", None, 1j, torch.ones(2), torch.tensor(1j)])
def test_wrong_losses(tmp_path, loss):
    model = nn.Linear(2, 1)
    with torch.viz.monitor(model, torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "page.html") as seen:
        with pytest.raises(TypeError, match="loss must be"):
            seen.step(loss)
        assert seen.record.losses == []


@widths
def test_in_a_browser(tmp_path, width):
    model, data, path = net(2, 8, 8, 1), points(), tmp_path / "page.html"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    with torch.viz.monitor(model, optimizer, path, every=5, refresh=3600, boundary=data) as seen:
        train(model, optimizer, seen, 30, data)
        with opened(path, width=width) as page:
            assert "running" in page.inner_text("header") and not scrolls_sideways(page)
            page.evaluate("scrollTo(0, 100)")
            train(model, optimizer, seen, 10, data)
            page.reload()
            assert "step 40" in page.inner_text("header")
            assert page.evaluate("scrollY") == 100
