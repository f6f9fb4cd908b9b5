"""A training as a page, written while it runs: `recording` measures, `chart` and `boundary` draw, `page` writes,
`monitoring` offers it.
"""
from .monitoring import Monitor, monitor

__all__ = ["Monitor", "monitor"]
