"""Single operations, forward and backward apart."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .timing import Case
from .workloads import Workload

LARGEST = 8         # of a size, in tests


class Input(NamedTuple):
    """An argument: normal numbers that gradients are taken for, unless `high` says integers from 0 on."""

    shape: tuple[int, ...]
    high: int = 0

    def draw(self, engine: Any, rng: np.random.Generator, tiny: bool) -> Any:
        shape, high = (tuple(min(n, LARGEST) for n in self.shape), min(self.high, LARGEST)) if tiny else self
        if self.high:
            return engine.tensor(rng.integers(0, high, shape))
        return engine.tensor(rng.standard_normal(shape, np.float32)).requires_grad_()


def N(*shape: int) -> Input:
    return Input(shape)


def below(high: int, *shape: int) -> Input:
    return Input(shape, high)


class Sparse(NamedTuple):
    """A square matrix in compressed rows: about `entries` places at random, with normal numbers."""

    size: int
    entries: int
    requires_grad: bool = False

    def draw(self, engine: Any, rng: np.random.Generator, tiny: bool) -> Any:
        size, entries = (LARGEST, 3 * LARGEST) if tiny else self[:2]
        places = np.unique(rng.integers(0, size * size, entries))
        starts = np.searchsorted(places // size, np.arange(size + 1))
        values = engine.tensor(rng.standard_normal(len(places), np.float32))
        with warnings.catch_warnings(action="ignore"):      # PyTorch's, of a state of its CSR tensors
            made = engine.sparse_csr_tensor(engine.tensor(starts), engine.tensor(places % size), values, (size, size))
        return made.requires_grad_(self.requires_grad)


def dense(gradient: Any) -> Any:
    """Return the numbers of a gradient."""
    return gradient if str(gradient.layout).endswith("strided") else gradient.values()


def case(bind: Callable[..., Any], inputs: tuple[Input | Sparse, ...], backward: bool, recorded: bool, engine: Any,
         tiny: bool) -> Case:
    """Time `bind(engine, F, *inputs)(*inputs)`, or the pull of a gradient through it."""
    rng = np.random.default_rng(0)
    engine.manual_seed(0)
    given = [x.draw(engine, rng, tiny) for x in inputs]
    function = bind(engine, engine.nn.functional, *given)
    leaves = [x for x in [*given, *(function.parameters() if hasattr(function, "parameters") else ())]
              if x.requires_grad]

    def forward() -> Any:
        out = function(*given)
        return out[0] if isinstance(out, tuple) else out

    def unrecorded() -> Any:
        with engine.no_grad():
            return forward()
    if not backward:
        run = forward if recorded else unrecorded
        return Case(run, lambda: [run()])
    upstream = engine.tensor(rng.standard_normal(tuple(forward().shape), np.float32))

    def fresh() -> Any:
        for x in leaves:
            x.grad = None
        return forward()

    def pull(out: Any) -> None:
        out.backward(upstream)

    def gradients() -> list[Any]:
        pull(fresh())
        return [dense(x.grad) for x in leaves]
    return Case(pull, gradients, fresh)


def attention_layer(heads: int) -> Callable[..., Any]:
    """nn.MultiheadAttention, with the same input for query, key and value."""
    def bind(t: Any, F: Any, x: Any) -> Any:
        class Itself(t.nn.MultiheadAttention):
            def forward(self, x: Any) -> Any:
                return super().forward(x, x, x)
        return Itself(x.shape[-1], heads, batch_first=True)
    return bind


def conv(stride: int = 1, padding: int = 0) -> Callable[..., Any]:
    return lambda t, F, x, w, *b: partial(F.conv2d, stride=stride, padding=padding, groups=x.shape[1] // w.shape[1])


def along(name: str, dim: int | None) -> Callable[..., Any]:
    return lambda t, F, x: getattr(t, name) if dim is None else partial(getattr(t, name), dim=dim)


LINEAR = lambda t, F, x, w, b: F.linear
MATMUL = lambda t, F, x, y: t.matmul

# section: {name: (bind, inputs…)}. The first is the list of the benchmark that this one continues; its forward passes
#     are not recorded.
ORIGINAL = "The twelve cases"
OPS: dict[str, dict[str, tuple[Any, ...]]] = {
    ORIGINAL: {
        "linear (32, 64) → 128": (LINEAR, N(32, 64), N(128, 64), N(128)),
        "linear (32, 1024) → 2048": (LINEAR, N(32, 1024), N(2048, 1024), N(2048)),
        "linear (128, 2048) → 4096": (LINEAR, N(128, 2048), N(4096, 2048), N(4096)),
        "conv2d 3×3 (4, 3, 32, 32) → 16": (conv(), N(4, 3, 32, 32), N(16, 3, 3, 3), N(16)),
        "conv2d 3×3 (8, 32, 64, 64) → 64": (conv(), N(8, 32, 64, 64), N(64, 32, 3, 3), N(64)),
        "conv2d 3×3 (8, 64, 128, 128) → 128": (conv(), N(8, 64, 128, 128), N(128, 64, 3, 3), N(128)),
        "MultiheadAttention (16, 32, 64), 4 heads": (attention_layer(4), N(16, 32, 64)),
        "MultiheadAttention (32, 64, 128), 8 heads": (attention_layer(8), N(32, 64, 128)),
        "MultiheadAttention (32, 128, 256), 8 heads": (attention_layer(8), N(32, 128, 256)),
        **{f"softmax {shape}": (along("softmax", -1), N(*shape)) for shape in ((128, 64), (512, 256), (1024, 512))},
    },
    "Convolution and pooling": {
        "conv2d 7×7, stride 2 (8, 3, 224, 224) → 64": (conv(2, 3), N(8, 3, 224, 224), N(64, 3, 7, 7)),
        **{f"conv2d 3×3 (8, {c}, {s}, {s}) → {c}": (conv(1, 1), N(8, c, s, s), N(c, c, 3, 3))
           for c, s in ((64, 56), (128, 28), (256, 14), (512, 7))},
        "conv2d 1×1 (8, 256, 56, 56) → 64": (conv(), N(8, 256, 56, 56), N(64, 256, 1, 1)),
        "depthwise conv2d 3×3 (8, 192, 28, 28)": (conv(1, 1), N(8, 192, 28, 28), N(192, 1, 3, 3)),
        "conv_transpose2d 4×4, stride 2 (8, 64, 16, 16) → 32": (
            lambda t, F, x, w: partial(F.conv_transpose2d, stride=2, padding=1), N(8, 64, 16, 16), N(64, 32, 4, 4)),
        "max_pool2d 2×2 (32, 64, 28, 28)": (lambda t, F, x: partial(F.max_pool2d, kernel_size=2), N(32, 64, 28, 28)),
        "max_pool2d 3×3, stride 2 (8, 64, 112, 112)": (lambda t, F, x: partial(F.max_pool2d, kernel_size=3, stride=2,
                                                                               padding=1), N(8, 64, 112, 112)),
        "avg_pool2d 2×2 (32, 64, 28, 28)": (lambda t, F, x: partial(F.avg_pool2d, kernel_size=2), N(32, 64, 28, 28)),
    },
    "Matrix products and attention": {
        "matmul (512, 512) @ (512, 512)": (MATMUL, N(512, 512), N(512, 512)),
        "matmul (768, 128) @ (128, 384)": (MATMUL, N(768, 128), N(128, 384)),
        "matmul (48, 64, 32) @ (48, 32, 64)": (MATMUL, N(48, 64, 32), N(48, 32, 64)),
        "matmul (8, 12, 128, 64) @ (8, 12, 64, 128)": (MATMUL, N(8, 12, 128, 64), N(8, 12, 64, 128)),
        "scaled_dot_product_attention (8, 12, 128, 64)": (lambda t, F, q, k, v: F.scaled_dot_product_attention,
                                                          *3 * [N(8, 12, 128, 64)]),
        "the same, causal": (lambda t, F, q, k, v: partial(F.scaled_dot_product_attention, is_causal=True),
                             *3 * [N(8, 12, 128, 64)]),
    },
    "Activation, normalization, loss": {
        "softmax (8, 12, 128, 128)": (along("softmax", -1), N(8, 12, 128, 128)),
        "relu, 1M": (lambda t, F, x: F.relu, N(1 << 20)),
        "gelu, 1M": (lambda t, F, x: F.gelu, N(1 << 20)),
        "gelu by tanh, 1M": (lambda t, F, x: partial(F.gelu, approximate="tanh"), N(1 << 20)),
        "sigmoid, 1M": (lambda t, F, x: F.sigmoid, N(1 << 20)),
        "layer_norm (2048, 256)": (lambda t, F, x, w, b: lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
                                   N(2048, 256), N(256), N(256)),
        "batch_norm (32, 64, 28, 28)": (lambda t, F, x, w, b: lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
                                        N(32, 64, 28, 28), N(64), N(64)),
        "cross_entropy (64, 10)": (lambda t, F, x, y: F.cross_entropy, N(64, 10), below(10, 64)),
        "cross_entropy (2048, 1000)": (lambda t, F, x, y: F.cross_entropy, N(2048, 1000), below(1000, 2048)),
        "dropout, 1M": (lambda t, F, x: F.dropout, N(1 << 20)),
    },
    "Indexing": {
        "embedding (10000, 128)[32, 64]": (lambda t, F, i, w: F.embedding, below(10000, 32, 64), N(10000, 128)),
        "x[i] (4096, 256)[2048]": (lambda t, F, x, i: lambda x, i: x[i], N(4096, 256), below(4096, 2048)),
        "x[x > 0], 1M": (lambda t, F, x: lambda x: x[x > 0], N(1 << 20)),
        "gather (4096, 256)": (lambda t, F, x, i: lambda x, i: t.gather(x, 0, i), N(4096, 256), below(4096, 4096, 256)),
        "scatter_add (4096, 256)": (lambda t, F, x, i, y: lambda x, i, y: x.scatter_add(0, i, y), N(4096, 256),
                                    below(4096, 4096, 256), N(4096, 256)),
        "index_add (4096, 256)": (lambda t, F, x, i, y: lambda x, i, y: x.index_add(0, i, y), N(4096, 256),
                                  below(4096, 2048), N(2048, 256)),
        "cat of 4 × (256, 1024)": (lambda t, F, *x: lambda *x: t.cat(x), *4 * [N(256, 1024)]),
        "permute and copy (32, 64, 28, 28)": (lambda t, F, x: lambda x: x.permute(0, 2, 3, 1).contiguous(),
                                              N(32, 64, 28, 28)),
    },
    "Sparse matrices": {
        f"sparse.mm ({n}, {n}), {entries} entries, by ({n}, {width}){', gradients of both' * both}": (
            lambda t, F, a, b: t.sparse.mm, Sparse(n, entries, both), N(n, width))
        for n, entries, width in ((100_000, 1_000_000, 64), (3_000, 15_000, 16)) for both in (False, True)},
    "Reductions": {
        f"{name} (64, 128, 256)" + ("" if dim is None else f" along {dim}"): (along(name, dim), N(64, 128, 256))
        for name in ("sum", "max", "var") for dim in (0, 1, 2, None)},
    "Elementwise": {
        f"{name}, {size}": (function, *count * [N(n)])
        for name, function, count in (("x * y", lambda t, F, x, y: t.mul, 2), ("exp", lambda t, F, x: t.exp, 1))
        for size, n in (("1 element", 1), ("1K", 1 << 10), ("64K", 1 << 16), ("1M", 1 << 20), ("16M", 1 << 24))},
}


def update(optimizer: Callable[..., Any], shapes: list[tuple[int, ...]], engine: Any, tiny: bool) -> Case:
    """A step of an optimizer whose parameters have gradients."""
    rng = np.random.default_rng(0)
    parameters = [N(*shape).draw(engine, rng, tiny) for shape in shapes]
    for p in parameters:
        p.grad = engine.tensor(rng.standard_normal(tuple(p.shape), np.float32))
    step = optimizer(engine.optim, parameters).step

    def results() -> list[Any]:
        step()
        step()
        return [p.detach().clone() for p in parameters]
    return Case(step, results)


def rows() -> Iterator[Workload]:
    for section, ops in OPS.items():
        for direction in ("forward", "backward"):
            for name, (bind, *inputs) in ops.items():
                yield Workload(f"{name}, {direction}",
                               partial(case, bind, tuple(inputs), direction == "backward", section != ORIGINAL),
                               f"{section}, {direction}")
    for name, optimizer in {"SGD with momentum": lambda optim, p: optim.SGD(p, 0.01, momentum=0.9),
                            "Adam": lambda optim, p: optim.Adam(p),
                            "AdamW": lambda optim, p: optim.AdamW(p)}.items():
        for sizes, shapes in {"4 × (512, 512)": [(512, 512)] * 4, "100 × (64)": [(64,)] * 100}.items():
            yield Workload(f"{name}, {sizes}", partial(update, optimizer, shapes), "Optimizers")


ROWS = list(rows())
