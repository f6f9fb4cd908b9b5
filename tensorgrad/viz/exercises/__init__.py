"""Exercises about backprop, in four levels: a page that checks by differences, and marks for what is handed in."""
