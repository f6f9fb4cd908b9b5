"""A record as a page: curves, the last numbers of each layer in a table, and how the training goes or went."""
from __future__ import annotations

import math

from .. import html
from ..plots import running_mean
from ..text import escape
from .boundary import MOST as POINTS
from .boundary import Boundary
from .chart import STYLE, Line, chart, legend, picked, short
from .recording import Record

PAGE = """
html { overflow-anchor: none; }
main { max-width: 1240px; margin: 0 auto; padding: 14px 16px 40px; }
header { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; margin-bottom: 12px; }
header p, .note { margin: 0; color: var(--muted); overflow-wrap: anywhere; }
header .failed { color: var(--warm); font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(340px, 100%), 1fr)); gap: 14px; }
section { border: 1px solid var(--rule); border-radius: 9px; padding: 10px 12px; min-width: 0; }
section.wide { margin-top: 14px; overflow-x: auto; }
h2 { font-size: .9rem; margin: 0 0 6px; }
section > svg { display: block; width: 100%; height: auto; }
.legend { list-style: none; margin: 6px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 1px 12px; font-size: .78rem; color: var(--muted); }
.legend svg { margin-right: 5px; } .legend li { overflow-wrap: anywhere; } .note { font-size: .78rem; }
table { border-collapse: collapse; font-size: .8rem; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 8px 3px 0; text-align: right; border-bottom: 1px solid var(--rule); font-weight: 400; }
th:first-child { text-align: left; overflow-wrap: anywhere; } thead th { color: var(--muted); }
"""  # noqa: E501
# A page that is read anew shows the place where its reader was.
SCROLL = """const key = "scroll " + location.pathname;
history.scrollRestoration = "manual";
try { scrollTo(0, +sessionStorage.getItem(key) || 0); addEventListener("pagehide", () => sessionStorage.setItem(key, scrollY)); } catch {}"""  # noqa: E501


def page(record: Record, boundary: Boundary | None, title: str, state: str, refresh: float | None) -> str:
    """The whole page, which needs nothing else.

    `state` says how it goes; with `refresh` a browser reads it anew after as many seconds.
    """
    cards = [loss_card(record), rate_card(record), *layer_cards(record), dead_card(record)]
    if boundary is not None:
        note = f"{POINTS} of {len(boundary.points)} points" if len(boundary.points) > POINTS else ""
        cards.append(card("Decision boundary", boundary.draw(), note=note))
    last = f"step {len(record.losses)}, loss {short(record.losses[-1])}" if record.losses else "no step yet"
    failed = "" if state in ("running", "done") else ' class="failed"'
    body = (f'<main>\n<header><h1>{escape(title)}</h1><p{failed}>{escape(state)}</p><p>{last}</p></header>\n'
            f'<div class="cards">\n{"".join(cards)}</div>\n{table(record)}</main>')
    head = f'<meta http-equiv="refresh" content="{refresh:g}">\n' if refresh else ""
    return html.page(title, body, PAGE + STYLE, SCROLL if refresh else "", head)


def card(title: str, picture: str, lines: list[Line] | None = None, note: str = "") -> str:
    if not picture:
        picture, lines, note = "", None, note or "nothing measured yet"
    told = legend(lines) if lines else ""
    return (f'<section><h2>{escape(title)}</h2>{picture}{told}{f"<p class=note>{escape(note)}</p>" if note else ""}'
            f'</section>\n')


def loss_card(record: Record) -> str:
    import numpy as np
    values = np.array(record.losses, dtype=float)
    steps = range(1, len(values) + 1)
    values = np.where(np.isfinite(values), values, np.nan)
    lines = [Line("loss", steps, values.tolist())]
    if len(values) >= 20:
        lines.append(Line("running mean (0.9 kept)", steps, running_mean(values, 0.9).tolist()))
    gaps = int(np.isnan(values).sum())
    return card("Loss", chart("Loss", lines), lines, f"{gaps} of {len(values)} not finite" if gaps else "")


def rate_card(record: Record) -> str:
    groups = max(map(len, record.rates), default=0)
    steps = range(1, len(record.rates) + 1)
    lines = [Line(f"group {k}", steps, [rates[k] if k < len(rates) else math.nan for rates in record.rates])
             for k in range(groups)]
    shown = picked(lines)
    return card("Learning rate", chart("Learning rate", shown), shown if groups > 1 else None)


def layer_cards(record: Record) -> list[str]:
    """The norms of gradients, weights and updates, layer by layer."""
    found = []
    for title, what in (("Gradient norm", "gradient"), ("Update / weight", "ratio"), ("Weight norm", "weight"),
                        ("Update norm", "update")):
        lines = [Line(layer.name, record.measured, getattr(layer, what)) for layer in record.layers]
        shown = picked(lines)
        note = f"{len(shown)} of {len(lines)} layers; all are in the table" if len(shown) < len(lines) else ""
        found.append(card(title, chart(title, shown), shown, note))
    return found


def dead_card(record: Record) -> str:
    if not record.rectifiers:
        return ""
    lines = picked([Line(units.name, units.steps, units.dead) for units, _ in record.rectifiers])
    return card("Dead ReLU units", chart("Dead ReLU units", lines, share=True), lines,
                "share that gave 0 for all inputs since the measured step before")


def table(record: Record) -> str:
    """The last numbers of all layers, and of all ReLU modules."""
    if not record.measured:
        return ""
    rows = "".join(f"<tr><th scope=row>{escape(layer.name)}</th>" + "".join(
        f"<td>{number(value)}</td>" for value in (layer.gradient[-1], layer.weight[-1], layer.update[-1],
                                                  layer.ratio[-1])) + "</tr>\n"
        for layer in record.layers)
    told = (f'<section class="wide"><h2>Layers at step {record.measured[-1]}</h2><table><thead><tr><th>layer</th><th>'
            f'|gradient|</th>'
            f"<th>|weight|</th><th>|update|</th><th>ratio</th></tr></thead><tbody>\n{rows}</tbody></table></section>\n")
    dead = "".join(f"<tr><th scope=row>{escape(units.name)}</th><td>{round(units.dead[-1] * units.count)} of "
                   f"{units.count}</td></tr>\n"
                   for units, _ in record.rectifiers if units.dead)
    return told + (f'<section class="wide"><h2>Dead ReLU units</h2><table><tbody>\n{dead}</tbody></table></section>\n'
                   if dead else "")


def number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "–" if math.isnan(value) else "∞"
