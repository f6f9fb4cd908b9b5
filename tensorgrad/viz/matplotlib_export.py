"""Pictures that `svg` has drawn, as PNG, PDF and Matplotlib figures: Matplotlib paints their rectangles, ways and
texts; no other program is needed.

The attributes of an SVG from `svg` say all that there is to see on white paper, so its text is all that is read here.
Fonts are embedded in a PDF.
"""
from __future__ import annotations

import math
import re
import warnings
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from ..messages.extras import install
from .plots import canvas

SVG = "{http://www.w3.org/2000/svg}"
INCH = 96                       # pixels of an SVG
SHARPNESS = 2                   # pixels of a PNG for one of these
LARGEST = 16_000                # pixels of a PNG along a side: larger pictures are less sharp
WEIGHTS = {"600": "bold"}
ARROW = 9.0                     # pixels: the size of the tip of an edge


def painted(svg: str, form: str) -> bytes:
    """The picture as a file of a form, "png" or "pdf".

    Errors: ImportError if Matplotlib is not installed.

    >>> import tensorgrad as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> painted(torch.viz.graph(w * 2).svg(), "pdf")[:5]
    b'%PDF-'
    """
    try:
        import matplotlib
        drawn = figure(svg)
    except ImportError as error:
        raise ImportError(f"PNG and PDF pictures are painted by Matplotlib, which is not installed: {install('viz')}; "
                          ".svg, .html and .dot need nothing") from error
    file = BytesIO()
    sharpness = min(SHARPNESS, LARGEST / max(*drawn.get_size_inches() * INCH, 1))
    with matplotlib.rc_context({"pdf.fonttype": 42, "savefig.bbox": None}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")        # a letter that the font lacks is an empty box
        drawn.savefig(file, format=form, dpi=sharpness * INCH, metadata={"CreationDate": None} if form == "pdf" else {})
    return file.getvalue()


def figure(svg: str, size: tuple[float, float] | None = None, *, most: float = math.inf, foot: float = 0.0,
           window: bool = False) -> Any:
    """The picture as a Matplotlib Figure of a size in inches, by default the picture's own, but at most `most`; with
    axes for it alone.

    `foot` is the height in inches of a strip below the picture that stays free. With `window`, pyplot knows the figure.

    Errors: ImportError if Matplotlib is not installed.
    """
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    if size is None:
        scale = min(1.0, most * INCH / max(width, height))
        size = width * scale / INCH, height * scale / INCH + foot
    else:
        scale = min(size[0] * INCH / width, max(size[1] - foot, 0.01) * INCH / height)
    drawn, _ = canvas(None, *size, axes=False)
    if window:
        from matplotlib import pyplot
        drawn = pyplot.figure(figsize=size)
    drawn.set_layout_engine("none")
    low = min(foot / size[1], 0.5)
    axes = drawn.add_axes((0, low, 1, 1 - low))
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    axes.set_axis_off()
    painter = Painter(axes, scale)
    for element in root.iter():
        getattr(painter, element.tag.removeprefix(SVG), painter.nothing)(element)
    return drawn


class Painter:
    """Paints elements one over the other."""

    def __init__(self, axes: Any, scale: float) -> None:
        self.axes, self.order, self.point = axes, 0, 72 / INCH * scale      # points of a pixel

    def nothing(self, element: Any) -> None:
        """Groups, titles and styles show nothing themselves."""

    def add(self, path: Any, element: Any, **options: Any) -> None:
        from matplotlib.patches import PathPatch
        self.order += 1
        dashes = [float(n) for n in element.get("stroke-dasharray", "").split()]
        width = float(element.get("stroke-width", "1").removesuffix("px")) * self.point
        look = {"facecolor": element.get("fill", "none"), "edgecolor": element.get("stroke", "none"),
                "linewidth": width,
                "linestyle": (0, [n * self.point / width for n in dashes]) if dashes else "-"}
        self.axes.add_patch(PathPatch(path, zorder=self.order, **look | options))

    def rect(self, element: Any) -> None:
        """A rectangle with round corners; one whose size is in per cent is the paper."""
        if element.get("width", "").endswith("%"):
            self.axes.figure.set_facecolor(element.get("fill"))
            return
        x, y, w, h, r = (float(element.get(name, 0)) for name in ("x", "y", "width", "height", "rx"))
        k = r * (1 - 0.5523)                    # where the handles of a quarter of a circle are
        self.add(outline(f"M{x + r} {y}L{x + w - r} {y}C{x + w - k} {y} {x + w} {y + k} {x + w} {y + r}L{x + w} "
                         f"{y + h - r}C{x + w} {y + h - k} {x + w - k} {y + h} {x + w - r} {y + h}L{x + r} "
                         f"{y + h}C{x + k} {y + h} {x} {y + h - k} {x} {y + h - r}L{x} {y + r}C{x} {y + k} {x + k} {y} "
                         f"{x + r} {y}z"),
                 element)

    def path(self, element: Any) -> None:
        """An edge, with its tip. The tip's own definition is none."""
        if "edge" not in element.get("class", ""):
            return
        way = outline(element.get("d", ""))
        self.add(way, element)
        if element.get("marker-end"):
            (x0, y0), (x, y) = (way.vertices[i] for i in (-2, -1))
            angle = math.atan2(y - y0, x - x0)
            corners = [(x + ARROW * (c * math.cos(angle) - s * math.sin(angle)),
                        y + ARROW * (c * math.sin(angle) + s * math.cos(angle)))
                       for c, s in ((-0.875, -0.45), (0.125, 0), (-0.875, 0.45))]
            self.add(outline("M" + "L".join(f"{a} {b}" for a, b in corners) + "z"), element,
                     facecolor=element.get("stroke"), edgecolor="none", linestyle="-")

    def text(self, element: Any) -> None:
        """A line of text, with an outline where it has one, turned by 90° where it is upright."""
        from matplotlib.patheffects import withStroke
        self.order += 1
        outlined = element.get("stroke")
        around = ([withStroke(linewidth=float(element.get("stroke-width", "1").removesuffix("px")) * self.point,
                              foreground=outlined)] if outlined else None)
        x, y, turned = float(element.get("x")), float(element.get("y")), element.get("transform")
        if turned:                              # rotate(-90 cx cy)
            cx, cy = map(float, turned.removesuffix(")").split()[1:])
            x, y = cx + y - cy, cy - x + cx
        self.axes.text(x, y, (element.text or "").replace("$", r"\$"), family="DejaVu Sans Mono",
                       fontsize=float(element.get("font-size", "11px").removesuffix("px")) * self.point,
                       color=element.get("fill"),
                       weight=WEIGHTS.get(element.get("font-weight"), "normal"),
                       ha={"start": "left", "middle": "center"}[element.get("text-anchor", "start")],
                       va="baseline", rotation=90 if turned else 0, rotation_mode="anchor", zorder=self.order,
                       path_effects=around)


def outline(d: str) -> Any:
    """A path of moves, lines and curves as Matplotlib has them."""
    from matplotlib.path import Path
    vertices, codes = [], []
    for letter, numbers in re.findall(r"([MLCz])([^MLCz]*)", d):
        points = [float(n) for n in numbers.split()]
        pairs = list(zip(points[::2], points[1::2])) or [vertices[0]]
        vertices += pairs
        codes += {"M": [Path.MOVETO], "L": [Path.LINETO], "C": [Path.CURVE4] * 3, "z": [Path.CLOSEPOLY]}[letter]
    return Path(vertices, codes)


__all__ = ["figure", "painted"]
