"""Random programs on small tensors, for tests of what is recorded of them: shared inputs, broadcasting, views, writes,
loops, layers, losses.
"""
import numpy as np

import tensorgrad as torch

F = torch.nn.functional
MASK = torch.tensor([[True, False, True, True], [False, False, True, False], [True, True, False, True]])
SHAPES = {"x": (3, 4), "y": (3, 4), "w": (4, 4), "v": (4,), "c": (3, 1)}


def leaves_of(seed, change=0, dtype="float64"):
    """The leaves of a program, as arrays; `change` draws them near those of 0."""
    rng = np.random.default_rng(seed)
    arrays = {name: rng.uniform(-1.2, 1.2, shape) for name, shape in SHAPES.items()}
    near = np.random.default_rng([seed, change])
    return {name: (a + 0.2 * near.uniform(-1, 1, a.shape) * bool(change)).astype(dtype) for name, a in arrays.items()}


def unary(h, rng, leaf):
    f = rng.choice([torch.tanh, torch.sigmoid, torch.sin, torch.exp, F.relu, F.gelu, F.silu, F.softplus, F.elu,
                    torch.square, torch.abs,
                    F.leaky_relu, torch.atan, torch.erf, torch.expm1, lambda t: torch.maximum(t, leaf["y"]),
                    lambda t: 1 / t.exp(),
                    lambda t: torch.log(t * t + leaf["v"].exp()), lambda t: torch.sqrt(t * t + t.exp()),
                    lambda t: t.clamp(-0.9, 0.8),
                    lambda t: F.softmax(t, -1), lambda t: F.log_softmax(t, 0), lambda t: t.cumsum(1)])
    return f(h)


def curve(h, rng, leaf):
    """Functions whose gradients have gradients everywhere.

    (Masks and places in a gradient stay, on the tape, what they were.)
    """
    f = rng.choice([torch.tanh, torch.sigmoid, torch.sin, F.silu, torch.square, F.gelu, lambda t: F.softmax(t, -1),
                    lambda t: F.log_softmax(t, 0)])
    return f(h)


def binary(h, rng, leaf):
    other = leaf[str(rng.choice(["y", "v", "c", "x"]))]
    f = rng.choice([torch.add, torch.sub, torch.mul, lambda a, b: a / (b * b).exp(),
                    lambda a, b: torch.where(MASK, a, b * 2),
                    torch.logaddexp, torch.atan2, lambda a, b: torch.lerp(a, b.expand(3, 4), 0.3)])
    return f(h, other)


def linear(h, rng, leaf):
    w, v = leaf["w"], leaf["v"]
    f = rng.choice([lambda t: t @ w, lambda t: F.linear(t, w, v), lambda t: F.linear(t, w),
                    lambda t: (t @ t.t()) @ leaf["y"],
                    lambda t: torch.einsum("ij,kj->ik", t, w), lambda t: t * (t @ v).unsqueeze(1),
                    lambda t: torch.outer(t @ v, v)])
    return f(h)


def reduced(h, rng, leaf):
    f = rng.choice([lambda t: t - t.mean(1, keepdim=True), lambda t: t / (t.var(1, keepdim=True).exp()),
                    lambda t: t * t.sum(0),
                    lambda t: t - t.amax(), lambda t: t + t.max(1, keepdim=True).values, lambda t: t * t.norm(),
                    lambda t: t * t.std(),
                    lambda t: t * t.logsumexp(0), lambda t: F.layer_norm(t, (4,), leaf["v"], leaf["v"]),
                    lambda t: t * t.min(0)[0],
                    lambda t: F.rms_norm(t, (4,), leaf["v"])])
    return f(h)


def moved(h, rng, leaf):
    f = rng.choice([lambda t: t.reshape(4, 3).t(), lambda t: torch.cat([t[:, 2:], t[:, :2] * 2], 1),
                    lambda t: t.flip(0), lambda t: t.roll(1, 1),
                    lambda t: torch.stack(t.unbind(0)[::-1]), lambda t: t[torch.tensor([2, 0, 0])], lambda t: t.tril(),
                    lambda t: t.sort(1)[0],
                    lambda t: t.gather(1, torch.tensor([[3, 0, 1, 1]] * 3)), lambda t: F.pad(t[:, 1:], (1, 0)),
                    lambda t: t[:1].expand(3, 4),
                    lambda t: t.index_select(1, torch.tensor([1, 1, 0, 3])), lambda t: t.repeat(1, 2)[:, ::2],
                    lambda t: t.topk(2, 1)[0].repeat(1, 2),
                    lambda t: t.masked_fill(torch.tensor([True, False, False, True]), 0.5),
                    lambda t: torch.cat([a * (i + 2) for i, a in enumerate(t.split([1, 3], 1))], 1)])
    return f(h)


def written(h, rng, leaf):
    """Writes in place, into the whole or through a view."""
    h = h * leaf["c"]
    kind = rng.integers(8)
    if kind == 0:
        h[1] = leaf["v"] * 3
    elif kind == 1:
        h.mul_(leaf["y"])
    elif kind == 2:
        h[:, 1:3].mul_(leaf["c"])
    elif kind == 3:
        h.t()[0].copy_(leaf["x"][:, 1])
    elif kind == 4:
        h[torch.tensor([0, 2])] = leaf["y"][1:]
    elif kind == 5:
        h.tanh_()
    elif kind == 6:
        h.view(2, 6)[0, 1:4].sub_(leaf["x"][0, :3])
    else:
        h.index_add_(0, torch.tensor([1, 1]), leaf["y"][:2])
    return h


def layered(h, rng, leaf):
    """Layers of images, sequences and attention."""
    w, v, x, y, c = (leaf[name] for name in "wvxyc")
    f = rng.choice([lambda t: F.conv1d(t[None], w[:3, :3].reshape(3, 3, 1), c[:, 0])[0],
                    lambda t: F.max_pool1d(t[None], 2)[0].repeat(1, 2),
                    lambda t: F.conv2d(t[None, None], w[None, None, :3, :3], padding=1)[0, 0],
                    lambda t: F.avg_pool2d(t[None], 3, 1, 1)[0],
                    lambda t: F.scaled_dot_product_attention(t[None], y[None], x[None])[0],
                    lambda t: F.embedding(torch.tensor([1, 0, 2]), t),
                    lambda t: F.group_norm(t[None], 3)[0], lambda t: F.batch_norm(t, None, None, v, v, training=True)])
    return f(h)


LOSSES = [lambda t, leaf: (t * t).mean(), lambda t, leaf: F.mse_loss(t, leaf["y"]),
          lambda t, leaf: F.cross_entropy(t, torch.tensor([0, 3, 1])),
          lambda t, leaf: F.binary_cross_entropy_with_logits(t, MASK.to(t.dtype)),
          lambda t, leaf: F.smooth_l1_loss(t, leaf["y"]),
          lambda t, leaf: (t * leaf["v"]).sum(), lambda t, leaf: F.l1_loss(t, leaf["y"] * 3),
          lambda t, leaf: (t.softmax(1) * leaf["x"]).sum(),
          lambda t, leaf: F.kl_div(t.log_softmax(1), leaf["y"].softmax(1), reduction="batchmean"),
          lambda t, leaf: t.prod(1).sum() + t.sum()]
MOVES = [unary, unary, binary, binary, linear, linear, reduced, moved, moved, written, written, layered]


def program(seed, arrays):
    """(loss, leaves by name) of the program of a seed on some arrays.

    One in four is smooth, so that gradients may be differentiated again.
    """
    rng, smooth = np.random.default_rng([seed, 99]), seed % 4 == 0
    moves = [curve, binary, linear] if smooth else MOVES
    leaf = {name: torch.tensor(a, requires_grad=True) for name, a in arrays.items()}
    h = leaf["x"] * leaf["v"]
    for _ in range(rng.integers(2, 6)):
        h = tamed(moves[rng.integers(len(moves))](h, rng, leaf), rng)
    if rng.integers(3) == 0:            # a loop with shared weights
        for _ in range(3):
            h = torch.tanh(h @ leaf["w"] + leaf["y"])
    loss = LOSSES[rng.integers(len(LOSSES))](h, leaf) if not smooth else (h * h).mean()
    if smooth and rng.integers(3) == 0:            # gradients of gradients
        g, = torch.autograd.grad(loss, leaf["x"], create_graph=True)
        loss = (g * g).sum() + loss
    return loss, leaf


def tamed(h, rng):
    """Values kept small, now and then."""
    return h if rng.integers(2) else torch.tanh(h)
