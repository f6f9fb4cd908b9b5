"""The explanation as one picture that moves."""
import re
from xml.etree import ElementTree

import pytest

import tensorgrad as torch
from tensorgrad.viz import explain
from tensorgrad.viz.animation import SVG

TEXT = f"{{{SVG}}}text"


def neuron():
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (2.0, -3.0, 5.0))
    return explain((torch.tanh(x * w + b) - 1) ** 2, names={"x": x, "w": w, "b": b})


def captions(root):
    return [text.text for text in root.iter(TEXT) if "tg-only" in text.get("style", "")]


def begin(text, css):
    """When an element appears, in percent."""
    name = re.search(r"tg-from\d+", text.get("style"))[0]
    return float(re.search(rf"@keyframes {name}{{0%{{opacity:\d}}([\d.]+)%", css)[1])


def test_numbers_appear_in_the_order_in_which_they_are_computed():
    found = neuron()
    root = ElementTree.fromstring(found.svg())
    css = "".join(style.text for style in root.iter(f"{{{SVG}}}style"))
    at = {}
    for box in root.iter(f"{{{SVG}}}g"):
        title = box.find(TEXT).text
        for text in box.findall(TEXT):
            if text.get("class").startswith(("value", "gradient")) and "tg-from" in text.get("style", ""):
                at[title, text.get("class").split()[0]] = begin(text, css)
    path = ["multiply", "add", "tanh", "subtract", "pow"]
    times = [at["x", "value"], *[at[title, "value"] for title in path],
             *[at[title, "gradient"] for title in reversed(path)], at["x", "gradient"]]
    assert times == sorted(times) and len(set(times)) == len(times)
    assert at["x", "gradient"] == at["w", "gradient"] and at["b", "gradient"] == at["multiply", "gradient"]


def test_captions_are_the_rules_with_their_numbers():
    found = neuron()
    told = captions(ElementTree.fromstring(found.svg()))
    assert len(told) == 1 + len(found.forward) + 1 + len(found.steps)
    assert (told[1] == "v1 = x · w = 2 · (−3) = −6" and told[-1].startswith("∂L/∂x = g · w = ")
            and ",   ∂L/∂w = g · x = " in told[-1])


def test_a_gradient_of_several_terms_shows_once_it_is_whole():
    x = torch.tensor(3.0, requires_grad=True)
    root = ElementTree.fromstring(explain(x * x + x.sin(), names={"x": x}).svg())
    css = "".join(style.text for style in root.iter(f"{{{SVG}}}style"))
    line, = [text for text in root.iter(TEXT) if text.text == f"grad {6 + torch.cos(x).item():.4g}"]
    assert begin(line, css) == max(float(p) for p in re.findall(r"@keyframes tg-from\d+{0%{opacity:\d}([\d.]+)%", css))


def test_without_animation_the_last_picture_shows():
    """Programs without CSS show elements of opacity 1: all numbers, the last caption, and no mark around a box."""
    root = ElementTree.fromstring(neuron().svg())
    assert [c.get("opacity") for c in root.iter(TEXT) if "tg-only" in c.get("style", "")] == ["0"] * 11 + ["1"]
    assert all(r.get("opacity") == "0" for r in root.iter(f"{{{SVG}}}rect") if "tg-only" in r.get("style", ""))
    assert all(t.get("opacity") is None for t in root.iter(TEXT) if "tg-from" in t.get("style", ""))
    assert "prefers-reduced-motion" in neuron().svg()


def test_paper_is_white_where_no_page_says_what_it_is():
    """Browsers take a variable that nobody defined for black."""
    x = torch.ones(2, requires_grad=True)
    for text in (neuron().svg(), torch.viz.graph(x.sum()).svg()):
        assert "var(--paper,#ffffff)" in text and not re.search(r"[:(]var\(--\w+\)", text.partition("</style>")[2])


def test_it_is_saved_and_a_long_one_refused(tmp_path):
    found = neuron()
    assert found.save(tmp_path / "a" / "neuron.svg").read_text(encoding="utf-8") == found.svg()
    y = torch.ones(1, requires_grad=True)
    for _ in range(70):
        y = y * 1.5
    with pytest.raises(ValueError, match="save a page"):
        explain(y).save(tmp_path / "long.svg")
    assert not (tmp_path / "long.svg").exists()


def test_a_box_of_several_results_has_their_numbers():
    """Of the first two: values when they are made, gradients when all have come back."""
    x = torch.tensor([3.0, 1.0, 2.0, 5.0], requires_grad=True)
    a, b, c = x.split([1, 2, 1])
    found = explain(((a * b).sum() + b.sum()) * c.sum(), names={"x": x, "a": a, "b": b, "c": c})
    box, = [node for node in found.model.nodes if node.title == "split_with_sizes"]
    assert (box.name, box.value, box.gradient) == ("a, b, c", "3, [1, 2], …", "15, [20, 20], …")
    root = ElementTree.fromstring(found.svg())
    css = "".join(style.text for style in root.iter(f"{{{SVG}}}style"))
    value, = [text for text in root.iter(TEXT) if text.text == "= 3, [1, 2], …"]
    gradient, = [text for text in root.iter(TEXT) if text.text == "grad 15, [20, 20], …"]
    last, = [text for text in root.iter(TEXT) if text.text == "grad [15, 20, 20, 12]"]
    assert begin(value, css) < begin(gradient, css) < begin(last, css)
