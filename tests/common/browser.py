"""Pages in a real browser: headless Chromium, driven by Playwright. Tests skip, with a reason, where either is missing.

    with opened(html, width=PHONE) as page:         # text, or the path of a file
        page.click("text=Next")

A page that logs an error, raises one, or asks for anything from outside itself fails the test. With SCREENSHOTS=folder
in the environment, what each test looked at last is saved there.
"""
import os
import shutil
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

DESKTOP, PHONE = (1280, 800), (390, 844)
PLACES = ("chromium", "chromium-browser", "google-chrome", "chrome")
number = count(1)

widths = pytest.mark.parametrize("width", [DESKTOP, PHONE], ids=["desktop", "phone"])


def chromium():
    """The path of the browser. Skips the test that asks where there is none, or nothing to drive it."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: it drives the browser")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PLACES)), None)
    return found or pytest.skip("Chromium is not installed")


@contextmanager
def opened(content, width=DESKTOP, dark=False, **options):
    """Open a page in a new browser, of a size (width, height): HTML as text, or the path of a file.

    `options` go to Playwright's `new_context`; `page.problems` lists what was complained of so far.
    """
    program = chromium()
    from playwright.sync_api import sync_playwright
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = content
        if not isinstance(content, Path):
            path = Path(folder, "page.html")
            path.write_text(content, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=program, timeout=60_000, args=["--no-sandbox"])
        try:
            size = {"width": width[0], "height": width[1]}
            context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light", offline=True,
                                          **options)
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.problems = problems = []
            page.on("console", lambda message: message.type in ("error", "warning")
                    and problems.append(f"console: {message.text}"))
            page.on("pageerror", lambda error: problems.append(f"error: {error}"))
            page.on("request", lambda request: request.url.startswith(("file:", "data:", "blob:"))
                    or problems.append(f"asks for {request.url}"))
            page.goto(Path(path).resolve().as_uri())
            yield page
            keep(page, width)
            assert not problems, "\n".join(problems)
        finally:
            browser.close()


def keep(page, width=DESKTOP, name=None):
    """Save what the page shows now, if SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        test = os.environ.get("PYTEST_CURRENT_TEST", "page").rpartition("::")[2].partition(" ")[0]
        Path(folder).mkdir(parents=True, exist_ok=True)
        safe = "".join(c if c.isalnum() else "_" for c in name or f"{test}_{next(number)}")
        page.screenshot(path=Path(folder, f"{safe}_{width[0]}.png"))


OVERLAPS = """selector => {
  const seen = [...document.querySelectorAll(selector)].filter(e => e.textContent.trim() && e.checkVisibility({opacityProperty: true}));
  const boxes = seen.map(e => [e.textContent.trim(), e.getBoundingClientRect()]).filter(([, b]) => b.width && b.height);
  boxes.sort((a, b) => a[1].left - b[1].left);
  const found = [];
  for (let i = 0; i < boxes.length; i++)
    for (let j = i + 1; j < boxes.length && boxes[j][1].left < boxes[i][1].right - 1; j++) {
      const [a, b] = [boxes[i][1], boxes[j][1]];
      if (Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) found.push([boxes[i][0], boxes[j][0]]);
    }
  return found;
}"""  # noqa: E501


def overlaps(page, selector="svg text"):
    """Return the pairs of visible labels that overlap by more than a pixel."""
    return page.evaluate(OVERLAPS, selector)


def scrolls_sideways(page):
    """Return True if the page is wider than the window, which it must not be on a phone."""
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth + 1")
