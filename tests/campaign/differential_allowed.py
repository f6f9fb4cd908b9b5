"""Differences from PyTorch that may be: a pattern of the line `class: call → what differs`, and the reason."""

ALLOWED: list[tuple[str, str]] = [
]
