"""Compare runs, read from their directories: as a table in the terminal, and as a page that works offline.

>>> import tempfile
>>> from tensorgrad.experiment import Run, show
>>> with tempfile.TemporaryDirectory() as save:
...     with Run(f"{save}/a", {"lr": 0.1}, events=False) as run:
...         run.log(0, loss=0.5)
...     record = show.read(f"{save}/a")
>>> record.status, record.last("loss"), show.page([record]).startswith("<!DOCTYPE html>")
('finished', 0.5, True)
"""

from .page import page
from .reading import Record, find, read
from .table import table

__all__ = ["Record", "find", "page", "read", "table"]
