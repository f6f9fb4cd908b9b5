"""The pages of viz.explain in a browser: steps, list, boxes, leaves that change, heat maps, paper.

One page is looked at for many things.
"""
import json
import re
from xml.etree import ElementTree

import numpy as np
from browser import DESKTOP, PHONE, opened, overlaps, scrolls_sideways, widths
from random_programs import leaves_of
from random_programs import program as random_program

import tensorgrad as torch
from tensorgrad.viz import explain
from tensorgrad.viz.explorer.numbers import Numbers
from tensorgrad.viz.explorer.page import Frames, parts
from tensorgrad.viz.program import program

nn, F = torch.nn, torch.nn.functional


def scalars(x=2.0, w=-3.0, b=1.0):
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (x, w, b))
    h = torch.relu(w * x + b)
    loss = h ** 2 + x * x
    return explain(loss, names={"x": x, "w": w, "b": b, "h": h, "loss": loss})


def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3))
    with torch.viz.watch(model):
        loss = F.cross_entropy(model(torch.randn(5, 3)), torch.tensor([0, 1, 2, 0, 1]))
    return explain(loss, module=model, names={})


def results():
    x = torch.tensor([[3.0, 1.0], [2.0, 5.0]], requires_grad=True)
    a, b = x.unbind(0)
    values, _ = torch.stack([a, b * 2]).max(0)
    return explain((values * a).sum(), names={"x": x, "a": a, "b": b})


def long():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(2000):
        y = y * 1.001 + 0.1
    return explain(y, names={"x": x})


def at(page):
    return int(page.input_value("#step"))


def go(page, frame):
    page.evaluate("to => { const s = document.getElementById('step'); s.value = to; s.dispatchEvent(new "
                  "Event('input')); }", frame)


def lit(page, kind="node"):
    return page.eval_on_selector_all(f"svg .{kind}.lit",
                                     "all => all.map(e => e.querySelector('.title, .name')?.textContent ?? "
                                     "e.dataset.from + e.dataset.to)")


def told(page):
    """The text of the frame that is seen, formulas as plain text."""
    return page.evaluate("""() => {
      const copy = document.querySelector(".frame:not([hidden])").cloneNode(true);
      for (const math of copy.querySelectorAll("math[alttext]")) math.replaceWith(math.getAttribute("alttext"));
      for (const gone of copy.querySelectorAll("[hidden]")) gone.remove();
      return copy.textContent.replace(/\\s+/g, " ");
    }""")


def numbers(page, kind):
    seen = "all => all.filter(e => getComputedStyle(e).visibility == 'visible').map(e => e.textContent)"
    return page.eval_on_selector_all(f"svg .node .{kind}", seen)


def until(page, condition):
    """Wait for what the next frame of the browser brings."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(condition)


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_frame():
    """Each place of the slider shows one text, lights up its step and its place in the list, and fits on the screen."""
    with opened("<p>") as page:
        for made in scalars, network, results, long:
            found = made()
            html = found.html()
            for width, height in (DESKTOP, PHONE) if made is not long else (PHONE,):
                page.set_viewport_size({"width": width, "height": height})
                page.set_content(html)
                last = int(page.get_attribute("#step", "max"))
                assert made is long or last == len(found.forward) + len(found.steps) + 2
                assert page.locator(".steps [data-frame]").count() == last + 1
                for frame in range(last + 1) if last < 40 else (0, 1, last // 2, last):
                    go(page, frame)
                    assert page.locator(".frame:visible").count() == 1 and at(page) == frame
                    assert (len(told(page)) > 10 and page.get_attribute("#step",
                                                                        "aria-valuetext").startswith(
                                                                            f"{frame + 1} of {last + 1}"))
                    assert page.get_attribute(".steps [aria-current=step]", "data-frame") == str(frame)
                    if page.get_attribute(".explorer", "data-phase"):
                        assert len(lit(page)) == 1
                    assert not scrolls_sideways(page)
                    # the buttons are always at hand
                    assert frame % 5 or page.locator("#next").bounding_box()["y"] < height - 40
                assert made is long or not overlaps(page)
                heights = page.eval_on_selector_all("math",
                                                    "all => all.filter(e => e.checkVisibility()).map(e => "
                                                    "e.getBoundingClientRect().height)")
                assert all(height > 4 for height in heights)
        assert "4000 steps back are more than a page can show" in page.inner_text("header")
        assert "back, step 400 of 4000" in page.inner_text("#where")
        assert "it shows a part of the graph" in page.inner_text(".dock")


@widths
def test_forward_then_back_by_keys_list_and_boxes(width):
    with opened(scalars().html(), width=width) as page:
        last = int(page.get_attribute("#step", "max"))
        assert (page.get_attribute(".explorer", "data-phase") == "" and sorted(numbers(page, "value"))
                == ["= 1", "= 2", "= −3"])
        page.click("#next")
        assert lit(page) == ["multiply"] and len(lit(page, "edge")) == 2
        assert told(page) == "↓ forwardmultiplyv1=w · x=−3·2=−6"
        assert "= −6" in numbers(page, "value") and not numbers(page, "gradient")
        page.keyboard.press("End")
        assert at(page) == last and page.is_disabled("#next") and page.is_enabled("#back")
        assert "x.grad" in told(page) and "grad 4" in numbers(page, "gradient")
        page.keyboard.press("Home")
        assert at(page) == 0 and page.is_disabled("#back")
        if width == PHONE:
            assert not page.locator(".steps nav").is_visible()
            page.click(".steps > summary")
        page.get_by_role("button", name="pow → h").click()
        assert ("back, step 3 of 6: pow" in page.inner_text("#where") and page.get_attribute(".explorer", "data-phase")
                == "back")
        assert re.search(r"∂L/∂h=g · 2 · h\^\(2 − 1\)=1·2·02−1=0", told(page)), told(page)
        box = page.locator("svg .node", has_text="relu")
        box.click()
        assert "back, step 4 of 6: relu" in page.inner_text("#where")
        box.click()
        assert "forward, step 3 of 6: relu" in page.inner_text("#where") and lit(page) == ["relu"]
        box.focus()
        page.keyboard.press("Enter")
        assert "back, step 4 of 6: relu" in page.inner_text("#where")
        page.locator("svg .leaf", has_text="b").first.click()
        assert at(page) == 0
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("PageDown")
        page.keyboard.press("ArrowLeft")
        assert at(page) == 9
        assert (page.locator("math mfrac").count() > 5
                and page.locator("svg .node[tabindex='0'], .steps button[tabindex='0']").count() == 2)
        for name in "One step back", "Play", "One step on", "Print", "Save step":
            assert page.get_by_role("button", name=name, exact=True).count() == 1
        assert (page.get_by_role("slider", name="Step").count() == 1
                and page.locator(".panel[aria-live=polite]").count() == 1)
        if width == PHONE:
            assert not page.locator(".steps nav").is_visible()          # the list made room for the step
            page.click(".steps > summary")
        assert (page.get_by_role("group", name="The graph behind loss").count() == 1
                and page.get_by_role("navigation", name="Steps").count() == 1)


def test_playing():
    """Playing shows one step after the other until it is stopped or at the end. The test sets the clock."""
    with opened("<p>") as page:
        page.clock.install()
        page.set_content(scalars().html())
        assert page.get_attribute("#play", "aria-label") == "Play"
        page.click("#play")
        assert page.get_attribute("#play", "aria-label") == "Pause"
        page.clock.run_for(3500)
        assert at(page) == 2
        page.click("#play")
        page.clock.run_for(10_000)
        assert at(page) == 2 and page.get_attribute("#play", "aria-label") == "Play"
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(" ")
        page.clock.run_for(60_000)
        assert (at(page) == int(page.get_attribute("#step", "max")) and page.get_attribute("#play", "aria-label")
                == "Play")


def test_the_list_is_folded_by_modules():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(12)])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x
    net = Net()
    with torch.viz.watch(net):
        loss = net(torch.ones(1, 2)).sum()
    with opened(explain(loss, module=net, names={}).html()) as page:
        folds = page.locator(".steps details details, .steps li > details")
        assert ({"0", "11"} <= {text.split()[0] for text in page.locator(".steps details summary").all_text_contents()}
                and folds.count() >= 24)
        assert page.locator(".steps [data-frame]:visible").count() < 12
        page.locator("svg .node", has_text="tanh").nth(4).click()
        current = page.locator(".steps [aria-current=step]")
        assert current.is_visible() and "tanh" in current.inner_text()
        page.keyboard.press("Home")
        assert (not current.locator("xpath=ancestor::details[2]").count()
                and page.locator(".steps [data-frame]:visible").count() < 12)


# ── other numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────


# The lines of each box are within it.
WITHIN = """[...document.querySelectorAll(".graph .node")].every(node => {
  const box = node.querySelector("rect").getBoundingClientRect();
  return [...node.querySelectorAll(".value, .gradient")].map(line => line.getBoundingClientRect()).every(b => b.left >= box.left && b.right <= box.right);
})"""  # noqa: E501


@widths
def test_a_leaf_is_changed(width):
    """By a slider or by typing: values, gradients, rules with numbers and boxes follow, and say what the engine
    says.
    """
    with opened(scalars().html(), width=width) as page:
        if width == PHONE:
            page.click(".leaves > summary")
        assert page.is_disabled("#reset")
        page.get_by_role("textbox", name="w, typed").fill("1/2")
        page.get_by_role("textbox", name="b, typed").fill("−0,25")
        page.get_by_role("textbox", name="x, typed").fill("3x")
        assert page.get_by_role("textbox", name="x, typed").get_attribute("aria-invalid") == "true"
        page.get_by_role("textbox", name="x, typed").fill("40")
        until(page, "Explorer.Arrays.now('v:0').data[0] === 40")
        shown = [section for section in frames_of(page)]
        boxes = [page.eval_on_selector_all(f"svg .node .{kind}", "all => all.map(e => e.textContent)")
                 for kind in ("value", "gradient")]
        assert (page.evaluate("Number(document.querySelector('.leaves [type=range]').max)") >= 40
                and not scrolls_sideways(page))
        page.get_by_role("textbox", name="x, typed").fill("-12345.678")
        until(page, "Explorer.Arrays.now('v:0').data[0] < -12345")
        assert (page.evaluate(WITHIN)
                and page.locator("svg .node text [textLength], svg .node text[textLength]").count() > 0)
        page.click("#reset")
        assert page.get_by_role("textbox", name="w, typed").input_value() == "-3" and page.is_disabled("#reset")
        first = [section for section in frames_of(page)]
        page.get_by_role("slider", name="x", exact=True).focus()
        page.keyboard.press("ArrowRight")
        until(page, "Explorer.Arrays.now('v:0').data[0] > 2")
        assert (page.get_by_role("textbox", name="x, typed").input_value() != "2"
                and at(page) == int(page.get_attribute("#step", "max")))
        page.set_content(scalars(40.0, 0.5, -0.25).html())
        assert shown == [section for section in frames_of(page)]
        assert boxes == [page.eval_on_selector_all(f"svg .node .{kind}", "all => all.map(e => e.textContent)")
                         for kind in ("value", "gradient")]
        page.set_content(scalars().html())
        assert first == [section for section in frames_of(page)] and first != shown


def test_a_box_of_several_results_follows():
    """Values of the first two results, gradients as they come back, and all of them with other leaves."""
    def made(numbers):
        x = torch.tensor(numbers, requires_grad=True)
        a, b, c = x.split([1, 2, 1])
        return explain(((a * b).sum() + b.sum()) * c.sum(), names={"x": x, "a": a, "b": b, "c": c})
    with opened(made([3.0, 1.0, 2.0, 5.0]).html()) as page:
        line = 'svg .node:has(.value:text-matches(", …$")) '
        assert page.text_content(line + ".name") == "a, b, c" and page.text_content(line + ".value") == "= 3, [1, 2], …"
        seen = []
        for frame in range(int(page.get_attribute("#step", "max")) + 1):
            go(page, frame)
            seen += [text for text in [page.text_content(line + ".gradient")] if text not in seen[-1:]]
        # hidden at first
        assert seen == ["grad 15, [20, 20], …", "grad ?, ?, …", "grad ?, [5, 5], …", "grad 15, [20, 20], …"]
        page.evaluate(NOW, [{"x": [2.0, 1.0, 4.0, 5.0]}, []])
        assert (page.text_content(line + ".value") == "= 2, [1, 4], …"
                and page.text_content(line + ".gradient") == "grad 25, [15, 15], …")


def frames_of(page):
    """Yield the text of each frame."""
    for frame in range(int(page.get_attribute("#step", "max")) + 1):
        go(page, frame)
        yield told(page)


NOW = """([leaves, keys]) => {
  for (const leaf of Explorer.Tuning.leaves) leaves[leaf.name].forEach((x, i) => Explorer.Tuning.set(leaf, i, x));
  Explorer.Tuning.run();
  const stale = [...document.querySelectorAll("[data-stale]")].map(part => part.dataset.parts);
  return Object.fromEntries(keys.filter(key => !stale.some(prefix => key.startsWith(prefix))).map(key => [key, Array.from(Explorer.Arrays.now(key).data)]));
}"""  # noqa: E501


def test_all_that_is_shown_follows():
    """Values, shares and sums of random programs and of the parts of their steps, with other leaves: those that the
    engine explains.
    """
    seen = inner = 0
    with opened("<p>") as page:
        for seed in range(0, 60, 6):
            loss, leaves = random_program(seed, leaves_of(seed, dtype="float32"))
            found = explain(loss, names=leaves)
            if not program(found)["able"]:
                continue
            page.set_content(found.html())
            loss, leaves = random_program(seed, leaves_of(seed, 1, dtype="float32"))
            other = explain(loss, names=leaves)
            expected = arrays(other)
            used = {name for name, _, _ in other.given}
            keys = [key for key in expected if "c:" not in key]
            got = page.evaluate(NOW,
                                [{name: leaf.numpy(force=True).reshape(-1).tolist()
                                  for name, leaf in leaves.items() if name in used}, keys])
            scale = max(np.abs(expected[key]).max() for key in keys)
            inner += sum("/" in key for key in got)
            for key in got:
                np.testing.assert_allclose(got[key], expected[key].reshape(-1), rtol=1e-4, atol=1e-5 * scale,
                                           err_msg=f"program {seed}, {key}")
            seen += 1
    assert seen >= 8 and inner > 100


def arrays(found):
    """Return the arrays that the page of an explanation shows, by their keys."""
    kept = Numbers(found)
    Frames(found, kept).all(found.forward, found.steps, found.given, True)
    inner = [part.numbers for part in parts(found, found.steps).values() if part.data["program"]]
    return {key: value.dots for numbers in (kept, *inner) for key, value in numbers.arrays.items()}


def test_a_step_is_opened():
    """Its parts are below its rule, and follow other leaves; of a step that the page cannot compute, they say that they
    are the old ones.
    """
    x = torch.tensor([[1.0, 3.0]], requires_grad=True)
    with opened("<p>") as page:
        page.set_content(explain(F.mse_loss(x, torch.zeros(1, 2)), names={"x": x}).html())
        go(page, 3)
        assert page.locator(".parts").count() == 1 and not page.locator(".part:visible").count()
        page.click(".parts > summary")
        assert page.locator(".part:visible").count() == 6 and page.locator(".part:visible .told").count() == 4
        assert (page.locator(".part", has_text="subtract").first.inner_text().startswith("subtract")
                and "=5" in told(page))
        page.get_by_role("textbox", name="x[0, 0], typed").fill("5")
        until(page, "document.querySelector('.parts').textContent.includes('17')")
        assert "∂L/∂x=g=53" in told(page) and not page.locator("[data-stale]").count()
        page.set_content(explain(F.leaky_relu(x).sum(), names={"x": x}).html())
        page.get_by_role("textbox", name="x[0, 0], typed").fill("-2")
        until(page, "Explorer.Arrays.now('v:0').data[0] === -2")
        # where x > 0 is computed anew
        assert page.locator(".parts").count() == 1 and not page.locator("[data-stale]").count()
        a, b = x[0].cummax(0)[0].unbind(0)
        page.set_content(explain(a * b, names={"x": x}).html())
        page.get_by_role("textbox", name="x[0, 0], typed").fill("2")
        until(page, "Explorer.Arrays.now('v:0').data[0] === 2")
        # steps of several results are not
        assert page.locator("[data-stale]").count() == page.locator(".parts").count() > 0
        page.click("#reset")
        assert not page.locator("[data-stale]").count()


def test_the_page_says_why_it_only_shows():
    x = torch.randn(70, 70, requires_grad=True)
    with opened(explain((x * x).sum(), names={"x": x}).html()) as page:
        assert ("This page only shows the numbers, and cannot compute with others: it computes more than 4000 "
                "numbers." in page.inner_text(".dock"))
        assert not page.locator(".leaves, #reset").count() and page.locator("canvas:visible").count() == 1
        page.locator("canvas:visible").click()


# ── heat maps ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def heat():
    x = torch.arange(-40.0, 40.0).reshape(8, 10).requires_grad_()
    v = torch.linspace(-1, 1, 20).requires_grad_()
    k = torch.zeros(2, 1, 3, 3, requires_grad=True)
    return explain((x * x).sum() + (v * v).sum() + (k * 2).sum(), names={"x": x, "v": v, "k": k})


LIGHTNESS = 0.21, 0.72, 0.07
COLOUR = """([key, place]) => {
  const canvas = document.querySelector(`.frame:not([hidden]) [data-show="${key}"] canvas`);
  return [...canvas.getContext("2d").getImageData(place[0], place[1], 1, 1).data];
}"""


def test_heat_maps():
    """Blue below zero and orange above; the number of a dot is told, all of them on demand; a dot of a leaf is one that
    can be changed.
    """
    with opened(heat().html()) as page:
        keys = page.eval_on_selector_all(".frame:not([hidden]) [data-heat]", "all => all.map(e => e.dataset.show)")
        assert len(keys) == 3
        sizes = page.eval_on_selector_all(".frame:not([hidden]) canvas", "all => all.map(e => [e.width, e.height])")
        assert sizes == [[10, 8], [20, 1], [7, 3]]
        low, zero, high = (page.evaluate(COLOUR, [keys[0], place]) for place in ((0, 0), (0, 4), (9, 7)))
        assert low[2] > low[0] + 80 and high[0] > high[2] + 80 and zero[:3] == [247, 247, 247]
        assert abs(np.dot(low[:3], LIGHTNESS) - np.dot(high[:3], LIGHTNESS)) < 40
        map_ = page.locator("[data-heat]:visible").first
        canvas = map_.locator("canvas")
        assert canvas.get_attribute("aria-label") == "8 × 10 numbers from −40 to 39, mean −0.5"
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + 1.5 * box["width"] / 10, box["y"] + 0.5 * box["height"] / 8)
        assert map_.locator(".dot").inner_text() == "[0, 1] = −39"
        canvas.focus()
        page.keyboard.press("ArrowDown")
        assert map_.locator(".dot").inner_text() == "[1, 1] = −29" and at(page) == 0
        page.keyboard.press("Enter")
        assert page.get_by_role("textbox", name="Element").input_value() == "1, 1"
        map_.get_by_role("button", name="numbers").click()
        assert map_.locator("td").count() == 80
        page.get_by_role("textbox", name="x[1, 1], typed").fill("500")
        until(page, "Explorer.Arrays.now('v:0').data[11] === 500")
        assert "500" in map_.locator("td").nth(11).inner_text() and "to 500" in canvas.get_attribute("aria-label")
        before = page.evaluate(COLOUR, [keys[0], (0, 0)])
        page.emulate_media(color_scheme="dark")
        until(page, f"document.querySelector('.frame:not([hidden]) canvas').getContext('2d').getImageData(0, 0, 1, "
                    f"1).data[0] !== {before[0]}")


def test_numbers_that_are_none():
    """NaN, infinities, nothing: all are shown, and computed with."""
    odd = torch.full((5, 8), float("nan"), requires_grad=True)
    endless = torch.full((5, 8), float("inf"), requires_grad=True)
    empty = torch.zeros(0, 20, requires_grad=True)
    found = explain((odd * 2).sum() + (endless * 2).sum() + (empty * 2).sum(),
                    names={"odd": odd, "endless": endless, "empty": empty})
    with opened(found.html()) as page:
        for _ in frames_of(page):
            assert not scrolls_sideways(page)
        go(page, 0)
        assert page.locator("canvas:visible").count() == 2
        assert page.evaluate(COLOUR, [f"v:{found.keys[found.given[0][2]]}", (0, 0)])[:3] == [255, 0, 200]
        page.get_by_role("textbox", name="[0, 0], typed").fill("1")
        until(page, "!document.getElementById('reset').disabled")


# ── paper, pictures, notebooks ────────────────────────────────────────────────────────────────────────────────────────


def test_paper_shows_all_steps():
    with opened(heat().html(), dark=True) as page:
        count = page.locator(".frame").count()
        page.emulate_media(media="print", color_scheme="light")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert (page.locator(".frame:visible").count() == count
                and not page.locator(".controls:visible, .steps:visible, .leaves:visible").count())
        assert page.locator("canvas:visible").count() == page.locator("[data-heat]").count()
        assert len(numbers(page, "gradient")) == page.locator("svg .node .gradient").count()
        assert page.evaluate("getComputedStyle(document.querySelector('.panel')).overflow") == "visible"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
        assert page.locator(".frame:visible").count() == 1 and page.get_attribute(".explorer", "data-phase") == ""
        assert len(page.pdf()) > 20_000


def test_a_step_is_saved_as_a_picture(tmp_path):
    with opened(scalars().html()) as page:
        page.get_by_role("button", name="multiply → x").click()
        with page.expect_download() as download:
            page.click("#picture")
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        root = ElementTree.parse(path).getroot()
        texts = [e for e in root.iter("{http://www.w3.org/2000/svg}text")]
        seen = {e.text for e in texts if e.get("visibility") != "hidden"}
        assert path.name == "step-10.svg" and {"grad 4", "= −6"} <= seen
        assert {"∂L/∂x + = g · x", "= 1 · 2", "= 2", "∂L/∂x = 2 + 2", "v4 = x · x"} <= seen
        assert (not root.findall(".//{http://www.w3.org/2000/svg}style")
                and not re.search(r"var\(|class=", path.read_text(encoding="utf-8")))
        strokes = {e.get("stroke") for e in root.iter("{http://www.w3.org/2000/svg}rect")}
        assert "rgb(179, 71, 0)" in strokes or "rgb(179, 70, 0)" in strokes


def test_the_page_in_a_notebook():
    with opened(f"<!doctype html><meta charset=utf-8><title>t</title>{scalars()._repr_html_()}") as page:
        frame = page.frame_locator("iframe")
        frame.locator("#next").click()
        assert frame.locator("#step").input_value() == "1"
        frame.get_by_role("textbox", name="x, typed").fill("5")
        frame.locator(".frame:visible", has_text="−15").wait_for()


def test_it_is_saved_and_shown(tmp_path, monkeypatch):
    opened_at = []
    monkeypatch.setattr("webbrowser.open", opened_at.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = scalars().show()
    assert opened_at == [path.as_uri()] and path.read_text(encoding="utf-8") == scalars().html()
    assert scalars().save(tmp_path / "deep" / "page.html").read_text(encoding="utf-8") == scalars().html()


def test_motion_and_darkness_as_the_reader_wants_them():
    with opened(scalars().html(), dark=True) as page:
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        for motion, name in ("no-preference", "flow"), ("reduce", "none"):
            page.emulate_media(reduced_motion=motion)
            assert page.evaluate("getComputedStyle(document.querySelector('svg .edge.lit')).animationName") == name
        assert not page.evaluate(
            "getComputedStyle(document.querySelector('.panel')).backgroundColor.match(/\\d+/g).slice(0, 3).every(n => "
            "n > 128)")


# ── programs of all kinds ─────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = ["<script>document.title = 'hacked'</script>", "</script><img src=x onerror=\"document.title='hacked'\">",
           "x" * 10_000, "🦊" * 30, "עברית \u202egnp.exe", "a\0b\x1b\r\n", "\"'><b>", "\ud800"]


def test_programs_of_all_kinds_and_hostile_names():
    from tests.viz.test_explain import PROGRAMS
    leaves = {name: torch.tensor(1.0 + i, requires_grad=True) for i, name in enumerate(HOSTILE)}
    with opened("<p>", width=PHONE) as page:
        for program_ in PROGRAMS[::2]:
            loss, _ = program_(torch)
            page.set_content(explain(loss).html())
            page.keyboard.press("End")
            assert (at(page) == int(page.get_attribute("#step", "max"))
                    and "What has arrived" in told(page)), program_.__name__
            assert not scrolls_sideways(page), program_.__name__
        page.set_content(explain(torch.stack(list(leaves.values())).prod(), names=leaves).html())
        for _ in range(int(page.get_attribute("#step", "max"))):
            assert not scrolls_sideways(page)
            page.keyboard.press("ArrowRight")
        page.click(".leaves > summary")
        assert not scrolls_sideways(page)
        assert page.locator(".explorer img, .explorer b").count() == 0 and page.title() == "Backprop of L, step by step"


def test_blocks_carry_what_programs_read():
    """The attributes of a gradient that a step gives, and the numbers that they name."""
    with opened(scalars().html(), width=DESKTOP) as page:
        blocks = page.eval_on_selector_all(".told", "all => all.map(e => ({...e.dataset}))")
        stored = json.loads(page.text_content("#numbers"))
        assert len(blocks) == sum(len(step.gives) for step in scalars())
        for block in blocks:
            assert {block["share"], block["total"], *json.loads(block["letters"]).values()} <= stored.keys()
        square = [b for b in blocks if b["step"] == "2"]
        assert ([b["input"] for b in square] == ["a", "b"] and square[0]["rule"] == "g · b"
                and square[1]["before"] == square[0]["total"])
        values = page.evaluate("keys => keys.map(key => Explorer.Arrays.now(key).data[0])",
                               [square[1][k] for k in ("share", "before", "total")])
        assert values == [2, 2, 4]
