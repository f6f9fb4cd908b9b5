"""Tables as text: aligned columns where letters are one or two columns wide, rules, and summaries."""
import random

from tensorgrad.messages.tables import columns, padded, parameters, summary, table, widths_of

WORDS = ["", "a", "weight", "張量", "e\u0301te\u0301", "😀", "1,024", "日本-x"]


def test_cells_take_their_column():
    for word in WORDS:
        for width in (0, 3, 9):
            for align in "<>^":
                cell = padded(word, width, align)
                assert cell.strip() == word and columns(cell) == max(width, columns(word))
    assert padded("ab", 5, "^") == "ab".center(5) and padded("a", 3, ">") == "  a"


def test_columns_begin_in_the_same_place_in_every_line():
    draw = random.Random(0)
    for _ in range(50):
        rows = [[draw.choice(WORDS) for _ in range(3)] for _ in range(5)]
        lines = table([*rows, ["x", "y", "z"]], "<>", gap=" | ", rule="-", end="")
        widths = widths_of([*rows, ["x", "y", "z"]])
        assert {columns(line) for line in lines} == {sum(widths) + 6}
        for line in [lines[0], *lines[2:]]:
            first, second, third = line.split(" | ")
            assert first == padded(first.strip(), widths[0])
            assert [second, third] == [padded(cell.strip(), width, ">")
                                       for cell, width in zip([second, third], widths[1:], strict=True)]
        assert lines[1] == " | ".join("-" * width for width in widths)


def test_given_widths_and_ends():
    rows = [("name", "n"), ("longer than that", "1")]
    assert table(rows, gap=" ", widths=[6, 4]) == ["name   n", "longer than that 1"]
    assert table(rows, gap=" ", widths=[6, 4], end="|") == ["name   n   |", "longer than that 1   |"]


def test_summaries():
    assert (summary("head", ["a", "b"], ["total"], width=5, inner="-").splitlines()
            == ["=====", "head", "-----", "a", "b", "-----", "total", "====="])
    assert parameters(7850, 7840, "") == ["Total params: 7850", "Trainable params: 7840", "Non-trainable params: 10"]
