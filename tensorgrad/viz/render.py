"""`Tensor.render`: the graph behind a tensor, with the values and the gradients that its tensors have."""
from __future__ import annotations

from io import BytesIO
from typing import Any

from ..messages.extras import install
from .drawing import Graph
from .scene import Shows
from .tape import read


def dot(tensor: Any) -> str:
    """The graph behind a tensor as DOT text: `render(tensor, "dot")`."""
    return render(tensor, "dot")


def render(tensor: Any, format: str = "image") -> Any:
    """A picture of the graph behind a tensor: a PIL image, or text that needs nothing to make: `format='dot'`, 'svg' or
    'html'.

    `viz.graph(tensor)` draws the same graph without numbers, as an object that offers every format; here, boxes show
    shapes, values and gradients. Call `retain_grad()` on intermediate tensors to see theirs.

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> 'multiply' in (x * x).sum().render(format='dot')
    True
    """
    if format not in ("image", "dot", "svg", "html"):
        raise ValueError(f"render: format must be 'image', 'dot', 'svg' or 'html', not {format!r}")
    graph = Graph(read(tensor), Shows(values=True, gradients=True))
    if format != "image":
        return getattr(graph, format)()
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"render() gives a picture of Pillow's, which is not installed: {install('viz')}; "
                          f"render(format='svg') needs no extra") from error
    return Image.open(BytesIO(graph.png()))
