"""Where a module with two inputs decides for which class, drawn below the points that it learns from."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...core.mode import no_grad
from ...core.tape import TensorBase
from ..plots import array
from .chart import LINES

CELLS = 48              # of a side
MOST = 400              # points that are drawn
SIDE = 360


class Boundary:
    """Points of shape (n, 2) and their n labels; `draw` asks the module about a grid around them.

    A single output decides at 0, or at 0.5 after a last `nn.Sigmoid`, between the lower and the higher label; of
    several the greatest one is the class, whose number is the label. The module runs in evaluation mode, without
    gradients, and is left in the modes it had.
    """

    def __init__(self, module: Any, points: Any, labels: Any) -> None:
        self.module = module
        self.like = points if isinstance(points, TensorBase) else None
        try:
            self.points, self.labels = array(points), array(labels).reshape(-1)
        except (TypeError, ValueError):
            raise TypeError(
                "monitor(): boundary must be a pair (points, labels) of tensors or arrays of numbers") from None
        if (self.points.ndim != 2 or self.points.shape[1] != 2 or not len(self.points)
                or len(self.labels) != len(self.points)):
            raise ValueError(f"monitor(): boundary must be points of shape (n, 2) and n labels, but got "
                             f"{self.points.shape} and {self.labels.shape}")
        if not np.isfinite(self.points).all() or not np.isfinite(self.labels).all():
            raise ValueError("monitor(): points and labels of boundary must be finite")
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        room = np.where(high > low, (high - low) * 0.08, 1.0)
        self.low, self.high = low - room, high + room

    def classes(self) -> np.ndarray[Any, Any]:
        """The class of each cell, the first row at the top."""
        from ...api.creation import tensor
        from ...nn import Sigmoid
        middles = (np.arange(CELLS) + 0.5) / CELLS
        x, y = np.meshgrid(self.low[0] + (self.high - self.low)[0] * middles,
                           self.high[1] - (self.high - self.low)[1] * middles)
        first = next(self.module.parameters())
        like = first if self.like is None or not self.like.is_floating_point() else self.like
        modes = [(part, part.training) for part in self.module.modules()]
        try:
            self.module.eval()
            with no_grad():
                output = array(self.module(tensor(np.stack([x.ravel(), y.ravel()], axis=1), dtype=like.dtype,
                                                  device=first.device)))
        finally:
            for part, training in modes:
                part.training = training
        if output.size == CELLS * CELLS:
            self.single = True
            found = (output.reshape(-1) > (0.5 if isinstance(modes[-1][0], Sigmoid) else 0.0)).astype(int)
        elif output.ndim == 2 and len(output) == CELLS * CELLS:
            self.single = False
            found = output.argmax(axis=1)
        else:
            raise ValueError("monitor(): for a boundary the module must map (n, 2) to (n,) or (n, classes), "
                             f"but gave {output.shape} for n = {CELLS * CELLS}")
        return found.reshape(CELLS, CELLS)

    def draw(self) -> str:
        """The picture as SVG: cells in the pale colour of their class, points as marks of their class."""
        classes, cell = self.classes(), SIDE / CELLS
        parts = []
        for row, kinds in enumerate(classes):
            edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), CELLS]
            for start, end in zip(edges, edges[1:], strict=False):
                colour = int(kinds[start]) % len(LINES)
                parts.append(f'<rect class="f{colour}" x="{start * cell:g}" y="{row * cell:g}" '
                             f'width="{(end - start) * cell:g}" height="{cell:g}" fill="{LINES[colour][0]}" '
                             f'fill-opacity=".28" shape-rendering="crispEdges"/>')
        labels = ((self.labels > (self.labels.min() + self.labels.max()) / 2).astype(int) if self.single
                  else self.labels.astype(int))
        chosen = np.unique(np.linspace(0, len(labels) - 1, min(MOST, len(labels))).astype(int))
        places = (self.points[chosen] - self.low) / (self.high - self.low) * SIDE
        marks = [mark(float(x), SIDE - float(y), int(kind))
                 for (x, y), kind in zip(places, labels[chosen], strict=True)]
        return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {SIDE} {SIDE}"><title>Decision '
                f'boundary</title>{"".join(parts)}{"".join(marks)}</svg>')


def mark(x: float, y: float, kind: int) -> str:
    """A point: a shape and a colour of its class."""
    shape = (f"M{x - 3.5:.1f} {y:.1f}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", f"M{x - 3:.1f} {y - 3:.1f}h6v6h-6z",
             f"M{x:.1f} {y - 4:.1f}l4 7h-8z", f"M{x:.1f} {y - 4.5:.1f}l4.5 4.5l-4.5 4.5l-4.5 -4.5z")[kind % 4]
    colour = kind % len(LINES)
    return f'<path class="f{colour} mark" d="{shape}" fill="{LINES[colour][0]}" stroke="#ffffff" stroke-width=".8"/>'
