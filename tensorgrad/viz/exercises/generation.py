"""Exercises about small programs of their own, each from a seed."""
from __future__ import annotations

from random import SystemRandom

from .exercise import Exercise
from .nets import net
from .questions import check


def exercise(level: str = "whole", seed: int | str | None = None) -> Exercise:
    """An exercise about a small program of its own, made from a seed: a number or a word. None draws a seed.

    Levels: "number" asks for the numbers of each step back, whose rule is shown. "rule" asks for the rules, as
        formulas. "whole" shows the forward of a
    small net and asks for all of its gradients. "wrong" shows backwards with one mistake each: which line is it, and
    what should be there?

    The page checks answers by differences that it computes; they are not in its source. Students hand in a file,
    which `python -m tensorgrad.viz grade FILE` marks: it makes the exercise again from its seed.

    Raises: ValueError for a level that is none of these.

    >>> import tensorgrad as torch
    >>> made = torch.viz.exercise("whole", seed=7)
    >>> made
    <Exercise "whole", seed 7, about L: 8 questions>
    >>> made.save("exercise.html")                                                                  # doctest: +SKIP
    """
    seed = SystemRandom().randrange(10 ** 6) if seed is None else seed
    check(level, seed)
    return Exercise(net(level, seed), level, seed, made="net")


__all__ = ["exercise"]
