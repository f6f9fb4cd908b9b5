"""Small tools of training scripts: averages, times, log files, run directories, grids of coordinates."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from time import perf_counter
from typing import Any

from .. import api as tg
from .. import nn
from ..messages.escaping import escaped
from .schedules import make_optimizer

__all__ = [
    "Averager",
    "Timer",
    "compute_num_params",
    "ensure_path",
    "include_patterns",
    "init_params",
    "log",
    "make_coord",
    "make_optimizer",
    "set_log_path",
    "set_save_path",
    "time_text",
    "to_pixel_samples",
]

_log_path: Path | None = None


class Averager:
    """A running mean, each value weighted by its count.

    >>> loss = Averager()
    >>> loss.add(1.0, 3)
    >>> loss.add(5.0)
    >>> loss.item()
    2.0
    """

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0.0

    def add(self, v: Any, n: float = 1.0) -> None:
        """Add a number, or a tensor of one element, that is the mean of `n`."""
        self.total += float(v) * n
        self.count += n

    def item(self) -> float:
        """The mean so far; 0 if nothing was added."""
        return self.total / self.count if self.count else 0.0

    def state_dict(self) -> dict[str, float]:
        """The sum and the count, for a checkpoint."""
        return {"total": self.total, "count": self.count}

    def load_state_dict(self, state_dict: dict[str, float]) -> None:
        """Restore the sum and the count."""
        total, count = float(state_dict["total"]), float(state_dict["count"])
        self.total, self.count = total, count


class Timer:
    """Seconds since its start: `s()` starts it again, `t()` reads it.

    >>> timer = Timer()
    >>> timer.t() >= 0
    True
    """

    def __init__(self) -> None:
        self.s()

    def s(self) -> None:
        """Start again."""
        self.began = perf_counter()

    def t(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self.began


def time_text(secs: float) -> str:
    """A duration in seconds, minutes or hours, with one decimal.

    >>> time_text(12.34), time_text(60), time_text(4320)
    ('12.3s', '1.0m', '1.2h')
    """
    if secs >= 3600:
        return f"{secs / 3600:.1f}h"
    return f"{secs / 60:.1f}m" if secs >= 60 else f"{secs:.1f}s"


def set_log_path(path: Any) -> None:
    """Let `log` append to files in this directory; None: it only prints."""
    global _log_path
    _log_path = None if path is None else Path(path)


def log(obj: Any, filename: str = "log.txt") -> None:
    """Print a line, and append it to a file of the directory that `set_log_path` chose. Control characters are
    escaped."""
    text = escaped(obj, keep="\n\t")
    print(text)
    if _log_path is not None:
        with open(_log_path / filename, "a", encoding="utf-8") as file:
            print(text, file=file)


def ensure_path(path: Any, remove: bool = True, *, yes: bool = False) -> None:
    """Make a directory, with those above it.

    Where it exists and is not empty, its removal is offered at a terminal (`remove`), and without an answer, or without
    a terminal, it stays. `yes` removes it without a question. ValueError for the removal of a directory that the
    process works in, or that holds the user's home.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ensure_path(f"{folder}/save/mnist")
    ...     os.listdir(f"{folder}/save")
    ['mnist']
    """
    path = Path(path)
    if (
        path.is_dir()
        and any(path.iterdir())
        and (yes or (remove and _agreed(f"{escaped(path)} exists, remove? (y/[n]) ")))
    ):
        whole = path.resolve()
        for kept in (Path.cwd(), Path.home()):
            if kept.resolve().is_relative_to(whole):
                raise ValueError(f"{escaped(path)} is not removed: it holds {kept}")
        shutil.rmtree(path)
    path.mkdir(parents=True, exist_ok=True)


def _agreed(question: str) -> bool:
    """Ask a question at the terminal; True if the answer is yes, False if there is no terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def set_save_path(save_path: Any, remove: bool = True, *, yes: bool = False) -> tuple[Callable[..., None], Any]:
    """Make a run's directory as `ensure_path` does, log to it, and write TensorBoard's events to `tensorboard/` in it:
    (log, writer)."""
    from ..utils.tensorboard import SummaryWriter

    ensure_path(save_path, remove, yes=yes)
    set_log_path(save_path)
    return log, SummaryWriter(os.path.join(save_path, "tensorboard"))


def include_patterns(*patterns: str) -> Callable[[Any, Sequence[str]], set[str]]:
    """Return an `ignore` function for `shutil.copytree` that keeps directories and the files that match a pattern.

    >>> sorted(include_patterns("*.py", "*.yaml")(".", ["train.py", "a.yaml", "weights.pt"]))
    ['weights.pt']
    """

    def ignored(folder: Any, names: Sequence[str]) -> set[str]:
        return {
            name
            for name in names
            if not any(fnmatch(name, pattern) for pattern in patterns) and not os.path.isdir(os.path.join(folder, name))
        }

    return ignored


def compute_num_params(model: nn.Module, text: bool = False) -> int | str:
    """How many numbers a model's parameters have; as text, in millions or thousands.

    >>> import tensorgrad as torch
    >>> compute_num_params(torch.nn.Linear(10, 20)), compute_num_params(torch.nn.Linear(99, 34), text=True)
    (220, '3.4K')
    """
    total = sum(p.numel() for p in model.parameters())
    if not text:
        return total
    return f"{total / 1e6:.1f}M" if total >= 1e6 else f"{total / 1e3:.1f}K"


def make_coord(shape: Iterable[int], ranges: Sequence[tuple[float, float]] | None = None, flatten: bool = True) -> Any:
    """The centres of a grid's cells: (prod(shape), len(shape)), or (*shape, len(shape)) unless flattened.

    ranges: the (lowest, highest) edge of each dimension, (-1, 1) unless given. Cell i of n between v0 and v1 has its
    centre at v0 + (v1 - v0)(2i + 1) / 2n. ValueError unless there is one range for each dimension.

    >>> make_coord((2, 2))
    tensor([[-0.5000, -0.5000],
            [-0.5000,  0.5000],
            [ 0.5000, -0.5000],
            [ 0.5000,  0.5000]])
    """
    shape = list(shape)
    ranges = [(-1.0, 1.0)] * len(shape) if ranges is None else ranges
    if len(ranges) != len(shape):
        raise ValueError(f"make_coord: {len(ranges)} ranges for {len(shape)} dimensions")
    axes = [v0 + (v1 - v0) * (2 * tg.arange(n).float() + 1) / (2 * n) for n, (v0, v1) in zip(shape, ranges)]
    grid = tg.stack(tg.meshgrid(*axes, indexing="ij"), dim=-1)
    return grid.reshape(-1, len(shape)) if flatten else grid


def to_pixel_samples(img: Any) -> tuple[Any, Any]:
    """The pixels of an image (C, H, W) as pairs: coordinates (H·W, 2) of `make_coord`, and values (H·W, C).

    >>> import tensorgrad as torch
    >>> coord, value = to_pixel_samples(torch.zeros(3, 4, 5))
    >>> coord.shape, value.shape
    (torch.Size([20, 2]), torch.Size([20, 3]))
    """
    return make_coord(img.shape[-2:]).to(img.device), img.reshape(img.shape[-3], -1).permute(1, 0)


def init_params(net: nn.Module) -> None:
    """Draw the weights of convolutions and linear layers from He's normal distribution (fan out), in place; their
    biases are 0, batch norms 1 and 0.

    https://docs.pytorch.org/docs/2.13/nn.init.html#torch.nn.init.kaiming_normal_

    >>> import tensorgrad as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    >>> init_params(net)
    >>> net[0].bias.tolist()
    [0.0, 0.0, 0.0]
    """
    for module in net.modules():
        if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
        elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)) and module.weight is not None:
            nn.init.ones_(module.weight)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
