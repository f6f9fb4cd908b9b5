"""Comparison of `tensorgrad.viz` with other tools that draw networks: sources and READMEs of November 2026."""
from __future__ import annotations

TOOLS = {
    "tensorgrad.viz": "",
    "torchviz": "https://github.com/szagoruyko/pytorchviz",
    "torchview": "https://github.com/mert-kurttutan/torchview",
    "torchvista": "https://github.com/sachinhosmani/torchvista",
    "micrograd's draw_dot": "https://github.com/karpathy/micrograd/blob/master/trace_graph.ipynb",
    "TensorFlow Playground": "https://github.com/tensorflow/playground",
    "Netron": "https://github.com/lutzroeder/netron",
}
NO = "no"
POINTS = [     # what each tool does, in the order of TOOLS
    ("is given", "the loss of a program under PyTorch's API", "a PyTorch tensor", "a PyTorch module, and an input or its size", "a PyTorch module and an input",
     "a `Value` of micrograd, which is one number", "a network made in its page: features of two inputs, up to 6 hidden layers of 8 units",
     "a file: ONNX, PyTorch, TensorFlow Lite, …"),
    ("draws", "forward; backward if asked to", "the functions of the backward, and what they save", "modules, functions and tensors of a forward",
     "modules, functions and tensors of a forward", "numbers and operators", "units, each with its output over the plane", "the layers of the file"),
    ("numbers", "values and gradients of all tensors", "shapes; attributes of functions", "shapes", "shapes; attributes of modules",
     "value and gradient of each number", "weights, biases, losses", "weights, attributes"),
    ("explains the backward", "each step: its rule, its numbers worked out, sums of gradients", NO, NO, NO, "gradients without their rules", NO, NO),
    ("lets numbers be changed", "leaves, in the page of `explain`", NO, NO, NO, NO, "weights and biases", NO),
    ("folds", "modules; repeated blocks are told once", NO, "modules below a depth; recursion", "modules; repeated blocks, if asked to", NO, "–", "–"),
    ("is", "a page, or a still picture", "a still picture", "a still picture", "a page in a notebook, or a still picture", "a still picture", "a page",
     "a page or an application"),
    ("of a program that fails", "how far it got, and where it broke", "nothing", "nothing", "how far it got", "nothing", "–", "–"),
    ("finds where a NaN came from", "yes", NO, NO, NO, NO, NO, NO),
    ("shows a training", "a page that follows it: loss, learning rate, gradients, weights, updates, dead units, boundary", NO, NO, NO, NO,
     "its own, live: losses, boundary", NO),
    ("sets exercises", "yes", NO, NO, NO, NO, NO, NO),
    ("needs", "NumPy; for .png and .pdf the `viz` extra", "PyTorch, graphviz, the program `dot`", "PyTorch, graphviz, the program `dot`", "PyTorch, IPython",
     "graphviz, the program `dot`", "a browser", "a browser, or its application"),
]
INTRO = """**Beside other tools.** Each has its place: torchviz, torchview and torchvista draw programs that run on PyTorch itself, Netron opens files
of many frameworks, TensorFlow Playground needs no code."""


def compared() -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the rows of the table, and its head."""
    return [*POINTS], ("", *(f"[{name}]({address})" if address else f"`{name}`" for name, address in TOOLS.items()))
