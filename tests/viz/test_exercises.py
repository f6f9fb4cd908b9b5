"""Exercises: what is asked, what grading makes of answers that are right, wrong, malformed or tampered with, and the
command for a class.
"""
import copy
import csv
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from support import ROOT

import tensorgrad as torch
from tensorgrad.viz import __main__ as command
from tensorgrad.viz.exercises import marking
from tensorgrad.viz.exercises.exercise import Exercise
from tensorgrad.viz.exercises.generation import exercise
from tensorgrad.viz.exercises.grammar import Unread, computed, parsed
from tensorgrad.viz.exercises.marking import answered
from tensorgrad.viz.exercises.questions import LEVELS
from tensorgrad.viz.exercises.reading import right
from tensorgrad.viz.exercises.rules import Rules

SCRIPT = """
import torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([0.5, -1.5], requires_grad=True)
loss = ((x * w).sum() - 1) ** 2
for seed in (1, 2):
    torch.viz.explain(loss).exercise("whole", seed)
"""


def handed(made, answers=None, **changes):
    """Return the file that the page of an exercise saves for the teacher: with right answers, unless others are
    given.
    """
    found = {question.key: texts(question) for question in made.questions} if answers is None else answers
    return {"format": "tensorgrad exercise", "version": 1, "level": made.level, "seed": made.seed, "made": made.made,
            "fingerprint": made.fingerprint, "name": "Ada", "answers": found, "hints": {}, "revealed": []} | changes


def marked(path, **given_out):
    return marking.marked(path, (), exercise, **given_out)


def texts(question):
    if question.kind == "rule":
        return [question.answer]
    if question.kind == "wrong":
        return [str(question.answer[0] + 1), f"{question.answer[1]:.6g}"]
    return [f"{x:.5g}" for x in np.ravel(question.answer)]


@pytest.fixture
def file(tmp_path):
    """Writes what is handed in, as JSON or as bytes; returns its path."""
    def write(content, name="answers.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path
    return write


# ── exercises ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("level", LEVELS)
def test_an_exercise_is_made_again_from_its_seed(level, file):
    prints = {}
    for seed in range(3):
        made, again = exercise(level, seed), exercise(level, seed)
        assert made.html() == again.html() and made.fingerprint == again.fingerprint
        prints[made.fingerprint] = seed
        marks = marked(file(handed(made)))
        assert not marks.why and marks.count("right") == marks.parts > 2, (level, seed, marks)
    assert len(prints) == 3


def test_a_seed_means_the_same_whatever_the_program_has_set():
    made = exercise("whole", 7)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            assert exercise("whole", 7).html() == made.html()
    finally:
        torch.set_default_dtype(torch.float32)


def test_answers_are_what_the_engine_computes():
    for seed in [*range(5), "Ada"]:
        made = exercise("whole", seed)
        leaves = {leaf.name: leaf.gradient.kept for leaf in made.explanation.leaves}
        found = {question.line.target: question.answer for question in made.questions}
        assert all(np.allclose(found[name], gradient, rtol=1e-5) for name, gradient in leaves.items())
        assert all(np.all(np.isfinite(answer)) for answer in found.values())


def test_no_answer_is_in_the_page():
    """Numbers of gradients that are unlike all of the forward are nowhere in the source, however they are written; no
    rule is there either.
    """
    x = torch.tensor([0.731, -1.377], requires_grad=True)
    w = torch.tensor([2.113, 0.517], requires_grad=True)
    found = torch.viz.explain((torch.tanh(x * w) * 1.7).sum())
    for level in ("number", "whole"):
        source = found.exercise(level).html()
        for question in found.exercise(level).questions[2:]:
            for number in np.ravel(question.answer):
                assert (number == 1.7 or np.isclose(abs(number), 1.7)
                        or not any(f"{abs(number):.{digits}g}"[:6] in source for digits in (4, 5, 6, 12)))
        assert '"rules":[]' in source and '"rules":[{' not in source
    rule = found.exercise("rule")
    assert ("1 − y" not in rule.html() and not any(question.answer in rule.html()
                                                   for question in rule.questions if len(question.answer) > 8))
    wrong = exercise("wrong", 3)
    before = [copy.copy(q) for q in wrong.questions]
    moved = [q._replace(answer=(0, 0.0), line=wrong.wrong_lines()[0]) for q in before]
    source = wrong.html()
    wrong.questions = moved
    assert wrong.html() == source               # the page does not depend on which line is wrong


def test_a_mistake_is_at_one_line_and_all_that_follows_is_computed_from_it():
    for seed in range(3):
        made = exercise("wrong", seed)
        lines = made.wrong_lines()
        assert len({q.answer[0] for q in made.questions}) == len(made.questions) > 1
        for question in made.questions:
            at, total = question.answer
            totals = question.shown.totals
            assert all(np.allclose(shown, line.total * question.shown.times, rtol=1e-5)
                       for shown, line in list(zip(totals, lines, strict=True))[:at])
            right = lines[at].total * question.shown.times
            assert np.isclose(total, np.sum(right), rtol=1e-5) and not np.allclose(totals[at], right)


def test_programs_without_an_exercise_say_why():
    x = torch.ones(3, requires_grad=True)
    big, long = torch.ones(80, 80, requires_grad=True), torch.ones(20, requires_grad=True)
    for loss, level, why in (((big @ big).sum(), "number", "more than 4000 numbers"),
                             ((x * 2).cumsum(0).sum(), "harder", "level: one of"),
                             (long.cumsum(0).sum(), "rule", "no question of the level 'rule'")):
        with pytest.raises(ValueError, match=why):
            torch.viz.explain(loss).exercise(level)
    for seed in (1.5, True, "a" * 61, None):
        with pytest.raises(ValueError, match="seed: a whole number or a short word"):
            Exercise(torch.viz.explain((x * x).sum()), "number", seed)
    with pytest.raises(ValueError, match="an exercise is a page"):
        torch.viz.explain((x * x).sum()).exercise().save("exercise.txt")
    assert (torch.viz.exercise("number").seed != torch.viz.exercise("number").seed
            or torch.viz.exercise("number").seed >= 0)


def explanations():
    """Explain the loss of two layers, and the sum of a product after a write in place."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    x, target = torch.tensor([[0.5, -1.0], [1.5, 0.25]]), torch.tensor([0, 1])
    c = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    d = c * 1.5
    d[:, 1] *= 2
    return torch.viz.explain(torch.nn.functional.cross_entropy(net(x), target)), torch.viz.explain((d.t() @ d).sum())


def test_layers_losses_writes_and_views_have_exercises(file):
    for found in explanations():
        for level in LEVELS:
            try:
                made = found.exercise(level)
            except ValueError as error:
                assert level == "wrong" and "a page could not" in str(error)
                continue
            marks = made.grade(file(handed(made)))[0]
            assert marks.count("right") == marks.parts > 0, marks


# ── what is typed in ──────────────────────────────────────────────────────────────────────────────────────────────────

RIGHT = {1 / 3: ["0.3333", "0,3333", " .3333 ", "1/3", "0.333", "0.33333333", "3.333e-1", "+0.3333"],
         -12345.678: ["−12345.68", "-12,345.678", "–12345.7", "- 12 345.678", "-1.2346e4", "-12346"],
         0.0: ["0", "-0", "0.0", "0,000"], 1e-7: ["1e-7", "0.0000001", "1,0e−7"], 2.0: ["2", "2.000", "4/2"],
         math.inf: ["inf", "∞", "Infinity"],
         math.nan: ["nan", "NaN"], 1234.0: ["1,234", "1234"]}
WRONG = {1 / 3: ["0.3", "0.34", "3333", "0.3337", "", "-0.3333", "a", "1/4", "1/0"],
         -12345.678: ["12345.678", "-12300", "-12", "-123.45"],
         0.0: ["1", "0.001", "nan", "zero", "-"], 1e-7: ["0", "1e-6"],
         2.0: ["2.1", "-2", "2.0.0", "2 3", "2" * 70, "1e999", "٢"], math.inf: ["-inf", "1e9"],
         math.nan: ["0"], 1234.0: ["12,34", "1.3"]}


def test_readings_of_numbers():
    for answer, typed in RIGHT.items():
        assert all(right(text, answer) for text in typed), answer
    for answer, typed in WRONG.items():
        assert not any(right(text, answer) for text in typed), answer


G, X, W = np.array([[0.5, -1.0]]), np.array([[2.0, 3.0]]), np.array([[1.0, -1.0], [0.25, 2.0]])
FORMULAS = {"g · x": G * X, "g*x²": G * X ** 2, "-g / x**2": -G / X ** 2, "g @ wᵀ": G @ W.T, "x.T @ g": X.T @ G,
            "g·(x > 2.5)": G * (X > 2.5),
            "2^-1 * g": G / 2,
            "g · sigmoid(x) × (1 − sigmoid(x))": G / (1 + np.exp(-X)) / (1 + np.exp(X)),
            "sum(g) / size(x)": G.sum() / 2, "|g| − 1": np.abs(G) - 1, "((g))": G, "−x ² · g": -X ** 2 * G,
            "relu(g)·exp(log(x))": np.maximum(G, 0) * X, "Σ(g)·v.1": G.sum() * 3.0, "v.1": 3.0,
            "(x ≥ 3) - .5": (X >= 3) - 0.5}
NO_FORMULAS = ["", "g g", "g +", "(g", "y", "g; x", "__import__", "g.__class__", "x[0]", "exp", "exp g", "g @ x",
               "(" * 50 + "g" + ")" * 50, "-" * 99 + "g", "g" * 201, "1 2", "g > x > 1", "lambda: 0", "ᵀ", "g..T"]


def test_formulas_are_read_and_computed_without_running_anything():
    values = {"g": G, "x": X, "w": W, "v.1": np.array(3.0)}
    for text, expected in FORMULAS.items():
        assert np.allclose(computed(parsed(text, values), values), expected), text
    for text in NO_FORMULAS:
        with pytest.raises(Unread):
            computed(parsed(text, values), values)


def test_rules_are_right_in_any_form_and_only_if_they_hold_for_other_numbers():
    x, y = torch.tensor([1.0, 1.0], requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * y
    made = torch.viz.explain(torch.tanh(h).sum()).exercise("rule")
    rules = Rules(made.explanation.recorded)
    found = {question.line.target: question for question in made.questions}
    for target, good, bad in (("x", ["g · y", "y*g", "2·g·y/2"], ["g", "g · x", "y", "0"]),
                              ("h", ["g * (1 - v1²)", "g·(1−tanh(h)^2)"], ["g", "g·(1 − h²)", "1 − v1²"])):
        assert (all(rules.right(found[target], text) for text in good)
                and not any(rules.right(found[target], text) for text in bad))


# ── marks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_wrong_open_and_revealed_answers(file):
    made = exercise("whole", 7)
    answers = {question.key: texts(question) for question in made.questions}
    answers["q1"], answers["q2"], answers["q3"] = ["99", answers["q1"][1]], ["", answers["q2"][1]], []
    marks = marked(file(handed(made, answers, revealed=["q4"], hints={"q1": 2, "q5": "many"})))
    first, second, third, fourth = ((m.right, m.wrong, m.open, m.revealed) for m in marks.marks[:4])
    assert (first, second, third, fourth) == ((1, 1, 0, 0), (1, 0, 1, 0), (0, 0, 2, 0), (0, 0, 0, 2))
    assert marks.count("hints") == 2 and marks.marks[0].answer == answered(made.questions[0]) and marks.name == "Ada"


def test_the_file_is_not_trusted(file):
    made, other = exercise("whole", 7), exercise("whole", 8)
    good = handed(made)
    for content, why in (
            (good | {"seed": 8}, "its seed makes another exercise"),
            (good | {"fingerprint": other.fingerprint}, "its seed makes another exercise"),
            (good | {"level": "number"}, "its seed makes another exercise"),
            (good | {"level": "easy"}, "its level is none"),
            (good | {"made": "program"}, "--from"), (good | {"version": 2}, "another version"),
            (good | {"format": "x"}, "not handed in by the page"),
            (good | {"seed": 1.5}, "'seed' is missing or malformed"), (good | {"seed": True}, "'seed' is missing"),
            (good | {"seed": "a" * 99}, "'seed' is missing"),
            (good | {"seed": 10 ** 99}, "'seed' is missing"), (good | {"answers": []}, "'answers' is missing"),
            (good | {"answers": {"q1": "5"}}, "'answers' is"),
            (good | {"answers": {"q1": [5]}}, "'answers' is"), (good | {"name": None}, "'name' is missing"),
            (good | {"hints": None}, "'hints' is missing"),
            ({k: v for k, v in good.items() if k != "revealed"}, "'revealed' is missing"), ([], "not handed in by"),
            (b"{", "it is not JSON"),
            (b"", "not JSON"),
            (b"\xff\xfe\x00", "not JSON"), (b"[" * 100_000, "not JSON"), (b" " * 1_000_001, "too large")):
        marks = marked(file(content))
        assert why in marks.why and not marks.marks, (str(content)[:80], marks)
    assert (marked(file(good), level="rule").why and "not 9" in marked(file(good), seed="9").why
            and not marked(file(good), level="whole", seed="7").why)
    for harmless in (good | {"score": 100}, good | {"answers": good["answers"] | {"q99": ["1"]}},
                     good | {"revealed": [[], 5, "q99"]}):
        assert marked(file(harmless)).count("right") == marked(file(good)).parts
    assert marked(file(good | {"answers": {"q1": ["1"] * 500}})).parts == marked(file(good)).parts
    assert "\x1b" not in marked(file(good | {"name": "\x1b[31mred\u202e"})).name


def test_other_programs_are_not_taken_for_the_exercise(file):
    def made(value, level="whole", seed=1):
        x = torch.tensor([1.0, value], requires_grad=True)
        return torch.viz.explain((x * x).sum()).exercise(level, seed)
    mine, theirs = made(2.0), made(3.0)
    assert mine.fingerprint == made(2.0).fingerprint == made(2.0 + 1e-9).fingerprint
    assert len({made(2.0).fingerprint, theirs.fingerprint, made(2.0, seed=2).fingerprint,
                made(2.0, "number").fingerprint}) == 4
    assert "another program" in mine.grade(file(handed(theirs)))[0].why and not mine.grade(file(handed(mine)))[0].why
    assert "the file was changed" in mine.grade(file(handed(mine, seed=5)))[0].why


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_class_is_marked_at_once(file, tmp_path, capsys):
    right_file = file(handed(exercise("whole", 7)), "ada.json")
    poor = file(handed(exercise("number", 3), {}, name="=SUM(A1)"), "ben.json")
    broken, missing = file(b"no", "cleo.json"), tmp_path / "dora.json"
    assert command.main(["grade", str(right_file)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert (told[0].split() == "file name level seed right wrong open revealed hints mark".split()
            and told[2].split()[-2:] == ["100", "%"])
    marks = tmp_path / "marks.csv"
    assert (command.main(["grade", "--csv", str(marks), "--details", *map(str, (right_file, poor, broken, missing))])
            == 1)
    told = capsys.readouterr().out
    assert ("cleo.json: it is not JSON" in told and "dora.json: No such file" in told
            and "=SUM(A1), q1, what step 1 gives to" in told)
    rows = list(csv.reader(marks.read_text(encoding="utf-8").splitlines()))
    assert ([row[0] for row in rows] == ["file", "ada.json", "ben.json", "cleo.json", "dora.json"]
            and rows[2][1] == "'=SUM(A1)")
    assert command.main(["grade", "--seed", "8", str(right_file)]) == 1 and "not 8" in capsys.readouterr().out
    for arguments in ([], ["--level", "easy", "x"], ["--what", "x"], ["x", "--csv"]):
        assert (command.main(["grade", *arguments]) == 2 and "usage: python -m tensorgrad.viz grade"
                in capsys.readouterr().err)
    assert command.main(["grade", "--help"]) == 0 and "usage" in capsys.readouterr().out


def test_exercises_of_a_script_are_made_by_it_again(file, tmp_path):
    script, empty, failing = tmp_path / "teach.py", tmp_path / "empty.py", tmp_path / "failing.py"
    script.write_text(SCRIPT, encoding="utf-8")
    empty.write_text("", encoding="utf-8")
    failing.write_text("raise SystemExit(3)", encoding="utf-8")
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([0.5, -1.5], requires_grad=True)
    loss = ((x * w).sum() - 1) ** 2
    made = torch.viz.explain(loss).exercise("whole", 2)
    answers = file(handed(made))

    def grade(*arguments):      # in a process of its own, for the script's torch is tensorgrad
        done = subprocess.run([sys.executable, "-m", "tensorgrad.viz", "grade", *map(str, arguments)], cwd=ROOT,
                              capture_output=True, encoding="utf-8",
                              timeout=120, env=os.environ | {"PYTHONIOENCODING": "utf-8"})
        return done.returncode, done.stdout + done.stderr
    for arguments, status, told in ((["--from", script, answers], 0, "100 %"), ([answers], 1, "--from"),
                                    (["--from", empty, answers], 1, "makes no exercise"),
                                    (["--from", failing, answers], 1, "ended with status 3"),
                                    (["--from", tmp_path / "none.py", answers], 1, "none.py")):
        found = grade(*arguments)
        assert found[0] == status and told in found[1], found
