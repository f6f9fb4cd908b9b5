"""The layers of `legacy.nn` with weights, or over windows in space and time, a row each. Widths come before heights."""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ... import nn
from ...nn import functional as F
from .rows import Row, RowModule, classes


def of(m: Any, letter: str, axes: str) -> tuple[int, ...]:
    """Return a number for each axis, in today's order: `of(m, "k", "HW")` is (m.kH, m.kW).

    A missing one equals the width's.
    """
    return tuple(int(getattr(m, f"{letter}W") if getattr(m, letter + a) is None else getattr(m, letter + a))
                 for a in axes)


def images(function: Any, dims: int) -> Any:
    """Extend a function of batches to single images."""
    def run(m: Any, x: Any, *weights: Any) -> Any:
        return function(m, x, *weights) if x.dim() == dims + 2 else function(m, x[None], *weights)[0]
    return run


def convolution(arguments: str, says: str, axes: str, full: bool = False) -> Row:
    """Return the row of a convolution, or with `full` of its transpose, over images or volumes."""
    name = f"{'ConvTranspose' if full else 'Conv'}{len(axes)}d"
    function, module = getattr(F, f"conv{'_transpose' if full else ''}{len(axes)}d"), getattr(nn, name)

    def options(m: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"stride": of(m, "d", axes), "padding": of(m, "pad", axes)}
        if hasattr(m, "dilationW"):
            found["dilation"] = of(m, "dilation", axes)
        return {**found, "output_padding": of(m, "adj", axes)} if full else found

    def shapes(m: Any) -> dict[str, Any]:
        planes = (m.nInputPlane, m.nOutputPlane) if full else (m.nOutputPlane, m.nInputPlane)
        return {"weight": (*planes, *of(m, "k", axes)), "bias": (m.nOutputPlane,)}

    def without_bias(m: Any) -> Any:
        m.bias = m.gradBias = None
        return m
    return Row(arguments, says, lambda m, x, w, b: function(x, w, b, **options(m)),
               lambda m: module(m.nInputPlane, m.nOutputPlane, of(m, "k", axes), bias=m.bias is not None, **options(m)),
               shapes,
               lambda m: m.nInputPlane * tg.Size(of(m, "k", axes)).numel(), methods={"noBias": without_bias})


def extent(m: Any, letter: str, axes: str) -> tuple[int, ...]:
    """Return the strides of pooling, by default the window's sizes."""
    return tuple(int(getattr(m, f"k{a}") if getattr(m, letter + a) is None else getattr(m, letter + a)) for a in axes)


def pooling(arguments: str, says: str, axes: str, mean: bool = False) -> Row:
    """Return the row of a max or mean pooling. `ceil()` and `floor()` choose how windows at the edge count."""
    name = f"{'avg' if mean else 'max'}_pool{len(axes)}d"
    function, module = getattr(F, name), getattr(nn, f"{'Avg' if mean else 'Max'}Pool{len(axes)}d")

    def options(m: Any) -> dict[str, Any]:
        found = {"kernel_size": of(m, "k", axes), "stride": extent(m, "d", axes), "padding": of(m, "pad", axes),
                 "ceil_mode": m.ceil_mode}
        return {**found, "count_include_pad": m.count_include_pad} if mean else found

    def run(m: Any, x: Any) -> Any:
        if mean:
            return function(x, **options(m))
        out, m.indices = function(x, **options(m), return_indices=True)
        m.input_size = x.shape
        return out

    def mode(name: str, value: bool) -> Any:
        def choose(m: Any) -> Any:
            setattr(m, name, value)
            return m
        return choose
    methods = {"ceil": mode("ceil_mode", True), "floor": mode("ceil_mode", False)}
    if mean:
        methods |= {"setCountIncludePad": mode("count_include_pad", True),
                    "setCountExcludePad": mode("count_include_pad", False)}
    return Row(arguments, says, run, lambda m: module(**options(m)),
               state={"ceil_mode": False, **({"count_include_pad": True} if mean else {"indices": None})},
               methods={**methods, "held": () if mean else ("indices",)})


def unpooling(dims: int) -> Row:
    function = getattr(F, f"max_unpool{dims}d")

    def run(m: Any, x: Any) -> Any:
        p = m.pooling
        axes = "HW" if dims == 2 else "THW"
        return function(x, p.indices, of(p, "k", axes), extent(p, "d", axes), of(p, "pad", axes),
                        list(p.input_size[-dims:]))
    return Row("poolingModule", "x at the places where a max pooling found its numbers, 0 elsewhere", run,
               state={"pooling": lambda m: m.poolingModule})


def batch_norm(name: str) -> Row:
    def run(m: Any, x: Any, w: Any, b: Any) -> Any:
        return F.batch_norm(x, m.running_mean, m.running_var, w, b, m.train, m.momentum, m.eps)

    def shapes(m: Any) -> dict[str, Any]:
        size = (m.nOutput,) if m.affine else None
        return {"weight": size, "bias": size}

    def reset(m: Any, stdv: float | None = None) -> None:
        m.running_mean.zero_()
        m.running_var.fill_(1)
        if m.affine:
            m.weight.uniform_()
            m.bias.zero_()
    return Row("nOutput eps=1e-5 momentum=0.1 affine=True", "(x − mean)/√(var + eps) · weight + bias, over the batch",
               run,
               lambda m: getattr(nn, name)(m.nOutput, m.eps, m.momentum, m.affine), shapes,
               state={"running_mean": lambda m: tg.zeros(m.nOutput), "running_var": lambda m: tg.ones(m.nOutput)},
               methods={"reset": reset, "buffers": ("running_mean", "running_var")})


def padding(arguments: str, mode: str, order: str) -> Row:
    """Return the row of a padding; `order` names the arguments in today's order. A missing one equals the first."""
    first = order.split()[0]

    def run(m: Any, x: Any) -> Any:
        sizes = [getattr(m, name) if getattr(m, name) is not None else getattr(m, first) for name in order.split()]
        return F.pad(x, sizes) if mode == "constant" else F.pad(x, sizes, mode)
    return Row(arguments, {"constant": "x with zeros around", "reflect": "x mirrored at its edges",
                           "replicate": "x with its edges repeated"}[mode], run)


# ── layers whose formula takes some lines ─────────────────────────────────────────────────────────────────────────────


def lookup(m: Any, x: Any, w: Any, b: Any = None) -> Any:
    norm = 2 if m.normType is None else m.normType
    if m.maxNorm is not None:
        with tg.no_grad():
            rows = x.long().unique()
            m.weight[rows] = m.weight[rows].renorm(norm, 0, m.maxNorm)
    return F.embedding(x.long(), w, None if m.paddingValue < 0 else int(m.paddingValue))


def euclidean(m: Any, x: Any, w: Any) -> Any:
    """‖x − wⱼ‖ for each column j."""
    one = x.dim() == 1
    found = ((x[None] if one else x).unsqueeze(2) - w).pow(2).sum(1).add(1e-12).sqrt()
    return found[0] if one else found


def weighted_euclidean(m: Any, x: Any, w: Any, c: Any) -> Any:
    one = x.dim() == 1
    found = (((x[None] if one else x).unsqueeze(2) - w) * c).pow(2).sum(1).add(1e-12).sqrt()
    return found[0] if one else found


def cosines(m: Any, x: Any, w: Any) -> Any:
    return F.linear(x, w) / (x.norm(dim=-1, keepdim=True) * w.norm(dim=1) + 1e-12)


def partial_linear(m: Any, x: Any, w: Any, b: Any) -> Any:
    if m.partition is None:
        return F.linear(x, w, b)
    rows = tg.as_tensor(m.partition).long()
    return F.linear(x, w[rows], None if b is None else b[rows])


def set_partition(m: Any, indices: Any) -> None:
    m.partition = indices


def connected(m: Any, x: Any, w: Any, b: Any, transpose: bool) -> Any:
    """Convolve pairs of planes: row i of `conMatrix` is (input plane, output plane) of kernel i."""
    sources, targets = (m.conMatrix[:, i].long() for i in (0, 1))
    shape = (m.nInputPlane, m.nOutputPlane) if transpose else (m.nOutputPlane, m.nInputPlane)
    places = (sources, targets) if transpose else (targets, sources)
    dense = w.new_zeros(*shape, *w.shape[1:]).index_put(places, w, accumulate=True)
    return (F.conv_transpose2d if transpose else F.conv2d)(x, dense, b, (m.dH, m.dW))


def connected_shapes(m: Any) -> dict[str, Any]:
    return {"weight": (len(m.conMatrix), m.kH, m.kW), "bias": (m.nOutputPlane,)}


PLANES = {"nInputPlane": lambda m: int(m.conMatrix[:, 0].max()) + 1,
          "nOutputPlane": lambda m: int(m.conMatrix[:, 1].max()) + 1}


def local(m: Any, x: Any, w: Any, b: Any) -> Any:
    """Convolve with a separate kernel at each position."""
    columns = F.unfold(x, (m.kH, m.kW), padding=of(m, "pad", "HW"), stride=(m.dH, m.dW))
    out = tg.einsum("nkl,lok->nol", columns, w.flatten(3).flatten(0, 1).flatten(2) if w.dim() > 3 else w)
    return out.view(x.shape[0], m.nOutputPlane, m.oH, m.oW) + b


def local_shapes(m: Any) -> dict[str, Any]:
    padW, padH = of(m, "pad", "WH")
    m.oW, m.oH = (m.iW + 2 * padW - m.kW) // m.dW + 1, (m.iH + 2 * padH - m.kH) // m.dH + 1
    return {"weight": (m.oH, m.oW, m.nOutputPlane, m.nInputPlane, m.kH, m.kW), "bias": (m.nOutputPlane, m.oH, m.oW)}


def subsampled(m: Any, x: Any, w: Any, b: Any) -> Any:
    """The sum of each window, times a weight and plus a bias for each plane."""
    sums = F.avg_pool2d(x, (m.kH, m.kW), (m.dH, m.dW)) * (m.kW * m.kH)
    return sums * w.view(-1, 1, 1) + b.view(-1, 1, 1)


def in_time(function: Any) -> Any:
    """Extend a function of (batch, features, time) to (time, features) and (batch, time, features)."""
    def run(m: Any, x: Any, *weights: Any) -> Any:
        one = x.dim() == 2
        out = function(m, (x[None] if one else x).transpose(1, 2), *weights).transpose(1, 2)
        return out[0] if one else out
    return run


def temporal_convolution(m: Any, x: Any, w: Any, b: Any) -> Any:
    return F.conv1d(x, w.view(m.outputFrameSize, m.kW, m.inputFrameSize).transpose(1, 2), b, m.dW)


def subsampled_in_time(m: Any, x: Any, w: Any, b: Any) -> Any:
    return F.avg_pool1d(x, m.kW, m.dW) * m.kW * w.view(-1, 1) + b.view(-1, 1)


def kernel_of(m: Any) -> Any:
    """Return a window whose weights add up to 1: 9 by 9 by default."""
    kernel = tg.ones(9, 9) if m.kernel is None else m.kernel
    kernel = kernel[:, None] * kernel[None] if kernel.dim() == 1 else kernel
    return kernel / kernel.sum()


def averaged(m: Any, x: Any) -> Any:
    """Return the weighted mean around each pixel over all planes; windows at the edges average their pixels inside
    of the image."""
    kernel = kernel_of(m).to(x.dtype).expand(1, m.nInputPlane, -1, -1) / m.nInputPlane
    pad = [kernel.shape[3] // 2, (kernel.shape[3] - 1) // 2, kernel.shape[2] // 2, (kernel.shape[2] - 1) // 2]
    return F.conv2d(F.pad(x, pad), kernel) / F.conv2d(F.pad(tg.ones_like(x), pad), kernel)


def subtracted(m: Any, x: Any) -> Any:
    return x - averaged(m, x)


def divided(m: Any, x: Any) -> Any:
    deviation = averaged(m, x * x).add(1e-30).sqrt()
    means = deviation.mean((1, 2, 3), keepdim=True)
    floor = tg.maximum(deviation, means)
    value = m.threshold if m.thresval is None else m.thresval
    return x / tg.where(floor > m.threshold, floor, tg.full_like(floor, value))


def fractional(m: Any, x: Any) -> Any:
    sizes = {"output_size": (m.arg2, m.arg1)} if m.arg1 >= 1 else {"output_ratio": (m.arg2, m.arg1)}
    return F.fractional_max_pool2d(x, (m.kH, m.kW), **sizes)


LAYERS: dict[str, Row] = {
    "Linear": Row("inputSize outputSize bias=True", "Wx + b", lambda m, x, w, b: F.linear(x, w, b),
                  lambda m: nn.Linear(m.inputSize, m.outputSize, m.bias is not None),
                  lambda m: {"weight": (m.outputSize, m.inputSize), "bias": (m.outputSize,) if m.bias else None},
                  lambda m: m.inputSize),
    "Add": Row("inputSize scalar=False", "x + b", lambda m, x, b: x + b, None,
               lambda m: {"bias": (1,) if m.scalar else (m.inputSize,)},
               lambda m: m.inputSize, methods={"learned": ("bias",)}),
    "Bilinear": Row("inputSize1 inputSize2 outputSize bias=True", "x₀ᵀ W x₁ + b",
                    lambda m, x, w, b: F.bilinear(x[0], x[1], w, b),
                    lambda m: nn.Bilinear(m.inputSize1, m.inputSize2, m.outputSize, m.bias is not None),
                    lambda m: {"weight": (m.outputSize, m.inputSize1, m.inputSize2),
                               "bias": (m.outputSize,) if m.bias else None},
                    lambda m: m.inputSize1),
    "CMul": Row("*size", "w · x, number by number", lambda m, x, w: x * w, None,
                lambda m: {"weight": tuple(m.size[0]) if isinstance(m.size[0], (list, tuple)) else m.size},
                lambda m: m.weight.numel(),
                methods={"learned": ("weight",)}),
    "Cosine": Row("inputSize outputSize", "cosines of the angles between x and the rows of W", cosines, None,
                  lambda m: {"weight": (m.outputSize, m.inputSize)}, lambda m: m.inputSize,
                  methods={"learned": ("weight",)}),
    "Euclidean": Row("inputSize outputSize", "‖x − wⱼ‖ for each column of W", euclidean, None,
                     lambda m: {"weight": (m.inputSize, m.outputSize)},
                     lambda m: m.inputSize, methods={"learned": ("weight",)}),
    "WeightedEuclidean": Row("inputSize outputSize", "‖(x − wⱼ) · cⱼ‖ for each column of W and C", weighted_euclidean,
                             None,
                             lambda m: {"weight": (m.inputSize, m.outputSize), "diagCov": (m.inputSize, m.outputSize)},
                             lambda m: m.inputSize,
                             methods={"learned": ("weight", "diagCov")}),
    "LookupTable": Row("nIndex nOutput paddingValue=-1 maxNorm=None normType=None", "rows of W", lookup,
                       lambda m: nn.Embedding(m.nIndex, m.nOutput, None if m.paddingValue < 0 else m.paddingValue,
                                              m.maxNorm, m.normType or 2.0),
                       lambda m: {"weight": (m.nIndex, m.nOutput)},
                       methods={"learned": ("weight",), "reset": lambda m, stdv=None: m.weight.normal_(0, stdv or 1)}),
    "Mul": Row("", "w · x for one number w", lambda m, x, w: x * w, None, lambda m: {"weight": (1,)}, lambda m: 1,
               methods={"learned": ("weight",)}),
    "PReLU": Row("nOutputPlane=0", "x, or w · x below 0", lambda m, x, w: F.prelu(x, w),
                 lambda m: nn.PReLU(m.nOutputPlane or 1),
                 lambda m: {"weight": (m.nOutputPlane or 1,)},
                 methods={"learned": ("weight",), "reset": lambda m, stdv=None: m.weight.fill_(0.25)}),
    "PartialLinear": Row("inputsize outputsize bias=True", "the rows of Wx + b that `setPartition` chose",
                         partial_linear, None,
                         lambda m: {"weight": (m.outputsize, m.inputsize), "bias": (m.outputsize,) if m.bias else None},
                         lambda m: m.inputsize,
                         state={"partition": None},
                         methods={"setPartition": set_partition, "resetPartition": lambda m: set_partition(m, None)}),
    "BatchNormalization": batch_norm("BatchNorm1d"),
    "SpatialBatchNormalization": batch_norm("BatchNorm2d"),
    "VolumetricBatchNormalization": batch_norm("BatchNorm3d"),
    # images
    "SpatialConvolution": convolution("nInputPlane nOutputPlane kW kH dW=1 dH=1 padW=0 padH=None",
                                      "a convolution of images", "HW"),
    "SpatialDilatedConvolution": convolution("nInputPlane nOutputPlane kW kH dW=1 dH=1 padW=0 padH=None dilationW=1 "
                                             "dilationH=None",
                                             "a convolution with holes", "HW"),
    "SpatialFullConvolution": convolution("nInputPlane nOutputPlane kW kH dW=1 dH=1 padW=0 padH=None adjW=0 adjH=0",
                                          "the transpose of a convolution of images", "HW", full=True),
    "SpatialConvolutionLocal": Row("nInputPlane nOutputPlane iW iH kW kH dW=1 dH=1 padW=0 padH=None",
                                   "a convolution with kernels of its own at each place",
                                   images(local, 2), None, local_shapes, lambda m: m.kW * m.kH * m.nInputPlane),
    "SpatialConvolutionMap": Row("conMatrix kW kH dW=1 dH=1", "a convolution of chosen pairs of planes",
                                 lambda m, x, w, b: connected(m, x, w, b, False), None,
                                 connected_shapes, lambda m: m.kW * m.kH * m.nInputPlane, state=PLANES),
    "SpatialFullConvolutionMap": Row("conMatrix kW kH dW=1 dH=1",
                                     "the transpose of a convolution of chosen pairs of planes",
                                     lambda m, x, w, b: connected(m, x, w, b, True), None, connected_shapes,
                                     lambda m: m.kW * m.kH * m.nInputPlane,
                                     state=PLANES),
    "SpatialMaxPooling": pooling("kW kH dW=None dH=None padW=0 padH=0", "the greatest number of each window", "HW"),
    "SpatialAveragePooling": pooling("kW kH dW=1 dH=1 padW=0 padH=0", "the mean of each window", "HW", mean=True),
    "SpatialAdaptiveMaxPooling": Row("w h", "the greatest numbers of w by h windows",
                                     lambda m, x: F.adaptive_max_pool2d(x, (m.h, m.w)),
                                     lambda m: nn.AdaptiveMaxPool2d((m.h, m.w))),
    "SpatialFractionalMaxPooling": Row("kW kH arg1 arg2",
                                       "the greatest numbers of windows at random places; arg1 and arg2 are width and "
                                       "height, or ratios",
                                       fractional),
    "SpatialLPPooling": Row("nInputPlane pnorm kW kH dW=None dH=None", "the p-norm of each window", images(
        lambda m, x: (F.avg_pool2d(x.abs().pow(m.pnorm), (m.kH, m.kW), extent(m, "d", "HW"))
                      * (m.kW * m.kH)).pow(1 / m.pnorm), 2)),
    "SpatialMaxUnpooling": unpooling(2),
    "SpatialCrossMapLRN": Row("size alpha=1e-4 beta=0.75 k=1", "x / (k + α/size · Σ x² over neighbouring planes)^β",
                              images(
        lambda m, x: F.local_response_norm(x, m.size, m.alpha, m.beta, m.k), 2),
                              lambda m: nn.LocalResponseNorm(m.size, m.alpha, m.beta, m.k)),
    "SpatialReflectionPadding": padding("pad_l pad_r=None pad_t=None pad_b=None", "reflect", "pad_l pad_r pad_t pad_b"),
    "SpatialReplicationPadding": padding("pad_l pad_r=None pad_t=None pad_b=None", "replicate",
                                         "pad_l pad_r pad_t pad_b"),
    "SpatialZeroPadding": padding("pad_l pad_r=None pad_t=None pad_b=None", "constant", "pad_l pad_r pad_t pad_b"),
    "SpatialSubSampling": Row("nInputPlane kW kH dW=1 dH=1", "the sum of each window, times w plus b", subsampled, None,
                              lambda m: {"weight": (m.nInputPlane,), "bias": (m.nInputPlane,)}, lambda m: m.kW * m.kH),
    "SpatialSubtractiveNormalization": Row("nInputPlane=1 kernel=None", "x minus its mean around each pixel",
                                           images(subtracted, 2)),
    "SpatialDivisiveNormalization": Row("nInputPlane=1 kernel=None threshold=1e-4 thresval=None",
                                        "x over its deviation around each pixel", images(divided, 2)),
    "SpatialContrastiveNormalization": Row("nInputPlane=1 kernel=None threshold=1e-4 thresval=1e-4",
                                           "x minus its mean, over its deviation, around each pixel",
                                           images(lambda m, x: divided(m, subtracted(m, x)), 2)),
    "SpatialUpSamplingNearest": Row("scale_factor", "each pixel repeated",
                                    images(lambda m, x: F.interpolate(x, scale_factor=m.scale_factor), 2),
                                    lambda m: nn.Upsample(scale_factor=m.scale_factor)),
    # sequences, as (time, features) or (batch, time, features)
    "TemporalConvolution": Row("inputFrameSize outputFrameSize kW dW=1", "a convolution over time",
                               in_time(temporal_convolution), None,
                               lambda m: {"weight": (m.outputFrameSize, m.kW * m.inputFrameSize),
                                          "bias": (m.outputFrameSize,)},
                               lambda m: m.kW * m.inputFrameSize),
    "TemporalMaxPooling": Row("kW dW=None", "the greatest numbers of windows in time",
                              in_time(lambda m, x: F.max_pool1d(x, m.kW, m.dW))),
    "TemporalSubSampling": Row("inputFrameSize kW dW=1", "the sum of each window in time, times w plus b",
                               in_time(subsampled_in_time), None,
                               lambda m: {"weight": (m.inputFrameSize,), "bias": (m.inputFrameSize,)}, lambda m: m.kW),
    # volumes
    "VolumetricConvolution": convolution("nInputPlane nOutputPlane kT kW kH dT=1 dW=1 dH=1 padT=0 padW=0 padH=0",
                                         "a convolution of volumes", "THW"),
    "VolumetricFullConvolution": convolution("nInputPlane nOutputPlane kT kW kH dT=1 dW=1 dH=1 padT=0 padW=0 padH=0 "
                                             "adjT=0 adjW=0 adjH=0",
                                             "the transpose of a convolution of volumes", "THW", full=True),
    "VolumetricMaxPooling": pooling("kT kW kH dT=None dW=None dH=None padT=0 padW=0 padH=0",
                                    "the greatest number of each window", "THW"),
    "VolumetricAveragePooling": pooling("kT kW kH dT=None dW=None dH=None padT=0 padW=0 padH=0",
                                        "the mean of each window", "THW", mean=True),
    "VolumetricMaxUnpooling": unpooling(3),
    "VolumetricReplicationPadding": padding("pleft pright=None ptop=None pbottom=None pfront=None pback=None",
                                            "replicate",
                                            "pleft pright ptop pbottom pfront pback"),
}
__all__ = classes(LAYERS, RowModule, globals())
