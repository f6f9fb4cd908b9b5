"""Every function of nn.functional beside PyTorch: values, gradients, what happens to the arguments, errors and
warnings.
"""
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from nn_oracle import raising
from support import DEVICE, cpu_only, needed

import tensorgrad

torch = needed("torch")

CALLS = """
relu(x); relu(x.clone(), inplace=True); relu_(x.clone()); relu6(3 * x); leaky_relu(x, 0.2); leaky_relu(x.clone(), inplace=True)
leaky_relu_(x.clone(), 0.3); elu(x, 1.5); elu(x.clone(), inplace=True); elu_(x.clone()); celu(x, 0.7); celu_(x.clone()); selu(x); selu_(x.clone())
gelu(x); gelu(x, approximate='tanh'); silu(x); silu(x.clone(), inplace=True); mish(x); softplus(x, 2, 1); softsign(x); tanhshrink(x)
softshrink(x, 0.3); hardshrink(x, 0.3); logsigmoid(x); hardtanh(x, -0.5, 0.7); hardtanh_(x.clone()); hardsigmoid(3 * x); hardswish(3 * x)
threshold(x, 0.1, -2); threshold_(x.clone(), 0.1, -2); sigmoid(x); tanh(x); glu(x); glu(x, 0); prelu(x, w[:3]); prelu(x, w[:1]); rrelu(x, 0.1, 0.3)
rrelu(x, 0.1, 0.3, True); rrelu_(x.clone(), 0.2, 0.4); softmax(x, -1); softmax(x, 0, dtype=torch.float64); softmin(x, 1); log_softmax(x, 1)
gumbel_softmax(x, 0.7); gumbel_softmax(x, hard=True, dim=1); dropout(x, 0.3); dropout(x, 0.3, False); dropout(x.clone(), 0.3, inplace=True)
alpha_dropout(x, 0.4, True); feature_alpha_dropout(x, 0.4, True); dropout1d(x); dropout1d(x[0], 0.4); dropout2d(im, 0.4); dropout3d(vol, 0.4)
dropout3d(vol[0], 0.4); linear(x, m); linear(x, m, w[:5]); bilinear(x, x + 1, bl, w[:2]); linear(x[0, 0], m); conv1d(x, k1, w[:2], 2, 1)
conv1d(x, k1, padding='same', dilation=2); conv2d(im, k2, stride=(1, 2), padding=1); conv2d(im[0], k2, groups=1)
conv3d(vol, k3, w[:2], padding=(1, 0, 1)); conv_tbc(x, tbc, w[:2], 1); conv_transpose1d(x, k1t, w[:2], 2, 1, 1)
conv_transpose2d(im, k2t, stride=2, output_padding=1, dilation=2, groups=2); conv_transpose3d(vol, k3t); max_pool1d(x, 2)
max_pool1d(x, 3, 2, 1, ceil_mode=True); max_pool1d_with_indices(x, 2); max_pool2d(im, 2, return_indices=True); max_pool2d_with_indices(im, 3, 1, 1)
max_pool3d(vol, 2, 1); max_pool3d_with_indices(vol, 2); max_unpool1d(*max_pool1d_with_indices(x, 2), 2)
max_unpool2d(*max_pool2d(im, 2, return_indices=True), 2); max_unpool3d(*max_pool3d_with_indices(vol, 2), 2, output_size=(4, 4, 4))
avg_pool1d(x, 3, 1, 1); avg_pool2d(im, 2, divisor_override=3); avg_pool2d(im, 3, 2, 1, True, False); avg_pool3d(vol, 2); lp_pool1d(x.abs(), 2, 2)
lp_pool2d(im, 2, 2, ceil_mode=True); lp_pool3d(vol, 3, 2); adaptive_avg_pool1d(x, 3); adaptive_avg_pool2d(im, (3, None))
adaptive_avg_pool3d(vol, 3); adaptive_max_pool1d(x, 2); adaptive_max_pool2d(im, 3, return_indices=True); adaptive_max_pool3d(vol, (2, 3, 1))
adaptive_max_pool1d_with_indices(x, 3); adaptive_max_pool2d_with_indices(im, 2); adaptive_max_pool3d_with_indices(vol, 2)
fractional_max_pool2d(im, 2, 2, _random_samples=u2); fractional_max_pool2d_with_indices(im, 2, output_ratio=(0.5, 0.6), _random_samples=u2)
fractional_max_pool3d(vol, 2, 2, _random_samples=u3); fractional_max_pool3d_with_indices(vol, 2, 2, _random_samples=u3); pad(x, (1, 2))
pad(x, (1, 0, 0, 2), value=3.0); pad(x, (-1, 1)); pad(im, (1, 2, 0, 1), 'reflect'); pad(im, (1, 2, 0, 1), 'replicate'); pad(x, (2, 1), 'circular')
pad(im, (1, 1, 2, 2), mode='circular'); pad(vol, (1, 1, 0, 2, 1, 0), 'replicate'); unfold(im, 2, stride=2)
unfold(im, (2, 3), dilation=1, padding=1); fold(unfold(im, 2), (4, 4), 2); pixel_shuffle(torch.cat([im, im], 1), 2); pixel_unshuffle(im, 2)
channel_shuffle(im, 2); native_channel_shuffle(im.detach(), 2); interpolate(x, 7); interpolate(im, scale_factor=2)
interpolate(im, (3, 5), mode='bilinear'); interpolate(im, scale_factor=1.5, mode='bicubic', align_corners=True)
interpolate(im, (2, 3), mode='bilinear', antialias=True); interpolate(vol, (3, 2, 5), mode='trilinear', align_corners=False)
interpolate(x, 3, mode='area'); interpolate(im, (3, 3), mode='nearest-exact')
interpolate(im, scale_factor=(0.5, 1.7), mode='bilinear', recompute_scale_factor=True); interpolate(x, 9, mode='linear', align_corners=True)
upsample(im, scale_factor=2); upsample_nearest(im, (5, 5)); upsample_bilinear(im, scale_factor=2); grid_sample(im, grid, align_corners=False)
grid_sample(im, grid, 'nearest', 'border', True); grid_sample(im, grid, 'bicubic', 'reflection', align_corners=False)
grid_sample(vol, grid3, padding_mode='border', align_corners=True); affine_grid(theta, (2, 4, 3, 5), align_corners=False)
affine_grid(theta3, (2, 1, 2, 3, 2), True); batch_norm(x, mean, var, w[:3], w[1:4], True, 0.3); batch_norm(im, None, None, training=True)
batch_norm(x, mean, var, eps=0.1); instance_norm(x); instance_norm(im, mean4, var4, w[:4], w[1:5], True, 0.4); layer_norm(x, (6,), m[0], w[:6])
layer_norm(x, (3, 6), eps=0.1); rms_norm(x, (6,), m[0]); group_norm(im, 2, w[:4], w[1:5]); local_response_norm(im, 3, alpha=0.5)
normalize(x, 1.0, 2); normalize(x, dim=0); normalize(x, eps=10.0); embedding(i, m); embedding(i, m, padding_idx=1)
embedding(i, m, scale_grad_by_freq=True); embedding(i, m.detach().clone(), max_norm=0.5); embedding_bag(i, m)
embedding_bag(i.flatten(), m, torch.tensor([0, 2, 2]), mode='sum', per_sample_weights=u.flatten()[:6]); embedding_bag(i, m, mode='max')
embedding_bag(i.flatten(), m, torch.tensor([0, 4, 6]), include_last_offset=True, padding_idx=2); one_hot(i); one_hot(i, 7)
cosine_similarity(x, y, 2); cosine_similarity(x, y[:, :1], eps=10.0); pairwise_distance(x, y, 3.0); pairwise_distance(x, y, 1, keepdim=True)
pdist(m); pdist(m, 1.0); l1_loss(x, y); l1_loss(x, y, reduction='none'); mse_loss(x, y); mse_loss(x, y, weight=y.abs()); mse_loss(x, y[:, :1])
smooth_l1_loss(x, y, beta=0.5); huber_loss(x, y, 'sum', 0.4); huber_loss(x, y, weight=y.abs()); kl_div(x, y)
kl_div(x, y, reduction='batchmean', log_target=True); poisson_nll_loss(x, y.abs(), full=True); poisson_nll_loss(x.abs(), y.abs(), False)
gaussian_nll_loss(x, y, y.abs() + 0.1); gaussian_nll_loss(x, y, 0.5, True); binary_cross_entropy(x.sigmoid(), y.sigmoid(), v)
binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=v[0, 0]); soft_margin_loss(x, s); cross_entropy(x, c)
cross_entropy(x, c, v[0, :, 0], label_smoothing=0.2, ignore_index=1); cross_entropy(x, y.softmax(1), reduction='sum')
cross_entropy(x[0, :, 0], c[0, 0]); cross_entropy(x, y.softmax(1), w[:3], label_smoothing=0.1, reduction='none'); nll_loss(x, c, v[0, :, 0])
nll_loss(im, c4, reduction='none', ignore_index=0); linear_cross_entropy(x[:, 0], m, torch.tensor([4, 0])); hinge_embedding_loss(x, s, 0.6)
margin_ranking_loss(x, y, s, 0.3); cosine_embedding_loss(m, m + 1, s[0, 0, :5], 0.2); multi_margin_loss(x[0], c0, 2, 0.7, v[0, 0])
multilabel_margin_loss(x[0], torch.tensor([[1, 3, -1, 0, 0, 0], [0, -1, 1, 1, 1, 1], [5, 4, 3, 2, 1, 0]]))
multilabel_soft_margin_loss(x, y.sigmoid(), w[:6]); triplet_margin_loss(x, y, y + 1, 0.7, 1.0, swap=True)
triplet_margin_with_distance_loss(x, y, y + 1, swap=True); ctc_loss(lp, ct, (5, 4), (2, 1))
ctc_loss(lp, ct, torch.tensor([5, 4]), torch.tensor([2, 1]), blank=3, reduction='sum', zero_infinity=True)
scaled_dot_product_attention(q, q + 1, q - 1, is_causal=True); scaled_dot_product_attention(q, q, q, torch.ones(3, 3).tril().bool(), scale=0.3)
scaled_dot_product_attention(q, q, q, q[:, :, :, :3], 0.4); scaled_dot_product_attention(q, q[:, :1], q[:, :1], enable_gqa=True)
multi_head_attention_forward(q3, q3, q3 + 1, 6, 2, m18, w[:18], None, None, False, 0.0, m6, None, need_weights=True)
"""  # noqa: E501
REFUSED = """
relu(5); dropout(x, 2.0); dropout2d(x, -0.1); softmax(x, 7); hardtanh(x, 2.0, 1.0); prelu(x, w[:2]); glu(x[:, :, :5]); linear(x, m[:, :2])
bilinear(x, x[:1], bl); conv1d(x, k2); conv2d(im, k2, stride=0); conv2d(im[:, :1], k2); max_pool2d(x[0, 0], 2); max_pool2d(im, 2, padding=3)
avg_pool1d(x, 9); adaptive_avg_pool2d(w, (2, 2)); adaptive_avg_pool1d(x, 1 << 63); adaptive_max_pool2d(im, 1 << 63)
pad(x, (1, 2, 3)); pad(im, (9, 0), 'reflect'); pad(x, (1, 1), 'nowhere'); unfold(im, 9)
fold(x, (4, 4), 2); pixel_shuffle(x, 2); interpolate(x); interpolate(x, 3, 2); interpolate(x, 3, mode='bilinear'); interpolate(im, 3, mode='cubic')
grid_sample(im, grid[:1]); batch_norm(x[:1, :, 0], mean, var, training=True); layer_norm(x, (5,)); group_norm(im, 3); instance_norm(x[:, :, :1])
embedding(x, m); embedding(i + 5, m); embedding_bag(i, m, i[0]); one_hot(i, 2); one_hot(-i); l1_loss(x, y, reduction='some')
mse_loss(x, y[:, :, :4]); cross_entropy(x, c + 9); cross_entropy(x, c[:1]); nll_loss(x, c, w); nll_loss(w, c); kl_div(x, i)
binary_cross_entropy(x, y); binary_cross_entropy_with_logits(x, y[:1]); cosine_embedding_loss(x, y, s); margin_ranking_loss(x, y[0], s)
multi_margin_loss(x[0], c0, 3); triplet_margin_loss(x, y, y, margin=-1.0); gaussian_nll_loss(x, y, -y.abs() - 1); huber_loss(x, y, delta=0.0)
smooth_l1_loss(x, y, beta=-1.0); scaled_dot_product_attention(q, q, q, q[:, :, :, :3], is_causal=True); scaled_dot_product_attention(w, w, w)
gumbel_softmax(x, dim=9); normalize(x, dim=5)
"""  # noqa: E501
calls = [call.strip() for line in CALLS.strip().split("\n") for call in line.split("; ")]
refused = [call.strip() for line in REFUSED.strip().split("\n") for call in line.split("; ")]


def arguments(engine):
    """The tensors of the calls; floating point ones require grad, but for running statistics and random numbers."""
    rng = np.random.default_rng(1)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)
    arrays = {
        "x": normal(2, 3, 6), "y": normal(2, 3, 6), "im": normal(2, 4, 4, 4), "vol": normal(2, 2, 4, 4, 4),
        "w": normal(20), "m": normal(5, 6), "k1": normal(2, 3, 3), "k2": normal(3, 4, 2, 3),
        "k3": normal(2, 2, 2, 2, 2), "k1t": normal(3, 2, 3), "k2t": normal(4, 1, 2, 2), "k3t": normal(2, 3, 2, 1, 2),
        "bl": normal(2, 6, 6), "tbc": normal(3, 6, 2), "grid": normal(2, 3, 5, 2) * 0.7,
        "grid3": normal(2, 2, 3, 2, 3) * 0.7, "theta": normal(2, 2, 3),
        "theta3": normal(2, 3, 4), "lp": normal(5, 2, 4), "q": normal(2, 2, 3, 4), "q3": normal(3, 2, 6),
        "m18": normal(18, 6), "m6": normal(6, 6)}
    fixed = {
        "mean": normal(3), "var": normal(3) ** 2, "mean4": normal(4), "var4": normal(4) ** 2,
        "v": np.abs(normal(2, 3, 6)), "s": np.sign(normal(2, 3, 6)), "u": np.abs(np.sin(normal(3, 2, 2))),
        "u2": np.abs(np.sin(normal(2, 4, 2))), "u3": np.abs(np.sin(normal(2, 2, 3))),
        "i": np.array([[0, 2, 2], [3, 1, 4]]), "c": rng.integers(0, 3, (2, 6)),
        "c4": rng.integers(0, 4, (2, 4, 4)),
        "c0": np.array([0, 5, 3]),
        "ct": np.array([[1, 2], [2, 3]])}
    device = DEVICE if engine is tensorgrad else "cpu"
    leaves = {name: engine.tensor(array, device=device, requires_grad=True) for name, array in arrays.items()}
    return leaves, leaves | {name: engine.tensor(array, device=device) for name, array in fixed.items()}


def evaluated(engine, call):
    """Return the results of a call, the gradients of its arguments, and the arguments afterwards, as arrays."""
    engine.manual_seed(4)
    leaves, names = arguments(engine)
    names = vars(engine.nn.functional) | names | {"torch": engine}
    if DEVICE != "cpu" and engine is tensorgrad:
        names["torch"] = _OnDevice(engine)
    result = eval(call, {**names})
    outputs = [one for one in (result if isinstance(result, tuple) else (result,)) if one is not None]
    roots = [(out * engine.arange(1.0, out.numel() + 1, device=out.device).reshape(out.shape).cos()).sum()
             for out in outputs if out.requires_grad]
    if roots:
        sum(roots).backward()
    gradients = {f"gradient of {name}": leaf.grad for name, leaf in leaves.items()}
    arguments_after = {name: value for name, value in names.items() if name in leaves or name in ("mean", "var")}
    return {f"result {k}": out for k, out in enumerate(outputs)} | gradients | arguments_after


class _OnDevice:
    """The engine, with new tensors on the device under test."""

    def __init__(self, engine):
        self.engine = engine

    def __getattr__(self, name):
        made = getattr(self.engine, name)
        return (lambda *args, **kw: made(*args, **kw, device=DEVICE)) if name in ("tensor", "ones") else made


def shown(tensor):
    return str(tensor.dtype), tuple(tensor.shape), tensor.requires_grad


RANDOM = ("dropout", "rrelu(x, 0.1, 0.3, True)", "rrelu_", "gumbel", "0.4)", "_random")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", calls)
def test_call(call):
    if DEVICE != "cpu" and any(word in call for word in RANDOM):
        pytest.skip("PyTorch's random numbers are those of its CPU")
    ours, theirs = evaluated(tensorgrad, call), evaluated(torch, call)
    for name, expected in theirs.items():
        found = ours[name]
        assert (found is None) == (expected is None), name
        if expected is not None:
            assert shown(found) == shown(expected), name
            np.testing.assert_allclose(found.detach().cpu().numpy(), expected.detach().numpy(), rtol=2e-4, atol=2e-5,
                                       err_msg=name)
    assert len(ours) == len(theirs)


@cpu_only
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", refused)
def test_refused(call):
    """A refused call raises PyTorch's type of exception, and leaves its arguments unchanged."""
    found = []
    for engine in (tensorgrad, torch):
        _, names = arguments(engine)
        before = {name: value.detach().clone() for name, value in names.items()}
        found.append(raising(partial(eval, call, vars(engine.nn.functional) | names | {"torch": engine}))[0])
        assert all(bool((names[name] == before[name]).all()) for name in before)
    assert isinstance(found[1], str) and found[0] == found[1]


def test_all_are_called():
    named = {call.partition("(")[0] for call in calls}
    assert named == set(tensorgrad.nn.functional.__all__)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions(n):
    """nn.grad beside PyTorch, and differentiable as the convolutions are."""
    found = []
    for engine in (tensorgrad, torch):
        names = arguments(engine)[1]
        x, w = ((names["x"], names["k1"]) if n == 1 else (names["im"], names["k2"]) if n == 2
                else (names["vol"], names["k3"]))
        convolve, grad = getattr(engine.nn.functional, f"conv{n}d"), engine.nn.grad
        out = convolve(x, w, stride=2, padding=1)
        g = (out * out).detach()
        found.append([part.detach().cpu().numpy() for part in (
            getattr(grad, f"conv{n}d_input")(x.shape, w, g, stride=2, padding=1),
            getattr(grad, f"conv{n}d_weight")(x, w.shape, g, 2, 1), *engine.autograd.grad(out, (x, w), g))])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)
    for one, other in zip(found[0][:2], found[0][2:]):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name, arguments", [("avg_pool2d", (2,)), ("avg_pool3d", (2,)), ("gelu", ()),
                                             ("linear", (tensorgrad.ones(3, 4),)), ("logsigmoid", ()),
                                             ("softplus", ()), ("softshrink", ())])
def test_results_written_to_out(name, arguments):
    function, x = getattr(tensorgrad.nn.functional, name), tensorgrad.arange(32.0).reshape(1, 2, 4, 4) - 10
    out = tensorgrad.empty(0)
    assert function(x, *arguments, out=out) is out and tensorgrad.equal(out, function(x, *arguments))


def test_dropout_of_samples_without_a_batch():
    """PyTorch takes all but five axes for a single sample."""
    for shape in ((4, 3), (4, 3, 2), (4, 3, 2, 2)):
        found = []
        for engine in (tensorgrad, torch):
            engine.manual_seed(2)
            with pytest.warns(UserWarning) if len(shape) < 4 else nullcontext():
                found.append(engine.nn.functional.dropout3d(engine.ones(shape), 0.5).numpy())
        np.testing.assert_array_equal(*found)
