"""A collective that was run, as text and as a page."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from .network import Network, amount, predicted, seconds
from .schedules import Algorithm
from .steps import Cell, Ran, chunks, plural


class Collective:
    """A collective that was run: its steps, what each rank has in the end, and how long it takes on a network.

    `begin` and `steps` have the cells of all ranks before and after each step, `results` the tensors of all ranks (None
    for a rank that gets no result), `seconds` the time by the model of `network`. The run prints as text; `html()` and
    `save(path)` make a page of it.
    """

    def __init__(self, kind: str, name: str, algorithm: Algorithm, ranks: int, root: int, op: str, network: Network,
                 nbytes: int) -> None:
        self.kind, self.name, self.algorithm, self.ranks, self.root, self.op, self.network = (kind, name, algorithm,
                                                                                              ranks, root, op, network)
        self.nbytes = nbytes
        self.steps: list[Ran] = []
        self.begin: tuple[tuple[Cell | None, ...], ...] = ()
        self.results: list[Any] = []
        self.checks: list[tuple[str, bool]] = []

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def title(self) -> str:
        return f"{self.kind.replace('_', '-').capitalize()} of {self.ranks} ranks by {self.algorithm.title}"

    @property
    def predicted(self) -> float:
        """The time by the formulas, for chunks of equal sizes."""
        return predicted(self.algorithm, self.ranks, self.nbytes, self.network)

    def sent(self, rank: int) -> int:
        """The bytes that a rank sends in all steps."""
        return sum(sent.nbytes for step in self.steps for sent in step.sent if sent.message.source == rank)

    def __str__(self) -> str:
        lines = [f"{self.title}: {plural(len(self.steps), 'step')}, {seconds(self.seconds)} ({self.network})",
                 row("begin", self.begin)]
        for number, step in enumerate(self.steps, 1):
            arrows = ", ".join(f"{sent.message.source}→{sent.message.target} {chunks(sent.message.chunks)}"
                               for sent in step.sent)
            lines += [f"{number} {step.phase}: {arrows} ({amount(step.busiest)}, {seconds(step.seconds)})",
                      row("", step.cells)]
        return "\n".join([*lines, *(f"{'✓' if holds else '✗'} {text}" for text, holds in self.checks)])

    def __repr__(self) -> str:
        return f"<{self.title}: {plural(len(self.steps), 'step')}, {seconds(self.seconds)}>"

    def html(self) -> str:
        """A page that needs nothing else: the ranks, their chunks, and the messages of each step."""
        from .page import page
        return page(self)

    def save(self, path: Any) -> Path:
        """Write the page to a file, or the text if the name ends in .txt; returns its path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{self}\n" if path.suffix == ".txt" else self.html(), encoding="utf-8")
        return path

    def show(self) -> Path:
        """Open the page in the browser; returns its path."""
        import tempfile
        import webbrowser
        path = self.save(Path(tempfile.mkdtemp(prefix="tensorgrad-"), f"{self.kind}.html"))
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        from ..text import escape
        return (f'<iframe srcdoc="{escape(self.html(), lines=True)}" style="width:100%;height:760px;border:0" '
                f'title="{escape(self.title)}"></iframe>')


def row(label: str, cells: tuple[tuple[Cell | None, ...], ...]) -> str:
    """The cells of all ranks in a line: chunks between bars."""
    ranks = [" | ".join("–" if cell is None else cell.text for cell in own) for own in cells]
    return f"{label:5}   " + "    ".join(f"{rank}: {text}" for rank, text in enumerate(ranks))


__all__ = ["Collective"]
