"""Pictures of a training: the loss, how far gradients reach, and how weights are spread.

Drawn with Matplotlib, and without its global state.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import numpy as np

from ..core.tape import TensorBase
from ..messages.extras import install
from ..runtime.small_floats import wide

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#767676"
# M. Okabe, K. Ito: distinct for colour-blind readers, too
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", ":", "-.")             # of lines, once the colours are used up
VANISHED = 1e-8                             # a mean of |gradient| below this moves nothing in float32
CELLS = 24                                  # histograms in one picture


def plot_loss(losses: Any, *, smooth: float = 0.9, ax: Any = None) -> Any:
    """The loss over the steps of a training, or of several: a Matplotlib Figure, with a running mean if `smooth` is not
    0.

    `losses` are numbers or tensors of one element, in a list, an array or a tensor; or a dict of such, by the names of
    the runs. `smooth` is how much of the running mean each step keeps. NaN and infinities are gaps, and counted in the
    legend. The scale is logarithmic where losses span more than two
    powers of ten. `ax`: draw there. ValueError where there is nothing to draw; ImportError without Matplotlib (extra
        `plot`).

    >>> import tensorgrad as torch
    >>> figure = torch.viz.plot_loss({"small": [1.0, 0.5, 0.3], "large": torch.tensor([1.2, 0.4, 0.1])}, smooth=0)
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['small', 'large']
    """
    if not isinstance(smooth, (int, float)) or not 0 <= smooth < 1:
        raise ValueError(f"plot_loss(): smooth must be at least 0 and less than 1, but got {smooth!r:.100}")
    runs = ({str(k): numbers(v, f"losses[{k!r}]") for k, v in losses.items()} if isinstance(losses, Mapping)
            else {"loss": numbers(losses, "losses")})
    if not runs:
        raise ValueError("plot_loss(): there are no losses to plot")
    figure, axes = canvas(ax, 8, 4.5)
    for i, (name, values) in enumerate(runs.items()):
        known = np.isfinite(values)
        label = plain(name) + (f" ({np.count_nonzero(~known)} of {len(values)} not finite)" if not known.all() else "")
        values = np.where(known, values, np.nan)
        steps, colour, style = (np.arange(1, len(values) + 1), COLOURS[i % len(COLOURS)],
                                STYLES[i // len(COLOURS) % len(STYLES)])
        dots = {"marker": "."} if len(values) < 30 else {}      # a point between two gaps would draw no line
        if smooth:
            axes.plot(steps, values, color=colour, linewidth=0.7, alpha=0.35, **dots)
        axes.plot(steps, running_mean(values, smooth), color=colour, linestyle=style, linewidth=1.8, label=label,
                  **({} if smooth else dots))
    all_known = np.concatenate([values[np.isfinite(values)] for values in runs.values()])
    if all_known.size and all_known.min() > 0 and all_known.max() > 100 * all_known.min():
        axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("loss" + (f", running mean ({smooth:g} kept)" if smooth else ""))
    dressed(axes, "both")
    axes.legend(frameon=False, loc="upper right")
    return figure


def plot_grad_flow(module: Any, *, vanished: float = VANISHED, ax: Any = None) -> Any:
    """How large the gradients of a module's parameters are, the first layer at the top: mean and max of |gradient|, on
    a logarithmic scale.

    Call it after `backward()`. Parameters without a gradient, or whose mean is at most `vanished`, are marked ✕ with
    the reason. `module` may also be an iterable of (name, parameter). `ax`: draw there. RuntimeError if no parameter
    has a gradient; ImportError without Matplotlib (extra `plot`).

    >>> import tensorgrad as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    >>> net(torch.ones(2, 3)).sum().backward()
    >>> [label.get_text() for label in torch.viz.plot_grad_flow(net).axes[0].get_yticklabels()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """
    named = parameters(module, "plot_grad_flow")
    if all(p.grad is None for _, p in named):
        raise RuntimeError("plot_grad_flow(): no parameter has a gradient. Call backward() before, and zero_grad() "
                           "after")
    sizes = [None if p.grad is None else np.abs(array(p.grad)) for _, p in named]
    means = np.array([np.nan if s is None or not s.size else s.mean() for s in sizes])
    peaks = np.array([np.nan if s is None or not s.size else s.max() for s in sizes])
    reasons = [reason(s, mean, vanished) for s, mean in zip(sizes, means, strict=True)]
    alive = np.array([r == "" for r in reasons])
    figure, axes = canvas(ax, 8, 1.4 + 0.26 * min(len(named), 60))
    rows = np.arange(len(named))
    axes.set_xscale("log")
    if alive.any():
        axes.hlines(rows[alive], means[alive], peaks[alive], color="#c8c8c8", linewidth=3, zorder=1)
        axes.scatter(means[alive], rows[alive], color=BLUE, marker="o", s=34, label="mean |gradient|", zorder=2)
        axes.scatter(peaks[alive], rows[alive], color=ORANGE, marker="D", s=26, label="max |gradient|", zorder=2)
        axes.set_xlim(means[alive].min() / 4, peaks[alive].max() * 2)
    else:
        axes.set_xticks([])
        axes.set_xticks([], minor=True)
    every = math.ceil(len(named) / 60)
    edge = axes.get_yaxis_transform()           # x from 0 to 1 across the axes
    for row in rows[~alive]:
        axes.scatter([0.015], [row], color=GREY, marker="X", s=40, transform=edge, clip_on=False)
        if row % math.ceil(every / 2) == 0:         # leave out labels that would overlap
            axes.annotate(reasons[row], (0.035, row), xycoords=edge, va="center", fontsize="small", color="#444444")
    axes.set_yticks(rows[::every], [plain(name) for name, _ in named][::every])
    axes.set_ylim(len(named) - 0.4, -0.6)
    axes.set_xlabel("|gradient|")
    dressed(axes, "x")
    if alive.any():
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0)
    return figure


def plot_weights(module: Any, *, bins: int = 40, ax: Any = None) -> Any:
    """Histograms of each parameter's elements, upwards, and of its gradient's, downwards, each with its own scale.

    The first 24 parameters are drawn; to choose others, give an iterable of (name, parameter) in the place of the
    module. Elements that are not finite are
    counted in the title. `ax`: axes to draw on, one for each parameter. ValueError if there are no parameters;
        ImportError without Matplotlib
    (extra `plot`).

    >>> import tensorgrad as torch
    >>> figure = torch.viz.plot_weights(torch.nn.Linear(20, 30))
    >>> [axes.get_title() for axes in figure.axes if axes.get_title()]
    ['weight  (30, 20)', 'bias  (30,)']
    """
    if not isinstance(bins, int) or bins < 1:
        raise ValueError(f"plot_weights(): bins must be a positive integer, but got {bins!r:.100}")
    named = parameters(module, "plot_weights")
    shown = named[:CELLS]
    if ax is not None:
        cells = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(cells) < len(shown):
            raise ValueError(f"plot_weights(): {len(shown)} parameters need as many axes, but got {len(cells)}")
        figure = cells[0].figure
    else:
        columns = min(4, max(1, math.ceil(math.sqrt(len(shown)))))
        rows = math.ceil(len(shown) / columns)
        figure, _ = canvas(None, max(5.0, 3.1 * columns), 0.5 + 2.3 * rows, axes=False)
        figure.get_layout_engine().set(h_pad=0.1, w_pad=0.1)
        cells = [figure.add_subplot(rows, columns, i + 1) for i in range(len(shown))]
    for axes, (name, parameter) in zip(cells, shown, strict=False):
        histograms(axes, name, parameter, bins)
    if ax is None:
        from matplotlib.patches import Patch
        figure.legend(handles=[Patch(color=BLUE, alpha=0.8, label="weights (upwards)"),
                               Patch(color=ORANGE, alpha=0.8, label="gradients (downwards)")],
                      loc="outside upper left", ncols=2, frameon=False)
        if len(named) > CELLS:
            figure.supxlabel(f"the first {CELLS} of {len(named)} parameters", fontsize="medium", color="#444444")
    return figure


def histograms(axes: Any, name: str, parameter: Any, bins: int) -> None:
    """Draw the elements of one parameter upwards and, with a separate scale, those of its gradient downwards."""
    values = array(parameter).ravel()
    missing = np.count_nonzero(~np.isfinite(values))
    axes.set_title(f"{plain(name)}  {tuple(parameter.shape)}" + (f"  {missing} not finite" if missing else ""),
                   fontsize="small")
    axes.set_ylim(-1.15, 1.15)
    axes.set_yticks([])
    axes.axhline(0, color="#444444", linewidth=0.8)
    stairs(axes, values, bins, 1, BLUE)
    below = axes.twiny()
    axes.xaxis.tick_top()
    below.xaxis.tick_bottom()
    if parameter.grad is None:
        below.set_xticks([])
        below.text(0.5, 0.25, "no gradient", transform=below.transAxes, ha="center", fontsize="small", color="#444444")
    else:
        stairs(below, array(parameter.grad).ravel(), bins, -1, ORANGE)
    for one in (axes, below):
        for side in ("left", "right", "top", "bottom"):
            one.spines[side].set_visible(False)


def stairs(axes: Any, values: Any, bins: int, up: int, colour: str) -> None:
    """Draw a histogram of height 1, with ticks at the ends and at 0."""
    values = values[np.isfinite(values)]
    if not values.size:
        axes.set_xticks([])
        return
    counts, edges = np.histogram(values, bins=min(bins, math.ceil(1.5 * math.sqrt(values.size) - 0.5)))
    axes.stairs(up * counts / counts.max(), edges, fill=True, color=colour, alpha=0.8)
    low, high = values.min(), values.max()
    middle = [0.0] if low < 0 < high and min(-low, high) > 0.2 * (high - low) else []
    ticks = sorted({low, *middle, high})
    margin = 0.03 * (edges[-1] - edges[0])
    axes.set_xlim(edges[0] - margin, edges[-1] + margin)
    axes.set_xticks(ticks, [f"{tick:.2g}".replace("-", "−") for tick in ticks])
    axes.tick_params(labelsize="x-small", colors=colour, length=2, pad=1)


# ── what is drawn ─────────────────────────────────────────────────────────────────────────────────────────────────────


def numbers(values: Any, what: str) -> np.ndarray[Any, Any]:
    """Return losses as an array of float64."""
    if isinstance(values, (TensorBase, np.ndarray)):
        found = array(values)
        if found.ndim > 1:
            raise ValueError(f"plot_loss(): {what} must have one dimension, but its shape is {tuple(found.shape)}")
        found = found.ravel()
    elif isinstance(values, Iterable) and not isinstance(values, (str, bytes)):
        found = np.array([number(v, f"{what}[{i}]") for i, v in enumerate(values)], dtype=np.float64)
    else:
        raise TypeError(f"plot_loss(): {what} must be numbers or tensors in a list, an array or a tensor, not "
                        f"{type(values).__name__}")
    if not found.size:
        raise ValueError(f"plot_loss(): {what} is empty")
    return found


def number(value: Any, what: str) -> float:
    if isinstance(value, TensorBase):
        value = array(value)
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise ValueError(f"plot_loss(): {what} must be a number, but has {value.size} elements")
        value = value.item()
    if isinstance(value, (complex, str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"plot_loss(): {what} must be a real number, not {type(value).__name__}")
    return float(value)


def array(tensor: Any) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor on the host, in float64; absolute values of complex numbers."""
    if isinstance(tensor, TensorBase):
        tensor = tensor.detach().cpu().array    # type: ignore[attr-defined]
    found: np.ndarray[Any, Any] = wide(np.asarray(tensor))
    return np.abs(found).astype(np.float64) if found.dtype.kind == "c" else found.astype(np.float64)


def parameters(module: Any, name: str) -> list[tuple[str, Any]]:
    """Return the named parameters of a module, or the given pairs."""
    pairs = (module.named_parameters() if hasattr(module, "named_parameters") else module.items()
             if isinstance(module, Mapping) else module)
    try:
        named = [(str(key), parameter) for key, parameter in pairs]
    except (TypeError, ValueError):
        named = [("", None)]
    if not all(isinstance(parameter, TensorBase) for _, parameter in named):
        raise TypeError(f"{name}(): expected a Module, or pairs of a name and a parameter, but got "
                        f"{type(module).__name__}")
    if not named:
        raise ValueError(f"{name}(): there are no parameters")
    return named


def reason(size: Any, mean: float, vanished: float) -> str:
    """Return the fault of a gradient as text, or "" if it has none."""
    if size is None:
        return "no gradient"
    if not size.size:
        return "empty"
    if not np.isfinite(size).all():
        return f"not finite: {np.count_nonzero(~np.isfinite(size))} of {size.size}"
    return "zero" if mean == 0 else f"vanished: {mean:.0e}" if mean <= vanished else ""


def running_mean(values: np.ndarray[Any, Any], keep: float) -> np.ndarray[Any, Any]:
    """Return the running mean, corrected for the bias of its start; gaps stay gaps, and it continues after them."""
    if not keep:
        return values
    out, mean, weight = np.full(len(values), np.nan), 0.0, 0.0
    for i, value in enumerate(values):
        if value == value:
            mean, weight = keep * mean + (1 - keep) * float(value), keep * weight + (1 - keep)
            out[i] = mean / weight
    return out


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def canvas(ax: Any, width: float, height: float, axes: bool = True) -> tuple[Any, Any]:
    """Return a figure and its axes: new ones, or those that were given."""
    if ax is not None:
        return ax.figure, ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"this draws with Matplotlib, and {error.name} is not installed: {install('plot')}") from error

    class Sheet(Figure):
        """A figure that shows itself in a notebook, with or without pyplot."""

        def _repr_png_(self) -> bytes:
            file = BytesIO()
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()
    figure = Sheet(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot() if axes else None


def dressed(axes: Any, grid: str) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis=grid, color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)


def plain(name: str) -> str:
    """Return a name for literal display: $ starts no formula, and a leading _ does not hide it from the legend."""
    name = "".join(c if c.isprintable() else "�" for c in shortened(name, 40)).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name or "(no name)"


def shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[:most // 2 - 1]}…{name[-most // 2:]}"
