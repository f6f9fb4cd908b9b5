"""The layers of `legacy.nn` without weights, a row each."""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ... import nn
from ...nn import functional as F
from .rows import Row, RowModule, classes


def channels(x: Any) -> int:
    """Return the axis of features: the first of a vector or an image, the second of their batches."""
    return 0 if x.dim() in (1, 3) else 1


def in_place(function: Any) -> Any:
    """Wrap a function to write its result to its input if the module has `inplace`."""
    def run(m: Any, x: Any) -> Any:
        if not m.inplace:
            return function(m, x)
        out = function(m, x.clone())            # the tape saves the values before the write
        x.detach().copy_(out.detach())
        return out
    return run


def power_norm(m: Any, x: Any) -> Any:
    rows = x.reshape(-1, x.shape[-1])
    if m.p == float("inf"):
        norm = rows.abs().amax(1, keepdim=True) + m.eps
    else:
        norm = (rows.abs().pow(m.p).sum(1, keepdim=True) + m.eps).pow(1 / m.p)
    return (rows / norm).view(x.shape)


def padded(m: Any, x: Any) -> Any:
    dim = m.dim + (m.nInputDim > 0 and x.dim() != m.nInputDim)
    side, shape = abs(m.pad), list(x.shape)
    shape[dim] = side
    filled = x.new_full(shape, m.value)
    index = m.index if m.pad < 0 else x.shape[dim] - m.index
    before, after = x.narrow(dim, 0, index), x.narrow(dim, index, x.shape[dim] - index)
    return tg.cat([before, filled, after], dim)


def transposed(m: Any, x: Any) -> Any:
    for a, b in m.permutations:
        x = x.transpose(a, b)
    return x.contiguous()


def reshaped(m: Any, x: Any) -> Any:
    sizes = list(m.size[0]) if m.size and isinstance(m.size[0], (list, tuple)) else list(m.size)
    one = x.numel() == tg.Size(sizes).numel()
    batched = m.batchMode if isinstance(m.batchMode, bool) else not (one and x.shape[0] != 1)
    return x.reshape([x.shape[0], *sizes] if batched else sizes)


def viewed(m: Any, x: Any) -> Any:
    sizes = list(m.sizes[0]) if m.sizes and isinstance(m.sizes[0], (list, tuple)) else list(m.sizes)
    return x.reshape(sizes)


def reset_size(m: Any, *sizes: Any) -> Any:
    """Set other sizes."""
    m.sizes = sizes
    return m


def cosine(m: Any, x: Any) -> Any:
    a, b = (t[None] if t.dim() == 1 else t for t in x)
    return F.cosine_similarity(a, b, 1, 1e-12)


def distance(m: Any, x: Any) -> Any:
    a, b = (t[None] if t.dim() == 1 else t for t in x)
    return (a - b).abs().pow(m.norm).sum(1, keepdim=True).pow(1 / m.norm)


def products(m: Any, x: Any) -> Any:
    a, b = x
    return (a.transpose(-1, -2) if m.transA else a) @ (b.transpose(-1, -2) if m.transB else b)


def product_with_vector(m: Any, x: Any) -> Any:
    matrix, vector = x
    matrix = matrix.transpose(-1, -2) if m.trans else matrix
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def mixture(m: Any, x: Any) -> Any:
    """Σ over experts of the gate times the expert's output; experts are a table, or an axis of a tensor."""
    gate, experts = x
    stacked = tg.stack(list(experts), 1 if gate.dim() == 2 else 0) if isinstance(experts, (list, tuple)) else experts
    axis = gate.dim() - 1
    return (gate.view(*gate.shape, *[1] * (stacked.dim() - gate.dim())) * stacked).sum(axis)


def flattened(x: Any) -> list[Any]:
    return [t for v in x for t in flattened(v)] if isinstance(x, (list, tuple)) else [x]


def fold(function: Any) -> Any:
    def run(m: Any, x: Any) -> Any:
        total = x[0]
        for t in x[1:]:
            total = function(total, t)
        return total
    return run


def negative(m: Any, dim: int, x: Any) -> int:
    return dim if dim >= 0 else dim + x.dim()


def penalty(m: Any, x: Any) -> Any:
    """Return the input; backward adds the gradient of l1weight · Σ |x|."""
    weight = m.l1weight / x.numel() if m.sizeAverage else m.l1weight
    m.loss = float(weight * x.detach().abs().sum())
    if x.requires_grad:
        out = x.clone()
        out.register_hook(lambda g: (g if m.provideOutput else 0) + weight * x.detach().sign())
        return out
    return x


def reversed_gradient(m: Any, x: Any) -> Any:
    out = x.view_as(x)
    if out.requires_grad:
        out.register_hook(lambda g: -m.lambd * g)
    return out


LAYERS: dict[str, Row] = {
    # element by element
    "Abs": Row("", "|x|", lambda m, x: x.abs()),
    "AddConstant": Row("constant_scalar inplace=False", "x + c", in_place(lambda m, x: x + m.constant_scalar)),
    "Clamp": Row("min_value max_value inplace=False", "x between min_value and max_value",
                 in_place(lambda m, x: x.clamp(m.min_value, m.max_value)),
                 lambda m: nn.Hardtanh(m.min_value, m.max_value)),
    "Contiguous": Row("", "x in C order", lambda m, x: x.contiguous(), lambda m: nn.Identity()),
    "Copy": Row("intype='torch.FloatTensor' outtype='torch.FloatTensor' forceCopy=False dontCast=False",
                "x as another type",
                lambda m, x: x.type(m.outtype)),
    "ELU": Row("alpha=1.0 inplace=False", "x, or α(eˣ − 1) below 0", in_place(lambda m, x: F.elu(x, m.alpha)),
               lambda m: nn.ELU(m.alpha)),
    "Exp": Row("", "eˣ", lambda m, x: x.exp()),
    "GradientReversal": Row("lambd=1", "x; backward gives −λg", reversed_gradient),
    "HardShrink": Row("lambd=0.5", "x, or 0 between −λ and λ", lambda m, x: F.hardshrink(x, m.lambd),
                      lambda m: nn.Hardshrink(m.lambd)),
    "HardTanh": Row("min_value=-1 max_value=1 inplace=False", "x between min_value and max_value",
                    in_place(lambda m, x: F.hardtanh(x, m.min_value, m.max_value)),
                    lambda m: nn.Hardtanh(m.min_value, m.max_value)),
    "Identity": Row("", "x", lambda m, x: x, lambda m: nn.Identity()),
    "L1Penalty": Row("l1weight sizeAverage=False provideOutput=True",
                     "x; backward adds the gradient of l1weight · Σ |x|", penalty, state={"loss": 0.0}),
    "LeakyReLU": Row("negval=0.01 inplace=False", "x, or negval · x below 0",
                     in_place(lambda m, x: F.leaky_relu(x, m.negval)),
                     lambda m: nn.LeakyReLU(m.negval)),
    "Log": Row("", "log x", lambda m, x: x.log()),
    "LogSigmoid": Row("", "log 1/(1 + e⁻ˣ)", lambda m, x: F.logsigmoid(x), lambda m: nn.LogSigmoid()),
    "LogSoftMax": Row("", "log softmax over the features", lambda m, x: F.log_softmax(x, channels(x)),
                      lambda m: nn.LogSoftmax(1)),
    "MulConstant": Row("constant_scalar inplace=False", "c · x", in_place(lambda m, x: x * m.constant_scalar)),
    "Normalize": Row("p eps=1e-10", "x / ‖x‖ₚ, row by row", power_norm),
    "Power": Row("p", "xᵖ", lambda m, x: x.pow(m.p), state={"pow": lambda m: m.p}),
    "RReLU": Row("lower=0.125 upper=0.3333333333333333 inplace=False",
                 "x, or a slope drawn between lower and upper times x below 0",
                 in_place(lambda m, x: F.rrelu(x, m.lower, m.upper, m.train)), lambda m: nn.RReLU(m.lower, m.upper)),
    "ReLU": Row("inplace=False", "max(0, x)", in_place(lambda m, x: F.relu(x)), lambda m: nn.ReLU()),
    "ReLU6": Row("inplace=False", "x between 0 and 6", in_place(lambda m, x: F.relu6(x)), lambda m: nn.ReLU6()),
    "Sigmoid": Row("", "1/(1 + e⁻ˣ)", lambda m, x: x.sigmoid(), lambda m: nn.Sigmoid()),
    "SoftMax": Row("", "softmax over the features", lambda m, x: F.softmax(x, channels(x)), lambda m: nn.Softmax(1)),
    "SoftMin": Row("", "softmax of −x over the features", lambda m, x: F.softmax(-x, channels(x)),
                   lambda m: nn.Softmin(1)),
    "SoftPlus": Row("beta=1 threshold=20", "log(1 + e^(βx))/β", lambda m, x: F.softplus(x, m.beta, m.threshold),
                    lambda m: nn.Softplus(m.beta, m.threshold)),
    "SoftShrink": Row("lambd=0.5", "x moved λ nearer to 0", lambda m, x: F.softshrink(x, m.lambd),
                      lambda m: nn.Softshrink(m.lambd)),
    "SoftSign": Row("", "x/(1 + |x|)", lambda m, x: F.softsign(x), lambda m: nn.Softsign()),
    "SpatialSoftMax": Row("", "softmax over the channels of each pixel", lambda m, x: F.softmax(x, channels(x)),
                          lambda m: nn.Softmax2d()),
    "Sqrt": Row("", "√x", lambda m, x: x.sqrt()),
    "Square": Row("", "x²", lambda m, x: x * x),
    "Tanh": Row("", "tanh x", lambda m, x: x.tanh(), lambda m: nn.Tanh()),
    "TanhShrink": Row("", "x − tanh x", lambda m, x: x - x.tanh(), lambda m: nn.Tanhshrink()),
    "Threshold": Row("threshold=0 value=0 inplace=False", "x, or value where x ≤ threshold",
                     in_place(lambda m, x: F.threshold(x, m.threshold, m.value)),
                     lambda m: nn.Threshold(m.threshold, m.value)),
    "Dropout": Row("p=0.5 inplace=False", "x with each number 0 with probability p",
                   in_place(lambda m, x: F.dropout(x, m.p, m.train)),
                   lambda m: nn.Dropout(m.p)),
    "SpatialDropout": Row("p=0.5 inplace=False", "x with each channel 0 with probability p",
                          in_place(lambda m, x: F.dropout2d(x, m.p, m.train)),
                          lambda m: nn.Dropout2d(m.p)),
    "VolumetricDropout": Row("p=0.5 inplace=False", "x with each channel 0 with probability p",
                             in_place(lambda m, x: F.dropout3d(x, m.p, m.train)),
                             lambda m: nn.Dropout3d(m.p)),
    # tables
    "CAddTable": Row("inplace=False", "x₀ + x₁ + …", fold(lambda a, b: a + b)),
    "CDivTable": Row("", "x₀ / x₁", lambda m, x: x[0] / x[1]),
    "CMulTable": Row("", "x₀ · x₁ · …", fold(lambda a, b: a * b)),
    "CSubTable": Row("", "x₀ − x₁", lambda m, x: x[0] - x[1]),
    "CosineDistance": Row("", "cosine of the angle between x₀ and x₁", cosine),
    "DotProduct": Row("", "Σ x₀ x₁, row by row", lambda m, x: (x[0] * x[1]).sum(-1)),
    "FlattenTable": Row("", "the tensors of nested tables in one", lambda m, x: flattened(x)),
    "Index": Row("dimension", "x₀ at the indices x₁ along an axis", lambda m, x: x[0].index_select(m.dimension, x[1])),
    "JoinTable": Row("dimension nInputDims=None", "the tensors of a table side by side",
                     lambda m, x: tg.cat(list(x), negative(m, m.dimension, x[0])
                                         + (m.nInputDims is not None and x[0].dim() == m.nInputDims + 1))),
    "MM": Row("transA=False transB=False", "the matrix product x₀ x₁", products),
    "MV": Row("trans=False", "the product of the matrix x₀ and the vector x₁", product_with_vector),
    "MaskedSelect": Row("", "the numbers of x₀ where x₁ is not 0", lambda m, x: x[0].masked_select(x[1].bool())),
    "MixtureTable": Row("dim=1", "Σ gateᵢ · expertᵢ of a table of a gate and experts", mixture),
    "NarrowTable": Row("offset length=1", "`length` entries of a table",
                       lambda m, x: list(x[m.offset:m.offset + m.length])),
    "PairwiseDistance": Row("p", "‖x₀ − x₁‖ₚ, row by row", distance, state={"norm": lambda m: m.p}),
    "SelectTable": Row("index", "one entry of a table", lambda m, x: x[m.index]),
    "SplitTable": Row("dimension nInputDims=None", "a table of the slices of x along an axis",
                      lambda m, x: list(x.unbind(negative(m, m.dimension, x)
                                                 + (m.nInputDims is not None and x.dim() == m.nInputDims + 1)))),
    # shapes and reductions
    "Max": Row("dimension=0", "the greatest numbers along an axis", lambda m, x: x.max(negative(m, m.dimension, x))[0]),
    "Mean": Row("dimension=0", "the mean along an axis", lambda m, x: x.mean(negative(m, m.dimension, x))),
    "Min": Row("dimension=0", "the least numbers along an axis", lambda m, x: x.min(negative(m, m.dimension, x))[0]),
    "Narrow": Row("dimension offset length=1", "`length` slices of x",
                  lambda m, x: x.narrow(m.dimension, m.offset, m.length)),
    "Padding": Row("dim pad value=0 index=0 nInputDim=0", "x with |pad| slices of `value` before (pad < 0) or behind",
                   padded),
    "Replicate": Row("nfeatures dim=0", "x repeated along a new axis",
                     lambda m, x: x.unsqueeze(m.dim).expand(*x.shape[:m.dim], m.nfeatures, *x.shape[m.dim:])),
    "Reshape": Row("*size", "x with other sizes; a batch keeps its first axis", reshaped, state={"batchMode": None}),
    "Select": Row("dimension index", "one slice of x", lambda m, x: x.select(m.dimension, m.index)),
    "Squeeze": Row("dim=None", "x without axes of length 1", lambda m, x: x.squeeze() if m.dim is None
                   else x.squeeze(m.dim)),
    "Sum": Row("dimension=0 sizeAverage=False", "the sum along an axis",
               lambda m, x: (x.mean if m.sizeAverage else x.sum)(negative(m, m.dimension, x))),
    "Transpose": Row("*permutations", "x with pairs of axes exchanged", transposed),
    "Unsqueeze": Row("dim", "x with one more axis, of length 1", lambda m, x: x.unsqueeze(m.dim)),
    "View": Row("*sizes", "x with other sizes", viewed, methods={"resetSize": reset_size}),
}

__all__ = classes(LAYERS, RowModule, globals())
