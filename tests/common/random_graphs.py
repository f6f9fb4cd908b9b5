"""Random modules as texts, to test the compiler: convolutions, norms, attention, recurrent layers,
chains of elementwise ops, reductions, views, writes in place, shared weights, several outputs.

`program(seed)` is the text of one. It makes a class `Net` and a function `inputs(batch, seed)`, and ends with a call of
`compare`, which the runner of the text defines. Each step was run once while it was written, so that steps that fail or
whose numbers are not moderate are left out. Ops that jump (comparisons, roundings) are applied to exact values
alone, that is to inputs and what was computed of them without rounding.
"""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.ops.base import OPS

F = nn.functional
UNARY = ["torch.tanh({0})", "torch.sigmoid({0})", "F.relu({0})", "F.gelu({0})", "F.silu({0})", "F.hardswish({0})",
         "torch.exp(-{0}.abs())", "{0} * {0}", "torch.sqrt({0}.abs() + 0.1)", "F.relu6({0})", "F.leaky_relu({0}, 0.2)",
         "torch.clamp({0}, -0.7, 1.1)", "-{0}", "{0}.abs()", "{0} * 0.5 + 1", "1 - {0}", "F.softplus({0})",
         "{0}.square() + 1e-3", "torch.erf({0})", "torch.sin({0})", "F.elu({0})", "1 / (1 + {0} * {0})", "F.mish({0})",
         "torch.rsqrt({0} * {0} + 0.5)", "torch.log1p({0}.abs())", "F.gelu({0}, approximate='tanh')", "{0} / 3",
         "{0}.pow(3) * 0.1", "F.hardsigmoid({0})", "{0} + 0", "{0} * 1", "F.hardtanh({0})", "torch.cos({0}) - 1",
         "torch.where({0} == {0}, {0}, 0.)", "F.logsigmoid({0})", "torch.expm1({0} * 0.1)", "2 - {0} * 3",
         "{0}.clamp(min=0.2)", "{0}.neg().exp().clamp(max=2)", "F.threshold({0}, 0.1, 0.1)", "F.softsign({0})",
         "torch.tan({0} * 0.3)", "torch.atan({0})", "torch.asinh({0})", "torch.cosh({0}.clamp(-2, 2))",
         "torch.exp2({0})", "torch.log2({0}.abs() + 0.1)", "torch.log10({0} * {0} + 1e-3)", "({0}.abs() + 0.1) ** 0.75",
         "torch.sinc({0})", "0.7 ** {0}", "torch.special.logit({0}, 0.1)", "torch.deg2rad({0})",
         "torch.sin(30 * {0}) + torch.cos({0})"]
BINARY = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "torch.maximum({0}, {1})", "{0} / (1 + {1} * {1})", "{1} - {0}",
          "torch.minimum({1}, {0})", "torch.addcmul({0}, {1}, {0}, value=0.5)", "torch.lerp({0}, {1}, 0.3)",
          "{0} + 0.5 * {1}", "torch.add({0}, {1}, alpha=-2)", "F.silu({0}) * {1}", "torch.atan2({0}, {1}.abs() + 1)",
          "torch.hypot({0}, {1})", "torch.logaddexp({0}, {1})",
          "({0}.abs() + 0.2) ** {1}.tanh()", "{0} * torch.sigmoid({1})", "{0} + {1} * {1} - {0}"]
EXACT_UNARY = ["F.relu({0})", "-{0}", "{0}.abs()", "{0}.clamp(-0.7, 1.1)", "{0}.clone()", "F.relu6({0})", "{0} * 1",
               "torch.where({0} > 0.1, {0}, {0}.new_tensor(-1.))", "{0}.sign() * {0}", "F.hardtanh({0})",
               "{0}.masked_fill({0} < -0.5, 0.25)", "{0} * 2", "F.threshold({0}, 0., 0.)", "{0}.nan_to_num(0.5)"]
JUMPS = ["torch.floor({0} * 4)", "torch.round({0})", "({0} > 0.2).to({0}.dtype) * {0}", "{0}.sign()", "{0}.trunc()",
         "torch.where(({0} > -0.3) & ({0} < 1), {0}, -{0})", "{0}.half().to({0}.dtype)", "({0} * 8).int() // 3 * 0.5",
         "({0} * 10).long().remainder(4).to({0}.dtype)", "({0} >= 0).logical_not().float().to({0}.dtype)",
         "F.one_hot({0}.argmax(-1), {0}.shape[-1]).to({0}.dtype)", "{0}.isfinite() * {0}", "torch.frac({0})",
         "(({0} * 4).int() ^ 3).to({0}.dtype)", "torch.heaviside({0}, {0}.abs())", "{0} % 0.75",
         "torch.fmod({0}, 1.25)", "{0}.signbit() * {0}", "torch.floor_divide({0}, 0.25)", "F.hardshrink({0}, 0.4)"]
REDUCED = ["{0}.mean({d}, keepdim=True)", "{0}.sum({d}, keepdim=True) * 0.1", "{0}.amax({d}, keepdim=True)",
           "{0}.amin({d}, keepdim=True)", "{0}.var({d}, keepdim=True)", "{0}.std({d}, unbiased=False, keepdim=True)",
           "{0}.logsumexp({d}, keepdim=True)", "{0}.norm(dim={d}, keepdim=True)", "{0}.max({d}, keepdim=True).values",
           "torch.softmax({0}, {d})", "torch.log_softmax({0}, {d})", "{0}.cumsum({d}) * 0.1",
           "F.normalize({0}, dim={d})", "{0}.sum({d}, keepdim=True).clamp(-2, 2)", "{0}.sort({d})[0]",
           "{0}.square().mean({d}, keepdim=True).sqrt()", "{0}.prod({d}, keepdim=True).tanh()",
           "{0}.min({d}, keepdim=True)[0]", "({0}.exp() - 1).logsumexp({d}, keepdim=True)",
           "{0}.norm(1, {d}, True) * 0.1", "{0}.isfinite().all({d}, keepdim=True) * {0}"]
WRITES = ["h.mul_(0.5)", "h[:, 1:3] *= 2", "h[:, 0] = 0.5", "h.relu_()", "h[..., ::2] += 1", "h.clamp_(-1, 1)",
          "h[1:].sub_(h[:-1].clone())", "h.tanh_()", "h.add_({p})", "h[..., 1] = h[..., 0]",
          "h.flatten(1)[:, :2].neg_()", "h[:, -1].copy_({p}.sum() * 0.1)",
          "h.transpose(0, -1)[0].exp_().clamp_(max=2)", "h.fill_(0.25).add_({p})",
          "h.masked_fill_(torch.arange(h.shape[-1]) > 2, 0.75)", "h[:, torch.tensor([0, 1])] = 0.125",
          "h.index_add_(1, torch.tensor([0]), h[:, :1].clone())", "torch.sin(h, out=h)", "h.zero_().add_({p})"]
# views and moves that keep the first axis, by the number of axes
MOVES = {
    2: ["h[:, 1:]", "h[:, ::2]", "h.flip(1)", "h.roll(1, 1)", "torch.cat([h, h[:, :2]], 1)", "h.unsqueeze(1)",
        "torch.cat([h[:, 2:], h[:, :2] * 2], 1)", "h.reshape(h.shape[0], -1, 1)", "h.repeat(1, 2)", "h.t().t()",
        "h[:, torch.tensor([1, 0, 1])]", "torch.stack([h, -h], 2).flatten(1)", "F.pad(h, (1, 2))", "h.contiguous()",
        "torch.stack(h.unbind(1)[::-1], 1)", "h.split([1, h.shape[1] - 1], 1)[1]", "h.chunk(2, 1)[0]", "h.tril(1)",
        "h.topk(2, 1)[0].repeat(1, 3)", "h.unsqueeze(-1).expand(-1, -1, 3)", "h.index_select(1, torch.tensor([0, 1]))",
        "h.gather(1, torch.tensor([[1, 0, 1, 0]]).expand(h.shape[0], -1))", "h.squeeze()", "h.T.contiguous().T"],
    3: ["h.transpose(1, 2)", "h[:, 0]", "h[:, 1:]", "h[:, :, ::2]", "h.flatten(1)", "h.flip(2)", "h.mean(1)",
        "h.roll(1, 1)", "torch.cat([h, h.flip(1)], 1)", "h.unsqueeze(1)", "h.amax(2)", "h.reshape(h.shape[0], -1)",
        "F.pad(h, (0, 1, 2, 0))", "h.transpose(0, 1).contiguous().transpose(0, 1)", "h[:, -1, :]", "h.repeat(1, 2, 1)",
        "torch.cat([h[..., :1], h], -1)", "h.sum(2)", "h.permute(0, 2, 1).contiguous()", "h.unflatten(2, (1, -1))",
        "h[:, None, ..., 1:].squeeze(1)", "h.tril()", "h.movedim(1, 2)", "torch.einsum('nij,nkj->nik', h, h) * 0.2"],
    4: ["h.mean((2, 3))", "h.flatten(1)", "h.flatten(2)", "h.flatten(2).transpose(1, 2)", "h[:, :, 1:, :-1]",
        "h.permute(0, 2, 3, 1)", "torch.cat([h, h * 2], 1)", "h[:, ::2]", "h.flip(3)", "h.amax(1)",
        "F.pad(h, (1, 1, 0, 1))", "h.transpose(2, 3)", "h.mean(-1)", "h.contiguous(memory_format=torch.channels_last)",
        "h.reshape(h.shape[0], h.shape[1], -1)", "h[:, :, ::2, ::2]", "h.chunk(2, 1)[0]", "h[..., 0]",
        "torch.cat([h[:, 1:], h[:, :1]], 1)", "h.repeat(1, 2, 1, 1)", "h.sum(2, keepdim=True)",
        "h.roll((1, -1), (2, 3))", "torch.cat([h, h.flip(2)], 2)", "h.mean((2, 3), keepdim=True)"]}
MOVES[5] = ["h.flatten(1, 2)", "h.flatten(2)", "h[:, :, 0]", "h.mean((3, 4))", "h.transpose(1, 2)"]


class Writer:
    """Writes a program, step by step, and runs each step on small example inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 5])
        self.seed, self.made, self.steps = seed, list[str](), list[str]()
        self.exact, self.saved, self.layers = {"x"}, ["x"], dict[str, tuple[str, Any]]()
        self.dtype = str(self.pick(["float32"] * 6 + ["float64"]))
        self.net = nn.Module()
        self.net.register_buffer("seen", torch.zeros((), dtype=getattr(torch, self.dtype)))
        self.net.count, self.net.notes, self.net.scale, self.net.kept = 1, [], 0.5, None    # type: ignore[assignment]
        self.names: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "self": self.net, "draw": draw,
                                      "tokens": tokens}

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, one_in: int) -> bool:
        return int(self.rng.integers(one_in)) == 0

    @property
    def h(self) -> Any:
        return self.names["h"]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.h.shape)

    def layer(self, text: str) -> str:
        """Make a layer, or take one that another step uses, if it was made by the same text; return its name."""
        if text in self.layers and not self.chance(3):
            return self.layers[text][0]
        name = f"layer{len(self.made)}"
        made = eval(text, self.names)
        setattr(self.net, name, made.to(getattr(torch, self.dtype)).eval() if isinstance(made, nn.Module) else made)
        self.made.append(f"self.{name} = {text}")
        self.layers[text] = f"self.{name}", made
        return f"self.{name}"

    def parameter(self) -> str:
        """A parameter that broadcasts to h, or a number, or an earlier value of the shape."""
        shape = self.shape
        alike = [name for name in self.saved if self.names[name].shape == self.h.shape
                 and self.names[name].dtype == self.h.dtype]
        if alike and not self.chance(3):
            return str(self.pick(alike))
        if self.chance(6):
            return str(self.pick(["0.3", "torch.tensor(1.5)", "torch.tensor([0.5]).to(h.dtype)"]))
        last = [shape[-1:], (1,), (), (*shape[1:2], *[1] * (len(shape) - 2)), (1, *shape[1:])]
        wanted = tuple(int(n) for n in self.pick(last))
        return self.layer(f"nn.Parameter(torch.randn({wanted}, dtype=torch.{self.dtype}))")

    def step(self, *lines: str, exact: bool = False) -> bool:
        """Run lines, and write them if they run and their numbers are tame."""
        before, given = dict(self.names), len(self.made)
        written = {name: value.clone() for name, value in before.items() if isinstance(value, torch.Tensor)}
        layers = dict(self.layers)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("error")
                for line in lines:
                    exec(line, self.names)
            if not (isinstance(self.h, torch.Tensor) and tame(self.h)):
                raise ValueError
        except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError, AttributeError,
                Warning):
            self.names.clear()
            self.names.update(before, **written)
            del self.made[given:]
            self.layers = layers
            return False
        self.steps += lines
        (self.exact.add if exact else self.exact.discard)("h")
        return True

    def save(self) -> None:
        name = f"r{len(self.saved)}"
        self.step(f"{name} = h", exact="h" in self.exact)
        self.saved.append(name)
        if "h" in self.exact:
            self.exact.add(name)


def tame(h: Any) -> bool:
    """Return True if the numbers of a tensor are finite and moderate, and not too many."""
    return (0 < h.numel() < 100_000 and 0 < h.ndim < 6 and h.dtype.is_floating_point and bool(h.isfinite().all())
            and float(h.abs().max()) < 50)


def draw(shape: Any, seed: int, dtype: str = "float32", special: bool = False) -> Any:
    """Random numbers; with `special`, NaN, infinity and zeros of both signs among them."""
    rng = np.random.default_rng([seed, math.prod(shape)])
    x = rng.standard_normal(shape)
    if special and x.size:
        spots = rng.integers(x.size, size=4)
        x.reshape(-1)[spots] = [math.nan, math.inf, -0.0, 0.0][:len(spots)]
    return torch.from_numpy(np.array(x, dtype))


def tokens(shape: Any, seed: int) -> Any:
    return torch.from_numpy(np.random.default_rng([seed, 3]).integers(0, 11, shape))


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def chain(w: Writer) -> None:
    """A few elementwise ops, in a line each or in one expression."""
    for _ in range(w.rng.integers(1, 6)):
        if w.chance(2):
            w.step(f"h = {w.pick(UNARY).format('h')}")
        else:
            w.step(f"h = {w.pick(BINARY).format('h', w.parameter())}")


def exact_chain(w: Writer) -> None:
    """Ops without rounding, and jumps, as long as the value is exact."""
    if "h" not in w.exact:
        return chain(w)
    for _ in range(w.rng.integers(1, 4)):
        jump = w.chance(3)
        w.step(f"h = {w.pick(JUMPS if jump else EXACT_UNARY).format('h')}", exact=True)


def reduced(w: Writer) -> None:
    d = w.pick([-1, 1, *range(len(w.shape))])
    text = w.pick(REDUCED).format("h", d=d)
    w.step(f"h = {w.pick(['{}', 'h - {}', 'h * {}', 'h / (1 + {}.abs())', '{} + h']).format(text)}")


def moved(w: Writer) -> None:
    text = w.pick(MOVES.get(len(w.shape), ["h.flatten(1)"]))
    sums = any(word in text for word in ("mean", "sum", "einsum", "* 2"))
    w.step(f"h = {text}", exact="h" in w.exact and not sums)


def write(w: Writer) -> None:
    text = w.pick(WRITES)
    w.step("h = h * 1.5", text.format(p=w.parameter()) if "{p}" in text else text)


def residual(w: Writer) -> None:
    """A block of other steps, and its input added."""
    w.save()
    name = w.saved[-1]
    for _ in range(w.rng.integers(1, 3)):
        w.pick([chain, product, layered, normed])(w)
    w.step(f"h = {w.pick(['h + {}', '{} + h', 'F.relu(h + {})', 'F.relu({} - h)', 'h * {}']).format(name)}")


def joined(w: Writer) -> None:
    """An earlier value beside this one."""
    fitting = [name for name in w.saved if (s := w.names[name].shape)[:1] == w.h.shape[:1] and len(s) == len(w.shape)
               and s[2:] == w.h.shape[2:] and w.names[name].dtype == w.h.dtype]
    if fitting:
        w.step(f"h = torch.cat([{w.pick(fitting)}, h], 1)")


def product(w: Writer) -> None:
    n, m = w.shape[-1], int(w.pick([1, 2, 3, 5, 8, 16, 17, 32, 40]))
    bias = w.pick([True, True, False])
    w.step(f"h = {w.layer(f'nn.Linear({n}, {m}, bias={bias})')}(h)")
    if w.chance(2):
        w.step(f"h = {w.pick(['F.relu(h)', 'F.gelu(h)', 'torch.tanh(h)', 'F.silu(h)', 'torch.sigmoid(h)'])}")


def matmul(w: Writer) -> None:
    n, m = w.shape[-1], int(w.pick([1, 3, 8, 16, 20]))
    weight = w.layer(f"nn.Parameter(torch.randn({n}, {m}, dtype=torch.{w.dtype}) * 0.3)")
    w.step("h = " + w.pick(["h @ {}", "torch.matmul(h, {}) + 0.5", "h @ {} * 0.7",
                            "torch.einsum('...i,ij->...j', h, {})"]).format(weight))


def normed(w: Writer) -> None:
    shape, c = w.shape, w.shape[1] if len(w.shape) > 1 else 1
    groups = int(w.pick([g for g in range(1, c + 1) if c % g == 0]))
    options = [f"nn.LayerNorm({shape[-1]})", f"nn.RMSNorm({shape[-1]})", f"nn.LayerNorm({list(shape[1:])})",
               f"nn.GroupNorm({groups}, {c})", f"nn.LayerNorm({shape[-1]}, elementwise_affine=False)"]
    if len(shape) < 6:
        kind = {2: "1d", 3: "1d", 4: "2d", 5: "3d"}[max(len(shape), 2)]
        options += 3 * [f"nn.BatchNorm{kind}({c}, affine={w.pick([True, True, False])})"]
    if len(shape) in (3, 4):
        options.append(f"nn.InstanceNorm{len(shape) - 2}d({c}, affine=True)")
    w.step(f"h = {w.layer(w.pick(options))}(h)")
    if w.chance(3):
        w.step("h = F.relu(h)")


def layered(w: Writer) -> None:
    {3: sequence, 4: image}.get(len(w.shape), product)(w)


def image(w: Writer) -> None:
    """A layer of images: convolutions mostly, with what often follows them."""
    c, k = w.shape[1], int(w.pick([1, 1, 2, 3, 3, 3, 5]))
    out = int(w.pick([1, 3, 4, 8, 16, 17, 24, 32, 48, c]))
    groups = int(w.pick([1, 1, 1, c, *[g for g in (2, 4) if c % g == 0]]))
    out = out if out % groups == 0 else groups * int(w.pick([1, 2]))
    more = {"stride": w.pick([1, 1, 1, 2, 3]), "padding": w.pick([0, k // 2, k // 2, 1]),
            "dilation": w.pick([1, 1, 1, 2]), "groups": groups, "bias": w.pick([True, True, False])}
    if w.chance(9):
        more["padding_mode"] = repr(w.pick(["circular", "reflect", "replicate"]))
    text = ", ".join(f"{name}={value}" for name, value in more.items())
    kind = int(w.rng.integers(12))
    if kind == 0:
        w.step(f"h = {w.layer(f'nn.ConvTranspose2d({c}, {out}, {k}, stride={w.pick([1, 2])}, groups={groups})')}(h)")
    elif kind == 1:
        w.step(f"h = {w.pick(POOLS)}")
    elif kind == 2:
        w.step(f"h = {w.pick(RESIZES)}")
    elif kind == 3:                                     # squeeze and excite
        m = max(c // 2, 1)
        w.step("s = h.mean((2, 3), keepdim=True)", f"s = F.relu({w.layer(f'nn.Conv2d({c}, {m}, 1)')}(s))",
               f"h = h * torch.sigmoid({w.layer(f'nn.Conv2d({m}, {c}, 1)')}(s))")
    else:
        w.step(f"h = {w.layer(f'nn.Conv2d({c}, {out}, {k}, {text})')}(h)")
        if w.chance(2):
            w.step(f"h = {w.layer(f'nn.BatchNorm2d({w.shape[1]})')}(h)")
        if w.chance(2):
            w.step(f"h = {w.pick(['F.relu(h)', 'F.relu6(h)', 'F.hardswish(h)', 'F.silu(h)', 'F.leaky_relu(h, 0.1)'])}")


POOLS = ["F.max_pool2d(h, 2)", "F.avg_pool2d(h, 2)", "F.max_pool2d(h, 3, 2, 1)", "F.avg_pool2d(h, 3, 1, 1)",
         "F.adaptive_avg_pool2d(h, 1)", "F.adaptive_avg_pool2d(h, (2, 3))", "F.adaptive_max_pool2d(h, 2)",
         "F.max_pool2d(h, 2, ceil_mode=True)", "F.avg_pool2d(h, 2, count_include_pad=False, padding=1)",
         "F.lp_pool2d(h.abs() + 0.1, 2, 2)", "F.max_pool2d(h, 3, stride=1, dilation=2)"]
RESIZES = ["F.interpolate(h, scale_factor=2)", "F.interpolate(h, size=(5, 4), mode='bilinear')",
           "F.interpolate(h, scale_factor=2, mode='bilinear', align_corners=True)", "F.unfold(h, 2)",
           "F.pixel_shuffle(h.repeat(1, 4, 1, 1), 2)", "F.pixel_unshuffle(h[:, :, :h.shape[2] // 2 * 2, :2], 2)",
           "F.channel_shuffle(torch.cat([h, -h], 1), 2)", "F.local_response_norm(h, 3)"]


def sequence(w: Writer) -> None:
    """A layer of sequences: attention, recurrent layers, convolutions along the sequence."""
    length, width = w.shape[1:]
    kind = int(w.rng.integers(8))
    heads = int(w.pick([n for n in (1, 2, 4) if width % n == 0]))
    if kind == 0:
        rnn = w.layer(f"nn.{w.pick(['LSTM', 'LSTM', 'GRU', 'RNN'])}({width}, {w.pick([3, 8, 16])}, num_layers="
                      f"{w.pick([1, 2])}, bidirectional={w.pick([True, False, False])}, batch_first=True)")
        w.step(f"h = {rnn}(h)[0]")
    elif kind == 1:
        w.step(f"h = {w.layer(f'nn.MultiheadAttention({width}, {heads}, batch_first=True)')}(h, h, h)[0]")
    elif kind in (2, 3):
        part = f"reshape(h.shape[0], -1, {heads}, {width // heads}).transpose(1, 2)"
        qkv = w.layer(f"nn.Linear({width}, {3 * width})")
        more = w.pick(["", ", is_causal=True", ", attn_mask=torch.ones(h.shape[1], h.shape[1]).tril().bool()",
                       ", scale=0.2"])
        w.step(f"q, k, v = {qkv}(h).chunk(3, -1)", f"q, k, v = (t.{part} for t in (q, k, v))",
               f"h = F.scaled_dot_product_attention(q, k, v{more}).transpose(1, 2).flatten(2)")
    elif kind == 4:
        w.step("s = h @ h.transpose(1, 2) * 0.2", "h = torch.softmax(s, -1) @ h")
    elif kind == 5:
        w.step(f"h = {w.layer(f'nn.Conv1d({length}, {w.pick([4, 8, length])}, 3, padding=1)')}(h)")
    elif kind == 6:
        w.step(f"h = {w.layer(f'nn.Linear({width}, {2 * width})')}(h)", "h = F.gelu(h)",
               f"h = {w.layer(f'nn.Linear({2 * width}, {width})')}(h)")
    else:
        w.step("h = " + w.pick(["F.max_pool1d(h, 2)", "F.avg_pool1d(h, 2)", "F.glu(h, 1)",
                                "F.adaptive_avg_pool1d(h, 3)"]))


def branches(w: Writer) -> None:
    """Two or three ways from one value, joined along the channels, added or multiplied."""
    w.save()
    start, ends = w.saved[-1], list[str]()
    for _ in range(w.rng.integers(2, 4)):
        w.step(f"h = {start}", exact=start in w.exact)
        for _ in range(w.rng.integers(0, 3)):
            layered(w)
        w.save()
        ends.append(w.saved[-1])
    w.step("h = " + w.pick([f"torch.cat([{', '.join(ends)}], 1)", " + ".join(ends), " * ".join(ends)]))


EFFECTS = ["self.seen.add_(1)", "self.count += 1", "x.mul_(0.5)", "x[..., 0] = 0.25", "h = h * self.count + 1",
           "h = h + torch.rand(h.shape[-1:])", "h = h * 2 if h.mean() > 0 else h", "self.kept = h", "h = h + self.seen",
           "h = F.dropout(h, 0.3, True)", "h = h * float(h.abs().max() + 1)", "self.kept = None", "h = h + self.scale",
           "h = h + len(self.notes)", "self.notes.append('called')", "h = h[:int(h.shape[0])]",
           "x.view(-1)[:2].zero_()", "h = h * float(next(self.parameters(), h.new_tensor(2.)).abs().max())"]


def effect(w: Writer) -> None:
    """Reads and changes what is outside of the graph: inputs, buffers, attributes, random numbers, values."""
    w.step(w.pick(EFFECTS).replace("torch.rand(h.shape[-1:])", f"torch.rand(h.shape[-1:], dtype=torch.{w.dtype})"))


STEPS: dict[str, list[Callable[[Writer], None]]] = {
    "all": [chain, chain, exact_chain, reduced, moved, moved, write, residual, joined, product, matmul, normed, layered,
            layered, layered],
    "layers": [layered, layered, layered, layered, residual, joined, branches, normed, chain],
}


STATE = """self.register_buffer('seen', torch.zeros((), dtype=torch.{0}))
self.count, self.notes, self.scale, self.kept = 1, [], 0.5, None"""

# ── programs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def program(seed: int) -> str:
    """The text of a program: `Net`, `inputs`, and the call of `compare`."""
    w = Writer(seed)
    torch.manual_seed(seed)
    drawn, kind = _inputs(w)
    w.names |= {"batch": kind, "seed": seed}
    exec(f"x, *rest = ({', '.join(text.replace(', special=True', '') for text in drawn)},)", w.names)
    names = ["x", *(["y"] if len(drawn) > 1 else [])]
    if len(drawn) > 1:
        w.names["y"] = w.names["rest"][0]
        w.saved.append("y")
        w.exact.add("y")
    if w.names["x"].dtype is torch.int64:
        w.step(f"h = {w.layer(f'nn.Embedding(11, {w.pick([8, 12, 16])})')}(x)", exact=True)
    else:
        w.step("h = x", exact=True)
    steps, stateful = STEPS[w.pick(["all", "all", "layers"])], w.chance(8)
    for _ in range(w.rng.integers(2, 9)):
        w.pick(steps)(w)
        if stateful and w.chance(2):
            effect(w)
        if w.chance(4):
            w.save()
    body = "\n        ".join(["super().__init__()", *w.made, *STATE.format(w.dtype).splitlines() * stateful])
    result, exact = _outputs(w)
    steps = "\n        ".join([*w.steps, f"return {result}"])
    return (f"class Net(nn.Module):\n    def __init__(self):\n        {body}\n"
            f"    def forward({', '.join(['self', *names])}):\n        {steps}\n"
            f"def inputs(batch, seed):\n    return ({', '.join(drawn)},)\n"
            f"compare(Net, inputs, seed={seed}, batch={kind}, dtype='{w.dtype}', exact={exact}"
            f"{', stateful=True' * stateful})\n")


def _inputs(w: Writer) -> tuple[list[str], int]:
    """Return the texts of the inputs, and a batch size."""
    batch = int(w.pick([1, 2, 2, 3, 5, 8]))
    more = (f", '{w.dtype}'" if w.dtype != "float32" else "") + (", special=True" if w.chance(12) else "")
    n, m = (int(w.pick([3, 4, 5, 7, 8, 9, 13, 16])) for _ in range(2))
    kind = w.pick(["image", "image", "image", "sequence", "vector", "tokens"])
    c, deep = int(w.pick([1, 3, 4, 8, 16, 16, 20, 32])), int(w.pick([4, 6, 8, 16]))
    shape = {"image": f"batch, {c}, {n + 2}, {m + 2}", "sequence": f"batch, {n}, {deep}", "vector": f"batch, {n}"}
    if kind == "tokens":
        return [f"tokens((batch, {n}), seed)"], batch
    first = f"draw(({shape[kind]}), seed{more})"
    if w.chance(5):                 # other strides: a permuted array, every other row, an offset
        sizes = [int(size) for size in shape[kind].split(", ")[1:]]
        inner, outer = ", ".join(map(str, sizes)), ", ".join(map(str, [*sizes[:-1], sizes[-1] + 3]))
        first = w.pick([f"draw(({inner}, batch), seed{more}).movedim(-1, 0)",
                        f"draw((2 * batch, {inner}), seed{more})[1::2]",
                        f"draw((batch, {outer}), seed{more})[..., 2:-1]"])
    second = w.pick([shape[kind], shape[kind].replace("batch", "1"), shape[kind].rpartition(", ")[2] + ","])
    return [first, *([f"draw(({second}), seed + 1{more})"] if w.chance(3) else [])], batch


def _outputs(w: Writer) -> tuple[str, list[int]]:
    """Return the text of what is returned, and which of its tensors are exact."""
    others = [name for name in ("h", *w.saved) if isinstance(w.names.get(name), torch.Tensor)]
    some = ["h", *(str(w.pick(others)) for _ in range(w.rng.integers(0, 3)))] if w.chance(2) else ["h"]
    exact = [i for i, name in enumerate(some) if name in w.exact]
    forms = {1: ["{}"], 2: ["{}, {}", "{{'a': {}, 'b': {}}}", "[{}, {}.flatten()]"],
             3: ["({}, [{}, {}])", "{}, {{'b': {}, 'c': {}}}"]}
    return str(w.pick(forms[len(some)])).format(*some), exact


# ── samples of ops ────────────────────────────────────────────────────────────────────────────────────────────────────


def sampled() -> list[str]:
    """The texts of programs for each sample of each op of the table."""
    from samples import SAMPLES
    ways = ["'float32'", "'float32', strided=True", "'float32', special=True", "'float64'"]
    return [f"sample({name!r}, {number}, {way})" for name, rows in SAMPLES.items() if name in set(OPS) - {"to_device"}
            for number, row in enumerate(rows) if "graph" not in row.skipped for way in ways]
