"""A collective as a page: its steps as pictures, what they cost, and how other algorithms would do."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .. import html
from ..text import escape
from .chart import chart, others, table
from .drawing import CARRIED, DOTTED, MARKERS, picture
from .network import amount, seconds
from .steps import Ran, Sent, chunks, plural

if TYPE_CHECKING:
    from .collective import Collective

MOST = 16           # ranks that a picture has room for

GOALS = {"all_reduce": "Each rank has a vector. In the end every rank has the {op} of all of them.",
         "reduce_scatter": "Each rank has a vector. In the end each has one chunk of the {op} of all of them: rank r "
                           "has chunk r.",
         "all_gather": "Each rank has one chunk. In the end every rank has all of them.",
         "broadcast": "Rank {root} has a vector. In the end every rank has it.",
         "reduce": "Each rank has a vector. In the end rank {root} has the {op} of all of them."}
PHASES = {"reduce-scatter": "Chunks are sent and added up. After this phase each rank has one chunk of the whole.",
          "all-gather": "Finished chunks are sent. A rank that gets one keeps a copy.",
          "reduce": "Vectors are sent towards the root and added up on the way.",
          "broadcast": "The vector is handed out from those that have it.",
          "read and add": "Each rank reads all that the others have, and adds it to its own.",
          "swap and add": "Partners swap all they have, and both add.",
          "pipeline": "Chunks follow each other along the chain."}
OPS = {"sum": "sum", "product": "product", "min": "minimum", "max": "maximum"}


def page(ran: Collective) -> str:
    """The whole page, which needs nothing else.

    Without its script, and on paper, it shows all steps below each other.
    """
    if ran.ranks > MOST:
        raise ValueError(f"a page shows up to {MOST} ranks, not {ran.ranks}; as text, print(…) shows any number")
    frames = [opening(ran), *(frame(ran, number, step) for number, step in enumerate(ran.steps, 1))]
    body = f"""<main class="collective">
<header><h1>{escape(ran.title)}</h1><p>{escape(goal(ran))} {escape(ran.algorithm.about)}</p></header>
{MARKERS}<div class="frames" tabindex="-1">{"".join(frames)}</div>
{html.controls(len(ran.steps))}
<div class="facts"><section><h2>Bytes and time</h2>{steps_table(ran)}</section><section><h2>By formula</h2>{formulas(ran)}{checks(ran)}</section></div>
<section class="ways"><h2>Which algorithm at which size?</h2>{comparison(ran)}</section>
</main>"""  # noqa: E501
    return html.page(ran.title, body, beside("page.css"), html.beside("player.js") + beside("page.js"))


def beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def goal(ran: Collective) -> str:
    return GOALS[ran.kind].format(op=OPS[ran.op], root=ran.root)


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def opening(ran: Collective) -> str:
    """The frame before the first step."""
    dots = "" if ran.ranks > DOTTED else "<p>The dots in a cell say whose values are in it.</p>"
    key = ('<p class="key"><span><i class="new"></i>changed in this step</span>'
           f'<span><i class="all"></i>{"arrived" if ran.kind in CARRIED else "complete"}</span></p>')
    cut = ("" if ran.kind == "all_gather" else f"<p>The vector of {amount(ran.nbytes)} is cut into {ran.ranks} "
                                               f"chunks.</p>")
    return section("the beginning", picture(ran, None),
                   f"<h2>The beginning</h2><p>{escape(goal(ran))}</p>{cut}{dots}{key}"
                   '<p class="hint">Go on with the keys ← and →, or play with the space bar.</p>')


def frame(ran: Collective, number: int, step: Ran) -> str:
    """A step: its picture, its messages, how long it took."""
    last = number == len(ran.steps)
    same = [s for s in ran.steps if s.phase == step.phase]
    place = f"step {same.index(step) + 1} of {len(same)}" if len(same) > 1 else "one step"
    way = "reader ← owner" if ran.algorithm.shared else "from → to"
    rows = "".join(message(sent, ran.algorithm.shared) for sent in step.sent)
    head = f'<tr><th>{way}</th><th>chunk</th><th>values</th><th>bytes</th></tr>'
    text = (f'<p class="phase">{escape(step.phase)}, {place}</p><h2>Step {number} of '
            f'{len(ran.steps)}</h2><p>{PHASES[step.phase]}</p><table '
            f'class="messages"><thead>{head}</thead><tbody>{rows}</tbody></table>'
            f"<p>{seconds(step.seconds)} for {amount(step.busiest)} at the busiest rank; "
            f"{seconds(step.start + step.seconds)} since the beginning.</p>")
    return section(f"step {number}: {step.phase}", picture(ran, step, last), text + (done(ran) if last else ""))


def listed(texts: tuple[str, ...]) -> str:
    """The values of some chunks; of many, the first and the last."""
    return " | ".join(texts if len(texts) <= 4 else (texts[0], "…", texts[-1]))


def message(sent: Sent, shared: bool) -> str:
    """A row: the two ranks, the one that acts first (who reads shared memory, or who sends), chunks, values, bytes."""
    source, target = sent.message.source, sent.message.target
    one, other, arrow = (target, source, "←") if shared else (source, target, "→")
    return (f'<tr><td><span class="end r{one % 8}">{one}</span> {arrow} <span class="end '
            f'r{other % 8}">{other}</span></td>'
            f"<td>{chunks(sent.message.chunks).split(' ', 1)[1]}</td><td>{escape(listed(sent.carried))}</td><td>"
            f"{amount(sent.nbytes)}</td></tr>")


def done(ran: Collective) -> str:
    return f'<p class="done"><strong>Done.</strong> {escape(" ".join(text for text, _ in ran.checks))}</p>'


def section(label: str, figure: str, text: str) -> str:
    return (f'<section class="frame" data-label="{escape(label)}"><div class="figure" tabindex="0" role="group" '
            f'aria-label="Picture">{figure}</div><div class="told" aria-live="polite">{text}</div></section>')


# ── what it costs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def steps_table(ran: Collective) -> str:
    """A row for each step, with a bar from its beginning to its end."""
    whole, rows = ran.seconds or 1.0, []
    for number, step in enumerate(ran.steps, 1):
        left, wide = 100 * step.start / whole, 100 * step.seconds / whole
        rows.append(f'<tr><th scope="row"><button type="button" class="go" '
                    f'data-step="{number}">{number}</button></th><td>{escape(step.phase)}</td>'
                    f"<td>{len(step.sent)}</td><td>{amount(step.busiest)}</td><td>{amount(step.nbytes)}</td><td>"
                    f"{seconds(step.seconds)}</td>"
                    f'<td class="bar"><i style="margin-left:{left:.2f}%;width:{wide:.2f}%"></i></td></tr>')
    busiest, everything = sum(s.busiest for s in ran.steps), sum(s.nbytes for s in ran.steps)
    total = (f'<tr><th scope="row">all</th><td></td><td>{sum(len(s.sent) for s in ran.steps)}</td><td>{amount(busiest)}'
             f'</td><td>{amount(everything)}</td>'
             f"<td>{seconds(ran.seconds)}</td><td></td></tr>")
    head = ("<tr><th>step</th><th>phase</th><th>messages</th><th>bytes, busiest rank</th><th>bytes, "
            "all</th><th>time</th><th>when</th></tr>")
    return (f'<div class="wide"><table class="numbers steps"><thead>{head}</thead><tbody>{"".join(rows)}</tbody><tfoot>'
            f'{total}</tfoot></table></div>')


def formulas(ran: Collective) -> str:
    """The algorithm's formulas with this run's numbers, beside what was counted."""
    a, n, network = ran.algorithm, ran.ranks, ran.network
    rounds, volume = a.rounds.of(n), a.volume.of(n) * ran.nbytes
    counted = sum(step.busiest for step in ran.steps)
    what = "Barriers" if a.shared else "Messages, one after the other"
    lines = [("n, m", f"{plural(n, 'rank')}, {amount(ran.nbytes)}"),
             ("α, β", str(network)),
             (what, f"{a.rounds.text} = {rounds:g}" if "n" in a.rounds.text else a.rounds.text),
             ("Bytes at the busiest rank", f"{a.volume.times('m')} = {amount(volume)}; counted: {amount(counted)}"),
             ("Time", f"{a.rounds.times('α')} + {a.volume.times('m / β')} = {seconds(ran.predicted)}; counted: "
                      f"{seconds(ran.seconds)}")]
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in lines) + "</dl>"


def checks(ran: Collective) -> str:
    return "".join(f'<p class="check">{"✓" if good else "✗"} {escape(text)}</p>' for text, good in ran.checks)


def comparison(ran: Collective) -> str:
    """The other algorithms over the same network, as a table and a chart."""
    if len(others(ran)) < 2:
        return f"<p>{escape(ran.title)}: no other algorithm works in the same way.</p>"
    note = {"all_reduce": " No all-reduce can do with fewer bytes than 2(n − 1)/n · m a rank, or with fewer than ⌈log₂ "
                          "n⌉ messages one after the other."}
    return (f"<p>{plural(ran.ranks, 'rank')} over {escape(str(ran.network))}, by the formulas. Small vectors are a "
            f"matter of latency, so few messages win; large ones of bandwidth, so few bytes "
            f"win.{note.get(ran.kind, '')}</p>"
            f'<div class="compared"><div class="wide">{table(ran)}</div>{chart(ran)}</div>')


__all__ = ["page"]
