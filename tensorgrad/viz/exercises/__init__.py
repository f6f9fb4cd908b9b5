"""Exercises about backprop, in four levels: a page that checks by differences, and marks for what is handed in."""
from .exercise import LEVELS, Exercise, exercise

__all__ = ["LEVELS", "Exercise", "exercise"]
