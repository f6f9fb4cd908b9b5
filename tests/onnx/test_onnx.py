"""ONNX files do what the models do that they were exported from: checked, and run by onnxruntime and by ONNX's own
reference.
"""
import io
import sys
import threading

import numpy as np
import pytest
from samples import SAMPLES
from sampling import Values
from support import fresh_process, needed

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.core.dispatch import apply
from tensorgrad.nn import functional as F
from tensorgrad.ops.base import OPS
from tensorgrad.utils._pytree import tree_leaves

onnx = needed("onnx")
onnxruntime = needed("onnxruntime")
errors = torch.onnx.errors
BATCH = {"x": {0: "batch"}}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Loaded:
    """A session that runs a file as this package loads it."""

    def __init__(self, model_proto):
        self.model = torch.onnx.load(model_proto.SerializeToString())

    def run(self, names, feed):
        with torch.no_grad():
            found = self.model(*map(torch.from_numpy, feed.values()))
        return [x.detach().numpy() for x in (found if isinstance(found, tuple) else (found,))]


def same(model, args, *others, dynamic_axes=None, reference=True, tolerance=2e-5, **options):
    """Export a model, check the file, and compare what it gives with the model, on the example inputs and on others.

    Gives the file.
    """
    if isinstance(model, nn.Module):
        model.eval()
    names = None if dynamic_axes is None else list(dynamic_axes)
    model_proto = torch.onnx.export(model, args, input_names=names, dynamic_axes=dynamic_axes, **options).model_proto
    onnx.checker.check_model(model_proto, full_check=True)
    sessions = [onnxruntime.InferenceSession(model_proto.SerializeToString(), providers=["CPUExecutionProvider"]),
                Loaded(model_proto)]
    if reference:
        from onnx.reference import ReferenceEvaluator
        sessions.append(ReferenceEvaluator(model_proto))
    for given in (args, *others):
        given = given if isinstance(given, tuple) else (given,)
        with torch.no_grad():
            wanted = tensors(model(*given))
        feed = dict(zip([i.name for i in model_proto.graph.input], [t.cpu().numpy() for t in tensors(given)],
                        strict=True))
        for session in sessions:
            got = session.run(None, feed)
            assert [g.shape for g in got] == [tuple(w.shape) for w in wanted]
            for g, w in zip(got, wanted, strict=True):
                assert g.dtype == w.cpu().numpy().dtype
                np.testing.assert_allclose(g, w.cpu().numpy(), rtol=tolerance, atol=tolerance)
    return model_proto


def kinds(model_proto):
    return [node.op_type for node in model_proto.graph.node]


class Fn(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.narrow, self.head = nn.Conv2d(8, 8, 3, stride=2, groups=4, bias=False), nn.Linear(72, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x)), inplace=True), 2)
        x = F.avg_pool2d(self.narrow(x), 1)
        return self.head(x.view(x.size(0), -1))


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.relu, self.down = nn.ReLU(inplace=True), None
        if stride != 1 or before != after:
            self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.down is None else self.down(x)
        return self.relu(out)


def resnet18(width=4):
    stages = [Block(width * before, width * after, stride) for before, after, stride in
              [(1, 1, 1), (1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 4, 2), (4, 4, 1), (4, 8, 2), (8, 8, 1)]]
    return nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                         nn.MaxPool2d(3, 2, 1), *stages, nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(),
                         nn.Linear(8 * width, 10))


def mobilenet():
    def layer(before, after, kernel, stride=1, groups=1):
        return nn.Sequential(nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
                             nn.BatchNorm2d(after), nn.ReLU6(inplace=True))
    return nn.Sequential(layer(3, 8, 3, 2), layer(8, 8, 3, groups=8), layer(8, 16, 1), nn.Hardswish(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(1),
                         nn.Dropout(0.2), nn.Linear(16, 4))


class Gpt(nn.Module):
    """A block of a transformer over characters, with attention written out or not."""

    def __init__(self, written_out, approximate="none", vocabulary=17, width=16, heads=2, context=8):
        super().__init__()
        self.heads, self.written_out = heads, written_out
        self.tok, self.pos = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.ln1, self.qkv, self.proj, self.ln2 = (nn.LayerNorm(width), nn.Linear(width, 3 * width),
                                                   nn.Linear(width, width), nn.LayerNorm(width))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate=approximate),
                                 nn.Linear(4 * width, width), nn.Dropout(0.1))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tok.weight
        self.register_buffer("mask", torch.tril(torch.ones(context, context)).view(1, 1, context, context))

    def forward(self, idx):
        B, T = idx.size()
        x = self.tok(idx) + self.pos(torch.arange(T, device=idx.device))
        C = x.size(2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2)
                   for t in self.qkv(self.ln1(x)).split(C, dim=2))
        if self.written_out:
            scores = q @ k.transpose(-2, -1) * k.size(-1) ** -0.5
            y = F.softmax(scores.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf")), dim=-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return self.head(x + self.mlp(self.ln2(x)))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 16, 4, 4), nn.Linear(16, 3)
        self.first, self.pos = nn.Parameter(torch.randn(1, 1, 16)), nn.Parameter(torch.randn(1, 5, 16))
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu"),
                                             2)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.encoder(torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.pos)[:, 0])


def decoder():
    return nn.Sequential(nn.Linear(4, 32), nn.Unflatten(1, (2, 4, 4)), nn.ConvTranspose2d(2, 4, 4, 2, 1), nn.ReLU(),
                         nn.ConvTranspose2d(4, 1, 3, 2, 1, output_padding=1), nn.Sigmoid())


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)


randn = torch.randn
IMAGE = {"x": {0: "batch", 2: "height", 3: "width"}}
SEQUENCE = {"x": {0: "batch", 1: "time"}}
STEPS = {"x": {0: "time", 1: "batch"}}
MODELS = {      # name: model, example, other inputs for which the axes are dynamic, and which those are
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), [(2, 4), (5, 4), (1, 4)], BATCH),
    "cnn": (Cnn, [(2, 3, 14, 14), (5, 3, 14, 14)], BATCH),
    "resnet18": (resnet18, [(2, 3, 64, 64), (3, 3, 32, 96)], IMAGE),
    "mobilenet": (mobilenet, [(2, 3, 16, 16), (3, 3, 16, 16)], BATCH),
    "gpt": (lambda: Gpt(True), [(2, 6), (5, 3), (1, 8)], SEQUENCE),
    "gpt of a full context": (lambda: Gpt(True, "tanh"), [(1, 8), (5, 3)], SEQUENCE),
    "gpt with fused attention": (lambda: Gpt(False, "tanh"), [(2, 6), (5, 3)], SEQUENCE),
    "vit": (ViT, [(2, 3, 8, 8), (5, 3, 8, 8)], BATCH),
    "vae decoder": (decoder, [(2, 4), (5, 4)], BATCH),
    "encoder": (encoder, [(2, 4, 8), (5, 7, 8)], SEQUENCE),
    "lstm": (lambda: nn.LSTM(5, 6, num_layers=2, bidirectional=True, batch_first=True), [(2, 4, 5), (5, 7, 5)],
             SEQUENCE),
    "lstm, projected": (lambda: nn.LSTM(5, 6, proj_size=3), [(4, 2, 5), (4, 7, 5)], {"x": {1: "batch"}}),
    "gru": (lambda: nn.GRU(5, 6, bidirectional=True), [(4, 2, 5), (6, 7, 5)], STEPS),
    "gru without bias": (lambda: nn.GRU(5, 6, bias=False), [(4, 2, 5)], None),
    "rnn": (lambda: nn.RNN(5, 6), [(4, 2, 5), (6, 7, 5)], STEPS),
    "shuffle": (lambda: nn.PixelShuffle(2), [(2, 8, 3, 3), (5, 8, 4, 3)], {"x": {0: "batch", 2: "height"}}),
    "unshuffle": (lambda: nn.PixelUnshuffle(2), [(2, 2, 4, 4), (3, 2, 4, 4)], BATCH),
    "nearest": (lambda: nn.Upsample(scale_factor=2), [(2, 3, 4, 5), (5, 3, 6, 7)], IMAGE),
    "bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), [(2, 3, 4, 5), (5, 3, 6, 7)], IMAGE),
    "bicubic": (lambda: nn.Upsample(size=(7, 9), mode="bicubic", align_corners=True), [(2, 3, 4, 5), (5, 3, 4, 5)],
                BATCH),
    "group norm": (lambda: nn.GroupNorm(2, 4), [(2, 4, 5, 5), (3, 4, 6, 5)], {"x": {0: "batch", 2: "height"}}),
    "instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), [(2, 4, 5, 5), (3, 4, 5, 5)], BATCH),
    "rms norm": (lambda: nn.RMSNorm(5), [(2, 4, 5), (3, 4, 5)], BATCH),
    "local response norm": (lambda: nn.LocalResponseNorm(2), [(2, 4, 3, 3), (5, 4, 3, 3)], BATCH),
    "unfold": (lambda: nn.Unfold(2, stride=2, padding=1), [(2, 3, 4, 4), (3, 3, 4, 4)], BATCH),
    "fold": (lambda: nn.Fold((4, 4), 2, stride=2), [(2, 12, 4), (3, 12, 4)], BATCH),
    "in 1-d": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.MaxPool1d(2), nn.AvgPool1d(2), nn.Flatten()),
               [(2, 2, 16), (3, 2, 16)], BATCH),
    "in 3-d": (lambda: nn.Sequential(nn.Conv3d(2, 4, 3), nn.MaxPool3d(2), nn.AdaptiveAvgPool3d(1)),
               [(2, 2, 8, 8, 8), (3, 2, 8, 8, 8)], BATCH),
    "borders": (lambda: nn.Sequential(nn.ReflectionPad2d(1), nn.ReplicationPad2d(1), nn.ZeroPad2d(2),
                                      nn.ConstantPad2d(-1, 3.)),
                [(2, 2, 4, 4), (3, 2, 4, 4)], BATCH),
    "adaptive means": (lambda: nn.AdaptiveAvgPool2d((3, 2)), [(2, 2, 7, 5), (3, 2, 7, 5)], BATCH),
    "adaptive maxima": (lambda: nn.AdaptiveMaxPool2d((3, 2), return_indices=True), [(2, 2, 7, 5), (3, 2, 7, 5)], BATCH),
    "maxima and places": (lambda: nn.MaxPool2d(2, return_indices=True), [(2, 3, 4, 4), (3, 3, 4, 4)], BATCH),
    "means of cut windows": (lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), [(2, 3, 8, 8)],
                             None),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), [(2, 3)], None),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    make, shapes, axes = MODELS[name]
    integers = name.startswith("gpt")
    inputs = [torch.randint(0, 17, shape) if integers else randn(shape) for shape in shapes]
    same(make(), *inputs, dynamic_axes=axes)


def test_attention_of_several_inputs():
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    same(model, (randn(2, 5, 8), randn(2, 6, 8), randn(2, 6, 8)))
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    same(layer, (randn(2, 4, 8), randn(2, 3, 8)), (randn(5, 4, 8), randn(5, 3, 8)),
         dynamic_axes={"tgt": {0: "batch"}, "memory": {0: "batch"}})


def test_bags():
    same(nn.EmbeddingBag(10, 3, mode="mean"), torch.randint(0, 10, (2, 4)), torch.randint(0, 10, (5, 4)),
         dynamic_axes=BATCH)
    same(nn.EmbeddingBag(10, 3, mode="sum"), (torch.randint(0, 10, (8,)), torch.tensor([0, 3, 5])))


# ── functions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def through_views(x):
    y = x.clone()
    z = y.view(-1, 2, 2)
    z[:, 0, 1] = x[:, 0]
    y[:, 3].copy_(x[:, 1])
    first, _ = y.chunk(2, 1)
    first += 1
    return y, z


def into_new(x):
    y = torch.zeros(x.shape[0], 6)
    y[:, 1:4] = x[:, :3]
    y[:, 0] = 1.
    y[:, 2].mul_(3)
    return y.add_(1)


def at_masks(x):
    y = x.clone()
    y[x > 0] = 0.
    y[:, 0][x[:, 1] > 0] = 2
    return y


def at_places(x):
    y = x.clone()
    y[torch.tensor([0, 1]), torch.tensor([1, 2])] = 5.
    y[:, [0, 2]] = x[:, [2, 0]]
    y[:2].diagonal().fill_(9)
    return y.index_put_((torch.tensor([0]),), torch.ones(4), accumulate=True)


FUNCTIONS = {
    "writes through views": through_views, "writes into new": into_new, "writes at masks": at_masks,
    "writes at places": at_places,
    "pieces": lambda x: (*x.chunk(2, 1), *x.split([1, 3], 1), *x.unbind(1), x[..., ::2], x[:, None, -1], x[1:, 1:3]),
    "joined": lambda x: (torch.stack([x, x], 1).flatten(0, 1), x.repeat(2, 1), x.repeat_interleave(2, 0),
                         torch.cat([x, x.new_zeros(x.shape)], 0)),
    "moved": lambda x: (x.roll(1, 0), x.flip(0), x.T, x.unsqueeze(0).expand(3, -1, -1), x.triu(1), x.tril()),
    "made": lambda x: (torch.full((x.size(0), 2), 3.), torch.eye(x.size(0)), torch.arange(x.size(0) * 2),
                       torch.linspace(0, 1, 4),
                       torch.stack(torch.meshgrid(torch.arange(x.size(0)), torch.arange(3), indexing="ij"))),
    "sizes as numbers": lambda x: x * x.shape[0] + torch.tensor(x.shape[0])
    + torch.tensor([x.shape[0], x.shape[1]]).sum(),
    "reduced": lambda x: (x.mean(1), x.std(1), x.var(), x.norm(dim=1), x.max(1), x.argmax(1), x.logsumexp(1), x.prod(1),
                          x.amin(0), (x > 0).any(1)),
    "ordered": lambda x: (x.sort(1), torch.topk(x, 2, dim=1), x.median(1), x.cumsum(0), x.kthvalue(2, 1)),
    "masked": lambda x: x.masked_fill(torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)[:1], -1e9).softmax(-1),
    "arithmetic": lambda x: torch.where(x > 0, x, 0.) + x // 0.3 + x % 0.3 + torch.fmod(x, 0.3) + x.clamp(-0.1, 0.1)
    + x ** 2 + 2 ** x + x.round() + 1 / x,
    "activations": lambda x: [getattr(F, name)(x)
                              for name in "relu relu6 elu selu celu leaky_relu gelu silu mish softplus softsign "
                              "tanhshrink hardtanh hardswish hardsigmoid hardshrink softshrink logsigmoid sigmoid "
                              "tanh".split()],
    "matrices": lambda x: (torch.einsum("ij,kj->ik", x, x), torch.cdist(x, x + 1), F.cosine_similarity(x, x + 1),
                           F.normalize(x), torch.outer(x[0], x[1])),
    "losses": lambda x: (F.cross_entropy(x, x.argmax(1)), F.mse_loss(x, x * 2), F.smooth_l1_loss(x, x * 3),
                         F.binary_cross_entropy_with_logits(x, x.sigmoid())),
    "gathered": lambda x: (x.gather(1, x.argsort(1)), x.scatter_add(1, x.argsort(1), x), F.one_hot(x.argmax(1), 5)),
    "a tree": lambda x: {"a": x + 1, "b": (x * 2, None, x)},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    same(Fn(FUNCTIONS[name]), randn(3, 4), randn(6, 4), dynamic_axes=BATCH)


def test_integers():
    def function(i):
        return (i // 2, i % 3, i / 2, i + 0.5, (i > 1) & (i < 3), ~(i > 1), i.float().mean(), i.sum(), i << 1, i >> 1,
                i & 1, i.max(), torch.div(i, 2, rounding_mode="trunc"), i.bool().sum(), -i, i.abs(),
                torch.arange(10.)[i])
    same(Fn(function), torch.tensor([1, -2, 3, 4]))


# ops of the table that ONNX has neither operators nor short compositions for
BEYOND = set("""log_ndtr i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0 erfcx airy_ai erfinv
    ndtri lgamma digamma polygamma zeta igamma igammac modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0
    scaled_modified_bessel_k1 gcd lcm nextafter make_complex frexp imag view_as_real view_as_complex place_slice
    unfold_add restride view set_view nanmedian_of_all nanmedian_dim mode cummax cummin bincount histc distinct
    distinct_slices solve_linear solve_triangular inverse_matrix pseudo_inverse cofactors one_zero log_determinant
    matrix_exponential cholesky_factor lu_factor ldl_factor ldl_solve pivot_order qr_factor householder_factors
    eigh_pairs eigh_values eig_pairs
    eig_values svd_factor singular_values fourier_transform
    half_spectrum from_half_spectrum
    convolution_weight window_spread standard_gamma
    standard_gamma_grad
    sparse_matmul sampled_matmul
    dirichlet_grad multilabel_margin_loss ctc_loss ctc_posterior""".split()) | {n for n in OPS if "_polynomial_" in n}


@pytest.mark.parametrize("name", [name for name, (row, *_) in SAMPLES.items()
                                  if name in OPS and name != "to_device" and "graph" not in row.skipped])
def test_the_table(name):
    """Each op of the table is exported, or else refused by its name."""
    op, row = OPS[name], SAMPLES[name][0]
    inputs = [torch.from_numpy(np.array(v.draw(np.random.default_rng(0), np.dtype("float32")))) if isinstance(v, Values)
              else
              torch.from_numpy(v.copy()) if isinstance(v, np.ndarray) else v for v in row.inputs]

    def function(*tensors):
        left = iter(tensors)
        args = [next(left) if isinstance(v, torch.Tensor) else v for v in inputs]
        made = apply(op, *([args] if op.sequence else args), **row.params)
        return tuple(made) if isinstance(made, list) else made
    given = tuple(v for v in inputs if isinstance(v, torch.Tensor))
    if name in BEYOND or any(v.is_complex() for v in (*given, *tensors(function(*given)))):
        with pytest.raises(errors.UnsupportedOperatorError, match=name):
            torch.onnx.export(Fn(function), given)
    else:
        same(Fn(function), given, reference=False, tolerance=2e-4)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_names():
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 3)))
    proto = torch.onnx.export(model, randn(2, 4), input_names=["pixels"], output_names=["scores"],
                              dynamic_axes={"pixels": [0], "scores": {0: "N"}}).model_proto
    graph = proto.graph
    assert [i.name for i in graph.input] == ["pixels"] and [o.name for o in graph.output] == ["scores"]
    assert {t.name for t in graph.initializer} == set(model.state_dict())
    assert [n.name for n in graph.node] == ["/0/Gemm", "/1/0/Relu", "/1/1/Gemm"]
    dims = [d.dim_param or d.dim_value for v in (*graph.input, *graph.output) for d in v.type.tensor_type.shape.dim]
    assert dims == ["pixels_dynamic_axes_1", 4, "N", 3]


def test_shared_parameters_are_there_once():
    graph = torch.onnx.export(Gpt(True).eval(), torch.randint(0, 17, (2, 6))).model_proto.graph
    names = {t.name for t in graph.initializer}
    assert "tok.weight" in names and "head.weight" not in names


def test_what_is_constant_is_folded():
    def function(x):
        return x + torch.tril(torch.ones(3, 3)) @ torch.full((3, 3), 2.)
    assert kinds(same(Fn(function), randn(3, 3))) == ["Add"]
    assert set(kinds(same(Fn(function), randn(3, 3), do_constant_folding=False))) == {"Trilu", "MatMul", "Add"}


@pytest.mark.parametrize("opset", [13, 17, 18, 21, 23])
def test_opsets(opset):
    proto = same(Gpt(True, "tanh"), torch.randint(0, 17, (2, 6)), torch.randint(0, 17, (5, 3)), dynamic_axes=SEQUENCE,
                 opset_version=opset)
    assert (proto.opset_import[0].version == opset and ("Gelu" in kinds(proto)) == (opset >= 20)
            and ("LayerNormalization" in kinds(proto)) == (opset >= 17))
    # ONNX's own reference has another batch norm before
    same(resnet18(), randn(1, 3, 32, 32), opset_version=opset, reference=opset >= 15)


def test_versions_that_are_too_old_or_new():
    with pytest.warns(errors.OnnxExporterWarning, match="opset_version 9 is older"):
        assert torch.onnx.export(nn.ReLU(), randn(2), opset_version=9).model_proto.opset_import[0].version == 13
    with pytest.raises(ValueError, match="Unsupported opset_version"):
        torch.onnx.export(nn.ReLU(), randn(2), opset_version=99)
    with pytest.raises(errors.UnsupportedOperatorError, match="needs opset_version 14 or later"):
        torch.onnx.export(Fn(torch.tril), randn(2, 2), opset_version=13)


def test_parameters_as_inputs_and_left_out():
    model, x = nn.Linear(4, 3), randn(2, 4)
    both = torch.onnx.export(model, x, keep_initializers_as_inputs=True).model_proto.graph
    assert {i.name for i in both.input} == {"input", "weight", "bias"} and len(both.initializer) == 2
    without = torch.onnx.export(model, x, export_params=False).model_proto
    assert {i.name for i in without.graph.input} == {"input", "weight", "bias"} and not without.graph.initializer
    session = onnxruntime.InferenceSession(without.SerializeToString(), providers=["CPUExecutionProvider"])
    got, = session.run(None, {"input": x.cpu().numpy(), **{k: v.cpu().numpy() for k, v in model.state_dict().items()}})
    np.testing.assert_allclose(got, model(x).detach().cpu().numpy(), rtol=1e-5)


def test_files(tmp_path):
    model, x = nn.Sequential(nn.Linear(40, 30), nn.ReLU()), randn(2, 40)
    program = torch.onnx.export(model, x, tmp_path / "a.onnx")
    assert (isinstance(program, torch.onnx.ONNXProgram)
            and torch.onnx.export(model, x, str(tmp_path / "b.onnx"), dynamo=False) is None)
    buffer = io.BytesIO()
    torch.onnx.export(model, x, buffer)
    program.save(tmp_path / "c.onnx", external_data=True)
    assert (tmp_path / "c.onnx.data").stat().st_size == 30 * 40 * 4 and (tmp_path / "c.onnx").stat().st_size < 1500
    wanted = model(x).detach().cpu().numpy()
    for source in (*map(str, sorted(tmp_path.glob("*.onnx"))), buffer.getvalue()):
        got, = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]).run(None,
                                                                                            {"input": x.cpu().numpy()})
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    np.testing.assert_allclose(program(x)[0].numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(program.call_reference(x)[0].numpy(), wanted, rtol=1e-5)
    assert len(list(tmp_path.iterdir())) == 4
    torch.onnx.export(model, x, verify=True)


# ── inputs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Named(nn.Module):
    def forward(self, x, scale=2.0, *, pair=None, flag=False):
        x = x * scale
        return x + pair[0] - pair[1] if flag else x


def test_arguments():
    x, a, b = randn(2, 3), randn(3), randn(2, 3)
    program = torch.onnx.export(Named(), (x, 3.0), kwargs={"pair": (a, b), "flag": True})
    assert [i.name for i in program.model_proto.graph.input] == ["x", "pair_0", "pair_1"]
    torch.testing.assert_close(program(x, a, b)[0], (x * 3 + a - b).cpu())
    last = torch.onnx.export(Named(), (x, {"pair": (a, b), "flag": True}), input_names=["p", "q"])
    assert [i.name for i in last.model_proto.graph.input] == ["p", "q", "pair_1"]


@pytest.mark.parametrize("shapes", [
    {"x": {0: "n"}, "y": {0: "n"}}, {"x": {0: torch.export.Dim("n")}, "y": {0: torch.export.Dim("n", min=1)}},
    ({0: "n"}, {0: "n"}), [("n", None), ("n", None)],
    {"x": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.STATIC}, "y": (torch.export.Dim.AUTO, None)}])
def test_dynamic_shapes(shapes):
    def function(x, y):
        return x.view(x.size(0), 2, 2).sum(1).reshape(-1) + torch.cat([y, y], 1).reshape(-1)
    program = torch.onnx.export(function, (randn(2, 4), randn(2, 1)), dynamic_shapes=shapes)
    x, y = randn(7, 4), randn(7, 1)
    torch.testing.assert_close(program(x, y)[0], function(x, y).cpu())


def test_axes_of_one_name_have_one_size():
    with pytest.raises(ValueError, match="different sizes"):
        torch.onnx.export(Fn(torch.add), (randn(2, 3), randn(1, 3)), input_names=["x", "y"],
                          dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    with pytest.raises(ValueError, match="no axis 5"):
        torch.onnx.export(nn.ReLU(), randn(2), input_names=["x"], dynamic_axes={"x": {5: "n"}})
    with pytest.warns(UserWarning, match="Provided key z"):
        torch.onnx.export(nn.ReLU(), randn(2), dynamic_axes={"z": {0: "n"}})


# ── what cannot be exported ───────────────────────────────────────────────────────────────────────────────────────────


def test_all_that_is_not_there_is_named_at_once(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"before")
    with pytest.raises(errors.UnsupportedOperatorError) as caught:
        torch.onnx.export(Fn(lambda x: torch.linalg.inv(x) + torch.lgamma(x) + x.relu()), randn(3, 3), path)
    message = str(caught.value)
    assert caught.value.names == ("inverse_matrix", "lgamma") and message.count(f"{__file__}:") == 2
    assert isinstance(caught.value, torch.onnx.OnnxExporterError) and isinstance(caught.value, RuntimeError)
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("function", [lambda x: torch.stack([x[i] for i in range(len(x))]).sum(),
                                      lambda x: x * len(x) ** 0.5, lambda x: x * 0.9 ** len(x),
                                      lambda x: x[:len(x) ** 2 // 40], lambda x: x.view(3, 3, 3),
                                      lambda x: torch.from_numpy(np.hanning(len(x))) * x[:, 0]])
def test_what_depends_on_sizes_in_unknown_ways(function):
    with pytest.raises(errors.SymbolicValueError, match="depends on"):
        torch.onnx.export(Fn(function), randn(9, 3), input_names=["x"], dynamic_axes=BATCH)


def test_reading_values_warns():
    with pytest.warns(errors.OnnxExporterWarning,
                      match="test_onnx.py.* the values of a tensor that depends on the inputs are read"):
        torch.onnx.export(Fn(lambda x: x * 2 if x.sum() > 0 else x), randn(3))
    same(Fn(lambda x: x * torch.ones(3).sum().item()), randn(3))


def test_functions_of_numpy_are_refused():
    with pytest.raises(errors.UnsupportedOperatorError, match="a mask as an index"):
        torch.onnx.export(Fn(lambda x: x[x > 0].sum()), randn(30))
    with pytest.raises(errors.UnsupportedOperatorError, match="a write in place to weight"):
        torch.onnx.export(nn.Embedding(5, 3, max_norm=0.1), torch.tensor([1, 2]))


# ── the model afterwards ──────────────────────────────────────────────────────────────────────────────────────────────


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.drop = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros(()))
        self.plain, self.many = torch.ones(4), [torch.ones(4)]

    def forward(self, x):
        self.calls += 1
        self.seen = self.norm(self.fc(x)) * self.plain + self.many[0]
        return self.drop(self.seen) + torch.randn(4)


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_left_as_it_was(fails):
    model = Stateful()
    model.norm.eval()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    before = {name: dict(m.__dict__) for name, m in model.named_modules()}
    grads, generator = [p.requires_grad for p in model.parameters()], torch.get_rng_state()
    inputs = randn(2, 7 if fails else 3)
    generator = torch.get_rng_state()
    arrays = [id(t.array) for t in model.state_dict(keep_vars=True).values()]
    if fails:
        with pytest.raises(RuntimeError, match="mat1 and mat2"):
            torch.onnx.export(model, inputs)
    else:
        torch.onnx.export(model, inputs, dynamic_axes={"x": {0: "n"}})
    assert {name: m.__dict__ for name, m in model.named_modules()} == before and not hasattr(model, "seen")
    assert arrays == [id(t.array) for t in model.state_dict(keep_vars=True).values()]
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), generator) and [p.requires_grad for p in model.parameters()] == grads
    assert (not torch.onnx.is_in_onnx_export() and type(torch.ones(1).array) is type(model.fc.weight.array)
            and torch.is_grad_enabled())
    model(randn(2, 3)).sum().backward()
    assert model.fc.weight.grad is not None


def test_modes():
    model, x = nn.Dropout(0.5), torch.ones(1000)
    assert kinds(torch.onnx.export(model, x).model_proto) != ["Identity"]
    session = onnxruntime.InferenceSession(torch.onnx.export(model, x).model_proto.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    got = [session.run(None, {"input": x.cpu().numpy()})[0] for _ in range(2)]
    assert set(np.unique(got[0])) == {0, 2} and 400 < (got[0] > 0).sum() < 600 and not np.array_equal(*got)
    buffer = io.BytesIO()
    torch.onnx.export(model, x, buffer, dynamo=False)
    assert kinds(onnx.load_from_string(buffer.getvalue())) == ["Identity"] and model.training


def test_random_numbers_are_drawn_anew():
    def function(x):
        noise = torch.randn_like(x) * 3 + 1
        return (noise, torch.rand(x.shape[0]), torch.bernoulli(x.sigmoid()), torch.normal(x, 2.0),
                torch.randint(2, 5, (100,)))
    program = torch.onnx.export(Fn(function), torch.zeros(2000, 2), dynamic_axes={"args_0": {0: "n"}})
    first, second = (program(torch.zeros(3000, 2)) for _ in range(2))
    assert all(not torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert abs(first[0].mean() - 1) < 0.2 and abs(first[0].std() - 3) < 0.2 and tuple(first[1].shape) == (3000,)
    assert abs(first[2].mean() - 0.5) < 0.05 and abs(first[3].std() - 2) < 0.1 and set(first[4].tolist()) == {2, 3, 4}


def test_other_threads_see_nothing():
    kinds_of_arrays = []

    def elsewhere(x):
        thread = threading.Thread(target=lambda: kinds_of_arrays.append(
            (type(torch.ones(2).array), torch.onnx.is_in_onnx_export())))
        thread.start()
        thread.join()
        assert torch.onnx.is_in_onnx_export()
        return x + 1
    torch.onnx.export(Fn(elsewhere), randn(2))
    assert kinds_of_arrays == [(type(torch.ones(2).array), False)]


def test_rules_of_ones_own():
    torch.onnx.register_custom_op_symbolic("aten::lgamma", lambda g, x: g.node("Lgamma", x, domain="my.ops"), 1)
    try:
        proto = torch.onnx.export(Fn(lambda x: torch.lgamma(x) + 1), randn(3)).model_proto
    finally:
        torch.onnx.unregister_custom_op_symbolic("aten::lgamma", 1)
    assert [(n.domain, n.op_type) for n in proto.graph.node] == [("my.ops", "Lgamma"), ("", "Add")]
    table = {"digamma": lambda g, x: g.Identity(x)}
    assert (kinds(torch.onnx.export(Fn(torch.digamma), randn(3), custom_translation_table=table).model_proto)
            == ["Identity"])
    with pytest.raises(errors.UnsupportedOperatorError):
        torch.onnx.export(Fn(torch.digamma), randn(3))


def test_without_the_package(monkeypatch):
    for name in [name for name in sys.modules if name == "onnx" or name.startswith("onnx.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install onnx \(the extra \[onnx\]\)"):
        torch.onnx.export(nn.ReLU(), randn(2))


def test_unchanged_programs(tmp_path):
    """A program with `import torch` runs as a script."""
    script = tmp_path / "program.py"
    script.write_text("import torch, torch.onnx\nmodel = torch.nn.Linear(2, 1).eval()\n"
                      f"torch.onnx.export(model, torch.ones(1, 2), {str(tmp_path / 'm.onnx')!r}, input_names=['x'], "
                      f"dynamic_axes={{'x': {{0: 'n'}}}})\nfrom torch.onnx import "
                      "errors\nprint(errors.OnnxExporterError is torch.onnx.OnnxExporterError)\n")
    program = (f"import sys; sys.argv = ['tensorgrad', {str(script)!r}]; import runpy; runpy.run_module('tensorgrad', "
               f"run_name='__main__')")
    assert fresh_process(program).strip().endswith("True")
    assert len(onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"]).run(None,
                                                                                                              {"x": np.ones((4, 2), "f")})[0]) == 4  # noqa: E501


def test_no_cost_otherwise():
    program = ("import tensorgrad as t, sys; t.onnx; t.onnx.errors; print(sorted(m for m in sys.modules if "
               "m.startswith(('onnx', 'tensorgrad.onnx'))))")
    assert fresh_process(program).strip() == "['tensorgrad.onnx', 'tensorgrad.onnx.errors']"
