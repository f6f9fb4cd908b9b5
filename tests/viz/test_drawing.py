"""Boxes and arrows become pictures through one function, whatever kind of graph they are."""
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tensorgrad import viz
from tensorgrad.viz.drawing import Graph, draw
from tensorgrad.viz.model import Model
from tensorgrad.viz.scene import Shows

SVG = "{http://www.w3.org/2000/svg}"


def test_all_pictures_of_graphs_come_from_one_function():
    """No other module of the package writes a scene, or places boxes."""
    package = Path(viz.__file__).parents[1]
    sources = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    writers = {"viz/drawing.py": r"\b(svg|dot)\.written\(|(?<!def )\bgraph_page\(|\bmatplotlib_export\.\w+\(",
               "viz/scene.py": r"layout import .*\blayout\b"}
    for home, pattern in writers.items():
        assert [name for name, source in sources.items() if re.search(pattern, source)] == [home]


def test_edges_with_texts_from_left_to_right():
    """A picture with texts on edges, sideways: boxes follow each other from left to right in SVG, DOT says the
    texts.
    """
    model = Model()
    a, b, c = model.add("leaf", "a", tape=1), model.add("step", "b"), model.add("value", "c")
    model.link(a, b, text="first\nedge")
    model.link(b, c, text="$second$ <edge>")
    graph = Graph(model, Shows(shapes=False, sideways=True, upright=True))
    root = ElementTree.fromstring(graph.svg())
    boxes = {g.get("data-id"): g.find(f"{SVG}rect") for g in root.iter(f"{SVG}g")}
    left = [float(boxes[key].get("x")) for key in ("n0", "ln1.0", "n1", "ln2.0", "n2")]
    assert left == sorted(left) and len(set(left)) == 5
    middle = {float(boxes[key].get("y")) + float(boxes[key].get("height")) / 2 for key in boxes}
    assert max(middle) - min(middle) < 1
    turned = [t.text for t in root.iter(f"{SVG}text") if t.get("transform", "").startswith("rotate(-90 ")]
    assert turned == ["first", "edge", "$second$ <edge>"]
    assert "rankdir=LR" in graph.dot() and "$second$ <edge>" in graph.dot()
    pytest.importorskip("matplotlib")
    figure = draw(graph, "figure")
    assert [(t.get_text().replace("\\", ""), t.get_rotation()) for t in figure.axes[0].texts] == [
        ("b", 0), ("c", 0), ("a", 0), ("first", 90), ("edge", 90), ("$second$ <edge>", 90)]
    with pytest.raises(ValueError, match="'figure' or one of 'html', 'svg'"):
        draw(graph, "gif")
