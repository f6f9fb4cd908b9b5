"""The table and the picture of a comparison."""
from __future__ import annotations

from html import escape
from typing import Any

from .comparison import TITLES, Found, Row

# bars, and the part of a bar that is imports; colours that all kinds of eyes tell apart
COLOURS = {"eager": ("#56B4E9", "#BBE1F6"), "compiled": ("#0072B2", "#99C7E0"), "pytorch": ("#D55E00", "#EEBF99"),
           "onnxruntime": ("#009E73", "#99D8C7"), "openvino": ("#767676", "#C8C8C8")}
FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def seconds(value: float | None) -> str:
    """Return a time as text.

    >>> seconds(0.0123), seconds(2.5), seconds(None)
    ('12.3 ms', '2.50 s', '–')
    """
    if value is None:
        return "–"
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if value * factor >= 1:
            number = value * factor
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}" if unit == "ms" \
                else f"{number:.2f} {unit}"
    return f"{value * 1e6:.3g} µs"


def memory(value: float | None) -> str:
    return "–" if value is None else f"{value / 2 ** 20:,.0f} MiB"


def table(found: Found) -> str:
    """Return the rows as a table of text, in Markdown's form."""
    head = ["batch", "library", "median", "quartiles", "ratio", "first result", "imports", "rest", "peak memory"]
    lines = [head, ["---:", "---", *["---:"] * (len(head) - 2)]]
    for row in found.rows:
        against = reference(found, row.batch)
        if row.times is None:
            lines.append([str(row.batch), TITLES[row.library], row.problem, *[""] * (len(head) - 3)])
            continue
        low, middle, high = row.times
        ratio = "" if against is None or against.times is None else f"{middle / against.times[1]:.2f}"
        rest = None if row.first is None or row.imports is None else row.first - row.imports
        lines.append([str(row.batch), TITLES[row.library], seconds(middle), f"{seconds(low)} to {seconds(high)}", ratio,
                      row.problem or seconds(row.first), seconds(row.imports), seconds(rest), memory(row.peak)])
    widths = [max(len(line[i]) for line in lines if line[2] == lines[0][2] or line[3]) for i in range(len(head))]
    return "\n".join("| " + " | ".join(text.ljust(width) if i in (1,) else text.rjust(width)
                                       for i, (text, width) in enumerate(zip(line, widths, strict=True))) + " |"
                     for line in lines)


def reference(found: Found, batch: int) -> Row | None:
    """Return the row that ratios are taken to: onnxruntime's, else PyTorch's, else tensorgrad's eager one."""
    rows = {row.library: row for row in found.rows if row.batch == batch and row.times}
    return next((rows[name] for name in ("onnxruntime", "pytorch", "eager") if name in rows), None)


def text(found: Found) -> str:
    """Return all that there is to say: the model, the table, the machine."""
    against = next(filter(None, (reference(found, row.batch) for row in found.rows)), None)
    names = f"Ratios are to {TITLES[against.library]}. " if against else ""
    return "\n".join([
        f"{found.model}: {', '.join(found.inputs)}; {found.threads} thread{'s' * (found.threads > 1)}", "",
        table(found), "",
        f"{names}First result: from the start of a fresh process, imports included; peak memory is that process's.",
        f"{', '.join(found.versions)}", found.machine])


# ── picture ───────────────────────────────────────────────────────────────────────────────────────────────────────────

LEFT, WIDTH, GAP = 168, 250, 104            # where bars begin, their longest, and the room for a number
STEP, THICK = 22, 16                        # from one bar to the next, and its thickness


def picture(found: Found) -> str:
    """Return an SVG: bars of the times of a run, of the first result (imports lighter), and of memory."""
    rows = [row for row in found.rows if row.times]
    batches = [row.batch for row in rows]
    heads = [i for i, batch in enumerate(batches) if i == 0 or batch != batches[i - 1]]
    places = [58 + STEP * (i + sum(head <= i for head in heads)) for i in range(len(rows))]
    parts = [label(16, 22, found.model, size=14, weight=600)]
    parts += [label(16, places[i] - 6, f"batch {batches[i]}", weight=600) for i in heads]
    parts += [label(16, y + 12, TITLES[row.library]) for y, row in zip(places, rows, strict=True)]
    panels: list[tuple[str, list[tuple[float, float]], Any]] = [
        ("time of a run", [(0.0, row.times[1]) for row in rows if row.times], seconds),
        ("first result, fresh process", [(row.imports or 0.0, row.first or 0.0) for row in rows], seconds),
        ("peak memory", [(0.0, row.peak or 0.0) for row in rows], memory)]
    for number, (title, bars, told) in enumerate(panels):
        left = LEFT + number * (WIDTH + GAP)
        parts.append(label(left, 46, title, weight=600))
        ends = [max(whole, *row.times) if row.times and not number else whole for row, (_, whole) in zip(rows, bars)]
        for i, (y, row, (light, whole)) in enumerate(zip(places, rows, bars, strict=True)):
            # times of a run are compared within a batch
            most = max(end for end, batch in zip(ends, batches, strict=True) if number or batch == batches[i]) or 1.0
            colour, lighter = COLOURS[row.library]
            parts += [rectangle(left, y, light / most, lighter), rectangle(left, y, whole / most, colour, light / most),
                      label(left + ends[i] / most * WIDTH + 6, y + 12, told(whole or None), size=11)]
            if not number and row.times:
                low, _, high = row.times
                parts.append(rectangle(left, y + THICK / 2 - 1, high / most, "#000000", low / most, 2))
    width, foot = LEFT + len(panels) * (WIDTH + GAP), 58 + STEP * (len(rows) + len(heads)) + 24
    parts += [label(16, foot, "imports are lighter; black lines are from the first quartile to the third", size=10),
              label(16, foot + 14, f"{found.threads} threads; {', '.join(found.versions)}", size=10),
              label(16, foot + 28, found.machine, size=10)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{foot + 40}" viewBox="0 0 {width} '
            f'{foot + 40}" font-family="{FONT}">\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def label(x: float, y: float, words: str, size: int = 12, weight: int = 400) -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}px" font-weight="{weight}" fill="#222222">'
            f'{escape(words)}</text>')


def rectangle(left: float, y: float, end: float, colour: str, start: float = 0.0, height: float = THICK) -> str:
    """Return a bar from one part of the width to another."""
    return (f'<rect x="{left + start * WIDTH:.1f}" y="{y:.1f}" width="{max(end - start, 0) * WIDTH:.1f}" '
            f'height="{height}" fill="{colour}"/>')
