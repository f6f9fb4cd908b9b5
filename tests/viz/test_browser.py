"""Pages of graphs in a browser: groups open and close by click and key, nothing overlaps, names are text, at desktop
and phone width.
"""
import pytest
from browser import DESKTOP, keep, opened, overlaps, scrolls_sideways, widths
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn, viz

pytestmark = cpu_only


def encoder(layers):
    torch.manual_seed(0)
    module = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0., batch_first=True), layers)
    with viz.watch(module):
        return module(torch.rand(2, 5, 16, requires_grad=True)).sum()


@pytest.fixture(scope="module")
def folded():
    return viz.graph(encoder(12)).html()


def small():
    w, x, b = (torch.rand(*shape, requires_grad=True) for shape in ((2, 3), (4, 3), (2,)))
    return viz.graph((x @ w.T + b).tanh().sum(), names={"w": w, "x": x, "b": b}, values=True, gradients=True,
                     saved=True)


def lstm_cell(backward=False):
    x, h, c, w, u, b = (torch.rand(*shape, requires_grad=True)
                        for shape in ((4, 3), (4, 5), (4, 5), (3, 20), (5, 20), (20,)))
    i, f, g, o = (x @ w + h @ u + b).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return viz.graph((torch.sigmoid(o) * torch.tanh(c)).sum(), backward=backward)


def nodes(page):
    return page.locator("#graph .node:not(.note)").count()


@widths
def test_a_group_opens_and_closes(folded, width):
    with opened(folded, width) as page:
        before, closed = nodes(page), page.locator(".group.closed").count()
        assert before < 30 and "× 12" in page.inner_text("#graph") and not overlaps(page)
        rest = page.locator(".group.closed", has_text="more like it")
        rest.click()
        assert page.locator(".group.closed").count() == closed + 10 and nodes(page) == before and not overlaps(page)
        page.locator(".group.closed").nth(4).click()
        assert nodes(page) > before and not overlaps(page)
        keep(page, width)
        page.get_by_role("button", name="11 more like it").click()
        assert nodes(page) == before and page.locator(".group.closed").count() == closed
        assert not scrolls_sideways(page)


@widths
def test_what_was_clicked_stays_where_it_is(folded, width):
    with opened(folded, width) as page:
        rest = page.locator(".group.closed", has_text="more like it")
        rest.scroll_into_view_if_needed()
        before = rest.bounding_box()
        rest.click()
        after = page.locator("[data-of]", has_text="more like it").bounding_box()
        assert abs(after["y"] - before["y"]) < 3


def test_keys_open_close_and_zoom(folded):
    with opened(folded) as page:
        page.locator(".group.closed").filter(has_not_text="more like it").first.click()
        before = nodes(page)
        page.keyboard.press("Enter")              # what was clicked has the focus
        assert nodes(page) < before and page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
        page.keyboard.press(" ")
        assert nodes(page) == before and page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
        wide = page.locator("#graph svg").bounding_box()["width"]
        page.keyboard.press("+")
        assert page.locator("#graph svg").bounding_box()["width"] > 1.2 * wide
        page.keyboard.press("0")
        box, room = page.locator("#graph svg").bounding_box(), page.locator("#graph").bounding_box()
        assert box["height"] <= room["height"] and box["width"] <= room["width"]


@widths
def test_all_open_and_all_closed(folded, width):
    with opened(folded, width) as page:
        page.get_by_role("button", name="Open all groups").click()
        assert nodes(page) > 300 and page.locator(".group.closed").count() == 0 and not overlaps(page)
        page.get_by_role("button", name="The whole graph").click()
        keep(page, width)
        page.get_by_role("button", name="Close all groups").click()
        assert nodes(page) < 5 and page.locator(".group.closed").count() == 1
        page.get_by_role("button", name="As it was").click()
        assert page.locator("#graph .group").count() >= 3


def test_a_box_tells_what_is_known_and_lights_up_its_ways():
    with opened(small().html()) as page:
        assert page.locator("#told").is_hidden()
        page.locator(".node", has_text="matmul").click()
        told = page.inner_text("#told")
        assert "grad_fn: MmBackward0" in told and "saves" in told
        assert page.locator(".edge.lit").count() == 3 and page.locator(".node.lit").count() == 1
        keep(page)
        page.keyboard.press("Escape")
        assert page.locator("#told").is_hidden() and page.locator(".lit").count() == 0
        page.locator(".node", has_text="tanh").focus()
        page.keyboard.press("Enter")
        assert "TanhBackward0" in page.inner_text("#told")


@pytest.mark.parametrize("name, make", [("small", small), ("lstm", lstm_cell),
                                        ("back", lambda: lstm_cell(backward=True))], ids=["small", "lstm", "back"])
@widths
def test_pictures_without_overlaps(name, make, width):
    graph = make()
    with opened(graph.html(), width) as page:
        assert not overlaps(page) and not scrolls_sideways(page)
    with opened(f"<!DOCTYPE html><body>{graph.svg()}", width) as page:
        assert not overlaps(page) and inside_their_boxes(page)


def inside_their_boxes(page):
    """Return True if every line of text fits its box."""
    return page.evaluate("""() => [...document.querySelectorAll('.node, .group.closed')].every(box => {
        const around = box.querySelector('rect').getBoundingClientRect();
        return [...box.querySelectorAll('text')].every(text => {
            const b = text.getBoundingClientRect();
            return b.left >= around.left && b.right <= around.right && b.top >= around.top - 1 && b.bottom <= around.bottom + 1;
        });
    })""")  # noqa: E501


@widths
def test_hostile_names_are_text(width):
    names = ["<script>document.title='got'</script>", "</script><img src=x onerror=document.title='got'>", "😀 漢字 שלום",  # noqa: E501
             "\u202eevil\0", "W" * 10_000]
    made = {name: torch.rand(2, requires_grad=True) for name in names}
    total = sum(made.values(), torch.zeros(2))
    graph = viz.graph(total.sum(), names=made, values=True)
    with opened(graph.html(), width) as page:
        assert page.title() == "Graph of 6 steps" and "document.title='got'" in page.inner_text("#graph")
        assert "\ufffdevil␀" in page.inner_text("#graph") and not overlaps(page) and inside_their_boxes(page)
        assert page.locator("#graph img, #graph script").count() == 0
        page.locator(".node", has_text="WWWW").click()
        assert len(page.inner_text("#told")) < 2000 and not scrolls_sideways(page)
    with opened(f"<!DOCTYPE html><body>{graph._repr_html_()}", width) as page:
        page.frame_locator("iframe").locator(".node", has_text="sum").wait_for()


@widths
def test_a_failed_forward(width):
    with pytest.raises(RuntimeError), viz.watch() as seen:
        nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(5, 2))(torch.rand(3, 4))
    with opened(seen.graph().html(), width) as page:
        assert "mat1 and mat2 shapes cannot be multiplied" in page.inner_text("#told")
        style = page.locator(".node.failed rect").evaluate("e => [getComputedStyle(e).strokeDasharray, "
                                                           "getComputedStyle(e).stroke]")
        assert style[0] != "none" and style[1] == "rgb(213, 94, 0)" and page.locator(".edge.broken").count() == 3
        assert not overlaps(page) and inside_their_boxes(page)


def test_a_graph_of_thousands_opens():
    module = nn.Sequential(*[nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.ReLU(), nn.LayerNorm(3))
                             for _ in range(400)])
    with viz.watch(module):
        y = module(torch.rand(1, 3)).sum()
    with opened(viz.graph(y).html(), DESKTOP) as page:
        page.locator(".group.closed", has_text="more like it").click()
        page.get_by_role("button", name="Open all groups").click()
        assert nodes(page) > 4000 and not overlaps(page, "#graph .title")
        page.get_by_role("button", name="The whole graph").click()


def test_dark():
    with opened(lstm_cell(backward=True).html(), dark=True) as page:
        dark = page.evaluate("getComputedStyle(document.querySelector('.tensorgrad-graph .title')).fill")
        assert dark == "rgb(232, 237, 244)"
