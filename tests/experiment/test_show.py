"""Runs shown beside each other: what is read of damaged and hostile directories, the table, and the page in a
browser."""

import json
import math
import os
import re
import time
from html.parser import HTMLParser

import numpy as np
import pytest
from browser import DESKTOP, PHONE, keep, opened, overlaps, scrolls_sideways, widths

from tensorgrad.experiment import show
from tensorgrad.experiment.run import Run
from tensorgrad.experiment.show import curves, reading
from tensorgrad.viz.text import columns

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e"


def make(path, metrics="step,time,loss\n0,0.1,0.5\n1,0.2,0.25\n", about=None, config=None):
    """A run's directory of these texts."""
    path.mkdir(parents=True)
    if about is not None:
        (path / "run.json").write_text(about if isinstance(about, str) else json.dumps(about))
    if config is not None:
        (path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    if metrics is not None:
        (path / "metrics.csv").write_bytes(metrics if isinstance(metrics, bytes) else metrics.encode())
    return path


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Three runs: one whose loss becomes NaN, and two that end well."""
    root = tmp_path_factory.mktemp("save")
    for k, name in enumerate(("first", "second", "third")):
        with Run(
            root / name,
            {"seed": 1, "optimizer": {"name": "Adam", "args": {"lr": 0.1 * (k + 1)}}},
            events=False,
            quiet=True,
        ) as run:
            for step in range(60):
                run.log(step, {"train/loss": math.exp(-step / (10 + 10 * k)) if k < 2 or step < 30 else math.nan})
                if step % 20 == 19:
                    run.log(step, {"epoch": step // 20, "val/acc": 0.5 + step / 200 + k / 100})
    return [show.read(path) for path in show.find(root)]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_reads_back(three):
    record = three[1]
    assert (record.name, record.status, record.step, record.problems) == ("second", "finished", 59, [])
    assert record.config["optimizer"]["args"]["lr"] == 0.2 and len(record.about["started"]) > 10
    assert list(record.series) == ["train/loss", "val/acc"] and record.series["train/loss"].values.tolist() == [
        math.exp(-s / 20) for s in range(60)
    ]
    assert (
        record.best("val/acc") == (pytest.approx(0.805), 59)
        and record.best("train/loss") == (math.exp(-59 / 20), 59)
        and record.best("missing") is None
    )
    assert (
        three[2].last("train/loss") == math.exp(-29 / 30) and np.isnan(three[2].series["train/loss"].values[30:]).all()
    )
    assert record.epochs[np.isfinite(record.epochs)].tolist() == [0, 1, 2]


def test_a_run_that_is_being_written_is_running_and_then_stopped(tmp_path):
    with Run(tmp_path / "a", events=False, quiet=True) as run:
        run.log(0, loss=1)
        assert show.read(run.path).status == "running"
        about = (run.path / "run.json").read_text()
    (run.path / "run.json").write_text(about)  # as it is after a kill
    assert show.read(run.path).status == "stopped"
    Run(run.path, resume=True, events=False, quiet=True).finish()


@pytest.mark.parametrize(
    "text, rows, problem",
    [
        ("step,time,loss\n0,0.1,0.5\n1,0.2,0.", 1, None),
        ("step,time,loss\n0,0.1,0.5\n1,0.2\n2,0.3,0.1,4\n3,0.4,0.2\n", 2, "2 damaged rows"),
        (b"\xef\xbb\xbfstep,time,loss\r\n0,0.1,\xff\r\n", 1, None),
        ('step,time,"loss\n0,1,2\n', 0, "metrics.csv cannot be read"),
        ("", 0, "metrics.csv cannot be read"),
        ("\0\0\0\n\0", 1, None),
        ('step,time,loss\n0,0.1,"un"closed"\n', 0, "1 damaged row is"),
        ("loss\n1\n2\n", 2, None),
        ("step,time," + ",".join("x" * 5000) + "\n", 0, "more than 4,096 columns"),
        (b"step,time,loss\n" + b"1" * (2 << 20), 0, "more than 1,048,576 bytes"),
    ],
    ids=range(10),
)
def test_damaged_metrics_are_told(tmp_path, text, rows, problem):
    record = show.read(make(tmp_path / "a", text, {"format": 1, "status": "finished"}))
    assert len(record.steps) in (rows, 0)
    assert any(problem in p for p in record.problems) if problem else not record.problems
    show.table([record]), show.page([record])


@pytest.mark.parametrize(
    "about",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"a": ' + "9" * 5000 + "}",
        "x" * (2 << 20),
        '{"status": 5, "git": "x", "command": {"a": 1}, "started": [1]}',
        '{"git": {"commit": 7, "branch": []}, "command": [[]]}',
    ],
    ids=range(7),
)
def test_a_damaged_run_json_is_told(tmp_path, about):
    record = show.read(make(tmp_path / "a", about=about))
    assert record.status == "unknown" and record.step == 1
    show.table([record]), show.page([record])


@pytest.mark.parametrize(
    "config",
    [
        "a: &x [*x]\n",
        "a: &a [" + "1, " * 99 + "]\n" + "".join(f"{c}: &{c} [" + f"*{p}, " * 99 + "]\n" for p, c in zip("abc", "bcd")),
        "!!python/object/apply:os.system ['x']",
        "a: [",
        "- 1",
        "a: " + "[" * 2000,
        "x" * (2 << 20),
    ],
    ids=range(7),
)
def test_a_hostile_configuration_is_told(tmp_path, config):
    pytest.importorskip("yaml")
    path = make(tmp_path / "a", about={"format": 1, "status": "finished"})
    (path / "config.yaml").write_text(config)
    record = show.read(path)
    assert record.config is None and len(record.problems) == 1 and "config" in record.problems[0]


def test_only_plain_files_are_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("step,time,x\n0,0,42\n")
    path = make(tmp_path / "a", None, {"format": 1})
    (path / "metrics.csv").symlink_to(secret)
    os.mkfifo(path / "config.yaml")
    record = show.read(path)
    assert not record.series and len(record.problems) == 2
    (path / "metrics.csv").unlink()
    os.mkfifo(path / "metrics.csv")
    assert not show.read(path).series
    with pytest.raises(FileNotFoundError):
        show.read(tmp_path / "missing")
    with pytest.raises(ValueError, match="is no run"):
        show.read(tmp_path)


def test_runs_are_found_in_the_order_of_their_numbers(tmp_path):
    for name in ("p/run-10", "p/run-2", "q", ".hidden/x", "p/run-2/ckpt/inner", "p/lr=0.1", "p/lr=0.01"):
        make(tmp_path / name)
    (tmp_path / "p" / "link").symlink_to(tmp_path / "q")
    assert [p.relative_to(tmp_path).as_posix() for p in show.find(tmp_path)] == [
        "p/lr=0.01",
        "p/lr=0.1",
        "p/run-2",
        "p/run-10",
        "q",
    ]
    assert show.find(tmp_path / "q") == [tmp_path / "q"]


def test_names_tell_runs_apart(tmp_path):
    records = [show.read(make(tmp_path / name)) for name in ("a/run-1", "b/run-1", "other")]
    assert reading.names(records) == ["a/run-1", "b/run-1", "other"]


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_table_compares_runs(three):
    text = show.table(three, width=200)
    head, _, first, second, third, *_ = text.splitlines()
    assert re.split(r"  +", head) == [
        "run",
        "status",
        "step",
        "time",
        "optimizer.args.lr",
        "train/loss (min)",
        "val/acc (max)",
    ]
    assert re.split(r"  +", first)[:3] == ["first", "finished", "59"] and "0.002739* / 0.002739" in first
    assert "0.815* / 0.815" in third and "0.3000000000000000" in third and "*" not in second


@pytest.mark.parametrize("width", [20, 40, 80, 300])
def test_the_table_fits_the_terminal(three, width, tmp_path, monkeypatch):
    wide = show.read(
        make(
            tmp_path / ("数" * 40),
            "step,time,"
            + ",".join(f"val/loss of a long name {i}" for i in range(9))
            + "\n0,0,"
            + ",".join("1" * 9)
            + "\n",
            {"format": 1, "status": "s" * 300},
        )
    )
    monkeypatch.setenv("COLUMNS", str(width))
    text = show.table([*three, wide])
    assert max(map(columns, text.splitlines())) <= width and all(name in text for name in ("first", "second", "third"))


def test_text_in_the_table_is_escaped(tmp_path):
    records = [
        show.read(make(tmp_path / name, f'step,time,"{EVIL}"\n0,0,1\n', {"format": 1, "status": EVIL}, {EVIL: i}))
        for i, name in enumerate(("a", "b\x1b[2J"))
    ]
    assert all(line.isprintable() for line in show.table(records).splitlines())
    assert show.table([]) == "no runs"


# ── curves ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_thinning_keeps_extremes_and_gaps():
    values = np.sin(np.arange(50_000) / 1000)
    values[12_345], values[23_456], values[34_567] = 9, -9, np.nan
    kept = curves.thinned(values, 400)
    assert len(kept) <= 403 and {0, 12_345, 23_456, 34_567, 49_999} <= set(kept.tolist()) and (np.diff(kept) > 0).all()
    assert len(curves.thinned(np.full(1000, np.nan), 10)) == 6


@pytest.mark.parametrize("low, high", [(0, 1), (-1e-7, 3e-7), (1e300, 1.7e308), (5, 5), (-1e308, 1e308), (0, 5e-324)])
def test_axes_of_any_numbers(low, high):
    reach = curves.reach([np.array([low, np.nan, high])], 0.04)
    found = curves.ticks(*reach, 5)
    assert reach[0] < reach[1] and all(reach[0] <= t <= reach[1] for t in found) and len(found) <= 7
    assert "nan" not in curves.path(np.arange(3.0), np.array([low, np.nan, high]), (0, 2), reach)


def test_epochs_are_spread_over_rows():
    nan = math.nan
    assert curves.spread_epochs(np.array([nan, 0, nan, nan, nan, 1, nan])).tolist() == [
        -0.25,
        0,
        0.25,
        0.5,
        0.75,
        1,
        1.25,
    ]
    assert curves.spread_epochs(np.array([0, 0, 1, 1.0])).tolist() == [0, 0.5, 1, 1.5]
    assert curves.spread_epochs(np.array([nan, 3, 3])) is None


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.found, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs


def test_text_in_the_page_is_escaped(tmp_path):
    records = [
        show.read(
            make(
                tmp_path / f"a{i}",
                f'step,time,"{EVIL}",note\n0,0,1,"{EVIL}"\n',
                {
                    "format": 1,
                    "status": EVIL,
                    "started": EVIL,
                    "command": [EVIL],
                    "git": {"commit": EVIL, "branch": EVIL},
                },
                {EVIL: f"{i}{EVIL}", "x": EVIL},
            )
        )
        for i in range(2)
    ]
    text = show.page(records)
    tags = Tags(text)
    assert (
        tags.found.count("script") == 2
        and "img" not in tags.found
        and not {name for name, _ in tags.attributes if name.startswith("on")}
    )
    assert "\x1b" not in text and "\u202e" not in text
    policy = next(v for k, v in tags.attributes if v and "default-src" in v)
    assert "default-src 'none'" in policy and re.search(r"script-src 'sha256-[\w+/=]{44}'$", policy)
    assert not [v for k, v in tags.attributes if k in ("src", "href")]
    with opened(text) as page:
        assert page.locator(".key").count() == 2


def test_a_page_of_long_runs_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        rows = np.column_stack([np.arange(50_000), np.arange(50_000) / 10, rng.random((50_000, 3))])
        body = "\n".join(",".join(map(repr, [int(r[0]), *r[1:].tolist()])) for r in rows)
        make(tmp_path / name, f"step,time,loss,acc,x\n{body}\n")
    text = show.page([show.read(p) for p in show.find(tmp_path)], tmp_path / "out.html")
    assert len(text) < 500_000 and (tmp_path / "out.html").read_text(encoding="utf-8") == text


def test_a_page_of_many_runs_stays_small_and_says_what_it_leaves_out(tmp_path):
    names, rng = [f"metric/of a long name number {i} loss" for i in range(70)], np.random.default_rng(0)
    body = "".join(f"{s},{s}," + ",".join(map(repr, row)) + "\n" for s, row in enumerate(rng.random((40, 70)).tolist()))
    record = show.read(make(tmp_path / "a", "step,time," + ",".join(names) + "\n" + body))
    records = [
        reading.Record(
            tmp_path / f"run with a long name {i}" / "x",
            "finished",
            {},
            {f"key{j}": f"{i}" * 100 for j in range(60)},
            record.series,
            {},
            record.steps,
            record.times,
            record.epochs,
        )
        for i in range(120)
    ]
    text = show.page(records)
    assert len(text.encode()) < 2_000_000
    assert "The first 100 of 120 runs" in text and "The first 15 of 70 metrics" in text and "the first 15 of 60" in text


def test_pages_of_little(tmp_path):
    assert "No runs" in show.page([])
    empty = show.read(make(tmp_path / "a", "step,time\n", {"format": 1, "status": "running"}))
    assert "No metrics have been logged yet" in show.page([empty])


@pytest.fixture(scope="module")
def shown(three):
    return show.page(three)


def until(page, condition):
    """Wait for a condition; the page's policy forbids Playwright's own way, which evaluates texts."""
    end = time.monotonic() + 60
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


@widths
def test_the_page_at_every_size(shown, width):
    with opened(shown, width) as page:
        assert page.locator("figure").count() == 2 and not scrolls_sideways(page)
        assert not overlaps(page, ".labels .y") and not overlaps(page, ".labels .x")
        assert page.evaluate(
            "[...document.querySelectorAll('.lines path')].map(p => p.getBoundingClientRect()).every(b => b.width > 20)"
        )
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        table = page.locator("table").first
        assert table.locator("td.top").count() == 2 and "best" in table.locator("td.top").first.text_content()
        for order, way in ((["first", "second", "third"], "ascending"), (["third", "second", "first"], "descending")):
            table.locator(".sort").nth(2).click()
            assert [n.strip() for n in table.locator("tbody .name").all_inner_texts()] == order
            assert table.locator("thead th").nth(2).get_attribute("aria-sort") == way
        page.locator(".plot").first.hover(position={"x": 150, "y": 60})
        assert page.locator(".tip:visible .name").all_inner_texts() and not scrolls_sideways(page)
        box = page.locator(".tip:visible").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width[0]
        keep(page, width)


def test_the_page_by_keyboard(shown):
    with opened(shown, DESKTOP) as page:
        line = page.locator("figure").first.locator(".lines path").nth(1).get_attribute("d")
        page.locator("#smooth").focus()
        page.keyboard.press("End")
        until(page, f"document.querySelectorAll('.lines path')[4].getAttribute('d') !== {json.dumps(line)}")
        page.keyboard.press("Home")
        page.locator("[name=x][value=step]").focus()
        page.keyboard.press("ArrowRight")
        until(page, "document.querySelector('.axis').textContent === 'epoch'")
        page.locator("#log").focus()
        page.keyboard.press("Space")
        until(page, "[...document.querySelectorAll('.y')].some(e => e.textContent === '0.01')")
        page.locator(".key").nth(1).focus()
        page.keyboard.press("Enter")
        until(page, "document.querySelectorAll('figure .lines')[0].children.length === 2")
        assert page.locator(".key").nth(1).get_attribute("aria-pressed") == "false"
        page.locator("[name=x][value=epoch]").focus()
        page.keyboard.press("ArrowLeft")
        until(page, "document.querySelector('.axis').textContent === 'step'")
        page.locator(".plot").nth(1).focus()
        for key in ("Home", "ArrowRight", "ArrowRight", "ArrowLeft"):
            page.keyboard.press(key)
        assert (
            page.locator("figure").nth(1).locator("[aria-live]").text_content() == "step 39: third 0.715, first 0.695"
        )
        page.keyboard.press("Escape")
        assert page.locator(".tip:visible").count() == 0


def test_the_page_without_scripts(shown):
    with opened(shown, PHONE, java_script_enabled=False) as page:
        assert (
            page.locator("table").count() == 3
            and page.locator(".lines path").count() == 6
            and page.locator(".labels .y").count() > 6
        )
        assert page.locator(".controls:visible").count() == 0
        assert page.locator("td.top").count() == 2
