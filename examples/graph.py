"""Show the tape of output = x wᵀ + b and the gradients that backward computes: `python -m examples.graph`."""

from pathlib import Path

import tensorgrad as torch
from examples.toolkit.options import basic_options


def main(argv=None):
    parser = basic_options("Draw the recorded graph of a linear layer, with values and gradients.")
    parser.add_argument("--out", default="out/graph.png", metavar="PNG", help="where the drawing goes")
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)

    x = torch.rand(4, 3, requires_grad=True)
    w = torch.rand(2, 3, requires_grad=True)
    b = torch.rand(2, requires_grad=True)

    turned = w.transpose(1, 0)
    product = x.matmul(turned)
    output = product + b

    for between in (turned, product, output):
        between.retain_grad()
    output.backward(torch.ones_like(output), retain_graph=True)

    named = {"x": x, "w": w, "b": b, "output": output}
    if hasattr(output, "render"):
        print(f"drawing: {draw(output, named, Path(args.out))}")
    else:
        print("no drawing, the tape instead: tensors have no render() here")
        print_tape(output.grad_fn, named)


def draw(output, named, path):
    """Save a picture of the graph of `output`, as a PNG if possible, else as SVG; return its path."""
    for name, tensor in named.items():
        tensor.name = name
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        output.render().save(path)
    except ImportError as obstacle:
        print(f"no PNG: {obstacle}")
        path = path.with_suffix(".svg")
        path.write_text(output.render(format="svg"), encoding="utf-8")
    return path


def print_tape(node, named, depth=0):
    """Print a node and, below it, the nodes of its inputs; a leaf with its gradient."""
    line = "  " * depth + node.name()
    if (leaf := getattr(node, "variable", None)) is not None:
        name = next(name for name, tensor in named.items() if tensor is leaf)
        line += f" of {name}, gradient {[round(value, 4) for value in leaf.grad.flatten().tolist()]}"
    print(line)
    for parent, _ in node.next_functions:
        print_tape(parent, named, depth + 1)


if __name__ == "__main__":
    main()
