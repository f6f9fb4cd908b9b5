"""Record of each step that was run: its messages, and the chunks of each rank after it."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .schedules import Message


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
    """A step that was run: its messages, when it began and how long it took, all cells after it (`cells[rank][chunk]`,
    None where there is nothing), and how those that changed were computed: `made[rank, chunk]`."""

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


__all__ = ["Cell", "Ran", "Sent"]
