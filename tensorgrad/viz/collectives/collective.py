"""What is known of a collective that was run: its steps, its messages, and what each rank had after each."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .network import Network, amount, predicted, seconds
from .schedules import Algorithm, Message


class Cell(NamedTuple):
    """A chunk as a rank has it: its values as text, and whose values are in it, in their order."""

    text: str
    parts: tuple[int, ...]


class Sent(NamedTuple):
    """A message that was sent: its bytes, and the values of each of its chunks."""

    message: Message
    nbytes: int
    carried: tuple[str, ...]


class Ran(NamedTuple):
    """A step that was run: its messages, when it began and how long it took, all cells after it (`cells[rank][chunk]`, None where
    there is nothing), and how those that changed were computed: `made[rank, chunk]`."""

    phase: str
    sent: tuple[Sent, ...]
    start: float
    seconds: float
    cells: tuple[tuple[Cell | None, ...], ...]
    made: dict[tuple[int, int], str]

    @property
    def busiest(self) -> int:
        """The most bytes that a rank sends or receives in this step."""
        return max(max(busy.values(), default=0) for busy in (self._bytes("source"), self._bytes("target")))

    def _bytes(self, end: str) -> dict[int, int]:
        return totals((getattr(sent.message, end), sent.nbytes) for sent in self.sent)

    @property
    def nbytes(self) -> int:
        return sum(sent.nbytes for sent in self.sent)


class Collective:
    """A collective that was run: its steps, what each rank has in the end, and how long it takes on a network.

    `begin` and `steps` have the cells of all ranks before and after each step, `results` the tensors of all ranks (None for a rank
    that gets no result), `seconds` the time by the model of `network`. It prints as text; `html()` and `save(path)` make a page of it.
    """

    def __init__(self, kind: str, name: str, algorithm: Algorithm, ranks: int, root: int, op: str, network: Network, nbytes: int) -> None:
        self.kind, self.name, self.algorithm, self.ranks, self.root, self.op, self.network = kind, name, algorithm, ranks, root, op, network
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
        lines = [f"{self.title}: {plural(len(self.steps), 'step')}, {seconds(self.seconds)} ({self.network})", row("begin", self.begin)]
        for number, step in enumerate(self.steps, 1):
            arrows = ", ".join(f"{sent.message.source}→{sent.message.target} {chunks(sent.message.chunks)}" for sent in step.sent)
            lines += [f"{number} {step.phase}: {arrows} ({amount(step.busiest)}, {seconds(step.seconds)})", row("", step.cells)]
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
        return f'<iframe srcdoc="{escape(self.html(), lines=True)}" style="width:100%;height:760px;border:0" title="{escape(self.title)}"></iframe>'


def totals(pairs: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    """The sums of numbers with the same key.

    >>> totals([(0, 1), (1, 5), (0, 2)])
    {0: 3, 1: 5}
    """
    found: dict[int, Any] = {}
    for key, number in pairs:
        found[key] = found.get(key, 0) + number
    return found


def chunks(numbers: tuple[int, ...]) -> str:
    """Chunks by their numbers.

    >>> chunks((2,)), chunks((0, 1)), chunks((0, 1, 2, 3))
    ('chunk 2', 'chunks 0, 1', 'chunks 0–3')
    """
    listed = ", ".join(map(str, numbers)) if len(numbers) < 3 else f"{numbers[0]}–{numbers[-1]}"
    return f"chunk{'s' * (len(numbers) > 1)} {listed}"


def plural(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def row(label: str, cells: tuple[tuple[Cell | None, ...], ...]) -> str:
    """The cells of all ranks in a line: chunks between bars."""
    ranks = [" | ".join("–" if cell is None else cell.text for cell in own) for own in cells]
    return f"{label:5}   " + "    ".join(f"{rank}: {text}" for rank, text in enumerate(ranks))


__all__ = ["Cell", "Collective", "Ran", "Sent"]
