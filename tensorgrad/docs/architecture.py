"""Draw docs/architecture.svg: the layers of the package with their modules and imports, from layers.py and the
source.
"""
from __future__ import annotations

from collections import Counter
from itertools import cycle
from math import log2

from ..viz.text import escape
from .layers import LAYER_OF, LAYERS, MODULES, PACKAGE, RANK, Layer, imports, inner, named, within

LEFT, BAND, WIDTH = 16, 664, 980        # left edge of the bands, their width, width of the picture
LETTER, LINE = 6.05, 23                 # width of a letter, height of a line of boxes
BOX = 17                                # the height of a box
COLOURS = ["#57606a", "#8250df", "#cf222e", "#bc4c00", "#9a6700", "#1a7f37", "#0a7ea4", "#0969da", "#1b7c83", "#bf3989",
           "#6639ba", "#57606a"]
MONO, SANS = ("ui-monospace, SFMono-Regular, Menlo, monospace",
              "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif")


def boxes_of(layer: Layer) -> list[tuple[str, int]]:
    """List the packages and modules of a layer in order, each with its number of modules."""
    names = [name for ranks in layer.ranks for name in ranks.split()]
    found = []
    for name in names:
        inside = [module for module in MODULES if within(module, name) and named(module) == name]
        if inside and not (len(inside) == 1 and MODULES[inside[0]].name == "__init__.py"
                           and any(other.startswith(f"{name}.") for other in names)):
            found.append((PACKAGE.name if name == "__init__" else name.removeprefix(f"{layer.name}."), len(inside)))
    return found


def uses() -> Counter[tuple[str, str, bool]]:
    """Count the modules of a layer that import from another: {(layer, other layer, True if the import reaches up):
    modules}."""
    found: Counter[tuple[str, str, bool]] = Counter()
    for module, path in MODULES.items():
        own = LAYER_OF[named(module)]
        pairs = set()
        for name, inside, _ in imports(path):
            target = inner(name)
            if target in MODULES and (other := LAYER_OF[named(target)]) is not own:
                up = RANK[named(target)] > RANK[named(module)]
                if up or not inside:
                    pairs.add((own.name, other.name, up))
        found.update(pairs)
    return found


def text(x: float, y: float, words: str, size: float = 12, colour: str = "#1f2328", family: str = SANS,
         more: str = "") -> str:
    return (f'<text x="{x:g}" y="{y:g}" font-family="{family}" font-size="{size:g}" '
            f'fill="{colour}"{more}>{escape(words)}</text>')


def flow(boxes: list[tuple[str, int]]) -> list[list[tuple[float, float, str, int]]]:
    """Arrange boxes in lines: (x, width, name, modules) of each."""
    lines: list[list[tuple[float, float, str, int]]] = [[]]
    x = LEFT + 14.0
    for name, count in boxes:
        width = LETTER * len(name + (f" {count}" if count > 1 else "")) + 12
        if lines[-1] and x + width > LEFT + BAND - 10:
            lines.append([])
            x = LEFT + 14.0
        lines[-1].append((x, width, name, count))
        x += width + 6
    return lines


def band(layer: Layer, top: float, colour: str) -> tuple[list[str], float]:
    """Return a layer as a band with boxes, and its lower end."""
    lines = flow(boxes_of(layer))
    bottom = top + 30 + LINE * len(lines) + 5
    drawn = [f'<rect x="{LEFT}" y="{top:g}" width="{BAND}" height="{bottom - top:g}" rx="7" fill="{colour}" '
             f'fill-opacity="0.07" stroke="{colour}" stroke-opacity="0.45"/>',
             text(LEFT + 14, top + 20, layer.name, 14, colour, more=' font-weight="600"'),
             text(LEFT + 14 + 9 * len(layer.name) + 12, top + 20, layer.about.replace("`", ""), 12, "#59636e")]
    for row, line in enumerate(lines):
        y = top + 30 + LINE * row
        for x, width, name, count in line:
            drawn.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX}" rx="4" fill="#ffffff" '
                         f'stroke="{colour}" stroke-opacity="0.6"/>')
            drawn.append(text(x + 6, y + 12.3, name, 10, family=MONO))
            if count > 1:
                drawn.append(text(x + 6 + LETTER * (len(name) + 1), y + 12.3, str(count), 10, "#818b98", MONO))
    return drawn, bottom


def arrow(start: float, end: float, reach: float, width: float, colour: str, about: str,
          dashed: bool = False) -> list[str]:
    """Return an arrow on the right, from the height of one band to that of another."""
    x, half = LEFT + BAND + 1, 4 + width / 2
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return [f"<g><title>{escape(about)}</title>",
            f'<path d="M{x} {start:g} C{x + reach:g} {start:g} {x + reach:g} {end:g} {x + 8} {end:g}" fill="none" '
            f'stroke="{colour}" stroke-width="{width:g}" stroke-opacity="0.55"{dashes}/>',
            f'<path d="M{x} {end:g} l9 {-half:g} v{2 * half:g} z" fill="{colour}"/></g>']


def draw() -> str:
    """Return the map as SVG, with literal attributes only."""
    found, colours = uses(), {layer.name: colour for layer, colour in zip(LAYERS, cycle(COLOURS), strict=False)}
    drawn: list[str] = []
    places: dict[str, tuple[float, float]] = {}
    top = 16.0
    for layer in reversed(LAYERS):
        parts, bottom = band(layer, top, colours[layer.name])
        places[layer.name] = top, bottom
        drawn += parts
        top = bottom + 12
    order = {layer.name: place for place, layer in enumerate(LAYERS)}

    def height(name: str, other: str, arrives: bool) -> float:
        """Return the height at which an arrow leaves or meets a band: arrows from further above arrive further up,
        and leave further down."""
        upper, lower = places[name]
        ends = sorted({(b if a == name else a) for a, b, up in found if name in (a, b) and (b == name) == arrives},
                      key=lambda n: -order[n])
        first, last = (upper + 7, (upper + lower) / 2 - 3) if arrives else ((upper + lower) / 2 + 3, lower - 7)
        place = ends.index(other)
        return first + (last - first) * (place + 1) / (len(ends) + 1)
    for (one, other, up), count in sorted(found.items(), key=lambda item: -abs(order[item[0][0]] - order[item[0][1]])):
        distance = abs(order[one] - order[other])
        colour = "#e16f24" if up else colours[other]
        about = f"{one} imports from {other}" + (", which is above it, inside of functions" if up else "")
        drawn += arrow(height(one, other, False), height(other, one, True), 40 + 31 * distance,
                       1.4 if up else 1 + round(log2(count)) / 2, colour, about, up)
    for line, words in enumerate((
            "An arrow: modules of one layer import from another; the thicker, the more of them. Dashed: inside of a "
            "function, upward.",
            "A box: a module, or a package with the number of its modules. In the core, what comes later builds on "
            "what comes first.")):
        drawn.append(text(LEFT, top + 8 + 16 * line, words, 11, "#59636e"))
    size = f'width="{WIDTH}" height="{top + 36:g}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {top + 36:g}" role="img">',
                      "<title>The layers of tensorgrad</title>", f'<rect {size} rx="10" fill="#ffffff"/>', *drawn,
                      "</svg>", ""])
