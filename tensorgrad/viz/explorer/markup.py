"""Numbers and formulas as the page writes them. The script finds them by key and rewrites them when they change."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ..mathml import Letter, mathml
from ..step_texts import BRANCH, Lettered, worked
from ..text import Value, escape, shape_text, short
from .numbers import Numbers

SMALL = 6           # rows and columns of the largest matrix that is written in numbers
LONG = 12           # elements of the longest vector
MOST = 6            # cases of a formula that are written in advance, hidden until they hold


def number(value: Value | None, key: str = "", kind: str = "value") -> str:
    """Write an array as HTML: few numbers as text or a table, many as a line that the script turns into a heat map."""
    if value is None:
        return "<i>not known any more</i>"
    known = f' data-show="{key}"' if key else ""
    shape = f" <small>{shape_text(value.shape)}</small>"
    if key and heated(value.shape):
        return f'<span class="{kind}"{known} data-heat>{escape(value.text(40))}</span>{shape}'
    if len(value.shape) != 2 or value.scalar or not value.elements:
        text = value.text(100)
        return f'<span class="{kind}"{known}>{escape(text)}</span>{shape * ("…" in text)}'
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells(value))
    return (f'<span class="{kind}"{known}><table class="matrix"><tbody>{rows}</tbody></table></span>'
            f'{shape * (value.shape[0] > SMALL or value.shape[1] > SMALL)}')


def heated(shape: tuple[int, ...]) -> bool:
    """Return True if an array of this shape is drawn as a heat map."""
    if 0 in shape:
        return False
    if len(shape) < 2:
        return bool(shape) and shape[0] > LONG
    return max(shape) > SMALL or len(shape) > 2 and 1 < len([n for n in shape if n > 1])


def cells(value: Value) -> list[list[str]]:
    """Return the cells of a matrix as texts, without the middle of a large one."""
    def ends(items: list[Any], n: int) -> list[Any]:
        corner = min(SMALL // 2, len(items) // 2)
        return [*items[:corner], None, *items[-corner:]] if n > SMALL else items
    rows, columns = value.shape
    kept = [ends([short(x) for x in row], columns) for row in value.kept.tolist()]
    dots = ["⋮"] * len(kept[0])
    return [[cell or "…" for cell in row] if row is not None else dots for row in ends(kept, rows)]


# ── formulas ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def typeset(formula: str, labels: Mapping[str, str] | None = None, plain: str = "") -> str:
    """Write a formula with the program's names as MathML; `plain` is its text, for readers and as the fallback."""
    found = mathml(formula, {name: Letter(label) for name, label in (labels or {}).items()})
    if found is None:
        return escape(plain or formula)
    first, *rest = found.split("<math>")[1:]
    return (f'<span class="formula"><math '
            f'alttext="{escape(plain or formula)}">{first}{"".join(f"<math alttext>{part}" for part in rest)}</span>')


def derivative(target: str) -> str:
    """∂L/∂target"""
    return (f'<math alttext="∂L/∂{escape(target)}"><mfrac><mrow><mo>∂</mo><mi>L</mi></mrow><mrow><mo>∂</mo><mi>'
            f'{escape(target)}</mi></mrow></mfrac></math>')


def in_numbers(formula: Lettered | None, numbers: Numbers, of: Mapping[str, str]) -> str:
    """Write a formula with numbers for its letters, or "" unless all are single numbers.

    All cases of a formula are written, and those that do not hold are hidden. `of` maps letters to the keys under which
    the script updates them; other letters do not change.
    """
    if formula is None or not worked(formula.text, formula.numbers):
        return ""
    letters = {name: Letter(value.number if isinstance(value, Value) else short(value), of.get(name, ""))
               for name, value in formula.numbers.items() if isinstance(value, Value) and value.number
               or type(value) in (int, float)}
    found = [(conditions, typed) for conditions, text in islice(cases(formula.text), MOST)
             if (typed := mathml(text, letters)) is not None]
    if not found:
        return escape(worked(formula.text, formula.numbers))
    if len(found) == 1:
        return found[0][1]
    return "".join(f'<span data-when="{escape(" & ".join(said(c, letters) for c in conditions))}"'
                   f'{"" if holds(conditions, formula.numbers) else " hidden"}>{typed}</span>'
                   for conditions, typed in found)


def cases(formula: str, conditions: tuple[tuple[str, str, str, bool], ...] = ()) -> Iterator[tuple[Any, str]]:
    """Yield the branches of a formula with cases, each with its conditions (letter, sign, number, whether it holds).

    >>> [text for _, text in cases("0 where x ≤ 0, else g")]
    ['0', 'g']
    """
    branch = None if ", with " in formula else BRANCH.search(formula)
    if branch is None:
        yield conditions, formula
        return
    depth, end = 0, branch.end()
    while end < len(formula) and (depth or formula[end] not in "),"):
        depth += (formula[end] == "(") - (formula[end] == ")")
        end += 1
    condition = (branch[2], branch[3], branch[4])
    yield from cases(formula[:branch.start()] + branch[1] + formula[end:], (*conditions, (*condition, True)))
    yield from cases(formula[:branch.start()] + formula[branch.end():], (*conditions, (*condition, False)))


TESTS = {"=": "__eq__", "≠": "__ne__", "<": "__lt__", ">": "__gt__", "≤": "__le__", "≥": "__ge__"}


def holds(conditions: Any, numbers: Mapping[str, Any]) -> bool:
    def value(name: str) -> float:
        found = numbers[name]
        return float(found.kept) if isinstance(found, Value) else float(found)
    return all(getattr(value(name), TESTS[sign])(float(bound.replace("−", "-"))) is told
               for name, sign, bound, told in conditions)


def said(condition: tuple[str, str, str, bool], letters: Mapping[str, Letter]) -> str:
    """Write a condition for the script: "v:3 > 0", or "not v:3 > 0"."""
    name, sign, bound, told = condition
    letter = letters[name]
    return f"{'' if told else 'not '}{letter.key or letter.text.replace('−', '-')} {sign} {bound.replace('−', '-')}"


def equation(left: str, lines: list[str]) -> str:
    """Write left = line = line …, with aligned equals signs."""
    return '<div class="equation">' + "".join(f"<span>{left if i == 0 else ''}</span><span>=</span><span>{line}</span>"
                                              for i, line in enumerate(lines or ["…"])) + "</div>"
