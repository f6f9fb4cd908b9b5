"""Collectives to watch: every algorithm on real tensors, its messages against its formulas, and the page in a
browser.
"""
import re

import numpy as np
import pytest
from browser import PHONE, keep, opened, overlaps, scrolls_sideways
from support import cpu_only

import tensorgrad as torch
from tensorgrad.viz import collectives
from tensorgrad.viz.__main__ import main
from tensorgrad.viz.collectives import Network
from tensorgrad.viz.collectives.running import run
from tensorgrad.viz.collectives.schedules import COLLECTIVES

pytestmark = cpu_only
ALL = [(kind, name) for kind, known in COLLECTIVES.items() for name in known]


def sizes(kind, name):
    return [2, 4, 8] if COLLECTIVES[kind][name].powers else [2, 3, 4, 5, 7]


def tensors(n, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(n)
    return [torch.randint(-50, 50, shape, generator=generator).to(dtype) for _ in range(n)]


def expected(kind, given, root):
    """Compute each rank's result with NumPy."""
    arrays = [tensor.numpy() for tensor in given]
    total, n = sum(arrays), len(arrays)
    if kind == "reduce_scatter":
        return np.array_split(total.reshape(-1), n)
    each = {"all_reduce": total, "all_gather": np.concatenate(arrays), "broadcast": arrays[root], "reduce": total}[kind]
    return [each if kind != "reduce" or rank == root else None for rank in range(n)]


@pytest.mark.parametrize("kind, name", ALL)
def test_every_rank_gets_what_it_should(kind, name):
    for n in sizes(kind, name):
        root = n // 2 if kind in ("reduce", "broadcast") else 0
        given = tensors(n, 5, 3)                             # 15 numbers: chunks of unlike sizes
        before = [tensor.clone() for tensor in given]
        ran = run(kind, given, name, root=root)
        for found, wanted in zip(ran.results, expected(kind, given, root), strict=True):
            assert ((found is None) == (wanted is None)
                    and (found is None or found.dtype == torch.float64 and np.array_equal(found.numpy(), wanted)))
        assert (all(good for _, good in ran.checks) and all(torch.equal(a, b)
                                                            for a, b in zip(given, before, strict=True)))
        memory = [tensor.untyped_storage().data_ptr()
                  for tensor in [*given, *filter(lambda r: r is not None, ran.results)]]
        assert kind == "reduce_scatter" or len(set(memory)) == len(memory)
        for step in ran.steps:                               # no rank's values are added twice
            assert all(len(set(cell.parts)) == len(cell.parts) for row in step.cells for cell in row if cell)


@pytest.mark.parametrize("kind, name", ALL)
def test_messages_are_as_many_and_as_long_as_the_formulas_say(kind, name):
    algorithm = COLLECTIVES[kind][name]
    for n in sizes(kind, name):
        given = tensors(n, 8 if kind == "all_gather" else 8 * n)
        nbytes = 64 * n
        slow, narrow = (run(kind, given, name, network=network)
                        for network in (Network(1.0, float("inf")), Network(0.0, 1.0)))
        rounds, volume = (evaluated(formula.text, n) for formula in (algorithm.rounds, algorithm.volume))
        assert (slow.seconds == rounds == algorithm.rounds.of(n) and narrow.seconds == pytest.approx(volume * nbytes)
                and narrow.nbytes == nbytes)
        assert algorithm.volume.of(n) == pytest.approx(volume) and narrow.predicted == pytest.approx(narrow.seconds)


def evaluated(text, n):
    """The value of a formula as it is written."""
    for written, meant in (("⌈log₂ n⌉", f"({n - 1}).bit_length()"), ("−", "-"), ("2n", "2 * n"), ("2(", "2 * (")):
        text = text.replace(written, meant)
    return eval(text, {"n": n})


def test_a_ring_sends_to_the_right_only_and_all_ranks_as_much():
    ran = collectives.all_reduce(tensors(5, 20))
    assert all(sent.message.target == (sent.message.source + 1) % 5 for step in ran.steps for sent in step.sent)
    assert {ran.sent(rank) for rank in range(5)} == {8 * 4 * 8}


def test_shared_memory_adds_in_the_order_of_the_ranks():
    given = [torch.randn(64, generator=torch.Generator().manual_seed(rank)) for rank in range(4)]
    in_order = given[0] + given[1] + given[2] + given[3]
    assert torch.equal(collectives.all_reduce(given, "shared").results[3], in_order)
    ring = collectives.all_reduce(given, "ring")
    assert not torch.equal(ring.results[3], in_order) and torch.equal(ring.results[0], ring.results[3])
    assert [good for _, good in ring.checks] == [True] * 3 and "not those of adding in the order" in str(ring)


@pytest.mark.parametrize("op, wanted", [("sum", 1111), ("product", 10 ** 6), ("min", 1), ("max", 1000)])
def test_operations(op, wanted):
    assert ([collectives.all_reduce(4, name, op=op).results[2][0].item() for name in ("ring", "doubling", "shared")]
            == [wanted] * 3)


def test_other_dtypes_and_lists():
    assert collectives.all_reduce(tensors(4, 6, dtype=torch.int16), "halving").results[0].dtype == torch.int16
    half = collectives.reduce([torch.full((2,), 0.1, dtype=torch.float16)] * 3)
    assert half.results[0].dtype == torch.float16 and half.checks[-1][1]
    assert collectives.all_gather([1.0, 2.0, 3.0]).results[2].tolist() == [1.0, 2.0, 3.0]
    parameter = torch.nn.Parameter(torch.ones(2))
    assert not collectives.all_reduce([parameter, parameter]).results[0].requires_grad


@pytest.mark.parametrize("call, words", [
    (lambda: collectives.all_reduce(6, "halving"), "takes 2, 4, 8 … ranks, not 6"),
    (lambda: collectives.all_reduce(1), "among 2 to 64 ranks, not 1"),
    (lambda: collectives.all_reduce(10 ** 9), "among 2 to 64 ranks"),
    (lambda: collectives.broadcast(4, "halving"), "must be one of 'tree', 'ring', 'star', 'shared', not 'halving'"),
    (lambda: collectives.broadcast(4, root=4), "root must be a rank below 4, not 4"),
    (lambda: collectives.all_reduce(4, op="avg"), "op must be one of"),
    (lambda: collectives.all_reduce(4, network="token ring"), "network must be one of"),
    (lambda: collectives.all_reduce(4, network=(1e-6, 0.0)), "a bandwidth is positive"),
    (lambda: collectives.all_reduce([torch.ones(2), torch.ones(3)]), "one shape and dtype"),
    (lambda: collectives.all_reduce(17).html(), "up to 16 ranks, not 17")])
def test_errors(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()


def test_the_command(tmp_path, capsys):
    page, text = tmp_path / "a" / "page.html", tmp_path / "text.txt"
    assert main(["--collective", "all_reduce", "--algorithm", "halving", "--out", str(page)]) == 0
    assert ("halving and doubling, 4 steps" in capsys.readouterr().err
            and page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>"))
    assert main(["--collective", "broadcast", "--values", "1,2", "3,4", "--root", "1", "--network", "1e-3,1e3", "--out",
                 str(text)]) == 0
    assert "0: 3 | 4    1: 3 | 4" in text.read_text(encoding="utf-8") and "9 ms" in text.read_text(encoding="utf-8")
    for wrong in (["all_reduce", "--algorithm", "nothing"], ["all_reduce", "--out", "x.png"], ["gossip"],
                  ["all_reduce", "--network", "1"]):
        with pytest.raises(SystemExit) as end:
            main(["--collective", *wrong])
        assert end.value.code == 2 and "error: " in capsys.readouterr().err


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_steps_in_a_browser():
    with opened(collectives.all_reduce(4).html(), reduced_motion="reduce") as page:
        shown = page.locator(".frame.on")
        assert shown.count() == 1 and "The beginning" in shown.inner_text() and page.locator("#back").is_disabled()
        page.keyboard.press("ArrowRight")
        assert ("Step 1 of 6" in shown.inner_text() and shown.locator(".way").count() == 4
                and shown.locator(".changed").count() == 4)
        assert shown.locator(".token").first.is_hidden() and "2 + 2000" not in shown.inner_text()
        page.locator(".go", has_text="3").click()
        assert ("1110 + 1" not in shown.inner_text() and "1 + 1110" in shown.inner_text()
                and shown.locator(".whole").count() == 4)
        assert page.locator(".steps tr.at").inner_text().startswith("3")
        page.keyboard.press("End")
        assert (page.locator("#next").is_disabled() and "Done." in shown.inner_text()
                and shown.locator(".whole").count() == 16)
        assert not overlaps(page, ".frame.on svg text, .chart text") and not scrolls_sideways(page)
        page.locator("h1").click()
        page.keyboard.press(" ")                             # plays from the beginning
        assert "The beginning" in shown.inner_text() and page.locator("#play").get_attribute("aria-label") == "Pause"
        page.keyboard.press(" ")
        keep(page)
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert not scrolls_sideways(page)
        page.emulate_media(reduced_motion="no-preference")
        page.keyboard.press("ArrowRight")
        assert "travel" in shown.locator(".token").first.evaluate("e => e.checkVisibility() && "
                                                                  "getComputedStyle(e).animationName")
        page.emulate_media(color_scheme="dark")
        assert page.locator("h1").evaluate("e => getComputedStyle(e).color") == "rgb(232, 237, 244)"
        page.emulate_media(media="print")
        assert (page.locator(".frame").evaluate_all("frames => frames.every(frame => frame.checkVisibility())")
                and page.locator(".controls").is_hidden())


def test_without_a_script_all_steps_are_there():
    page = collectives.reduce_scatter(3).html()
    frames = page.split('<section class="frame"')[1:]
    assert len(frames) == 3 and all(" hidden" not in frame and "<svg" in frame for frame in frames)
    assert [frame.count(" pale") for frame in frames] == [0, 0, 6]                  # what is left over is no result
