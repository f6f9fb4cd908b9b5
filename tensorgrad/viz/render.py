"""`Tensor.render`: the graph behind a tensor. Boxes are tensors (name, shape, values, gradient), ovals are operations."""
from __future__ import annotations

from io import BytesIO
from typing import Any

from ..core.tape import Output, node_of
from ..messages.extras import install
from .tape import Tape, read
from .text import quoted
from .torch_names import title

LIMIT = 120     # characters of values that a box shows


def short(tensor: Any) -> str:
    """The values of a tensor as text, the middle left out if it is long."""
    text = str(rounded(tensor.detach().cpu().tolist()))
    return text if len(text) <= LIMIT else f"{text[:LIMIT // 2]} … {text[-LIMIT // 2:]}"


def rounded(values: Any) -> Any:
    """Nested lists of numbers, of four digits each."""
    return [rounded(v) for v in values] if isinstance(values, list) else float(f"{values:.4g}") if isinstance(values, float) else values


def label(name: str, shape: Any, tensor: Any) -> str:
    lines = [name, f"shape: {list(shape)}"]
    if tensor is not None:
        lines.append(f"data: {short(tensor)}")
        if tensor._grad is not None:
            lines.append(f"grad: {short(tensor._grad)}")
    return "\n".join(lines)


def dot(tensor: Any) -> str:
    """The graph behind a tensor, as DOT text."""
    root = node_of(tensor)
    if root is None:
        raise RuntimeError("there is no graph to draw: the tensor does not require grad")
    tape = Tape([root], [(tensor, root)])
    number = {node: i for i, node in enumerate(tape.nodes)}
    made: dict[Any, list[Any]] = {}      # of steps with several results: their places, each a box
    for node in tape.nodes:
        if type(node) is Output:
            made.setdefault(node.node, []).append(node)
    lines = ["digraph {", '  node [fontname="monospace" fontsize=10]']
    for node in tape.nodes:
        if node not in made:
            known = tape.tensors.get(node)
            name = str(getattr(known, "name", None) or f"tensor@{number[node]:08x}")
            lines.append(f"  t{number[node]} [shape=box label={quoted(label(name, node.shape, known))}]")
    for node, step in tape.steps.items():
        name = title(step.op.opname, node.params) if step.op is not None else node.name()
        lines.append(f"  o{number[node]} [shape=oval label={quoted(name)}]")
        lines.extend(f"  t{number[e]} -> o{number[node]}" for e in node.edges if e is not None)
        lines.extend(f"  o{number[node]} -> t{number[n]}" for n in made.get(node, [node]))
    return "\n".join([*lines, "}"])


def render(tensor: Any, format: str = "image") -> Any:
    """A picture of the graph behind a tensor: a PIL image, or text that needs nothing to make: `format='dot'`, 'svg' or 'html'.

    Call `retain_grad()` on intermediate tensors to see their values and gradients.

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> 'multiply' in (x * x).sum().render(format='dot')
    True
    """
    if format not in ("image", "dot", "svg", "html"):
        raise ValueError(f"render: format must be 'image', 'dot', 'svg' or 'html', not {format!r}")
    if format in ("svg", "html"):
        return getattr(picture(tensor), format)()
    text = dot(tensor)
    if format == "dot":
        return text
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"render() gives a picture of Pillow's, which is not installed: {install('viz')}; render(format='svg') needs nothing") from error
    return Image.open(BytesIO(picture(tensor).png()))


def picture(tensor: Any) -> Any:
    """The graph behind a tensor as a `Graph`, with the values and the gradients that tensors have."""
    from .graph import Graph
    from .scene import Shows
    return Graph(read(tensor), Shows(values=True, gradients=True))
