"""Check a text for phrases in an order, as tests of printed graphs do. https://pytorch.org/docs/stable/testing.html"""
from __future__ import annotations

from typing import Any

__all__ = ["FileCheck"]


class FileCheck:
    """Checks that a text contains phrases one after another; RuntimeError if it does not.

    >>> FileCheck().check("mul").check_not("add").check_next("relu").run("mul = a * b" + chr(10) + "relu = mul.relu()")
    """

    def __init__(self) -> None:
        self._checks: list[tuple[str, str, int]] = []

    def _add(self, kind: str, phrase: str, count: int = 1) -> FileCheck:
        self._checks.append((kind, phrase, count))
        return self

    def check(self, test_string: str) -> FileCheck:
        """Expect a phrase after the last one."""
        return self._add("", test_string)

    def check_not(self, test_string: str) -> FileCheck:
        """Expect that a phrase is not between its neighbours."""
        return self._add("not", test_string)

    def check_same(self, test_string: str) -> FileCheck:
        """Expect a phrase in the last one's line."""
        return self._add("same", test_string)

    def check_next(self, test_string: str) -> FileCheck:
        """Expect a phrase in the line after the last one's."""
        return self._add("next", test_string)

    def check_dag(self, test_string: str) -> FileCheck:
        """Expect a phrase; neighbours of this kind may be in any order."""
        return self._add("dag", test_string)

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """Expect a phrase this many times; not once more, if `exactly`."""
        for _ in range(count):
            self._add("", test_string)
        return self._add("not", test_string) if exactly else self

    def run(self, test_string: Any) -> None:
        """Check a text."""
        text = str(test_string)
        position, index = 0, 0
        refused: list[str] = []
        while index < len(self._checks):
            kind, phrase, _ = self._checks[index]
            index += 1
            if kind == "not":
                refused.append(phrase)
                continue
            start = position
            if kind == "dag":
                places = [self._found(text, phrase, position, "dag")]
                while index < len(self._checks) and self._checks[index][0] == "dag":
                    places.append(self._found(text, self._checks[index][1], position, "dag"))
                    index += 1
                position = max(places)
            else:
                position = self._found(text, phrase, position, kind)
            self._refuse(refused, text[start:position])
        self._refuse(refused, text[position:])

    @staticmethod
    def _found(text: str, phrase: str, position: int, kind: str) -> int:
        """Return the end of the phrase in a text."""
        place = text.find(phrase, position)
        lines = text.count("\n", position, place) if place >= 0 else 0
        if place < 0 or kind == "same" and lines or kind == "next" and lines != 1:
            raise RuntimeError(f'Expected to find "{phrase}" but did not find it\nSearched string:\n{text[position:]}')
        return place + len(phrase)

    @staticmethod
    def _refuse(phrases: list[str], text: str) -> None:
        for phrase in phrases:
            if phrase in text:
                raise RuntimeError(f'Expected to not find "{phrase}" but found it\nSearched string:\n{text}')
        phrases.clear()
